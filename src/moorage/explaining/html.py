"""An explanation as HTML for notebooks."""

from collections.abc import Iterator

from moorage import markup
from moorage.api import texts
from moorage.explaining.explanation import Explanation
from moorage.explaining.text import headline, victims
from moorage.markup import Html

MOST_RANKED = 10
WIDTH = 100


def render(explained: Explanation) -> str:
    """The headline, the feasible nodes with their scores, the others with their reasons."""
    return markup.join(_parts(explained))


def _parts(explained: Explanation) -> Iterator[Html]:
    yield markup.paragraph(headline(explained), strong=True)
    ranking = explained.ranking
    if ranking.nodes and explained.totals:
        yield markup.table(
            ["node", "total", *ranking.plugins], explained.score_rows(ranking, MOST_RANKED)
        )
        if len(ranking.nodes) > MOST_RANKED:
            yield markup.paragraph(f"and {len(ranking.nodes) - MOST_RANKED:,} more")
    if explained.candidates:
        yield markup.table(
            ["others could make room on", "those who would leave"],
            (
                [each.node, ", ".join(victims(each))]
                for each in explained.preemption_options[:MOST_RANKED]
            ),
        )
    if explained.rejected:
        yield markup.table(
            ["nodes refused", "reason", "plugin", "which"],
            (
                [len(group.nodes), group.reason, group.plugin, texts.listed(group.nodes, WIDTH)]
                for group in explained.rejection_groups
            ),
        )
    if explained.advice:
        yield markup.items(explained.advice)
