"""The sections of the report, in order. Each is a title and HTML, or is left out."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from moorage.api import texts
from moorage.api.requests import PODS
from moorage.explaining import Explanation
from moorage.explaining.text import headline
from moorage.planning import prices
from moorage.planning.prices import ClusterCost
from moorage.reporting import axes, charts, cluster_map, heat_map, html, node_map
from moorage.reporting.charts import Series
from moorage.reporting.html import tag
from moorage.sim.results.result import WAIT_BOUNDS, NodeUse, Result
from moorage.sim.results.samples import QUEUES

MOST_ROWS = 15
MOST_EXAMPLES = 6
MOST_BINS = 25
MOST_RESOURCES = 6
MOST_QUEUES = 8
MOST_SCORED = 10
NAMES_WIDTH = 120
MOST_PLACED = 200
# A run of this length is about its course, a shorter one about its placements; in the shortest,
# charts over time show nothing.
LONG_SECONDS = 600
SHORT_SECONDS = 30


def sections(
    result: Result, explanations: Sequence[Explanation], cost: ClusterCost | None = None
) -> Iterator[tuple[str, str]]:
    """Title and body of each section that has something to say."""
    has_course = result.seconds > 0 and len(result.samples) > 1 and bool(result.nodes)
    if has_course and result.seconds >= LONG_SECONDS:
        yield "Over time", tag("div", *_over_time(result), class_="charts")
    if result.pending:
        yield "Pending", _pending(result)
    if has_course:
        yield "Cluster map", cluster_map.figure(result)
    if 0 < len(result.nodes) <= node_map.MOST_NODES:
        yield "Node map", node_map.figure(result)
    if result.waits.count:
        yield "Time to schedule", tag("div", _waits(result), class_="charts")
    if result.queues:
        yield "Queues", tag("div", *_queues(result), class_="charts")
    if result.disruptions:
        yield "Disruptions", _disruptions(result)
    if result.nodes:
        yield "Nodes at the end", _nodes(result)
    if cost is not None:
        yield "Cost", _cost(cost)
    if result.spread_violations:
        yield "Uneven spread", _spread(result)
    if explanations:
        yield "Decisions", "".join(_decision(each) for each in explanations)
    if result.placed and result.seconds < LONG_SECONDS:
        yield "Placements", _placements(result)
    if has_course and SHORT_SECONDS <= result.seconds < LONG_SECONDS:
        yield "Over time", tag("div", *_over_time(result), class_="charts")


def _placements(result: Result) -> str:
    """Node by node, the pods that the simulation placed."""
    nodes = [node for node in result.nodes if node.new]
    rows = [
        [node.name, len(node.new), texts.listed(node.new, 4 * NAMES_WIDTH)]
        for node in nodes[:MOST_PLACED]
    ]
    left = len(nodes) - MOST_PLACED
    more = tag("p", f"and {texts.count(left, 'more node')}", class_="note") if left > 0 else ""
    return html.table(["node", "new pods", "which"], rows, numbers=[1]) + more


def _cost(cost: ClusterCost) -> str:
    """What the nodes of each pool cost per hour."""
    rows = [[name, pool.nodes, prices.text(pool.per_hour)] for name, pool in cost.pools.items()]
    rows.append(
        ["all", sum(pool.nodes for pool in cost.pools.values()), prices.text(cost.per_hour)]
    )
    found = html.table(["pool", "nodes", "per hour"], rows, numbers=[1, 2])
    if cost.unpriced:
        names = texts.listed(cost.unpriced, NAMES_WIDTH)
        found += tag("p", html.text(f"Nodes without a price: {names}"), class_="note")
    return found


def figures(result: Result, cost: ClusterCost | None = None) -> list[tuple[str, str]]:
    """The most important figures, and what they count."""
    found = [
        (f"{len(result.nodes):,}", "nodes at the end"),
        (f"{result.created:,}", "pods created"),
        (f"{result.bound:,}", "bound to a node"),
        (f"{result.ended:,}", "ended"),
        (f"{result.running:,}", "on nodes at the end"),
        (f"{result.pending_count:,}", "pending at the end"),
        (f"{len(result.disruptions):,}", "disrupted"),
    ]
    if result.refused_pods:
        found.append((f"{result.refused_pods:,}", "refused at creation"))
    if result.waits.count:
        median, worst = axes.span(result.waits.p50), axes.span(result.waits.p99)
        found += [(median, "median wait"), (worst, "wait, 99th percentile")]
    if result.nodes:
        use = result.utilisation()
        found += [
            (f"{100 * use[name].mean:.0f} %", f"{name} requested, on average")
            for name in _resources(result)[:3]
        ]
    if cost is not None:
        if cost.of_run is not None:
            found.append((prices.text(cost.of_run), "cost of the nodes during the run"))
        found.append((prices.text(cost.per_hour), "cost of the nodes per hour"))
    return found


def tiles(figures: Sequence[tuple[str, str]]) -> str:
    """Figures, each in a box with its name."""
    items = (tag("li", tag("b", html.text(a)), tag("span", html.text(b))) for a, b in figures)
    return tag("ul", *items, class_="tiles")


def _resources(result: Result) -> list[str]:
    """The resources with a line: those that any pod requests."""
    requested = {n for sample in result.samples for n, amount in sample.requested.items() if amount}
    found = [name for name in result.resources if name != PODS and name in requested]
    return found[:MOST_RESOURCES]


def _over_time(result: Result) -> Iterator[str]:
    samples, names = result.samples, _resources(result)
    times = [sample.at for sample in samples]
    used = [Series(n, [100 * share for share in result.mean_shares(n)]) for n in names]
    if used:
        caption = "Requested share of what all nodes offer; the mean since the point before."
        yield charts.over_time("Utilisation", caption, times, used, "%")
    queues = [Series(name, [getattr(s, name) for s in samples]) for name in QUEUES]
    kept = [each for each in queues if any(each.values)] or queues[:1]
    caption = (
        "Pods without a node: to be tried at once, after a back-off, after a change, or held back."
    )
    yield charts.over_time("Queue depth", caption, times, kept, "pods", stacked=True)
    running = [Series("on nodes", [s.running for s in samples])]
    yield charts.over_time("Pods on nodes", "Bound and not yet ended.", times, running, "pods")
    nodes = [Series("nodes", [s.nodes for s in samples])]
    yield charts.over_time("Nodes", "Cordoned ones count.", times, nodes, "nodes")
    if names:
        yield charts.over_time(
            "Fragmentation",
            "Of what is free, the part on nodes where a pod of average size does not fit.",
            times,
            [Series(n, [100 * s.fragmentation.get(n, 0) for s in samples]) for n in names],
            "%",
        )
        yield charts.over_time(
            "Imbalance",
            "Standard deviation of the nodes' shares: 0 if all are equally full.",
            times,
            [Series(n, [100 * s.imbalance.get(n, 0) for s in samples]) for n in names],
            "percentage points",
        )
    heat = heat_map.figure(samples, result.rows, result.seconds)
    yield heat.replace("<figure>", '<figure class="whole">', 1)


def _pending(result: Result) -> str:
    total = result.pending_count
    parts = [tag("p", html.text(f"{texts.count(total, 'pod')} without a node, by reason."))]
    for group in result.pending[:MOST_ROWS]:
        count = len(group.pods)
        bar = tag("div", tag("i", style=f"width: {100 * count / total:.1f}%"))
        names = html.text(texts.listed(group.pods[:MOST_EXAMPLES], 400))
        more = f" and {count - MOST_EXAMPLES:,} more" if count > MOST_EXAMPLES else ""
        reason = tag("p", tag("b", f"{count:,}"), " ", html.text(group.reason))
        pods = tag("p", names, more, class_="note")
        parts.append(tag("div", reason, bar, pods, class_="reason"))
    left = len(result.pending) - MOST_ROWS
    if left > 0:
        parts.append(tag("p", f"and {left:,} more reasons", class_="note"))
    return "".join(parts)


def _waits(result: Result) -> str:
    found = result.waits
    caption = "From creation to binding; pods that were made again count again."
    counts = [Series("pods", found.histogram)]
    chart = charts.bars("How long pods waited", caption, list(WAIT_BOUNDS), counts, "pods", "wait")
    names = ("mean", "median", "90 % within", "99 % within", "longest")
    spans = map(axes.span, (found.mean, found.p50, found.p90, found.p99, found.max))
    table = html.table(["", "wait"], zip(names, spans, strict=True), numbers=[1])
    return chart + charts.figure("Percentiles", f"Of {texts.count(found.count, 'pod')}.", table)


def _queues(result: Result) -> Iterator[str]:
    """Shares of queues over time, and against what they are entitled to."""
    names = [each.name for each in result.queues][:MOST_QUEUES]
    if result.seconds > 0 and len(result.samples) > 1:
        times = [sample.at for sample in result.samples]
        shares = [
            Series(name, [100 * s.queue_shares.get(name, 0.0) for s in result.samples])
            for name in names
        ]
        caption = "The largest part that each queue uses of any resource."
        yield charts.over_time("Shares of queues", caption, times, shares, "%")
    rows = [
        [
            *(each.name, *(f"{s:.1%}" for s in (each.entitled, each.mean_share, each.share))),
            *(each.running, each.pending, axes.span(each.waits.mean), axes.span(each.waits.p99)),
        ]
        for each in result.queues
    ]
    heads = [
        "queue",
        "entitled",
        "mean",
        "at the end",
        "on nodes",
        "pending",
        "wait",
        "99 % within",
    ]
    table = html.table(heads, rows, numbers=range(1, len(heads)))
    caption = "Entitled: what a queue can expect if all queues ask for more."
    yield charts.figure("Shares and waits", caption, table)


def _disruptions(result: Result) -> str:
    found = result.disruptions
    causes = list(dict.fromkeys(each.cause for each in found))
    seconds = max(result.seconds, 1.0)
    unit, marks = axes.of_times(seconds, MOST_BINS)
    edges = [at for at, _ in marks if at < seconds]
    bins = [[0] * len(edges) for _ in causes]
    for each in found:
        bins[causes.index(each.cause)][bisect_right(edges, each.at) - 1] += 1
    names = [name for _, name in marks[: len(edges)]]
    series = [Series(cause, counts) for cause, counts in zip(causes, bins, strict=True)]
    caption = "Pods that had to leave their node before their time."
    chart = charts.bars("Disruptions over time", caption, names, series, "pods", f"from, {unit}")
    causers = result.causes()
    rows = [[cause, by, count] for cause, by, count in causers[:MOST_ROWS]]
    table = html.table(["cause", "by", "pods"], rows, numbers=[2])
    left = len(causers) - MOST_ROWS
    more = tag("p", f"and {left:,} more", class_="note") if left > 0 else ""
    figure = charts.figure(
        "Who caused them", "The pod that was more important, or the node.", table, more
    )
    return tag("div", chart, figure, class_="charts")


def _nodes(result: Result) -> str:
    counts = [0] * 11
    for node in result.nodes:
        counts[min(10, math.floor(10 * node.share))] += 1
    names = [f"{10 * i}-{10 * i + 10}" for i in range(10)] + ["full"]
    caption = "How full, by what each has least left of."
    chart = charts.bars(
        "Nodes by fullness", caption, names, [Series("nodes", counts)], "nodes", "percent requested"
    )
    ordered = sorted(result.nodes, key=lambda node: (-node.share, heat_map.natural(node.name)))
    resources = _resources(result)[:3]
    rows = [
        [node.name, node.pods, *(_share(node, name) for name in resources)]
        for node in ordered[:MOST_ROWS]
    ]
    table = html.table(["node", "pods", *resources], rows, numbers=range(1, 2 + len(resources)))
    which = "All nodes" if len(ordered) <= MOST_ROWS else f"The fullest of {len(ordered):,} nodes"
    figure = charts.figure(which, "Requested, of what each offers.", table)
    return tag("div", chart, figure, class_="charts")


def _share(node: NodeUse, resource: str) -> str:
    total = node.allocatable.get(resource)
    return f"{100 * node.requested[resource] / total:.0f} %" if total else ""


def _spread(result: Result) -> str:
    caption = (
        "Topology spread constraints whose skew is larger than they allow, counted over all nodes."
    )
    rows = [
        [each.namespace, each.selector, each.topology_key, each.max_skew, each.skew, each.pods]
        for each in result.spread_violations[:MOST_ROWS]
    ]
    heads = ["namespace", "selector", "topology key", "allowed skew", "skew", "pods"]
    return tag("p", caption) + html.table(heads, rows, numbers=[3, 4, 5])


def _decision(explained: Explanation) -> str:
    """The verdicts and scores of one pod's decision."""
    parts = [tag("h3", html.text(explained.pod.key)), tag("p", html.text(headline(explained)))]
    if explained.scores:
        ranking = explained.ranking
        heads = ["node that fits", "points", *ranking.plugins]
        rows = explained.score_rows(ranking, MOST_SCORED)
        parts.append(html.table(heads, rows, numbers=range(1, len(heads))))
        if (left := len(ranking.nodes) - MOST_SCORED) > 0:
            parts.append(tag("p", f"and {texts.count(left, 'more node')} that fit", class_="note"))
    if explained.rejected:
        rows = [
            [len(group.nodes), group.reason, group.plugin, texts.listed(group.nodes, NAMES_WIDTH)]
            for group in explained.rejection_groups
        ]
        table = html.table(["nodes", "refused because", "says", "which"], rows, numbers=[0])
        parts.append(tag("div", table, class_="refusals"))
    if explained.advice:
        parts.append(tag("ul", *(tag("li", html.text(line)) for line in explained.advice)))
    return tag("div", *parts, class_="decision")
