"""The constraints of a template, with views that count pods and nodes per domain.

Constraints that the pods state are parsed once per template. Those of a profile get their selector
from services and controllers, so they are parsed again when these change. The views are shared
through the placements, which drop views that are not used.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.pod_topology_spread import constraints
from moorage.plugins.pod_topology_spread.constraints import (
    HARD,
    HOSTNAME,
    DefaultSelector,
    SpreadConstraint,
    Stated,
)

EVERY_NODE = mp.Inclusion()
# Up to so many domains are handled one by one; more are handled as arrays.
FEW_DOMAINS = 32

# What the placements must not drop while it is in use.
Used = mp.DomainView | mp.RowView | mp.EligibleRows


class FeasibleDomains:
    """The number of domains of a topology key that have feasible nodes.

    It hardly ever changes from one pod to the next. So one feasible node of each domain is kept as
    a sample: while all samples are feasible, the number is the same.
    """

    __slots__ = ("_codes", "_nodes", "_samples")

    def __init__(self, nodes: mp.DomainSums) -> None:
        # All nodes of the cluster per domain, eligible for a constraint or not.
        self._nodes = nodes
        self._samples: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._codes = self._samples

    def count(self, feasible: mp.Mask) -> int:
        """The number of domains; nodes without the label are in the domain of the empty value."""
        nodes, samples = self._nodes, self._samples
        if nodes.absent == 0 and len(samples) == nodes.nonzero and self._are_feasible(feasible):
            return len(samples)
        return self._recount(feasible)

    def _are_feasible(self, feasible: mp.Mask) -> bool:
        samples, codes = self._samples, self._nodes.column.codes
        if len(samples) > FEW_DOMAINS:
            return bool(feasible[samples].all() and (codes[samples] == self._codes).all())
        both = zip(samples.tolist(), self._codes.tolist(), strict=True)
        return all(feasible.item(row) and codes.item(row) == code for row, code in both)

    def _recount(self, feasible: mp.Mask) -> int:
        column = self._nodes.column
        rows = np.flatnonzero(feasible)
        last_seen = np.full(len(column.values), -1)
        last_seen[column.codes[rows]] = rows
        self._codes = np.flatnonzero(last_seen >= 0)
        self._samples = last_seen[self._codes]
        empty = column.code_of.get("")
        merged = empty is not None and last_seen[0] >= 0 and last_seen[empty] >= 0
        return len(self._codes) - bool(merged)


@dataclass(frozen=True)
class Defaults:
    """The constraints of a profile for pods that state none."""

    stated: tuple[Stated, ...]
    # Under the system's own defaults a node without a topology label is not left out.
    require_all: bool

    @cached_property
    def actions(self) -> frozenset[str]:
        """The actions of these constraints."""
        return frozenset(each.when_unsatisfiable for each in self.stated)


@dataclass(slots=True)
class ConstraintViews:
    """A constraint, and the views that count for it."""

    constraint: SpreadConstraint
    eligibility: mp.EligibleRows
    # Nodes per domain: the eligible ones, and all.
    nodes: mp.DomainSums
    all_nodes: mp.DomainSums
    feasible_domains: FeasibleDomains
    # Whether pods are counted per node, not per domain (hostname).
    per_row: bool
    # Matching pods, per domain or per row; None if there can be none.
    pods: mp.DomainView | None = None
    pods_per_row: mp.RowView | None = None

    @property
    def grouping(self) -> mp.LabelColumn | mp.RowView | None:
        """What nodes of equal score agree in; None if all do."""
        return self.pods_per_row if self.per_row else self.nodes.column

    def used(self) -> list[Used]:
        """The views to keep."""
        views = (self.eligibility, self.pods, self.pods_per_row)
        return [view for view in views if view is not None]


@dataclass(frozen=True, slots=True, eq=False)
class ConstraintSet:
    """The constraints for one action."""

    constraints: tuple[SpreadConstraint, ...]
    require_all: bool = True
    per_row: bool = False

    def counted(self, placements: mp.Placements) -> list[ConstraintViews]:
        """The constraints with their views."""
        known: tuple[list[ConstraintViews], list[Used]] | None = placements.notes.get(self)
        if known is not None:
            placements.touch(*known[1])
            return known[0]
        found: list[ConstraintViews] = []
        used: list[Used] = []
        placements.note(self, (found, used))
        found += [self._views(each, placements) for each in self.constraints]
        used += [view for each in found for view in each.used()]
        return found

    def _views(self, constraint: SpreadConstraint, placements: mp.Placements) -> ConstraintViews:
        inclusion, key, clauses = constraint.inclusion, constraint.topology_key, constraint.clauses
        eligibility = placements.eligibility(inclusion)
        all_nodes = placements.nodes(EVERY_NODE, key)
        nodes, feasible_domains = eligibility.nodes(all_nodes.column), FeasibleDomains(all_nodes)
        per_row = self.per_row and key == HOSTNAME
        counted = ConstraintViews(
            constraint, eligibility, nodes, all_nodes, feasible_domains, per_row
        )
        if not clauses:
            return counted
        if per_row:
            counted.pods_per_row = placements.per_row(clauses, counts_terminating=False)
        else:
            counted.pods = placements.view(clauses, key, inclusion, counts_terminating=False)
        return counted


NO_CONSTRAINTS = ConstraintSet(())
# The skip key of pods that state constraints: it never changes.
STATED = "stated"


class TemplateConstraints:
    """The constraints of one template, by action."""

    def __init__(self, pod: mp.Pod, defaults: Defaults) -> None:
        self._pod = pod
        self._stated = pod.spec.topology_spread_constraints
        self._defaults = defaults
        self._selector = DefaultSelector(pod)
        self._groups: dict[str, ConstraintSet] = {}

    def stamp(self, cluster: mp.Cluster) -> Hashable:
        """A value that changes when constraints may appear or disappear."""
        return STATED if self._stated else self._selector.stamp(cluster)

    def group(self, action: str, cluster: mp.Cluster) -> ConstraintSet:
        """The constraints for an action; a selector that does not parse raises."""
        if not self._stated:
            if action not in self._defaults.actions:
                return NO_CONSTRAINTS
            if self._selector.refresh(cluster):
                self._groups.clear()
        group = self._groups.get(action)
        if group is None:
            group = self._groups[action] = self._parse(action)
        return group

    def _parse(self, action: str) -> ConstraintSet:
        stated, selector, require_all = self._stated, None, True
        if not stated:
            stated, selector = self._defaults.stated, self._selector.current
            require_all = self._defaults.require_all
            if selector.is_empty:
                return NO_CONSTRAINTS
        parsed = constraints.parse(
            self._pod, stated, action, selector=selector, require_all=require_all
        )
        return ConstraintSet(parsed, require_all, per_row=action != HARD)
