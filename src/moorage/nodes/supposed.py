"""SupposedRows: a few rows of the table as if pods had left them, or others had come.

Whoever asks rows for what their pods take gets the supposed amounts, so that a plugin's answer for
the whole cluster becomes its answer to "what if?". Pods are given as numbers in a UsageBook, one
or several per row, because in arrays a pod is no more than what it takes of its node.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.nodes import ports
from moorage.nodes.columns import Column
from moorage.nodes.interning import Mask
from moorage.nodes.lines import Counted
from moorage.nodes.resources import Floats, Ints
from moorage.nodes.table import NodeTable, TableSlice
from moorage.nodes.usage import HostPort, Usage
from moorage.nodes.usage_columns import UsageColumn

Numbers = NDArray[np.int64]

NOBODY = 0


class UsageBook:
    """Usages under small numbers, and what each takes of every resource as columns."""

    def __init__(self) -> None:
        self._number_of: dict[Usage, int] = {}
        self._ports: dict[int, tuple[HostPort, ...]] = {}
        self._capacity = 16
        # Amounts by number; beyond the last number there are zeros.
        self.columns: dict[str, Ints] = {}
        self._nonzero: dict[str, Ints] = {}

    def __len__(self) -> int:
        return len(self._number_of)

    def number(self, usage: Usage) -> int:
        """The number of a usage; NOBODY stands for no pod at all."""
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


class SupposedRows(TableSlice):
    """See the module."""

    __slots__ = ("_ports", "_requested", "_shifts", "_supposed_count")

    def __init__(self, table: NodeTable, rows: NDArray[np.intp]) -> None:
        super().__init__(table, rows)
        self._supposed_count: Ints = table.pod_counts[rows]
        self._requested: dict[str, Ints] = {}
        self._shifts: list[tuple[Numbers, UsageBook, int]] = []
        # The ports of rows where pods with ports came or went, by place among these rows.
        self._ports: dict[int, set[HostPort]] = {}

    def __getitem__(self, column: Column | UsageColumn) -> NDArray[Any]:
        """A column that a plugin declared; what follows from usage is worked out anew."""
        if isinstance(column, UsageColumn):
            return column.read_all(self)
        return super().__getitem__(column)

    def copy(self) -> "SupposedRows":
        """The same rows, to suppose something else about."""
        other = SupposedRows(self._table, self.rows)
        # Amounts are replaced, never written to; ports are.
        other._supposed_count = self._supposed_count
        other._requested = dict(self._requested)
        other._shifts = list(self._shifts)
        other._ports = {place: set(used) for place, used in self._ports.items()}
        return other

    def shift(self, numbers: Numbers, book: UsageBook, sign: int) -> None:
        """Let the pods with these numbers come (1) or leave (-1), one or a list for every row."""
        self._shifts.append((numbers, book, sign))
        self._supposed_count = self._supposed_count + sign * _sum(numbers != NOBODY)
        for name, column in book.columns.items():
            self._requested[name] = self.requested(name) + sign * _sum(column[numbers])
        if book.has_ports:
            self._shift_ports(numbers, book, sign)

    def _shift_ports(self, numbers: Numbers, book: UsageBook, sign: int) -> None:
        for at in zip(*np.nonzero(numbers), strict=True):
            taken = book.ports(int(numbers[at]))
            if taken:
                used = self._used_ports(int(at[0]))
                used.update(taken) if sign > 0 else used.difference_update(taken)

    def _used_ports(self, place: int) -> set[HostPort]:
        if place not in self._ports:
            self._ports[place] = set(self._table.ports.of_row(int(self.rows[place])))
        return self._ports[place]

    @property
    def pod_count(self) -> Ints:
        return self._supposed_count

    def requested(self, resource: str) -> Ints:
        supposed = self._requested.get(resource)
        return super().requested(resource) if supposed is None else supposed

    def nonzero_requested(self, resource: str) -> Ints:
        amounts = super().nonzero_requested(resource)
        for numbers, book, sign in self._shifts:
            amounts = amounts + sign * _sum(book.nonzero(resource)[numbers])
        return amounts

    def counted(self, resources: Counted) -> Floats:
        lines = [
            self.nonzero_requested(resource) if defaulted else self.requested(resource)
            for resource, defaulted in resources
        ]
        return np.stack(lines).astype(np.float64)

    def left(self, resources: Counted, times: int = 1) -> Floats:
        offered = np.stack([self.allocatable(resource) for resource, _ in resources])
        return (offered - self.counted(resources)) * times

    def conflicting(self, wanted: Iterable[HostPort]) -> Mask:
        wanted = tuple(wanted)
        marked = super().conflicting(wanted)
        for place, used in self._ports.items():
            marked[place] = ports.conflict(wanted, used)
        return marked


def _sum(amounts: NDArray[np.generic]) -> Ints:
    """Per row, if there are several for each."""
    summed: Ints = amounts.sum(axis=1) if amounts.ndim == 2 else amounts.astype(np.int64)
    return summed
