"""The score: the fewer matching pods in a node's domains, the better; normalised to 0 to 100."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.pod_topology_spread.constraints import HOSTNAME
from moorage.plugins.pod_topology_spread.views import ConstraintSet, ConstraintViews

# The raw score of a node that lacks a topology label, where all labels are required.
IGNORED = -1

# Added before cutting off, it rounds halves up and everything else to the nearest; with 0.5
# itself the sum could be rounded up to a whole number where it should not.
ALMOST_HALF = math.nextafter(0.5, 0.0)

# With more groups of nodes than this, scoring all nodes is faster than scoring groups.
MOST_GROUPS = 128

Floats = NDArray[np.float64]
# What divides nodes into groups for a constraint: domains, pods per row, or nothing.
Grouping = mp.LabelColumn | mp.RowView | None


@lru_cache(maxsize=4096)
def weight_of(domains: int) -> float:
    """The weight of a pod in one of so many domains, as in Kubernetes."""
    return math.log(domains + 2)


class ConstraintScore:
    """What one constraint adds to a node's raw score."""

    __slots__ = ("_by_domain", "_everywhere", "_key", "_offset", "_per_row", "weight")

    def __init__(self, counted: ConstraintViews, weight: float, *, require_all: bool) -> None:
        constraint = counted.constraint
        self.weight = weight
        self._key = constraint.topology_key
        self._offset = float(constraint.max_skew - 1)
        # Whether all nodes have the label; a node without it gets no points.
        self._everywhere = counted.all_nodes.absent == 0
        # Pods on this very node, for the hostname; pods in its domain, for any other key.
        self._per_row = counted.pods_per_row
        self._by_domain: Floats | None = None
        if self._key != HOSTNAME:
            self._by_domain = self._points(_in_domains(counted, require_all=require_all))
            self._by_domain[0] = 0.0

    def _points(self, pods: Any) -> Any:
        return pods * self.weight + self._offset

    def of(self, node: mp.NodeInfo) -> float:
        """For one node."""
        code = int(node.table.label(self._key).codes[node.row])
        if code == 0:
            return 0.0
        if self._by_domain is not None:
            return float(self._by_domain[code])
        pods = 0 if self._per_row is None else int(self._per_row.counts[node.row])
        return float(self._points(pods))

    def of_all(self, rows: mp.Rows) -> Floats:
        """For many nodes."""
        codes = rows.domains(self._key)
        points: Floats
        if self._by_domain is not None:
            points = self._by_domain.take(codes)
        elif self._per_row is not None:
            points = self._points(rows.take(self._per_row.counts))
        else:
            points = np.full(len(rows), self._offset)
        return points if self._everywhere else points * (codes != 0)

    def by_group(self, size: int) -> list[float]:
        """For every group of nodes that has the label: by domain, or by pods on the node."""
        if self._by_domain is not None:
            points: list[float] = self._by_domain.tolist()
            return points
        return [self._points(pods) for pods in range(size)]


class NodeGroups:
    """Groups of nodes that get the same score from all constraints together.

    For a constraint by hostname nodes differ in their number of pods, for any other in their
    domain. A pod more moves one node to another group. There are few groups even where there are
    many nodes.
    """

    def __init__(self, groupings: Sequence[Grouping], table: mp.NodeTable) -> None:
        self._groupings = groupings
        self._table = table
        self._nodes = mp.Cursor(table.node_changes)
        views = [grouping for grouping in groupings if isinstance(grouping, mp.RowView)]
        self._cursors = [mp.Cursor(view.moved) for view in views]
        self._assign_all()

    def _assign_all(self) -> None:
        """Assign all rows to groups."""
        for cursor in (self._nodes, *self._cursors):
            cursor.changed()
            cursor.commit()
        # How many values each grouping has; how many rows each group has; the group of each row.
        self.sizes = self._now_sizes()
        self.group_of: NDArray[np.intp] = np.zeros(self._table.capacity, dtype=np.intp)
        for grouping, size in zip(self._groupings, self.sizes, strict=True):
            self.group_of *= size
            if isinstance(grouping, mp.RowView):
                self.group_of += grouping.counts
            elif grouping is not None:
                self.group_of += grouping.codes
        self.row_counts: NDArray[np.int64] = np.bincount(
            self.group_of, minlength=math.prod(self.sizes)
        )

    def _now_sizes(self) -> list[int]:
        return [_size(grouping) for grouping in self._groupings]

    def refresh(self) -> None:
        """Assign the rows whose number of pods changed; all rows if a node changed."""
        moved = self._moved()
        if moved is None or len(moved) > mp.FEW_ROWS:
            self._assign_all()
            return
        for row in moved:
            group = 0
            for grouping, size in zip(self._groupings, self.sizes, strict=True):
                group *= size
                if isinstance(grouping, mp.RowView):
                    group += grouping.counts.item(row)
                elif grouping is not None:
                    group += grouping.codes.item(row)
            self.row_counts[self.group_of.item(row)] -= 1
            self.row_counts[group] += 1
            self.group_of[row] = group
        for cursor in self._cursors:
            cursor.commit()

    def _moved(self) -> set[int] | None:
        """The rows to assign again; None for all."""
        if not self._nodes.is_current or self.sizes != self._now_sizes():
            return None
        moved: set[int] = set()
        for cursor in self._cursors:
            rows = cursor.changed()
            if rows is None:
                return None
            moved.update(rows)
        return moved


