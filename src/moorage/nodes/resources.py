"""ResourceColumns: one int64 column per resource name, made when a name first appears."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class ResourceColumns:
    """Amounts per resource and row; a name that nobody has is a column of zeros."""

    __slots__ = ("_capacity", "_floats", "_zeros", "columns")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.columns: dict[str, Ints] = {}
        self._zeros = _zeros(capacity)
        self._floats: dict[tuple[str, ...], tuple[Floats, int]] = {}

    def __getitem__(self, name: str) -> Ints:
        return self.columns.get(name, self._zeros)

    def at(self, name: str, row: int) -> int:
        """One amount as a plain integer."""
        column = self.columns.get(name)
        return 0 if column is None else int(column[row])

    def floats(self, names: tuple[str, ...]) -> Floats:
        """Columns to divide by, one below the other: as floats, 1 where there is nothing."""
        return self._as_floats(names)[0]

    def largest(self, names: tuple[str, ...]) -> int:
        """The largest amount of these columns."""
        return self._as_floats(names)[1]

    def _as_floats(self, names: tuple[str, ...]) -> tuple[Floats, int]:
        known = self._floats.get(names)
        if known is None:
            columns = np.maximum(np.stack([self[name] for name in names]), 1)
            known = self._floats[names] = columns.astype(np.float64), int(columns.max(initial=1))
        return known

    def of_row(self, row: int) -> dict[str, int]:
        """All amounts of a row that are not zero."""
        return {name: int(col[row]) for name, col in self.columns.items() if col[row]}

    def add(self, name: str, row: int, amount: int) -> None:
        """Change one amount."""
        column = self.columns.get(name)
        if column is None:
            column = self.columns[name] = np.zeros(self._capacity, dtype=np.int64)
        column[row] += amount

    def replace_row(self, row: int, amounts: Iterable[tuple[str, int]]) -> None:
        """Set a row to exactly these amounts."""
        self._floats.clear()
        for column in self.columns.values():
            column[row] = 0
        for name, amount in amounts:
            self.add(name, row, amount)

    def grow(self, capacity: int) -> None:
        """Make room for more rows."""
        more = capacity - self._capacity
        for name, column in self.columns.items():
            self.columns[name] = np.concatenate([column, np.zeros(more, dtype=np.int64)])
        self._capacity = capacity
        self._zeros = _zeros(capacity)
        self._floats.clear()


def _zeros(capacity: int) -> Ints:
    zeros = np.zeros(capacity, dtype=np.int64)
    zeros.flags.writeable = False  # It is shared by every name that nobody has.
    return zeros
