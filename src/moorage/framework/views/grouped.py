"""GroupedViews: decisions for a template by groups of rows, where that is possible.

Plugins that look beyond the node, such as inter-pod affinity and topology spread, say the same of
all rows that agree in a few values (`group_keys`). So they are asked for a verdict and a score per
group, and these are combined with the best rows of every group by cached scores. No step takes time
in proportion to the rows.

Keys and groups are kept from one pod of the template to the next: what is left to do is to move the
row that changed, and to ask the plugins about few groups.
"""

from collections.abc import Sequence
from itertools import chain
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from moorage.api.pod import Pod
from moorage.framework import invoke
from moorage.framework.invoke import CallMeter
from moorage.framework.points import BEST
from moorage.framework.state import CycleState
from moorage.framework.status import Scores
from moorage.framework.views import row_sets
from moorage.framework.views.feasible import FeasibleRows, FeasibleView
from moorage.framework.views.policy import IndexedFilter
from moorage.framework.views.pre_filters import PreFiltered, Versions
from moorage.framework.views.ranked_groups import RankedGroups
from moorage.framework.views.repeated import RepeatedTotals
from moorage.framework.views.resources import ResourceViews
from moorage.framework.views.row_sets import RowSet, RowUnion
from moorage.framework.views.totals import MOST_DERIVED, TotalView
from moorage.framework.views.uncached import UncachedScore
from moorage.nodes.changes import UNREAD
from moorage.nodes.groups import GroupKey, Groups, RowGroups

if TYPE_CHECKING:
    from moorage.framework.profile import Profile

# With more groups than this, evaluating all rows is faster.
MOST_GROUPS = 256

# Where nothing is kept for a row.
NOTHING_KEPT = (None, None)

# A score plugin's name, and its normalised and weighted scores by group.
GroupPart = tuple[str, list[int]]


