"""`moorage run --shadow`: its options, the live table, the summary and the report."""

import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moorage import terminal
from moorage.cli import options
from moorage.errors import InputError

if TYPE_CHECKING:
    from moorage.api.config import SchedulerConfiguration
    from moorage.cli.output import ConsolePage
    from moorage.shadow.tally import ShadowTally

REFRESH_SECONDS = 1.0
REPORTS = (".html", ".json")
MOST_EXAMPLES = 3

Companion = Callable[[Any], AbstractAsyncContextManager[Any]]


@dataclass(frozen=True, slots=True)
class ShadowOptions:
    """Whether to shadow another scheduler, which one, and the report."""

    is_shadow: bool
    scheduler_names: tuple[str, ...]
    report_file: str | None

    def check(self) -> None:
        """Refuse options that have no meaning without --shadow."""
        for flag, value in (
            ("--scheduler-name", self.scheduler_names),
            ("--report", self.report_file),
        ):
            if value and not self.is_shadow:
                raise click.UsageError(f"{flag} requires --shadow")

    def applied(self, configuration: "SchedulerConfiguration") -> "SchedulerConfiguration":
        """The configuration of the shadow."""
        from moorage.shadow import scheduler

        return scheduler.shadowed(configuration, self.scheduler_names)

    def companion(self, inner: Companion, tally: "ShadowTally") -> Companion:
        """What shows the figures while the shadow runs, around another companion."""

        @asynccontextmanager
        async def showing(live: Any) -> AsyncIterator[None]:
            import asyncio

            async with inner(live):
                show = _show_table if terminal.can_draw(sys.stdout) else _print_lines
                task = asyncio.create_task(show(tally))
                try:
                    yield
                finally:
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)

        return showing

    def finish(self, tally: "ShadowTally") -> None:
        """Print the summary, and write the report."""
        from moorage.cli import output

        _summary(output.ConsolePage(), tally)
        if self.report_file is None:
            return
        file = Path(self.report_file)
        if file.suffix == ".json":
            import msgspec

            text = msgspec.json.format(msgspec.json.encode(tally.to_dict())).decode() + "\n"
        else:
            from moorage.reporting import shadow

            text = shadow.render(tally)
        try:
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"{file}: {error.strerror}") from None


def _report_file(context: click.Context, option: click.Parameter, file: str | None) -> str | None:
    """Refuse at once what could not be written at the end."""
    if file is not None:
        if Path(file).suffix not in REPORTS:
            raise click.BadParameter(f"{file!r} must end in .html or .json")
        if not Path(file).absolute().parent.is_dir():
            raise click.BadParameter(f"there is no folder {Path(file).parent}")
    return file


shadow_options = options.bundled(
    ShadowOptions,
    "shadow",
    click.option(
        "--shadow",
        "is_shadow",
        is_flag=True,
        help="Decide for the pods of another scheduler, write nothing to the cluster, and compare "
        "with the nodes that it binds them to.",
    ),
    click.option(
        "--scheduler-name",
        "scheduler_names",
        metavar="NAME",
        multiple=True,
        help="With --shadow: the scheduler whose pods to decide for. May be repeated. "
        "[default-scheduler]",
    ),
    click.option(
        "--report",
        "report_file",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        callback=_report_file,
        help="With --shadow: write a report at the end; FILE ends in .html or .json.",
    ),
)


async def _print_lines(tally: "ShadowTally") -> None:
    """One line per second, unless nothing has changed."""
    import asyncio

    shown = ""
    while True:
        line = _line(tally)
        if line != shown:
            print(line, flush=True)  # noqa: T201 of a command
            shown = line
        await asyncio.sleep(REFRESH_SECONDS)


async def _show_table(tally: "ShadowTally") -> None:
    import asyncio

    from rich.live import Live

    from moorage.cli import output

    console = output.ConsolePage().console
    with contextlib.suppress(asyncio.CancelledError), Live(console=console, transient=True) as live:
        while True:
            live.update(_figures(tally))
            await asyncio.sleep(REFRESH_SECONDS)


def _line(tally: "ShadowTally") -> str:
    from moorage.shadow.comparison import VERDICTS
    from moorage.shadow.tally import SIDES

    verdicts = ", ".join(f"{verdict} {tally.of_verdict(verdict):,}" for verdict in VERDICTS)
    times = [
        f"{side} p50 {_milliseconds(times[0])}"
        for side in SIDES
        if (times := tally.times(side)) is not None
    ]
    agreed = f"agreed {tally.agreed:,}"
    parts = [
        f"compared {tally.total:,}: {verdicts}",
        agreed,
        f"pending {tally.pending().total:,}",
        *times,
    ]
    return "; ".join(parts)


def _figures(tally: "ShadowTally") -> Any:
    """Verdicts, reasons and times as one table."""
    from rich.console import Group

    from moorage.api import texts
    from moorage.cli import output
    from moorage.shadow.tally import SIDES

    kinds = output.table("other's node", "reason", numbers=["pods", "share"])
    for verdict, reason, count in tally.kinds():
        kinds.add_row(verdict, reason, f"{count:,}", f"{100 * count / tally.total:.1f} %")
    times = output.table("time to decide", numbers=["p50", "p90", "p99"])
    for side in SIDES:
        if (found := tally.times(side)) is not None:
            times.add_row(side, *map(_milliseconds, found))
    head = (
        f"{texts.count(tally.total, 'pod')} compared, {tally.pending().total:,} pending. At the "
        f"binding, the other's node was Moorage's or one of its best for {tally.agreed:,}"
        f"{_share(tally)}."
    )
    return Group(head, "", kinds, "", times)


def _summary(page: "ConsolePage", tally: "ShadowTally") -> None:
    from moorage.cli import output

    if not tally.total:
        page.put("No pod was bound by the other scheduler meanwhile.")
        return
    page.put(_figures(tally))
    if tally.late:
        page.note(f"{tally.late:,} were bound before Moorage had decided; decided at the binding.")
    if tally.plugins:
        page.section("Plugins that favour Moorage's node where the other's is worse")
        table = output.items()
        for plugin, count in tally.plugins.most_common():
            table.add_row(f"{count:,}", plugin)
        page.put(table)
    for (verdict, reason), found in tally.examples.items():
        page.section(f"{verdict}, {reason}: the latest")
        table = output.table("pod", "moorage", "other", numbers=["total", "other's"])
        for one in list(found)[-MOST_EXAMPLES:]:
            pair = (one.total, one.other_total)
            totals = ["-" if total is None else f"{total:,}" for total in pair]
            table.add_row(one.pod, one.node or "-", one.other_node, *totals)
        page.put(table)
        if message := found[-1].message:
            page.note(message)


def _share(tally: "ShadowTally") -> str:
    return f" ({100 * tally.agreed / tally.total:.1f} %)" if tally.total else ""


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.1f} ms"
