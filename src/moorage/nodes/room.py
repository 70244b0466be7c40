"""Room: how little any node has left of a resource, without a look at every node.

For each resource that somebody asks about there is a bound: no node has less. It is kept up to
date for the rows that changed. When the node that has least gets more, another may be the one; all
are looked at again then, but not before it matters.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from moorage.api.requests import PODS
from moorage.nodes.lines import Counted
from moorage.nodes.resources import Ints

if TYPE_CHECKING:
    from moorage.nodes.amounts import AmountTable

# So many resources are kept an eye on.
MOST_BOUNDS = 16
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
                if len(self._bounds) >= MOST_BOUNDS:
                    self._bounds.clear()
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
            taken, offered = bound.taken, bound.offered
            if taken is None or offered is None:
                bound.look(table)
                continue
            for row in rows:
                left = offered[row] - taken[row]
                if left < bound.least and table.active_rows.item(row):
                    bound.least, bound.row = int(left), row
                elif row == bound.row:
                    bound.is_tight = False


class Bound:
    """The least that a node has left of one resource."""

    __slots__ = ("_defaulted", "_resource", "is_tight", "least", "offered", "row", "taken")

    def __init__(self, resource: str, defaulted: bool) -> None:  # noqa: FBT001 - as in Counted
        self._resource = resource
        self._defaulted = defaulted
        # No node has less; whether one has just this, and which has or had it.
        self.least = 0
        self.is_tight = False
        self.row = -1
        # What pods take and what nodes offer, row by row; None if there is nothing of it yet.
        self.taken: list[int] | Ints | None = None
        self.offered: list[int] | None = None

    def look(self, table: "AmountTable") -> None:
        """Look at every node."""
        resource = self._resource
        if resource == PODS:  # Every pod takes one.
            taken = self.taken = table.pod_counts
        else:
            columns = table.nonzero_columns if self._defaulted else table.requested_columns
            taken, self.taken = columns[resource], columns.values.get(resource)
        self.offered = table.allocatable_columns.values.get(resource)
        left = np.where(table.active_rows, table.allocatable_columns[resource] - taken, PLENTY)
        self.row = int(left.argmin())
        self.least = int(left[self.row])
        self.is_tight = True
