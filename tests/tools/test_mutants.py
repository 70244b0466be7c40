"""The tool behind `make mutants`: what it changes, and that every change is valid Python."""

import ast

import mutants
import pytest


@pytest.mark.parametrize(
    ("text", "after"),
    [
        pytest.param("x = a < b", ["x = a <= b"], id="a bound"),
        pytest.param("x = a in b", ["x = a not in b"], id="a member"),
        pytest.param("x = a and b", ["x = (a or b)"], id="all of two"),
        pytest.param("x = not a", ["x = (a)"], id="a negation"),
        pytest.param("x = a + 1", ["x = (a - 1)", "x = a + 2"], id="a sum"),
        pytest.param("x = True", ["x = False"], id="a flag"),
        pytest.param("a.f()", ["pass"], id="a call for its effect"),
        pytest.param("a.b = c", ["pass"], id="an attribute"),
        pytest.param("a: int = c", [], id="an annotation"),
        pytest.param("assert a < b, 'why'", [], id="a check of the code itself"),
        pytest.param('"""Words."""', [], id="a docstring"),
    ],
)
def test_what_is_changed(tmp_path, monkeypatch, text, after):
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    (tmp_path / "a.py").write_text(text)
    found = [text[: m.start] + m.after + text[m.end :] for m in mutants.mutants_of("a.py")]
    assert sorted(found) == sorted(after)


def test_every_mutant_is_valid():
    for pattern in mutants.DEFAULT:
        paths = sorted((mutants.ROOT / mutants.SOURCE).glob(pattern))
        assert paths, f"{pattern} names no file"
        for mutant in mutants.mutants_of(paths[0].relative_to(mutants.ROOT)):
            text = paths[0].read_bytes()
            ast.parse(text[: mutant.start] + mutant.after.encode() + text[mutant.end :])
