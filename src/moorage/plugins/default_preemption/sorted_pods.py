"""The pods of every node in order of importance.

A higher priority is more important, then an earlier start. A pod that has not started counts as
one that starts now, after all others. Of pods that are equal in both, the one that came to the
node earlier is more important; of those that have not started, the one that came later, because
kube-scheduler reads the clock anew for each comparison.

`SortedPods` has the pods of all rows as columns. A row is sorted again when it changes, and the
result is shared by all preemptors: the pods below a given priority are the end of each row.
"""

import math
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp

Ints = NDArray[np.int64]
T = TypeVar("T")
R = TypeVar("R")

NOT_STARTED = math.inf
# Above so many distinct usages everything is read again, which drops those of deleted pods.
MOST_USAGES = 20_000


@lru_cache(maxsize=1 << 16)
def instant(text: str | None) -> float:
    """An RFC 3339 time in seconds; NOT_STARTED if there is none, or it does not parse."""
    try:
        at = datetime.fromisoformat(text or "")
    except ValueError:
        return NOT_STARTED
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()


def started_at(pod: mp.Pod) -> float:
    """When a pod was started."""
    return instant(pod.status.start_time)


def ordered(placed: Iterable[mp.Placed]) -> list[mp.Placed]:
    """Pods in the order in which they came, as a list with the most important first."""
    keys = []
    for place, each in enumerate(found := [*placed]):
        started = started_at(each.pod)
        keys.append((-each.pod.priority, started, -place if started == NOT_STARTED else place))
    return [found[abs(place)] for *_, place in sorted(keys)]


class SortedPods:
    """See the module."""

    def __init__(self, table: mp.NodeTable) -> None:
        self.table = table
        self._cursor = mp.Cursor(table.changes)
        self.usages = mp.NumberedUsages()
        self._stale = np.ones(table.capacity, dtype=np.bool_)
        # The pods of each row that is up to date.
        self.placed: list[list[mp.Placed]] = [[] for _ in range(table.capacity)]
        # A column per position in the order of importance. `numbers` are those of `usages`, and 0
        # after a row's last pod.
        self.numbers: Ints = np.zeros((table.capacity, 1), dtype=np.int64)
        self.priorities: Ints = np.zeros((table.capacity, 1), dtype=np.int64)
        self.started_at: NDArray[np.float64] = np.zeros((table.capacity, 1))

    def is_of(self, table: mp.NodeTable) -> bool:
        """Whether these are the pods of a table, in arrays of the right size."""
        fits = self.table is table and len(self._stale) == table.capacity
        return fits and len(self.usages) < MOST_USAGES

    def refresh(self, rows: mp.RowArray) -> None:
        """Bring some rows up to date."""
        changed = self._cursor.changed()
        if changed is None:
            self._stale[:] = True
        elif changed:
            self._stale[changed] = True
        self._cursor.commit()
        stale = rows[self._stale[rows]]
        if len(stale):
            self._read(stale)

    def _read(self, rows: mp.RowArray) -> None:
        """Sort the pods of some rows, all together: row by row takes several times as long."""
        placed = [self.table.placed[row] for row in rows.tolist()]
        lengths = np.array([*map(len, placed)])
        more = int(lengths.max()) - self.numbers.shape[1]
        if more > 0:
            self.numbers = np.pad(self.numbers, ((0, 0), (0, more)))
            self.priorities = np.pad(self.priorities, ((0, 0), (0, more)))
            self.started_at = np.pad(self.started_at, ((0, 0), (0, more)))
        every = [*chain.from_iterable(map(dict.values, placed))]
        pods, usages = [each.pod for each in every], [each.usage for each in every]
        times = [pod.status.start_time for pod in pods]
        priorities = np.array([pod.spec.priority or 0 for pod in pods], dtype=np.int64)
        started_at = np.array(_of_each(times, instant), dtype=np.float64)
        numbers = np.array(_of_each(usages, self.usages.number), dtype=np.int64)
        ends = lengths.cumsum()
        places = np.arange(len(every))
        came = np.where(started_at == NOT_STARTED, -places, places)
        order = np.lexsort((came, started_at, -priorities, np.repeat(ends, lengths)))
        every = [*map(every.__getitem__, order.tolist())]
        for row, end, length in zip(rows.tolist(), ends.tolist(), lengths.tolist(), strict=True):
            self.placed[row] = every[end - length : end]
        positions = places - np.repeat(ends - lengths, lengths)
        here = np.repeat(rows, lengths), positions
        self.numbers[rows] = 0
        self.numbers[here] = numbers[order]
        self.priorities[here] = priorities[order]
        self.started_at[here] = started_at[order]
        self._stale[rows] = False


def _of_each(values: list[T], function: Callable[[T], R]) -> list[R]:
    """The function of every value, called once for equal ones."""
    known = {value: function(value) for value in dict.fromkeys(values)}
    return [*map(known.__getitem__, values)]
