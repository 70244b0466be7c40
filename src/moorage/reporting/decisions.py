"""Why chosen pods went where they are, or wait: their verdicts and scores as tables."""

from collections.abc import Sequence

from moorage.api import texts
from moorage.explaining import Explanation, report
from moorage.reporting import html
from moorage.reporting.html import tag

MOST_NODES = 10
NAMES_WIDTH = 120


def section(explanations: Sequence[Explanation]) -> str:
    """All decisions, one after the other."""
    return "".join(_decision(each) for each in explanations)


def _decision(told: Explanation) -> str:
    parts = [tag("h3", html.text(told.pod.key)), tag("p", html.text(report.headline(told)))]
    if told.scores:
        parts.append(_scores(told))
    if told.rejected:
        parts.append(_refusals(told))
    if told.advice:
        parts.append(tag("ul", *(tag("li", html.text(line)) for line in told.advice)))
    return tag("div", *parts, class_="decision")


def _scores(told: Explanation) -> str:
    ranking = report.ranking(told)
    shown = ranking.shown(MOST_NODES)
    rows = [
        [node, told.totals[node], *(told.scores[node].get(name, 0) for name in ranking.plugins)]
        for node in shown
    ]
    heads = ["node that fits", "points", *ranking.plugins]
    table = html.table(heads, rows, numbers=range(1, len(heads)))
    left = len(ranking.nodes) - len(shown)
    return table + (tag("p", f"and {left:,} more nodes that fit", class_="note") if left else "")


def _refusals(told: Explanation) -> str:
    rows = [
        [len(group.nodes), group.reason, group.plugin, texts.listed(group.nodes, NAMES_WIDTH)]
        for group in report.groups(told)
    ]
    table = html.table(["nodes", "refused because", "says", "which"], rows, numbers=[0])
    return tag("div", table, class_="refusals")
