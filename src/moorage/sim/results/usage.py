"""UsageTable: how much every node offers of each resource, and how much of it is requested."""

from collections.abc import Iterable, Mapping, Sequence
from operator import mul

import numpy as np
import numpy.typing as npt

from moorage.api import quantity
from moorage.api.requests import CPU, MEMORY, PODS

Amounts = Mapping[str, int]
Column = npt.NDArray[np.int64]

FIRST_ROWS = 64


class UsageTable:
    """A row per node; the row of a deleted node stays, and offers nothing."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.rows: dict[str, int] = {}
        self.offered: dict[str, Column] = {CPU: _column(), MEMORY: _column(), PODS: _column()}
        self.requested: dict[str, Column] = {name: _column() for name in self.offered}
        self.count = 0
        # Sums over the rows whose node exists, kept up to date with every change.
        self.total_offered: dict[str, int] = dict.fromkeys(self.offered, 0)
        self.total_requested: dict[str, int] = dict.fromkeys(self.offered, 0)
        # What belongs to no node, such as devices of a network; it is in the sums.
        self.network_offered: dict[str, int] = {}
        self._exists: list[bool] = []

    def put_node(self, name: str, offered: Amounts) -> None:
        """Add a node, or change what it offers."""
        row = self.rows.get(name)
        if row is None:
            row = self._new_row(name)
        if not self._exists[row]:
            self._exists[row] = True
            self.count += 1
            self._count_requests(row, 1)
        if not offered.keys() <= self.offered.keys():
            for resource in offered.keys() - self.offered.keys():
                self._new_resource(resource)
        totals = self.total_offered
        for resource, column in self.offered.items():
            amount = offered.get(resource, 0)
            if difference := amount - column.item(row):
                totals[resource] += difference
                column[row] = amount

    def drop_node(self, name: str) -> None:
        """Remove a node; the requests of its pods stay counted until the pods are deleted."""
        row = self.rows[name]
        self._exists[row] = False
        self.count -= 1
        self._count_requests(row, -1)
        for resource, column in self.offered.items():
            self.total_offered[resource] -= int(column[row])
            column[row] = 0

    def add_requests(self, node: str, amounts: Amounts, sign: int = 1) -> None:
        """Add amounts that are in use on a node, or with a negative sign remove them."""
        row = self.rows.get(node)
        if row is None:
            row = self._new_row(node)  # A partial dump has pods on nodes that it does not list.
        columns, totals, exists = self.requested, self.total_requested, self._exists[row]
        for resource, amount in amounts.items():
            if resource not in columns:
                self._new_resource(resource)
            column = columns[resource]
            total = column.item(row) + sign * amount
            try:
                column[row] = total
            except OverflowError:  # The scheduler counts so, too.
                column[row] = quantity.wrapped(total)
            if exists:
                totals[resource] += sign * amount

    def add_many(self, nodes: Iterable[str], amounts: Sequence[Amounts]) -> None:
        """The same for many pods at once; pods of equal size may share their amounts."""
        rows_of, new_row = self.rows, self._new_row
        rows = [rows_of[node] if node in rows_of else new_row(node) for node in nodes]
        # Each size once: where it is among the sizes.
        sizes = {id(each): each for each in amounts}
        index = {key: i for i, key in enumerate(sizes)}
        which = np.array([index[id(each)] for each in amounts], dtype=np.intp)
        # How often each size comes to a node that exists.
        counts = np.bincount(which[np.array(self._exists)[rows]], minlength=len(sizes)).tolist()
        for resource in dict.fromkeys(name for size in sizes.values() for name in size):
            if resource not in self.requested:
                self._new_resource(resource)
            of_sizes = [size.get(resource, 0) for size in sizes.values()]
            added = np.array(of_sizes, dtype=np.int64)[which]
            np.add.at(self.requested[resource], rows, added)
            self.total_requested[resource] += sum(map(mul, of_sizes, counts))

    def put_network(self, offered: Amounts) -> None:
        """Set what no single node offers."""
        for resource, amount in offered.items():
            if resource not in self.offered:
                self._new_resource(resource)
            self.total_offered[resource] += amount - self.network_offered.get(resource, 0)
            self.network_offered[resource] = amount

    def add_network_requests(self, resource: str, difference: int) -> None:
        """Add an amount that is in use of what no single node offers."""
        if resource not in self.offered:
            self._new_resource(resource)
        self.total_requested[resource] += difference

    def resources(self) -> list[str]:
        """The resources that are offered: cpu, memory, pods, then the others by name."""
        first = (CPU, MEMORY, PODS)
        others = sorted(name for name, column in self.offered.items() if name not in first)
        network = self.network_offered
        return [n for n in (*first, *others) if self.offered[n].any() or network.get(n)]

    def existing(self) -> npt.NDArray[np.bool_]:
        """A mask of the rows whose node exists."""
        mask = np.zeros(len(self.offered[CPU]), dtype=bool)
        mask[: len(self._exists)] = self._exists
        return mask

    def shares(self, resource: str) -> npt.NDArray[np.float64]:
        """The requested share of a resource per row, 0 to 1; 0 where the node offers none."""
        offered, requested = self.offered[resource], self.requested[resource]
        out = np.zeros(len(offered))
        np.divide(requested, offered, out=out, where=offered > 0)
        return out

    def dominant(self, resources: list[str]) -> npt.NDArray[np.float64]:
        """The share of the resource that each row has least left of; the pod count is left out."""
        columns = [self.shares(name) for name in resources if name != PODS]
        return np.maximum.reduce(columns) if columns else np.zeros(len(self.offered[CPU]))

    def _count_requests(self, row: int, sign: int) -> None:
        """Count the requests of a row in the totals when its node appears or disappears."""
        for resource, column in self.requested.items():
            if amount := column.item(row):
                self.total_requested[resource] += sign * amount

    def _new_row(self, name: str) -> int:
        row = len(self.names)
        self.names.append(name)
        self.rows[name] = row
        self._exists.append(False)
        if row >= len(self.offered[CPU]):
            for columns in (self.offered, self.requested):
                for resource, column in columns.items():
                    columns[resource] = np.concatenate((column, np.zeros_like(column)))
        return row

    def _new_resource(self, resource: str) -> None:
        size = len(self.offered[CPU])
        self.offered[resource] = _column(size)
        self.requested[resource] = _column(size)
        self.total_offered[resource] = self.total_requested[resource] = 0


def _column(size: int = FIRST_ROWS) -> Column:
    return np.zeros(size, dtype=np.int64)
