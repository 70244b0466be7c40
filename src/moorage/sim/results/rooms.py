"""Rooms: how much every node has of each resource, and how much of it is taken."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from moorage.api.requests import CPU, MEMORY, PODS

Amounts = Mapping[str, int]
Column = npt.NDArray[np.int64]

FIRST_ROWS = 64


class Rooms:
    """A row per node; rows of nodes that have gone stay, with nothing in them."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.rows: dict[str, int] = {}
        self.offered: dict[str, Column] = {CPU: _column(), MEMORY: _column(), PODS: _column()}
        self.taken: dict[str, Column] = {name: _column() for name in self.offered}
        self.count = 0
        self._is_there: list[bool] = []

    def put_node(self, name: str, offered: Amounts) -> None:
        """A node is there, or offers something else now."""
        row = self.rows.get(name)
        if row is None:
            row = self._new_row(name)
        if not self._is_there[row]:
            self._is_there[row] = True
            self.count += 1
        for resource in offered.keys() - self.offered.keys():
            self._new_resource(resource)
        for resource, column in self.offered.items():
            column[row] = offered.get(resource, 0)

    def drop_node(self, name: str) -> None:
        """A node has gone; what is on it is still booked until its pods are gone, too."""
        row = self.rows[name]
        self._is_there[row] = False
        self.count -= 1
        for column in self.offered.values():
            column[row] = 0

    def book(self, node: str, amounts: Amounts, sign: int = 1) -> None:
        """A pod takes room on a node, or with a negative sign gives it back."""
        row = self.rows.get(node)
        if row is None:
            row = self._new_row(node)  # A dump of a part of a cluster shows such pods.
        for resource, amount in amounts.items():
            if resource not in self.taken:
                self._new_resource(resource)
            self.taken[resource][row] += sign * amount
        self.taken[PODS][row] += sign

    def resources(self) -> list[str]:
        """What nodes offer at all: cpu, memory, pods, then others by name."""
        first = (CPU, MEMORY, PODS)
        others = sorted(name for name, column in self.offered.items() if name not in first)
        return [name for name in (*first, *others) if self.offered[name].any()]

    def there(self) -> npt.NDArray[np.bool_]:
        """Which rows are nodes that are there."""
        mask = np.zeros(len(self.offered[CPU]), dtype=bool)
        mask[: len(self._is_there)] = self._is_there
        return mask

    def shares(self, resource: str) -> npt.NDArray[np.float64]:
        """How much of a resource is taken on each row, 0 to 1; 0 where there is none of it."""
        offered, taken = self.offered[resource], self.taken[resource]
        out = np.zeros(len(offered))
        np.divide(taken, offered, out=out, where=offered > 0)
        return out

    def dominant(self, resources: list[str]) -> npt.NDArray[np.float64]:
        """The share of the resource that each row has least left of; pods are not counted."""
        columns = [self.shares(name) for name in resources if name != PODS]
        return np.maximum.reduce(columns) if columns else np.zeros(len(self.offered[CPU]))

    def _new_row(self, name: str) -> int:
        row = len(self.names)
        self.names.append(name)
        self.rows[name] = row
        self._is_there.append(False)
        if row >= len(self.offered[CPU]):
            for columns in (self.offered, self.taken):
                for resource, column in columns.items():
                    columns[resource] = np.concatenate((column, np.zeros_like(column)))
        return row

    def _new_resource(self, resource: str) -> None:
        size = len(self.offered[CPU])
        self.offered[resource] = _column(size)
        self.taken[resource] = _column(size)


def _column(size: int = FIRST_ROWS) -> Column:
    return np.zeros(size, dtype=np.int64)
