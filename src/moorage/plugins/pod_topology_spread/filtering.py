"""What the filter knows in one cycle: pods per domain for every hard constraint.

A what-if corrects the counts of a copy; the views beneath stay as they are.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.pod_topology_spread.spreading import Counted

MISSING_LABEL = mp.unresolvable(
    "node(s) didn't match pod topology spread constraints (missing required label)"
)
SKEWED = mp.unschedulable("node(s) didn't match pod topology spread constraints")

STATUSES = (mp.SUCCESS, MISSING_LABEL, SKEWED)

# The least of no domains at all.
NO_DOMAINS = 2**31 - 1

# Up to so many domains are looked at one by one.
FEW = 32


@dataclass(slots=True)
class Spread:
    """One constraint's counts."""

    counted: Counted
    # Label value -> pods more or less than were counted.
    corrections: dict[str, int] = field(default_factory=dict)
    _least: int | None = None

    def clone(self) -> "Spread":
        return Spread(self.counted, dict(self.corrections), self._least)

    def correct(self, other: mp.Pod, node: mp.NodeInfo, amount: int) -> None:
        """As if a pod came to (1), or left (-1), a node."""
        asked, row = self.counted.constraint, node.row
        # Unlike in counting, it is not looked at whether the pod is being deleted, or the
        # selector empty. Kubernetes does it so, and may count down below what it counted up.
        if self.counted.eligibility.mask[row] and asked.selector.matches(other.labels):
            value = node.labels[asked.topology_key]
            self.corrections[value] = self.corrections.get(value, 0) + amount
            self._least = None

    def at(self, value: str) -> int:
        """Pods in the domain of a label value."""
        pods = self.counted.pods
        return (0 if pods is None else pods.at(value)) + self.corrections.get(value, 0)

    @property
    def by_domain(self) -> NDArray[np.int64]:
        """Pods in every domain; not to be written to."""
        nodes, pods = self.counted.nodes, self.counted.pods
        if pods is not None and not self.corrections:
            return pods.sums
        counts = np.zeros_like(nodes.sums) if pods is None else pods.sums.copy()
        for value, amount in self.corrections.items():
            counts[nodes.column.code_of[value]] += amount
        return counts

    @property
    def too_full(self) -> mp.Mask | list[bool]:
        """The domains where the pod does not fit; nodes without the label are another matter."""
        counts, most = self.by_domain, self.most
        if len(counts) > FEW:
            skewed: mp.Mask = counts > most
            return skewed
        return [count > most for count in counts.tolist()]

    @property
    def most(self) -> int:
        """How many pods a domain may have for the pod to fit there."""
        asked = self.counted.constraint
        return asked.max_skew - asked.matches_itself + self.least

    @property
    def least(self) -> int:
        """Pods in the domain that has fewest; 0 if there are not as many domains as wanted."""
        if self._least is None:
            nodes = self.counted.nodes
            if nodes.nonzero < self.counted.constraint.min_domains:
                self._least = 0
            else:
                self._least = _least(self.by_domain, nodes.sums)
        return self._least


def _least(counts: NDArray[np.int64], nodes: NDArray[np.int64]) -> int:
    """The least count of a domain that has nodes."""
    if len(counts) > FEW:
        return int(counts[nodes > 0].min(initial=NO_DOMAINS))
    both = zip(counts.tolist(), nodes.tolist(), strict=True)
    return min([count for count, has_nodes in both if has_nodes], default=NO_DOMAINS)


# For every constraint what was counted, and the domains that were too full.
Told = list[tuple[Counted, mp.Mask | list[bool]]]


@dataclass(slots=True)
class Spreads:
    """All hard constraints of a pod, in order: the first that a node fails is reported."""

    namespace: str
    spreads: list[Spread]

    def clone(self) -> "Spreads":
        """A copy to correct."""
        return Spreads(self.namespace, [spread.clone() for spread in self.spreads])

    def correct(self, other: mp.Pod, node: mp.NodeInfo, amount: int) -> None:
        """As if a pod came to (1), or left (-1), a node."""
        if other.namespace == self.namespace:
            for spread in self.spreads:
                spread.correct(other, node, amount)

    def status(self, node: mp.NodeInfo) -> mp.Status:
        """The verdict on a node."""
        for spread in self.spreads:
            value = node.labels.get(spread.counted.constraint.topology_key)
            if value is None:
                return MISSING_LABEL
            if spread.at(value) > spread.most:
                return SKEWED
        return mp.SUCCESS

    def news(self, told: Told | None) -> tuple[Told, mp.RowArray | None]:
        """The rows in domains that became too full, or no longer are."""
        now = [(spread.counted, spread.too_full) for spread in self.spreads]
        if told is None or len(told) != len(now):
            return now, None
        turned: dict[mp.LabelColumn, dict[int, int]] = {}
        for (counted, full), (same, before) in zip(now, told, strict=True):
            if counted is not same or len(full) != len(before):
                return now, None
            if isinstance(full, list):
                domains = [] if full == before else _differing(full, before)
            else:
                domains = np.flatnonzero(full != before).tolist()
            if domains:
                turned.setdefault(counted.nodes.column, {}).update(dict.fromkeys(domains, 0))
        return now, mp.few_rows_in(turned)

    def verdicts(self, rows: mp.Rows) -> mp.Verdicts:
        """The verdicts on many rows: worked out per domain, then spread over the rows."""
        first: NDArray[np.int8] | None = None
        for spread in self.spreads:
            by_domain = np.array(spread.too_full).view(np.int8) * np.int8(2)
            by_domain[0] = 1
            codes = by_domain.take(rows.domains(spread.counted.constraint.topology_key))
            first = codes if first is None else np.where(first == 0, codes, first)
        assert first is not None, "a pod without hard constraints is not asked for verdicts"
        return mp.Verdicts(codes=first.astype(np.int64), status_of=STATUSES.__getitem__)


def _differing(one: Iterable[bool], other: Iterable[bool]) -> list[int]:
    return [i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
