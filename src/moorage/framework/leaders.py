"""Leaders: the rows with the highest total, kept in order while single totals change.

After a pod was placed, one row has another total. Then finding the best again takes a look at that
row, not at all of them; only when no leader is left are all totals looked at anew.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.framework.status import Scores


class Leaders:
    """The highest total, and the rows that have it, ascending."""

    __slots__ = ("_best", "_found", "_rows")

    def __init__(self) -> None:
        self._best = -1
        # As found among all totals; made into a list only if it has to change.
        self._found: NDArray[np.intp] | None = None
        self._rows: list[int] = []

    def forget(self) -> None:
        """All totals are new."""
        self._rows, self._found = [], None

    def change(self, row: int, before: int, after: int) -> None:
        """One row's total changed."""
        if before == after:
            return
        if self._found is not None:
            self._rows, self._found = self._found.tolist(), None
        if not self._rows:
            return
        if before == self._best:
            del self._rows[bisect_left(self._rows, row)]
        if after > self._best:
            self._best, self._rows = after, [row]
        elif after == self._best:
            insort(self._rows, row)

    def rows(self, totals: Scores) -> Sequence[int] | NDArray[np.intp]:
        """The leading rows; looked for among all totals if they are not known."""
        if self._rows:
            return self._rows
        if self._found is None:
            # Where the highest is, is found quicker than how high it is.
            self._best = totals.item(totals.argmax())
            self._found = (totals == self._best).nonzero()[0]
        return self._found
