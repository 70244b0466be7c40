"""GroupedViews: decisions for a template by groups of rows, where that is possible.

Plugins that look beyond the node, such as inter-pod affinity and topology spread, say the same of
all rows that agree in a few values (`group_keys`). So they are asked for a verdict and a score per
group, and these are combined with the best rows of every group by cached scores. No step takes time
in proportion to the rows.

Keys and groups are kept from one pod of the template to the next: what is left to do is to move the
row that changed, and to ask the plugins about few groups.
"""

from collections.abc import Sequence
from operator import add
from typing import TYPE_CHECKING

import numpy as np

from moorage.api.pod import Pod
from moorage.framework import invoke
from moorage.framework.invoke import CallMeter
from moorage.framework.points import BEST
from moorage.framework.state import CycleState
from moorage.framework.status import Scores
from moorage.framework.views.feasible import FeasibleRows
from moorage.framework.views.policy import IndexedFilter
from moorage.framework.views.pre_filters import PreFiltered, Versions
from moorage.framework.views.ranked_groups import RankedGroups
from moorage.framework.views.row_sets import RowSet, RowUnion
from moorage.framework.views.shared_totals import SharedTotals
from moorage.framework.views.totals import TotalView
from moorage.framework.views.uncached import UncachedScore
from moorage.nodes.groups import GroupKey, Groups

if TYPE_CHECKING:
    from moorage.framework.profile import Profile

# With more groups than this, evaluating all rows is faster.
MOST_GROUPS = 256

# A score plugin's name, and its normalised and weighted scores by group.
GroupPart = tuple[str, list[int]]


