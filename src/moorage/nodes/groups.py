"""RowGroups: rows that agree in some values, such as their zone or the number of pods on them.

Inter-pod affinity and topology spread say the same of all rows of a group. So a decision looks at
groups, of which there are few, and not at rows. A pod that comes or goes moves a row to another
group, and changes what is said of a group; neither touches other rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from moorage.nodes.changes import FEW_ROWS, Cursor
from moorage.nodes.domains import NO_DOMAIN, DomainView, RowView, rows_in
from moorage.nodes.interning import ABSENT, LabelColumn
from moorage.nodes.resources import Ints
from moorage.nodes.table import NodeTable

# Assigning one row costs about as much as so many rows where all are assigned, which sorts them.
ROW_COST = 16
# So many groups without a row are kept at least.
MOST_GROUPS = 1024


@dataclass(frozen=True, slots=True)
class IsCounted:
    """Whether the domain of a row has any of the pods of a view; NO_DOMAIN for a row in none."""

    view: DomainView


# What rows of a group agree in: the domain that they are in, the number of pods on the row itself,
# the number of pods in its domain, or whether there are any. For many domains with few rows each
# the latter two give fewer groups.
GroupKey = LabelColumn | RowView | DomainView | IsCounted


class RowGroups:
    """See the module. `group_of` has the number of every row's group."""

    def __init__(self, keys: Sequence[GroupKey], table: NodeTable) -> None:
        self.keys = keys
        self._index = {key: at for at, key in enumerate(keys)}
        self._table = table
        # A row whose node or pods change is in this log, whatever the views that count them.
        self._changes = Cursor(table.changes)
        self._assign_all()

    def _assign_all(self) -> None:
        self._changes.take()
        self._nodes = self._table.node_changes.position
        readers = [_reader(key) for key in self.keys]
        self._value_at = [reader.at for reader in readers]
        by_domain = [reader for reader in readers if isinstance(reader, _DomainReader)]
        # Those where a pod changes the value of other rows, too; and the columns of the others.
        self._shared = [reader for reader in by_domain if reader.column.shared]
        self._unshared = {r.column: None for r in by_domain if not r.column.shared}
        codes: NDArray[np.intp] = np.zeros(self._table.capacity, dtype=np.intp)
        for reader in readers:
            values, numbers = np.unique(reader.all(), return_inverse=True)
            codes = codes * len(values) + numbers
        _, examples, self.group_of = np.unique(codes, return_index=True, return_inverse=True)
        # The values of every group, and the group with some values.
        self._values = [self._values_at(row) for row in examples.tolist()]
        self._number_of = {values: group for group, values in enumerate(self._values)}
        # Whether a row stays in its group until its node changes.
        self._is_by_node = all(isinstance(reader, _ColumnReader) for reader in readers)
        # With more groups, some are those of values that no row has any more.
        self._most_groups = MOST_GROUPS + 2 * len(self._values)
        # With more rows, assigning all is faster.
        self._most_rows = FEW_ROWS + self._table.capacity // ROW_COST

    def __len__(self) -> int:
        return len(self._values)

    def _values_at(self, row: int) -> tuple[int, ...]:
        return tuple([value_at(row) for value_at in self._value_at])

    def values(self, group: int) -> tuple[int, ...]:
        """The values of a group under all keys."""
        return self._values[group]

    def index(self, key: GroupKey) -> int:
        """Where the value under a key is among these."""
        return self._index[key]

    def refresh(self) -> Sequence[int] | None:
        """Assign rows whose values changed; returns rows that may have moved, None for all."""
        moved = self._changes.take()
        for reader in self._shared:
            cursor = reader.cursor
            if cursor.position != cursor.log.position and moved is not None:
                rows = reader.moved()
                moved = None if rows is None else [*dict.fromkeys((*moved, *rows))]
        for column in self._unshared:
            if column.shared:
                moved = None
        if moved is None or len(moved) > self._most_rows:
            self._assign_all()
            return None
        nodes = self._table.node_changes.position
        if self._is_by_node and self._nodes == nodes:
            return moved
        self._nodes, value_at = nodes, self._value_at
        for row in moved:
            values = tuple([value(row) for value in value_at])
            group = self._number_of.get(values)
            if group is None:
                group = self._number_of[values] = len(self._values)
                self._values.append(values)
                if group > self._most_groups:
                    self._changes.restart()  # Assign all rows, next time.
            self.group_of[row] = group
        return moved


