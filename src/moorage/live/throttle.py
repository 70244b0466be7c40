"""TokenBucket: at most so many requests a second, and so many at once after a pause."""

import asyncio
import time
from collections.abc import Callable


class TokenBucket:
    """Who comes first goes first; each waits just as long as it has to. No rate: no limit."""

    def __init__(
        self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._burst = float(max(burst, 1))
        self._clock = clock
        self._tokens = self._burst
        self._counted_at = clock()

    def reserve(self) -> float:
        """Take a token, or one of the future; how many seconds there are until it is there."""
        if self._per_second <= 0:
            return 0.0
        now = self._clock()
        grown = self._tokens + (now - self._counted_at) * self._per_second
        self._counted_at = now
        self._tokens = min(grown, self._burst) - 1.0
        return max(-self._tokens / self._per_second, 0.0)

    async def take(self) -> None:
        """Wait for a token."""
        seconds = self.reserve()
        if seconds:
            await asyncio.sleep(seconds)
