"""The reader of YAML and JSON: values as Kubernetes reads them, and its limits."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api import documents
from moorage.api.documents import MAX_DEPTH, DocumentError

BOMB = "a0: &a0 [1]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)
MERGE_BOMB = "a0: &a0 {x: 1}\n" + "".join(
    f"a{i}: &a{i} {{{', '.join(f'k{j}: *a{i - 1}' for j in range(9))}}}\n" for i in range(1, 12)
)


def only(text):
    (found,) = documents.parse_yaml(text)
    return found.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("a: 1", {"a": 1}, id="a mapping"),
        pytest.param("- a\n- [1, 2]\n- {b: c}", ["a", [1, 2], {"b": "c"}], id="a list"),
        pytest.param("5", 5, id="a scalar"),
        pytest.param("2024-01-01", "2024-01-01", id="a date is text"),
        pytest.param("1:30", "1:30", id="sexagesimal is text"),
        pytest.param("1e3", 1000.0, id="an exponent"),
        pytest.param("[0x1f, 0o17, 017, 0b11, -1_000, 08]", [31, 15, 15, 3, -1000, 8],
                     id="integers"),
        pytest.param("[0X1F, 0O17, 0B11, 0_7, +0x_1f]", [31, 15, 3, 7, 31], id="odd integers"),
        pytest.param("[0x_, 0o8, 0xg, _1]", ["0x_", "0o8", "0xg", "_1"], id="no integers"),
        pytest.param("[.5, -2., 1_0.5, 1e1_0]", [0.5, -2, 10.5, 10**10], id="floats"),
        pytest.param("1e400", "1e400", id="a number beyond a float is text"),
        pytest.param("18446744073709551616", 2**64, id="an integer beyond 64 bits"),
        pytest.param("9" * 100_000, "9" * 100_000, id="a number of many digits is text"),
        pytest.param("[yes, Off, TRUE, n, Y, oN]", [True, False, True, False, True, "oN"],
                     id="booleans"),
        pytest.param(r'''"it\'s" ''', "it's", id="an escaped quote"),
        pytest.param("[\"\\\\\\'\", '\\', 'a\\''b', c\\'d]", ["\\'", "\\", "a\\'b", "c\\'d"],
                     id="backslashes before quotes"),
        pytest.param("|\n  \"\\'\"", "\"\\'\"\n", id="no escape in a block of text"),
        pytest.param("a: ~\nb: null\nc:\nd: ''", {"a": None, "b": None, "c": None, "d": ""},
                     id="nulls"),
        pytest.param("['1', \"true\", !!str 2]", ["1", "true", "2"], id="texts"),
        pytest.param("[!!int '3', !!float 1, !!bool 'no', !!timestamp 2024-01-01]",
                     [3, 1.0, False, "2024-01-01"], id="tags"),
        pytest.param("{1: a, y: b, 1.5: c, 1.0: d}",
                     {"1": "d", "true": "b", "1.5": "c"}, id="keys are text"),
        pytest.param("a: &x [1]\nb: *x", {"a": [1], "b": [1]}, id="an alias"),
        pytest.param("a: &x {k: 1, l: 2}\nb: {<<: *x, k: 3}",
                     {"a": {"k": 1, "l": 2}, "b": {"k": 3, "l": 2}}, id="a merge key"),
        pytest.param("a: &x {k: 1}\nb: &y {k: 2, m: 3}\nc: {<<: [*x, *y]}",
                     {"a": {"k": 1}, "b": {"k": 2, "m": 3}, "c": {"k": 1, "m": 3}},
                     id="the first of several merged mappings counts"),
        pytest.param("a: &x {k: 1}\nk: 2\nl: 3\n<<: *x", {"a": {"k": 1}, "k": 1, "l": 3},
                     id="merged keys replace those above them"),
        pytest.param("'<<': 1", {"<<": 1}, id="a key that only looks like a merge key"),
        pytest.param("a: |\n  x: [\n", {"a": "x: [\n"}, id="a block of text"),
    ],
)  # fmt: skip
def test_yaml_values(text, value):
    assert only(text) == value


def test_yaml_documents_and_repeated_keys():
    text = "a: 1\nb: {c: 1, c: 2}\na: 3\n---\n---\nx\n---\n<<: {a: 1}\na: 2\na: 3\n"
    first, empty, last, merged = documents.parse_yaml(text)
    assert first.value == {"a": 3, "b": {"c": 2}}
    assert first.repeated == [(2, "c", 2), (3, "a", 1)]
    assert (empty.value, last.value) == (None, "x")
    assert merged.repeated == [(10, "a", 1)], "a merged key may be written once more"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a: " + "[" * 80_000, "is nested more than 100 levels deep", id="flow"),
        pytest.param("- " * 80_000 + "a", "is nested more than 100 levels deep", id="block"),
        pytest.param("? " * 5_000 + "a", "is nested more than 100 levels deep", id="keys"),
        pytest.param(BOMB, "aliases add more than 100000 values", id="alias bomb"),
        pytest.param(MERGE_BOMB, "aliases add more than 100000 values", id="bomb of mappings"),
        pytest.param("&a [*a]", "the anchor a contains itself", id="a list inside itself"),
        pytest.param("[*a]", "a is not defined", id="alias without anchor"),
        pytest.param(f"a: &a {'[' * 60}{']' * 60}\nb: {'[' * 60}*a{']' * 60}",
                     "is nested more than 100 levels deep", id="deep by an alias"),
        pytest.param("a: [1\nb: 2", "did not find expected ',' or ']'", id="syntax"),
        pytest.param("? [a]\n: 1", "a key must be a text, is a collection", id="list as key"),
        pytest.param("a: 1\n<<: 5", "<< must name a mapping or a list of mappings", id="merge"),
        pytest.param("!!python/name:os.system x", "is not supported here", id="tag that runs code"),
        pytest.param("!!set {a, b}", "is not supported here", id="a set"),
        pytest.param("? \n: a", "a key must be a text, is null", id="null as key"),
        pytest.param("a: [.inf]", ".inf is not a value that JSON knows", id="infinite"),
        pytest.param("a: !!float -.INF", "-.INF is not a value", id="infinite by its tag"),
        pytest.param("a: !!bool 5", "'5' is not of type bool", id="a tag of another type"),
        pytest.param("---a: 1", "--- must stand in a line of its own", id="separator and key"),
        pytest.param("a: \0", "control characters are not allowed", id="control character"),
    ],
)  # fmt: skip
def test_rejected_yaml(text, problem):
    with pytest.raises(DocumentError) as caught:
        list(documents.parse_yaml(text))
    assert problem in caught.value.problem


def test_the_deepest_yaml_and_json():
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert only(text) == documents.decode_json(text.encode())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(b"[" * 100_000, "nested", id="deep beyond decoding"),
        pytest.param(b"[" * 200 + b"]" * 200, "nested", id="deep"),
        pytest.param(b'"\xff"', "is not UTF-8", id="no UTF-8"),
        pytest.param(b"{", "truncated", id="half"),
    ],
)
def test_rejected_json(text, problem):
    with pytest.raises(DocumentError, match=problem):
        documents.decode_json(text)


def test_size_of_files(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x" * 2**20)
    assert len(documents.read_file(path, 2**20)) == 2**20
    path.write_bytes(b"x" * (2**20 + 1))
    with pytest.raises(DocumentError, match="is larger than 1 MiB"):
        documents.read_file(path, 2**20)


texts = st.text(st.characters(min_codepoint=32, max_codepoint=126))
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)  # In YAML, kubectl reads larger ones as floats.
    | texts
    | st.floats(allow_nan=False, allow_infinity=False, width=32),
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
)


@given(values)
def test_json_is_yaml(value):
    text = json.dumps(value)
    assert only(text) == documents.decode_json(text.encode()) == value


@given(values)
def test_written_yaml_is_read_as_the_same(value):
    assert only(documents.as_yaml({"a": value})) == {"a": value}


@pytest.mark.parametrize(
    "text", ["y", "1e3", "0o17", "0X1F", "1_0.5", ".inf", "<<", "1:30", "it's"]
)
def test_texts_that_look_like_something_else_are_quoted(text):
    assert only(documents.as_yaml({text: [text]})) == {text: [text]}
