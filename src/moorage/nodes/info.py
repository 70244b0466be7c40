"""NodeInfo: one row as a node with its pods, for the per-node form of plugins.

A NodeInfo reads the live table. `copy()` returns an independent NodeCopy: pods can be added and
removed there without a change of the table, to test hypotheses.
"""

from collections.abc import Set
from typing import TYPE_CHECKING, Any

from moorage.api import quantity
from moorage.api.node import Node, Taint
from moorage.api.pod import Pod
from moorage.nodes.columns import Column
from moorage.nodes.images import Image
from moorage.nodes.resources import ZEROS
from moorage.nodes.usage import HostPort, Placed, Usage

if TYPE_CHECKING:
    from moorage.nodes.table import NodeTable

LARGEST = quantity.INT64_MAX


class NodeInfo:
    """A node, its pods and their usage."""

    __slots__ = ("row", "table")

    def __init__(self, table: "NodeTable", row: int) -> None:
        self.table = table
        self.row = row

    def __getitem__(self, column: Column) -> Any:
        """This node's value in a column."""
        return self.table.column(column).at(self.row)

    @property
    def node(self) -> Node:
        """The node object."""
        node = self.table.nodes[self.row]
        assert node is not None, "a row without a node is never shown to a plugin"
        return node

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def labels(self) -> dict[str, str]:
        return self.node.labels

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.node.spec.taints

    @property
    def pods(self) -> list[Pod]:
        """Pods bound to this node or assumed there."""
        return [placed.pod for placed in self.placed().values()]

    def placed(self) -> dict[str, Placed]:
        """Pods on this node with their usage, by UID."""
        return self.table.placed[self.row]

    @property
    def pod_count(self) -> int:
        return len(self.table.placed[self.row])

    def allocatable(self, resource: str) -> int:
        """What the node has allocatable of a resource (cpu in milli, the rest in units)."""
        return self.table.allocatable_columns.values.get(resource, ZEROS)[self.row]

    def requested(self, resource: str) -> int:
        """What its pods request of a resource."""
        return self.table.requested_columns.values.get(resource, ZEROS)[self.row]

    def amounts(self, resource: str) -> tuple[int, int]:
        """Both at once: allocatable and requested."""
        table, row = self.table, self.row
        allocatable = table.allocatable_columns.values.get(resource, ZEROS)
        return allocatable[row], table.requested_columns.values.get(resource, ZEROS)[row]

    def nonzero_requested(self, resource: str) -> int:
        """As `requested`, with a default for containers that request no cpu or memory."""
        return self.table.nonzero_columns.values.get(resource, ZEROS)[self.row]

    @property
    def used_ports(self) -> Set[HostPort]:
        """Host ports that its pods use, as (ip, protocol, port)."""
        return self.table.ports.of_row(self.row)

    def image(self, name: str) -> Image | None:
        """The image of that name, if this node has it."""
        image = self.table.images.get(name)
        return image if image is not None and self.row in image.rows else None

    def copy(self) -> "NodeCopy":
        """An independent copy of this node."""
        table, row = self.table, self.row
        placed, requested = table.placed[row], table.requested_columns.of_row(row)
        return NodeCopy(table, row, placed.copy(), requested, set(table.ports.of_row(row)))


class NodeCopy(NodeInfo):
    """A copy of a node, for hypotheses."""

    __slots__ = ("_placed", "_ports", "_requested")

    def __init__(
        self,
        table: "NodeTable",
        row: int,
        placed: dict[str, Placed],
        requested: dict[str, int],
        ports: set[HostPort],
    ) -> None:
        self.table = table
        self.row = row
        self._placed = placed
        self._requested = requested
        self._ports = ports

    def placed(self) -> dict[str, Placed]:
        return self._placed

    @property
    def pod_count(self) -> int:
        return len(self._placed)

    def requested(self, resource: str) -> int:
        return self._requested.get(resource, 0)

    def amounts(self, resource: str) -> tuple[int, int]:
        allocatable = self.table.allocatable_columns.values.get(resource, ZEROS)
        return allocatable[self.row], self._requested.get(resource, 0)

    def nonzero_requested(self, resource: str) -> int:
        # No filter reads it, so it is not kept up to date.
        amounts = [dict(placed.usage.nonzero).get(resource, 0) for placed in self._placed.values()]
        return quantity.wrapped(sum(amounts))

    @property
    def used_ports(self) -> Set[HostPort]:
        return self._ports

    def copy(self) -> "NodeCopy":
        """An independent copy of this copy."""
        placed, requested = self._placed.copy(), self._requested.copy()
        return NodeCopy(self.table, self.row, placed, requested, self._ports.copy())

    def add(self, pod: Pod, usage: Usage) -> None:
        """Add a pod."""
        self._placed[pod.metadata.uid] = Placed(pod, usage)
        requested = self._requested
        for name, amount in usage.requested:
            requested[name] = _sum(requested.get(name, 0), amount)
        if usage.ports:
            self._ports.update(usage.ports)

    def remove(self, *pods: Pod) -> None:
        """Remove pods."""
        placed, requested = self._placed, self._requested
        for pod in pods:
            usage = placed.pop(pod.metadata.uid).usage
            for name, amount in usage.requested:
                requested[name] = _sum(requested.get(name, 0), -amount)
            if usage.ports:
                self._ports.difference_update(usage.ports)


def _sum(one: int, other: int) -> int:
    """A sum in 64 bits; most often it is one anyway."""
    total = one + other
    return total if -LARGEST <= total <= LARGEST else quantity.wrapped(total)
