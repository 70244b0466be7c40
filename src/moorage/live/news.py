"""News: what reflectors have read and the core has not been told yet, in order."""

import asyncio
from collections import deque
from collections.abc import Iterable

from moorage.core.observations import Observation


class News:
    """A queue that knows how far its reader has come."""

    def __init__(self, wake: asyncio.Event | None = None) -> None:
        self.wake = wake or asyncio.Event()  # Set when there is something to do.
        self.put_count = 0
        self.taken_count = 0
        self._waiting: deque[Observation] = deque()

    def put(self, observations: Iterable[Observation]) -> None:
        """Add what was read."""
        before = len(self._waiting)
        self._waiting.extend(observations)
        self.put_count += len(self._waiting) - before
        self.wake.set()

    def take(self) -> Observation | None:
        """The oldest, or None."""
        if not self._waiting:
            return None
        self.taken_count += 1
        return self._waiting.popleft()

    def __len__(self) -> int:
        return len(self._waiting)
