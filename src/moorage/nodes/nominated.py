"""NominatedPods: the pods that are nominated to nodes, by row and as columns."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.nodes.changes import Cursor, RowLog
from moorage.nodes.hypothetical import NO_POD, NumberedUsages, Numbers
from moorage.nodes.table import NodeTable
from moorage.nodes.template import TemplateSource
from moorage.nodes.usage import Placed

# A book of so many usages is rebuilt, so that it does not keep those of pods long gone.
MOST_USAGES = 20_000


class NominatedPods:
    """Nominated pods, read again only where `changes` says that nominations changed."""

    def __init__(self, table: NodeTable, changes: RowLog, templates: TemplateSource) -> None:
        self._table = table
        self._templates = templates
        # A nomination may be older than the node that it is about.
        self._cursors = Cursor(changes), Cursor(table.node_changes)
        self.book = NumberedUsages()
        self._placed: dict[int, list[Placed]] = {}
        self._numbers: Numbers = np.zeros((0, 1), dtype=np.int64)
        self._priorities: NDArray[np.int64] = np.zeros((0, 1), dtype=np.int64)

    def refresh(self, nominated: Mapping[str, Sequence[Pod]]) -> None:
        """Read what changed; `nominated` has the pods by the node's name."""
        of_nominations, of_nodes = self._cursors
        if of_nominations.is_current and of_nodes.is_current:
            return
        table = self._table
        rows = of_nominations.changed()
        if not of_nodes.is_current:
            nodes = of_nodes.changed()
            rows = None if rows is None or nodes is None else [*rows, *nodes]
        if rows is None or len(self.book) > MOST_USAGES:
            self.book = NumberedUsages()
            self._placed = {}
            self._numbers = np.zeros((table.capacity, 1), dtype=np.int64)
            self._priorities = np.zeros((table.capacity, 1), dtype=np.int64)
            rows = [table.row_of[name] for name in nominated if name in table.row_of]
        for row in dict.fromkeys(rows):
            self._read(row, nominated.get(table.names[row], ()))
        of_nominations.commit()
        of_nodes.commit()

    def _read(self, row: int, pods: Sequence[Pod]) -> None:
        if self._placed.pop(row, None) is not None:
            self._numbers[row] = NO_POD
        if not pods:
            return
        placed = [Placed(pod, self._templates.of(pod).usage) for pod in pods]
        self._placed[row] = placed
        more = len(placed) - self._numbers.shape[1]
        if more > 0:
            self._numbers = np.pad(self._numbers, ((0, 0), (0, more)))
            self._priorities = np.pad(self._priorities, ((0, 0), (0, more)))
        for position, each in enumerate(placed):  # Most often there is one.
            self._numbers[row, position] = self.book.number(each.usage)
            self._priorities[row, position] = each.pod.priority

    def beside(self, pod: Pod, row: int) -> list[Placed]:
        """The nominated pods of a row that a pod has to leave room for."""
        placed = self._placed.get(row)
        if placed is None:
            return []
        priority, uid = pod.priority, pod.metadata.uid
        return [
            each
            for each in placed
            if (each.pod.spec.priority or 0) >= priority and each.pod.metadata.uid != uid
        ]

    def on(self, row: int) -> list[Placed]:
        """All nominated pods of a row."""
        return self._placed.get(row, [])

    def has_any(self, row: int) -> bool:
        """Whether any pod is nominated to a row."""
        return row in self._placed

    def numbers(self, pod: Pod, rows: NDArray[np.intp]) -> Numbers:
        """As `beside`, for many rows: numbers in the book. The pod itself may be among them."""
        matter = self._priorities[rows] >= pod.priority
        return np.where(matter, self._numbers[rows], NO_POD)

    def rows(self) -> NDArray[np.intp]:
        """All rows with a node and a nominated pod."""
        return np.flatnonzero(self._numbers.any(axis=1) & self._table.active_rows)
