"""Heap: the smallest key first, any item removable by its id. Knows nothing of pods.

Equal keys leave in the order in which they came. kube-scheduler lets the mechanics of its binary
heap decide there; a serial number is as fair, and easier to reason about.
"""

import heapq
from collections import deque
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# Below this many removed records a rebuild costs more than the room they take.
MOST_DEAD = 64


class Heap(Generic[T]):
    """Items in the order of their keys; push, pop and remove in O(log n).

    Most often items come in the order in which they leave. Those are simply lined up; only who
    comes out of order goes into a heap. A removed item's record stays where it is, dead, until it
    surfaces or the dead outnumber the living: that is less work than moving it out.
    """

    __slots__ = ("_line", "_live", "_records", "_serial")

    def __init__(self) -> None:
        # A record is [key, serial, item_id, item]; serials differ, so comparisons end there.
        self._line: deque[list[Any]] = deque()
        self._records: list[list[Any]] = []
        self._live: dict[str, list[Any]] = {}
        self._serial = 0

    def push(self, item_id: str, item: T, key: Any) -> None:
        """Put in an item that is not in yet."""
        assert item_id not in self._live, f"{item_id} is in the heap already"
        self._serial += 1
        record = [key, self._serial, item_id, item]
        self._live[item_id] = record
        if not self._line or not key < self._line[-1][0]:
            self._line.append(record)
        else:
            heapq.heappush(self._records, record)

    def update(self, item_id: str, item: T, key: Any) -> None:
        """Replace an item; it keeps its place among equals if its key stays the same."""
        record = self._live[item_id]
        if record[0] == key:
            record[3] = item
        else:
            self.remove(item_id)
            self.push(item_id, item, key)

    def pop(self) -> T:
        """Take out the item with the smallest key; IndexError if there is none."""
        live, line = self._live, self._line
        if not self._records and line and live.get(line[0][2]) is line[0]:
            record = line.popleft()  # The usual case: nobody came out of order, or left.
        else:
            record = heapq.heappop(self._records) if self._surface() else self._line.popleft()
        del live[record[2]]
        item: T = record[3]
        return item

    def peek(self) -> T:
        """The item with the smallest key; IndexError if there is none."""
        first = self._records[0] if self._surface() else self._line[0]
        item: T = first[3]
        return item

    def remove(self, item_id: str) -> T:
        """Take out an item; KeyError if it is not in."""
        item: T = self._live.pop(item_id)[3]
        if len(self._records) + len(self._line) > 2 * len(self._live) + MOST_DEAD:
            self._line = deque(sorted(self._live.values()))
            self._records = []
        return item

    def get(self, item_id: str) -> T | None:
        """The item with that id, if it is in."""
        record = self._live.get(item_id)
        return None if record is None else record[3]

    def __contains__(self, item_id: str) -> bool:
        return item_id in self._live

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[T]:
        """Items in the order in which they would be popped; sorts, so not for busy places."""
        return iter([record[3] for record in sorted(self._live.values())])

    def _surface(self) -> bool:
        """Drop dead records from both ends; whether the smallest is in the heap, not in line."""
        line, records, live = self._line, self._records, self._live
        while line and live.get(line[0][2]) is not line[0]:
            line.popleft()
        while records and live.get(records[0][2]) is not records[0]:
            heapq.heappop(records)
        return bool(records) and (not line or records[0] < line[0])