class GroupedScores:
    """The latest totals: those of cached scores, and what plugins add to each group."""

    def __init__(
        self, ranked: RankedGroups, total: TotalView, groups: Groups, parts: Sequence[GroupPart]
    ) -> None:
        self._ranked = ranked
        self._scored = total.scored
        self._groups = groups
        self._parts = parts
        # What plugins add to the totals of each group, in all and each of them.
        self._added: list[int] | None = None
        self._given: list[Any] = []
        if parts:
            self._added = self._given = parts[0][1]
            if len(parts) > 1:
                self._given = [*zip(*[scores for _, scores in parts], strict=True)]
                self._added = [*map(sum, self._given)]
        numbers = groups.numbers
        totals = [*map(ranked.tops.__getitem__, numbers)]
        if self._added is not None:
            totals = [*map(add, totals, self._added)]
        highest = max(totals)
        if totals.count(highest) == 1:
            numbers = [numbers[totals.index(highest)]]
        else:
            numbers = [n for n, total in zip(numbers, totals, strict=True) if total == highest]
        self._best = ranked.best(numbers)

    def best(self) -> RowSet | RowUnion:
        """The rows that share the highest total, ascending."""
        return self._best

    def top(self, count: int, selected: int) -> list[int]:
        """The rows with the highest totals: the selected one, which is one of them, and others."""
        if len(self._best) >= count:
            found = [selected, *row_sets.first(self._best, count)]
        else:
            found, added = [selected], self._added or [0] * len(self._groups)
            for rows in self._ranked.descending(zip(self._groups.numbers, added, strict=True)):
                found += row_sets.first(rows, count)
                if len(found) > count:
                    break
        return [*dict.fromkeys(found)][:count]  # The selected one is there twice.

    @property
    def totals(self) -> Scores:
        """The totals of all rows, -1 where a row does not fit; for readers of every row."""
        by_group = np.full(len(self._ranked.groups), np.iinfo(np.int64).min // 2)
        by_group[self._groups.numbers] = self._added or 0
        before = self._scored.totals
        totals = np.maximum(before + by_group.take(self._ranked.groups.group_of), -1)
        return np.where(before < 0, -1, totals)

    def total(self, row: int) -> int:
        """The total of a row that fits."""
        total = self._scored.totals.item(row)
        return total if self._added is None else total + self._added[self._position(row)]

    def scores(self, row: int) -> dict[str, int]:
        """The weighted score per plugin of a row that fits."""
        if not self._parts:
            return self._scored.parts.of(row)
        at = self._position(row)
        weighted = {name: scores[at] for name, scores in self._parts}
        return self._scored.parts.of_with(row, weighted)

    def kept(self, rows: Sequence[int]) -> list[Any]:
        """What a reader derived from the scores of rows and kept; None where these changed."""
        if not self._parts:
            return self._scored.kept(rows)
        get, at, group_of = self._ranked.derived.get, self._groups.at, self._ranked.groups.group_of
        given, found = self._given, []
        for row in rows:
            added, derived = get(row, NOTHING_KEPT)
            found.append(derived if added == given[at[group_of.item(row)]] else None)
        return found

    def keep(self, row: int, derived: Any) -> None:
        """Keep what is derived from the scores of a row."""
        if not self._parts:
            self._scored.keep(row, derived)
            return
        kept = self._ranked.derived
        if len(kept) > MOST_DERIVED:
            kept.clear()
        kept[row] = self._given[self._position(row)], derived

    def _position(self, row: int) -> int:
        return self._groups.at[self._ranked.groups.group_of.item(row)]


# What pre_filter plugins, filters and scores say of a pod.
ByGroup = tuple[PreFiltered, FeasibleRows, GroupedScores]


class GroupedViews:
    """See the module.

    `feasible` and `total` have cached filters and scores only. `filters` and `scores` are the other
    ones that do not skip the pod.
    """

    def __init__(
        self,
        profile: "Profile",
        feasible: FeasibleView,
        total: TotalView,
        by_resources: ResourceViews | None,
        filters: Sequence[IndexedFilter],
        scores: Sequence[UncachedScore],
    ) -> None:
        self._feasible = feasible
        self._total = total
        self._by_resources = by_resources
        self._filters = [(i, profile.require(p, "filter_groups")) for i, p in filters]
        self._scores = scores
        plugins = {plugin.name: plugin for _, plugin in filters}
        plugins.update({score.name: score.plugin for score in scores})
        self.names = plugins.keys()
        # Those that do not skip the pods.
        self._scoring = [*scores]
        self._keys_of = [profile.require(plugin, "group_keys") for plugin in plugins.values()]
        # What they returned, in the cycle with this state, and the groups that follow from it.
        self._keys: list[tuple[GroupKey, ...]] = []
        self._state: CycleState | None = None
        self._ranked: RankedGroups | None = None
        # The result of pre_filter plugins in that cycle, and as long as what it holds.
        self.pre: PreFiltered | None = None
        self.versions: Versions | None = None
        self._rows = FeasibleRows(feasible.names, ())
        # As long as only resources of rows change.
        self._repeated: RepeatedTotals | None = None
        self._nodes = UNREAD

    def restart(self) -> None:
        """Filters and scores are about to be evaluated otherwise; read all changes afterwards."""
        self._repeated = None

    def ask(self, state: CycleState, pod: Pod, pre: PreFiltered, versions: Versions | None) -> bool:
        """Find the groups, for all pods of the template while versions hold.

        Returns whether there are any.
        """
        self.versions, self._state, self._scoring = None, state, [*self._scores]
        keys: list[tuple[GroupKey, ...]] = []
        for method in self._keys_of:
            found = invoke.group_keys(method, state, pod)
            if found is None:
                return False
            keys.append(found)
        if self._ranked is None or keys != self._keys:
            self._refresh(state, pod)
            groups = RowGroups([*dict.fromkeys(chain(*keys))], state.table)
            self._ranked, self._keys = RankedGroups(groups, self._total), keys
        self.pre, self.versions = pre, versions
        return True

    def decide(
        self, state: CycleState, pod: Pod, meter: CallMeter | None, started: float
    ) -> ByGroup | None:
        """The results for a pod; None if rows have to be evaluated one by one.

        That is so if fewer than two rows are feasible, too.
        """
        ranked, known, pre = self._ranked, self._state, self.pre
        assert ranked is not None, "there are groups"
        assert known is not None
        assert pre is not None
        pre_filtered = 0.0 if meter is None else meter.now()
        if not self._refresh(state, pod):
            return None
        ranked.refresh()
        groups = self._filter(ranked, known, pod) if len(ranked.groups) <= MOST_GROUPS else None
        filtered = 0.0 if meter is None else meter.now()
        scored = None if groups is None else self._score(ranked, known, pod, groups)
        if scored is None:
            return None
        if meter is not None:
            meter.repeated(started, pre_filtered, filtered)
        return pre, self._rows, scored

    def _filter(self, ranked: RankedGroups, state: CycleState, pod: Pod) -> Groups | None:
        """The groups that fit; None if they have fewer than two rows."""
        groups, rows = ranked.feasible, self._rows
        count, rejected_by = self._feasible.count, self._feasible.rejected_by
        for index, method in self._filters:
            fits = invoke.filter_groups(method, state, pod, groups)
            if False in fits:
                groups = groups.where(fits)
                before, count = count, sum(groups.sizes)
                rejected_by = [*rejected_by, *[0] * (index + 1 - len(rejected_by))]
                rejected_by[index] += before - count
        rows.count, rows.rejected_by = count, rejected_by
        return groups if count >= 2 else None

    def _refresh(self, state: CycleState, pod: Pod) -> bool:
        """Bring the cached filters and scores up to date; returns whether they can be used."""
        feasible, total, nodes = self._feasible, self._total, state.table.node_changes.position
        repeated = self._repeated if self._nodes == nodes and feasible.is_current else None
        if repeated is not None and repeated.take_changes():
            return True
        self._repeated, self._nodes = None, nodes
        if self._by_resources is not None:
            self._by_resources.refresh()
        feasible.refresh(state, pod)
        total.refresh(state, pod)
        if feasible.has_errors or not total.is_valid or not self._can_filter():
            return False
        if self._by_resources is not None:
            self._repeated = RepeatedTotals.of(feasible, total, self._by_resources)
        return True

    def _can_filter(self) -> bool:
        """Whether it is known what filters of groups change.

        That is: which of all filters rejects a row first, and what other rows score.
        """
        if not self._filters:
            return True
        first = self._filters[0][0]
        are_last = all(view.codes is None for i, view in self._feasible.filters if i > first)
        return are_last and self._total.ignores_feasible

    def _score(
        self, ranked: RankedGroups, state: CycleState, pod: Pod, groups: Groups
    ) -> GroupedScores | None:
        """The scores of groups that fit; None if some are out of range."""
        parts = []
        for plugin in self._scoring:
            scores = plugin.of_groups(state, pod, groups)
            if scores is None:
                self._scoring = [other for other in self._scoring if other is not plugin]
            elif 0 <= min(scores) <= max(scores) <= BEST * plugin.weight:
                parts.append((plugin.name, scores))
            else:
                return None
        return GroupedScores(ranked, self._total, groups, parts)
