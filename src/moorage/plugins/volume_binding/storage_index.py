"""StorageIndex: volumes or capacities by group, by the labels of nodes, and counted for all nodes.

The index follows the cluster's change log, so a read costs what changed since the last read, not
the number of objects. Objects are indexed with the changes that are assumed for them.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.volume_binding import accessible_nodes
from moorage.plugins.volume_binding.accessible_nodes import AccessibleNodes, Label

Ints = NDArray[np.int64]
T = TypeVar("T", bound=mp.KubeObject)

MOST_CACHED = 64


class NodeCounts:
    """How many of some objects each node can access, updated as objects are added and removed.

    A thousand local disks are accessible from one node each, by its hostname. So objects are
    counted by label value where a single label decides; the count of a node is a look-up.
    """

    def __init__(self, cluster: mp.Cluster) -> None:
        self._table = cluster.table
        self._masks = accessible_nodes.masks(cluster)
        self._objects: dict[str, AccessibleNodes] = {}
        # Label key -> value -> number of objects, where that label decides; all others.
        self._by_label: dict[str, Counter[str]] = {}
        self._others: Counter[AccessibleNodes] = Counter()
        self._counts: Ints = np.zeros(0, dtype=np.int64)
        self._cursor = mp.Cursor(cluster.table.node_changes)

    def put(self, name: str, nodes: AccessibleNodes) -> None:
        """Add an object, or change its nodes."""
        self.drop(name)
        self._objects[name] = nodes
        self._count(nodes, 1)

    def drop(self, name: str) -> None:
        """Remove an object, if it is there."""
        nodes = self._objects.pop(name, None)
        if nodes is not None:
            self._count(nodes, -1)

    def counts(self) -> Ints:
        """For every row of the table, the number of objects; not to be written to."""
        table = self._table
        rows = self._cursor.changed()
        if rows is None or len(self._counts) != table.capacity or len(rows) > table.capacity // 8:
            self._counts = self._recount()
        else:
            for row in dict.fromkeys(rows):
                self._counts[row] = self._count_row(row)
        self._cursor.commit()
        return self._counts

    def _count(self, nodes: AccessibleNodes, change: int) -> None:
        key = nodes.only_key
        if key is None:
            self._others[nodes] += change
            if not self._others[nodes]:
                del self._others[nodes]
        else:
            values = self._by_label.setdefault(key, Counter())
            for _, value in nodes.labels or ():
                values[value] += change
                if not values[value]:
                    del values[value]
        if self._cursor.is_current and len(self._counts) == self._table.capacity:
            if key is None:
                self._counts[self._masks.of(nodes)] += change
            else:
                column = self._table.label(key)
                for _, value in nodes.labels or ():
                    code = column.code_of.get(value)
                    if code is not None:
                        self._counts[self._rows_with(column, value, code)] += change
        else:
            self._cursor.restart()  # Nodes have changed, so the next `counts` counts all rows.

    def _rows_with(self, column: mp.LabelColumn, value: str, code: int) -> int | mp.Mask:
        """The rows with a label; most often that is the name of the node."""
        row = self._table.row_of.get(value)
        if row is not None and column.sizes[code] == 1 and column.codes.item(row) == code:
            return row
        mask: mp.Mask = column.codes == code
        return mask

    def _recount(self) -> Ints:
        table = self._table
        counts = np.zeros(table.capacity, dtype=np.int64)
        for key, values in self._by_label.items():
            column = table.label(key)
            per_code = np.zeros(len(column.values), dtype=np.int64)
            for value, count in values.items():
                code = column.code_of.get(value)
                if code is not None:
                    per_code[code] = count
            counts += per_code[column.codes]
        for nodes, count in self._others.items():
            counts += count * self._masks.of(nodes)
        return counts

    def _count_row(self, row: int) -> int:
        node = self._table.nodes[row]
        if node is None:
            return 0
        labels = node.labels
        plain = sum(values[labels[key]] for key, values in self._by_label.items() if key in labels)
        return plain + sum(n for nodes, n in self._others.items() if nodes.includes(labels))


class IndexEntry(NamedTuple):
    """Under which keys an object is listed."""

    group: Hashable
    nodes: AccessibleNodes
    labels: tuple[Label | None, ...]


class CachedCounts:
    """The counts of the objects of a group that match a condition."""

    def __init__(self, cluster: mp.Cluster, kind: type[mp.KubeObject]) -> None:
        self.counts = NodeCounts(cluster)
        self.cursor = mp.Cursor(cluster.changes_of(kind))


class StorageIndex(Generic[T]):
    """See the module."""

    def __init__(
        self,
        cluster: mp.Cluster,
        kind: type[T],
        group_of: Callable[[T], Hashable],
        nodes_of: Callable[[T], AccessibleNodes],
    ) -> None:
        self._cluster = cluster
        self._kind = kind
        self._group_of = group_of
        self._nodes_of = nodes_of
        self._cursor = mp.Cursor(cluster.changes_of(kind))
        self._entries: dict[str, IndexEntry] = {}
        # Group -> a label of the node, or None -> keys.
        self._listed: dict[Hashable, dict[Label | None, dict[str, None]]] = {}
        self._cached: dict[Hashable, CachedCounts] = {}

    def near(self, group: Hashable, labels: Mapping[str, str]) -> list[T]:
        """The objects of a group that a node with these labels may access; a superset."""
        self._refresh()
        listed = self._listed.get(group, {})
        keys = dict(listed.get(None, {}))
        if len(listed) > (None in listed):
            for label in labels.items():
                keys.update(listed.get(label, {}))
        return self._objects(keys)

    def all_of(self, group: Hashable) -> list[T]:
        """All of a group, by name."""
        self._refresh()
        listed = self._listed.get(group, {})
        return self._objects({key: None for keys in listed.values() for key in keys})

    def counts(self, group: Hashable, key: Hashable, matches: Callable[[T], bool]) -> Ints:
        """For every row, how many objects of a group match a condition and are accessible.

        Conditions with the same key are the same.
        """
        self._refresh()
        cached = self._cached.pop((group, key), None) or CachedCounts(self._cluster, self._kind)
        if len(self._cached) >= MOST_CACHED:
            del self._cached[next(iter(self._cached))]
        self._cached[group, key] = cached  # The least recently used is evicted first.
        changed = cached.cursor.changed()
        if changed is None:
            cached.counts = NodeCounts(self._cluster)
            changed = [name for names in self._listed.get(group, {}).values() for name in names]
        for name in dict.fromkeys(changed):
            entry, obj = self._entries.get(name), self._cluster.latest(self._kind, name)
            if entry is not None and obj is not None and entry.group == group and matches(obj):
                cached.counts.put(name, entry.nodes)
            else:
                cached.counts.drop(name)
        cached.cursor.commit()
        return cached.counts.counts()

    def _objects(self, keys: Mapping[str, None]) -> list[T]:
        found = (self._cluster.latest(self._kind, key) for key in sorted(keys))
        return [obj for obj in found if obj is not None]

    def _refresh(self) -> None:
        if self._cursor.is_current:
            return
        changed = self._cursor.changed()
        if changed is None:
            self._entries, self._listed, self._cached = {}, {}, {}
            changed = [obj.key for obj in self._cluster.all(self._kind)]
        for key in dict.fromkeys(changed):
            self._list(key, self._cluster.latest(self._kind, key))
        self._cursor.commit()

    def _list(self, key: str, obj: T | None) -> None:
        before = self._entries.pop(key, None)
        if before is not None:
            listed = self._listed[before.group]
            for label in before.labels:
                listed[label].pop(key, None)
                if not listed[label]:
                    del listed[label]
            if not listed:
                del self._listed[before.group]
        if obj is None:
            return
        nodes = self._nodes_of(obj)
        entry = self._entries[key] = IndexEntry(self._group_of(obj), nodes, nodes.labels or (None,))
        listed = self._listed.setdefault(entry.group, {})
        for label in entry.labels:
            listed.setdefault(label, {})[key] = None
