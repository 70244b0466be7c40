"""SharedTotals: the feasible rows and their totals for decisions by groups of rows.

They have cached filters and scores only. Templates that agree in what these plugins read of a pod
share them, and the groups of rows as well if these are made by the same keys: such templates differ
in their namespace, or in constraints that look beyond the node. So a pod that is placed is taken in
once, not once per template.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from moorage.api.pod import Pod
from moorage.framework.state import CycleState
from moorage.framework.views.feasible import FeasibleView
from moorage.framework.views.filters import FilterView
from moorage.framework.views.ranked_groups import RankedGroups
from moorage.framework.views.repeated import RepeatedTotals
from moorage.framework.views.resources import ResourceViews
from moorage.framework.views.scores import ScoreView
from moorage.framework.views.totals import TotalView
from moorage.nodes.changes import UNREAD
from moorage.nodes.groups import GroupKey, RowGroups

if TYPE_CHECKING:
    from moorage.framework.profile import Profile


class SharedTotals:
    """See the module."""

    def __init__(
        self,
        profile: "Profile",
        filters: Sequence[tuple[int, FilterView]],
        scores: Sequence[tuple[int, ScoreView]],
    ) -> None:
        self._table = table = profile.cluster.table
        self.feasible = FeasibleView(table, profile.filter_names, filters)
        self.total = TotalView.of(scores, self.feasible, profile.score_order)
        by_filter, by_score = [view for _, view in filters], [view for _, view in scores]
        self._by_resources = ResourceViews.of(table, [*by_filter, *by_score])
        # As long as only resources of rows change.
        self._repeated: RepeatedTotals | None = None
        self._nodes = UNREAD
        # How often more than that changed.
        self.refreshes = 0
        self._ranked: WeakValueDictionary[tuple[GroupKey, ...], RankedGroups] = (
            WeakValueDictionary()
        )

    def ranked(self, keys: tuple[GroupKey, ...]) -> RankedGroups:
        """The groups of rows that agree in some values; the totals have to be up to date."""
        found = self._ranked.get(keys)
        if found is None:
            found = self._ranked[keys] = RankedGroups(RowGroups(keys, self._table), self.total)
        return found

    def refresh(self, state: CycleState, pod: Pod) -> bool:
        """Bring filters and scores up to date; returns whether they can be used."""
        feasible, total, nodes = self.feasible, self.total, self._table.node_changes.position
        repeated = self._repeated if self._nodes == nodes and feasible.is_current else None
        if repeated is not None and repeated.take_changes():
            return True
        self._repeated, self._nodes = None, nodes
        self.refreshes += 1
        if self._by_resources is not None:
            self._by_resources.refresh()
        feasible.refresh(state, pod)
        total.refresh(state, pod)
        if feasible.has_errors or not total.is_valid:
            return False
        if self._by_resources is not None:
            self._repeated = RepeatedTotals.of(feasible, total, self._by_resources)
        return True
