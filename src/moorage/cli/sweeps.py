"""`--sweep` of `moorage simulate`: many runs at once, and the options that belong to it."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from moorage.cli.options import bundled, workers
from moorage.errors import InputError

if TYPE_CHECKING:
    from moorage.sweeping.run import SweepRun
    from moorage.sweeping.sweep import AsCompleted, Sweep

F = TypeVar("F", bound=Callable[..., Any])

PROCESSES = "processes"
DASK_ADDRESS = "DASK_SCHEDULER_ADDRESS"


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """The parameters of a sweep, the folder for its results, and its workers."""

    parameters: tuple[str, ...]
    results: str | None
    on: str
    workers: int | None

    def check(self, **of_one_run: object) -> None:
        """Refuse options of one run in a sweep, and options of a sweep without one.

        The names are those of options, and the values say whether they are given.
        """
        if self.parameters:
            for name, given in of_one_run.items():
                if given:
                    raise click.UsageError(f"--{name} is for one run, not for a sweep")
            return
        given = {"results": self.results, "on": self.on != PROCESSES, "workers": self.workers}
        for name, value in given.items():
            if value:
                raise click.UsageError(f"--{name} requires --sweep")

    def run(self, task: "SweepRun") -> "Sweep":
        """Make all runs, with a progress bar."""
        from moorage.cli.progress import ProgressBar
        from moorage.sweeping import parameters
        from moorage.sweeping.sweep import RunFolder, sweep

        grid = parameters.grid(map(parameters.parse, self.parameters))
        as_completed = self._as_completed()
        task.check(grid)  # Before the folder is created.
        folder = RunFolder(self.results, task.digest()) if self.results is not None else None
        with ProgressBar("sweeping") as progress:
            return sweep(task, grid, folder, as_completed=as_completed, on_progress=progress.update)

    def _as_completed(self) -> "AsCompleted":
        kind, _, address = self.on.partition("=")
        if self.on == PROCESSES:
            from moorage.sweeping import processes

            return partial(processes.as_completed, workers=self.workers)
        if kind != "dask":
            raise InputError(
                f"--on {self.on}: must be processes, dask or dask=tcp://SCHEDULER:PORT"
            )
        from moorage.sweeping import dask

        address = address or os.environ.get(DASK_ADDRESS, "")
        if not address:
            raise InputError(
                "--on dask: the scheduler is missing; write dask=tcp://SCHEDULER:PORT, "
                f"or set {DASK_ADDRESS}"
            )
        return partial(dask.as_completed, address=address)


options: Callable[[F], F] = bundled(
    SweepOptions,
    "sweep",
    click.option(
        "--sweep",
        "parameters",
        metavar="NAME=VALUES",
        multiple=True,
        help="Run once per value, for example seed=0..9 or weight.NodeAffinity=1,5. If repeated, "
        "run once per combination.",
    ),
    click.option(
        "--results",
        "results",
        metavar="FOLDER",
        help="Save the finished runs of a sweep in FOLDER, and skip runs that are saved there.",
    ),
    click.option(
        "--on",
        "on",
        metavar="WHERE",
        default=PROCESSES,
        show_default=True,
        help="Where a sweep runs: processes, or dask=tcp://SCHEDULER:PORT.",
    ),
    workers,
)
