"""A capacity on a terminal: the number, the pools, and what each of them lacks."""

from collections import Counter
from collections.abc import Mapping

from rich.table import Table
from rich.text import Text

from moorage.api import texts
from moorage.cli import output
from moorage.cli.output import Page
from moorage.planning.capacity import Capacity

MOST_NODES = 20


def show(answer: Capacity, skipped: Counter[str], *, show_all: bool) -> None:
    """Print how many fit, and why no more."""
    page = Page()
    page.put(_headline(answer))
    if answer.pending_before:
        are = "is" if answer.pending_before == 1 else "are"
        page.note(f"{texts.count(answer.pending_before, 'pod')} of the cluster {are} pending")
    page.section()
    page.put(_pools(answer))
    if answer.unusable:
        page.section("Nodes that take none of them")
        page.put(_reasons(answer.unusable))
        output.claims_hint(page, answer.unusable)
    if show_all and answer.nodes:
        page.section(f"{texts.count(len(answer.nodes), 'node')} take some")
        page.put(_nodes(answer))
    output.skipped(page, skipped)


def _headline(answer: Capacity) -> Text:
    if not answer.fits:
        text = Text(f"No more of {answer.pod} fits: {answer.message}")
        text.highlight_words(["No more"], output.BAD)
        return text
    at_least = "At least " if answer.is_limited else ""
    fit = "fits" if answer.fits == 1 else "fit"
    text = Text(f"{at_least}{answer.fits:,} more of {answer.pod} {fit}")
    if answer.is_limited:
        text.append("; the counting stopped there.")
    elif answer.first:
        text.append(
            f". What runs out first: {answer.first} ({_on(answer.runs_out[answer.first])})."
        )
    else:
        text.append(f". Then: {answer.message}")
    text.highlight_regex(r"^(At least )?[\d,]+ more", output.GOOD)
    text.highlight_words([answer.first], output.BAD)
    return text


def _on(nodes: int) -> str:
    return f"on {texts.count(nodes, 'node')}"


def _pools(answer: Capacity) -> Table:
    table = output.table()
    table.add_column("pool", overflow="fold")
    table.add_column("nodes", justify="right", no_wrap=True)
    table.add_column("usable", justify="right", no_wrap=True)
    table.add_column("fit", justify="right", no_wrap=True, style=output.GOOD)
    table.add_column("runs out", overflow="fold")
    for pool in answer.pools:
        lacking = ", ".join(f"{reason} ({nodes:,})" for reason, nodes in pool.runs_out.items())
        table.add_row(
            pool.name, f"{pool.nodes:,}", f"{pool.usable:,}", f"{pool.fits:,}", Text(lacking)
        )
    return table


def _reasons(reasons: Mapping[str, int]) -> Table:
    items = output.items()
    for reason, nodes in reasons.items():
        items.add_row(f"{nodes:,}", Text(reason))
    return items


def _nodes(answer: Capacity) -> Table:
    items = output.items()
    for node, fits in sorted(answer.nodes.items(), key=lambda item: (-item[1], item[0])):
        items.add_row(f"{fits:,}", Text(node))
    return items
