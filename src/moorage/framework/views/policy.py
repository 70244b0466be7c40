"""CachePolicy: which plugins of a profile are cached in views, and which run in every cycle.

Views of a template cache every plugin that `depends` allows. A template that is seen once is
evaluated on views that it shares with others, so its policy caches only plugins that read node
objects, and of these only the ones for which other templates are the same.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from moorage.framework.points import BY_PODS, Depends, depends_of
from moorage.framework.views.uncached import UncachedScore

if TYPE_CHECKING:
    from moorage.framework.profile import Profile

# Answers that change only with a node object, or also with the pods on that node.
BY_NODE = (Depends.NODE, Depends.NODES)
BY_ROW = (*BY_NODE, *BY_PODS)

# A filter with its index in the profile.
IndexedFilter = tuple[int, Any]


class CachePolicy:
    """Plugins by how their answers are kept."""

    def __init__(
        self,
        profile: "Profile",
        at: Mapping[str, Sequence[Any]],
        scores: Sequence[tuple[Any, int]],
        cached: Collection[str],
        *,
        is_for_template: bool,
    ) -> None:
        # With whether the result is cached.
        self.pre_filters = [(p, p.name in cached) for p in at["pre_filter"]]
        self.filtering = {p.name for p in (*at["pre_filter"], *at["filter"])}
        filters: list[IndexedFilter] = list(enumerate(at["filter"]))
        self.filters = [(i, p) for i, p in filters if p.name in cached]
        others = [(i, p) for i, p in filters if p.name not in cached]
        # Where verdicts changed is of use only if they are kept for the template.
        self.placement_filters = [
            (i, p)
            for i, p in others
            if is_for_template and reports_changes(p) and p.name not in profile.unprepared
        ]
        self.uncached_filters = [each for each in others if each not in self.placement_filters]
        # In the order of pre_score. Without a weight: only pre_score is called, which may raise.
        weights: dict[str, tuple[Any, int | None]] = {}
        if scores:
            weights = {p.name: (p, None) for p in at["pre_score"]}
            weights.update({p.name: (p, weight) for p, weight in scores})
        scoring = weights.values()
        self.scores = [(p, w) for p, w in scoring if _caches_scores(p, cached)]
        self.uncached_scores = [
            UncachedScore(profile, p, w) for p, w in scoring if not _caches_scores(p, cached)
        ]


def reports_changes(plugin: Any) -> bool:
    """Whether a filter looks beyond the node and reports where its verdicts may have changed."""
    return depends_of(plugin) is Depends.PLACEMENTS and hasattr(plugin, "filter_changes")


def groups_rows(plugin: Any) -> bool:
    """Whether a filter evaluates groups of rows."""
    return hasattr(plugin, "group_keys") and hasattr(plugin, "filter_groups")


def is_never_cached(plugin: Any) -> bool:
    """Whether a filter runs in every cycle, for every template."""
    return depends_of(plugin) not in BY_ROW and not reports_changes(plugin)


def _caches_scores(plugin: Any, cached: Collection[str]) -> bool:
    """Raw scores can be cached, and normalised scores with them."""
    has_normalizer = getattr(plugin, "normalizer", None) is not None
    by_summary = has_normalizer or not hasattr(plugin, "normalize_score")
    return plugin.name in cached and by_summary
