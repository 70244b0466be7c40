"""HypotheticalRows: a few rows of the table as if some pods had left and others had come.

Reads return the hypothetical amounts, so a plugin's whole-cluster form answers "what if?". Pods are
given as numbers of a `NumberedUsages`, one or several per row: in arrays, a pod is what it takes of
its node.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.nodes import ports
from moorage.nodes.columns import Column, UsageColumn
from moorage.nodes.interning import Mask
from moorage.nodes.resource_views import CountedResources
from moorage.nodes.resources import Floats, Ints
from moorage.nodes.rows import TableSlice
from moorage.nodes.table import NodeTable
from moorage.nodes.usage import HostPort, Usage

Numbers = NDArray[np.int64]

NO_POD = 0


class NumberedUsages:
    """Usages interned as small numbers, with a column of amounts per resource."""

    def __init__(self) -> None:
        self._number_of: dict[Usage, int] = {}
        self._ports: dict[int, tuple[HostPort, ...]] = {}
        self._capacity = 16
        # Whether sums with one of these may overflow.
        self.has_large = False
        # Amounts by number; beyond the last number there are zeros.
        self.columns: dict[str, Ints] = {}
        self._nonzero: dict[str, Ints] = {}

    def __len__(self) -> int:
        return len(self._number_of)

    def number(self, usage: Usage) -> int:
        """The number of a usage; NO_POD stands for no pod."""
        number = self._number_of.get(usage)
        if number is None:
            number = self._number_of[usage] = len(self._number_of) + 1
            self._write(number, usage)
        return number

    def _write(self, number: int, usage: Usage) -> None:
        if number >= self._capacity:
            for columns in (self.columns, self._nonzero):
                for name, column in columns.items():
                    columns[name] = np.pad(column, (0, self._capacity))
            self._capacity *= 2
        self.has_large = self.has_large or usage.is_large
        for name, amount in usage.requested:
            self._column(self.columns, name)[number] = amount
        for name, amount in usage.nonzero:
            self._column(self._nonzero, name)[number] = amount
        if usage.ports:
            self._ports[number] = usage.ports

    def _column(self, columns: dict[str, Ints], name: str) -> Ints:
        column = columns.get(name)
        if column is None:
            column = columns[name] = np.zeros(self._capacity, dtype=np.int64)
        return column

    def nonzero(self, resource: str) -> Ints:
        """The same with a default for containers that request no cpu or memory."""
        return self._column(self._nonzero, resource)

    @property
    def has_ports(self) -> bool:
        """Whether any of the usages takes a host port."""
        return bool(self._ports)

    def ports(self, number: int) -> tuple[HostPort, ...]:
        """The host ports that a usage takes."""
        return self._ports.get(number, ())


class HypotheticalRows(TableSlice):
    """See the module."""

    __slots__ = ("_pod_count", "_ports", "_requested", "_shifts")

    def __init__(self, table: NodeTable, rows: NDArray[np.intp]) -> None:
        super().__init__(table, rows)
        self._pod_count: Ints = table.pod_counts[rows]
        self._requested: dict[str, Ints] = {}
        self._shifts: list[tuple[Numbers, NumberedUsages, int]] = []
        # The ports of rows where pods with ports came or went, by index into `rows`.
        self._ports: dict[int, set[HostPort]] = {}

    def __getitem__(self, column: Column | UsageColumn) -> NDArray[Any]:
        """A column that a plugin declared; a usage column is computed again."""
        if isinstance(column, UsageColumn):
            return column.read_all(self)
        return super().__getitem__(column)

    def copy(self) -> "HypotheticalRows":
        """The same rows, for another hypothesis."""
        other = HypotheticalRows(self._table, self.rows)
        # Amounts are replaced, never written to; ports are.
        other._pod_count = self._pod_count
        other._requested = dict(self._requested)
        other._shifts = list(self._shifts)
        other._ports = {index: set(used) for index, used in self._ports.items()}
        return other

    def shift(self, numbers: Numbers, book: NumberedUsages, sign: int) -> None:
        """Add (1) or remove (-1) the pods with these numbers, one or a list for every row."""
        self._shifts.append((numbers, book, sign))
        if book.has_large:
            self._table.expect_large()
        self._pod_count = self._pod_count + sign * _sum(numbers != NO_POD)
        for name, column in book.columns.items():
            self._requested[name] = self.requested(name) + sign * _sum(column[numbers])
        if book.has_ports:
            self._shift_ports(numbers, book, sign)

    def _shift_ports(self, numbers: Numbers, book: NumberedUsages, sign: int) -> None:
        for at in zip(*np.nonzero(numbers), strict=True):
            taken = book.ports(int(numbers[at]))
            if taken:
                index = int(at[0])
                if index not in self._ports:
                    self._ports[index] = set(self._table.ports.of_row(int(self.rows[index])))
                used = self._ports[index]
                used.update(taken) if sign > 0 else used.difference_update(taken)

    @property
    def pod_count(self) -> Ints:
        return self._pod_count

    def requested(self, resource: str) -> Ints:
        amounts = self._requested.get(resource)
        return super().requested(resource) if amounts is None else amounts

    def nonzero_requested(self, resource: str) -> Ints:
        amounts = super().nonzero_requested(resource)
        for numbers, book, sign in self._shifts:
            amounts = amounts + sign * _sum(book.nonzero(resource)[numbers])
        return amounts

    def requested_floats(self, resources: CountedResources) -> Floats:
        lines = [
            self.nonzero_requested(resource) if defaulted else self.requested(resource)
            for resource, defaulted in resources
        ]
        return np.stack(lines).astype(np.float64)

    def free_floats(self, resources: CountedResources, factor: int = 1) -> Floats:
        lines = [
            self.allocatable(resource)
            - (self.nonzero_requested(resource) if defaulted else self.requested(resource))
            for resource, defaulted in resources
        ]
        return np.stack(lines) * float(factor)

    def conflicting(self, wanted: Iterable[HostPort]) -> Mask:
        wanted = tuple(wanted)
        marked = super().conflicting(wanted)
        for index, used in self._ports.items():
            marked[index] = ports.conflict(wanted, used)
        return marked


def _sum(amounts: NDArray[np.generic]) -> Ints:
    """The sum per row, where a row has several."""
    summed: Ints = amounts.sum(axis=1) if amounts.ndim == 2 else amounts.astype(np.int64)
    return summed
