"""JSON that is read in parts is the same as JSON that is read as a whole."""

import io
import json
import re
import sys
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Raw

from moorage.api import manifests
from moorage.api.manifests import parsing
from moorage.api.manifests.json_parts import JsonList, JsonSyntaxError, json_documents
from moorage.api.manifests.parsing import InputText
from moorage.errors import ManifestError

WHOLE = 2**20


def in_parts(data, part_bytes):
    """Each document as bytes; of a list its version, its kind and its items."""
    text = InputText("a.json", io.BytesIO(data))
    text.part_bytes = part_bytes
    try:
        return all_of(text)
    except JsonSyntaxError as error:
        return str(error)


def all_of(text):
    return [
        (each.api_version, each.kind, [bytes(item).strip() for item in each.items])
        if isinstance(each, JsonList)
        else _list_or_document(each)
        for each in json_documents(text, lambda raw, version, kind: raw.copy())
    ]


class Header(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    items: list[Raw] | None = None


def as_whole(data):
    """The same, decoded at once."""
    try:
        documents = msgspec.json.Decoder(Raw).decode_lines(data)
    except msgspec.DecodeError as error:
        at = re.search(r" \(byte (\d+)\)$", str(error))
        parsed = data[: int(at[1])] if at else data.rstrip()
        problem = str(error).removeprefix("JSON is malformed: ").removesuffix(at[0] if at else "")
        line = parsed.count(b"\n") + 1
        return f"a.json, line {line}: is not JSON: {problem}"
    return [_list_or_document(each) for each in documents]


def _list_or_document(raw):
    try:
        header = msgspec.json.decode(raw, type=Header)
    except msgspec.ValidationError:
        return bytes(raw).strip()
    if header.items is None or not header.kind.endswith("List"):
        return bytes(raw).strip()
    return header.api_version, header.kind, [bytes(each) for each in header.items]


def plain(found):
    """What stays equal: a document that is not a list may lose its items."""
    if isinstance(found, str):
        return found
    return [each if isinstance(each, tuple) else _without_items(each) for each in found]


def _without_items(text):
    value = json.loads(text.decode(errors="replace"))  # Damage may cut a character in two.
    if not isinstance(value, dict):
        return value
    return {k: v for k, v in value.items() if k != "items" or not isinstance(v, list)}


texts = st.text(st.sampled_from('a"\\,{}[]:\n é0'), max_size=8)
scalars = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | texts
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["items", "kind", "a", 'b"']), inner, max_size=3)
    ),
    max_leaves=8,
)
objects = st.fixed_dictionaries(
    {"kind": st.sampled_from(["Pod", "Node"])},
    optional={"metadata": values, "spec": values, "items": values},
) | st.fixed_dictionaries({"metadata": values, "spec": values})
lists = st.tuples(
    st.sampled_from(["List", "PodList", "Pod", 5, ""]),
    st.lists(objects | values, max_size=6),
    st.permutations(["apiVersion", "kind", "items", "metadata"]),
    values,
).map(
    lambda drawn: {
        key: {"apiVersion": "v1", "kind": drawn[0], "items": drawn[1], "metadata": drawn[3]}[key]
        for key in drawn[2]
    }
)
forms = st.sampled_from(
    [{}, {"separators": (",", ":")}, {"indent": 1}, {"indent": 4}, {"ensure_ascii": False}]
)


@st.composite
def files(draw):
    """JSON documents one after another, many of them lists."""
    form = draw(forms)
    documents = draw(st.lists(lists | objects | values, max_size=4))
    spaces = st.sampled_from(["\n", " ", "\n\n", "\r\n"])
    text = "".join(json.dumps(each, **form) + draw(spaces) for each in documents)
    return draw(st.sampled_from(["", " \n"])).encode() + text.encode()


