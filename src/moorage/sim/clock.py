"""Clock: virtual time, and a heap of (time, serial number, action).

Time is that of the last action popped; it starts at 0 and never goes back. Actions that are due at
the same time are popped in the order in which they were scheduled. They are plain data: the clock
does not perform them.

Most actions are due at the present time, and there may be a million later ones: a queue holds them.
An action of the heap that is due at the same time was scheduled earlier, when that time was still
to come, so it is popped first.
"""

import heapq
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Generic, TypeVar

T = TypeVar("T")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Clock(Generic[T]):
    """Virtual time, and the actions to come."""

    def __init__(self) -> None:
        self.now = 0.0
        self._serial = 0
        self._present: deque[T] = deque()
        self._heap: list[tuple[float, int, T]] = []

    def __len__(self) -> int:
        return len(self._present) + len(self._heap)

    def __iter__(self) -> Iterator[T]:
        """The actions to come, in no particular order."""
        yield from self._present
        yield from (action for _, _, action in self._heap)

    @property
    def next_at(self) -> float | None:
        """The time of the next action, if there is one."""
        if self._present:
            return self.now
        return self._heap[0][0] if self._heap else None

    @property
    def is_due(self) -> bool:
        """Whether an action is due at the present time."""
        return bool(self._present) or (bool(self._heap) and self._heap[0][0] <= self.now)

    def schedule(self, at: float, action: T) -> None:
        """Schedule an action; a time in the past means now."""
        if at <= self.now:
            self._present.append(action)
        else:
            self._serial += 1
            heapq.heappush(self._heap, (float(at), self._serial, action))

    def in_(self, seconds: float, action: T) -> None:
        """Schedule an action after a duration."""
        self.schedule(self.now + seconds, action)

    def pop(self) -> T:
        """Advance to the next action and return it."""
        heap = self._heap
        if self._present and not (heap and heap[0][0] <= self.now):
            return self._present.popleft()
        self.now, _, action = heapq.heappop(heap)
        return action

    def advance(self, to: float) -> None:
        """Advance the time, at most to the next action."""
        assert to >= self.now, f"time would go back from {self.now} to {to}"
        assert (at := self.next_at) is None or to <= at, "an action is due before that"
        self.now = float(to)


@lru_cache(maxsize=1024)
def _rendered(seconds: int) -> str:
    return (EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def timestamp(seconds: float) -> str:
    """Virtual time as an object carries it: RFC 3339, whole seconds."""
    return _rendered(int(seconds))
