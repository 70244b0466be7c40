"""Mutation testing: change one place of the code at a time, and see whether a test fails.

    python tools/mutants.py --sample 200              a sample of all mutants, chosen by --seed
    python tools/mutants.py --sample 50 src/moorage/core/queue.py
    python tools/mutants.py --bugs                    the bugs of hand_made_bugs.py

A mutant that no test catches is either equivalent (the change makes no difference) or shows a
missing test. Each is run against the tests of its folder, then against properties, golden cases and
storms, until one fails. The table says which kind of test caught it. Hand-made bugs are run against
200 seeds of the simulation of the whole system, then against 200 of the core's.
"""

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from random import Random

from hand_made_bugs import BUGS

ROOT = Path(__file__).parents[1]
SOURCE = Path("src/moorage")
DEFAULT = (
    "core/*.py",
    "nodes/*.py",
    "live/leader_election.py",
    "live/reflector*.py",
    "cluster/store.py",
    "serve/sqlite.py",
)
# After the tests of the mutant's own folder.
STAGES = {
    "properties": ["tests/properties"],
    "golden cases": ["tests/parity"],
    "storms": ["tests/simulation", "tests/live/test_whole_system.py"],
}
# For hand-made bugs, with as many seeds.
BUG_STAGES = {
    "whole system": ["tests/live/test_whole_system.py::test_whole_system"],
    "storms": ["tests/simulation/test_faults.py", "tests/simulation/test_preemption_storms.py"],
}
BUG_SEEDS = 200
TIMEOUT_SECONDS = 900
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}


@dataclass(frozen=True)
class Mutant:
    """A part of a file, and what it is replaced by."""

    path: Path
    line: int
    start: int
    end: int
    before: str
    after: str
    bug: str = ""  # What a hand-made bug does.

    def __str__(self) -> str:
        if self.bug:
            return self.bug
        texts = [" ".join(text.split())[:40] for text in (self.before, self.after)]
        return f"{self.path}:{self.line}  {texts[0]}  ->  {texts[1]}"


def mutants_of(path: Path) -> Iterator[Mutant]:
    """All mutants of a file."""
    text = (ROOT / path).read_text()
    lines = [0]
    for line in text.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    tree = ast.parse(text)
    ignored = {id(part) for node in ast.walk(tree) for part in _ignored(node)}
    for node in ast.walk(tree):
        if id(node) in ignored or not hasattr(node, "end_lineno"):
            continue
        for after in _changed(node):
            start = lines[node.lineno - 1] + node.col_offset
            end = lines[node.end_lineno - 1] + node.end_col_offset
            before = text.encode()[start:end].decode()
            yield Mutant(path, node.lineno, start, end, before, after)


def _ignored(node: ast.AST) -> Iterator[ast.AST]:
    """Parts whose change means nothing: annotations, docstrings, texts of errors, asserts."""
    if isinstance(node, ast.FunctionDef) and node.name in ("__repr__", "check"):
        yield from ast.walk(node)
    for name in ("annotation", "returns"):
        if getattr(node, name, None) is not None:
            yield from ast.walk(getattr(node, name))
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr):
        yield from ast.walk(node)
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        yield from ast.walk(node)


