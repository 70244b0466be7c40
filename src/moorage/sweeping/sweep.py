"""Sweep: all runs of a grid; what is finished is read back, the rest is run.

Whose workers do it, and whether they are here or elsewhere, is not known here.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from moorage.sweeping import processes
from moorage.sweeping.folder import Folder
from moorage.sweeping.parameters import SEED, Parameters
from moorage.sweeping.run import Outcome, Run, flat

AsCompleted = Callable[[Callable[[Parameters], Outcome], Sequence[Parameters]], Iterable[Any]]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Finished:
    """One run: its parameters and the summary of its result."""

    parameters: Parameters
    summary: Outcome

    def to_dict(self) -> dict[str, Any]:
        """The run as plain data."""
        return {"parameters": self.parameters, "summary": self.summary}


@dataclass(frozen=True, slots=True)
class Sweep:
    """All runs, in the order of the grid; `reused` of them were finished before."""

    runs: tuple[Finished, ...]
    reused: int

    def to_dict(self) -> dict[str, Any]:
        """All runs as plain data."""
        return {"reused": self.reused, "runs": [run.to_dict() for run in self.runs]}

    def rows(self) -> list[dict[str, Any]]:
        """A flat line of parameters and figures for each run, for a data frame or CSV."""
        return [{**run.parameters, **flat(run.summary)} for run in self.runs]

    def groups(self) -> list[tuple[Parameters, list[Finished]]]:
        """Runs that differ in nothing but their seed."""
        found: dict[tuple[Any, ...], tuple[Parameters, list[Finished]]] = {}
        for run in self.runs:
            rest = {name: value for name, value in run.parameters.items() if name != SEED}
            found.setdefault(tuple(rest.items()), (rest, []))[1].append(run)
        return list(found.values())


def sweep(
    run: Run,
    grid: Sequence[Parameters],
    folder: Folder | None = None,
    *,
    workers: int | None = None,
    as_completed: AsCompleted | None = None,
    on_progress: Progress | None = None,
) -> Sweep:
    """Make every run of a grid that the folder does not hold yet."""
    run.check(grid)
    outcomes: dict[int, Outcome] = {}
    for place, parameters in enumerate(grid):
        if folder is not None and (known := folder.load(parameters)) is not None:
            outcomes[place] = known
    reused = len(outcomes)
    missing = [place for place in range(len(grid)) if place not in outcomes]
    if on_progress is not None:
        on_progress(reused, len(grid))
    work = as_completed or partial(processes.as_completed, workers=workers)
    for number, outcome in work(run, [grid[place] for place in missing]):
        place = missing[number]
        outcomes[place] = outcome
        if folder is not None:
            folder.keep(grid[place], outcome)
        if on_progress is not None:
            on_progress(len(outcomes), len(grid))
    finished = (Finished(grid[place], outcomes[place]) for place in range(len(grid)))
    return Sweep(tuple(finished), reused)
