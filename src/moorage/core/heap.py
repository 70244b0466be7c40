"""Heap: the smallest key first, any item removable by its id. Knows nothing of pods.

Equal keys leave in the order in which they came. In kube-scheduler the implementation of its binary
heap decides there; a serial number is as fair, and easier to reason about.

Keys may come from plugins, so comparing two of them may raise anything. The owner of a heap may
pass `on_incomparable`, which has to `rekey` all items, with `comparable` keys for example.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from numbers import Real
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# Below this many dead records, a rebuild costs more than the memory they take.
MOST_DEAD = 64

# Types of keys, in their order; see `comparable`.
NUMBER, TEXT, BYTES, SEVERAL, OTHER = range(5)


class Heap(Generic[T]):
    """Items in the order of their keys; push, pop and remove in O(log n).

    Most items come in the order in which they leave. Those are appended to a line; only items out
    of order go into a heap. A removed item's record stays where it is, dead, until it is first or
    dead records outnumber the others: that is less work than moving it out.
    """

    __slots__ = ("_line", "_records", "_serial", "live", "on_incomparable")

    def __init__(self, on_incomparable: Callable[[Exception], None] | None = None) -> None:
        self.on_incomparable = on_incomparable
        # A record is [key, serial, item_id, item]; serials differ, so comparisons end there.
        self._line: deque[list[Any]] = deque()
        self._records: list[list[Any]] = []
        # The records of all items, by id.
        self.live: dict[str, list[Any]] = {}
        self._serial = 0

    def push(self, item_id: str, item: T, key: Any) -> None:
        """Add an item that is not in the heap."""
        assert item_id not in self.live, f"{item_id} is in the heap already"
        self._serial += 1
        record = [key, self._serial, item_id, item]
        self.live[item_id] = record
        try:
            if not self._line or not key < self._line[-1][0]:
                self._line.append(record)
            else:
                heapq.heappush(self._records, record)
        except Exception as raised:  # A plugin's key; see the module.
            self._rekeyed(raised)

    def update(self, item_id: str, item: T, key: Any) -> None:
        """Replace an item; it keeps its position among equals if its key stays the same."""
        record = self.live[item_id]
        if _is_same(record[0], key):
            record[3] = item
        else:
            # In this order: if `push` rekeys all items, this one has to be among them.
            del self.live[item_id]
            self.push(item_id, item, key)
            self._compact()

    def pop(self) -> T:
        """Remove and return the item with the smallest key; IndexError if there is none."""
        live, line = self.live, self._line
        while line and not self._records:  # The usual case: no item is out of order.
            record = line.popleft()
            if live.get(record[2]) is record:
                break
        else:
            record = self._pop_from_heap() if self._drop_dead() else self._line.popleft()
        del live[record[2]]
        item: T = record[3]
        return item

    def peek(self) -> T:
        """The item with the smallest key; IndexError if there is none."""
        first = self._records[0] if self._drop_dead() else self._line[0]
        item: T = first[3]
        return item

    def remove(self, item_id: str) -> T:
        """Remove and return an item; KeyError if it is not in the heap."""
        item: T = self.live.pop(item_id)[3]
        self._compact()
        return item

    def rekey(self, key_of: Callable[[T], Any]) -> None:
        """Give every item another key; equal items keep their order."""
        for record in self.live.values():
            record[0] = key_of(record[3])
        self._line, self._records = deque(sorted(self.live.values())), []

    def heaps(self) -> "list[Heap[T]]":
        """Itself: this heap is one partition."""
        return [self]

    def __contains__(self, item_id: str) -> bool:
        return item_id in self.live

    def __len__(self) -> int:
        return len(self.live)

    def __iter__(self) -> Iterator[T]:
        """Items in the order in which they would be popped; sorts them, so it is slow."""
        return iter([record[3] for record in self._sorted()])

    def _sorted(self) -> list[list[Any]]:
        try:
            return sorted(self.live.values())
        except Exception as raised:
            self._rekeyed(raised)
            return list(self._line)

    def _compact(self) -> None:
        """Drop the dead records when they outnumber the others."""
        if len(self._records) + len(self._line) > 2 * len(self.live) + MOST_DEAD:
            self._line = deque(self._sorted())
            self._records = []

    def _pop_from_heap(self) -> list[Any]:
        try:
            return heapq.heappop(self._records)
        except Exception as raised:
            self._rekeyed(raised)
            return self._line.popleft()

    def _drop_dead(self) -> bool:
        """Drop dead records at the front; whether the smallest is in the heap, not in line."""
        line, records, live = self._line, self._records, self.live
        while line and live.get(line[0][2]) is not line[0]:
            line.popleft()
        try:
            while records and live.get(records[0][2]) is not records[0]:
                heapq.heappop(records)
            return bool(records) and (not line or records[0] < line[0])
        except Exception as raised:
            self._rekeyed(raised)
            return False

    def _rekeyed(self, raised: Exception) -> None:
        """Two keys cannot be compared: let the owner rekey; afterwards all items are in line."""
        if self.on_incomparable is None:
            raise raised
        self.on_incomparable(raised)


def _is_same(key: Any, other: Any) -> bool:
    try:
        return bool(key == other)
    except Exception:
        return False


def comparable(key: Any) -> tuple[Any, ...]:
    """A key that compares with every other key made here.

    Numbers come first, then text, then bytes, then tuples and lists, item by item. All other keys,
    such as None, are last, in the order in which they came. Keys that compare keep their order.
    """
    if isinstance(key, Real):
        # A key that is not equal to itself (NaN) has no order among numbers.
        return (NUMBER, key) if key == key else (OTHER,)
    if isinstance(key, str):
        return TEXT, key
    if isinstance(key, bytes):
        return BYTES, key
    if isinstance(key, tuple | list):
        return SEVERAL, tuple(map(comparable, key))
    return (OTHER,)
