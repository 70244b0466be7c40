"""A pytest session that runs tests against mutants, each in a process of its own.

All tests are collected once. The first process finds out which statements each test reaches: in the
code of the files in question, every statement is preceded by a call that records it. Then each
mutant gets a fork, whose functions get the changed code, and the tests that reach the statement run
there until one fails.
"""

import ast
import builtins
import gc
import importlib
import json
import os
import resource
import signal
import sys
import time
import types
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from mutations import FUNCTIONS, ROOT, SOURCE, Mutant

# Stages in order, with the tests that belong to each: the first that catches a mutant is named.
STAGES = {
    "unit tests": "tests/",
    "properties": "tests/properties/",
    "golden cases": "tests/parity/",
    "simulations": "tests/simulation/",
    "whole system": "tests/live/test_whole_system.py",
}
RECORD = "moorage_mutants_reached"
MEMORY_BYTES = 8 << 30
WITHOUT_CHANGE = Mutant("", "", "", "", 0, 0, "")


@dataclass
class Reached:
    """What a run of all tests without a change has shown."""

    seconds: dict[str, float]
    by_statement: dict[str, list[str]]  # Tests by "path:line".

    def order(self, mutant: Mutant, tests: Iterable[str]) -> list[str]:
        """The tests that may catch a mutant: those of its file first, then the quickest.

        A test that was written after the run may reach everything.
        """
        found = set(self.by_statement.get(f"{mutant.path}:{mutant.line}", ()))
        path = Path(mutant.path)
        own = f"tests/{path.parent}/test_{path.stem}"
        return sorted(
            (test for test in tests if test in found or test not in self.seconds),
            key=lambda test: (not test.startswith(own), self.seconds.get(test, 0.0)),
        )


@dataclass(frozen=True)
class Verdict:
    """The test that failed for a mutant; empty if none did."""

    test: str
    seconds: float
    has_ended: bool = True

    def __str__(self) -> str:
        text = f"{self.test or 'NOT CAUGHT'}{'' if self.has_ended else ' (does not end)'}"
        return f"{text}, {self.seconds:.0f} s"


