"""Beside: does the pod fit the nodes that are promised to others, if those were there already?

Kept for a template like all verdicts, as far as nobody looks further than the node and its pods,
and asked again where pods or promises have changed. So a thousand promises cost no more than the
few that changed since the last look.
"""

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moorage.framework.cluster import Cluster
from moorage.framework.status import SUCCESS, Codes, Mask, Status

if TYPE_CHECKING:
    from moorage.framework.inquiry import Inquiry

Rows = NDArray[np.intp]

FITS = 0
# Up to so many promised rows are asked about one by one.
FEW = 8
# After so many changes all promised rows are asked about together.
MANY = 100


class Beside:
    """Verdicts on rows that are promised to others; 0 where none is needed, or the pod fits."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._seen: tuple[int, int] | None = None
        self._stamp: Hashable = None
        self.epoch = 0  # Grows when all rows were asked anew.
        self.codes: Codes = np.zeros(cluster.table.capacity, dtype=np.int64)
        self._statuses: list[Status] = []
        self._code_of: dict[Status, int] = {}
        # A row whose verdict holds for one pod only, because it is promised to that very pod.
        self._own: int | None = None

    def refresh(self, inquiry: "Inquiry") -> None:
        """Bring the verdicts up to date for a pod."""
        stamp, own = inquiry.stamp, inquiry.own
        changed = self._changed() if stamp is not None and stamp == self._stamp else None
        self._seen = None  # Should a plugin raise below, the next look starts over.
        if changed is None:
            self._ask_all(inquiry)
        else:
            own_rows = (row for row in (self._own, own) if row is not None)
            for row in dict.fromkeys((*changed, *own_rows)):
                self._ask(row, inquiry)
        self._own, self._stamp = own, stamp
        self._seen = self._position()

    def _position(self) -> tuple[int, int]:
        return self._cluster.table.changes.position, self._cluster.promise_changes.position

    def _changed(self) -> Iterable[int] | None:
        """Rows to ask about again; None for all."""
        table = self._cluster.table
        if self._seen is None or len(self.codes) != table.capacity:
            return None
        pods = table.changes.since(self._seen[0])
        promises = self._cluster.promise_changes.since(self._seen[1])
        if pods is None or promises is None or len(pods) + len(promises) > MANY:
            return None
        return [*pods, *promises]

    def _ask_all(self, inquiry: "Inquiry") -> None:
        self.epoch += 1
        self.codes = np.zeros(self._cluster.table.capacity, dtype=np.int64)
        rows = inquiry.promises.rows()
        others = rows[rows != inquiry.own] if inquiry.own is not None else rows
        supposed = inquiry.suppose(others) if len(others) > FEW else None
        if supposed is None:
            for row in rows.tolist():
                self._ask(row, inquiry)
            return
        for status, places in supposed.refusals_beside():
            self.codes[others[places]] = self._code(status)
        if inquiry.own is not None:
            self._ask(inquiry.own, inquiry)

    def _ask(self, row: int, inquiry: "Inquiry") -> None:
        asked = self._cluster.table.nodes[row] is not None and inquiry.promises.has_any(row)
        status = inquiry.beside(row) if asked else SUCCESS
        self.codes[row] = FITS if status.is_success else self._code(status)

    def _code(self, status: Status) -> int:
        code = self._code_of.get(status)
        if code is None:
            self._statuses.append(status)
            code = self._code_of[status] = len(self._statuses)
        return code

    # What it says

    @property
    def refuses(self) -> Mask:
        """The rows that the pod does not fit."""
        refused: Mask = self.codes != FITS
        return refused

    def status(self, row: int) -> Status | None:
        """Why the pod does not fit a row; None if it does, as far as promises go."""
        code = int(self.codes[row])
        return None if code == FITS else self._statuses[code - 1]

    @property
    def statuses(self) -> list[Status]:
        """What the codes from 1 on stand for."""
        return self._statuses

    def histogram(self, rows: Rows) -> list[tuple[Status, int]]:
        """The distinct statuses of some refused rows, with how many rows have each."""
        codes, counts = np.unique(self.codes[rows], return_counts=True)
        found = zip(codes.tolist(), counts.tolist(), strict=True)
        return [(self._statuses[code - 1], count) for code, count in found if code != FITS]

    @property
    def failure(self) -> Status | None:
        """An error among the verdicts, which fails the attempt."""
        if all(status.is_rejected for status in self._statuses):
            return None
        for status, _ in self.histogram(np.flatnonzero(self.refuses)):
            if not status.is_rejected:
                return status
        return None
