"""The outcome of a simulation on a terminal: a sentence, the nodes, and the pods that wait."""

from collections import Counter
from enum import Enum

from rich.table import Table
from rich.text import Text

from moorage.api import requests, texts
from moorage.cli import output
from moorage.cli.outcome import PODS, NodeUse, Outcome
from moorage.cli.output import Page

# Up to so many nodes are all shown; of more, those that got the most pods.
MOST_NODES = 40
SOME_NODES = 20
MOST_EVICTIONS = 20

BAR = 6
ALMOST_FULL, FULL = 80, 95


class Detail(Enum):
    """How much is said of a resource; the first that fits the terminal is taken."""

    BARS = "a bar, the share, the amounts"
    AMOUNTS = "the share and the amounts"
    SHARES = "the share"


def show(outcome: Outcome, skipped: Counter[str], *, show_all: bool) -> None:
    """Print what came of a simulation."""
    page = Page()
    page.put(_summary(outcome))
    if outcome.nodes:
        page.section()
        _show_nodes(page, outcome, show_all=show_all)
    if outcome.placed:
        page.section(f"{texts.count(len(outcome.placed), 'pod')} placed")
        page.put(_placed(page, outcome, show_all=show_all))
    if outcome.evictions:
        page.section(f"{texts.count(len(outcome.evictions), 'pod')} had to make room")
        page.put(_evictions(page, outcome, None if show_all else MOST_EVICTIONS))
    if outcome.pending:
        stay = "stays" if len(outcome.pending) == 1 else "stay"
        page.section(f"{texts.count(len(outcome.pending), 'pod')} {stay} pending")
        page.put(_reasons(page, outcome, show_all=show_all))
        output.claims_hint(page, outcome.pending.values())
    for name, (pod, count) in outcome.held_back.items():
        more = texts.count(count, "more pod")
        page.note(f"StatefulSet {name} waits for {pod} to run before it makes {more}.")
    output.skipped(page, skipped)


def _summary(outcome: Outcome) -> Text:
    pods, nodes = len(outcome.placements), len(outcome.nodes)
    parts = [f"{len(outcome.placed):,} placed"]
    if outcome.running:
        parts.append(f"{len(outcome.running):,} already running")
    if outcome.ended:
        parts.append(f"{len(outcome.ended):,} ended")
    if outcome.pending:
        parts.append(f"{len(outcome.pending):,} pending{_of_which_gated(outcome)}")
    there = f"{texts.count(pods, 'pod')} on {texts.count(nodes, 'node')}"
    text = Text(f"{there} after {outcome.seconds:g} s: {', '.join(parts)}.")
    text.highlight_regex(r"[\d,]+ placed", output.GOOD)
    text.highlight_regex(r"[\d,]+ pending", output.BAD)
    return text


def _of_which_gated(outcome: Outcome) -> str:
    gated = len(outcome.gated)
    return f" ({gated:,} of them gated)" if gated else ""


# Nodes


def _show_nodes(page: Page, outcome: Outcome, *, show_all: bool) -> None:
    nodes = list(outcome.nodes.values())
    shown = nodes if show_all else _most_new(nodes)
    resources = _resources(nodes)
    for detail in Detail:
        table = _node_table(page, shown, resources, detail)
        if page.measure(table) <= page.width:
            break
    page.put(table)
    if len(shown) < len(nodes):
        page.note(f"and {len(nodes) - len(shown):,} more nodes; -a shows all")


def _most_new(nodes: list[NodeUse]) -> list[NodeUse]:
    """All nodes of a small cluster; of a large one those that got the most pods."""
    if len(nodes) <= MOST_NODES:
        return nodes
    chosen = {node.name for node in sorted(nodes, key=lambda node: -len(node.new))[:SOME_NODES]}
    return [node for node in nodes if node.name in chosen]


def _resources(nodes: list[NodeUse]) -> list[str]:
    """What is worth a column: cpu, memory, and what only some nodes have."""
    offered = {name: None for node in nodes for name, amount in node.allocatable.items() if amount}
    extended = [name for name in offered if requests.is_extended(name)]
    return [*(name for name in ("cpu", "memory") if name in offered), *extended]


def _node_table(page: Page, nodes: list[NodeUse], resources: list[str], detail: Detail) -> Table:
    table = output.table()
    table.add_column("node", overflow="fold")
    table.add_column("pods", justify="right", no_wrap=True)
    table.add_column("new", justify="right", no_wrap=True, style=output.GOOD)
    for name in resources:
        table.add_column(name.rpartition("/")[2], no_wrap=True)
    for node in nodes:
        pods = f"{node.pods}/{node.allocatable.get(PODS, 0)}"
        new = f"+{len(node.new)}" if node.new else ""
        use = [_use(page, node, name, detail) for name in resources]
        table.add_row(node.name, pods, new, *use)
    return table


def _use(page: Page, node: NodeUse, resource: str, detail: Detail) -> Text:
    """`███░░░  52%  4.1/7.91`; nothing where the node has nothing of it."""
    total = node.allocatable.get(resource, 0)
    used = node.requested[resource]
    if not total and not used:
        return Text("")
    percent = round(100 * used / total) if total else 100
    style = "red" if percent >= FULL else "yellow" if percent >= ALMOST_FULL else "green"
    text = Text()
    if detail is Detail.BARS:
        text.append(_bar(percent, plain=page.console.options.ascii_only), style)
        text.append(" ")
    text.append(f"{percent:>3}%", style)
    if detail is not Detail.SHARES:
        text.append(f" {texts.amount(used, resource)}/{texts.amount(total, resource)}", output.DIM)
    return text


def _bar(percent: int, *, plain: bool) -> str:
    full, empty = ("#", ".") if plain else ("█", "░")
    filled = min(round(BAR * percent / 100), BAR)
    return full * filled + empty * (BAR - filled)


# Pods


def _placed(page: Page, outcome: Outcome, *, show_all: bool) -> Table:
    nodes = [node for node in outcome.nodes.values() if node.new]
    if not show_all:
        nodes = _most_new(nodes)
    items = output.items(justify="left")
    room = page.width - max((len(node.name) for node in nodes), default=0) - 2
    for node in nodes:
        names = ", ".join(node.new) if show_all else texts.listed(node.new, room)
        items.add_row(node.name, Text(names, output.DIM))
    return items


def _evictions(page: Page, outcome: Outcome, most: int | None) -> Table:
    items = output.items(justify="left")
    for each in outcome.evictions[:most]:
        items.add_row(
            each.pod, Text(f"for {each.by} on {each.node}, after {each.at:g} s", output.DIM)
        )
    if most is not None and len(outcome.evictions) > most:
        items.add_row(f"and {len(outcome.evictions) - most:,} more", "")
    return items


def _reasons(page: Page, outcome: Outcome, *, show_all: bool) -> Table:
    items = output.items()
    for message, keys in outcome.reasons():
        said = Text.assemble((_names(page, keys, show_all=show_all), output.BAD), "\n", message)
        items.add_row(f"{len(keys):,}", said)
    return items


def _names(page: Page, keys: list[str], *, show_all: bool) -> str:
    return ", ".join(keys) if show_all else texts.listed(keys, page.width - 8)
