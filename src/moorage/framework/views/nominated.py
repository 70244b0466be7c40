"""NominatedPods: the pods that are nominated to nodes, by row and as columns. NominatedPodsCheck:
whether a pod fits those nodes if the nominated pods were there already.

A pod has to fit beside the nominated pods of at least its own priority, other than itself. The
check is cached for a template as long as no filter looks beyond the node and its pods, so a
thousand nominations cost no more than the few that changed since the last cycle.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.framework.cluster import Cluster
from moorage.framework.status import SUCCESS, Status
from moorage.framework.views.filters import RowStatuses
from moorage.framework.views.view import RowArray, View, rows_of_both
from moorage.nodes.changes import FEW_ROWS, Cursor
from moorage.nodes.hypothetical import NO_POD, NumberedUsages, Numbers
from moorage.nodes.template import Templates
from moorage.nodes.usage import Placed

if TYPE_CHECKING:
    from moorage.framework.what_if import WhatIf

# A book of so many usages is rebuilt, so that it does not keep those of pods long gone.
MOST_USAGES = 20_000
# After so many changes all rows are checked together.
MOST_CHANGES = 100


class NominatedPods:
    """See the module. Read again only where nominations changed; shared by all checks."""

    def __init__(self, cluster: Cluster, templates: Templates) -> None:
        self._table = cluster.table
        self._templates = templates
        # A nomination may be older than the node that it is about.
        self._cursors = [Cursor(cluster.nomination_changes), Cursor(cluster.table.node_changes)]
        self.book = NumberedUsages()
        self._placed: dict[int, list[Placed]] = {}
        self._numbers: Numbers = np.zeros((0, 1), dtype=np.int64)
        self._priorities: NDArray[np.int64] = np.zeros((0, 1), dtype=np.int64)

    def refresh(self, nominated: Mapping[str, Sequence[Pod]]) -> None:
        """Read what changed; `nominated` has the pods by the node's name."""
        table = self._table
        rows = rows_of_both(*[cursor.changed() for cursor in self._cursors])
        if rows is None or len(self.book) > MOST_USAGES:
            self.book = NumberedUsages()
            self._placed = {}
            self._numbers = np.zeros((table.capacity, 1), dtype=np.int64)
            self._priorities = np.zeros((table.capacity, 1), dtype=np.int64)
            rows = [table.row_of[name] for name in nominated if name in table.row_of]
        for row in dict.fromkeys(rows):
            self._read(int(row), nominated.get(table.name(int(row)), ()))
        for cursor in self._cursors:
            cursor.commit()

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

    def beside(self, pod: Pod, row: int) -> list[Placed]:
        """The nominated pods of a row that a pod has to leave room for."""
        return [
            each
            for each in self._placed.get(row, ())
            if each.pod.priority >= pod.priority and each.pod.uid != pod.uid
        ]

    def has_any(self, row: int) -> bool:
        """Whether any pod is nominated to a row."""
        return row in self._placed

    def numbers(self, pod: Pod, rows: RowArray) -> Numbers:
        """As `beside`, for many rows: numbers in the book. The pod itself may be among them."""
        matter = self._priorities[rows] >= pod.priority
        return np.where(matter, self._numbers[rows], NO_POD)

    def rows(self) -> RowArray:
        """All rows with a node and a nominated pod."""
        return np.flatnonzero(self._numbers.any(axis=1) & self._table.active_rows)


class NominatedPodsCheck(View, RowStatuses):
    """Verdicts on rows with nominated pods; a row without any fits."""

    _what_if: "WhatIf"

    def __init__(self, cluster: Cluster) -> None:
        logs = [cluster.table.changes, cluster.nomination_changes]
        View.__init__(self, cluster.table, logs=logs)
        RowStatuses.__init__(self, "", cluster.table.capacity)
        self._key: Hashable = None
        # The row that is nominated to the pod itself: its verdict holds for this pod only.
        self._own: int | None = None

    @property
    def most_rows(self) -> int:
        return MOST_CHANGES

    def refresh_for(self, what_if: "WhatIf") -> None:
        """Bring the verdicts up to date for a pod."""
        self._what_if = what_if
        key, own = what_if.key, what_if.own
        if key is None or key != self._key or self._capacity != self.table.capacity:
            self.restart()
        self._key = None  # If a plugin raises, everything is computed again.
        own_rows = [row for row in (self._own, own) if row is not None]
        self.update(self.read_cursors(own_rows))
        self.commit()
        self._own, self._key = own, key

    def compute_row(self, row: int) -> bool:
        what_if = self._what_if
        is_checked = self.table.nodes[row] is not None and what_if.nominated.has_any(row)
        return self.set(row, what_if.beside_nominated(row) if is_checked else SUCCESS)

    def compute_all(self) -> None:
        what_if = self._what_if
        self.codes, self._capacity = None, self.table.capacity
        rows = what_if.nominated.rows()
        others = rows[rows != what_if.own] if what_if.own is not None else rows
        many = what_if.rows(others) if len(others) > FEW_ROWS else None
        if many is None:
            for row in rows.tolist():
                self.compute_row(row)
            return
        for status, positions in many.rejections_beside_nominated():
            self.all_codes()[others[positions]] = self.code(status)
        if what_if.own is not None:
            self.compute_row(what_if.own)

    @property
    def failure(self) -> Status | None:
        """An error among the verdicts, which fails the attempt."""
        if self.has_errors:
            for status, _ in self.by_status(np.flatnonzero(self.rejects)):
                if not status.is_rejected:
                    return status
        return None
