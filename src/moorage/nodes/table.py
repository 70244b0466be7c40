"""NodeTable: a row per node, an array per column, and a log of changed rows.

A row belongs to a node as long as the node or a pod on it is known; then it is free for another. A
row without a node object (pods arrived before their node, or outlived it) is excluded by `active`.
Arrays have the length of the capacity, so that a new node is one more changed row; only a growing
capacity replaces them.

The cache is the only writer. Plugins read, with the same methods on the whole table or on a
`TableSlice` of a few rows.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.api import quantity, requests
from moorage.api.meta import NodeName
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.nodes import resources
from moorage.nodes.changes import ChangeLog, RowLog
from moorage.nodes.columns import Column, ColumnValues, UsageColumn, UsageValues
from moorage.nodes.device_resources import DeviceResources
from moorage.nodes.images import Images
from moorage.nodes.info import NodeInfo
from moorage.nodes.interning import LabelColumn, Mask, TaintColumn
from moorage.nodes.placements import Placements
from moorage.nodes.ports import HostPorts
from moorage.nodes.resource_numbers import ResourceNumbers
from moorage.nodes.resource_views import (
    Allocatable,
    CountedResources,
    DerivedResources,
    OverflowingResources,
)
from moorage.nodes.resources import AmountChange, Floats, Ints, ResourceColumns
from moorage.nodes.rows import Rows, TableSlice
from moorage.nodes.usage import Placed, Usage
from moorage.nodes.volumes import VolumeUses
from moorage.nodes.zone_order import ZoneOrder

# Pods that come to a node (1) or leave it (-1).
PodLog = ChangeLog[tuple[Placed, int]]

SMALLEST = 64
NO_NAME = NodeName("")
# The number of usages whose changes are kept.
MOST_USAGES = 4096
# With so many times fewer pods than rows it takes longer to go through whole columns.
FEWER_PODS = 64


class NodeTable(Rows):
    """All rows."""

    def __init__(self, capacity: int = SMALLEST) -> None:
        self._table, self._index = self, slice(None)
        self.capacity = capacity
        self.active_rows: Mask = np.zeros(capacity, dtype=np.bool_)
        self.pod_counts: Ints = np.zeros(capacity, dtype=np.int64)
        self.allocatable_columns = ResourceColumns(capacity)
        self.requested_columns = ResourceColumns(capacity)
        self.nonzero_columns = ResourceColumns(capacity)
        self.changes = RowLog()
        self._derived = DerivedResources(self)
        self._allocatable: dict[tuple[str, ...], Allocatable] = {}
        # Whether any amount is so large that sums may overflow.
        self.has_large = False
        self.node_count = 0
        self.nodes: list[Node | None] = [None] * capacity
        self.placed: list[dict[str, Placed]] = [{} for _ in range(capacity)]
        self.row_of: dict[str, int] = {}
        self.names: list[NodeName] = [NO_NAME] * capacity
        self.resource_numbers = ResourceNumbers(self)
        # Which amounts change when a pod with some usage comes, and when it leaves.
        self._coming: dict[Usage, list[AmountChange]] = {}
        self._leaving: dict[Usage, list[AmountChange]] = {}
        self._free = list(range(capacity - 1, -1, -1))
        self._columns: dict[Column, ColumnValues] = {}
        self._usage_columns: dict[UsageColumn, UsageValues] = {}
        self._labels: dict[str, LabelColumn] = {}
        self.taints = TaintColumn(capacity, absent=())
        self.ports = HostPorts()
        self.volumes = VolumeUses()
        self.images = Images()
        self.zone_order = ZoneOrder()
        self.node_changes = RowLog()
        # Extended resources that devices serve where a kubelet offers none.
        self.device_resources = DeviceResources()
        self.placements = Placements(self)
        self._pod_changes: PodLog | None = None

    # Reading

    def __len__(self) -> int:
        return self.capacity

    def restart_readers(self) -> None:
        """Everything may have changed for those who read rows."""
        self.resource_numbers.restart()
        self._restart_logs()

    def _restart_logs(self) -> None:
        self.changes.forget()
        self.node_changes.forget()

    def pod_changes(self) -> PodLog:
        """Pods that come to nodes and leave them, from the first call on.

        A pod that changes leaves as it was and comes as it is, unless nothing changed but its
        status.
        """
        if self._pod_changes is None:
            self._pod_changes = PodLog()
        return self._pod_changes

    def allocatable_floats(self, resources: tuple[str, ...]) -> Allocatable:
        """Allocatable amounts of several resources; kept until a node changes."""
        found = self._allocatable.get(resources)
        if found is None:
            found = Allocatable.of(self.allocatable_columns, resources, self.active_rows)
            if self.has_large:  # Then floats are not exact.
                found = replace(found, largest=quantity.INT64_MAX)
            self._allocatable[resources] = found
        return found

    def requested_floats(self, resources: CountedResources) -> Floats:
        return self._derived.lines(resources, free=False, factor=1)

    def free_floats(self, resources: CountedResources, factor: int = 1) -> Floats:
        return self._derived.lines(resources, free=True, factor=factor)

    def has_room(self, resources: CountedResources, amounts: Sequence[int]) -> bool:
        return self._derived.all_have(resources, amounts)

    def requested_of(self, *, defaulted: bool) -> ResourceColumns:
        """The requests, or with defaults for containers that request no cpu or memory."""
        return self.nonzero_columns if defaulted else self.requested_columns

    def info(self, row: int) -> NodeInfo:
        """The NodeInfo of a row."""
        return NodeInfo(self, row)

    def name(self, row: int) -> str:
        """The name of the node in a row."""
        return self.names[row]

    def node(self, name: str) -> Node | None:
        """The node object of that name."""
        row = self.row_of.get(name)
        return None if row is None else self.nodes[row]

    def slice(self, rows: NDArray[np.intp]) -> TableSlice:
        """A few rows, with the same methods."""
        return TableSlice(self, rows)

    def column(self, column: Column) -> ColumnValues:
        """A plugin's column, built at its first use."""
        values = self._columns.get(column)
        if values is None:
            values = self._columns[column] = ColumnValues(column, self.capacity)
            values.read(self.nodes)
        return values

    def usage_column(self, column: UsageColumn) -> NDArray[Any]:
        """A plugin's usage column, up to date."""
        values = self._usage_columns.get(column)
        if values is None:
            values = self._usage_columns[column] = UsageValues(column, self.changes)
        return values.current(self)

    def label(self, key: str) -> LabelColumn:
        """The column of a label key, built at its first use."""
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = LabelColumn(self.capacity, key)
            for row, node in enumerate(self.nodes):
                if node is not None:
                    column.set(row, node)
        return column

    # Nodes

    def set_node(self, node: Node) -> None:
        """Add a node, or replace its object."""
        row = self._claim(node.name)
        old = self.nodes[row]
        if old is None:
            self.node_count += 1
            self.zone_order.add(node, row)
        else:
            self.zone_order.update(node, row)
        self.nodes[row] = node
        if old is None or differs(old, node):
            self._read(row, old, node)

    def remove_node(self, name: str) -> None:
        """Remove a node; its row stays while it has pods."""
        row = self.row_of[name]
        old = self.nodes[row]
        assert old is not None, f"node {name} is removed twice"
        self.nodes[row] = None
        self.node_count -= 1
        self.zone_order.remove(name)
        self._read(row, old, None)
        self._release(row)

    def _read(self, row: int, old: Node | None, new: Node | None) -> None:
        moves = old is None or new is None or moves_domains(old, new)
        if moves:
            self.placements.leave(row)
        self.active_rows[row] = new is not None
        allocatable = {} if new is None else requests.allocatable(new)
        self.allocatable_columns.replace_row(row, allocatable.items())
        self.resource_numbers.node_changed(row, allocatable)
        self._allocatable.clear()
        for values in self._columns.values():
            values.set(row, new)
        for label in self._labels.values():
            label.set(row, new)
        self.taints.set(row, new)
        self.images.set(row, old, new)
        if moves:
            self.placements.enter(row, new)
        self.node_changes.add(row)
        self.changes.add(row)

    # Pods

    def add_pod(self, node_name: str, pod: Pod, usage: Usage) -> None:
        """Add a pod to a node, which may not be known yet."""
        row = self.row_of.get(node_name)
        if row is None:
            row = self._claim(node_name)
        placed, uid = self.placed[row], pod.metadata.uid
        assert uid not in placed, f"pod {pod.key} is added twice to {node_name}"
        placed[uid] = Placed(pod, usage)
        if self._pod_changes is not None:
            self._pod_changes.add((placed[uid], 1))
        self.pod_counts[row] = len(placed)
        self._add_usage(row, usage, sign=1)
        if usage.ports:
            self.ports.add(row, usage.ports)
        if usage.has_volumes:
            self.volumes.add(row, pod)
        self.placements.add(row, pod, usage)

    def add_pods(self, pods: Sequence[Pod], usages: Sequence[Usage]) -> None:
        """Add pods to the nodes that they name; many are added to whole columns."""
        if len(pods) * FEWER_PODS < self.capacity:
            for pod, usage in zip(pods, usages, strict=True):
                self.add_pod(pod.spec.node_name, pod, usage)
            return
        rows: list[int] = []
        # By usage, and whether they terminate.
        groups: dict[tuple[Usage, bool], list[int]] = {}
        for pod, usage in zip(pods, usages, strict=True):
            meta, name = pod.metadata, pod.spec.node_name
            row = self.row_of.get(name)
            if row is None:
                row = self._claim(name)
            there, uid = self.placed[row], meta.uid
            assert uid not in there, f"pod {pod.key} is added twice to {name}"
            there[uid] = Placed(pod, usage)
            rows.append(row)
            group = (usage, meta.deletion_timestamp is not None)
            if group in groups:
                groups[group].append(row)
            else:
                groups[group] = [row]
            if usage.ports:
                self.ports.add(row, usage.ports)
            if usage.has_volumes:
                self.volumes.add(row, pod)
            if self._pod_changes is not None:
                self._pod_changes.add((there[uid], 1))
        self._add_usages(rows, usages)
        for (usage, terminating), of_usage in groups.items():
            self.placements.add_many(of_usage, usage, terminating=terminating)

    def _add_usages(self, rows: Sequence[int], usages: Sequence[Usage]) -> None:
        different = list(dict.fromkeys(usages))
        for usage in different:
            if usage.is_large:
                self.expect_large()
        index = {usage: i for i, usage in enumerate(different)}
        where = np.array(rows, dtype=np.intp)
        which = np.array([index[usage] for usage in usages], dtype=np.intp)
        np.add.at(self.pod_counts, where, 1)
        self.requested_columns.add_many(where, which, [each.requested for each in different])
        self.nonzero_columns.add_many(where, which, [each.nonzero for each in different])
        self.resource_numbers.pods_came(dict.fromkeys(rows))
        self.changes.extend(rows)

    def replace_pod(self, node_name: str, pod: Pod, usage: Usage, *, alike: bool = False) -> None:
        """Replace a pod on a node; if `alike`, its usage and its counted labels are the same."""
        meta = pod.metadata
        if not alike:
            self.remove_pod(node_name, meta.uid)
            self.add_pod(node_name, pod, usage)
            return
        row = self.row_of[node_name]
        placed = self.placed[row]
        before = placed[meta.uid]
        was = before.pod
        if was.metadata.deletion_timestamp != meta.deletion_timestamp:
            # The last in the order of coming; it uses as much of its node as before.
            del placed[meta.uid]
            placed[meta.uid] = now = Placed(pod, usage)
            self._terminate(row, before, now)
            return
        placed[meta.uid] = Placed(pod, usage)
        before_status, status = was.status, pod.status
        if before_status is not status and (
            before_status.phase != status.phase or before_status.start_time != status.start_time
        ):
            self.changes.add(row)

    def _terminate(self, row: int, before: Placed, now: Placed) -> None:
        """Count a pod of a row as terminating, or not any more."""
        if self._pod_changes is not None:
            self._pod_changes.add((before, -1))
            self._pod_changes.add((now, 1))
        terminating = now.pod.metadata.deletion_timestamp is not None
        if terminating != (before.pod.metadata.deletion_timestamp is not None):
            self.placements.set_terminating(row, before.usage, terminating=terminating)
        self.changes.add(row)

    def remove_pod(self, node_name: str, uid: str) -> None:
        """Remove a pod from a node."""
        row = self.row_of[node_name]
        there = self.placed[row]
        placed = there.pop(uid)
        if self._pod_changes is not None:
            self._pod_changes.add((placed, -1))
        usage = placed.usage
        self.pod_counts[row] = len(there)
        self._add_usage(row, usage, sign=-1)
        self.ports.remove(row, usage.ports)
        if usage.has_volumes:
            self.volumes.remove(row, placed.pod)
        self.placements.add(row, placed.pod, usage, -1)
        self._release(row)

    def _add_usage(self, row: int, usage: Usage, *, sign: int) -> None:
        known = self._coming if sign > 0 else self._leaving
        resources.add_to_row(row, known.get(usage) or self._find_changes(usage, known))
        self.resource_numbers.pod_changed(row, usage, sign)
        self.changes.add(row)

    def _find_changes(
        self, usage: Usage, known: dict[Usage, list[AmountChange]]
    ) -> list[AmountChange]:
        if len(known) >= MOST_USAGES:
            known.clear()
        if usage.is_large:
            self.expect_large()
        found = self.requested_columns.changes(usage.requested)
        found += self.nonzero_columns.changes(usage.nonzero)
        if known is self._leaving:
            found = resources.negative(found)
        known[usage] = found
        return found

    def expect_large(self) -> None:
        """From the first large amount on, what is derived from sums is computed in integers."""
        if not self.has_large:
            self.has_large = True
            self._derived = OverflowingResources(self)
            self._allocatable.clear()

    # Rows

    def reserve(self, capacity: int) -> None:
        """Grow to that many rows at once."""
        if capacity > self.capacity:
            self._grow(capacity)

    def _claim(self, name: str) -> int:
        row = self.row_of.get(name)
        if row is None:
            if not self._free:
                self._grow(self.capacity + max(self.capacity // 16, SMALLEST))
            row = self.row_of[name] = self._free.pop()
            self.names[row] = NodeName(name)
        return row

    def _release(self, row: int) -> None:
        if self.nodes[row] is None and not self.placed[row]:
            del self.row_of[self.names[row]]
            self.names[row] = NO_NAME
            self._free.append(row)

    def _grow(self, capacity: int) -> None:
        more = capacity - self.capacity
        self.nodes.extend([None] * more)
        self.placed.extend({} for _ in range(more))
        self.names.extend([NO_NAME] * more)
        self._free[:0] = range(capacity - 1, self.capacity - 1, -1)
        self.taints.grow(capacity)
        for label in self._labels.values():
            label.grow(capacity)
        for values in self._columns.values():
            values.grow(capacity)
        self.placements.grow(capacity)
        self.active_rows = np.pad(self.active_rows, (0, more))
        self.pod_counts = np.pad(self.pod_counts, (0, more))
        for columns in (self.allocatable_columns, self.requested_columns, self.nonzero_columns):
            columns.grow(capacity)
        self._coming.clear()
        self._leaving.clear()
        self._allocatable.clear()
        self.capacity = capacity
        self.resource_numbers.grow(capacity)
        # Arrays that readers keep per row have the wrong length now.
        self._restart_logs()


def differs(old: Node, new: Node) -> bool:
    """Whether an update changed anything that a plugin may read; a heartbeat does not."""
    return (
        old.labels != new.labels
        or old.spec != new.spec
        or old.status != new.status
        or old.metadata.annotations != new.metadata.annotations
    )


def moves_domains(old: Node, new: Node) -> bool:
    """Whether an update may move a node to other topology domains, or change its eligibility."""
    return old.labels != new.labels or old.spec.taints != new.spec.taints
