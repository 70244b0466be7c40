"""Sets of rows, ascending, of which the n-th is found quickly. RowUnion: several of them as one."""

from bisect import bisect_left, insort
from collections.abc import Sequence

import numpy as np

from moorage.framework.views.totals import RowBlocks
from moorage.framework.views.view import RowArray

# Taking a row out of a longer list takes longer than counting rows by block.
MOST_LISTED = 1 << 14
# How often a better guess pays; afterwards the rows between guess and result are sorted.
MOST_GUESSES = 3
NEAR = 32

RowSet = list[int] | RowBlocks


def row_set(rows: RowArray | RowSet, capacity: int) -> RowSet:
    """Rows as a list, or by block if they are many."""
    if len(rows) > MOST_LISTED:
        return blocks_of(rows, capacity)
    return rows.tolist() if isinstance(rows, np.ndarray) else rows


def blocks_of(rows: RowArray | RowSet, capacity: int) -> RowBlocks:
    """Rows by block."""
    return rows if isinstance(rows, RowBlocks) else RowBlocks(np.asarray(rows), capacity)


def add(rows: RowSet, row: int) -> None:
    """Add a row that is not there."""
    insort(rows, row) if isinstance(rows, list) else rows.add(row)


def remove(rows: RowSet, row: int) -> None:
    """Remove a row."""
    rows.pop(bisect_left(rows, row)) if isinstance(rows, list) else rows.remove(row)


def first(rows: "RowSet | RowUnion", count: int) -> list[int]:
    """The first rows."""
    return rows[:count] if isinstance(rows, list) else rows.first(count)


class RowUnion:
    """The rows of sets that have none in common, ascending."""

    __slots__ = ("_capacity", "_length", "_sets")

    def __init__(self, sets: Sequence[RowSet], capacity: int) -> None:
        self._sets = sets
        self._capacity = capacity
        self._length = len(sets[0]) if len(sets) == 1 else sum(map(len, sets))

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> int:
        sets = self._sets
        if len(sets) == 1:
            return sets[0][index]
        lists = [each for each in sets if isinstance(each, list)]
        if len(lists) == len(sets):
            return nth(lists, index, self._length)
        return RowBlocks.nth([blocks_of(each, self._capacity) for each in sets], index)

    def first(self, count: int) -> list[int]:
        """The first rows."""
        found: list[int] = []
        for each in self._sets:
            found += each[:count] if isinstance(each, list) else each.first(count)
        found.sort()
        return found[:count]


def nth(lists: Sequence[list[int]], index: int, length: int) -> int:
    """The n-th of all numbers in sorted lists, which have so many together.

    A guess is made from the share that a list has of all numbers. It is good if the lists are
    distributed alike, and otherwise leaves more to sort.
    """
    longest = lists[0] if len(lists[0]) * len(lists) >= length else max(lists, key=len)
    share, guess = len(longest) / length, 0.0
    starts, missing = [0] * len(lists), index
    for _ in range(MOST_GUESSES):
        guess = min(max(guess + missing * share, 0.0), len(longest) - 1)
        pivot = longest[int(guess)]
        starts = [bisect_left(each, pivot) for each in lists]
        missing = index - sum(starts)
        if -NEAR < missing < NEAR:
            break
    # So many numbers are less than the pivot, or not less, and come before the one that is wanted.
    near: list[int] = []
    for each, start in zip(lists, starts, strict=True):
        if missing >= 0:
            near += each[start : start + missing + 1]
        else:
            near += each[max(start + missing, 0) : start]
    near.sort()
    return near[missing]
