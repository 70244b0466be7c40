"""`--sweep` of `moorage simulate`: many runs at once, and the options that belong to it."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from moorage.cli import options
from moorage.errors import InputError

if TYPE_CHECKING:
    from collections import Counter

    from moorage.api.meta import KubeObject
    from moorage.scenarios.plan import Plan
    from moorage.sweeping.run import Run
    from moorage.sweeping.sweep import AsCompleted, Sweep

F = TypeVar("F", bound=Callable[..., Any])

DASK_ADDRESS = "DASK_SCHEDULER_ADDRESS"


def sweeping(command: F) -> F:
    """The options of a sweep."""
    for option in reversed(
        (
            click.option(
                "--sweep",
                "sweep",
                metavar="NAME=VALUES",
                multiple=True,
                help="Run once for each value, as seed=0..9 or weight.NodeAffinity=1,5; "
                "repeated, for each combination.",
            ),
            click.option(
                "--results",
                "results",
                metavar="FOLDER",
                help="Keep finished runs of a sweep there, and go on from them.",
            ),
            click.option(
                "--on",
                "on",
                metavar="WHERE",
                default="processes",
                show_default=True,
                help="Whose workers run a sweep: processes, or dask=tcp://SCHEDULER:PORT.",
            ),
            options.workers,
        )
    ):
        command = option(command)
    return command


def check_alone(record_file: str | None) -> None:
    """A recording is of one run."""
    if record_file is not None:
        raise click.UsageError("--record keeps one run; a sweep is many")


def run(
    task: "Run", texts: Sequence[str], results: str | None, on: str, workers: int | None
) -> "Sweep":
    """Make all runs, with a progress bar."""
    from moorage.cli.progress import Progress
    from moorage.sweeping import parameters
    from moorage.sweeping.folder import Folder
    from moorage.sweeping.sweep import sweep

    grid = parameters.grid(map(parameters.parse, texts))
    where = _workers(on, workers)
    task.check(grid)  # Before a folder is made.
    folder = Folder(results, task.digest()) if results is not None else None
    with Progress("sweeping") as progress:
        return sweep(task, grid, folder, as_completed=where, on_progress=progress.update)


def play(
    plan: "Plan",
    objects: "Sequence[KubeObject]",
    config_file: str | None,
    seed: int | None,
    texts: Sequence[str],
    results: str | None,
    on: str,
    workers: int | None,
) -> "Sweep":
    """Make all runs of a scenario."""
    from dataclasses import replace

    from moorage.api import config
    from moorage.sweeping.run import Run

    # Its objects are set free, so that parameters can reach them.
    everything = (*objects, *plan.objects)
    own_seed = plan.seed if seed is None else seed
    task = Run(everything, config.load(config_file), own_seed, plan=replace(plan, objects=()))
    return run(task, texts, results, on, workers)


def show(answer: "Sweep", skipped: "Counter[str]", output: str, *, show_all: bool) -> None:
    """Print what came of all runs."""
    if output == "table":
        from moorage.cli import sweep_tables

        sweep_tables.show(answer, skipped, show_all=show_all)
    else:
        from moorage.cli import documents

        documents.write(answer.to_dict(), output)


def _workers(on: str, workers: int | None) -> "AsCompleted":
    kind, _, address = on.partition("=")
    if on == "processes":
        from moorage.sweeping import processes

        return partial(processes.as_completed, workers=workers)
    if kind != "dask":
        raise InputError(f"--on {on}: must be processes, dask or dask=tcp://SCHEDULER:PORT")
    from moorage.sweeping import dask

    address = address or os.environ.get(DASK_ADDRESS, "")
    if not address:
        raise InputError(
            "--on dask: no scheduler is named; write dask=tcp://SCHEDULER:PORT, "
            f"or set {DASK_ADDRESS}"
        )
    return partial(dask.as_completed, address=address)
