"""JSON texts, read in parts: one document after another, and the items of a list like that.

A dump is one list with up to gigabytes of items. Its text is never in memory as a whole: of a list
that is longer than the text that was read, the items that are complete are consumed, then more is
read. The errors are those of decoding the whole text.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from moorage.api.manifests.parsing import InputText
from moorage.api.meta import KubeObject
from moorage.errors import ManifestError

Entry = KubeObject | Raw
"""A document or an item: its object, or its text."""
Keep = Callable[[Raw, str, str], Entry]
"""What to keep of a text; the version and kind are those of its list, as far as they are known."""


class JsonList(NamedTuple):
    """A document that is a list of objects, such as a `List` or a `PodList`."""

    api_version: str
    kind: str
    items: list[Entry]


class JsonSyntaxError(ManifestError):
    """Not JSON; it may still be YAML."""


class Header(Struct, rename="camel", gc=False):
    """The fields of a document that state its kind."""

    api_version: str = ""
    kind: str = ""
    items: list[Raw] | UnsetType | None = UNSET


HEADER = msgspec.json.Decoder(Header)
_VALUE = msgspec.json.Decoder(Raw)
_SPACES = b" \t\n\r"
_SPACE = re.compile(rb"[ \t\n\r]*")
_ITEMS = re.compile(rb'"items"[ \t\n\r]*:[ \t\n\r]*\[')
_BYTE = re.compile(r" \(byte (\d+)\)$")
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)$")  # Behind the first of them.
# Takes the place of the text before the items of a list, which may be long.
_LIST = b'{"": ['
# The longest token that may be malformed only because the rest of it is not read yet.
_TOKEN_BYTES = 64


def json_documents(text: InputText, keep: Keep) -> Iterator[Entry | JsonList]:
    """All documents; raises JsonSyntaxError."""
    while _starts(text):
        if found := _values(text, lambda raw: keep(raw, "", ""), in_list=False):
            yield from found
        elif prefix := _list_prefix(text.unread):
            yield _list(text, prefix, keep)
        else:
            _need_more(text, b"")


def _starts(text: InputText) -> bool:
    """Whether anything but space follows."""
    while _after_space(text) == len(text.unread):
        if not text.read_more():
            return False
    return True


def _after_space(text: InputText) -> int:
    space = _SPACE.match(text.unread)
    assert space is not None, "it matches nothing, too"
    return space.end()


def _list_prefix(unread: bytes) -> bytes:
    """The text of a document up to its items; empty if they are not a list, or not found."""
    if not (found := _ITEMS.search(unread)):
        return b""
    prefix = unread[: found.end()]
    try:
        header = HEADER.decode(prefix + b"]}")  # Fails if these are items of something inside.
    except msgspec.DecodeError:
        return b""
    return prefix if header.items == [] else b""


def _list(text: InputText, prefix: bytes, keep: Keep) -> Entry | JsonList:
    """The document that begins with `prefix`; its text without the items if it is no list."""
    header = HEADER.decode(prefix + b"]}")
    version, kind = header.api_version, header.kind.removesuffix("List")
    if not kind:  # Items of a List state their kind themselves.
        version = ""
    text.consume(len(prefix))
    found: list[Entry] = []
    before = _LIST
    while _starts(text) and not text.unread.startswith(b"]", _after_space(text)):
        if found:
            if text.unread[:1] != b",":
                _need_more(text, _LIST + b"{}")
                continue
            text.consume(1)
            before = _LIST + b"{},"
        while not (items := _values(text, lambda raw: keep(raw, version, kind), in_list=True)):
            _need_more(text, before)
        found += items
    before = _LIST + b"{}" if found else _LIST
    while not (end := _first_end(before + text.unread, is_all=text.is_at_end)):
        _need_more(text, before)
    rest = text.unread[: end - len(before)]
    text.consume(len(rest))
    try:
        tail = HEADER.decode(_LIST + rest)
    except msgspec.DecodeError:
        return Raw(prefix + rest)
    stated = (tail.api_version or header.api_version, tail.kind or header.kind)
    if tail.items is not UNSET or not stated[1].endswith("List"):
        return Raw(prefix + rest)  # No list, or its items stand there again: the last ones count.
    if stated != (header.api_version or tail.api_version, header.kind or tail.kind):
        raise ManifestError(f"{text.source}: apiVersion or kind of a list stands there twice")
    return JsonList(*stated, found)


def _values(text: InputText, keep: Callable[[Raw], Entry], *, in_list: bool) -> list[Entry]:
    """The next values, as many as are complete."""
    values: list[Entry] = []
    unread = memoryview(text.unread)
    start = end = 0
    while size := _first_end(unread[start:], is_all=text.is_at_end):
        end = start + size
        values.append(keep(Raw(unread[start:end])))
        start = end
        if in_list:
            if text.unread[end : end + 1] != b",":
                break
            start += 1
    text.consume(end)
    return values


def _first_end(data: bytes | memoryview, *, is_all: bool) -> int | None:
    """Where the first value ends; None if it is malformed, or may go on behind the data."""
    try:
        _VALUE.decode(data)
    except msgspec.DecodeError as error:
        at = _TRAILING.search(str(error))
        return int(at[1]) - 1 if at else None
    # The digits of a number may go on. Space at the end counts as unread, for the line of an error.
    return len(bytes(data).rstrip(_SPACES)) if is_all else None


def _need_more(text: InputText, before: bytes) -> None:
    """Read more of a text that goes on; raise the error of one that is malformed."""
    data = before + text.unread
    try:
        _VALUE.decode_lines(data)
    except msgspec.DecodeError as error:
        at = _BYTE.search(str(error))
        position = len(data.rstrip()) if at is None else int(at[1])
        is_malformed = at is not None and position < len(data) - _TOKEN_BYTES
        if is_malformed or not text.read_more():
            problem = str(error).removeprefix("JSON is malformed: ")
            problem = problem.removesuffix(at[0] if at else "")
            line = text.line + data[len(before) : position].count(b"\n")
            raise JsonSyntaxError(f"{text.source}, line {line}: is not JSON: {problem}") from None
    else:
        text.read_more()
