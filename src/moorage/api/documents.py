"""The reader of YAML and JSON texts: files, standard input, kubeconfigs and bodies of requests.

Also the writer of YAML: it puts in quotes what the reader would not read as text.

The input is not trusted, so it is bounded: the size of a file, the depth of nesting, and the nodes
that aliases add. YAML is built from libyaml's events without recursion: PyYAML's C composer
overflows the stack, and its constructor takes ten times as long as the parser.

YAML is read as kubectl reads it: times stay text, 1e3 is a number, 1:30 is not, y is true, keys are
text. This module does not know what keys mean.
"""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

MAX_DEPTH = 100
"""Far above any real object; it protects recursive functions."""
MAX_ALIASED = 100_000
"""Nodes that the aliases of one document may add."""
MAX_SETTINGS_BYTES = 2**24
"""The size of a file with settings: a configuration, a kubeconfig."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class DocumentError(Exception):
    """A text that cannot be read: what is wrong, and in which line if that is known."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


class RepeatedKey(NamedTuple):
    """A key that occurs again in a mapping; depth 1 is the document itself."""

    line: int
    key: str
    depth: int


class YamlDocument(NamedTuple):
    """The value of a document, and keys that are repeated in it; the last value counts."""

    value: Any
    repeated: list[RepeatedKey]


def read_file(file: Path, limit: int) -> bytes:
    """The content of a file; raises OSError, or DocumentError if it is larger than the limit."""
    with file.open("rb") as opened:
        content = opened.read(limit + 1)
    if len(content) > limit:
        raise DocumentError(f"is larger than {limit >> 20} MiB")
    return content


def decode_json(text: bytes) -> Any:
    """The value of a JSON text."""
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise DocumentError(str(error)) from None
    except UnicodeDecodeError:
        raise DocumentError("a text in it is not UTF-8") from None
    except RecursionError:
        raise _too_deep() from None
    # Counting brackets is fast; only a text with many of them is walked.
    if text.count(b"{") + text.count(b"[") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise _too_deep()
    return value


def parse_yaml(text: str) -> Iterator[YamlDocument]:
    """Each document of a YAML text; None is the value of one without content."""
    builder = _Builder()
    try:
        for event in _events(text):
            if builder.add(event):
                yield YamlDocument(builder.value, builder.repeated)
                builder = _Builder()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "context", None)
        problem = problem or getattr(error, "reason", None) or " ".join(str(error).split())
        raise DocumentError(str(problem), None if mark is None else mark.line + 1) from None


_ESCAPED_QUOTE = re.compile(r"(?<!\\)((?:\\\\)*)\\'")
# An escape that libyaml reads, for a character that no text has.
_MARK, _READ_MARK = "\\U000AFFFE", "\U000afffe"


def _events(text: str) -> Iterator[yaml.Event]:
    """The parser's events; in double quotes, the escape \\' is read as kubectl reads it."""
    if not text.endswith("\n"):  # For kubectl, a block of text at the end has one, too.
        text += "\n"
    if "\\'" not in text:
        return yaml.parse(text, _LOADER)
    text = _ESCAPED_QUOTE.sub(lambda found: f"{found[1]}{_MARK}'", text)
    return map(_with_quotes, yaml.parse(text, _LOADER))


def _with_quotes(event: yaml.Event) -> yaml.Event:
    if isinstance(event, yaml.ScalarEvent):
        mark, meant = (_READ_MARK, "") if event.style == '"' else (_MARK, "\\")
        event.value = event.value.replace(mark, meant)
    return event


class _Node(NamedTuple):
    """A value with an anchor: nodes in it, with those of aliases, and levels below it."""

    value: Any
    nodes: int
    depth: int


class _Collection:
    """A list or mapping whose end is not read yet."""

    def __init__(self, value: list[Any] | dict[str, Any], anchor: str | None, nodes: int) -> None:
        self.value = value
        self.anchor = anchor
        self.nodes_before = nodes
        self.deepest = 0  # Levels below it.
        self.key: str | None = None
        self.is_merge = False  # The key is `<<`.
        self.key_line = 0
        self.line = 0
        self.merged: set[str] = set()  # Keys that `<<` added, and that were not repeated.


