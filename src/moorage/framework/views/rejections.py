"""RejectionCounts: why every row is rejected, and how many rows have each reason.

Kept for a template and updated for rows whose verdict changed, so that one more pod that fits
nowhere is rejected without reading all nodes again.
"""

from collections import Counter
from collections.abc import Hashable
from typing import Any

import numpy as np

from moorage.framework.status import SUCCESS, Code, Mask, Status
from moorage.framework.views.feasible import FeasibleRows, FeasibleView
from moorage.framework.views.filters import FITS, RowStatuses
from moorage.framework.views.nominated import NominatedPodsCheck
from moorage.framework.views.view import View
from moorage.nodes.table import NodeTable


class RejectionCounts(View, RowStatuses):
    """See the module. `version` grows when a row or a count changed."""

    _filtered: FeasibleRows

    def __init__(
        self, table: NodeTable, feasible: FeasibleView, check: NominatedPodsCheck | None
    ) -> None:
        logs = [feasible.log] if check is None else [feasible.log, check.log]
        View.__init__(self, table, logs=logs)
        RowStatuses.__init__(self, "", table.capacity)
        self.check = check
        self._feasible = feasible
        self.version = 0
        # What a reader derived from the counts, and from which state of them.
        self.derived: tuple[Hashable, Any] = (None, None)
        self._counts: Counter[int] = Counter()

    def refresh_for(self, filtered: FeasibleRows) -> None:
        """Bring the statuses up to date with the verdicts of a cycle."""
        self._filtered = filtered
        is_cached = filtered is self._feasible
        rows = self.read_cursors()
        self.update(rows if is_cached else None)
        self.commit()
        if not is_cached:
            # The logs do not tell what uncached filters will answer in the next cycle.
            self.restart()

    def compute_row(self, row: int) -> bool:
        status = SUCCESS if self.check is None else self.check.status(row)
        if status is SUCCESS and self._filtered.is_rejected(row):
            status = self._filtered.status(row)
        codes = self.all_codes()
        before = codes.item(row)
        if not self.set(row, status):
            return False
        self.version += 1
        self._counts[before] -= 1
        self._counts[codes.item(row)] += 1
        return True

    def compute_all(self) -> None:
        self.version += 1
        self.codes, self._capacity = None, self.table.capacity
        self._counts.clear()
        rows = np.flatnonzero(self.table.active_rows)
        found = []
        if self.check is not None:
            # Nominated pods come first.
            found = self.check.by_status(rows)
            rows = rows[~self.check.rejects[rows]]
        for status, same in found + self._filtered.by_status(rows):
            code = self.code(status)
            self.all_codes()[same] = code
            self._counts[code] += len(same)

    @property
    def histogram(self) -> list[tuple[Status, int]]:
        """The distinct statuses, with how many rows have each."""
        counts = self._counts.items()
        return [(self.status_for(code), n) for code, n in counts if code != FITS and n > 0]

    def having(self, code: Code) -> Mask:
        """Which rows are rejected with a status of that code."""
        codes, having = self.all_codes(), [status.code is code for status in self._statuses]
        if not any(having):
            return np.zeros(len(codes), dtype=np.bool_)
        if all(having):
            return self.rejects
        mask: Mask = np.array([False, *having])[-codes]
        return mask
