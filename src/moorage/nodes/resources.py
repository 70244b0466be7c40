"""ResourceColumns: one column of amounts per resource name, made when a name first appears.

Amounts are kept twice: in arrays, for questions about all rows, and in lists, because reading one
row of a list is several times quicker. Lines of arrays that others calculate with may follow a
column.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
# Arrays, and which of their lines it is (a view of a line would be pickled as a copy); they follow
# what is left of some offers, if there are any here.
Followers = list[tuple[Floats, int, list[int] | None]]


class ResourceColumns:
    """Amounts per resource and row; a name that nobody has is a column of zeros."""

    __slots__ = ("_all", "_capacity", "_zeros", "columns", "values")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.columns: dict[str, Ints] = {}
        # The same as plain integers.
        self.values: dict[str, list[int]] = {}
        # Both of them, and the lines of others' arrays that follow.
        self._all: dict[str, tuple[list[int], Ints, Followers]] = {}
        self._zeros = _zeros(capacity)

    def __getitem__(self, name: str) -> Ints:
        return self.columns.get(name, self._zeros)

    def follow(self, name: str, lines: Floats, line: int) -> None:
        """Keep a line of an array equal to a column, until the number of rows grows."""
        _, column, followers = self._all.get(name) or self._make(name)
        followers.append((lines, line, None))
        lines[line] = column

    def leave(self, name: str, lines: Floats, line: int, offers: "ResourceColumns") -> None:
        """The same for what a column leaves of what is offered."""
        _, column, followers = self._all.get(name) or self._make(name)
        offered, amounts, _ = offers._all.get(name) or offers._make(name)
        followers.append((lines, line, offered))
        lines[line] = amounts - column

    def unfollow(self) -> None:
        """Nobody follows a column any more."""
        for _, _, followers in self._all.values():
            followers.clear()

    def of_row(self, row: int) -> dict[str, int]:
        """All amounts of a row that are not zero."""
        return {name: values[row] for name, values in self.values.items() if values[row]}

    def add(self, row: int, amounts: Iterable[tuple[str, int]], sign: int = 1) -> None:
        """Add to amounts of a row, or take away from them."""
        for name, change in amounts:
            values, column, followers = self._all.get(name) or self._make(name)
            amount = values[row] + sign * change
            try:
                column[row] = amount
            except OverflowError:
                amount = (amount + LIMIT) % (2 * LIMIT) - LIMIT  # As integers of 64 bits do.
                column[row] = amount
            values[row] = amount
            for lines, line, offered in followers:
                lines[line, row] = amount if offered is None else offered[row] - amount

    def _make(self, name: str) -> tuple[list[int], Ints, Followers]:
        column = self.columns[name] = np.zeros(self._capacity, dtype=np.int64)
        values = self.values[name] = [0] * self._capacity
        self._all[name] = values, column, []
        return self._all[name]

    def replace_row(self, row: int, amounts: Iterable[tuple[str, int]]) -> None:
        """Set a row to exactly these amounts."""
        self.add(row, list(self.of_row(row).items()), -1)
        self.add(row, amounts)

    def grow(self, capacity: int) -> None:
        """Make room for more rows; who follows a column has to begin anew."""
        more = capacity - self._capacity
        for name, column in self.columns.items():
            column = np.concatenate([column, np.zeros(more, dtype=np.int64)])
            self.values[name].extend([0] * more)
            self.columns[name], self._all[name] = column, (self.values[name], column, [])
        self._capacity = capacity
        self._zeros = _zeros(capacity)


LIMIT = 1 << 63


def _zeros(capacity: int) -> Ints:
    zeros = np.zeros(capacity, dtype=np.int64)
    zeros.flags.writeable = False  # It is shared by every name that nobody has.
    return zeros
