"""Added nodes on a terminal: how many of which, how good that is, and whom it does not help."""

from collections import Counter

from rich.text import Text

from moorage.api import texts
from moorage.cli import output
from moorage.cli.output import Page
from moorage.planning.add_nodes import AddedNodes


def show(answer: AddedNodes, skipped: Counter[str], *, show_all: bool) -> None:
    """Print how many nodes it takes."""
    page = Page()
    page.put(_headline(answer))
    if answer.total:
        page.section()
        table = output.table()
        table.add_column("template", overflow="fold")
        table.add_column("nodes", justify="right", style=output.GOOD)
        for name, count in answer.counts.items():
            table.add_row(name, f"{count:,}")
        page.put(table)
        page.note(_bound(answer))
    if answer.impossible:
        page.section(f"{texts.count(len(answer.impossible), 'pod')} that no number of them helps")
        by_reason: dict[str, list[str]] = {}
        for pod, reason in answer.impossible.items():
            by_reason.setdefault(reason, []).append(pod)
        items = output.items()
        for reason, pods in by_reason.items():
            names = texts.listed(pods, page.width - 8)
            items.add_row(f"{len(pods):,}", Text.assemble((names, output.BAD), "\n", reason))
        page.put(items)
        output.claims_hint(page, by_reason)
    if show_all and answer.placements:
        page.section(f"{texts.count(len(answer.placements), 'pod')} placed")
        items = output.items(justify="left")
        for pod, node in answer.placements.items():
            items.add_row(pod, Text(node, output.DIM))
        page.put(items)
    output.skipped(page, skipped)


def _headline(answer: AddedNodes) -> Text:
    if not answer.pending_before:
        return Text("Everything fits already: no node is needed.", output.GOOD)
    without = f"{texts.count(answer.pending_before, 'pod')} had no node"
    if not answer.placements:
        return Text(f"{without}, and no number of these nodes helps.", output.BAD)
    everything = "all" if not answer.impossible else f"{len(answer.placements):,}"
    nodes = texts.count(answer.total, "node")
    text = Text(f"{without}; with {nodes} more {everything} of them have one.")
    text.highlight_regex(r"[\d,]+ nodes? more", output.GOOD)
    return text


def _bound(answer: AddedNodes) -> str:
    if answer.is_optimal:
        return "no placement could do with fewer"
    tries = "try" if answer.tries == 1 else "tries"
    return f"by resources alone it takes at least {answer.lower_bound:,}; {answer.tries:,} {tries}"
