"""Reasons: why every row was refused, as numbers, and how many rows have each.

Kept with a template's sheet and brought up to date for changed rows only, so that one more pod of a
kind that fits nowhere is told so without looking at all nodes again.
"""

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.framework.beside import Beside
from moorage.framework.cluster import Cluster
from moorage.framework.status import Code, Mask, Status
from moorage.framework.summary import summarize

if TYPE_CHECKING:
    from moorage.framework.answers import Filtered

Rows = NDArray[np.intp]

# Rows that were not refused, or have no node.
NONE = 0


class Told(NamedTuple):
    """Why no node fits, in one sentence, and the plugins that said so; some wait for others."""

    message: str
    plugins: frozenset[str]
    pending: frozenset[str]


class Reasons:
    """See the module."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._epoch: Hashable = None
        self._seen = (-1, -1)
        self._own: int | None = None
        self._numbers: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._counts: list[int] = [0]
        self._statuses: list[Status | None] = [None]
        self._number_of: dict[Status, int] = {}
        # Grows whenever any number or count changed.
        self.version = 0
        self._told: tuple[int, int, Told] | None = None

    def refresh(
        self, filtered: "Filtered", beside: Beside | None, own: int | None, epoch: Hashable
    ) -> None:
        """Bring the numbers up to date for a pod that was itself promised the `own` row.

        Rows that nothing happened to are not read again while the epoch stays the same; None says
        that all have to be.
        """
        changed = self._changed() if epoch is not None and epoch == self._epoch else None
        if changed is None:
            self._read_all(filtered, beside)
        else:
            own_rows = [row for row in (self._own, own) if row is not None]
            self._read(dict.fromkeys((*changed, *own_rows)), filtered, beside)
        self._epoch, self._own = epoch, own
        self._seen = (
            self._cluster.table.changes.position,
            self._cluster.promise_changes.position,
        )

    def _changed(self) -> list[int] | None:
        pods = self._cluster.table.changes.since(self._seen[0])
        promises = self._cluster.promise_changes.since(self._seen[1])
        if pods is None or promises is None or len(pods) + len(promises) > len(self._numbers):
            return None
        return [*pods, *promises]

    def _read_all(self, filtered: "Filtered", beside: Beside | None) -> None:
        self.version += 1
        self._numbers = np.zeros(len(filtered.first), dtype=np.int64)
        for place, count in enumerate(filtered.rejected_by):
            if count:
                self._read_place(filtered, place)
        if beside is not None and beside.statuses:
            numbers = np.array([self._number(status) for status in beside.statuses])
            refused = np.flatnonzero(beside.refuses)
            self._numbers[refused] = numbers[beside.codes[refused] - 1]
        self._counts = np.bincount(self._numbers, minlength=len(self._statuses)).tolist()

    def _read_place(self, filtered: "Filtered", place: int) -> None:
        rows = np.flatnonzero(filtered.first == place)
        codes, at = np.unique(filtered.codes_at(place)[rows], return_inverse=True)
        firsts = [int(rows[(at == i).argmax()]) for i in range(len(codes))]
        numbers = [self._number(filtered.status_at(place, row)) for row in firsts]
        self._numbers[rows] = np.array(numbers, dtype=np.int64)[at]

    def _read(self, rows: Iterable[int], filtered: "Filtered", beside: Beside | None) -> None:
        for row in rows:
            status = None if beside is None else beside.status(row)
            if status is None and filtered.is_refused(row):
                status = filtered.status(row)
            number = NONE if status is None else self._number(status)
            before = int(self._numbers[row])
            if number != before:
                self.version += 1
                self._numbers[row] = number
                self._counts[before] -= 1
                self._counts[number] += 1

    def _number(self, status: Status) -> int:
        number = self._number_of.get(status)
        if number is None:
            number = self._number_of[status] = len(self._statuses)
            self._statuses.append(status)
            self._counts.append(0)
        return number

    # What it says

    def told(self) -> Told:
        """All of it in one sentence, and who is to blame."""
        nodes = self._cluster.table.node_count
        if self._told is None or self._told[:2] != (self.version, nodes):
            refused = self.histogram
            self._told = (
                self.version,
                nodes,
                Told(
                    summarize(nodes, refused=refused),
                    frozenset(status.plugin for status, _ in refused if status.plugin),
                    frozenset(s.plugin for s, _ in refused if s.plugin and s.code is Code.PENDING),
                ),
            )
        return self._told[2]

    @property
    def histogram(self) -> list[tuple[Status, int]]:
        """The distinct statuses, with how many rows have each."""
        counted = zip(self._statuses, self._counts, strict=True)
        return [(status, count) for status, count in counted if status is not None and count]

    def having(self, code: Code) -> Mask:
        """Which rows were refused with a code."""
        wanted = [status is not None and status.code is code for status in self._statuses]
        mask: Mask = np.array(wanted)[self._numbers]
        return mask
