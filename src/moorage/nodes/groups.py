"""RowGroups: rows that agree in some values, such as their zone or the number of pods on them.

Inter-pod affinity and topology spread say the same of all rows of a group. So a decision looks at
groups, of which there are few, and not at rows. A pod that comes or goes moves a row to another
group, and changes what is said of a group; neither touches other rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.nodes.changes import FEW_ROWS, Cursor
from moorage.nodes.domains import DomainView, RowView, rows_in
from moorage.nodes.interning import ABSENT, LabelColumn
from moorage.nodes.resources import Ints
from moorage.nodes.table import NodeTable

# The sum of a domain, for a row that is in none.
NO_DOMAIN = -1
# Assigning one row costs about as much as so many rows of an array operation.
ROW_COST = 256


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
        self._table = table
        self._nodes = Cursor(table.node_changes)
        self._assign_all()

    def _assign_all(self) -> None:
        self._nodes.changed()
        self._nodes.commit()
        self._readers = [_reader(key) for key in self.keys]
        # Those whose values change without a change of a node object.
        self._live = [reader for reader in self._readers if not isinstance(reader, _ColumnReader)]
        codes: NDArray[np.intp] = np.zeros(self._table.capacity, dtype=np.intp)
        for reader in self._readers:
            values, numbers = np.unique(reader.all(), return_inverse=True)
            codes = codes * len(values) + numbers
        _, examples, self.group_of = np.unique(codes, return_index=True, return_inverse=True)
        # The values of every group, and the group with some values.
        self._values = [self._values_at(row) for row in examples.tolist()]
        self._number_of = {values: group for group, values in enumerate(self._values)}

    def __len__(self) -> int:
        return len(self._values)

    def _values_at(self, row: int) -> tuple[int, ...]:
        return tuple([reader.at(row) for reader in self._readers])

    def of(self, key: GroupKey, groups: Sequence[int]) -> list[int]:
        """The values of some groups under one of the keys."""
        at, values = self.keys.index(key), self._values
        return [values[group][at] for group in groups]

    def refresh(self) -> Sequence[int] | None:
        """Assign rows whose values changed; returns those in another group, None for all rows."""
        moved: list[int] | None = []
        if self._nodes.position != self._nodes.log.position:
            moved = self._take(self._nodes)
        for reader in self._live:
            cursor = reader.cursor
            if cursor.position != cursor.log.position and moved is not None:
                changed = reader.moved()
                moved = None if changed is None else [*moved, *changed]
        most = FEW_ROWS + len(self.group_of) // ROW_COST
        if moved is None or len(moved) > most or len(self.group_of) != self._table.capacity:
            self._assign_all()
            return None
        return [row for row in moved if self._assign(row)]

    @staticmethod
    def _take(cursor: Cursor[int]) -> list[int] | None:
        rows = cursor.changed()
        cursor.commit()
        return None if rows is None else [*rows]

    def _assign(self, row: int) -> bool:
        values = self._values_at(row)
        group = self._number_of.get(values)
        if group is None:
            group = self._number_of[values] = len(self._values)
            self._values.append(values)
        if self.group_of.item(row) == group:
            return False
        self.group_of[row] = group
        return True


class Groups:
    """Some groups that have feasible rows, as plugins read them."""

    __slots__ = ("_all_sizes", "_groups", "_narrowed", "_values", "numbers")

    def __init__(self, groups: RowGroups, numbers: list[int], all_sizes: list[int]) -> None:
        self._groups = groups
        # By which they are found among all groups, ascending.
        self.numbers = numbers
        self._all_sizes = all_sizes
        self._values: dict[GroupKey, list[int]] = {}
        self._narrowed: dict[tuple[bool, ...], Groups] = {}

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def sizes(self) -> list[int]:
        """How many feasible rows each group has."""
        sizes = self._all_sizes
        return [sizes[number] for number in self.numbers]

    def of(self, key: GroupKey) -> list[int]:
        """The value of each group under a key."""
        values = self._values.get(key)
        if values is None:
            values = self._values[key] = self._groups.of(key, self.numbers)
        return values

    def where(self, chosen: Sequence[bool]) -> "Groups":
        """Some of the groups."""
        key = tuple(chosen)
        found = self._narrowed.get(key)
        if found is None:
            numbers = [n for n, is_chosen in zip(self.numbers, key, strict=True) if is_chosen]
            found = self._narrowed[key] = Groups(self._groups, numbers, self._all_sizes)
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
        self.cursor = Cursor(view.moved, view.moved.position)

    def all(self) -> Ints:
        return self._view.counts

    def at(self, row: int) -> int:
        return self._view.counts.item(row)

    def moved(self) -> Sequence[int] | None:
        """The rows whose value changed."""
        rows = self.cursor.changed()
        self.cursor.commit()
        return rows


class _DomainReader:
    def __init__(self, view: DomainView, *, is_counted: bool) -> None:
        self._view = view
        self._is_counted = is_counted
        log = view.turned if is_counted else view.moved
        self.cursor = Cursor(log, log.position)

    def all(self) -> Ints:
        sums = self._view.sums.astype(np.bool_) if self._is_counted else self._view.sums
        values = sums.astype(np.int64)
        values[ABSENT] = NO_DOMAIN
        rows: Ints = values.take(self._view.column.codes)
        return rows

    def at(self, row: int) -> int:
        code = self._view.column.codes.item(row)
        if code == ABSENT:
            return NO_DOMAIN
        count = self._view.sums.item(code)
        return int(count != 0) if self._is_counted else count

    def moved(self) -> Sequence[int] | None:
        """The rows in domains that changed."""
        domains = self.cursor.changed()
        self.cursor.commit()
        if domains is None:
            return None
        column, rows = self._view.column, []
        for code, row in domains:
            if column.sizes[code] == 1 and column.codes.item(row) == code:
                rows.append(row)
            else:
                rows += rows_in({column: {code: row}}).tolist()
        return rows


def _reader(key: GroupKey) -> _ColumnReader | _RowReader | _DomainReader:
    if isinstance(key, LabelColumn):
        return _ColumnReader(key)
    if isinstance(key, RowView):
        return _RowReader(key)
    if isinstance(key, IsCounted):
        return _DomainReader(key.view, is_counted=True)
    return _DomainReader(key, is_counted=False)