def _changed(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Compare(left, [operator], [right]) if type(operator) in SWAPPED:
            yield ast.unparse(ast.Compare(left, [SWAPPED[type(operator)]()], [right]))
        case ast.BoolOp(operator, values):
            yield f"({ast.unparse(ast.BoolOp(SWAPPED[type(operator)](), values))})"
        case ast.UnaryOp(ast.Not(), operand):
            yield f"({ast.unparse(operand)})"
        case ast.BinOp(left, operator, right) if type(operator) in SWAPPED:
            yield f"({ast.unparse(ast.BinOp(left, SWAPPED[type(operator)](), right))})"
        case ast.Constant(value) if value is True or value is False:
            yield str(not value)
        case ast.Constant(int(value)):
            yield str(value + 1)
        case ast.Expr(ast.Call()) | ast.AugAssign() | ast.Delete() | ast.Break():
            yield "pass"
        case ast.Assign([ast.Attribute() | ast.Subscript()]):
            yield "pass"


def hand_made() -> Iterator[Mutant]:
    """The bugs of hand_made_bugs.py."""
    for bug in BUGS:
        path = SOURCE / bug.path
        text = (ROOT / path).read_text()
        if text.count(bug.before) != 1:
            sys.exit(f"{path} has not one place of {bug.before!r}")
        start = len(text[: text.index(bug.before)].encode())
        end = start + len(bug.before.encode())
        line = text[: text.index(bug.before)].count("\n") + 1
        yield Mutant(path, line, start, end, bug.before, bug.after, bug.name)


def stages_of(mutant: Mutant) -> dict[str, list[str]]:
    """The tests to run, by stage: those of the file, of its folder, then all others."""
    if mutant.bug:
        return BUG_STAGES
    folder = mutant.path.relative_to(SOURCE).parent
    own = ROOT / "tests" / folder / f"test_{mutant.path.stem}.py"
    stages = {"its file": [str(own)]} if own.exists() else {}
    return {**stages, "its folder": [f"tests/{folder}"], **STAGES}


def caught_by(mutant: Mutant, tree: Path) -> str:
    """The stage that catches a mutant in a copy of the source; empty if none does."""
    target = tree / mutant.path.relative_to("src")
    original = target.read_bytes()
    after = original[: mutant.start] + mutant.after.encode() + original[mutant.end :]
    seeds = {"MOORAGE_SEEDS": str(BUG_SEEDS)} if mutant.bug else {}
    for stage, tests in stages_of(mutant).items():
        target.write_bytes(after)
        try:
            code, output = run_tests(tests, tree, seeds)
        except subprocess.TimeoutExpired:
            return f"{stage} (does not end)"
        finally:
            target.write_bytes(original)
        seed = re.search(r"^FAILED .*?\[(\d+)\]", output, re.MULTILINE) if mutant.bug else None
        if seed is not None and run_tests(tests, tree, {"MOORAGE_SEED": seed[1]})[0]:
            sys.exit(f"{stage}: seed {seed[1]} fails without a bug, too")
        if code not in (0, 5):  # 5: no tests.
            return f"{stage}, seed {seed[1]}" if seed is not None else stage
    return ""


def run_tests(tests: list[str], tree: Path, variables: dict[str, str]) -> tuple[int, str]:
    """The exit code and the output of tests with the source in `tree`."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", **variables},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout


def main() -> None:
    """Run a sample of mutants and print what caught each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--bugs", action="store_true", help="hand-made bugs instead of a sample")
    options = parser.parse_args()
    files = options.files or [
        path.relative_to(ROOT) for each in DEFAULT for path in sorted((ROOT / SOURCE).glob(each))
    ]
    found = [mutant for path in files for mutant in mutants_of(path)]
    chosen = Random(options.seed).sample(found, min(options.sample, len(found)))
    if options.bugs:
        files, found = [], list(hand_made())
        chosen = found
    print(f"{len(chosen)} of {len(found)} mutants in {len(files)} files", flush=True)
    results: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.jobs):
            tree = Path(folder) / str(number)
            shutil.copytree(ROOT / "src", tree, ignore=shutil.ignore_patterns("__pycache__"))
            trees.put(tree)

        def run(mutant: Mutant) -> tuple[Mutant, str]:
            tree = trees.get()
            try:
                return mutant, caught_by(mutant, tree)
            finally:
                trees.put(tree)

        for mutant, stage in pool.map(run, chosen):
            results[stage or "none"] += 1
            print(f"{stage or 'NOT CAUGHT':20} {mutant}", flush=True)
    print(", ".join(f"{count} by {stage}" for stage, count in results.most_common()))
    sys.exit(1 if results["none"] else 0)


if __name__ == "__main__":
    main()
