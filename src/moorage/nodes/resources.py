"""ResourceColumns: one column of amounts per resource name, made when a name first appears.

Amounts are kept twice: in arrays, to compute with all rows, and in lists, because reading one row
of a list is several times faster.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.api import quantity

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
# The amounts of a resource by row, as a list and as an array, and by how much one changes.
AmountChange = tuple[list[int], Ints, int]


class Zeros:
    """The amounts of a resource that no row has."""

    def __getitem__(self, row: int) -> int:
        return 0


ZEROS = Zeros()


class ResourceColumns:
    """Amounts per resource and row; an unknown name is a column of zeros."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.columns: dict[str, Ints] = {}
        # The same as plain integers.
        self.values: dict[str, list[int]] = {}
        # The same without names, in the order in which they appeared.
        self.lists: list[list[int]] = []
        self._zeros = _zeros(capacity)

    def __getitem__(self, name: str) -> Ints:
        return self.columns.get(name, self._zeros)

    def of_row(self, row: int) -> dict[str, int]:
        """All amounts of a row that are not zero."""
        return {name: values[row] for name, values in self.values.items() if values[row]}

    def totals(self) -> dict[str, int]:
        """The sum over all rows, by resource."""
        return {name: exact_sum(column) for name, column in self.columns.items()}

    def changes(self, amounts: Iterable[tuple[str, int]]) -> list[AmountChange]:
        """Where to add amounts, for `add_to_row`; valid until the next `grow`."""
        return [
            (self.values.get(name) or self._make(name), self.columns[name], change)
            for name, change in amounts
        ]

    def _make(self, name: str) -> list[int]:
        self.columns[name] = np.zeros(self._capacity, dtype=np.int64)
        values = self.values[name] = [0] * self._capacity
        self.lists.append(values)
        return values

    def add_many(
        self, rows: Rows, which: Rows, amounts: Sequence[tuple[tuple[str, int], ...]]
    ) -> None:
        """Add amounts to many rows: to each those at its index in `which`."""
        for name in dict.fromkeys(name for each in amounts for name, _ in each):
            values = self.values.get(name) or self._make(name)
            column = self.columns[name]
            changes = np.array([dict(each).get(name, 0) for each in amounts], dtype=np.int64)
            np.add.at(column, rows, changes[which])
            values[:] = column.tolist()

    def replace_row(self, row: int, amounts: Iterable[tuple[str, int]]) -> None:
        """Set a row to exactly these amounts."""
        add_to_row(row, negative(self.changes(self.of_row(row).items())))
        add_to_row(row, self.changes(amounts))

    def grow(self, capacity: int) -> None:
        """Add rows up to a capacity."""
        more = capacity - self._capacity
        for name, column in self.columns.items():
            self.columns[name] = np.pad(column, (0, more))
            self.values[name].extend([0] * more)
        self._capacity = capacity
        self._zeros = _zeros(capacity)


def add_to_row(row: int, changes: Iterable[AmountChange]) -> None:
    """Change amounts of a row."""
    for values, column, change in changes:
        amount = values[row] = values[row] + change
        try:
            column[row] = amount
        except OverflowError:
            column[row] = values[row] = quantity.wrapped(amount)


def exact_sum(amounts: Ints) -> int:
    """The sum of amounts, which may be beyond 64 bits."""
    rough = float(amounts.sum(dtype=np.float64))
    is_exact = abs(rough) < quantity.INT64_MAX / 2
    return int(amounts.sum()) if is_exact else sum(amounts.tolist())


def negative(changes: Iterable[AmountChange]) -> list[AmountChange]:
    """The changes that undo others."""
    return [(values, column, -change) for values, column, change in changes]


def _zeros(capacity: int) -> Ints:
    zeros = np.zeros(capacity, dtype=np.int64)
    zeros.flags.writeable = False  # It is shared by all unknown names.
    return zeros
