"""ResourceTable: what nodes have allocatable and what their pods request, for many rows at once.

`ResourceRows` is the interface to some rows, `ResourceTable` has the arrays of all rows.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from moorage.nodes.changes import Cursor, RowLog
from moorage.nodes.interning import Mask
from moorage.nodes.resource_views import Allocatable, CountedResources, FloatLines, FreeBounds
from moorage.nodes.resources import Floats, Ints, ResourceColumns

# The number of float arrays that are kept.
MOST_LINES = 16


class ResourceRows:
    """Amounts of several rows, as plugins read them; every array has an entry per row."""

    __slots__ = ()

    _resources: "ResourceTable"
    _index: Any

    def __len__(self) -> int:
        return len(self.active)

    @property
    def active(self) -> Mask:
        """Rows that have a node."""
        active: Mask = self._resources.active_rows[self._index]
        return active

    @property
    def pod_count(self) -> Ints:
        """Number of pods on each node."""
        counts: Ints = self._resources.pod_counts[self._index]
        return counts

    def allocatable(self, resource: str) -> Ints:
        """What each node has allocatable of a resource (cpu in milli, the rest in units)."""
        amounts: Ints = self._resources.allocatable_columns[resource][self._index]
        return amounts

    def allocatable_floats(self, resources: tuple[str, ...]) -> Allocatable:
        """The same of several resources, as floats."""
        return self._resources.allocatable_floats(resources).at(self._index)

    def requested(self, resource: str) -> Ints:
        """What each node's pods request of a resource."""
        amounts: Ints = self._resources.requested_columns[resource][self._index]
        return amounts

    def nonzero_requested(self, resource: str) -> Ints:
        """As `requested`, with a default for containers that request no cpu or memory."""
        amounts: Ints = self._resources.nonzero_columns[resource][self._index]
        return amounts

    def requested_floats(self, resources: CountedResources) -> Floats:
        """Either of the two for several resources, a line each, as floats; read only."""
        amounts: Floats = self._resources.requested_floats(resources)[..., self._index]
        return amounts

    def free_floats(self, resources: CountedResources, factor: int = 1) -> Floats:
        """Allocatable minus requested, likewise, multiplied by a factor; read only."""
        amounts: Floats = self._resources.free_floats(resources, factor)[..., self._index]
        return amounts

    def has_room(self, resources: CountedResources, amounts: Sequence[int]) -> bool:
        """Whether every node is known to have so much free; False means that it is not known.

        Of "pods", every pod takes one.
        """
        return False


class ResourceTable(ResourceRows):
    """The amounts of all rows, and a log of changed rows."""

    def __init__(self, capacity: int) -> None:
        self._resources = self
        self._index = slice(None)
        self.capacity = capacity
        self.active_rows: Mask = np.zeros(capacity, dtype=np.bool_)
        self.pod_counts: Ints = np.zeros(capacity, dtype=np.int64)
        self.allocatable_columns = ResourceColumns(capacity)
        self.requested_columns = ResourceColumns(capacity)
        self.nonzero_columns = ResourceColumns(capacity)
        self.changes = RowLog()
        self._lines: dict[tuple[CountedResources, bool, int], FloatLines] = {}
        self._bounds = FreeBounds(self.changes)
        self._allocatable: dict[tuple[str, ...], Allocatable] = {}

    def __len__(self) -> int:
        return self.capacity

    def allocatable_floats(self, resources: tuple[str, ...]) -> Allocatable:
        """Allocatable amounts of several resources; kept until a node changes."""
        found = self._allocatable.get(resources)
        if found is None:
            found = Allocatable.of(self.allocatable_columns, resources, self.active_rows)
            self._allocatable[resources] = found
        return found

    def requested_floats(self, resources: CountedResources) -> Floats:
        return self._lines_of(resources, free=False, factor=1).current(self)

    def free_floats(self, resources: CountedResources, factor: int = 1) -> Floats:
        return self._lines_of(resources, free=True, factor=factor).current(self)

    def _lines_of(self, resources: CountedResources, *, free: bool, factor: int) -> FloatLines:
        lines = self._lines.get((resources, free, factor))
        if lines is None:
            if len(self._lines) >= MOST_LINES:
                self._lines.clear()
            lines = FloatLines(Cursor(self.changes), resources, free, factor)
            self._lines[resources, free, factor] = lines
        return lines

    def has_room(self, resources: CountedResources, amounts: Sequence[int]) -> bool:
        return self._bounds.all_have(resources, amounts, self)

    def requested_of(self, *, defaulted: bool) -> ResourceColumns:
        """The requests, or with defaults for containers that request no cpu or memory."""
        return self.nonzero_columns if defaulted else self.requested_columns

    def _grow(self, capacity: int) -> None:
        more = capacity - self.capacity
        self.active_rows = np.pad(self.active_rows, (0, more))
        self.pod_counts = np.pad(self.pod_counts, (0, more))
        for resources in (self.allocatable_columns, self.requested_columns, self.nonzero_columns):
            resources.grow(capacity)
        self._allocatable.clear()
        self.capacity = capacity
        # Arrays that readers keep per row have the wrong length now.
        self.changes.forget()
