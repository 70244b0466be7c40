"""Rows: several rows of the node table, as plugins read them. TableSlice: a few of them.

The whole table has the same methods, so that the whole-cluster form of a plugin runs on all rows as
well as on the few that changed.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from moorage.api.devices import DeviceClass
from moorage.api.selectors import Requirement
from moorage.nodes.columns import Column, UsageColumn
from moorage.nodes.interning import Codes, Mask
from moorage.nodes.resource_views import Allocatable, CountedResources
from moorage.nodes.resources import Floats, Ints
from moorage.nodes.usage import HostPort
from moorage.nodes.volumes import Use

if TYPE_CHECKING:
    from moorage.nodes.table import NodeTable


class Rows:
    """Several rows, as plugins read them; every array has an entry per row."""

    __slots__ = ()

    _table: "NodeTable"
    _index: Any

    def __getitem__(self, column: Column | UsageColumn) -> NDArray[Any]:
        """A column that a plugin declared."""
        values: NDArray[Any]
        if isinstance(column, UsageColumn):
            values = self._table.usage_column(column)[..., self._index]
        else:
            values = self._table.column(column)[self._index]
        return values

    def __len__(self) -> int:
        return len(self.active)

    @property
    def active(self) -> Mask:
        """Rows that have a node."""
        active: Mask = self._table.active_rows[self._index]
        return active

    @property
    def served_by_devices(self) -> dict[str, DeviceClass]:
        """Extended resources that devices serve where a kubelet offers none."""
        return self._table.device_resources.classes

    @property
    def pod_count(self) -> Ints:
        """Number of pods on each node."""
        counts: Ints = self._table.pod_counts[self._index]
        return counts

    def allocatable(self, resource: str) -> Ints:
        """What each node has allocatable of a resource (cpu in milli, the rest in units)."""
        amounts: Ints = self._table.allocatable_columns[resource][self._index]
        return amounts

    def allocatable_floats(self, resources: tuple[str, ...]) -> Allocatable:
        """The same of several resources, as floats."""
        return self._table.allocatable_floats(resources).at(self._index)

    def requested(self, resource: str) -> Ints:
        """What each node's pods request of a resource."""
        amounts: Ints = self._table.requested_columns[resource][self._index]
        return amounts

    def nonzero_requested(self, resource: str) -> Ints:
        """As `requested`, with a default for containers that request no cpu or memory."""
        amounts: Ints = self._table.nonzero_columns[resource][self._index]
        return amounts

    def requested_floats(self, resources: CountedResources) -> Floats:
        """Either of the two for several resources, a line each, as floats; read only."""
        amounts: Floats = self._table.requested_floats(resources)[..., self._index]
        return amounts

    def free_floats(self, resources: CountedResources, factor: int = 1) -> Floats:
        """Allocatable minus requested, likewise, multiplied by a factor; read only."""
        amounts: Floats = self._table.free_floats(resources, factor)[..., self._index]
        return amounts

    def has_room(self, resources: CountedResources, amounts: Sequence[int]) -> bool:
        """Whether every node is known to have so much free; False means that it is not known.

        Of "pods", every pod takes one.
        """
        return False

    def all_of(self, mask: Mask) -> bool:
        """Whether a mask is true for every node; rows without a node do not matter."""
        return not (self.active > mask).any()

    @property
    def size(self) -> int:
        """Number of nodes in the whole cluster."""
        return self._table.node_count

    def meets(self, requirement: Requirement) -> Mask:
        """Which nodes' labels meet a requirement."""
        column = self._table.label(requirement.key)
        met: Mask = column.lookup(requirement)[column.codes[self._index]]
        return met

    def named(self, names: Iterable[str]) -> Mask:
        """Which nodes have one of these names."""
        rows = [row for name in names if (row := self._table.row_of.get(name)) is not None]
        return self._marked([rows])

    def per_taint_set(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values given per entry of `taint_sets`, as values per node."""
        spread: NDArray[Any] = values[self._table.taints.codes[self._index]]
        return spread

    @property
    def taint_sets(self) -> list[tuple[Any, ...]]:
        """The distinct sets of taints in the cluster."""
        return self._table.taints.values

    def domains(self, topology_key: str) -> Codes:
        """The domain of each node under a topology key, as a code; 0 where it has none."""
        codes: Codes = self._table.label(topology_key).codes[self._index]
        return codes

    def take(self, values: NDArray[Any]) -> NDArray[Any]:
        """These rows' entries of an array that has one for every row of the table."""
        entries: NDArray[Any] = values[self._index]
        return entries

    def conflicting(self, wanted: Iterable[HostPort]) -> Mask:
        """Which nodes hold a host port that conflicts with a wanted one."""
        return self._marked(rows for port in wanted for rows in self._table.ports.holders(port))

    def using(self, uses: Iterable[Use]) -> Mask:
        """Which nodes have a pod that uses one of these claims or disks."""
        return self._marked(self._table.volumes.rows(use) for use in uses)

    def holding(self, image: str) -> tuple[Mask, int, int]:
        """Which nodes hold an image, its size in bytes, and how many nodes hold it."""
        found = self._table.images.get(image)
        if found is None:
            return self._marked(()), 0, 0
        return self._marked([found.rows]), found.size, len(found.rows)

    def _marked(self, groups: Iterable[Iterable[int]]) -> Mask:
        marked = np.zeros(self._table.capacity, dtype=np.bool_)
        for rows in groups:
            marked[np.fromiter(rows, dtype=np.intp)] = True
        result: Mask = marked[self._index]
        return result


class TableSlice(Rows):
    """A few rows of the table, for computing only the rows that changed."""

    __slots__ = ("_index", "_table", "rows")

    def __init__(self, table: "NodeTable", rows: NDArray[np.intp]) -> None:
        self._table = table
        self._index = self.rows = rows
