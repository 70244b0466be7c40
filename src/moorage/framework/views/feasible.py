"""FeasibleRows: which rows fit, and the first filter that rejects each of the others. FeasibleView:
the same for the filters that are cached, kept up to date.

In the usual case one pod was placed since the last cycle. Then one row is recomputed by the filters
that read usage, whatever the number of nodes.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.framework.status import Mask, Status
from moorage.framework.views.filters import FITS, FilterView, RowStatuses
from moorage.framework.views.view import RowArray, View
from moorage.nodes.table import NodeTable

# Filters are numbered by their order in the profile.
FilterIndexes = NDArray[np.int16]
# In place of the first filter that rejects a row: no filter rejects it, or the row has no node.
NO_FILTER = 32_000
NO_NODE = -1
NO_ROWS: Mask = np.zeros(0, dtype=np.bool_)


class FeasibleRows:
    """See the module. `filters` have their index in the profile, and are in that order."""

    # Whether extenders rejected rows that all filter plugins accept.
    is_extended = False

    def __init__(self, names: Sequence[str], filters: Sequence[tuple[int, RowStatuses]]) -> None:
        # The filters of the profile, by index.
        self.names = names
        self.filters = filters
        self.fits: Mask = NO_ROWS
        self.count = 0
        # How many rows each filter rejects first, by its index.
        self.rejected_by: list[int] = []
        # Whether a filter ever raised for a node.
        self.has_errors = False
        self._active: Mask = NO_ROWS
        # As `first`, if it is known.
        self.known_first: FilterIndexes | None = None

    def combine(self, active: Mask, count: int) -> None:
        """Compute all rows from the verdicts of the filters; `active` are those with a node."""
        fits = active.copy()
        self._active, self.rejected_by = active, []
        for index, statuses in self.filters:
            if statuses.codes is not None:
                fits &= statuses.codes == FITS
                before, count = count, int(np.count_nonzero(fits))
                self._add_to(index, before - count)
        self.known_first = None
        self.fits, self.count = fits, count
        self.has_errors = any(statuses.has_errors for _, statuses in self.filters)

    def _add_to(self, index: int, change: int) -> None:
        if index == NO_FILTER:
            self.count += change
        elif index != NO_NODE:
            self.rejected_by.extend([0] * (index + 1 - len(self.rejected_by)))
            self.rejected_by[index] += change

    @property
    def first(self) -> FilterIndexes:
        """The first filter that rejects each row; computed when it is read, which is rare."""
        if self.known_first is None:
            first = np.full(len(self._active), NO_FILTER, dtype=np.int16)
            for index, statuses in reversed(self.filters):
                if statuses.codes is not None:
                    first[statuses.codes != FITS] = index
            np.copyto(first, NO_NODE, where=~self._active)
            self.known_first = first
        return self.known_first

    def statuses_at(self, index: int) -> RowStatuses:
        """One filter's verdict on every row."""
        return next(statuses for i, statuses in self.filters if i == index)

    def is_rejected(self, row: int) -> bool:
        """Whether a filter rejects a row."""
        return self.first.item(row) not in (NO_FILTER, NO_NODE)

    def status(self, row: int) -> Status:
        """Why a row does not fit."""
        return self.statuses_at(self.first.item(row)).status(row)

    def by_status(self, rows: RowArray) -> list[tuple[Status, RowArray]]:
        """The distinct statuses of some rows, each with the rows that are rejected with it."""
        first = self.first[rows]
        rejecting = [(i, s) for i, s in self.filters if s.codes is not None]
        by_filter = [statuses.by_status(rows[first == i]) for i, statuses in rejecting]
        return [each for found in by_filter for each in found]


def open_rows(
    table: NodeTable, earlier: Sequence[tuple[int, RowStatuses]], names: frozenset[str] | None
) -> Mask:
    """The rows that no earlier filter rejects, if names are given only of these nodes."""
    rows = FeasibleRows((), earlier)
    rows.combine(table.active_rows, table.node_count)
    return rows.fits if names is None else rows.fits & table.named(names)


class FeasibleView(View, FeasibleRows):
    """The log has every row whose verdict changed, also from one rejection to another.

    `version` grows only when a row becomes feasible or infeasible.
    """

    def __init__(
        self, table: NodeTable, names: Sequence[str], filters: Sequence[tuple[int, FilterView]]
    ) -> None:
        # A node that comes or goes changes its row, whatever the filters answer.
        View.__init__(self, table, [view for _, view in filters], [table.node_changes])
        FeasibleRows.__init__(self, names, filters)
        self.version = 0
        # How often all rows were combined.
        self.rebuilds = 0

    def compute_all(self) -> None:
        self.rebuilds += 1
        self.version += 1
        self.combine(self.table.active_rows, self.table.node_count)

    def compute_row(self, row: int) -> bool:
        first = self._first_at(row)
        if self.known_first is not None:
            before = self.known_first.item(row)
            self.known_first[row] = first
        elif self.fits.item(row):
            before = NO_FILTER
        elif any(self.rejected_by):
            # The views have changed already, so which filter rejected the row is not known.
            self.compute_all()
            return True
        else:
            before = NO_NODE
        if first != before:
            self._add_to(before, -1)
            self._add_to(first, 1)
            if NO_FILTER in (first, before):
                self.fits[row] = first == NO_FILTER
                self.version += 1
        return True

    def _first_at(self, row: int) -> int:
        if self.table.nodes[row] is None:
            return NO_NODE
        for index, view in self.filters:
            if view.codes is not None and view.codes.item(row):
                self.has_errors = self.has_errors or view.has_errors
                return index
        return NO_FILTER
