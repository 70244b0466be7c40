"""Extended: the verdicts of filters and, behind them, those of extenders."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from moorage.framework import calls
from moorage.framework.answers import FITS, NO_NODE, Filtered, Volatile, tally
from moorage.framework.status import Status

# Under this name extenders refuse pods; any change at all may make them think again.
EXTENDER = "Extender"

Rows = NDArray[np.intp]


class Extended(Filtered):
    """What filters said, and behind them, at a place of their own, what extenders said."""

    __slots__ = ()

    @classmethod
    def of(
        cls, filtered: Filtered, left: Rows, refused: Mapping[int, Status], seen: Rows | None
    ) -> "Extended":
        """Filters' verdicts with those of extenders; of rows that nobody met nothing is said."""
        place = len(filtered._filters)
        first, book = filtered.first.copy(), calls.Book()
        if seen is not None:
            met = np.zeros(len(first), dtype=np.bool_)
            met[seen] = True
            np.putmask(first, ~met & (first != NO_NODE), FITS)
        codes = np.zeros(len(first), dtype=np.int64)
        for row, status in refused.items():
            first[row], codes[row] = place, book.code(status)
        fits = np.zeros(len(first), dtype=np.bool_)
        fits[left] = True
        said = Volatile(place, codes, book.status, book.erred, len(left))
        extended = cls(filtered._filters, filtered._fitting, fits, (*filtered._volatile, said))
        extended._first, extended._rejected_by = first, tally(first)
        return extended

    @property
    def _place(self) -> int:
        return len(self._filters)

    def plugin_at(self, place: int) -> str:
        return EXTENDER if place == self._place else Filtered.plugin_at(self, place)

    def status_at(self, place: int, row: int) -> Status:
        if place != self._place:
            return Filtered.status_at(self, place, row)
        # Not signed by anybody: it is the pod that waits for extenders, whatever they said.
        said = self._volatile[-1]
        return said.status_of(int(said.codes[row]))
