"""Lines: several resources of all rows, one below the other in one array of floats.

For whoever calculates with them. They are brought up to date when somebody asks, because most pods
are of templates that have been scored before, and then nobody does.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from moorage.nodes.resources import Floats, Ints, ResourceColumns

if TYPE_CHECKING:
    from moorage.nodes.amounts import AmountTable

# Up to so many rows are quicker written one by one.
FEW = 16

# Of this one, every pod takes one.
PODS = "pods"
# Whole numbers up to this are the same in floats.
EXACT = 1 << 52

# Resources, each with whether pods that state nothing of it count with a default.
Counted = tuple[tuple[str, bool], ...]


class _Nothing:
    """The amounts of a resource of which nobody has anything."""

    def __getitem__(self, row: int) -> int:
        return 0


NOTHING = _Nothing()
Amounts = list[int] | Ints | _Nothing


class Lines:
    """What pods count for, or what they leave of what nodes offer."""

    __slots__ = ("_is_tight", "_least", "_leaves", "_resources", "_seen", "_sources", "_values")

    def __init__(self, resources: Counted, *, leaves: bool) -> None:
        self._resources = resources
        self._leaves = leaves
        self._values: Floats = np.zeros((0, 0))
        self._seen = -1
        # What pods take and what nodes offer, row by row, once there is something of everything.
        self._sources: list[tuple[Amounts, Amounts | None]] | None = None
        # No node has less than this of each, if that is known, and whether one has just this.
        self._least: list[float] | None = None
        self._is_tight = False

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

    def are_above(self, amounts: Sequence[int], table: "AmountTable") -> bool:
        """Whether all nodes are known to have at least so much of each."""
        self.current(table)
        if self._least is None:
            self._find_least(table)
        if self._are_least(amounts):
            return True
        if self._is_tight:
            return False
        self._find_least(table)
        return self._are_least(amounts)

    def _are_least(self, amounts: Sequence[int]) -> bool:
        assert self._least is not None
        for amount, least in zip(amounts, self._least, strict=True):  # noqa: SIM110 - quicker
            if amount > least:
                return False
        return True

    def _find_least(self, table: "AmountTable") -> None:
        least = np.where(table.active_rows, self._values, np.inf).min(axis=1, initial=EXACT)
        self._least, self._is_tight = least.tolist(), True

    def _write_all(self, table: "AmountTable") -> None:
        self._values = np.empty((len(self._resources), table.capacity))
        self._sources = None
        self._write(table, slice(None))

    def _write(self, table: "AmountTable", rows: slice | np.ndarray) -> None:
        for line, (resource, defaulted) in enumerate(self._resources):
            if resource == PODS:
                amounts = table.pod_counts[rows]
            else:
                amounts = _columns(table, defaulted=defaulted)[resource][rows]
            if self._leaves:
                amounts = table.allocatable_columns[resource][rows] - amounts
            self._values[line, rows] = amounts
        self._least = None

    def _write_few(self, table: "AmountTable", rows: list[int]) -> None:
        least = self._least
        for line, (taken, offered) in enumerate(self._sources or self._find_sources(table)):
            values = self._values[line]
            for row in rows:
                amount = taken[row] if offered is None else offered[row] - taken[row]
                if least is not None:
                    bound = least[line]
                    if amount < bound and table.active_rows.item(row):
                        least[line] = float(amount)
                    elif values.item(row) <= bound:
                        self._is_tight = False
                values[row] = amount

    def _find_sources(self, table: "AmountTable") -> list[tuple[Amounts, Amounts | None]]:
        sources: list[tuple[Amounts, Amounts | None]] = []
        for resource, defaulted in self._resources:
            taken: Amounts = table.pod_counts
            if resource != PODS:
                taken = _columns(table, defaulted=defaulted).values.get(resource, NOTHING)
            offered = table.allocatable_columns.values.get(resource, NOTHING)
            sources.append((taken, offered if self._leaves else None))
        if not any(each is NOTHING for pair in sources for each in pair):
            self._sources = sources
        return sources


def _columns(table: "AmountTable", *, defaulted: bool) -> ResourceColumns:
    return table.nonzero_columns if defaulted else table.requested_columns
