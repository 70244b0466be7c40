"""Room: how little any node has left of a resource, without a look at every node.

For each resource that somebody asks about there is a bound: no node has less. It is kept up to
date for the rows that changed. When the node that has least gets more, another may be the one; all
are looked at again then, but not before it matters.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from moorage.nodes.lines import Counted
from moorage.nodes.resources import Ints

if TYPE_CHECKING:
    from moorage.nodes.amounts import AmountTable

# Of this resource every pod takes one.
PODS = "pods"
# Up to so many rows are quicker looked at one by one.
FEW = 16
PLENTY = (1 << 63) - 1


class Room:
    """See the module."""

    __slots__ = ("_bounds", "_seen")

    def __init__(self) -> None:
        self._bounds: dict[tuple[str, bool], Bound] = {}
        self._seen = -1

    def is_for(self, resources: Counted, amounts: Sequence[int], table: "AmountTable") -> bool:
        """Whether every node has so much left."""
        position = table.changes.position
        if position != self._seen:
            self._follow(table)
            self._seen = position
        for each, amount in zip(resources, amounts, strict=True):
            bound = self._bounds.get(each)
            if bound is None:
                bound = self._bounds[each] = Bound(*each)
                bound.look(table)
            if amount > bound.least:
                if not bound.is_tight:
                    bound.look(table)
                if amount > bound.least:
                    return False
        return True

    def _follow(self, table: "AmountTable") -> None:
        rows = table.changes.since(self._seen)
        if rows is None or len(rows) > FEW:
            self._bounds.clear()
            return
        for bound in self._bounds.values():
            for row in rows:
                bound.follow(table, row)


class Bound:
    """The least that a node has left of one resource."""

    __slots__ = ("_defaulted", "_resource", "_row", "is_tight", "least")

    def __init__(self, resource: str, defaulted: bool) -> None:  # noqa: FBT001 - as in Counted
        self._resource = resource
        self._defaulted = defaulted
        # No node has less; whether one has just this, and which has or had it.
        self.least = 0
        self.is_tight = False
        self._row = -1

    def follow(self, table: "AmountTable", row: int) -> None:
        """A row changed."""
        resource = self._resource
        if resource == PODS:
            taken = table.pod_counts.item(row)
        elif self._defaulted:
            taken = table.nonzero_columns.at(resource, row)
        else:
            taken = table.requested_columns.at(resource, row)
        left = table.allocatable_columns.at(resource, row) - taken
        if left < self.least and table.active_rows.item(row):
            self.least, self._row = left, row
        elif row == self._row:
            self.is_tight = False

    def look(self, table: "AmountTable") -> None:
        """Look at every node."""
        left = np.where(table.active_rows, self._left(table), PLENTY)
        self._row = int(left.argmin())
        self.least = int(left[self._row])
        self.is_tight = True

    def _left(self, table: "AmountTable") -> Ints:
        resource, offered = self._resource, table.allocatable(self._resource)
        if resource == PODS:
            return offered - table.pod_count
        if self._defaulted:
            return offered - table.nonzero_requested(resource)
        return offered - table.requested(resource)
