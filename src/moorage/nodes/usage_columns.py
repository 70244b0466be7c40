"""UsageColumn: one value per node that follows from what its pods take, whoever asks.

Like a Column, but it goes stale when pods come and go, too. It is brought up to date when somebody
asks: a few changed rows one by one, many at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from moorage.nodes.info import NodeInfo

if TYPE_CHECKING:
    from moorage.nodes.table import NodeTable, Rows

FEW = 6


@dataclass(frozen=True, slots=True, eq=False)
class UsageColumn:
    """How one value is worked out for a node, and for many rows; the two have to agree.

    It may be several values, as a list; many rows then have a line for each of them.
    """

    name: str
    read: Callable[[NodeInfo], Any]
    read_all: Callable[["Rows"], NDArray[Any]]


class UsageValues:
    """The values of one usage column, and up to which change they are right."""

    __slots__ = ("_column", "_seen", "_values")

    def __init__(self, column: UsageColumn) -> None:
        self._column = column
        self._values: NDArray[Any] = np.zeros(0)
        self._seen = -1

    def current(self, table: "NodeTable") -> NDArray[Any]:
        """All values, brought up to date."""
        position = table.changes.position
        if position == self._seen:
            return self._values
        rows = table.changes.since(self._seen)
        if rows is None or len(rows) > table.capacity:
            self._values = self._column.read_all(table).copy()
        elif len(rows) <= FEW:
            for row in rows:
                if table.nodes[row] is not None:
                    self._values[..., row] = self._column.read(table.info(row))
        else:
            changed = np.unique(np.array(rows, dtype=np.intp))
            self._values[..., changed] = self._column.read_all(table.slice(changed))
        self._seen = position
        return self._values