class _Builder:
    """Builds the value of one document from the parser's events."""

    def __init__(self) -> None:
        self.value: Any = None
        self.repeated: list[RepeatedKey] = []
        self._open: list[_Collection] = []
        self._anchors: dict[str, _Node | None] = {}  # None: its end is not read yet.
        self._nodes = 0
        self._aliased = 0

    def add(self, event: yaml.Event) -> bool:
        """Add an event; True at the end of a document."""
        if isinstance(event, yaml.ScalarEvent):
            line = _line(event)
            self._nodes += 1
            value = _scalar(event, line)
            if event.anchor:
                self._anchors[event.anchor] = _Node(value, 1, 0)
            self._put(value, line, 0, event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end()
        elif isinstance(event, yaml.CollectionStartEvent):
            self._begin(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        return isinstance(event, yaml.DocumentEndEvent)

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        line = _line(event)
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        if not event.implicit and event.tag != (_TAG + ("map" if is_mapping else "seq")):
            raise DocumentError(f"the tag {event.tag} is not supported here", line)
        if len(self._open) >= MAX_DEPTH:
            raise _too_deep(line)
        if event.anchor:
            self._anchors[event.anchor] = None
        self._nodes += 1
        collection = _Collection({} if is_mapping else [], event.anchor, self._nodes - 1)
        collection.line = line
        self._open.append(collection)

    def _end(self) -> None:
        collection = self._open.pop()
        depth = collection.deepest + 1
        if collection.anchor:
            nodes = self._nodes - collection.nodes_before
            self._anchors[collection.anchor] = _Node(collection.value, nodes, depth)
        self._put(collection.value, collection.line, depth)

    def _alias(self, event: yaml.AliasEvent) -> None:
        line = _line(event)
        node = self._anchors.get(str(event.anchor))
        if node is None:
            known = event.anchor in self._anchors
            problem = "contains itself" if known else "is not defined"
            raise DocumentError(f"the anchor {event.anchor} {problem}", line)
        self._nodes += node.nodes
        self._aliased += node.nodes
        if self._aliased > MAX_ALIASED:
            raise DocumentError(f"aliases add more than {MAX_ALIASED} values", line)
        if len(self._open) + node.depth > MAX_DEPTH:
            raise _too_deep(line)
        self._put(node.value, line, node.depth)

    def _put(
        self, value: Any, line: int, depth: int, scalar: yaml.ScalarEvent | None = None
    ) -> None:
        """Add a complete value to the collection around it."""
        if not self._open:
            self.value = value
            return
        outer = self._open[-1]
        outer.deepest = max(outer.deepest, depth)
        container = outer.value
        if isinstance(container, list):
            container.append(value)
        elif outer.key is None:
            outer.key = self._key(outer, value, line)
            outer.is_merge = outer.key == "<<" and scalar is not None and scalar.implicit[0]
        else:
            if outer.is_merge:  # It replaces the keys above it.
                for each in reversed(_mappings(value, line)):  # The first one counts.
                    container.update(each)
                    outer.merged.update(each)
            else:
                if outer.key in container and outer.key not in outer.merged:
                    self.repeated.append(RepeatedKey(outer.key_line, outer.key, len(self._open)))
                outer.merged.discard(outer.key)
                container[outer.key] = value
            outer.key = None

    def _key(self, outer: _Collection, value: Any, line: int) -> str:
        if value is None or isinstance(value, dict | list):
            found = "null" if value is None else "a collection"
            raise DocumentError(f"a key must be a text, is {found}", line)
        if len(self._open) == 1 and str(value).startswith("---"):
            raise DocumentError("--- must stand in a line of its own", line)
        outer.key_line = line
        return value if isinstance(value, str) else json.dumps(value)


def _line(event: yaml.Event) -> int:
    mark = event.start_mark
    assert mark is not None, "libyaml marks every event"
    return mark.line + 1


def _mappings(value: Any, line: int) -> list[dict[str, Any]]:
    """The mappings that `<<` merges."""
    found = value if isinstance(value, list) else [value]
    if not all(isinstance(each, dict) for each in found):
        raise DocumentError("<< must name a mapping or a list of mappings", line)
    return found


_TAG = "tag:yaml.org,2002:"


def _scalar(event: yaml.ScalarEvent, line: int) -> Any:
    text: str = event.value
    tag = "" if event.implicit[0] else str(event.tag).removeprefix(_TAG)
    if event.implicit[1] or tag in _TEXTS:
        return text
    if tag and tag not in _TYPES:
        raise DocumentError(f"the tag {event.tag} is not supported here", line)
    value = _plain(text)
    if value in _NOT_FINITE:
        raise DocumentError(f"{text} is not a value that JSON knows", line)
    if tag and type(value) not in _TYPES[tag]:
        raise DocumentError(f"{text[:60]!r} is not of type {tag}", line)
    return value


@lru_cache(maxsize=4096)
def _plain(text: str) -> Any:
    """The value of a scalar without quotes."""
    if text[:1] not in _FIRST:
        return text
    if text in _WORDS:
        return _WORDS[text]
    digits = text if text.startswith(".") else text.replace("_", "")
    if len(digits) <= _MOST_DIGITS and _INTEGER.fullmatch(digits):
        value = _integer(digits.lower())
        if -(2**63) <= value < 2**64:
            return value
    if _NUMBER.fullmatch(digits) and isfinite(number := float(digits)):
        # In JSON, which kubectl makes of it, both are the same.
        return int(number) if number.is_integer() and abs(number) < 2**63 else number
    return text


def _integer(digits: str) -> int:
    unsigned = digits.lstrip("+-")
    base = {"0x": 16, "0b": 2, "0o": 8}.get(unsigned[:2]) or (8 if unsigned[0] == "0" else 10)
    return int(digits, base)


def _spelled(*words: str) -> Iterator[str]:
    for word in words:
        yield from (word, word.capitalize(), word.upper())


_TEXTS = ("str", "timestamp")
_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "null": (type(None),),
}
_WORDS: dict[str, Any] = {
    **dict.fromkeys(_spelled("y", "yes", "true", "on"), True),
    **dict.fromkeys(_spelled("n", "no", "false", "off"), False),
    **dict.fromkeys(("", "~", *_spelled("null"))),
}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*|0[oO]?[0-7]+|0[xX][0-9a-fA-F]+|0[bB][01]+)")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_MOST_DIGITS = 67  # 64 bits, and 0b with a sign.
_NOT_FINITE = frozenset(
    (
        *(f"{sign}.{each}" for sign in ("", "+", "-") for each in ("inf", "Inf", "INF")),
        ".nan",
        ".NaN",
        ".NAN",
    )
)
_FIRST = frozenset("yYnNtTfFoO-+0123456789.~") | {""}


_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_DUMPER):  # type: ignore[misc]  # libyaml may be absent
    """PyYAML's, with quotes around more texts: of `y`, `1e3` and `0o17` it takes none."""


def _represent_text(dumper: _Dumper, text: str) -> yaml.Node:
    is_text = isinstance(_plain(text), str) and text not in _NOT_FINITE
    node: yaml.Node = dumper.represent_scalar(f"{_TAG}str", text, None if is_text else "'")
    return node


_Dumper.add_representer(str, _represent_text)


def as_yaml(value: Any, *, sort_keys: bool = False, width: int | None = None) -> str:
    """Plain data as a YAML document."""
    text: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=sort_keys, width=width, allow_unicode=True
    )
    return text


def _depth(value: Any) -> int:
    """The levels of nesting, counted up to one above the limit."""
    deepest, layer = 0, [value]
    while layer and deepest <= MAX_DEPTH:
        deepest += 1
        layer = [
            inner
            for each in layer
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return deepest


def _too_deep(line: int | None = None) -> DocumentError:
    return DocumentError(f"is nested more than {MAX_DEPTH} levels deep", line)


def without_nulls(value: Any) -> Any:
    """The value without null fields: an API server treats null as absent."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_nulls(each) for each in value]
    return value
