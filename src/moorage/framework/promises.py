"""Promises: the pods that nodes are promised to, by row and as columns.

Looked up again only where promises changed, and shared by everybody who has to leave room for them:
a pod must fit beside the promised pods of at least its own priority, other than itself.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.framework.cluster import Cluster
from moorage.framework.template import Templates
from moorage.nodes.hypothetical import NO_POD, NumberedUsages, Numbers
from moorage.nodes.usage import Placed

Rows = NDArray[np.intp]
Ints = NDArray[np.int64]

# A book of so many usages is written anew, lest it keeps those of pods that are long gone.
MOST_USAGES = 20_000


class Promises:
    """See the module."""

    def __init__(self, cluster: Cluster, templates: Templates) -> None:
        self._cluster = cluster
        self._templates = templates
        self._seen = (-1, -1)
        self.book = NumberedUsages()
        self._placed: dict[int, list[Placed]] = {}
        self._numbers: Numbers = np.zeros((0, 1), dtype=np.int64)
        self._priorities: Ints = np.zeros((0, 1), dtype=np.int64)

    def refresh(self, promised: Mapping[str, Sequence[Pod]]) -> None:
        """Look again where promises changed; `promised` has the pods by the node's name."""
        table = self._cluster.table
        rows = self._changed()
        if rows is None:
            self.book = NumberedUsages()
            self._placed = {}
            self._numbers = np.zeros((table.capacity, 1), dtype=np.int64)
            self._priorities = np.zeros((table.capacity, 1), dtype=np.int64)
            rows = [table.row_of[name] for name in promised if name in table.row_of]
        for row in dict.fromkeys(rows):
            self._read(row, promised.get(table.name(row), ()))
        self._seen = (self._cluster.promise_changes.position, table.node_changes.position)

    def _changed(self) -> list[int] | None:
        """Rows to look at again; None for all."""
        table = self._cluster.table
        promises = self._cluster.promise_changes.since(self._seen[0])
        # A promise may be older than the node that it is about.
        nodes = table.node_changes.since(self._seen[1])
        if promises is None or nodes is None or len(self._numbers) != table.capacity:
            return None
        return None if len(self.book) > MOST_USAGES else [*promises, *nodes]

    def _read(self, row: int, pods: Sequence[Pod]) -> None:
        self._numbers[row] = NO_POD
        self._placed.pop(row, None)
        if not pods:
            return
        placed = [Placed(pod, self._templates.of(pod).usage) for pod in pods]
        self._placed[row] = placed
        more = len(placed) - self._numbers.shape[1]
        if more > 0:
            self._numbers = np.pad(self._numbers, ((0, 0), (0, more)))
            self._priorities = np.pad(self._priorities, ((0, 0), (0, more)))
        here = slice(0, len(placed))
        self._numbers[row, here] = [self.book.number(each.usage) for each in placed]
        self._priorities[row, here] = [each.pod.priority for each in placed]

    # What it says

    def beside(self, pod: Pod, row: int) -> list[Placed]:
        """Those whom a pod has to leave room for on a row."""
        return [
            each
            for each in self._placed.get(row, ())
            if each.pod.priority >= pod.priority and each.pod.uid != pod.uid
        ]

    def has_any(self, row: int) -> bool:
        """Whether a row is promised to anybody."""
        return row in self._placed

    def numbers(self, pod: Pod, rows: Rows) -> Numbers:
        """The same for many rows, a list of numbers in the book for each.

        That a pod need not leave room for itself is not known here.
        """
        matter = self._priorities[rows] >= pod.priority
        return np.where(matter, self._numbers[rows], NO_POD)

    def rows(self) -> Rows:
        """All rows that are promised to anybody and have a node."""
        return np.flatnonzero(self._numbers.any(axis=1) & self._cluster.table.active_rows)