@st.composite
def damaged_files(draw):
    """Files with bytes removed or changed, and files that end too early."""
    data = draw(files())
    at = draw(st.integers(0, len(data)))
    what = draw(st.sampled_from(["cut", "change", "remove", "insert"]))
    byte = draw(st.sampled_from(list(b'{}[],:"x0- \n\\')))
    rest = {"cut": b"", "change": bytes([byte]) + data[at + 1 :], "remove": data[at + 1 :]}
    return data[:at] + rest.get(what, bytes([byte]) + data[at:])


@given(data=files(), part_bytes=st.integers(4, 200))
@example(data=b'{"items": [{"a": 1}, {"a": 2}], "kind": "List"}\n12 34 "x"', part_bytes=4)
@example(data=b'{"items": [{"a": 1}, {"a": 2}], "items": [{}], "kind": "List"}', part_bytes=4)
@example(data=b'{"items": [{"a": 1}, {"a": 2}], "items": null, "kind": "List"}', part_bytes=4)
def test_parts_are_the_documents_of_the_whole(data, part_bytes):
    expected = as_whole(data)
    assert plain(in_parts(data, part_bytes)) == plain(expected)
    assert plain(in_parts(data, WHOLE)) == plain(expected)


@given(data=damaged_files(), part_bytes=st.integers(4, 200))
@example(data=b'{"kind": "List", "items": [{"a": 1}\n,\n', part_bytes=9)
@example(data=b'{"kind": "List", "items": [{"a": 1}\n,\n]}', part_bytes=9)
@example(data=b'{"kind": "List", "items": [{"a": 1}] x}', part_bytes=9)
@example(data=b'{"kind": "List", "items": [{"a": 1}0, 1]}', part_bytes=9)
@example(data=b'{"kind": "List", "items": [\n{"a": 1}\n ', part_bytes=9)
@example(data=b'{"kind": "List", "items": [\n\n{"a": 1} {"a": 2}]}', part_bytes=9)
def test_errors_are_those_of_the_whole(data, part_bytes):
    expected = as_whole(data)
    assert plain(in_parts(data, part_bytes)) == plain(expected)
    assert plain(in_parts(data, WHOLE)) == plain(expected)


def pod(name, **fields):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "uid": name}, **fields}


def load(monkeypatch, data, part_bytes=64):
    """Load a text from standard input."""
    monkeypatch.setattr(InputText, "part_bytes", part_bytes)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Pipe(data)))
    return manifests.load(["-"])


class Pipe(io.BytesIO):
    """It can be read once."""

    def seekable(self):
        return False

    def seek(self, *_):
        raise io.UnsupportedOperation


NODES = [{"metadata": {"name": f"n{i}", "uid": f"n{i}"}} for i in range(20)]


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "NodeList", "apiVersion": "v1", "items": NODES},
        {"apiVersion": "v1", "items": NODES, "kind": "NodeList"},
        {"items": NODES, "metadata": {"items": []}, "kind": "NodeList", "apiVersion": "v1"},
        {"metadata": {"items": []}, "items": NODES, "kind": "NodeList", "apiVersion": "v1"},
    ],
)
def test_the_kind_of_a_list_stands_before_or_after_its_items(monkeypatch, document):
    found = load(monkeypatch, json.dumps(document, indent=4).encode())
    assert [(obj.kind, obj.name) for obj in found.objects] == [("Node", f"n{i}") for i in range(20)]


def test_a_text_that_begins_as_json_is_read_as_yaml(monkeypatch):
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": [pod("a"), pod("b")]})
    found = load(monkeypatch, f"{text}\n---\n{json.dumps(pod('c'))}\n".encode())
    assert [obj.name for obj in found.objects] == ["a", "b", "c"]
    monkeypatch.setattr(parsing, "MAX_KEPT_BYTES", 100)
    with pytest.raises(ManifestError, match=r"^standard input, line 2: is not JSON: invalid char"):
        load(monkeypatch, f"{text}\n---\n{json.dumps(pod('c'))}\n".encode())


