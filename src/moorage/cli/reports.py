"""`--report`, `--csv` and `--explain` of `moorage simulate`: more than the printed result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from moorage.cli.options import bundled
from moorage.errors import InputError

if TYPE_CHECKING:
    from moorage.api.config import Source
    from moorage.explaining import Explanation
    from moorage.planning.prices import ClusterCost
    from moorage.sim.results.result import Result
    from moorage.sim.run import Simulation

F = TypeVar("F", bound=Callable[..., Any])

# Without --explain, the first pod of so many reasons to be pending is explained.
MOST_EXPLAINED = 3


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """The files to write."""

    report_file: str | None
    csv_folder: str | None
    explained: tuple[str, ...]

    @property
    def given(self) -> dict[str, object]:
        """The values by option."""
        return {"report": self.report_file, "csv": self.csv_folder, "explain": self.explained}

    def write(
        self,
        simulation: "Simulation",
        result: "Result",
        cost: "ClusterCost | None" = None,
        *,
        title: str,
        seed: int,
        config: "Source",
    ) -> None:
        """Write the requested files."""
        file = Path(self.report_file or "")  # The error of a full disk does not name the file.
        try:
            if self.report_file is not None:
                from moorage.reporting import page

                names = [group.pods[0] for group in result.pending[:MOST_EXPLAINED]]
                explanations = self._explanations(simulation, self.explained or names, config)
                text = page.render(
                    result, title=title, seed=seed, explanations=explanations, cost=cost
                )
                file.write_text(text, encoding="utf-8")
            if self.csv_folder is not None:
                from moorage.sim.results.tables import tables

                Path(self.csv_folder).mkdir(parents=True, exist_ok=True)
                for name, text in tables(result).items():
                    file = Path(self.csv_folder, f"{name}.csv")
                    file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"{error.filename or file}: {error.strerror}") from None

    def answers(self, simulation: "Simulation", config: "Source") -> "list[Explanation]":
        """What --explain asks for, as of the end of the run."""
        return self._explanations(simulation, self.explained, config)

    def _explanations(
        self, simulation: "Simulation", names: Sequence[str], config: "Source"
    ) -> "list[Explanation]":
        if not names:
            return []
        from moorage.api.kinds import KINDS
        from moorage.explaining.dry_run import DryRun, find_pod

        objects = [obj for kind in KINDS.values() for obj in simulation.cluster.active(kind.struct)]
        run = DryRun(objects, config)
        return [run.explain(find_pod(run.pods, name)) for name in names]


def _in_a_folder(context: click.Context, option: click.Parameter, file: str | None) -> str | None:
    """Refuse a missing folder at once, rather than after a long run."""
    if file is not None and not Path(file).absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {Path(file).parent}")
    return file


def _no_table(context: click.Context, option: click.Parameter, folder: str | None) -> str | None:
    """Refuse the name of a table: there are several."""
    if folder is not None and folder.endswith(".csv"):
        raise click.BadParameter(f"several tables are written; name a folder, not {folder}")
    return folder


options: Callable[[F], F] = bundled(
    ReportOptions,
    "report",
    click.option(
        "--report",
        "report_file",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        callback=_in_a_folder,
        help="Write an HTML report with charts to one file that needs no network.",
    ),
    click.option(
        "--csv",
        "csv_folder",
        metavar="FOLDER",
        type=click.Path(file_okay=False),
        callback=_no_table,
        help="Write samples, placements, nodes, pending, disruptions and spread as CSV files.",
    ),
    click.option(
        "--explain",
        "explained",
        metavar="POD",
        multiple=True,
        help="Explain the decision about a pod, as of the end of the run; a report explains it, "
        "too. May be repeated. Default of a report: one pod for each of the most frequent pending "
        "reasons.",
    ),
)
