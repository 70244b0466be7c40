"""A replay on a terminal: the same, or where it parts; and what another configuration changes."""

from rich.text import Text

from moorage.api import texts
from moorage.cli import output
from moorage.cli.output import Page
from moorage.planning.replay import Replay, Rerun

MOST_MOVES = 30
LONGEST = 400


def show(answer: Replay) -> None:
    """Print whether a run came out the same."""
    page = Page()
    calls = texts.count(answer.calls, "call")
    if answer.difference is None:
        page.put(Text(f"{calls} made again: the same, byte for byte.", output.GOOD))
        return
    line, recorded, replayed = answer.difference
    page.put(Text(f"Line {line:,} comes out otherwise.", output.BAD))
    page.section("recorded")
    page.put(Text(_cut(recorded)))
    page.section("now")
    page.put(Text(_cut(replayed)))


def show_rerun(answer: Rerun, *, show_all: bool) -> None:
    """Print what another configuration makes of it."""
    page = Page()
    moved = texts.count(len(answer.moved), "pod")
    are = "is" if len(answer.moved) == 1 else "are"
    page.put(Text(f"{moved} of {answer.pods:,} {are} elsewhere under this configuration."))
    page.section()
    table = output.table()
    table.add_column("")
    table.add_column("recorded", justify="right")
    table.add_column("now", justify="right")
    table.add_row("pending", f"{answer.recorded_pending:,}", f"{len(answer.pending):,}")
    table.add_row("evictions", f"{answer.recorded_evictions:,}", f"{answer.evictions:,}")
    page.put(table)
    if answer.moved:
        page.section(f"{moved} elsewhere")
        items = output.items(justify="left")
        rows = list(answer.moved.items())[: None if show_all else MOST_MOVES]
        for pod, (before, after) in rows:
            said = f"{before or 'pending'} -> {after or 'pending'}"
            items.add_row(pod, Text(said, output.DIM))
        page.put(items)
        if len(rows) < len(answer.moved):
            page.note(f"and {len(answer.moved) - len(rows):,} more; -a shows all")


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} ..."
