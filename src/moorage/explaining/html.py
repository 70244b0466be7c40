"""An explanation in a notebook."""

from collections.abc import Iterator

from moorage import markup
from moorage.api import texts
from moorage.explaining import preemption, report
from moorage.explaining.explanation import Explanation
from moorage.markup import Html

MOST_RANKED = 10
WIDTH = 100


def render(told: Explanation) -> str:
    """The answer in words, the nodes that fit with their scores, the others with their reasons."""
    return markup.join(_parts(told))


def _parts(told: Explanation) -> Iterator[Html]:
    yield markup.paragraph(report.headline(told), strong=True)
    ranking = report.ranking(told)
    if ranking.nodes and told.totals:
        shown = ranking.shown(MOST_RANKED)
        yield markup.table(
            ["node", "total", *ranking.plugins],
            (
                [name, told.totals[name], *(told.scores[name][each] for each in ranking.plugins)]
                for name in shown
            ),
        )
        if len(shown) < len(ranking.nodes):
            yield markup.paragraph(f"and {len(ranking.nodes) - len(shown):,} more")
    sacrifices = preemption.sacrifices(told)
    if sacrifices:
        yield markup.table(
            ["others could make room on", "those who would leave"],
            ([each.node, ", ".join(each.victims)] for each in sacrifices[:MOST_RANKED]),
        )
    groups = report.groups(told)
    if groups:
        yield markup.table(
            ["nodes refused", "reason", "plugin", "which"],
            (
                [len(group.nodes), group.reason, group.plugin, texts.listed(group.nodes, WIDTH)]
                for group in groups
            ),
        )
    if told.advice:
        yield markup.items(told.advice)
