"""Sums per topology domain, updated as pods and nodes come and go, never counted again.

A domain is a value of a label key, and its id is the value's code in that label's column. Nodes
without the label (code 0) belong to no domain; they are summed separately, in `absent`.
"""

from collections.abc import Collection, Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moorage.api.node import Node
from moorage.nodes.changes import DomainLog
from moorage.nodes.inclusion import Inclusion
from moorage.nodes.interning import ABSENT, LabelColumn, Mask
from moorage.nodes.resources import Ints

if TYPE_CHECKING:
    from moorage.nodes.placements import Placements
    from moorage.nodes.table import NodeTable

# The length of each view's logs: there may be many views, so a late reader reads all domains.
LONGEST = 1024
# With more than one row in so many, computing all rows is faster than selecting some.
DENSE = 16

# The sum of a domain, for a row that is in none.
NO_DOMAIN = -1
NO_ROWS = np.zeros(0, dtype=np.intp)


class DomainSums:
    """A number for every domain of a topology key."""

    __slots__ = ("_moved", "_sums", "_turned", "absent", "column", "eligibility", "nonzero")

    def __init__(self, column: LabelColumn, eligibility: "EligibleRows | None" = None) -> None:
        self.column = column
        # The rows that count, if not all do.
        self.eligibility = eligibility
        self._sums: Ints = np.zeros(len(column.values), dtype=np.int64)
        self.absent = 0
        # The number of domains whose sum is not 0.
        self.nonzero = 0
        # Written from the first time that they are read.
        self._moved: DomainLog | None = None
        self._turned: DomainLog | None = None

    @property
    def moved(self) -> DomainLog:
        """Domains whose sum changed."""
        if self._moved is None:
            self._moved = DomainLog(LONGEST)
        return self._moved

    @property
    def turned(self) -> DomainLog:
        """Domains whose sum became zero or non-zero."""
        if self._turned is None:
            self._turned = DomainLog(LONGEST)
        return self._turned

    @property
    def sums(self) -> Ints:
        """The sums by domain id; entry 0, for nodes without the label, is always 0."""
        sums, domains = self._sums, len(self.column.values)
        if len(sums) == domains:
            return sums
        if len(sums) < domains:
            # A quarter more at a time, because many nodes with new values often come together.
            sums = self._sums = np.pad(sums, (0, domains - len(sums) + domains // 4))
        return sums[:domains]

    def at(self, value: str | None) -> int:
        """The sum of one domain, by its label value; 0 for no label and unknown values."""
        code = self.column.code_of.get(value, ABSENT)
        return int(self._sums[code]) if code < len(self._sums) else 0

    def add(self, row: int, amount: int) -> None:
        """Add to the domain of a row, if the row counts."""
        if self.eligibility is not None and not self.eligibility.mask.item(row):
            return
        code = self.column.codes.item(row)
        if code == ABSENT:
            self.absent += amount
            return
        sums = self._sums if code < len(self._sums) else self.sums
        before = sums.item(code)
        after = sums[code] = before + amount
        if self._moved is not None:
            self._moved.add((code, row))
        if not before or not after:
            self.nonzero += 1 if after else -1
            if self._turned is not None:
                self._turned.add((code, row))
            if self.nonzero <= 1:
                self._turn(after)

    def _turn(self, after: int) -> None:
        """All sums may have become zero, or the first one non-zero."""

    def of_row(self, row: int) -> int:
        """The sum of a row's domain; NO_DOMAIN for a row in none."""
        code = self.column.codes.item(row)
        if code == ABSENT:
            return NO_DOMAIN
        return self._sums.item(code) if code < len(self._sums) else 0

    def is_counted_at(self, row: int) -> int:
        """Whether the sum of a row's domain is not 0, as 1 or 0; NO_DOMAIN for a row in none."""
        code, sums = self.column.codes.item(row), self._sums
        if code == ABSENT:
            return NO_DOMAIN
        return 1 if code < len(sums) and sums.item(code) else 0

    def fill(self, amounts: Mapping[int, int]) -> None:
        """Sum up the amounts of rows."""
        rows = np.fromiter(amounts.keys(), dtype=np.intp, count=len(amounts))
        values = np.fromiter(amounts.values(), dtype=np.int64, count=len(amounts))
        self.fill_rows(rows, values)

    def fill_rows(self, rows: NDArray[np.intp], values: Ints) -> None:
        """The same, from arrays."""
        np.add.at(self._sums, self.column.codes[rows], values)
        self.absent = int(self._sums[ABSENT])
        self._sums[ABSENT] = 0
        self.nonzero = int(np.count_nonzero(self._sums))


class EligibleRows:
    """The rows that an inclusion includes, and how many of them each domain has."""

    __slots__ = ("_nodes", "inclusion", "mask", "used_at")

    def __init__(self, inclusion: Inclusion, table: "NodeTable") -> None:
        self.inclusion = inclusion
        self.mask: Mask = inclusion.mask(table)
        self.used_at = 0
        self._nodes: dict[str, DomainSums] = {}

    def nodes(self, column: LabelColumn) -> DomainSums:
        """How many included rows each domain of a key has."""
        nodes = self._nodes.get(column.key)
        if nodes is None:
            nodes = self._nodes[column.key] = DomainSums(column)
            rows = np.flatnonzero(self.mask)
            nodes.fill_rows(rows, np.ones(len(rows), dtype=np.int64))
        return nodes

    def leave(self, row: int) -> None:
        """Exclude a row: its node is about to change."""
        if self.mask[row]:
            for nodes in self._nodes.values():
                nodes.add(row, -1)
            self.mask[row] = False

    def enter(self, row: int, node: Node | None) -> None:
        """Include a row again if its new node is eligible."""
        if node is not None and self.inclusion.includes(node):
            self.mask[row] = True
            for nodes in self._nodes.values():
                nodes.add(row, 1)

    def grow(self, capacity: int) -> None:
        """Add rows up to a capacity."""
        self.mask = np.pad(self.mask, (0, capacity - len(self.mask)))


class DomainView(DomainSums):
    """A counter's sums per domain, of eligible rows only if there is an eligibility."""

    __slots__ = ("_placements", "used_at")

    def __init__(
        self, column: LabelColumn, eligibility: EligibleRows | None, placements: "Placements"
    ) -> None:
        super().__init__(column, eligibility)
        self.used_at = 0
        self._placements = placements

    def _turn(self, after: int) -> None:
        if self.nonzero == (1 if after else 0):
            self._placements.version += 1

    def fill(self, amounts: Mapping[int, int]) -> None:
        """Sum up the amounts of rows."""
        if self.eligibility is not None:
            mask = self.eligibility.mask
            amounts = {row: amount for row, amount in amounts.items() if mask[row]}
        super().fill(amounts)

    def grow(self, capacity: int) -> None:
        """The sums do not depend on the number of rows."""


class RowView:
    """A counter's counts per row, whatever the labels of its node; rows without a node too."""

    __slots__ = ("counts", "most", "used_at")

    def __init__(self, capacity: int) -> None:
        self.counts: Ints = np.zeros(capacity, dtype=np.int64)
        self.used_at = 0
        # No row has, or ever had, a larger count.
        self.most = 0

    def add(self, row: int, amount: int) -> None:
        """Add to the count of a row."""
        count = self.counts.item(row) + amount
        self.counts[row] = count
        if count > self.most:
            self.most = count

    def of_row(self, row: int) -> int:
        """The count of a row."""
        return self.counts.item(row)

    def fill(self, amounts: Mapping[int, int]) -> None:
        """Set the counts of rows."""
        for row, amount in amounts.items():
            self.counts[row] = amount
        self.most = max(amounts.values(), default=0)

    def grow(self, capacity: int) -> None:
        """Add rows up to a capacity."""
        self.counts = np.pad(self.counts, (0, capacity - len(self.counts)))


def rows_in(domains: Mapping[LabelColumn, Mapping[int, int]]) -> NDArray[np.intp]:
    """The rows in some domains of some topology keys; each code has a row that is or was in it."""
    if len(domains) == 1:
        ((column, codes),) = domains.items()
        if len(codes) == 1:
            ((code, row),) = codes.items()
            if column.sizes[code] == 1 and column.codes.item(row) == code:
                return np.array([row], dtype=np.intp)
    masks = [_are_in(column, codes) for column, codes in domains.items()]
    return np.flatnonzero(reduce(or_, masks)) if masks else NO_ROWS


def few_rows_in(domains: Mapping[LabelColumn, Mapping[int, int]]) -> NDArray[np.intp] | None:
    """The same if they are few; None if reading all rows is faster than finding these."""
    for column, codes in domains.items():
        if DENSE * sum([column.sizes[code] for code in codes]) > len(column.codes):
            return None
    return rows_in(domains)


def _are_in(column: LabelColumn, codes: Collection[int]) -> Mask:
    if len(codes) == 1:
        (code,) = codes
        mask: Mask = column.codes == code
        return mask
    marked = np.zeros(len(column.values), dtype=np.bool_)
    marked[list(codes)] = True
    return marked.take(column.codes)