class MutantSession:
    """The plugin: replaces the loop over the tests."""

    def __init__(
        self,
        paths: Iterable[str],
        mutants: Iterable[Mutant],
        report: Callable[[Mutant, str, Verdict], None],
        *,
        folder: Path,
        limit_seconds: float,
    ) -> None:
        self.paths = list(paths)
        self.mutants = list(mutants)
        self.report = report
        self.folder = folder
        self.limit_seconds = limit_seconds
        self.items: dict[str, pytest.Item] = {}
        self.functions: dict[str, list[types.FunctionType]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        from hypothesis import Phase, settings  # pytest wants to import it first.

        # The same examples every time; a failing example is not made smaller, and not stored.
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile(
            "mutants",
            settings.get_profile("moorage"),
            derandomize=True,
            database=None,
            phases=phases,
        )
        settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = {item.nodeid: item for item in session.items}
        self.functions = functions_of(self.paths)
        stages = defaultdict(list)
        for test in self.items:
            stages[stage_of(test)].append(test)
        if self.mutants[0].bug:
            for bug in self.mutants:
                self.report(bug, *self._judge_bug(bug, stages))
            return True
        remaining = self.mutants
        for stage in STAGES:
            remaining = self._survivors(remaining, stage, stages[stage])
        for mutant in remaining:
            self.report(mutant, "", Verdict("", 0.0))
        return True

    def _survivors(self, mutants: list[Mutant], stage: str, tests: list[str]) -> list[Mutant]:
        """Report the mutants that a stage catches; returns the others."""
        if not mutants:
            return []
        file = self.folder / f"{stage}.json"
        if not file.exists():
            self.in_fork(lambda out: self._record(tests, out, file))
        reached = Reached(**json.loads(file.read_text()))
        survivors = []
        for mutant in mutants:
            verdict = self._judge(mutant, reached.order(mutant, tests), reached)
            if verdict.test:
                self.report(mutant, stage, verdict)
            else:
                survivors.append(mutant)
        return survivors

    def _judge_bug(self, bug: Mutant, stages: dict[str, list[str]]) -> tuple[str, Verdict]:
        """The first stage that finds a bug."""
        unknown = Reached({}, {})
        for stage, tests in stages.items():
            verdict = self._judge(bug, tests, unknown)
            if not verdict.test:
                continue
            if self._judge(WITHOUT_CHANGE, [verdict.test], unknown).test:
                sys.exit(f"{verdict.test} fails without a bug, too")
            return stage, verdict
        return "", Verdict("", 0.0)

    def _judge(self, mutant: Mutant, order: list[str], reached: Reached) -> Verdict:
        began = time.monotonic()

        def run(out: int) -> None:
            self.apply(mutant)
            for test, has_passed, _ in self._run(order, out, reached):
                if not has_passed or time.monotonic() - began > self.limit_seconds:
                    os.write(out, b"" if has_passed else f"failed {test}\n".encode())
                    return
            os.write(out, b"passed\n")

        output, status = self.in_fork(run)
        last = output.splitlines()[-1].split(" ", 1) if output else ["begun", ""]
        seconds = time.monotonic() - began
        if last[0] == "failed" or status:  # A signal ends what does not end, or a crash.
            return Verdict(last[-1], seconds, last[0] == "failed")
        return Verdict("", seconds)

    def _record(self, tests: list[str], out: int, file: Path) -> None:
        """Run tests, and write which statements each reaches."""
        current: set[str] = set()
        setattr(builtins, RECORD, current.add)
        for path in self.paths:
            self._replace(path, compile(recording(path), str(SOURCE / path), "exec"))
        result = Reached({}, defaultdict(list))
        for test, has_passed, seconds in self._run(tests, out, None):
            result.seconds[test] = round(seconds, 3)
            if has_passed:
                for each in current:
                    result.by_statement[each].append(test)
            else:
                print("fails without a mutant, not used:", test, file=sys.__stderr__, flush=True)
            current.clear()
        file.write_text(json.dumps(vars(result)))

    def _run(
        self, order: list[str], out: int, reached: Reached | None
    ) -> Iterator[tuple[str, bool, float]]:
        for test, following in zip_longest(order, order[1:]):
            os.write(out, f"begun {test}\n".encode())
            began = time.monotonic()
            if reached is not None:
                usual = reached.seconds.get(test, 5.0)
                signal.setitimer(signal.ITIMER_VIRTUAL, 10.0 + 10 * usual)
                signal.setitimer(signal.ITIMER_REAL, 120.0 + 20 * usual)
            reports = runtestprotocol(
                self.items[test], log=False, nextitem=self.items[following] if following else None
            )
            yield test, not any(each.failed for each in reports), time.monotonic() - began

    def apply(self, mutant: Mutant) -> None:
        """Change the code of this process."""
        if mutant.path:
            file = str(SOURCE / mutant.path)
            self._replace(mutant.path, compile(mutant.text, file, "exec"))

    def _replace(self, path: str, module: types.CodeType) -> None:
        """Give the functions of a file the code of another version of it."""
        new = defaultdict(list)
        for code in _codes(module):
            new[code.co_qualname].append(code)
        old = defaultdict(list)
        text = (SOURCE / path).read_text()
        for code in _codes(compile(text, str(SOURCE / path), "exec")):
            old[code.co_qualname].append(code.co_firstlineno)
        for function in self.functions.get(path, ()):
            name = function.__code__.co_qualname
            if len(old[name]) == len(new[name]):
                index = old[name].index(function.__code__.co_firstlineno)
                function.__code__ = new[name][index]

    def in_fork(self, run: Callable[[int], None]) -> tuple[str, int]:
        """What a function writes in a process of its own, and how that ends."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            code = 1
            try:
                nothing = os.open(os.devnull, os.O_RDWR)
                for stream in (0, 1):
                    os.dup2(nothing, stream)
                for number in (signal.SIGALRM, signal.SIGVTALRM):
                    signal.signal(number, signal.SIG_DFL)
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
                run(writing)
                code = 0
            finally:
                os._exit(code)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            output = pipe.read()
        return output, os.waitpid(child, 0)[1]


def stage_of(test: str) -> str:
    """The stage of a test: by its folder."""
    return next(stage for stage, prefix in reversed(STAGES.items()) if test.startswith(prefix))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield each
            yield from _codes(each)


def functions_of(paths: list[str]) -> dict[str, list[types.FunctionType]]:
    """The functions of files, as they are in memory; plugins are imported when they are needed."""
    for path in paths:
        importlib.import_module(f"moorage.{path.removesuffix('.py').replace('/', '.')}")
    files = {str(SOURCE / path): path for path in paths}
    found = defaultdict(list)
    gc.unfreeze()
    for each in gc.get_objects():
        if type(each) is types.FunctionType and each.__code__.co_filename in files:
            found[files[each.__code__.co_filename]].append(each)
    gc.freeze()
    return found


def recording(path: str) -> ast.Module:
    """A file whose statements in functions record themselves."""
    tree = ast.parse((SOURCE / path).read_text())
    for function in ast.walk(tree):
        if not isinstance(function, FUNCTIONS):
            continue
        for node in ast.walk(function):
            for name in ("body", "orelse", "finalbody"):
                body = getattr(node, name, None)
                if isinstance(body, list) and not isinstance(node, ast.ClassDef):
                    setattr(node, name, list(_recorded(path, body)))
    return tree


def _recorded(path: str, body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if not getattr(statement, "is_recorded", False):  # By a function around this one.
            [record] = ast.parse(f"{RECORD}({f'{path}:{statement.lineno}'!r})").body
            for node in ast.walk(record):
                ast.copy_location(node, statement)
            statement.is_recorded = record.is_recorded = True
            yield record
        yield statement


def main(plugin: MutantSession, tests: list[str], variables: dict[str, str]) -> None:
    """Run a session with a plugin."""
    os.environ.update(variables)
    os.chdir(ROOT)
    options = ["-s", "-p", "no:cacheprovider", "-p", "no:xdist"]
    code = pytest.main([*options, *tests], plugins=[plugin])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        sys.exit(f"pytest: {code!r}")
