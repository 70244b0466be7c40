"""Columns that plugins declare: one value per node, kept in an array.

A `Column` is read off the node object. The table builds it at the first access and reads a row
again only when that row's node object changes. Reading runs plugin code, which may raise: the
error is raised again when that row is read, and for no other row.

A `UsageColumn` follows from the node and its pods, so it also changes when pods come and go.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from moorage.api.node import Node
from moorage.errors import MoorageError, describe, location
from moorage.nodes.changes import FEW_ROWS, Cursor, RowLog

if TYPE_CHECKING:
    from moorage.nodes.info import NodeInfo
    from moorage.nodes.rows import Rows
    from moorage.nodes.table import NodeTable


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """How one value is read off a node; rows without a node hold `default`."""

    name: str
    dtype: DTypeLike
    read: Callable[[Node], Any]
    default: Any = 0

    def empty(self, capacity: int) -> NDArray[Any]:
        """An array of that many rows, none of them read yet."""
        # Not np.full, which would take a default of () for an array.
        return np.fromiter(repeat(self.default, capacity), dtype=self.dtype, count=capacity)


class ColumnError(MoorageError):
    """A node's value could not be read off it."""


class ColumnValues:
    """The values of one column, and the rows that could not be read."""

    def __init__(self, column: Column, capacity: int) -> None:
        self._column = column
        self._values = column.empty(capacity)
        self._errors: dict[int, str] = {}

    def __getitem__(self, index: Any) -> NDArray[Any]:
        """Some values, or all of them."""
        values: NDArray[Any] = self._values[index]
        if self._errors:
            rows = set(np.arange(len(self._values))[index].tolist())
            for row in self._errors:
                if row in rows:
                    raise self._error(row)
        return values

    def at(self, row: int) -> Any:
        """One value, as a Python object."""
        if row in self._errors:
            raise self._error(row)
        return self._values.item(row)

    def _error(self, row: int) -> ColumnError:
        return ColumnError(f"column {self._column.name}: {self._errors[row]}")

    def read(self, nodes: Sequence[Node | None]) -> None:
        """Read the first rows, all together: row by row takes three times as long."""
        column, count = self._column, len(nodes)
        read, default = column.read, column.default
        try:
            values = [default if node is None else read(node) for node in nodes]
            self._values[:count] = np.fromiter(values, dtype=column.dtype, count=count)
        except KeyboardInterrupt:
            raise
        except BaseException:  # Find out which rows cannot be read.
            for row, node in enumerate(nodes):
                self.set(row, node)

    def set(self, row: int, node: Node | None) -> None:
        """Read a row again."""
        self._errors.pop(row, None)
        self._values[row] = self._column.default
        if node is not None:
            try:
                self._values[row] = self._column.read(node)
            except KeyboardInterrupt:
                raise
            except BaseException as raised:  # Plugin code may raise anything.
                self._errors[row] = f"node {node.name}: {describe(raised)}{location(raised)}"

    def grow(self, capacity: int) -> None:
        """Add rows up to a capacity."""
        more = self._column.empty(capacity - len(self._values))
        self._values = np.concatenate([self._values, more])


@dataclass(frozen=True, slots=True, eq=False)
class UsageColumn:
    """How one value is computed for a node, and for many rows; the two have to agree.

    It may be several values, as a list; many rows then have a line for each of them.
    """

    name: str
    read: Callable[["NodeInfo"], Any]
    read_all: Callable[["Rows"], NDArray[Any]]


class UsageValues:
    """The values of one usage column, brought up to date when they are read."""

    def __init__(self, column: UsageColumn, changes: RowLog) -> None:
        self._column = column
        self._cursor = Cursor(changes)
        self._values: NDArray[Any] = np.zeros(0)

    def current(self, table: "NodeTable") -> NDArray[Any]:
        """All values, up to date."""
        cursor, log = self._cursor, table.changes
        if cursor.position == log.position:
            return self._values
        if cursor.position + 1 == log.position and log.entries:
            row = log.entries[-1]
            if table.nodes[row] is not None:
                self._values[..., row] = self._column.read(table.info(row))
            cursor.position = log.position
            return self._values
        rows = cursor.changed()
        if rows is None or len(rows) > table.capacity:
            self._values = self._column.read_all(table).copy()
        elif len(rows) <= FEW_ROWS:
            for row in rows:
                if table.nodes[row] is not None:
                    self._values[..., row] = self._column.read(table.info(row))
        else:
            changed = np.array(rows, dtype=np.intp)
            self._values[..., changed] = self._column.read_all(table.slice(changed))
        cursor.commit()
        return self._values
