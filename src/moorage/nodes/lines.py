"""Lines: several resources of all rows, one below the other in one array of floats.

For whoever calculates with them. They are brought up to date when somebody asks, because most pods
are of templates that have been scored before, and then nobody does.
"""

from typing import TYPE_CHECKING

import numpy as np

from moorage.nodes.resources import Floats, ResourceColumns

if TYPE_CHECKING:
    from moorage.nodes.table import NodeTable

# Up to so many rows are quicker written one by one.
FEW = 16

# Resources, each with whether pods that state nothing of it count with a default.
Counted = tuple[tuple[str, bool], ...]


class Lines:
    """What pods count for, or what they leave of what nodes offer."""

    __slots__ = ("_leaves", "_resources", "_seen", "_values")

    def __init__(self, resources: Counted, *, leaves: bool) -> None:
        self._resources = resources
        self._leaves = leaves
        self._values: Floats = np.zeros((0, 0))
        self._seen = -1

    def current(self, table: "NodeTable") -> Floats:
        """All of them, as they are now."""
        position = table.changes.position
        if position != self._seen:
            rows = table.changes.since(self._seen)
            if rows is None or len(rows) > table.capacity:
                self._write_all(table)
            elif len(rows) > FEW:
                self._write(table, np.array(rows, dtype=np.intp))
            else:
                self._write_few(table, rows)
            self._seen = position
        return self._values

    def _write_all(self, table: "NodeTable") -> None:
        self._values = np.empty((len(self._resources), table.capacity))
        self._write(table, slice(None))

    def _write(self, table: "NodeTable", rows: slice | np.ndarray) -> None:
        for line, (resource, defaulted) in enumerate(self._resources):
            amounts = _columns(table, defaulted=defaulted)[resource][rows]
            if self._leaves:
                amounts = table.allocatable_columns[resource][rows] - amounts
            self._values[line, rows] = amounts

    def _write_few(self, table: "NodeTable", rows: list[int]) -> None:
        offers = table.allocatable_columns
        for line, (resource, defaulted) in enumerate(self._resources):
            columns = _columns(table, defaulted=defaulted)
            for row in rows:
                amount = columns.at(resource, row)
                self._values[line, row] = (
                    offers.at(resource, row) - amount if self._leaves else amount
                )


def _columns(table: "NodeTable", *, defaulted: bool) -> ResourceColumns:
    return table.nonzero_columns if defaulted else table.requested_columns
