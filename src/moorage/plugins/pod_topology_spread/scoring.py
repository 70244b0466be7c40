"""The score: the fewer matching pods in a node's domains, the better; normalised to 0 to 100."""

import math
from functools import lru_cache
from operator import add
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

# Up to so many scores are compared one by one.
FEW_SCORES = 128

Floats = NDArray[np.float64]


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


class SpreadScores:
    """The raw scores of one cycle."""

    __slots__ = ("_keys", "spreads")

    def __init__(self, group: ConstraintSet, table: mp.NodeTable, feasible: mp.Mask) -> None:
        counted = group.counted(table.placements)
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


class GroupedSpread:
    """The raw scores of groups of nodes; only pods may come and go meanwhile."""

    __slots__ = ("_counted", "_groups", "_ignored", "_require_all", "_version", "_weights")

    def __init__(self, group: ConstraintSet, table: mp.NodeTable) -> None:
        self._counted = group.counted(table.placements)
        self._require_all = group.require_all
        # What follows from the groups that have feasible nodes, as long as these are the same: the
        # groups that lack a required label, and the weights of constraints by domain.
        self._groups: mp.Groups | None = None
        self._version = 0
        self._ignored: list[bool] | None = None
        self._weights: list[float] = []

    @property
    def keys(self) -> tuple[mp.GroupKey, ...] | None:
        """What nodes with equal scores agree in: pods on the node by hostname, else the domain."""
        keys: list[mp.GroupKey] = []
        for each in self._counted:
            if each.per_row and each.all_nodes.absent:
                return None
            if (key := each.grouping) is not None:
                keys.append(key)
        return tuple(keys)

    def of(self, groups: mp.Groups) -> list[int]:
        """The raw scores; less is better."""
        if groups is not self._groups or groups.version != self._version:
            self._ignored = self._find_ignored(groups)
            self._weights = [self._weight(each, groups) for each in self._counted]
            self._groups, self._version = groups, groups.version
        points: list[float] | None = None
        for each, weight in zip(self._counted, self._weights, strict=True):
            more = self._points(each, weight, groups)
            points = more if points is None else [*map(add, points, more)]
        assert points is not None, "a pod without soft constraints is skipped"
        scores = [*map(int, map(ALMOST_HALF.__add__, points))]
        if self._ignored is None:
            return scores
        return [IGNORED if i else score for i, score in zip(self._ignored, scores, strict=True)]

    def _find_ignored(self, groups: mp.Groups) -> list[bool] | None:
        """Groups of nodes that lack a required label; None if there are none."""
        ignored: list[bool] | None = None
        for each in self._counted if self._require_all else ():
            if each.all_nodes.absent and not each.per_row:
                lacks = [domain == 0 for domain in groups.of(each.nodes.column)]
                both = zip(ignored or lacks, lacks, strict=True)
                ignored = [one or other for one, other in both]
        return ignored

    def _weight(self, counted: ConstraintViews, groups: mp.Groups) -> float:
        if counted.per_row:
            return 0.0  # It depends on the number of nodes, which changes more often.
        column = counted.nodes.column
        return weight_of(_domains(self._counting(groups.of(column)), column))

    def _points(self, counted: ConstraintViews, weight: float, groups: mp.Groups) -> list[float]:
        """For one constraint: by domain or, for the hostname, by the pods on a node."""
        offset, pods = float(counted.constraint.max_skew - 1), counted.pods_per_row
        if not counted.per_row:
            in_domains = _in_domains(counted, require_all=self._require_all)
            by_domain = (in_domains * weight + offset).tolist()
            by_domain[0] = 0.0
            return [*map(by_domain.__getitem__, groups.of(counted.nodes.column))]
        if pods is None:
            return [offset] * len(groups)
        weight = weight_of(sum(self._counting(groups.sizes)))
        return [count * weight + offset for count in groups.of(pods)]

    def _counting(self, values: list[int]) -> list[int]:
        if self._ignored is None:
            return values
        return [value for value, i in zip(values, self._ignored, strict=True) if not i]


def _domains(codes: list[int], column: mp.LabelColumn) -> int:
    """The number of domains; nodes without the label are in the domain of the empty value."""
    found = set(codes)
    return len(found) - (0 in found and column.code_of.get("") in found)


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
        if len(feasible) <= FEW_SCORES:
            counting = feasible.tolist()
            if IGNORED in counting:
                counting = [raw for raw in counting if raw != IGNORED]
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
