"""Leaders: the rows with the highest total, kept in order while single totals change.

After a pod was placed, one row has another total. Then finding the best again takes a look at that
row, not at all of them; only when no leader is left are all totals looked at anew.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.framework.status import Scores

# A list of rows takes longer to make than to change, an array the other way round: so many changes
# are made to the array first.
FEW = 8


class Leaders:
    """The highest total, and the rows that have it, ascending."""

    __slots__ = ("_best", "_changes", "_found", "_rows")

    def __init__(self) -> None:
        self._best = -1
        # As found among all totals, or as a list after some changes.
        self._found: NDArray[np.intp] | None = None
        self._rows: list[int] = []
        self._changes = 0

    def forget(self) -> None:
        """All totals are new."""
        self._rows, self._found = [], None

    def change(self, row: int, before: int, after: int) -> None:
        """One row's total changed."""
        if before == after:
            return
        if self._found is not None:
            self._changes += 1
            if self._changes <= FEW:
                self._change_found(self._found, row, before, after)
                return
            self._rows, self._found = self._found.tolist(), None
        if not self._rows:
            return
        if before == self._best:
            del self._rows[bisect_left(self._rows, row)]
        if after > self._best:
            self._best, self._rows = after, [row]
        elif after == self._best:
            insort(self._rows, row)

    def _change_found(self, found: NDArray[np.intp], row: int, before: int, after: int) -> None:
        if after > self._best:
            self._best, self._rows, self._found = after, [row], None
            return
        at = int(found.searchsorted(row))
        if before == self._best:
            found = np.concatenate((found[:at], found[at + 1 :]))
        elif after == self._best:
            found = np.concatenate((found[:at], [row], found[at:]))
        self._found = found if len(found) else None

    def rows(self, totals: Scores) -> Sequence[int] | NDArray[np.intp]:
        """The leading rows; looked for among all totals if they are not known."""
        if self._rows:
            return self._rows
        if self._found is None:
            # Where the highest is, is found quicker than how high it is.
            self._best = totals.item(totals.argmax())
            self._found = (totals == self._best).nonzero()[0]
            self._changes = 0
        return self._found

    def beside(self, totals: Scores, changed: Mapping[int, int]) -> "Leaders":
        """The leaders if a few rows had other totals, as far as that can be told from these."""
        found = Leaders()
        self.rows(totals)
        best, top = self._best, max(changed.values(), default=-1)
        if top > best:
            found._best = top
            found._rows = sorted([row for row, total in changed.items() if total == top])
        elif top < best and all(totals.item(row) < best for row in changed):
            found._best, found._found, found._rows = best, self._found, self._rows
        return found
