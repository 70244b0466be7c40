"""RankedGroups: the feasible rows of a template, by group and by the total of their cached scores.

A row that changes is moved from one set of rows to another. So the best rows of every group are
known at any time, and so is what comes next when they are used up.
"""

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heapreplace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.framework.views import row_sets
from moorage.framework.views.row_sets import MOST_LISTED, RowSet, RowUnion
from moorage.framework.views.totals import TotalView
from moorage.framework.views.view import RowArray
from moorage.nodes.changes import Cursor
from moorage.nodes.groups import Groups, RowGroups

# A set of rows is found by the group, shifted, and the total.
SHIFT = 40
TOTAL = (1 << SHIFT) - 1
# In place of the highest total of a group without feasible rows.
NO_TOTAL = -1
NOT_FEASIBLE = -1


class RankedGroups:
    """See the module."""

    def __init__(self, groups: RowGroups, total: TotalView) -> None:
        self.groups = groups
        self._total = total
        self._cursor = Cursor(total.log)
        total.is_read = True
        self._build()

    def _build(self) -> None:
        self._cursor.take()
        totals, group_of = self._total.scored.totals, self.groups.group_of
        rows = (totals >= 0).nonzero()[0]
        keys = (group_of[rows] << SHIFT) | totals[rows]
        order = keys.argsort(kind="stable")
        sorted_rows, sorted_keys = rows[order], keys[order]
        starts = np.diff(sorted_keys, prepend=NOT_FEASIBLE).nonzero()[0]
        parts = np.split(sorted_rows, starts[1:]) if len(starts) else []
        found = sorted_keys[starts].tolist()
        self._capacity = capacity = len(totals)
        # Under which every row is found.
        self._keys: NDArray[np.int64] = np.full(capacity, NOT_FEASIBLE)
        self._keys[rows] = keys
        # Arrays until they are read: most never are.
        self._rows: dict[int, RowSet | RowArray] = dict(zip(found, parts, strict=True))
        # The totals that rows of every group have, ascending; and the highest.
        self._levels: list[list[int]] = [[] for _ in range(len(self.groups))]
        for key in found:
            self._levels[key >> SHIFT].append(key & TOTAL)
        self.tops = [each[-1] if each else NO_TOTAL for each in self._levels]
        sizes = np.bincount(group_of[rows])
        numbers = sizes.nonzero()[0]
        self.feasible = Groups(self.groups, numbers.tolist(), sizes[numbers].tolist())
        # What a reader derived from the scores of a row, with the scores that were added to it.
        self.derived: dict[int, tuple[Any, Any]] = {}

    def refresh(self) -> None:
        """Move the rows whose group or total changed."""
        moved, changed = self.groups.refresh(), self._cursor.take()
        if moved is None or changed is None:
            self._build()
            return
        if moved and moved != changed:
            changed = [*dict.fromkeys((*changed, *moved))]
        totals, group_of, keys = self._total.scored.totals, self.groups.group_of, self._keys
        for row in changed:
            self.derived.pop(row, None)
            total, before = totals.item(row), keys.item(row)
            key = NOT_FEASIBLE if total < 0 else (group_of.item(row) << SHIFT) | total
            if key != before:
                keys[row] = key
                self._move(row, before, key)

    def _move(self, row: int, before: int, after: int) -> None:
        old, new = before >> SHIFT, after >> SHIFT
        if before != NOT_FEASIBLE:
            self._take_out(row, before, old)
        if after != NOT_FEASIBLE:
            self._put_in(row, after, new)
        if old != new:
            if before != NOT_FEASIBLE:
                self.feasible.add(old, -1)
            if after != NOT_FEASIBLE:
                self.feasible.add(new, 1)

    def _take_out(self, row: int, key: int, group: int) -> None:
        if len(self._rows[key]) > 1:
            row_sets.remove(self._set(key), row)
            return
        del self._rows[key]
        levels = self._levels[group]
        levels.remove(key & TOTAL)
        self.tops[group] = levels[-1] if levels else NO_TOTAL

    def _put_in(self, row: int, key: int, group: int) -> None:
        if key in self._rows:
            row_sets.add(self._set(key), row)
            return
        self._rows[key] = [row]
        while group >= len(self._levels):
            self._levels.append([])
            self.tops.append(NO_TOTAL)
        levels = self._levels[group]
        insort(levels, key & TOTAL)
        self.tops[group] = levels[-1]

    def _set(self, key: int) -> RowSet:
        """The rows with a group and total, in a form that can be changed."""
        rows = self._rows[key]
        if type(rows) is list and len(rows) <= MOST_LISTED:
            return rows
        found = self._rows[key] = row_sets.row_set(rows, self._capacity)
        return found

    def best(self, groups: Sequence[int]) -> RowSet | RowUnion:
        """The rows with the highest total of each group."""
        tops = self.tops
        return self._union([(group << SHIFT) | tops[group] for group in groups])

    def _union(self, keys: Sequence[int]) -> RowSet | RowUnion:
        if len(keys) == 1:
            return self._set(keys[0])
        return RowUnion([self._set(key) for key in keys], self._capacity)

    def descending(self, added: Iterable[tuple[int, int]]) -> Iterator[RowSet | RowUnion]:
        """All rows of groups, those with the highest sum of total and added score first."""
        heap = [(-more - self.tops[group], group, -1) for group, more in added]
        heapify(heap)
        while heap:
            first, keys = heap[0][0], []
            while heap and heap[0][0] == first:
                negated, group, at = heap[0]
                levels = self._levels[group]
                keys.append((group << SHIFT) | levels[at])
                if at == -len(levels):
                    heappop(heap)
                else:
                    less = levels[at] - levels[at - 1]
                    heapreplace(heap, (negated + less, group, at - 1))
            yield self._union(keys)
