"""Column: one value per node, read off the node object, kept in an array.

A plugin declares the columns that it reads; the table builds each when it is first asked for and
reads a row again only when that row's node object changes. Reading runs the plugin's code, which
may raise: that troubles whoever asks for that node's value, and nobody else.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from moorage.api.node import Node
from moorage.errors import PLUGIN_EXCEPTIONS, MoorageError


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """How one value is read off a node; rows without a node hold `default`."""

    name: str
    dtype: DTypeLike
    read: Callable[[Node], Any]
    default: Any = 0

    def empty(self, capacity: int) -> np.ndarray[Any, Any]:
        """An array of that many rows, none of them read yet."""
        # Not np.full, which would take a default of () for an array.
        return np.fromiter(repeat(self.default, capacity), dtype=self.dtype, count=capacity)


class ColumnError(MoorageError):
    """A node's value could not be read off it."""


class ColumnValues:
    """The values of one column, and the rows that could not be read."""

    __slots__ = ("_column", "_unreadable", "_values")

    def __init__(self, column: Column, capacity: int) -> None:
        self._column = column
        self._values = column.empty(capacity)
        self._unreadable: dict[int, str] = {}

    def __getitem__(self, index: Any) -> np.ndarray[Any, Any]:
        """Some values, or all of them."""
        values: np.ndarray[Any, Any] = self._values[index]
        if self._unreadable:
            asked = set(np.arange(len(self._values))[index].tolist())
            self._complain(row for row in self._unreadable if row in asked)
        return values

    def at(self, row: int) -> Any:
        """One value, as plain Python has it."""
        if row in self._unreadable:
            self._complain([row])
        return self._values.item(row)

    def _complain(self, rows: Iterable[int]) -> None:
        for row in rows:
            raise ColumnError(f"column {self._column.name}: {self._unreadable[row]}")

    def set(self, row: int, node: Node | None) -> None:
        """Read a row again."""
        self._unreadable.pop(row, None)
        self._values[row] = self._column.default
        if node is not None:
            try:
                self._values[row] = self._column.read(node)
            except PLUGIN_EXCEPTIONS as trouble:  # It is a plugin's code; it may raise anything.
                self._unreadable[row] = f"node {node.name}: {trouble}"

    def grow(self, capacity: int) -> None:
        """Make room for more rows."""
        more = self._column.empty(capacity - len(self._values))
        self._values = np.concatenate([self._values, more])
