"""Coverage: how many of some things reach each node, kept up as things come and go.

A thousand local disks reach one node each, told by its hostname. So things are counted by label
value where a single label decides, and a node's number is a look-up, not a walk over the things.
"""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.volume_binding import reach as reaches
from moorage.plugins.volume_binding.reach import Reach

Ints = NDArray[np.int64]


class Coverage:
    """Things by name, each with its reach."""

    def __init__(self, cluster: mp.Cluster) -> None:
        self._table = cluster.table
        self._masks = reaches.masks(cluster)
        self._things: dict[str, Reach] = {}
        # Label key -> value -> how many, where that label decides; the others one by one.
        self._by_label: dict[str, Counter[str]] = {}
        self._others: Counter[Reach] = Counter()
        self._counts: Ints = np.zeros(0, dtype=np.int64)
        self._nodes = mp.Cursor(cluster.table.node_changes)

    def put(self, name: str, reach: Reach) -> None:
        """A thing is there."""
        self.drop(name)
        self._things[name] = reach
        self._count(reach, 1)

    def drop(self, name: str) -> None:
        """A thing is gone, if it was there."""
        reach = self._things.pop(name, None)
        if reach is not None:
            self._count(reach, -1)

    def counts(self) -> Ints:
        """For every row of the table, how many things reach it; not to be written to."""
        table = self._table
        rows = self._nodes.changed()
        if rows is None or len(self._counts) != table.capacity or len(rows) > table.capacity // 8:
            self._counts = self._recount()
        else:
            for row in dict.fromkeys(rows):
                self._counts[row] = self._count_row(row)
        self._nodes.commit()
        return self._counts

    def _count(self, reach: Reach, change: int) -> None:
        key = reach.only_key
        if key is None:
            self._others[reach] += change
            if not self._others[reach]:
                del self._others[reach]
        else:
            values = self._by_label.setdefault(key, Counter())
            for _, value in reach.slots or ():
                values[value] += change
                if not values[value]:
                    del values[value]
        if self._nodes.is_current and len(self._counts) == self._table.capacity:
            self._counts[self._masks.of(reach)] += change
        else:
            self._nodes.restart()  # Nodes have changed, so the next `counts` counts all rows.

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
        for reach, count in self._others.items():
            counts += count * self._masks.of(reach)
        return counts

    def _count_row(self, row: int) -> int:
        node = self._table.nodes[row]
        if node is None:
            return 0
        labels = node.labels
        plain = sum(values[labels[key]] for key, values in self._by_label.items() if key in labels)
        return plain + sum(n for reach, n in self._others.items() if reach.includes(labels))