class GroupedScores:
    """The latest totals: those of cached scores, and what plugins add to each group.

    Used for one decision after the other.
    """

    def __init__(self, ranked: RankedGroups, total: TotalView) -> None:
        self._ranked = ranked
        self._total = total
        self._groups = ranked.feasible
        self._parts: Sequence[GroupPart] = ()
        # What plugins add to the totals of each group.
        self._added: list[int] = []
        # The best sets of rows, and what they follow from if plugins add nothing.
        self._best: tuple[int, ...] = ()
        self._found_from: tuple[Groups, int, int] | None = None

    def add_up(self, groups: Groups, parts: Sequence[GroupPart]) -> None:
        """Find the totals of groups, of which there are some."""
        ranked = self._ranked
        found_from = None
        if not parts:
            found_from = groups, groups.version, ranked.version
            if found_from == self._found_from:
                return
        self._found_from, self._groups, self._parts = found_from, groups, parts
        numbers = groups.numbers
        tops = map(ranked.tops.__getitem__, numbers)
        if parts:
            added = parts[0][1]
            if len(parts) > 1:
                added = [*map(sum, zip(*[scores for _, scores in parts], strict=True))]
            self._added, tops = added, map(add, tops, added)
        totals = [*tops]
        highest = max(totals)
        if totals.count(highest) > 1:
            both = zip(numbers, totals, strict=True)
            self._best = ranked.best([number for number, total in both if total == highest])
        else:
            self._best = (ranked.best_of(numbers[totals.index(highest)]),)

    def best(self) -> RowSet | RowUnion:
        """The rows that share the highest total, ascending."""
        return self._ranked.rows(self._best)

    @property
    def totals(self) -> Scores:
        """The totals of all rows, -1 where a row does not fit; for readers of every row."""
        by_group = np.full(len(self._ranked.groups), np.iinfo(np.int64).min // 2)
        by_group[self._groups.numbers] = self._added if self._parts else 0
        before = self._total.scored.totals
        totals = np.maximum(before + by_group.take(self._ranked.groups.group_of), -1)
        return np.where(before < 0, -1, totals)

    def total(self, row: int) -> int:
        """The total of a row that fits."""
        total = self._total.scored.totals.item(row)
        return total + self._added[self._position(row)] if self._parts else total

    def scores(self, row: int) -> dict[str, int]:
        """The weighted score per plugin of a row that fits."""
        cached = self._total.parts
        if not self._parts:
            return cached.of(row)
        at = self._position(row)
        return cached.of_with(row, {name: scores[at] for name, scores in self._parts})

    def _position(self, row: int) -> int:
        return self._groups.at[self._ranked.groups.group_of.item(row)]


# What pre_filter plugins, filters and scores say of a pod.
ByGroup = tuple[PreFiltered, FeasibleRows, GroupedScores]


class GroupedViews:
    """See the module.

    `totals` have cached filters and scores only. `filters` and `scores` are the other ones that do
    not skip the pod.
    """

    def __init__(
        self,
        profile: "Profile",
        totals: SharedTotals,
        filters: Sequence[IndexedFilter],
        scores: Sequence[UncachedScore],
    ) -> None:
        self._totals = totals
        self._filters = [(i, profile.require(p, "filter_groups")) for i, p in filters]
        self._scores = scores
        plugins = {plugin.name: plugin for _, plugin in filters}
        plugins.update({score.name: score.plugin for score in scores})
        self.names = plugins.keys()
        # Those that do not skip the pods.
        self._scoring = [*scores]
        self._keys_of = [profile.require(plugin, "group_keys") for plugin in plugins.values()]
        # The cycle in which they were called, the result of pre_filter plugins, and the groups and
        # their scores; as long as these versions hold.
        self._asked: tuple[CycleState, PreFiltered, RankedGroups, GroupedScores] | None = None
        self.versions: Versions | None = None
        self._rows = FeasibleRows(profile.filter_names, ()) if filters else totals.feasible
        # Whether filters of groups can be combined with the others, and since when.
        self._can_filter = False
        self._refreshes = -1

    def ask(self, state: CycleState, pod: Pod, pre: PreFiltered, versions: Versions | None) -> bool:
        """Find the groups, for all pods of the template while versions hold.

        Returns whether there are any.
        """
        self.versions, self._scoring = None, [*self._scores]
        keys: list[GroupKey] = []
        for method in self._keys_of:
            found = invoke.group_keys(method, state, pod)
            if found is None:
                return False
            keys += found
        totals = self._totals
        totals.refresh(state, pod)
        ranked = totals.ranked(tuple(dict.fromkeys(keys)))
        self._asked = state, pre, ranked, GroupedScores(ranked, totals.total)
        self.versions = versions
        return True

    def decide(
        self, state: CycleState, pod: Pod, meter: CallMeter | None, started: float
    ) -> ByGroup | None:
        """The results for a pod; None if rows have to be evaluated one by one.

        That is so if fewer than two rows are feasible, too.
        """
        assert self._asked is not None, "there are groups"
        known, pre, ranked, scored = self._asked
        pre_filtered = 0.0 if meter is None else meter.now()
        if not self._totals.refresh(state, pod):
            return None
        ranked.refresh()
        groups = self._filter(ranked, known, pod)
        filtered = 0.0 if meter is None else meter.now()
        if groups is None or not self._score(scored, known, pod, groups):
            return None
        if meter is not None:
            meter.repeated(started, pre_filtered, filtered)
        return pre, self._rows, scored

    def _filter(self, ranked: RankedGroups, state: CycleState, pod: Pod) -> Groups | None:
        """The groups that fit; None if they have fewer than two rows, or all are too many."""
        groups, feasible = ranked.feasible, self._totals.feasible
        if self._refreshes != self._totals.refreshes:
            self._can_filter = self._find_can_filter()
            self._refreshes = self._totals.refreshes
        if not self._can_filter or len(groups.numbers) > MOST_GROUPS:
            return None
        count = feasible.count
        if not self._filters:
            return groups if count >= 2 else None
        rows, rejected_by = self._rows, feasible.rejected_by
        for index, method in self._filters:
            fits = invoke.filter_groups(method, state, pod, groups)
            if False in fits:
                groups = groups.where(fits)
                before, count = count, sum(groups.sizes)
                rejected_by = [*rejected_by, *[0] * (index + 1 - len(rejected_by))]
                rejected_by[index] += before - count
        rows.count, rows.rejected_by = count, rejected_by
        return groups if count >= 2 else None

    def _find_can_filter(self) -> bool:
        """Whether it is known what filters of groups change.

        That is: which of all filters rejects a row first, and what other rows score.
        """
        if not self._filters:
            return True
        first, feasible = self._filters[0][0], self._totals.feasible
        are_last = all(view.codes is None for i, view in feasible.filters if i > first)
        return are_last and self._totals.total.ignores_feasible

    def _score(self, scored: GroupedScores, state: CycleState, pod: Pod, groups: Groups) -> bool:
        """Score the groups that fit; returns whether all scores are in range."""
        parts = []
        for plugin in self._scoring:
            scores = plugin.of_groups(state, pod, groups)
            if scores is None:
                self._scoring = [other for other in self._scoring if other is not plugin]
            elif min(scores) >= 0 and max(scores) <= BEST * plugin.weight:
                parts.append((plugin.name, scores))
            else:
                return False
        scored.add_up(groups, parts)
        return True
