"""Sets of rows, ascending, of which the n-th is found quickly. RowUnion: several of them as one.
BestRows: the rows with the highest total.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import chain, repeat

import numpy as np

from moorage.framework.status import Scores
from moorage.framework.views.view import RowArray

# Taking a row out of a longer list takes longer than counting rows by block.
MOST_LISTED = 1 << 14
# How often a better guess pays; afterwards the rows between guess and result are sorted.
MOST_GUESSES = 3
NEAR = 32


class RowBlocks:
    """Very many rows, ascending, with a count for each block of rows.

    The n-th row is found by adding up the counts and looking into one block, so that neither that
    nor a change takes time in proportion to the rows.
    """

    BLOCK = 2048

    def __init__(self, rows: RowArray, capacity: int) -> None:
        blocks = -(-capacity // self.BLOCK)
        self._has_row = np.zeros(blocks * self.BLOCK, dtype=np.bool_)
        self._has_row[rows] = True
        self._by_block = self._has_row.reshape(blocks, self.BLOCK)
        self._counts = self._by_block.sum(axis=1)
        self._length = len(rows)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> int:
        return self.nth([self], index)

    @classmethod
    def nth(cls, each: "Sequence[RowBlocks]", index: int) -> int:
        """The n-th row of several together, which have none in common."""
        first, *others = each
        ends = sum([blocks._counts for blocks in others], first._counts).cumsum()
        block = int(ends.searchsorted(index, side="right"))
        at = index - (ends.item(block - 1) if block else 0)
        has_row = first._by_block[block]
        for blocks in others:
            has_row = has_row | blocks._by_block[block]
        row: int = block * cls.BLOCK + has_row.nonzero()[0].item(at)
        return row

    def add(self, row: int) -> None:
        """Add a row that is not there."""
        self._has_row[row] = True
        self._counts[row // self.BLOCK] += 1
        self._length += 1

    def remove(self, row: int) -> None:
        """Remove a row."""
        self._has_row[row] = False
        self._counts[row // self.BLOCK] -= 1
        self._length -= 1


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


class BestRows:
    """The highest total, and the rows that have it, ascending.

    After a pod was placed, one row has another total. Then finding the best again takes a look at
    that row, not at all of them; only when none is left are all totals searched.
    """

    # An array of rows is quick to make and slow to change, a list the other way round: the array
    # becomes a list after so many changes.
    ARRAY_CHANGES = 8

    def __init__(self) -> None:
        self._best = -1
        self._array: RowArray | None = None
        self._rows: list[int] | RowBlocks = []
        self._changes = 0
        self._capacity = 0

    def change(self, row: int, before: int, after: int) -> None:
        """The total of one row changed."""
        if self._array is not None and self._is_listed(self._array):
            self._change_array(self._array, row, before, after)
            return
        rows = self._rows
        if not rows:
            return
        if before == self._best:
            rows.remove(row) if isinstance(rows, RowBlocks) else rows.pop(bisect_left(rows, row))
        if after > self._best:
            self._best, self._rows = after, [row]
        elif after == self._best:
            rows.add(row) if isinstance(rows, RowBlocks) else insort(rows, row)

    def _is_listed(self, array: RowArray) -> bool:
        """Whether the rows stay an array; else they are in `_rows` from now on."""
        self._changes += 1
        if len(array) > MOST_LISTED:
            self._rows, self._array = RowBlocks(array, self._capacity), None
        elif self._changes > self.ARRAY_CHANGES:
            self._rows, self._array = array.tolist(), None
        return self._array is not None

    def _change_array(self, array: RowArray, row: int, before: int, after: int) -> None:
        if after > self._best:
            self._best, self._rows, self._array = after, [row], None
            return
        at = int(array.searchsorted(row))
        if before == self._best:
            array = np.concatenate((array[:at], array[at + 1 :]))
        elif after == self._best:
            array = np.concatenate((array[:at], [row], array[at:]))
        self._array = array if len(array) else None

    def rows(self, totals: Scores) -> "Sequence[int] | RowArray | RowBlocks":
        """The best rows; searched among all totals if they are not known."""
        if self._rows:
            return self._rows
        if self._array is None:
            # Finding where the maximum is takes less time than finding how high it is.
            self._best = totals.item(totals.argmax())
            self._array = (totals == self._best).nonzero()[0]
            self._changes, self._capacity = 0, len(totals)
        return self._array
