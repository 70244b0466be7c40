"""The filter: pods per domain for every hard constraint, and the verdicts that follow.

A what-if corrects a copy of the counts; the views below do not change.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import and_

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.pod_topology_spread import constraints
from moorage.plugins.pod_topology_spread.constraints import HARD, SpreadConstraint, Stated
from moorage.plugins.pod_topology_spread.views import FEW_DOMAINS, ConstraintViews

MISSING_LABEL = mp.unresolvable(
    "node(s) didn't match pod topology spread constraints (missing required label)"
)
SKEWED = mp.unschedulable("node(s) didn't match pod topology spread constraints")

STATUSES = (mp.SUCCESS, MISSING_LABEL, SKEWED)

# The minimum over no domains.
NO_DOMAINS = 2**31 - 1


@dataclass(slots=True)
class DomainCounts:
    """The counts of one constraint."""

    counted: ConstraintViews
    # Label value -> pods added to, or removed from, what is counted.
    corrections: dict[str, int] = field(default_factory=dict)
    _least: int | None = None

    def clone(self) -> "DomainCounts":
        return DomainCounts(self.counted, dict(self.corrections), self._least)

    def correct(self, other: mp.Pod, node: mp.NodeInfo, amount: int) -> None:
        """As if a pod came to (1), or left (-1), a node."""
        constraint, row = self.counted.constraint, node.row
        # Unlike in counting, terminating pods and empty selectors are not excluded. Kubernetes
        # does the same, so its counts may fall below what was counted.
        if self.counted.eligibility.mask[row] and constraint.selector.matches(other.labels):
            value = node.labels[constraint.topology_key]
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
        """The domains where the pod does not fit; the first stands for nodes without the label."""
        counts, most = self.by_domain, self.most
        if len(counts) > FEW_DOMAINS:
            skewed: mp.Mask = counts > most
            return skewed
        return [count > most for count in counts.tolist()]

    @property
    def most(self) -> int:
        """The most pods that a domain may have for the pod to fit there."""
        constraint = self.counted.constraint
        return constraint.max_skew - constraint.matches_itself + self.least

    @property
    def least(self) -> int:
        """Pods in the domain with the fewest; 0 if there are fewer domains than `minDomains`."""
        if self._least is None:
            nodes = self.counted.nodes
            if nodes.nonzero < self.counted.constraint.min_domains:
                self._least = 0
            else:
                self._least = _least(self.by_domain, nodes.sums)
        return self._least


def _least(counts: NDArray[np.int64], nodes: NDArray[np.int64]) -> int:
    """The least count of a domain that has nodes."""
    if len(counts) > FEW_DOMAINS:
        return int(counts[nodes > 0].min(initial=NO_DOMAINS))
    both = zip(counts.tolist(), nodes.tolist(), strict=True)
    return min([count for count, has_nodes in both if has_nodes], default=NO_DOMAINS)


# What verdicts were computed from: each constraint's views, and the domains that were too full.
FilterToken = list[tuple[ConstraintViews, mp.Mask | list[bool]]]


@dataclass(slots=True)
class HardConstraints:
    """All hard constraints of a pod, in order: the first that a node fails is reported."""

    namespace: str
    spreads: list[DomainCounts]

    def clone(self) -> "HardConstraints":
        """A copy to correct."""
        return HardConstraints(self.namespace, [spread.clone() for spread in self.spreads])

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

    def changes(self, since: FilterToken | None) -> tuple[FilterToken, mp.RowArray | None]:
        """The rows in domains that became too full, or no longer are."""
        now = [(spread.counted, spread.too_full) for spread in self.spreads]
        if since is None or len(since) != len(now):
            return now, None
        changed: dict[mp.LabelColumn, dict[int, int]] = {}
        for (counted, full), (same, before) in zip(now, since, strict=True):
            if counted is not same or len(full) != len(before):
                return now, None
            if isinstance(full, list):
                domains = [] if full == before else _differing(full, before)
            else:
                domains = np.flatnonzero(full != before).tolist()
            if domains:
                changed.setdefault(counted.nodes.column, {}).update(dict.fromkeys(domains, 0))
        return now, mp.few_rows_in(changed)

    def verdicts(self, rows: mp.Rows) -> mp.Verdicts:
        """The verdicts on many rows: computed per domain, then copied to the rows."""
        first: NDArray[np.int8] | None = None
        for spread in self.spreads:
            by_domain = np.array(spread.too_full).view(np.int8) * np.int8(2)
            by_domain[0] = 1
            codes = by_domain.take(rows.domains(spread.counted.constraint.topology_key))
            first = codes if first is None else np.where(first == 0, codes, first)
        assert first is not None, "a pod without hard constraints is skipped"
        return mp.Verdicts(codes=first.astype(np.int64), status_of=STATUSES.__getitem__)


class GroupVerdicts:
    """Which groups of nodes fit all constraints; only pods may come and go meanwhile."""

    def __init__(self, counted: Iterable[ConstraintViews]) -> None:
        self._limits = [SkewLimit(each) for each in counted]

    @property
    def keys(self) -> tuple[mp.GroupKey, ...] | None:
        """What nodes with equal verdicts agree in: their domain, or the pods in it."""
        keys = [limit.key for limit in self._limits]
        return None if None in keys else tuple(keys)  # type: ignore[arg-type]  # no None

    def of(self, groups: mp.Groups) -> list[bool]:
        """The groups that fit."""
        first, *others = self._limits
        fits = first.fits(groups)
        for other in others:
            fits = [*map(and_, fits, other.fits(groups))]
        return fits


class SkewLimit:
    """Which groups of nodes fit one constraint."""

    __slots__ = ("_domains", "_few_domains", "_pods", "_skew", "key")

    def __init__(self, counted: ConstraintViews) -> None:
        constraint, nodes, self._pods = counted.constraint, counted.nodes, counted.pods
        # Domains, or pods in a domain if there are many; None if no pods are counted.
        self.key = nodes.column if nodes.column.has_few_values else self._pods
        self._skew = constraint.max_skew - constraint.matches_itself
        # Those with nodes; none if they are too few for the fewest pods to matter.
        enough = nodes.nonzero >= constraint.min_domains
        self._domains = np.flatnonzero(nodes.sums) if enough else None
        self._few_domains = [] if self._domains is None else self._domains.tolist()

    def fits(self, groups: mp.Groups) -> list[bool]:
        """The groups that have the label and are not too full."""
        key, pods, most = self.key, self._pods, self._skew
        if isinstance(key, mp.DomainView):
            if self._domains is not None:
                most += int(key.sums.take(self._domains).min(initial=NO_DOMAINS))
            return [0 <= count <= most for count in groups.of(key)]
        assert key is not None
        counts = [0] * len(key.values) if pods is None else pods.sums.tolist()
        if self._domains is not None:
            most += min(map(counts.__getitem__, self._few_domains), default=NO_DOMAINS)
        counts[0] = most + 1  # No node without the label fits.
        return [*map(most.__ge__, map(counts.__getitem__, groups.of(key)))]


def _differing(one: Iterable[bool], other: Iterable[bool]) -> list[int]:
    return [i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]


def explain(rejection: mp.Rejection) -> str:
    """The hard constraints that the pod states; those of a profile are not described."""
    stated = [
        each
        for each in rejection.pod.spec.topology_spread_constraints
        if each.when_unsatisfiable == HARD
    ]
    if rejection.reason in MISSING_LABEL.reasons:
        texts = [_missing(rejection, key) for key in dict.fromkeys(s.topology_key for s in stated)]
        found = [text for text in texts if text]
        return f"{'; '.join(found)}." if found else ""
    parsed = constraints.parse(rejection.pod, stated, HARD)
    return " ".join(_counts(rejection, *pair) for pair in zip(stated, parsed, strict=True))


def _missing(rejection: mp.Rejection, key: str) -> str:
    without = [node.name for node in rejection.nodes if key not in node.labels]
    if not without:
        return ""
    exists = any(key in node.labels for node in rejection.all_nodes)
    where = f"not on {mp.texts.listed(without, 60)}" if exists else "no node has it"
    return f"the pod is spread over the label {key}: {where}"


def _counts(rejection: mp.Rejection, stated: Stated, constraint: SpreadConstraint) -> str:
    key = stated.topology_key
    domains = {n.name: n.labels[key] for n in rejection.all_nodes if key in n.labels}
    counts = Counter(dict.fromkeys(domains.values(), 0))
    for node, pod in rejection.placed():
        matches = pod.namespace == constraint.namespace and constraint.selector.matches(pod.labels)
        if node in domains and matches:
            counts[domains[node]] += 1
    fewest_first = sorted(counts.items(), key=lambda item: (item[1], item[0]))
    there = [f"{number:,} in {domain}" for domain, number in fewest_first]
    return (
        f"between values of {key} the number of {mp.texts.pods_with(stated.label_selector)} may "
        f"differ by {stated.max_skew}; there are {mp.texts.listed(there, 60)}."
    )
