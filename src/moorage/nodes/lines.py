"""Lines: several resources of all rows, one below the other in one array of floats.

For whoever calculates with them. They are brought up to date when somebody asks, because most pods
are of templates that have been scored before, and then nobody does.
"""

from typing import TYPE_CHECKING

import numpy as np

from moorage.nodes.resources import Floats, ResourceColumns

if TYPE_CHECKING:
    from moorage.nodes.amounts import AmountTable

# Up to so many rows are quicker written one by one.
FEW = 16

# Resources, each with whether pods that state nothing of it count with a default.
Counted = tuple[tuple[str, bool], ...]


class _Nothing:
    """The amounts of a resource of which nobody has anything."""

    def __getitem__(self, row: int) -> int:
        return 0


NOTHING = _Nothing()
Amounts = list[int] | _Nothing


class Lines:
    """What pods count for, or what they leave of what nodes offer."""

    __slots__ = ("_leaves", "_resources", "_seen", "_sources", "_times", "_values")

    def __init__(self, resources: Counted, *, leaves: bool, times: int = 1) -> None:
        self._resources = resources
        self._leaves = leaves
        # What all amounts are multiplied by.
        self._times = times
        self._values: Floats = np.zeros((0, 0))
        self._seen = -1
        # What pods take and what nodes offer, row by row, once there is something of everything.
        self._sources: list[tuple[Amounts, Amounts | None]] | None = None

    def current(self, table: "AmountTable") -> Floats:
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

    def _write_all(self, table: "AmountTable") -> None:
        self._values = np.empty((len(self._resources), table.capacity))
        self._sources = None
        self._write(table, slice(None))

    def _write(self, table: "AmountTable", rows: slice | np.ndarray) -> None:
        for line, (resource, defaulted) in enumerate(self._resources):
            amounts = _columns(table, defaulted=defaulted)[resource][rows]
            if self._leaves:
                amounts = table.allocatable_columns[resource][rows] - amounts
            self._values[line, rows] = amounts * self._times

    def _write_few(self, table: "AmountTable", rows: list[int]) -> None:
        values, times = self._values, self._times
        for line, (taken, offered) in enumerate(self._sources or self._find_sources(table)):
            for row in rows:
                amount = taken[row] if offered is None else offered[row] - taken[row]
                values[line, row] = amount * times

    def _find_sources(self, table: "AmountTable") -> list[tuple[Amounts, Amounts | None]]:
        sources: list[tuple[Amounts, Amounts | None]] = []
        for resource, defaulted in self._resources:
            taken = _columns(table, defaulted=defaulted).values.get(resource, NOTHING)
            offered = table.allocatable_columns.values.get(resource, NOTHING)
            sources.append((taken, offered if self._leaves else None))
        if not any(each is NOTHING for pair in sources for each in pair):
            self._sources = sources
        return sources


def _columns(table: "AmountTable", *, defaulted: bool) -> ResourceColumns:
    return table.nonzero_columns if defaulted else table.requested_columns
