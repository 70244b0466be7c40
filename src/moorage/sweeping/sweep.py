"""Sweep: all runs of a grid; finished runs are read from a folder, the others are made.

The workers are the caller's choice: `processes` or `dask`.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from moorage.api import config as configuration
from moorage.api import manifests
from moorage.api.meta import KubeObject
from moorage.errors import InputError
from moorage.planning.recording import replace_file
from moorage.sweeping import parameters as parameter_values
from moorage.sweeping import processes
from moorage.sweeping.parameters import SEED, Parameters
from moorage.sweeping.run import Summary, SweepRun, flat

AsCompleted = Callable[[Callable[[Parameters], Summary], Sequence[Parameters]], Iterable[Any]]
OnProgress = Callable[[int, int], None]

SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """One run: its parameters and the summary of its result."""

    parameters: Parameters
    summary: Summary

    def to_dict(self) -> dict[str, Any]:
        """The run as plain data."""
        return {"parameters": self.parameters, "summary": self.summary}


@dataclass(frozen=True, slots=True)
class Sweep:
    """All runs, in the order of the grid; `reused` of them were finished before."""

    runs: tuple[FinishedRun, ...]
    reused: int

    def to_dict(self) -> dict[str, Any]:
        """All runs as plain data."""
        return {"reused": self.reused, "runs": [run.to_dict() for run in self.runs]}

    def rows(self) -> list[dict[str, Any]]:
        """A flat line of parameters and figures for each run, for a data frame or CSV."""
        return [{**run.parameters, **flat(run.summary)} for run in self.runs]

    def groups(self) -> list[tuple[Parameters, list[FinishedRun]]]:
        """Runs that differ in nothing but their seed."""
        found: dict[tuple[Any, ...], tuple[Parameters, list[FinishedRun]]] = {}
        for run in self.runs:
            rest = {name: value for name, value in run.parameters.items() if name != SEED}
            found.setdefault(tuple(rest.items()), (rest, []))[1].append(run)
        return list(found.values())


class RunFolder:
    """Finished runs as files, so that an interrupted sweep continues.

    A file is named after the parameters and the digest of the input. It is written under another
    name and then renamed, so that it is complete or missing. Leftovers are ignored.
    """

    def __init__(self, path: str | os.PathLike[str], digest: str) -> None:
        self.path = Path(path)
        self._digest = digest
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror or error}") from None

    def load(self, parameters: Parameters) -> dict[str, Any] | None:
        """The summary of a finished run, or None."""
        try:
            found = json.loads(self._file(parameters).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        fits = isinstance(found, dict) and found.get("parameters") == parameters
        summary = found.get("summary") if fits and found.get("input") == self._digest else None
        return summary if isinstance(summary, dict) else None

    def save(self, parameters: Parameters, summary: dict[str, Any]) -> None:
        """Save the summary of a finished run."""
        content = {"parameters": parameters, "input": self._digest, "summary": summary}
        file = self._file(parameters)
        try:
            replace_file(file, f"{json.dumps(content, indent=2)}\n".encode())
        except OSError as error:
            raise InputError(f"{file}: {error.strerror or error}") from None

    def _file(self, parameters: Parameters) -> Path:
        identity = json.dumps([self._digest, parameters], sort_keys=True)
        name = hashlib.sha256(identity.encode()).hexdigest()[:20]
        return self.path / f"run-{name}{SUFFIX}"


def sweep(
    run: SweepRun,
    grid: Sequence[Parameters],
    folder: RunFolder | None = None,
    *,
    workers: int | None = None,
    as_completed: AsCompleted | None = None,
    on_progress: OnProgress | None = None,
) -> Sweep:
    """Make every run of a grid that is not in the folder yet."""
    run.check(grid)
    summaries: dict[int, Summary] = {}
    for index, parameters in enumerate(grid):
        if folder is not None and (known := folder.load(parameters)) is not None:
            summaries[index] = known
    reused = len(summaries)
    missing = [index for index in range(len(grid)) if index not in summaries]
    if on_progress is not None:
        on_progress(reused, len(grid))
    work = as_completed or partial(processes.as_completed, workers=workers)
    for number, summary in work(run, [grid[index] for index in missing]):
        index = missing[number]
        summaries[index] = summary
        if folder is not None:
            folder.save(grid[index], summary)
        if on_progress is not None:
            on_progress(len(summaries), len(grid))
    finished = (FinishedRun(grid[index], summaries[index]) for index in range(len(grid)))
    return Sweep(tuple(finished), reused)


def run_sweep(
    objects: Iterable[Mapping[str, Any] | KubeObject],
    *parameters: str,
    config: configuration.Source = None,
    seed: int = 0,
    until: float | None = None,
    workers: int | None = None,
) -> Sweep:
    """Simulate every combination of parameters, such as `"seed=0..9"`, on several processes."""
    read = manifests.read(objects).everything
    run = SweepRun(tuple(read), configuration.load(config), seed, until)
    runs = parameter_values.grid(map(parameter_values.parse, parameters))
    return sweep(run, runs, workers=workers)
