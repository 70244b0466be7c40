"""FeasibleView: the rows that every cached filter accepts, and the first filter that rejects each
of the others. Filtered: the same for one cycle, together with filters that cannot be cached.

In the usual case one pod was placed since the last cycle. Then one row is recomputed by the filters
that read usage, whatever the number of nodes.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.framework.status import Mask, Status, error
from moorage.framework.views.filters import FITS, FilterView, RowStatuses
from moorage.framework.views.view import RowArray, View
from moorage.nodes.table import NodeTable

# Filters are numbered by their order in the profile.
FilterIndexes = NDArray[np.int16]
# In place of the first filter that rejects a row: no filter rejects it, or the row has no node.
NO_FILTER = 32_000
NO_NODE = -1


class FeasibleView(View):
    """Which rows fit, how many, and how many each filter rejects first.

    The log has every row whose verdict changed, also from one rejection to another. `version` grows
    only when a row becomes feasible or infeasible.
    """

    def __init__(self, table: NodeTable, filters: Sequence[tuple[int, FilterView]]) -> None:
        # A node that comes or goes changes its row, whatever the filters answer.
        super().__init__(table, [view for _, view in filters], [table.node_changes])
        self.filters = filters
        self._first: FilterIndexes | None = None
        self.fits: Mask = np.zeros(0, dtype=np.bool_)
        self.count = 0
        self.rejected_by: list[int] = []
        self.version = 0
        # Whether a filter ever raised for a node.
        self.has_errors = False
        # How often all rows were combined.
        self.rebuilds = 0

    def compute_all(self) -> None:
        self.rebuilds += 1
        self.version += 1
        fits, count = self.table.active_rows.copy(), self.table.node_count
        self.rejected_by = []
        for index, view in self.filters:
            if view.codes is not None:
                fits &= view.codes == FITS
                before, count = count, int(np.count_nonzero(fits))
                self._count(index, before - count)
        self._first = None
        self.fits, self.count = fits, count
        self.has_errors = any(view.has_errors for _, view in self.filters)

    def compute_row(self, row: int) -> bool:
        first = self._first_at(row)
        if self._first is not None:
            before = self._first.item(row)
            self._first[row] = first
        elif self.fits.item(row):
            before = NO_FILTER
        elif any(self.rejected_by):
            # The views have changed already, so which filter rejected the row is not known.
            self.compute_all()
            return True
        else:
            before = NO_NODE
        if first != before:
            self._count(before, -1)
            self._count(first, 1)
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

    def _count(self, index: int, change: int) -> None:
        if index == NO_FILTER:
            self.count += change
        elif index != NO_NODE:
            self.rejected_by.extend([0] * (index + 1 - len(self.rejected_by)))
            self.rejected_by[index] += change

    @property
    def first(self) -> FilterIndexes:
        """The first filter that rejects each row; computed when it is read, which is rare."""
        if self._first is None:
            first = np.full(self.table.capacity, NO_FILTER, dtype=np.int16)
            np.copyto(first, NO_NODE, where=~self.table.active_rows)
            self._first = earlier_rejections(first, self.filters)
        return self._first


# A filter whose verdicts hold for one cycle only: its index, its verdicts, and how many rows were
# feasible after it.
CycleFilter = tuple[int, RowStatuses, int]


class Filtered:
    """Which rows fit in one cycle, and the first filter that rejects each of the others."""

    def __init__(
        self,
        names: Sequence[str],
        feasible: FeasibleView,
        fits: Mask,
        uncached: Sequence[CycleFilter] = (),
        first: FilterIndexes | None = None,
    ) -> None:
        # The filters of the profile, by index.
        self._names = names
        self._feasible = feasible
        self._uncached = uncached
        self.fits = fits
        self._first = first
        self._rejected_by: list[int] | None = None
        # Whether extenders rejected rows that all filter plugins accept.
        self.is_extended = False

    @property
    def is_cached(self) -> bool:
        """Whether all verdicts come from cached views, so that their logs tell what changed."""
        return not self._uncached

    @property
    def count(self) -> int:
        """How many rows fit."""
        return self._uncached[-1][2] if self._uncached else self._feasible.count

    @property
    def first(self) -> FilterIndexes:
        """The first filter that rejects each row."""
        if not self._uncached:
            return self._feasible.first
        if self._first is None:
            uncached = [(index, statuses) for index, statuses, _ in self._uncached]
            self._first = earlier_rejections(self._feasible.first.copy(), uncached)
        return self._first

    @property
    def rejected_by(self) -> list[int]:
        """How many rows each filter rejects first, by its index."""
        cached = self._feasible.rejected_by
        if not self._uncached:
            return cached
        if self._rejected_by is None:
            if self._first is None and not any(cached):
                # Only uncached filters reject: the differences of what they left.
                before = self._feasible.count
                self._rejected_by = [0] * (self._uncached[-1][0] + 1)
                for index, _, left in self._uncached:
                    self._rejected_by[index], before = before - left, left
            else:
                rejected = self.first[(self.first != NO_FILTER) & (self.first != NO_NODE)]
                self._rejected_by = np.bincount(rejected).tolist() if len(rejected) else []
        return self._rejected_by

    def statuses_at(self, index: int) -> RowStatuses:
        """One filter's verdict on every row."""
        for at, statuses, _ in self._uncached:
            if at == index:
                return statuses
        return dict(self._feasible.filters)[index]

    def plugin_at(self, index: int) -> str:
        """The name of a filter."""
        return self._names[index]

    def is_rejected(self, row: int) -> bool:
        """Whether a filter rejects a row."""
        return self.first.item(row) not in (NO_FILTER, NO_NODE)

    def status(self, row: int) -> Status:
        """Why a row does not fit."""
        return self.statuses_at(self.first.item(row)).status(row)

    def by_status(self, rows: RowArray) -> list[tuple[Status, RowArray]]:
        """The distinct statuses of some rows, each with the rows that are rejected with it."""
        first = self.first[rows]
        indexes = [i for i in np.unique(first).tolist() if i not in (NO_FILTER, NO_NODE)]
        by_filter = [self.statuses_at(i).by_status(rows[first == i]) for i in indexes]
        return [each for found in by_filter for each in found]

    @property
    def has_errors(self) -> bool:
        """Whether a filter raised for a node, in this cycle or before."""
        if self._feasible.has_errors or not self._uncached:
            return self._feasible.has_errors
        return any(statuses.has_errors for _, statuses, _ in self._uncached)

    def failure(self, rows: RowArray) -> Status | None:
        """The first error among some rows: a filter raised, and no earlier one rejected."""
        for status, _ in self.by_status(rows):
            if not status.is_rejected:
                text = f'running "{status.plugin}" filter plugin: {status.message}'
                return error(text, status.plugin)
        return None

    # Extenders

    def extended(
        self, extender: str, left: RowArray, rejected: Mapping[int, Status], seen: RowArray | None
    ) -> "Filtered":
        """These verdicts and, after the last plugin, those of extenders, which leave some rows.

        `seen` are the rejected rows that a sampling walk visited; only those keep a verdict then.
        """
        index, first = len(self._names), self.first.copy()
        if seen is not None:
            visited = np.zeros(len(first), dtype=np.bool_)
            visited[seen] = True
            np.putmask(first, ~visited & (first != NO_NODE), NO_FILTER)
        # Statuses keep no name: the cycle blames extenders as such.
        statuses = RowStatuses("", len(first))
        for row, status in rejected.items():
            statuses.set(row, status)
            first[row] = index
        fits = np.zeros(len(first), dtype=np.bool_)
        fits[left] = True
        uncached = (*self._uncached, (index, statuses, len(left)))
        extended = Filtered([*self._names, extender], self._feasible, fits, uncached, first)
        extended.is_extended = True
        return extended


def earlier_rejections(
    first: FilterIndexes, filters: Iterable[tuple[int, RowStatuses]]
) -> FilterIndexes:
    """`first`, in place, where some filters reject earlier than the ones it knows."""
    for index, statuses in filters:
        if statuses.codes is not None:
            # A row without a node has an index below every filter's, and keeps it.
            first[(statuses.codes != FITS) & (first > index)] = index
    return first
