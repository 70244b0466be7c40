"""A comparison on a terminal: a column for each configuration, a line for each figure."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rich.table import Table
from rich.text import Text

from moorage.api import texts
from moorage.cli import output
from moorage.cli.output import Page
from moorage.planning.compare import Comparison, Outcome

MOST_MOVES = 10
SHARES = (
    ("utilisation", "{} requested"),
    ("imbalance", "{} imbalance"),
    ("fragmentation", "{} fragmented"),
)


def show(answer: Comparison, skipped: Counter[str], *, show_all: bool) -> None:
    """Print the figures side by side."""
    page = Page()
    first = answer.outcomes[0]
    pods = texts.count(len(first.placements), "pod")
    page.put(Text(f"{pods} under {len(answer.outcomes)} configurations:"))
    page.section()
    page.put(_figures(answer))
    for outcome in answer.outcomes[1:]:
        moved = answer.moved(outcome)
        if moved:
            page.section(f"{texts.count(len(moved), 'pod')} elsewhere under {_short(outcome)}")
            page.put(_moves(moved, None if show_all else MOST_MOVES))
            if not show_all and len(moved) > MOST_MOVES:
                page.note(f"and {len(moved) - MOST_MOVES:,} more; -a shows all")
    output.skipped(page, skipped)


def _short(outcome: Outcome) -> str:
    return Path(outcome.name).name


def _figures(answer: Comparison) -> Table:
    table = output.table()
    table.add_column("")
    for outcome in answer.outcomes:
        table.add_column(_short(outcome), justify="right", overflow="fold")
    for name, values in _lines(answer):
        table.add_row(name, *values)
    return table


def _lines(answer: Comparison) -> Iterator[tuple[str, list[str]]]:
    outcomes = answer.outcomes
    yield "pending", [f"{len(each.pending):,}" for each in outcomes]
    yield "evictions", [f"{each.evictions:,}" for each in outcomes]
    yield "moved", [f"{len(answer.moved(each)):,}" for each in outcomes]
    yield "spread violations", [f"{each.spread_violations:,}" for each in outcomes]
    yield "seconds", [f"{each.seconds:g}" for each in outcomes]
    for figure, said in SHARES:
        names = dict.fromkeys(name for each in outcomes for name in getattr(each, figure))
        for name in names:
            shares = [getattr(each, figure).get(name, 0.0) for each in outcomes]
            if name != "pods" and any(shares):
                label = said.format(name.rpartition("/")[2])
                yield label, [f"{share:.1%}" for share in shares]


def _moves(moved: dict[str, tuple[str | None, str | None]], most: int | None) -> Table:
    items = output.items(justify="left")
    for pod, (before, after) in list(moved.items())[:most]:
        said = f"{before or 'pending'} -> {after or 'pending'}"
        items.add_row(pod, Text(said, output.DIM))
    return items
