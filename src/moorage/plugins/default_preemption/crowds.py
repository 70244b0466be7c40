"""Crowds: the pods of every row as columns, the most important first.

Sorted once per change of a row, and shared by all pods that look for victims: who is below a given
priority is the end of each row.
"""

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.default_preemption import importance

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]

# A book of so many usages is written anew, lest it keeps those of pods that are long gone.
MOST_USAGES = 20_000


class Crowds:
    """See the module."""

    def __init__(self, table: mp.NodeTable) -> None:
        self.table = table
        self._cursor = mp.Cursor(table.changes)
        self.book = mp.NumberedUsages()
        self._stale = np.ones(table.capacity, dtype=np.bool_)
        self._pods: list[list[mp.Placed]] = [[] for _ in range(table.capacity)]
        # A column per place in the order of importance; NOBODY beyond a row's last pod.
        self.numbers: Ints = np.zeros((table.capacity, 1), dtype=np.int64)
        self.priorities: Ints = np.zeros((table.capacity, 1), dtype=np.int64)
        self.started_at: NDArray[np.float64] = np.zeros((table.capacity, 1))

    def is_of(self, table: mp.NodeTable) -> bool:
        """Whether these are the crowds of a table, and still of use."""
        fits = self.table is table and len(self._stale) == table.capacity
        return fits and len(self.book) < MOST_USAGES

    def refresh(self, rows: Rows) -> None:
        """Bring some rows up to date."""
        changed = self._cursor.changed()
        if changed is None:
            self._stale[:] = True
        elif changed:
            self._stale[changed] = True
        self._cursor.commit()
        for row in rows[self._stale[rows]].tolist():
            self._read(row)

    def on(self, row: int) -> list[mp.Placed]:
        """The pods of a row that is up to date."""
        return self._pods[row]

    def _read(self, row: int) -> None:
        pods = self._pods[row] = importance.ordered(self.table.placed[row].values())
        if len(pods) > self.numbers.shape[1]:
            self._widen(len(pods))
        here = slice(0, len(pods))
        self.numbers[row] = 0
        self.numbers[row, here] = [self.book.number(each.usage) for each in pods]
        self.priorities[row, here] = [each.pod.priority for each in pods]
        self.started_at[row, here] = [importance.started_at(each.pod) for each in pods]
        self._stale[row] = False

    def _widen(self, width: int) -> None:
        more = width - self.numbers.shape[1]
        self.numbers = np.pad(self.numbers, ((0, 0), (0, more)))
        self.priorities = np.pad(self.priorities, ((0, 0), (0, more)))
        self.started_at = np.pad(self.started_at, ((0, 0), (0, more)))
