"""What is derived from the resource columns: float arrays to calculate with, and lower bounds.

Each is brought up to date when it is read, because most pods are of a template that has been scored
before and read none of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from moorage.api.requests import PODS
from moorage.nodes.changes import FEW_ROWS, Cursor, RowLog
from moorage.nodes.interning import Mask
from moorage.nodes.resources import ZEROS, Floats, ResourceColumns, Zeros

if TYPE_CHECKING:
    from moorage.nodes.table import NodeTable

# The number of float arrays, and of resources with a bound, that are kept.
MOST_LINES = 16
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
    # 1 / divisors: to multiply is quicker, where the last bit does not matter.
    reciprocals: Floats
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
        divisors = np.where(active, np.maximum(amounts, 1), np.inf)
        return cls(
            amounts.astype(np.float64),
            divisors,
            1.0 / divisors,
            int(amounts.max(initial=1)),
            not (active & (amounts <= 0)).any(),
        )

    def at(self, index: Any) -> "Allocatable":
        """The same for some rows only."""
        amounts, divisors = self.amounts[:, index], self.divisors[:, index]
        reciprocals = self.reciprocals[:, index]
        return Allocatable(amounts, divisors, reciprocals, self.largest, self.by_all)


Amounts = list[int] | Zeros
# A line, the amounts that it is computed from (requested, and allocatable if it is what they leave
# free), and what these are multiplied by.
LineSource = tuple[Floats, Amounts, Amounts | None, int]


class FloatLines:
    """What pods request of several resources, or what they leave free, as lines of one array."""

    def __init__(
        self, table: "NodeTable", resources: CountedResources, *, free: bool, factor: int
    ) -> None:
        self._table = table
        self._resources = resources
        self._free = free
        # All amounts are multiplied by it.
        self._factor = factor
        self.values: Floats = np.empty((len(resources), table.capacity))
        self.write(slice(None))

    def write(self, rows: slice | np.ndarray) -> None:
        """Compute many rows again."""
        table = self._table
        for line, (resource, defaulted) in enumerate(self._resources):
            amounts = table.requested_of(defaulted=defaulted)[resource][rows]
            if self._free:
                amounts = table.allocatable_columns[resource][rows] - amounts
            # In floats: a pod may request so much that the product is no integer of 64 bits.
            self.values[line, rows] = amounts * float(self._factor)

    @property
    def sources(self) -> list[LineSource]:
        """What each line is computed from; ZEROS for a resource without a column."""
        table, sources = self._table, list[LineSource]()
        for line, (resource, defaulted) in zip(self.values, self._resources, strict=True):
            requested = table.requested_of(defaulted=defaulted).values.get(resource, ZEROS)
            allocatable: Amounts | None = None
            if self._free:
                allocatable = table.allocatable_columns.values.get(resource, ZEROS)
            sources.append((line, requested, allocatable, self._factor))
        return sources


class DerivedResources:
    """The float lines and the bounds of a table, with one cursor: one decision reads several.

    A bound says that no node has less of a resource free. A pod that requests no more than the
    bounds fits on every node, without a look at any. A bound follows the rows that changed. When
    the node with the least gets more, the bound is loose; it is computed again from all rows, but
    only when a request exceeds it.
    """

    def __init__(self, table: "NodeTable") -> None:
        self._table = table
        self._changes = table.changes
        self._forget()

    def __getstate__(self) -> tuple["NodeTable", RowLog]:
        return self._table, self._changes  # Lines of an array would be arrays of their own.

    def __setstate__(self, state: tuple["NodeTable", RowLog]) -> None:
        self._table, self._changes = state
        self._forget()

    def _forget(self) -> None:
        self._cursor = Cursor(self._changes)
        self._lines: dict[tuple[CountedResources, bool, int], FloatLines] = {}
        # Those of all lines, once every resource has a column.
        self._sources: list[LineSource] | None = None
        self._bounds: dict[tuple[str, bool], FreeBound] = {}
        # The same for the resources of a request.
        self._bounds_of: dict[CountedResources, list[FreeBound]] = {}
        # The same with the amounts they follow from, once every resource has a column.
        self._bound_sources: list[BoundSource] | None = None

    def lines(self, resources: CountedResources, *, free: bool, factor: int) -> Floats:
        """An array with a line for each resource; callers must not write to it."""
        if self._cursor.position != self._changes.position:
            self._follow()
        lines = self._lines.get((resources, free, factor))
        if lines is None:
            if len(self._lines) >= MOST_LINES:
                self._lines.clear()
            self._sources = None
            lines = FloatLines(self._table, resources, free=free, factor=factor)
            self._lines[resources, free, factor] = lines
        return lines.values

    def all_have(self, resources: CountedResources, amounts: Sequence[int]) -> bool:
        """Whether every node has so much free."""
        if self._cursor.position != self._changes.position:
            self._follow()
        bounds = self._bounds_of.get(resources) or self._find_bounds(resources)
        for bound, amount in zip(bounds, amounts, strict=True):
            if amount > bound.least:
                if not bound.is_tight:
                    bound.compute(self._table)
                if amount > bound.least:
                    return False
        return True

    def _find_bounds(self, resources: CountedResources) -> "list[FreeBound]":
        new = [each for each in resources if each not in self._bounds]
        if len(self._bounds) + len(new) > MOST_BOUNDS:
            self._drop_bounds()
            new = [*resources]
        if new:
            self._bounds |= {each: FreeBound.of(*each, self._table) for each in new}
            self._bound_sources = None
        found = self._bounds_of[resources] = [self._bounds[each] for each in resources]
        return found

    def _drop_bounds(self) -> None:
        self._bounds.clear()
        self._bounds_of.clear()
        self._bound_sources = None

    def _follow(self) -> None:
        cursor, log = self._cursor, self._changes
        if cursor.position + 1 == log.position and log.entries:
            self._follow_row(log.entries[-1])
            cursor.position = log.position
            return
        rows = cursor.changed()
        if rows is None or len(rows) > self._table.capacity:
            self._lines.clear()
            self._sources = None
            self._drop_bounds()
        elif len(rows) > FEW_ROWS:
            self._drop_bounds()
            changed = np.array(rows, dtype=np.intp)
            for lines in self._lines.values():
                lines.write(changed)
        else:
            for row in rows:
                self._follow_row(row)
        cursor.commit()

    def _follow_row(self, row: int) -> None:
        table = self._table
        for line, requested, allocatable, factor in self._sources or self._find_sources():
            amount = requested[row]
            line[row] = (amount if allocatable is None else allocatable[row] - amount) * factor
        for bound, used, offered in self._bound_sources or self._find_bound_sources():
            free = offered[row] - used[row]
            if free < bound.least and table.active_rows.item(row):
                bound.least, bound.row = free, row
            elif row == bound.row:
                bound.is_tight = False

    def _find_sources(self) -> list[LineSource]:
        sources = [source for lines in self._lines.values() for source in lines.sources]
        if all(
            requested is not ZEROS and offered is not ZEROS for _, requested, offered, _ in sources
        ):
            self._sources = sources
        return sources

    def _find_bound_sources(self) -> "list[BoundSource]":
        """The bounds that may follow a row; those without columns are computed from all rows."""
        sources = list[BoundSource]()
        for bound in self._bounds.values():
            if bound.requested is None or bound.allocatable is None:
                bound.compute(self._table)
            else:
                sources.append((bound, bound.requested, bound.allocatable))
        if len(sources) == len(self._bounds):
            self._bound_sources = sources
        return sources


class OverflowingResources(DerivedResources):
    """The same where sums may overflow: from arrays, in which they do."""

    def _follow_row(self, row: int) -> None:
        changed = np.array([row])
        for lines in self._lines.values():
            lines.write(changed)
        for bound in self._bounds.values():
            bound.compute(self._table)


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
    requested: Sequence[int] | None = None
    allocatable: list[int] | None = None

    @classmethod
    def of(cls, resource: str, defaulted: bool, table: "NodeTable") -> "FreeBound":  # noqa: FBT001
        """The bound of a resource."""
        bound = cls(resource, defaulted)
        bound.compute(table)
        return bound

    def compute(self, table: "NodeTable") -> None:
        """Compute the bound from all rows."""
        resource = self.resource
        if resource == PODS:  # Every pod takes one.
            requested = table.pod_counts
            self.requested = requested.data  # Of plain integers, unlike the array.
        else:
            columns = table.requested_of(defaulted=self.defaulted)
            requested, self.requested = columns[resource], columns.values.get(resource)
        self.allocatable = table.allocatable_columns.values.get(resource)
        free = table.allocatable_columns[resource] - requested
        free = np.where(table.active_rows, free, UNBOUNDED)
        self.row = int(free.argmin())
        self.least = int(free[self.row])
        self.is_tight = True


# A bound, what is requested by row, and what is allocatable.
BoundSource = tuple[FreeBound, Sequence[int], list[int]]
