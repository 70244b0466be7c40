"""Heap: the smallest key first, any item removable by its id. Knows nothing of pods.

Equal keys leave in the order in which they came. kube-scheduler lets the mechanics of its binary
heap decide there; a serial number is as fair, and easier to reason about.

Keys may come from people's plugins, so comparing two of them may raise anything. Whoever owns the
heap may say what happens then: `mend` has to `rekey` all items with keys that do compare.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterator
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

    __slots__ = ("_line", "_live", "_records", "_serial", "mend")

    def __init__(self, mend: Callable[[Exception], None] | None = None) -> None:
        self.mend = mend
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
        try:
            if not self._line or not key < self._line[-1][0]:
                self._line.append(record)
            else:
                heapq.heappush(self._records, record)
        except Exception as raised:  # See the module; so below.
            self._untangle(raised)

    def update(self, item_id: str, item: T, key: Any) -> None:
        """Replace an item; it keeps its place among equals if its key stays the same."""
        record = self._live[item_id]
        if _is_same(record[0], key):
            record[3] = item
        else:
            # In this order: once all items get other keys, this one has to be among them.
            del self._live[item_id]
            self.push(item_id, item, key)
            self._tidy()

    def pop(self) -> T:
        """Take out the item with the smallest key; IndexError if there is none."""
        live, line = self._live, self._line
        if not self._records and line and live.get(line[0][2]) is line[0]:
            record = line.popleft()  # The usual case: nobody came out of order, or left.
        else:
            record = self._pop_from_heap() if self._surface() else self._line.popleft()
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
        self._tidy()
        return item

    def rekey(self, key_of: Callable[[T], Any]) -> None:
        """Give every item another key; among equals, who came first stays first."""
        for record in self._live.values():
            record[0] = key_of(record[3])
        self._line, self._records = deque(sorted(self._live.values())), []

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
        return iter([record[3] for record in self._sorted()])

    def _sorted(self) -> list[list[Any]]:
        try:
            return sorted(self._live.values())
        except Exception as raised:
            self._untangle(raised)
            return list(self._line)

    def _tidy(self) -> None:
        """Bury the dead when they outnumber the living."""
        if len(self._records) + len(self._line) > 2 * len(self._live) + MOST_DEAD:
            self._line = deque(self._sorted())
            self._records = []

    def _pop_from_heap(self) -> list[Any]:
        try:
            return heapq.heappop(self._records)
        except Exception as raised:
            self._untangle(raised)
            return self._line.popleft()

    def _surface(self) -> bool:
        """Drop dead records from both ends; whether the smallest is in the heap, not in line."""
        line, records, live = self._line, self._records, self._live
        while line and live.get(line[0][2]) is not line[0]:
            line.popleft()
        try:
            while records and live.get(records[0][2]) is not records[0]:
                heapq.heappop(records)
            return bool(records) and (not line or records[0] < line[0])
        except Exception as raised:
            self._untangle(raised)
            return False

    def _untangle(self, raised: Exception) -> None:
        """Two keys cannot be compared; afterwards all items are in line."""
        if self.mend is None:
            raise raised
        self.mend(raised)


def _is_same(key: Any, other: Any) -> bool:
    try:
        return bool(key == other)
    except Exception:
        return False