def _size(grouping: Grouping) -> int:
    if isinstance(grouping, mp.RowView):
        return 1 << grouping.most.bit_length()  # With room for more pods.
    return 1 if grouping is None else len(grouping.values)


class SpreadScores:
    """The raw scores of one cycle."""

    __slots__ = ("_counted", "_group", "_keys", "_table", "spreads")

    def __init__(self, group: ConstraintSet, table: mp.NodeTable, feasible: mp.Mask) -> None:
        counted = group.counted(table.placements)
        self._group, self._counted, self._table = group, counted, table
        # The required labels that some nodes lack; such nodes are ignored.
        lacking = [c.constraint.topology_key for c in counted if c.all_nodes.absent]
        self._keys = lacking if group.require_all else []
        rows = feasible & ~self._ignored(table) if self._keys else feasible
        self.spreads = []
        for each in counted:
            # For the hostname key, nodes are counted, not distinct names.
            by_hostname = each.constraint.topology_key == HOSTNAME
            size = int(np.count_nonzero(rows)) if by_hostname else each.feasible_domains.count(rows)
            self.spreads.append(
                ConstraintScore(each, weight_of(size), require_all=group.require_all)
            )

    def _ignored(self, rows: mp.Rows) -> mp.Mask:
        ignored = np.zeros(len(rows), dtype=np.bool_)
        for key in self._keys:
            ignored |= rows.domains(key) == 0
        return ignored

    def of(self, node: mp.NodeInfo) -> int:
        """One node's raw score; less is better."""
        if any(key not in node.labels for key in self._keys):
            return IGNORED
        points = 0.0
        for spread in self.spreads:
            points += spread.of(node)
        return int(points + ALMOST_HALF)

    def of_all(self, rows: mp.Rows) -> mp.Scores:
        """Many nodes' raw scores."""
        points = self.spreads[0].of_all(rows)
        for spread in self.spreads[1:]:
            points = points + spread.of_all(rows)
        scores = (points + ALMOST_HALF).astype(np.int64)
        if self._keys:
            scores[self._ignored(rows)] = IGNORED
        return scores

    @property
    def by_group(self) -> mp.ScoresByGroup | None:
        """Raw scores by groups of nodes; None with too many groups, or nodes that lack a label."""
        groups = self._node_groups
        if groups is None:
            return None
        points = [0.0]
        for spread, size in zip(self.spreads, groups.sizes, strict=True):
            further = spread.by_group(size)
            points = [before + more for before in points for more in further]
        scores = np.array([int(each + ALMOST_HALF) for each in points])
        return mp.ScoresByGroup(scores, groups.row_counts, groups.group_of)

    @property
    def _node_groups(self) -> NodeGroups | None:
        counted, table = self._counted, self._table
        if any(each.all_nodes.absent for each in counted):
            return None
        placements = table.placements
        known: tuple[list[ConstraintViews], NodeGroups] | None = placements.held(self._group)
        if known is not None and known[0] is counted:
            groups = known[1]
            groups.refresh()
        else:
            groups = NodeGroups([each.grouping for each in counted], table)
            placements.hold(self._group, (counted, groups))
        return groups if len(groups.row_counts) <= MOST_GROUPS else None


def _in_domains(counted: ConstraintViews, *, require_all: bool) -> NDArray[np.int64]:
    """Pods per domain, as the score counts them."""
    pods = counted.pods
    if pods is None:
        return np.zeros_like(counted.nodes.sums)
    empty = pods.column.code_of.get("")
    if require_all or empty is None:
        return pods.sums
    # Nodes without the label are in one domain with those whose label value is empty.
    counts = pods.sums.copy()
    counts[empty] += pods.absent
    return counts


class FewestBest(Struct, frozen=True):
    """The least gets 100, others in proportion to the most; an ignored node gets 0."""

    def summarize(self, feasible: mp.Scores) -> tuple[int, int]:
        """The least and the most, without ignored nodes."""
        if len(feasible) <= MOST_GROUPS:
            counting = [raw for raw in feasible.tolist() if raw != IGNORED]
            return min(counting, default=0), max(counting, default=0)
        least = int(feasible.min())
        if least == IGNORED:
            feasible = feasible[feasible != IGNORED]
            least = int(feasible.min()) if len(feasible) else 0
        return least, int(feasible.max(initial=0))

    def apply(self, raw: Any, summary: tuple[int, int]) -> Any:
        """One score or an array of them."""
        least, most = summary
        counts = raw != IGNORED
        if most == 0:
            return mp.BEST * counts
        return mp.BEST * (most + least - raw) // most * counts
