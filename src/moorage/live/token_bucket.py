"""TokenBucket: a rate limit whose tokens go to the most important request that waits.

    URGENT       bindings, deletions of victims, lookups, lists, watches
    NOMINATION   patches of nominatedNodeName
    REPORT       conditions of pods that do not fit

Within a priority the first request is served first. One of `SHARE` tokens goes to the lowest
priority that waits: while bindings use the whole rate, a cluster autoscaler still sees which pods
do not fit.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from enum import IntEnum

SHARE = 10
# A token that is complete but for rounding: a timer for the rest would be due at once.
ONE = 1.0 - 1e-6


class Priority(IntEnum):
    """See the module; lower values are served first."""

    URGENT = 0
    NOMINATION = 1
    REPORT = 2


class TokenBucket:
    """See the module; a rate of 0 or less means no limit."""

    def __init__(
        self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._burst = float(max(burst, 1))
        self._clock = clock
        self._tokens = self._burst
        self._counted_at = clock()
        self._waiting: dict[Priority, deque[asyncio.Future[None]]] = {p: deque() for p in Priority}
        self._timer: asyncio.TimerHandle | None = None
        self._granted = 0  # Tokens for which several requests could have been chosen.

    def take_now(self) -> bool:
        """Take a token if there is one and no request waits; False: `wait` for one."""
        if self._per_second <= 0:
            return True
        self._count()
        if self._tokens < ONE or any(self._waiting.values()):
            return False
        self._tokens -= 1.0
        return True

    async def wait(self, priority: Priority) -> None:
        """Take a token as soon as it is this request's turn."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting[priority].append(waiter)
        self._grant()
        await waiter

    def _count(self) -> None:
        now = self._clock()
        self._tokens += (now - self._counted_at) * self._per_second
        self._tokens = min(self._tokens, self._burst)
        self._counted_at = now

    def _grant(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._count()
        while (waiting := self._next()) is not None:
            if self._tokens < ONE:
                seconds = (1.0 - self._tokens) / self._per_second
                self._timer = asyncio.get_running_loop().call_later(seconds, self._grant)
                return
            waiting.popleft().set_result(None)
            self._tokens -= 1.0
            self._granted += 1

    def _next(self) -> deque[asyncio.Future[None]] | None:
        """The queue whose first request has the next token; None if none waits."""
        queues = []
        for queue in self._waiting.values():
            while queue and queue[0].done():  # Cancelled.
                queue.popleft()
            if queue:
                queues.append(queue)
        if not queues:
            return None
        return queues[-1 if self._granted % SHARE == SHARE - 1 else 0]
