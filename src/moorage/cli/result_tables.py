"""Results on a terminal: of `simulate`, and of a scenario or trace."""

from collections import Counter
from enum import Enum

from rich.table import Table
from rich.text import Text

from moorage.api import requests, texts
from moorage.api.requests import PODS
from moorage.cli import output
from moorage.cli.output import ConsolePage
from moorage.planning import prices
from moorage.planning.prices import ClusterCost
from moorage.reporting import axes
from moorage.sim.results.result import PREEMPTION, NodeUse, Result

# Up to so many nodes are all shown; of more, those that got the most pods.
MOST_NODES = 40
SOME_NODES = 20
MOST_EVICTIONS = 20
MOST_ROWS = 10

BAR = 6
ALMOST_FULL, FULL = 80, 95
BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN_BLOCKS = "._-=+*#@"
SPARK = 36
QUEUE_SPARK = 16


class Detail(Enum):
    """How much is shown of a resource; the first that fits the terminal is used."""

    BARS = "a bar, the share, the amounts"
    AMOUNTS = "the share and the amounts"
    SHARES = "the share"


# `simulate`: placements


def show_placements(
    result: Result, skipped: Counter[str], cost: ClusterCost | None = None, *, show_all: bool
) -> None:
    """Print where pods went, and which are pending."""
    page = ConsolePage()
    page.put(_summary(result))
    _show_cost(page, cost)
    if result.nodes:
        page.section()
        _show_nodes(page, result, show_all=show_all)
    if result.queues:
        page.section("Queues")
        page.put(_queues(page, result))
    if result.placed:
        page.section(f"{texts.count(len(result.placed), 'pod')} placed")
        page.put(_placed(page, result, show_all=show_all))
    if result.evictions:
        page.section(f"{texts.count(len(result.evictions), 'pod')} preempted")
        page.put(_evictions(page, result, None if show_all else MOST_EVICTIONS))
    if result.pending:
        page.section(_stay_pending(result))
        page.reasons(result.pending, show_all=show_all)
    _show_refused(page, result)
    for name, (pod, count) in result.held_back.items():
        more = texts.count(count, "more pod")
        page.note(f"StatefulSet {name} waits for {pod} to run before it creates {more}.")
    page.skipped(skipped)


def _show_refused(page: ConsolePage, result: Result) -> None:
    """Print which workloads lack pods because admission refuses them."""
    if result.refused:
        page.section(_refused_head(result))
        page.refused(result.refused)


def _refused_head(result: Result) -> str:
    if not result.refused_pods:
        return f"{texts.count(len(result.refused), 'object')} refused"
    return f"{texts.count(result.refused_pods, 'pod')} refused at creation"


def _summary(result: Result) -> Text:
    pods, nodes = len(result.placements), len(result.nodes)
    parts = [f"{len(result.placed):,} placed"]
    if result.already_running:
        parts.append(f"{len(result.already_running):,} already running")
    if result.finished:
        parts.append(f"{result.finished:,} ended")
    if result.pending:
        gated = f" ({len(result.gated):,} of them gated)" if result.gated else ""
        parts.append(f"{result.pending_count:,} pending{gated}")
    if result.refused_pods:
        parts.append(f"{result.refused_pods:,} refused")
    where = f"{texts.count(pods, 'pod')} on {texts.count(nodes, 'node')}"
    text = Text(f"{where} after {result.seconds:g} s: {', '.join(parts)}.")
    text.highlight_regex(r"[\d,]+ placed", output.GOOD)
    text.highlight_regex(r"[\d,]+ (pending|refused)", output.BAD)
    return text


def _show_cost(page: ConsolePage, cost: ClusterCost | None) -> None:
    """Print what the nodes cost, and which have no price."""
    if cost is None:
        return
    pools = ", ".join(
        f"{name} {prices.text(pool.per_hour)} ({texts.count(pool.nodes, 'node')})"
        for name, pool in cost.pools.items()
    )
    if cost.of_run is None:
        text = f"The nodes cost {prices.text(cost.per_hour)} per hour: {pools}."
    else:
        text = f"The nodes cost {prices.text(cost.of_run)} during the run. "
        text += f"At the end they cost {prices.text(cost.per_hour)} per hour: {pools or 'none'}."
    page.put(Text(text))
    if cost.unpriced:
        page.note(f"Nodes without a price: {texts.listed(cost.unpriced, page.width)}")


