"""Sets of rows, ascending, of which the n-th is found quickly. RowUnion: several of them as one."""

from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import chain, repeat

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
        self._length = sum(map(len, sets))

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> int:
        sets = self._sets
        if RowBlocks in map(type, sets):
            return RowBlocks.nth([blocks_of(each, self._capacity) for each in sets], index)
        return nth(sets, index, self._length)  # type: ignore[arg-type]  # no blocks

    def first(self, count: int) -> list[int]:
        """The first rows."""
        return sorted(chain.from_iterable([first(each, count) for each in self._sets]))[:count]


def nth(lists: Sequence[list[int]], index: int, length: int) -> int:
    """The n-th of all numbers in sorted lists, which have so many together.

    A guess is made from the share that a list has of all numbers. It is good if the lists are
    distributed alike, and otherwise leaves more to sort.
    """
    longest = lists[0] if len(lists[0]) * len(lists) >= length else max(lists, key=len)
    guess = index * len(longest) // length
    starts = [*map(bisect_left, lists, repeat(longest[guess]))]
    missing, guesses = index - sum(starts), 1
    while not -NEAR < missing < NEAR and guesses < MOST_GUESSES:
        guess = min(max(guess + missing * len(longest) // length, 0), len(longest) - 1)
        starts = [*map(bisect_left, lists, repeat(longest[guess]))]
        missing, guesses = index - sum(starts), guesses + 1
    # So many numbers are less than the guess, or not less, and come before the one that is wanted.
    both = zip(lists, starts, strict=True)
    if missing >= 0:
        near = [each[start : start + missing + 1] for each, start in both]
    else:
        near = [each[max(start + missing, 0) : start] for each, start in both]
    return sorted(chain.from_iterable(near))[missing]
