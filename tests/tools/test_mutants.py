"""The tools behind `make mutants`: what is changed, and that a change reaches the functions."""

import ast
import os
import subprocess
import sys

import mutant_session
import mutations
import pytest

FILES = ("core/queue.py", "live/leader_election.py")


@pytest.mark.parametrize(
    ("text", "after"),
    [
        pytest.param("x = a < b", ["x = a <= b"], id="a bound"),
        pytest.param("x = a in b", ["x = a not in b"], id="a member"),
        pytest.param("x = a and b", ["x = (a or b)"], id="all of two"),
        pytest.param("x = not a", ["x = (a)"], id="a negation"),
        pytest.param("x = a + 1", ["x = (a - 1)", "x = a + 2"], id="a sum"),
        pytest.param("x = True", ["x = False"], id="a flag"),
        pytest.param("x = min(a, b)", ["x = max(a, b)"], id="the smaller one"),
        pytest.param("x = b if a else c", ["x = b if not a else c"], id="a condition"),
        pytest.param("a.f()", ["pass"], id="a call for its effect"),
        pytest.param("await a.f()", ["pass"], id="a call that is waited for"),
        pytest.param("a.b = c", ["pass"], id="an attribute"),
        pytest.param("return a", ["return None"], id="a result"),
        pytest.param("return None", [], id="no result"),
        pytest.param("a: int = c", [], id="an annotation"),
        pytest.param("assert a < b, 'why'", [], id="a check of the code itself"),
        pytest.param('"""Words."""', [], id="a docstring"),
    ],
)
def test_what_is_changed(tmp_path, monkeypatch, text, after):
    monkeypatch.setattr(mutations, "SOURCE", tmp_path)
    (tmp_path / "a.py").write_text(f"x = 1\n\n\nasync def f():\n    {text}\n")
    found = list(mutations.mutants_of("a.py"))
    assert sorted(mutant.after for mutant in found) == sorted(after)
    assert all((mutant.before, mutant.function, mutant.line) == (text, "f", 5) for mutant in found)
    for mutant in found:
        ast.parse(mutant.text)


def test_a_sample_stays_the_same_when_other_code_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(mutations, "SOURCE", tmp_path)
    functions = [f"def f{i}(x):\n    return x < {i}\n\n\n" for i in range(20)]
    (tmp_path / "a.py").write_text("".join(functions))
    before = {str(mutant.after) for mutant in mutations.sample(["a.py"], 10, 0)}
    (tmp_path / "a.py").write_text("X = 1\n\n\n" + "".join(functions[1:]))
    after = {str(mutant.after) for mutant in mutations.sample(["a.py"], 10, 0)}
    assert len(before & after) >= 7


@pytest.mark.parametrize("path", FILES)
def test_every_mutant_is_valid(path):
    found = list(mutations.mutants_of(path))
    assert len(found) > 50
    for mutant in found:
        ast.parse(mutant.text)


@pytest.mark.parametrize("path", FILES)
def test_every_statement_of_a_mutant_is_recorded(path):
    recorded = {
        node.args[0].value
        for node in ast.walk(mutant_session.recording(path))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == mutant_session.RECORD
    }
    assert {f"{path}:{mutant.line}" for mutant in mutations.mutants_of(path)} <= recorded


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # pytest-xdist has a thread.
def test_a_fork_runs_the_changed_code_and_this_process_does_not():
    from moorage.core.queue import SchedulingQueue

    session = mutant_session.MutantSession([], [], print, folder=None, limit_seconds=1.0)
    session.functions = mutant_session.functions_of(["core/queue.py"])
    [mutant] = (
        each
        for each in mutations.mutants_of("core/queue.py")
        if (each.function, each.after) == ("SchedulingQueue.hint_errors", "return None")
    )

    def run(out):
        session.apply(mutant)
        os.write(out, repr(SchedulingQueue.hint_errors.fget(None)).encode())

    assert session.in_fork(run) == ("None", 0)
    with pytest.raises(AttributeError):
        SchedulingQueue.hint_errors.fget(None)


def test_files_that_no_test_has_imported_are_changed_too():
    program = "import mutant_session as m; print(len(m.functions_of(['plugins/priority_sort.py'])))"
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(mutations.ROOT / "tools")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "1\n"


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_stage_without_tests_catches_nothing(tmp_path):
    report = []
    session = mutant_session.MutantSession(
        [], [], lambda *each: report.append(each), folder=tmp_path, limit_seconds=1.0
    )
    [mutant, *_] = mutations.mutants_of("core/queue.py")
    assert session._survivors([mutant], "properties", []) == [mutant]
    assert report == []
