"""Mutation testing: change one place of the code at a time, and see whether a test fails.

    python tools/mutants.py                           160 mutants of core, 40 of the leader election
    python tools/mutants.py --sample 50 'nodes/*.py'  50 of other files below src/moorage
    python tools/mutants.py --bugs                    the bugs of hand_made_bugs.py

A mutant that no test catches shows a missing test, unless it is equivalent: the change makes no
difference. Those are in equivalent_mutants.py, with reasons. A mutant is run against the tests that
reach the changed statement: unit tests first, then properties, golden cases, storms and the
simulation of the whole system, until one fails. Hand-made bugs are run against 200 seeds of the
simulation of the whole system, and those that it does not find against 200 storms of the core.
"""

import argparse
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import mutant_session
from equivalent_mutants import EQUIVALENT
from mutant_session import MutantSession, Verdict
from mutations import SOURCE, Mutant, hand_made, sample

DEFAULT = {"core/*.py": 160, "live/leader_election.py": 40}
# After the tests of a mutant's own folder; those of `live` start processes, so some are named.
TESTS = ["tests/properties", "tests/parity", "tests/simulation", "tests/live/test_whole_system.py"]
USERS = {"nodes": ("framework", "plugins")}  # Their tests are tests of `nodes`, too.
LIVE_TESTS = [
    "tests/live/test_leader_election.py",
    "tests/live/test_performer.py",
    "tests/live/test_reflector.py",
]
BUG_TESTS = [
    "tests/live/test_whole_system.py::test_whole_system",
    "tests/simulation/test_faults.py::test_storm",
    "tests/simulation/test_preemption_storms.py",
]
BUG_SEEDS = 200
COLUMNS = (*mutant_session.STAGES, "equivalent", "NOT CAUGHT")


def chosen(patterns: dict[str, int], seed: int) -> tuple[list[str], list[Mutant]]:
    """The files that patterns name, and a sample of their mutants."""
    files, found = [], []
    for pattern, count in patterns.items():
        paths = [str(path.relative_to(SOURCE)) for path in sorted(SOURCE.glob(pattern))]
        if not paths:
            sys.exit(f"{pattern}: no such file below {SOURCE}")
        files += paths
        found += sample(paths, count, seed)
    return files, found


def tests_for(files: list[str]) -> list[str]:
    """The tests of the folders of files, then those of all."""
    folders = dict.fromkeys(path.rpartition("/")[0] for path in files)
    folders |= dict.fromkeys(user for each in tuple(folders) for user in USERS.get(each, ()))
    return [
        *(f"tests/{each}" for each in folders if each != "live"),
        *(LIVE_TESTS if "live" in folders else []),
        *TESTS,
    ]


def table(results: dict[str, Counter[str]]) -> str:
    """The results as Markdown: a row per file, a column per stage."""
    lines = [
        f"| file | mutants | {' | '.join(COLUMNS).lower()} |",
        "|---" * (len(COLUMNS) + 2) + "|",
    ]
    rows = {**dict(sorted(results.items())), "all": sum(results.values(), Counter())}
    for path, counts in rows.items():
        cells = [str(counts.total()), *(str(counts[stage] or "") for stage in COLUMNS)]
        lines.append(f"| {path} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run a sample of mutants and print what caught each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("files", nargs="*", help="patterns below src/moorage")
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bugs", action="store_true", help="hand-made bugs instead of a sample")
    parser.add_argument("--only", default="", help="of those, whose description has this text")
    parser.add_argument("--tests", nargs="*", help="tests to collect, instead of the usual ones")
    parser.add_argument("--seconds", type=float, default=3600.0, help="limit for one mutant")
    parser.add_argument("--reached", type=Path, help="folder: what tests reach, kept")
    options = parser.parse_args()
    patterns = dict.fromkeys(options.files, options.sample) or DEFAULT
    files, found = chosen(patterns, options.seed)
    variables = {}
    tests = options.tests or tests_for(files)
    if options.bugs:
        found = list(hand_made())
        files = sorted({bug.path for bug in found})
        tests, variables = options.tests or BUG_TESTS, {"MOORAGE_SEEDS": str(BUG_SEEDS)}
    found = [mutant for mutant in found if options.only in str(mutant)]
    results: dict[str, Counter[str]] = defaultdict(Counter)
    known = {each[:4] for each in EQUIVALENT}
    remaining = []
    for mutant in found:
        if (mutant.path, mutant.function, mutant.before, mutant.after) in known:
            results[mutant.path]["equivalent"] += 1
        else:
            remaining.append(mutant)

    def report(mutant: Mutant, stage: str, verdict: Verdict) -> None:
        results[mutant.path][stage if verdict.test else "NOT CAUGHT"] += 1
        print(f"{mutant}\n    {stage}: {verdict}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        session = MutantSession(
            files,
            remaining,
            report,
            folder=options.reached or Path(folder),
            limit_seconds=options.seconds,
        )
        mutant_session.main(session, tests, variables)
    print(table(results))
    sys.exit(1 if any(each["NOT CAUGHT"] for each in results.values()) else 0)


if __name__ == "__main__":
    main()
