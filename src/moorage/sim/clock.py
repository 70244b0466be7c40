"""Clock: virtual time, and a heap of (time, serial number, action).

Time is that of the last action popped; it starts at 0 and never goes back. Actions that are due at
the same time are popped in the order in which they were scheduled. They are plain data: the clock
does not perform them.
"""

import heapq
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
        self._heap: list[tuple[float, int, T]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[T]:
        """The actions to come, in no particular order."""
        return (action for _, _, action in self._heap)

    @property
    def next_at(self) -> float | None:
        """The time of the next action, if there is one."""
        return self._heap[0][0] if self._heap else None

    def schedule(self, at: float, action: T) -> None:
        """Schedule an action; a time in the past means now."""
        self._serial += 1
        heapq.heappush(self._heap, (max(float(at), self.now), self._serial, action))

    def in_(self, seconds: float, action: T) -> None:
        """Schedule an action after a duration."""
        self.schedule(self.now + seconds, action)

    def pop(self) -> T:
        """Advance to the next action and return it."""
        at, _, action = heapq.heappop(self._heap)
        self.now = at
        return action

    def advance(self, to: float) -> None:
        """Advance the time, at most to the next action."""
        assert to >= self.now, f"time would go back from {self.now} to {to}"
        assert not self._heap or to <= self._heap[0][0], "an action is due before that"
        self.now = float(to)


@lru_cache(maxsize=1024)
def _rendered(seconds: int) -> str:
    return (EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def timestamp(seconds: float) -> str:
    """Virtual time as an object carries it: RFC 3339, whole seconds."""
    return _rendered(int(seconds))
