"""A sweep on a terminal: a line for each set of parameters, averaged over its seeds.

Apart from `result_tables`, so that a single run does not import what a sweep needs.
"""

from collections import Counter
from collections.abc import Iterable
from statistics import fmean
from typing import Any

from rich.table import Table
from rich.text import Text

from moorage.api import texts
from moorage.cli import output
from moorage.cli.output import ConsolePage
from moorage.sweeping.run import flat
from moorage.sweeping.sweep import FinishedRun, Sweep

MOST_GROUPS = 40
# Figures of a summary, their heads in the table of a sweep, and their formats.
FIGURES = (
    ("bound", "bound", "{:,.1f}"),
    ("pending", "pending", "{:,.1f}"),
    ("disrupted", "evicted", "{:,.1f}"),
    ("utilisation.cpu.last", "cpu", "{:.1%}"),
    ("utilisation.memory.last", "memory", "{:.1%}"),
    ("imbalance.cpu", "imbalance", "{:.1%}"),
    ("fragmentation.cpu", "fragmented", "{:.1%}"),
)

RunGroup = tuple[dict[str, Any], list[FinishedRun]]


def show(sweep: Sweep, skipped: Counter[str], *, show_all: bool) -> None:
    """Print the figures of all runs."""
    page = ConsolePage()
    groups = sweep.groups()
    reused = f", {sweep.reused:,} of them finished before" if sweep.reused else ""
    page.put(Text(f"{texts.count(len(sweep.runs), 'run')}{reused}."))
    page.section()
    shown = groups if show_all else groups[:MOST_GROUPS]
    page.put(_table(shown))
    if len(shown) < len(groups):
        page.note(f"and {len(groups) - len(shown):,} more; -a shows all")
    seeds = max(len(runs) for _, runs in groups)
    if seeds > 1:
        page.note(f"averages over {seeds:,} seeds; {_range_note(shown)}")
    page.skipped(skipped)


def _range_note(groups: Iterable[RunGroup]) -> str:
    figures = (_figure(values, form) for _, runs in groups for values, form in _values(runs))
    if any("\n" in figure for figure in figures):
        return "below them the least and the most, where seeds differ"
    return "all seeds gave the same"


def _values(runs: Iterable[FinishedRun]) -> list[tuple[list[float], str]]:
    rows = [flat(run.summary) for run in runs]
    return [([row.get(key, 0) for row in rows], form) for key, _, form in FIGURES]


def _table(groups: Iterable[RunGroup]) -> Table:
    groups = list(groups)
    names = list(groups[0][0])
    table = output.table()
    for name in names:
        table.add_column(name, justify="right", overflow="fold")
    for _, head, _ in FIGURES:
        table.add_column(head, justify="right", no_wrap=True)
    for parameters, runs in groups:
        figures = [_figure(values, form) for values, form in _values(runs)]
        table.add_row(*(str(parameters[name]) for name in names), *figures)
    return table


def _figure(values: list[float], form: str) -> str:
    figures = (fmean(values), min(values), max(values))
    mean, least, most = (form.format(figure).removesuffix(".0") for figure in figures)
    return mean if least == most else f"{mean}\n{least}-{most}"