def _show_nodes(page: ConsolePage, result: Result, *, show_all: bool) -> None:
    nodes = result.nodes
    shown = nodes if show_all else _most_new(nodes)
    resources = _resources(nodes)
    for detail in Detail:
        table = _node_table(page, shown, resources, detail)
        if page.measure(table) <= page.width:
            break
    page.put(table)
    if len(shown) < len(nodes):
        page.note(f"and {texts.count(len(nodes) - len(shown), 'more node')}; -a shows all")


def _most_new(nodes: list[NodeUse]) -> list[NodeUse]:
    """All nodes of a small cluster; of a large one those with the most new pods."""
    if len(nodes) <= MOST_NODES:
        return nodes
    chosen = {node.name for node in sorted(nodes, key=lambda node: -len(node.new))[:SOME_NODES]}
    return [node for node in nodes if node.name in chosen]


def _resources(nodes: list[NodeUse]) -> list[str]:
    """The resources with a column: cpu, memory, and extended ones."""
    offered = {name: None for node in nodes for name, amount in node.allocatable.items() if amount}
    extended = [name for name in offered if requests.is_extended(name)]
    return [*(name for name in ("cpu", "memory") if name in offered), *extended]


def _node_table(
    page: ConsolePage, nodes: list[NodeUse], resources: list[str], detail: Detail
) -> Table:
    table = output.table("node", numbers=["pods"])
    table.add_column("new", justify="right", no_wrap=True, style=output.GOOD)
    for name in resources:
        table.add_column(name.rpartition("/")[2], no_wrap=True)
    for node in nodes:
        pods = f"{node.pods}/{node.allocatable.get(PODS, 0)}"
        new = f"+{len(node.new)}" if node.new else ""
        use = [_use(page, node, name, detail) for name in resources]
        table.add_row(node.name, pods, new, *use)
    return table


def _use(page: ConsolePage, node: NodeUse, resource: str, detail: Detail) -> Text:
    """`███░░░  52%  4.1/7.91`; empty where the node has none of the resource."""
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


def _placed(page: ConsolePage, result: Result, *, show_all: bool) -> Table:
    nodes = [node for node in result.nodes if node.new]
    if not show_all:
        nodes = _most_new(nodes)
    items = output.items(justify="left")
    room = page.width - max((len(node.name) for node in nodes), default=0) - 2
    for node in nodes:
        names = ", ".join(node.new) if show_all else texts.listed(node.new, room)
        items.add_row(node.name, Text(names, output.DIM))
    return items


def _evictions(page: ConsolePage, result: Result, most: int | None) -> Table:
    items = output.items(justify="left")
    for each in result.evictions[:most]:
        items.add_row(
            each.pod, Text(f"for {each.by} on {each.node}, after {each.at:g} s", output.DIM)
        )
    if most is not None and len(result.evictions) > most:
        items.add_row(f"and {len(result.evictions) - most:,} more", "")
    return items


def _stay_pending(result: Result) -> str:
    return f"{texts.count(result.pending_count, 'pod', 'stay')} pending"


# `simulate scenario`, `simulate trace`: figures over time


def show_course(result: Result, name: str, seed: int, cost: ClusterCost | None = None) -> None:
    """Print utilisation, waits, disruptions and pending pods."""
    page = ConsolePage()
    page.put(_course_summary(result, name, seed))
    _show_cost(page, cost)
    if result.nodes:
        page.section()
        page.put(_utilisation(page, result))
    if result.waits.count:
        page.section("Time to schedule")
        page.put(_waits(result))
    if result.queues:
        page.section("Queues")
        page.put(_queues(page, result))
    if result.disruptions:
        page.section(f"{texts.count(len(result.disruptions), 'pod')} disrupted")
        page.put(_disruptions(result))
    if result.spread_violations:
        page.section("Uneven spread")
        page.put(_spread(result))
    if result.pending:
        page.section(_stay_pending(result))
        page.reasons(result.pending, MOST_ROWS)
    _show_refused(page, result)


def _course_summary(result: Result, name: str, seed: int) -> Text:
    parts = [f"{result.bound:,} bound", f"{result.ended:,} ended"]
    parts.append(f"{result.running:,} on {texts.count(len(result.nodes), 'node')} at the end")
    parts.append(f"{result.pending_count:,} pending")
    if result.refused_pods:
        parts.append(f"{result.refused_pods:,} refused at creation")
    pods = texts.count(result.created, "pod")
    text = Text(f"{name}, seed {seed}: {pods} in {axes.span(result.seconds)}: ")
    text.append(", ".join(parts) + ".")
    text.highlight_regex(r"[\d,]+ bound", output.GOOD)
    if result.pending:
        text.highlight_regex(r"[\d,]+ pending", output.BAD)
    return text