class Groups:
    """The groups that have feasible rows, as plugins read them; in no order.

    They are kept from one decision to the next. `version` grows when a group comes or goes; how
    many rows a group has changes without that.
    """

    __slots__ = ("_columns", "_groups", "_narrowed", "_values", "at", "numbers", "sizes", "version")

    def __init__(self, groups: RowGroups, numbers: list[int], sizes: list[int]) -> None:
        self._groups = groups
        # The number of each group among all, and how many feasible rows it has.
        self.numbers = numbers
        self.sizes = sizes
        # Where each number is in these lists.
        self.at = {number: at for at, number in enumerate(numbers)}
        self.version = 0
        # The values under keys that were read; the same lists with the index of the key.
        self._values: dict[GroupKey, list[int]] = {}
        self._columns: list[tuple[int, list[int]]] = []
        self._narrowed: dict[tuple[bool, ...], Groups] = {}

    def __len__(self) -> int:
        return len(self.numbers)

    def of(self, key: GroupKey) -> list[int]:
        """The value of each group under a key."""
        values = self._values.get(key)
        if values is None:
            index, of = self._groups.index(key), self._groups.values
            values = self._values[key] = [of(number)[index] for number in self.numbers]
            self._columns.append((index, values))
        return values

    def add(self, number: int, rows: int) -> None:
        """A group got, or lost, so many feasible rows."""
        at = self.at.get(number)
        if at is None:
            self.at[number] = len(self.numbers)
            self.numbers.append(number)
            self.sizes.append(rows)
            values = self._groups.values(number)
            for index, column in self._columns:
                column.append(values[index])
        else:
            self.sizes[at] += rows
            if self.sizes[at]:
                return
            self.at[self.numbers[-1]] = at
            del self.at[number]
            for each in (self.numbers, self.sizes, *self._values.values()):
                each[at] = each[-1]
                each.pop()
        self.version += 1
        self._narrowed.clear()

    def move(self, before: int, after: int) -> None:
        """A row came from one group to another; a negative number stands for none of them."""
        if before == after:
            return
        sizes, at, to = self.sizes, self.at.get(before), self.at.get(after)
        if at is not None and to is not None and sizes[at] > 1:
            sizes[at] -= 1
            sizes[to] += 1
        elif at is not None and to is None and after >= 0 and sizes[at] == 1:
            # One group in the place of the other.
            self.at[after] = self.at.pop(before)
            self.numbers[at] = after
            values = self._groups.values(after)
            for index, column in self._columns:
                column[at] = values[index]
            self.version += 1
            self._narrowed.clear()
        else:
            if before >= 0:
                self.add(before, -1)
            if after >= 0:
                self.add(after, 1)

    def where(self, chosen: Sequence[bool]) -> "Groups":
        """Some of the groups."""
        key = tuple(chosen)
        found = self._narrowed.get(key)
        if found is None:
            found = Groups(self._groups, [*compress(self.numbers, key)], [])
            self._narrowed[key] = found
        found.sizes = [*compress(self.sizes, key)]
        return found


# One key each


class _ColumnReader:
    def __init__(self, column: LabelColumn) -> None:
        self._column = column

    def all(self) -> Ints:
        return self._column.codes

    def at(self, row: int) -> int:
        return self._column.codes.item(row)


class _RowReader:
    def __init__(self, view: RowView) -> None:
        self._view = view
        self.at = view.of_row

    def all(self) -> Ints:
        return self._view.counts


class _DomainReader:
    def __init__(self, view: DomainView, *, is_counted: bool) -> None:
        self._view = view
        self._is_counted = is_counted
        self.column = view.column
        self.at = view.is_counted_at if is_counted else view.of_row
        if self.column.shared:
            log = view.turned if is_counted else view.moved
            self.cursor = Cursor(log, log.position)

    def all(self) -> Ints:
        sums = self._view.sums.astype(np.bool_) if self._is_counted else self._view.sums
        values = sums.astype(np.int64)
        values[ABSENT] = NO_DOMAIN
        rows: Ints = values.take(self._view.column.codes)
        return rows

    def moved(self) -> Sequence[int] | None:
        """The rows in domains that changed."""
        domains = self.cursor.take()
        return None if domains is None else rows_in({self.column: dict(domains)}).tolist()


def _reader(key: GroupKey) -> _ColumnReader | _RowReader | _DomainReader:
    if isinstance(key, LabelColumn):
        return _ColumnReader(key)
    if isinstance(key, RowView):
        return _RowReader(key)
    if isinstance(key, IsCounted):
        return _DomainReader(key.view, is_counted=True)
    return _DomainReader(key, is_counted=False)
