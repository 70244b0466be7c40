"""RankedGroups: the feasible rows of a template, by group and by the total of their cached scores.

A row that changes is moved from one set of rows to another. So the best rows of every group are
known at any time, and so is what comes next when they are used up.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.framework.views import row_sets
from moorage.framework.views.row_sets import MOST_LISTED, RowSet, RowUnion
from moorage.framework.views.totals import TotalView
from moorage.framework.views.view import RowArray
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
        # Grows when the highest total of a group changes.
        self.version = 0
        self._build()

    def _build(self) -> None:
        self.version += 1
        # Another object when all totals were computed again.
        self._scored = self._total.scored
        totals, group_of = self._scored.totals, self.groups.group_of
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

    def refresh(self) -> None:
        """Move the rows whose group or total changed, after the totals were brought up to date.

        A total changes with the node of the row or the pods on it, and so does the group.
        """
        moved, scored = self.groups.refresh(), self._scored
        if moved is None or scored is not self._total.scored:
            self._build()
            return
        keys = self._keys
        for row in moved:
            total, before = scored.totals.item(row), keys.item(row)
            key = NOT_FEASIBLE
            if total >= 0:
                key = (self.groups.group_of.item(row) << SHIFT) | total
            if key == before:
                continue
            keys[row] = key
            if before >= 0:
                self._take_out(row, before)
            if key >= 0:
                self._put_in(row, key)
            group, to = before >> SHIFT, key >> SHIFT
            if group != to:
                self.feasible.move(group, to)

    def _take_out(self, row: int, key: int) -> None:
        rows = self._rows[key]
        if len(rows) > 1:
            if type(rows) is list:
                rows.pop(bisect_left(rows, row))
            else:
                row_sets.remove(self._set(key), row)
            return
        del self._rows[key]
        group = key >> SHIFT
        levels = self._levels[group]
        levels.remove(key & TOTAL)
        self.tops[group] = levels[-1] if levels else NO_TOTAL
        self.version += 1

    def _put_in(self, row: int, key: int) -> None:
        rows = self._rows.get(key)
        if rows is not None:
            if type(rows) is list and len(rows) < MOST_LISTED:
                insort(rows, row)
            else:
                row_sets.add(self._set(key), row)
            return
        self._rows[key] = [row]
        group = key >> SHIFT
        while group >= len(self._levels):
            self._levels.append([])
            self.tops.append(NO_TOTAL)
        levels = self._levels[group]
        insort(levels, key & TOTAL)
        self.tops[group] = levels[-1]
        self.version += 1

    def _set(self, key: int) -> RowSet:
        """The rows with a group and total, in a form that can be changed."""
        rows = self._rows[key]
        if type(rows) is list and len(rows) <= MOST_LISTED:
            return rows
        found = self._rows[key] = row_sets.row_set(rows, self._capacity)
        return found

    def best_of(self, group: int) -> int:
        """The set with the highest total of a group, by its key."""
        return (group << SHIFT) | self.tops[group]

    def best(self, groups: Sequence[int]) -> tuple[int, ...]:
        """The same of several groups."""
        return tuple(map(self.best_of, groups))

    def rows(self, keys: tuple[int, ...]) -> RowSet | RowUnion:
        """The rows of sets."""
        if len(keys) == 1:
            rows = self._rows[keys[0]]
            return rows if type(rows) is list else self._set(keys[0])
        return RowUnion([*map(self._set, keys)], self._capacity)
