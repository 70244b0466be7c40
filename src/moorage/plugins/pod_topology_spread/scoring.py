"""Points for spreading softly: the fewer of its kind around a node, the better; and 0 to 100."""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.pod_topology_spread.constraints import HOSTNAME
from moorage.plugins.pod_topology_spread.kinds import Kinds
from moorage.plugins.pod_topology_spread.spreading import Counted, Group

# The raw score of a node that lacks a topology label, where that leaves it out of account.
IGNORED = -1

# Added before cutting off, it rounds halves up and everything else to the nearest; with 0.5
# itself the sum could be rounded up to a whole number where it should not.
ALMOST_HALF = math.nextafter(0.5, 0.0)

# With more kinds of nodes than this it is quicker to look at all nodes than at the kinds.
MOST_KINDS = 128

Floats = NDArray[np.float64]


@lru_cache(maxsize=4096)
def weight_of(domains: int) -> float:
    """The more domains, the more a pod in one of them counts."""
    return math.log(domains + 2)


class SoftSpread:
    """What one constraint adds to a node's raw score."""

    __slots__ = ("_by_domain", "_everywhere", "_key", "_offset", "_per_row", "weight")

    def __init__(self, counted: Counted, weight: float, *, require_all: bool) -> None:
        asked = counted.constraint
        self.weight = weight
        self._key = asked.topology_key
        self._offset = float(asked.max_skew - 1)
        # Whether all nodes have the label; one that does not gets no points at all for this.
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

    def by_kind(self, size: int) -> list[float]:
        """For every kind of node that has the label: by domain, or by pods on the node."""
        if self._by_domain is not None:
            points: list[float] = self._by_domain.tolist()
            return points
        return [self._points(pods) for pods in range(size)]


class Points:
    """The raw scores of one cycle."""

    __slots__ = ("_counted", "_group", "_keys", "_table", "spreads")

    def __init__(self, group: Group, table: mp.NodeTable, feasible: mp.Mask) -> None:
        counted = group.counted(table.placements)
        self._group, self._counted, self._table = group, counted, table
        # The labels that some nodes lack, and are left out of account for it.
        lacking = [c.constraint.topology_key for c in counted if c.all_nodes.absent]
        self._keys = lacking if group.require_all else []
        rows = feasible & ~self._ignored(table) if self._keys else feasible
        self.spreads = []
        for each in counted:
            # By hostname it is nodes that count, and not names.
            by_hostname = each.constraint.topology_key == HOSTNAME
            size = int(np.count_nonzero(rows)) if by_hostname else each.reach.size(rows)
            self.spreads.append(SoftSpread(each, weight_of(size), require_all=group.require_all))

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
    def by_kind(self) -> mp.ScoresByGroup | None:
        """The same by kinds of nodes: what counts for each constraint, taken together.

        None if there are too many kinds for that to be of use, or nodes that lack a label.
        """
        kinds = self._kinds
        if kinds is None:
            return None
        points = [0.0]
        for spread, size in zip(self.spreads, kinds.sizes, strict=True):
            further = spread.by_kind(size)
            points = [before + more for before in points for more in further]
        scores = np.array([int(each + ALMOST_HALF) for each in points])
        return mp.ScoresByGroup(scores, kinds.rows, kinds.of_row)

    @property
    def _kinds(self) -> Kinds | None:
        counted, table = self._counted, self._table
        if any(each.all_nodes.absent for each in counted):
            return None
        placements = table.placements
        known: tuple[list[Counted], Kinds] | None = placements.held(self._group)
        if known is not None and known[0] is counted:
            kinds = known[1]
            kinds.refresh()
        else:
            kinds = Kinds([each.trait for each in counted], table)
            placements.hold(self._group, (counted, kinds))
        return kinds if len(kinds.rows) <= MOST_KINDS else None


def _in_domains(counted: Counted, *, require_all: bool) -> NDArray[np.int64]:
    """Pods per domain, as the score counts them."""
    pods = counted.pods
    if pods is None:
        return np.zeros_like(counted.nodes.sums)
    empty = pods.column.code_of.get("")
    if require_all or empty is None:
        return pods.sums
    # Nodes without the label are of one domain with those whose label is literally empty.
    counts = pods.sums.copy()
    counts[empty] += pods.absent
    return counts


class FewestBest(Struct, frozen=True):
    """The least gets 100, others in proportion to the most; who is ignored gets 0."""

    def summarize(self, feasible: mp.Scores) -> tuple[int, int]:
        """The least and the most of those that count."""
        if len(feasible) <= MOST_KINDS:
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
