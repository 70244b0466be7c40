"""Extended: the verdicts of filters and, behind them, those of extenders."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from moorage.framework import calls
from moorage.framework.answers import FITS, NO_NODE, Filtered
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
        place = len(filtered._sheet.profile.filters)
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
        counted = first[(first != FITS) & (first != NO_NODE)]
        rejected_by = np.bincount(counted).tolist() if len(counted) else []
        volatile = {**filtered._volatile, place: (book.status, codes, book)}
        return cls(fits, first, rejected_by, filtered._sheet, volatile)

    @property
    def _place(self) -> int:
        return len(self._sheet.profile.filters)

    def plugin_at(self, place: int) -> str:
        return EXTENDER if place == self._place else Filtered.plugin_at(self, place)

    def status_at(self, place: int, row: int) -> Status:
        if place != self._place:
            return Filtered.status_at(self, place, row)
        # Not signed by anybody: it is the pod that waits for extenders, whatever they said.
        status_of, codes, _ = self._volatile[place]
        status: Status = status_of(int(codes[row]))
        return status
