"""Spreading: what pods of one template want spread, with the views that it takes to see it.

Constraints that the pods state are parsed once and kept with the template; those of a profile get
their selector from services and controllers, and so are looked up anew when these change. Views
are a note with the placements.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property

from moorage import plugin as mp
from moorage.plugins.pod_topology_spread import constraints
from moorage.plugins.pod_topology_spread.constraints import HARD, HOSTNAME, Constraint, Stated
from moorage.plugins.pod_topology_spread.default_selector import DefaultSelector
from moorage.plugins.pod_topology_spread.reach import Reach

EVERY_NODE = mp.Inclusion()

# What must not be dropped while it is in use.
Used = mp.DomainView | mp.RowView | mp.Eligibility


@dataclass(frozen=True)
class Defaults:
    """The constraints of a profile for pods that state none."""

    stated: tuple[Stated, ...]
    # Under the system's own defaults a node without a topology label is not left out.
    require_all: bool

    @cached_property
    def actions(self) -> frozenset[str]:
        """The actions that there are any for."""
        return frozenset(each.when_unsatisfiable for each in self.stated)


@dataclass(slots=True)
class Counted:
    """A constraint and where to read what it counts."""

    constraint: Constraint
    eligibility: mp.Eligibility
    # Nodes per domain: those that count, and all.
    nodes: mp.DomainSums
    all_nodes: mp.DomainSums
    reach: Reach
    # Whether nodes are looked at one by one, whatever domain they are in.
    per_row: bool
    # Pods that count, per domain and per row; None if it is always 0.
    pods: mp.DomainView | None = None
    pods_per_row: mp.RowView | None = None

    @property
    def trait(self) -> mp.LabelColumn | mp.RowView | None:
        """What the score tells nodes apart by."""
        return self.pods_per_row if self.per_row else self.nodes.column

    def used(self) -> Iterator[Used]:
        """Where to read it."""
        yield self.eligibility
        if self.pods is not None:
            yield self.pods
        if self.pods_per_row is not None:
            yield self.pods_per_row


class Group:
    """The constraints for one action, which are looked at together."""

    __slots__ = ("_per_row", "constraints", "require_all")

    def __init__(
        self, asked: tuple[Constraint, ...], *, require_all: bool = True, per_row: bool = False
    ) -> None:
        self.constraints = asked
        self.require_all = require_all
        self._per_row = per_row

    def counted(self, placements: mp.Placements) -> list[Counted]:
        """The constraints with their views."""
        known: tuple[list[Counted], list[Used]] | None = placements.notes.get(self)
        if known is not None:
            placements.touch(*known[1])
            return known[0]
        found: list[Counted] = []
        used: list[Used] = []
        placements.note(self, (found, used))
        found += [self._ask(each, placements) for each in self.constraints]
        used += [view for each in found for view in each.used()]
        return found

    def _ask(self, asked: Constraint, placements: mp.Placements) -> Counted:
        inclusion, key, clauses = asked.inclusion, asked.topology_key, asked.clauses
        eligibility = placements.eligibility(inclusion)
        all_nodes = placements.nodes(EVERY_NODE, key)
        nodes, reach = eligibility.nodes(all_nodes.column), Reach(all_nodes)
        per_row = self._per_row and key == HOSTNAME
        counted = Counted(asked, eligibility, nodes, all_nodes, reach, per_row)
        if not clauses:
            return counted
        if per_row:
            counted.pods_per_row = placements.per_row(clauses, counts_terminating=False)
        else:
            counted.pods = placements.view(clauses, key, inclusion, counts_terminating=False)
        return counted


NOBODY = Group(())
# Whether the pod itself states constraints never changes.
STATED = "stated"


class Spreading:
    """See the module."""

    def __init__(self, pod: mp.Pod, defaults: Defaults) -> None:
        self._pod = pod
        self._stated = pod.spec.topology_spread_constraints
        self._defaults = defaults
        self._default_actions = defaults.actions
        self._selector = DefaultSelector(pod)
        self._groups: dict[str, Group] = {}

    def stamp(self, cluster: mp.Cluster) -> Hashable:
        """What stays the same for as long as there are constraints or none."""
        return STATED if self._stated else self._selector.stamp(cluster)

    def group(self, action: str, cluster: mp.Cluster) -> Group:
        """The constraints for an action; a selector that does not parse raises."""
        if not self._stated:
            if action not in self._default_actions:
                return NOBODY
            if self._selector.refresh(cluster):
                self._groups.clear()
        group = self._groups.get(action)
        if group is None:
            group = self._groups[action] = (
                self._own(action) if self._stated else self._default(action)
            )
        return group

    def _own(self, action: str) -> Group:
        asked = constraints.parse(self._pod, self._stated, action)
        return Group(asked, per_row=action != HARD)

    def _default(self, action: str) -> Group:
        selector = self._selector.current
        if selector.is_empty:
            return NOBODY
        require_all = self._defaults.require_all
        stated = self._defaults.stated
        asked = constraints.parse(
            self._pod, stated, action, selector=selector, require_all=require_all
        )
        return Group(asked, require_all=require_all, per_row=action != HARD)
