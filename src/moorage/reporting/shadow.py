"""The HTML report of `moorage run --shadow`."""

from collections.abc import Iterator

from moorage.reporting import html, page
from moorage.reporting.html import tag
from moorage.shadow.comparison import VERDICTS, PodComparison
from moorage.shadow.tally import SIDES, ShadowTally

TITLE = "Moorage as a shadow"
MEANINGS = {
    "": "Both chose this node.",
    "tie": "Both nodes have the same total; each scheduler chooses one of the best.",
    "time": "The cluster changed between the two decisions, and that explains the difference.",
    "sampling": "More nodes are feasible than kube-scheduler scores by default.",
    "configuration": "The other scheduler has other plugins, weights or arguments.",
}


def render(tally: ShadowTally) -> str:
    """The report as one HTML document."""
    tiles = [(f"{tally.total:,}", "pods compared")]
    tiles += [(f"{tally.agreed:,}", "Moorage's node, or one of its best")]
    tiles += [(f"{tally.of_verdict(verdict):,}", verdict) for verdict in VERDICTS]
    tiles += [(f"{tally.pending().total:,}", "pending at the end")]
    note = (
        "Totals are by Moorage's scores, in the cluster as it was when the binding was observed. "
        "Times begin when a pod is first observed; those of the other scheduler end when its "
        "binding is observed."
    )
    return page.document(TITLE, "Decisions compared with bindings", tiles, _sections(tally), note)


def _sections(tally: ShadowTally) -> Iterator[tuple[str, str]]:
    rows = [
        [
            verdict,
            reason,
            f"{count:,}",
            f"{100 * count / tally.total:.1f} %",
            MEANINGS.get(reason, ""),
        ]
        for verdict, reason, count in tally.kinds()
    ]
    heads = ["other's node", "reason", "pods", "share", "meaning"]
    yield "Agreement", html.table(heads, rows, numbers=[2, 3])
    times = [
        [side, *(f"{1000 * seconds:,.1f} ms" for seconds in found)]
        for side in SIDES
        if (found := tally.times(side)) is not None
    ]
    if times:
        heads = ["scheduler", "p50", "p90", "p99"]
        yield "Time to decide", html.table(heads, times, numbers=[1, 2, 3])
    if tally.plugins:
        plugins = [[plugin, f"{count:,}"] for plugin, count in tally.plugins.most_common()]
        yield (
            "Plugins that favour Moorage's node",
            html.table(["plugin", "pods"], plugins, numbers=[1]),
        )
    for (verdict, reason), examples in tally.examples.items():
        yield f"Examples: {verdict}, {reason}", _examples(list(examples))
    if pending := tally.pending().counts:
        rows = [[ours, other, f"{count:,}"] for (ours, other), count in sorted(pending.items())]
        yield "Pending", html.table([*SIDES, "pods"], rows, numbers=[2])


def _examples(found: list[PodComparison]) -> str:
    rows = [
        [
            each.pod,
            each.node or "-",
            each.other_node,
            "-" if each.total is None else each.total,
            "-" if each.other_total is None else each.other_total,
            ", ".join(f"{name} {points:+}" for name, points in each.plugins.items()),
            each.changes,
            each.message,
        ]
        for each in reversed(found)
    ]
    heads = [
        "pod",
        "moorage",
        "other",
        "total",
        "other's",
        "Moorage's points more",
        "changes",
        "message",
    ]
    return tag("div", html.table(heads, rows, numbers=[3, 4, 6]))
