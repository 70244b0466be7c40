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


class ResourceColumns:
    """Amounts per resource and row; a name that nobody has is a column of zeros."""

    __slots__ = ("_capacity", "_lines", "_zeros", "columns", "values")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.columns: dict[str, Ints] = {}
        # The same as plain integers.
        self.values: dict[str, list[int]] = {}
        # Lines of others' arrays that follow a column.
        self._lines: dict[str, list[Floats]] = {}
        self._zeros = _zeros(capacity)

    def __getitem__(self, name: str) -> Ints:
        return self.columns.get(name, self._zeros)

    def follow(self, name: str, line: Floats) -> None:
        """Keep a line of an array equal to a column, until the number of rows grows."""
        self._lines.setdefault(name, []).append(line)
        line[:] = self[name]

    def unfollow(self) -> None:
        """Nobody follows a column any more."""
        self._lines.clear()

    def of_row(self, row: int) -> dict[str, int]:
        """All amounts of a row that are not zero."""
        return {name: values[row] for name, values in self.values.items() if values[row]}

    def add(self, name: str, row: int, amount: int) -> None:
        """Change one amount."""
        values = self.values.get(name)
        if values is None:
            values = self._make(name)
        amount = values[row] + amount
        if not -LIMIT <= amount < LIMIT:
            amount = (amount + LIMIT) % (2 * LIMIT) - LIMIT  # As integers of 64 bits do.
        values[row] = amount
        self.columns[name][row] = amount
        for line in self._lines.get(name, ()):
            line[row] = amount

    def _make(self, name: str) -> list[int]:
        self.columns[name] = np.zeros(self._capacity, dtype=np.int64)
        self.values[name] = [0] * self._capacity
        return self.values[name]

    def replace_row(self, row: int, amounts: Iterable[tuple[str, int]]) -> None:
        """Set a row to exactly these amounts."""
        for name, values in self.values.items():
            if values[row]:
                self.add(name, row, -values[row])
        for name, amount in amounts:
            self.add(name, row, amount)

    def grow(self, capacity: int) -> None:
        """Make room for more rows; who follows a column has to begin anew."""
        more = capacity - self._capacity
        for name, column in self.columns.items():
            self.columns[name] = np.concatenate([column, np.zeros(more, dtype=np.int64)])
            self.values[name].extend([0] * more)
        self._capacity = capacity
        self._zeros = _zeros(capacity)
        self._lines.clear()


LIMIT = 1 << 63


def _zeros(capacity: int) -> Ints:
    zeros = np.zeros(capacity, dtype=np.int64)
    zeros.flags.writeable = False  # It is shared by every name that nobody has.
    return zeros
