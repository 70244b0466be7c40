"""What can be kept of a simulation beside what is printed: an HTML report, CSV tables."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from moorage.api.config import Source
    from moorage.explaining import Explanation
    from moorage.sim.results.result import Result
    from moorage.sim.run import Simulation

F = TypeVar("F", bound=Callable[..., Any])

# Without names, the first pod of so many reasons to be pending is explained.
MOST_EXPLAINED = 3


def _in_a_folder(context: click.Context, option: click.Parameter, file: str | None) -> str | None:
    """Complain about a folder that is not there now, rather than after a long run."""
    from pathlib import Path

    if file is not None and not Path(file).absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {Path(file).parent}")
    return file


def options(command: F) -> F:
    """`--report FILE`, `--csv FOLDER`, `--explain POD`."""
    for option in (
        click.option(
            "--explain",
            "explained",
            metavar="POD",
            multiple=True,
            help="A pod whose decision the report shows, as it would be made at the end. May be "
            "repeated. Without it: one pod for each of the first reasons to be pending.",
        ),
        click.option(
            "--csv",
            "csv_folder",
            metavar="FOLDER",
            type=click.Path(file_okay=False),
            help="Write samples, nodes, pending, disruptions and spread as CSV files.",
        ),
        click.option(
            "--report",
            "report_file",
            metavar="FILE",
            type=click.Path(dir_okay=False),
            callback=_in_a_folder,
            help="Write an HTML report with charts: one file, which needs no network.",
        ),
    ):
        command = option(command)
    return command


def write(
    simulation: "Simulation",
    *,
    title: str,
    seed: int,
    config: "Source",
    report_file: str | None,
    csv_folder: str | None,
    explained: tuple[str, ...],
    result: "Result | None" = None,
) -> None:
    """Write what was asked for."""
    if report_file is None and csv_folder is None:
        if explained:
            raise click.UsageError("--explain is for the report; add --report FILE")
        return
    from pathlib import Path

    from moorage.errors import InputError

    result = result or simulation.result
    file = Path(report_file or "")  # The one at hand: a full disk does not say which it was.
    try:
        if report_file is not None:
            from moorage.reporting import page

            told = _explanations(simulation, result, config, explained)
            text = page.render(result, title=title, seed=seed, explanations=told)
            file.write_text(text, encoding="utf-8")
        if csv_folder is not None:
            from moorage.sim.results.tables import tables

            Path(csv_folder).mkdir(parents=True, exist_ok=True)
            for name, text in tables(result).items():
                file = Path(csv_folder, f"{name}.csv")
                file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{error.filename or file}: {error.strerror}") from None


def _explanations(
    simulation: "Simulation", result: "Result", config: "Source", explained: tuple[str, ...]
) -> "list[Explanation]":
    from moorage import explain
    from moorage.api.kinds import KINDS

    names = explained or [group.pods[0] for group in result.pending[:MOST_EXPLAINED]]
    if not names:
        return []
    objects = [obj for kind in KINDS.values() for obj in simulation.cluster.active(kind.struct)]
    return [explain(objects, name, config) for name in names]
