"""A campaign: thousands of seeds of all storms on one commit, with totals at the end.

    python tools/campaign.py                      10,000 seeds, two processes
    python tools/campaign.py --scale 0.01         a hundredth of each family
    python tools/campaign.py --first 50000        other seeds
    python tools/campaign.py --only preemption    one family

Results are appended to a file that is named after the commit, one line per seed. The same command
goes on where it was interrupted. Exits with 1 if a seed failed.
"""

import argparse
import json
import logging
import multiprocessing
import signal
import subprocess
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "live")]

SEEDS = {"whole system": 1000, "preemption": 1500, "volumes": 1500, "faults": 6000}
LIMIT_SECONDS = 300  # CPU time of one seed.
SEEDS_PER_PROCESS = 100  # So that what a seed leaves in memory does not add up.
PROGRESS_SECONDS = 30.0
RUNS: dict[str, Callable[[int], object]] = {}


class Result(NamedTuple):
    """How a seed ended; `error` is empty if nothing was wrong."""

    family: str
    seed: int
    seconds: float  # CPU time.
    error: str


def runs() -> dict[str, Callable[[int], object]]:
    """The function that runs one seed, by family."""
    from random_faults import random_faults
    from simulated import system
    from tests import storm
    from tests.simulation import test_preemption_storms as preemption
    from tests.volume_storm import RandomVolumeCluster

    return {
        "whole system": system.run,
        "preemption": lambda seed: preemption.check(
            preemption.live_through(seed, random_faults(seed))
        ),
        "volumes": lambda seed: storm.run(seed, cluster=RandomVolumeCluster(seed)),
        "faults": storm.run,
    }


def prepare() -> None:
    """Prepare a process that runs seeds."""
    RUNS.update(runs())
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("error")
    signal.signal(signal.SIGVTALRM, out_of_time)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The first process ends the others.


def out_of_time(*_: object) -> None:
    raise TimeoutError(f"not at its end after {LIMIT_SECONDS} s of CPU time")


def run_seed(task: tuple[str, int]) -> Result:
    """Run one seed; whatever it raises is the result."""
    family, seed = task
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_SECONDS)
    began, error = time.process_time(), ""
    try:
        RUNS[family](seed)
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return Result(family, seed, round(time.process_time() - began, 3), error)


class Campaign:
    """The seeds of a campaign, and the results so far, in memory and in a file."""

    def __init__(self, seeds: dict[str, range], file: Path) -> None:
        self.seeds = seeds
        self.file = file
        self.results: dict[tuple[str, int], Result] = {}
        if file.exists():
            lines = file.read_text().splitlines()
            for result in (Result(*json.loads(line)) for line in lines):
                if result.seed in seeds.get(result.family, ()):
                    self.results[result.family, result.seed] = result

    @property
    def total(self) -> int:
        return sum(map(len, self.seeds.values()))

    def tasks(self) -> list[tuple[str, int]]:
        """The seeds that are left to run."""
        every = ((family, seed) for family, seeds in self.seeds.items() for seed in seeds)
        return [task for task in every if task not in self.results]

    def run(self, jobs: int) -> Iterator[Result]:
        """Run what is left."""
        tasks = self.tasks()
        if not tasks:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        # A fork would inherit locks that threads hold, and might wait for them for ever.
        processes = multiprocessing.get_context("spawn")
        with (
            self.file.open("a") as file,
            processes.Pool(jobs, prepare, maxtasksperchild=SEEDS_PER_PROCESS) as pool,
        ):
            for result in pool.imap_unordered(run_seed, tasks):
                self.results[result.family, result.seed] = result
                print(json.dumps(result), file=file, flush=True)
                yield result

    def table(self) -> str:
        """The totals as Markdown."""
        lines = ["| storms | seeds | failed | s of CPU time | longest |", "|---|---|---|---|---|"]
        by_family = defaultdict(list)
        for result in self.results.values():
            by_family[result.family].append(result)
        for family, found in {**by_family, "all": [*self.results.values()]}.items():
            seconds = [each.seconds for each in found]
            failed = sum(bool(each.error) for each in found)
            longest = max(seconds, default=0.0)
            lines.append(
                f"| {family} | {len(found)} | {failed} | {sum(seconds):.0f} | {longest:.1f} |"
            )
        return "\n".join(lines)


def commit() -> str:
    """The commit of the working tree, with a mark if it has changes."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude", "*"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0, help="times the usual seeds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", choices=SEEDS, help="one family")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--results", type=Path, help="instead of build/campaign-COMMIT.jsonl")
    options = parser.parse_args()
    if not 0 < options.scale <= 1000:
        parser.error(f"--scale is {options.scale}; it has to be above 0, and 1000 at most")
    if options.jobs < 1:
        parser.error(f"--jobs is {options.jobs}; at least one process is needed")
    if options.results is not None and not options.results.parent.is_dir():
        parser.error(f"--results: the folder {options.results.parent} does not exist")
    return options


def main() -> int:
    options = arguments()
    version = commit()
    seeds = {
        family: range(options.first, options.first + max(1, round(count * options.scale)))
        for family, count in SEEDS.items()
        if options.only in (None, family)
    }
    campaign = Campaign(seeds, options.results or ROOT / "build" / f"campaign-{version}.jsonl")
    began = shown_at = time.monotonic()
    done_before = len(campaign.results)
    for result in campaign.run(options.jobs):
        if result.error:
            print(f"FAILED {result.family}, seed {result.seed}: {result.error}\n", flush=True)
        now, done = time.monotonic(), len(campaign.results)
        if now >= shown_at + PROGRESS_SECONDS:
            shown_at = now
            print(f"{now - began:7.0f} s: {done} of {campaign.total} seeds", flush=True)
    minutes = (time.monotonic() - began) / 60
    new = len(campaign.results) - done_before
    print(f"{campaign.table()}\ncommit {version}; {new} seeds now, in {minutes:.1f} minutes")
    return 1 if any(result.error for result in campaign.results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
