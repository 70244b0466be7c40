"""Two commits measured by turns, so that a busy machine affects both alike.

`moorage bench --compare COMMIT` runs this, in a git checkout. The sources of the other commit are
unpacked into a temporary directory and run by this interpreter with the installed packages. Each
commit runs its own `moorage bench`; compared is CPU time per pod, run by run.
"""

import io
import json
import os
import runpy
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from rich.text import Text

from moorage.api import texts
from moorage.bench.measuring import Size
from moorage.cli import output
from moorage.cli.output import ConsolePage
from moorage.errors import InputError

HERE = Path(__file__).resolve().parents[1] / "src"
RUN = "from moorage.cli.main import main; main()"


@dataclass(frozen=True, slots=True)
class Compared:
    """CPU microseconds per pod, run by run: there (the other commit) and here."""

    name: str
    there: list[float] = field(default_factory=list)
    here: list[float] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        """How many times as fast as there it is here, pair by pair."""
        return [there / here for there, here in zip(self.there, self.here, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        ratios = self.ratios
        return {
            "cpuMicrosecondsPerPod": {
                "there": round(median(self.there), 2),
                "here": round(median(self.here), 2),
            },
            "timesAsFast": {
                "median": round(median(ratios), 3),
                "min": round(min(ratios), 3),
                "max": round(max(ratios), 3),
            },
        }


def compare(
    commit: str,
    names: Sequence[str],
    size: Size,
    repeat: int,
    on_progress: Callable[[int, int], None],
) -> tuple[dict[str, Any], Callable[[], None]]:
    """Measure shapes of both commits; returns plain data, and a function that prints a table."""
    with unpacked(commit) as folder:
        known = {line.split()[0] for line in _bench(folder, "--list").splitlines()}
        absent = [name for name in names if name not in known]
        compared = [Compared(name) for name in names if name in known]
        done = 0
        for i in range(repeat):
            for each in compared:
                sides = [(folder, each.there), (HERE, each.here)]
                for source, figures in sides if i % 2 == 0 else sides[::-1]:
                    figures.append(_microseconds(source, each.name, size))
                done += 1
                on_progress(done, repeat * len(compared))
    figures = {each.name: each.to_dict() for each in compared}
    plain = {"commit": commit, "shapes": figures, "absent": absent}
    return plain, partial(show, compared, absent, commit, size.nodes)


def in_turn(commit: str | None, repeat: int, measure: Callable[[str, Path], float]) -> None:
    """Measure this checkout, in turn with another commit if there is one, and print the ratio.

    `measure` takes a name for what is measured and the folder of its sources.
    """
    with nullcontext(None) if commit is None else unpacked(commit) as folder:
        there = [] if folder is None else [(str(commit), folder)]
        sides = [*there, ("here", HERE)]
        costs: dict[str, list[float]] = {name: [] for name, _ in sides}
        for i in range(repeat):
            for name, source in sides if i % 2 == 0 else sides[::-1]:
                costs[name].append(measure(name, source))
    if there:
        ratios = Compared("", costs[str(commit)], costs["here"]).ratios
        print(f"times as fast: {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


@contextmanager
def unpacked(commit: str) -> Iterator[Path]:
    """The sources of a commit in a temporary directory."""
    try:
        top = _git("rev-parse", "--show-toplevel").decode().strip()
    except (OSError, subprocess.CalledProcessError):
        raise InputError(
            f"{HERE} is not in a git checkout; only there commits can be compared"
        ) from None
    try:
        full = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    except subprocess.CalledProcessError:
        raise InputError(f'no commit "{commit}" in {top}') from None
    source = HERE.relative_to(top).as_posix()
    files_of = ("archive", "--format=tar", full.decode().strip(), source, "pyproject.toml")
    archive = _git("-C", top, *files_of)
    with tempfile.TemporaryDirectory(prefix="moorage-bench-") as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        write = runpy.run_path(str(Path(__file__).with_name("entry_points.py")))["write"]
        write(Path(folder) / source, Path(folder, "pyproject.toml").read_text())
        yield Path(folder) / source


def show(compared: list[Compared], absent: list[str], commit: str, nodes: int) -> None:
    """Print two commits' figures side by side."""
    page = ConsolePage()
    if compared:
        runs = texts.count(len(compared[0].here), "pair")
        page.put(
            Text(f"This checkout against {commit} on {texts.count(nodes, 'node')}; {runs} of runs.")
        )
        page.section()
        heads = (f"us CPU {commit[:12]}", "here", "times as fast", "min", "max")
        table = output.table("shape", numbers=heads)
        for each in compared:
            table.add_row(
                each.name,
                f"{median(each.there):,.1f}",
                f"{median(each.here):,.1f}",
                Text(f"{median(each.ratios):.2f}", output.HEAD),
                f"{min(each.ratios):.2f}",
                f"{max(each.ratios):.2f}",
            )
        page.put(table)
    for name in absent:
        page.note(f"{name}: {commit} has no such shape")


def _git(*arguments: str) -> bytes:
    command = ["git", "-C", str(HERE), *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout


def _microseconds(source: Path, name: str, size: Size) -> float:
    arguments = ["--nodes", str(size.nodes)]
    arguments += [] if size.pods is None else ["--pods", str(size.pods)]
    arguments += [] if size.initial is None else ["--initial", str(size.initial)]
    result = json.loads(_bench(source, name, "--repeat", "1", "-o", "json", *arguments))
    return float(result["shapes"][name]["microsecondsPerPod"]["cpu"])


def _bench(source: Path, *arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", RUN, "bench", *arguments],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode != 0:
        said = ran.stderr.strip().splitlines() or [f"exit code {ran.returncode}"]
        which = "here" if source == HERE else "there"
        raise InputError(f"moorage bench {' '.join(arguments)} failed {which}: {said[-1]}")
    return ran.stdout
