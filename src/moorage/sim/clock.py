"""A heap of what happens next: (time, serial number, what).

Virtual time is the time of the last thing popped; it begins at 0 and never goes back. Things due
at the same moment happen in the order in which they were scheduled. What happens is plain data:
the clock does not know what to do with it.
"""

import heapq
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Generic, TypeVar

T = TypeVar("T")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Clock(Generic[T]):
    """Virtual time, and what is still to come."""

    def __init__(self) -> None:
        self.now = 0.0
        self._serial = 0
        self._heap: list[tuple[float, int, T]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[T]:
        """What is still to come, in no particular order."""
        return (what for _, _, what in self._heap)

    @property
    def next_at(self) -> float | None:
        """When the next thing happens, if any is to come."""
        return self._heap[0][0] if self._heap else None

    def schedule(self, at: float, what: T) -> None:
        """Let something happen at a time; what is late already happens now."""
        self._serial += 1
        heapq.heappush(self._heap, (max(float(at), self.now), self._serial, what))

    def in_(self, seconds: float, what: T) -> None:
        """Let something happen after a while."""
        self.schedule(self.now + seconds, what)

    def pop(self) -> T:
        """Go to the next thing and hand it over."""
        at, _, what = heapq.heappop(self._heap)
        self.now = at
        return what

    def advance(self, to: float) -> None:
        """Let time pass, up to the next thing at the most."""
        assert to >= self.now, f"time would go back from {self.now} to {to}"
        assert not self._heap or to <= self._heap[0][0], "something comes before that"
        self.now = float(to)


@lru_cache(maxsize=1024)
def _rendered(seconds: int) -> str:
    return (EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def timestamp(seconds: float) -> str:
    """Virtual time as an object carries it: RFC 3339, whole seconds."""
    return _rendered(int(seconds))
