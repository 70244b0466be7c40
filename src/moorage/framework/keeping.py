"""Keeping: whose answers are kept, and who is asked in every cycle.

There are two such ways in a profile: what is kept for a template takes in those who look at the
pods of a node, what is kept for a family of templates does not.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct

from moorage.framework.points import Depends

# Answers that hold until a node or the pods on it change.
KEPT = (Depends.NODE, Depends.USAGE, Depends.NODES)
# Answers that do not change when pods come or go.
SETTLED = (Depends.NODE, Depends.NODES)


def depends_of(plugin: Any) -> Depends:
    """What a plugin's answers depend on; one that does not say is never kept."""
    depends = getattr(plugin, "depends", Depends.ANYTHING)
    return depends if isinstance(depends, Depends) else Depends.ANYTHING


class Keeping:
    """The plugins of a profile, by whether their answers are kept; places are those in a profile.

    `filters` and `scores` are kept, `usage_...` are those of them that look at the pods of a node,
    `volatile_...` are asked in every cycle, and `followed_filters` only for where their verdicts
    changed.
    """

    __slots__ = (
        "_busy",
        "filters",
        "fleeting",
        "followed_filters",
        "keeps_usage",
        "pre_filters",
        "scores",
        "usage_filters",
        "usage_pre_filters",
        "usage_scores",
        "volatile_filters",
        "volatile_pre_filters",
        "volatile_scores",
    )

    def __init__(
        self,
        at: Mapping[str, Sequence[Any]],
        scores: Sequence[tuple[Any, int]],
        kept: Collection[Depends],
    ) -> None:
        usage = Depends.USAGE
        # With whether what each says is kept.
        self.pre_filters = [(p, depends_of(p) in kept) for p in at["pre_filter"]]
        self.volatile_pre_filters = [p for p, is_kept in self.pre_filters if not is_kept]
        self.usage_pre_filters = [
            p for p, is_kept in self.pre_filters if is_kept and depends_of(p) is usage
        ]
        places = list(enumerate(at["filter"]))
        self.filters = [(i, p) for i, p in places if depends_of(p) in kept]
        self.usage_filters = [(i, p) for i, p in self.filters if depends_of(p) is usage]
        far = [(i, p) for i, p in places if depends_of(p) not in kept]
        # To say where verdicts changed is of use for those who keep them with a template.
        follows = self.keeps_usage = usage in kept
        self.volatile_filters = [(i, p) for i, p in far if not (follows and _is_followed(p))]
        self.followed_filters = [(i, p) for i, p in far if follows and _is_followed(p)]
        # Those whose verdicts are kept nowhere, so that nobody counts on having all of them.
        self.fleeting = frozenset(
            p.name for _, p in places if depends_of(p) not in KEPT and not _is_followed(p)
        )
        self.scores = [(p, w) for p, w in scores if _keeps_scores(p, kept)]
        self.usage_scores = [(p, w) for p, w in self.scores if depends_of(p) is usage]
        self.volatile_scores = [
            VolatileScore.of(p, w, has_pre_score=p in at["pre_score"])
            for p, w in scores
            if not _keeps_scores(p, kept)
        ]

        self._busy: dict[frozenset[str], Busy] = {}

    def busy(self, idle: frozenset[str]) -> "Busy":
        """Those who are asked in every cycle, before filters and for scores, without some."""
        known = self._busy.get(idle)
        if known is None:
            known = self._busy[idle] = (
                [plugin for plugin in self.volatile_pre_filters if plugin.name not in idle],
                [score for score in self.volatile_scores if score.plugin.name not in idle],
            )
        return known


class VolatileScore(Struct, frozen=True, eq=False):
    """A score plugin that is asked in every cycle, and what it is able to."""

    plugin: Any
    weight: int
    has_pre_score: bool
    # How its scores are normalised, if they are.
    has_normalizer: bool
    has_normalize_score: bool
    # Its forms, beside the one for single nodes.
    has_score_all: bool
    has_score_compact: bool

    @classmethod
    def of(cls, plugin: Any, weight: int, *, has_pre_score: bool) -> "VolatileScore":
        """What a plugin is able to."""
        has_normalizer = getattr(plugin, "normalizer", None) is not None
        return cls(
            plugin,
            weight,
            has_pre_score,
            has_normalizer,
            not has_normalizer and hasattr(plugin, "normalize_score"),
            hasattr(plugin, "score_all"),
            has_normalizer and hasattr(plugin, "score_compact"),
        )


Busy = tuple[Sequence[Any], Sequence[VolatileScore]]


def _is_followed(plugin: Any) -> bool:
    """Verdicts reach beyond the node, but the plugin says where they may have changed."""
    return depends_of(plugin) is Depends.PLACEMENTS and hasattr(plugin, "filter_changes")


def _keeps_scores(plugin: Any, kept: Collection[Depends]) -> bool:
    """Raw scores are kept, and normalised scores can be kept with them."""
    has_normalizer = getattr(plugin, "normalizer", None) is not None
    by_summary = has_normalizer or not hasattr(plugin, "normalize_score")
    return depends_of(plugin) in kept and by_summary