@pytest.mark.parametrize("wrong", [pod("b", spec=5), pod(""), pod("a"), None, [], {"kind": "Pod"}])
def test_an_invalid_item_is_named_after_the_syntax_is_checked(monkeypatch, wrong):
    items = [pod("a"), wrong, pod("c", spec=6)]
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": items}, indent=4)
    for ends_early in (False, True):
        data = text[: -1 if ends_early else None].encode()
        with pytest.raises(ManifestError) as whole:
            load(monkeypatch, data, WHOLE)
        with pytest.raises(ManifestError) as parts:
            load(monkeypatch, data)
        assert parts.value.problems == whole.value.problems
        assert ("items[1]" in str(parts.value)) is not ends_early


def test_what_must_be_in_memory_is_limited(monkeypatch):
    monkeypatch.setattr(parsing, "MAX_BYTES", 1000)
    items = [pod(f"p{i}") for i in range(100)]
    listed = json.dumps({"kind": "List", "apiVersion": "v1", "items": items}).encode()
    assert len(load(monkeypatch, listed).objects) == 100
    assert len(load(monkeypatch, b"\n".join(map(msgspec.json.encode, items))).objects) == 100
    items[50]["spec"] = {"nodeName": "x" * 2000}
    listed = json.dumps({"kind": "List", "apiVersion": "v1", "items": items}).encode()
    with pytest.raises(ManifestError, match=r"^standard input: is larger than"):
        load(monkeypatch, listed)
    monkeypatch.setattr(parsing, "MAX_BYTES", 2**30)
    monkeypatch.setattr(parsing, "MAX_DUMP_BYTES", 1000)
    with pytest.raises(ManifestError, match=r"^standard input: is larger than"):
        load(monkeypatch, listed)


@pytest.mark.parametrize("bom", ["utf-16", "utf-8-sig"])
def test_byte_order_marks(monkeypatch, bom):
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": [pod("a"), pod("b")]})
    assert [obj.name for obj in load(monkeypatch, text.encode(bom)).objects] == ["a", "b"]


def test_utf_16_is_read_at_once(monkeypatch):
    """Adding a part to a text copies the text."""
    sizes = []

    class Counted(Pipe):
        def read(self, size=-1):
            sizes.append(size)
            return super().read(size)

    monkeypatch.setattr(InputText, "part_bytes", 64)
    text = InputText("a.json", Counted(("[" + "1, " * 1000 + "1]").encode("utf-16")))
    assert len(list(json_documents(text, lambda raw, version, kind: raw.copy()))) == 1
    assert len(sizes) == 2
    monkeypatch.setattr(parsing, "MAX_BYTES", 1000)
    with pytest.raises(ManifestError, match=r"^a.json: is larger than"):
        InputText("a.json", io.BytesIO(("[" + "1, " * 1000).encode("utf-16"))).read_more()


def test_a_binary_file(monkeypatch):
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": [pod("a"), pod("b")]})
    with pytest.raises(ManifestError, match=r"^standard input: is a binary file"):
        load(monkeypatch, text.encode() + b"\0")


@pytest.mark.parametrize(
    "item",
    [
        "1",
        '"x"',
        '{"a%d": 1, "b": 2}',
        pytest.param('{"a": [%s1]}' % ('{"a": 1}, ' * 100), id="values begin as those around them"),
        '{"a%d": [{"a%d": 1}, 2]}',
        pytest.param('{"a%%d": [%s1]}' % ("1, " * 300), id="no two values begin alike"),
        pytest.param('{"kind": "PodList", "items": [{"b": %d}]}', id="lists"),
    ],
)
@pytest.mark.parametrize("form", ['{"kind": "List", "items": [%s]}', "%s"])
def test_short_values_are_read_many_at_a_time(form, item):
    """Each part that is consumed copies the unread text, a MiB."""
    consumed = []

    class Counted(InputText):
        def consume(self, size):
            consumed.append(size)
            super().consume(size)

    items = [item.replace("%d", str(i)) for i in range(1000)]
    data = (form % (", " if "List" in form else "\n").join(items)).encode()
    assert all_of(Counted("a.json", io.BytesIO(data))) == as_whole(data)
    assert len(consumed) < 10
