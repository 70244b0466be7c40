import pytest

from moorage.api.config import sources
from moorage.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("a: 1\nb: [x, z]\n", {"a": 1, "b": ["x", "z"]}, id="yaml"),
        pytest.param('{"a": 1, "b": ["x"]}', {"a": 1, "b": ["x"]}, id="json"),
        pytest.param('{\n\t"a":\t1\n}', {"a": 1}, id="json with tabs"),
        pytest.param("{a: 1}", {"a": 1}, id="yaml that begins with a brace"),
        pytest.param("---\na: 1\n---\n", {"a": 1}, id="an empty document more"),
        pytest.param("", None, id="nothing"),
        pytest.param("# a: 1\n", None, id="a comment"),
        pytest.param("day: 2026-01-02\n", {"day": "2026-01-02"}, id="a date is text, as in json"),
        pytest.param("1: a\nfalse: b\n", {"1": "a", "false": "b"}, id="keys become text"),
        pytest.param('{"a": "\\ud800"}', {"a": "?"}, id="half a character"),
        pytest.param(
            "base: &base {a: 1}\nover: {<<: *base, a: 2}\n",
            {"base": {"a": 1}, "over": {"a": 2}},
            id="overriding a merged key is not a repetition",
        ),
    ],
)
def test_parse(text, value):
    assert sources.parse(text) == value


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        pytest.param(
            "a:\n  b: 1\n  b: 2\n  c: 1\n  c: 1\n",
            [
                'strict decoding error: line 3: key "b" already set in map',
                'strict decoding error: line 5: key "c" already set in map',
            ],
            id="keys twice in yaml",
        ),
        pytest.param(
            '{"a": {"b": 1, "b": 2}}',
            ['strict decoding error: key "b" already set in map'],
            id="a key twice in json",
        ),
        pytest.param(
            "a: [1\nb: 2\n",
            ["yaml: line 2: did not find expected ',' or ']'"],
            id="a bracket left open",
        ),
        pytest.param(
            "a: 1\n---\nb: 2\n", ["one document is expected, 2 are there"], id="two files"
        ),
        pytest.param(
            "a: .nan\n", ["yaml: line 1: .nan is not a value that JSON knows"], id="not a number"
        ),
        pytest.param(
            "a: !!bool perhaps\n",
            ["yaml: line 1: 'perhaps' is not of type bool"],
            id="not what it says",
        ),
        pytest.param(
            "a: !!python/name:os.system x\n",
            ["yaml: line 1: the tag tag:yaml.org,2002:python/name:os.system is not supported here"],
            id="a tag that would run code",
        ),
        pytest.param(
            '{"a": 100000000000000000000}',
            ["not a value that JSON knows: an integer of more than 64 bits"],
            id="a number with too many bits",
        ),
        pytest.param(
            "? [a]\n: 1\n",
            ["yaml: line 1: a key must be a text, is a collection"],
            id="a list as key",
        ),
    ],
)
def test_parse_refuses(text, problems):
    with pytest.raises(ConfigError) as caught:
        sources.parse(text)
    assert caught.value.problems == problems


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(None, "no such file or directory", id="missing"),
        pytest.param(
            b"\x7fELF\xff\xfe\x00", "not UTF-8 text: invalid start byte at byte 4", id="binary"
        ),
    ],
)
def test_read_refuses(tmp_path, content, problem):
    path = tmp_path / "scheduler.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        sources.read(path)
    assert caught.value.problems == [problem]


def test_read_refuses_a_folder(tmp_path):
    with pytest.raises(ConfigError, match="is a directory"):
        sources.read(tmp_path)
