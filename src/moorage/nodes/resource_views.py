"""What is derived from the resource columns: float arrays to calculate with, and lower bounds.

Each is brought up to date when it is read, because most pods are of a template that has been scored
before and read none of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from moorage.api.requests import PODS
from moorage.nodes.changes import FEW_ROWS, Cursor, RowLog
from moorage.nodes.interning import Mask
from moorage.nodes.resources import ZEROS, Floats, Ints, ResourceColumns, Zeros

if TYPE_CHECKING:
    from moorage.nodes.table import NodeTable

# The number of resources with a kept bound.
MOST_BOUNDS = 16
UNBOUNDED = (1 << 63) - 1

# Resources, each with whether a pod without a request counts with a default.
CountedResources = tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Allocatable:
    """What nodes have allocatable of several resources; a line for each resource."""

    amounts: Floats
    # The same to divide by: 1 where a node has nothing, infinite where there is no node.
    divisors: Floats
    # The largest amount on any node of the cluster, of any of the resources.
    largest: int
    # Whether every node of the cluster has some of each.
    by_all: bool

    @classmethod
    def of(
        cls, columns: ResourceColumns, resources: tuple[str, ...], active: Mask
    ) -> "Allocatable":
        """From the columns of a table."""
        amounts = np.stack([columns[resource] for resource in resources])
        return cls(
            amounts.astype(np.float64),
            np.where(active, np.maximum(amounts, 1), np.inf),
            int(amounts.max(initial=1)),
            not (active & (amounts <= 0)).any(),
        )

    def at(self, index: Any) -> "Allocatable":
        """The same for some rows only."""
        amounts, divisors = self.amounts[:, index], self.divisors[:, index]
        return Allocatable(amounts, divisors, self.largest, self.by_all)


Amounts = list[int] | Zeros


@dataclass(slots=True)
class FloatLines:
    """What pods request of several resources, or what they leave free, as lines of one array."""

    _cursor: Cursor[int]
    _resources: CountedResources
    _free: bool
    # All amounts are multiplied by it.
    _factor: int
    _values: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    # Requested and allocatable amounts by row, once every resource has a column.
    _sources: list[tuple[Amounts, Amounts | None]] | None = None

    def current(self, table: "NodeTable") -> Floats:
        """The array, up to date; callers must not write to it."""
        cursor = self._cursor
        if cursor.position != table.changes.position:
            rows = cursor.changed()
            if rows is None or len(rows) > table.capacity:
                self._values = np.empty((len(self._resources), table.capacity))
                self._sources = None
                self._write(table, slice(None))
            elif len(rows) > FEW_ROWS:
                self._write(table, np.array(rows, dtype=np.intp))
            else:
                self._write_few(table, rows)
            cursor.commit()
        return self._values

    def _write(self, table: "NodeTable", rows: slice | np.ndarray) -> None:
        for line, (resource, defaulted) in enumerate(self._resources):
            amounts = table.requested_of(defaulted=defaulted)[resource][rows]
            if self._free:
                amounts = table.allocatable_columns[resource][rows] - amounts
            self._values[line, rows] = amounts * self._factor

    def _write_few(self, table: "NodeTable", rows: Sequence[int]) -> None:
        values, factor = self._values, self._factor
        for line, (requested, allocatable) in enumerate(self._sources or self._find_sources(table)):
            for row in rows:
                amount = requested[row]
                if allocatable is not None:
                    amount = allocatable[row] - amount
                values[line, row] = amount * factor

    def _find_sources(self, table: "NodeTable") -> list[tuple[Amounts, Amounts | None]]:
        sources: list[tuple[Amounts, Amounts | None]] = []
        for resource, defaulted in self._resources:
            requested = table.requested_of(defaulted=defaulted).values.get(resource, ZEROS)
            allocatable = table.allocatable_columns.values.get(resource, ZEROS)
            sources.append((requested, allocatable if self._free else None))
        if not any(each is ZEROS for pair in sources for each in pair):
            self._sources = sources
        return sources


class FreeBounds:
    """For each resource a lower bound: no node has less of it free.

    A pod that requests no more than the bounds fits on every node, without a look at any. A bound
    follows the rows that changed. When the node with the least gets more, the bound is loose; it is
    computed again from all rows, but only when a request exceeds it.
    """

    def __init__(self, changes: RowLog) -> None:
        self._cursor = Cursor(changes)
        self._bounds: dict[tuple[str, bool], FreeBound] = {}

    def all_have(
        self, resources: CountedResources, amounts: Sequence[int], table: "NodeTable"
    ) -> bool:
        """Whether every node has so much free."""
        if self._cursor.position != table.changes.position:
            self._follow(table)
        for each, amount in zip(resources, amounts, strict=True):
            bound = self._bounds.get(each)
            if bound is None:
                if len(self._bounds) >= MOST_BOUNDS:
                    self._bounds.clear()
                bound = self._bounds[each] = FreeBound(*each)
                bound.compute(table)
            if amount > bound.least:
                if not bound.is_tight:
                    bound.compute(table)
                if amount > bound.least:
                    return False
        return True

    def _follow(self, table: "NodeTable") -> None:
        rows = self._cursor.changed()
        if rows is None or len(rows) > FEW_ROWS:
            self._bounds.clear()
            rows = ()
        for bound in self._bounds.values():
            requested, allocatable = bound.requested, bound.allocatable
            if requested is None or allocatable is None:
                bound.compute(table)
                continue
            for row in rows:
                free = allocatable[row] - requested[row]
                if free < bound.least and table.active_rows.item(row):
                    bound.least, bound.row = int(free), row
                elif row == bound.row:
                    bound.is_tight = False
        self._cursor.commit()


@dataclass(slots=True)
class FreeBound:
    """The least that any node has free of one resource."""

    resource: str
    defaulted: bool
    # No node has less; whether a node has exactly this, and which node has or had it.
    least: int = 0
    is_tight: bool = False
    row: int = -1
    # Amounts by row; None while the resource has no column.
    requested: list[int] | Ints | None = None
    allocatable: list[int] | None = None

    def compute(self, table: "NodeTable") -> None:
        """Compute the bound from all rows."""
        resource = self.resource
        if resource == PODS:  # Every pod takes one.
            requested = self.requested = table.pod_counts
        else:
            columns = table.requested_of(defaulted=self.defaulted)
            requested, self.requested = columns[resource], columns.values.get(resource)
        self.allocatable = table.allocatable_columns.values.get(resource)
        free = table.allocatable_columns[resource] - requested
        free = np.where(table.active_rows, free, UNBOUNDED)
        self.row = int(free.argmin())
        self.least = int(free[self.row])
        self.is_tight = True