def _utilisation(page: ConsolePage, result: Result) -> Table:
    heads = ("mean", "peak", "at the end", "fragmented", "imbalance")
    table = output.table("resource", numbers=heads)
    wide = page.width >= 100 and result.seconds > 0
    if wide:
        table.add_column("over time", no_wrap=True)
    last = result.samples[-1]
    for name, use in result.utilisation().items():
        if name == PODS and len(result.resources) > 1:
            continue
        row = [_share(use.mean), _share(use.peak), _share(use.last)]
        row += [_percent(each.get(name, 0.0)) for each in (last.fragmentation, last.imbalance)]
        if wide:
            row.append(_spark(result, name, plain=page.console.options.ascii_only))
        table.add_row(name.rpartition("/")[2], *row)
    return table


def _percent(part: float) -> str:
    return f"{100 * part:.0f}%"


def _share(part: float) -> str:
    """A percentage; a small one with a decimal, so that 0.4 % does not read as none."""
    return f"{100 * part:.1f}%" if 0 < part < 0.0995 else _percent(part)


def _spark(result: Result, resource: str, *, plain: bool) -> str:
    """The mean share of each part of the time, in one line; full height is 100 %."""
    blocks, step = PLAIN_BLOCKS if plain else BLOCKS, result.seconds / SPARK
    parts = (result.mean_share(resource, i * step, (i + 1) * step) for i in range(SPARK))
    return "".join(blocks[min(len(blocks) - 1, int(part * len(blocks)))] for part in parts)


def _waits(result: Result) -> Table:
    heads = ("pods", "mean", "median", "90 %", "99 %", "longest")
    table, waits = output.table(numbers=heads), result.waits
    spans = (waits.mean, waits.p50, waits.p90, waits.p99, waits.max)
    table.add_row(f"{waits.count:,}", *map(axes.span, spans))
    return table


def _queues(page: ConsolePage, result: Result) -> Table:
    """Queues with their dominant shares; full height of a line is 100 %."""
    heads = ("entitled", "mean", "at the end", "on nodes", "pending", "mean wait", "longest")
    table = output.table("queue", numbers=heads)
    wide = page.width >= 100 and result.seconds > 0
    if wide:
        table.add_column("share over time", no_wrap=True)
    for each in result.queues:
        row = [_share(each.entitled), _share(each.mean_share), _share(each.share)]
        row += [f"{each.running:,}", f"{each.pending:,}"]
        row += [axes.span(each.waits.mean), axes.span(each.waits.max)]
        if wide:
            row.append(_queue_spark(page, result, each.name))
        table.add_row(each.name, *row)
    return table


def _queue_spark(page: ConsolePage, result: Result, queue: str) -> str:
    blocks = PLAIN_BLOCKS if page.console.options.ascii_only else BLOCKS
    shares = [sample.queue_shares.get(queue, 0.0) for sample in result.samples]
    picked = [shares[i * len(shares) // QUEUE_SPARK] for i in range(QUEUE_SPARK)]
    return "".join(blocks[min(len(blocks) - 1, int(share * len(blocks)))] for share in picked)


def _disruptions(result: Result) -> Table:
    items = output.items()
    causers = result.causes()
    for cause, by, count in causers[:MOST_ROWS]:
        preposition = "by" if cause == PREEMPTION else "of"
        items.add_row(f"{count:,}", Text.assemble(f"{cause} ", (f"{preposition} {by}", output.DIM)))
    if len(causers) > MOST_ROWS:
        rest = sum(count for _, _, count in causers[MOST_ROWS:])
        items.add_row(
            f"{rest:,}", Text(f"by {texts.count(len(causers) - MOST_ROWS, 'other')}", output.DIM)
        )
    return items


def _spread(result: Result) -> Table:
    items = output.items()
    for each in result.spread_violations[:MOST_ROWS]:
        skew = f"skew {each.skew} over {each.topology_key}, {each.max_skew} is allowed"
        pods = f"{each.namespace}: {each.selector}"
        items.add_row(f"{each.pods:,}", Text.assemble(f"{pods} ", (skew, output.DIM)))
    return items
