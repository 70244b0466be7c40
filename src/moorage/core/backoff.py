"""Backoff: pods that sit out a while after a failed attempt.

There are two heaps. Pods that plugins refused may be tried early when nothing else is to do; pods
whose attempt failed by trouble may not, so that an idle scheduler does not hammer on the trouble.
Expirations are whole seconds: pods of one second leave together, in the order of the active queue.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

from moorage.core.heap import Heap
from moorage.core.queued_pod import QueuedPod
from moorage.errors import InvariantError

# More doublings than 64-bit durations have bits change nothing.
MOST_DOUBLINGS = 63


def seconds(failures: int, initial_seconds: float, max_seconds: float) -> float:
    """How long a pod sits out after so many failures: doubling from initial to max."""
    return min(initial_seconds * (1 << min(failures - 1, MOST_DOUBLINGS)), max_seconds)


class Backoff:
    """Pods that are backing off, the first to be through on top."""

    def __init__(self, initial_seconds: float, max_seconds: float) -> None:
        self.initial_seconds = initial_seconds
        self.max_seconds = max_seconds
        self.refused: Heap[QueuedPod] = Heap()
        self.failed: Heap[QueuedPod] = Heap()

    def until(self, entry: QueuedPod) -> float:
        """The second in which the pod's back-off ends; kept until it fails again."""
        if entry.backoff_until is None:
            entry.backoff_until = self._until(entry)
        return entry.backoff_until

    def _until(self, entry: QueuedPod) -> float:
        # Trouble counts by itself: a pod that was refused often must not wait long for it.
        failures = entry.consecutive_errors or entry.unschedulable_count
        if failures == 0 or self.max_seconds == 0:
            return -math.inf
        span = seconds(failures, self.initial_seconds, self.max_seconds)
        return math.floor(entry.queued_at + span)

    def is_backing_off(self, entry: QueuedPod, now: float) -> bool:
        """Whether the pod still has to wait; through its last second it has to."""
        return self.until(entry) >= math.floor(now)

    def put(self, entry: QueuedPod, order: Any) -> None:
        """Put in a pod, or put it right after a change; `order` is its active queue's key."""
        heap: Heap[QueuedPod] = self.refused
        key: tuple[Any, ...] = (self.until(entry), order)
        if not entry.has_rejectors:
            # Trouble has no priorities.
            heap, key = self.failed, key[:1]
        if entry.key in heap:
            heap.update(entry.key, entry, key)
        else:
            heap.push(entry.key, entry, key)

    def rekey(self, order_of: Callable[[QueuedPod], Any]) -> None:
        """The active queue has other keys from now on."""
        self.refused.rekey(lambda entry: (self.until(entry), order_of(entry)))

    def pop_over(self, now: float) -> QueuedPod | None:
        """Take out a pod whose back-off is over: the refused first, then the failed."""
        for heap in (self.refused, self.failed):
            if heap and not self.is_backing_off(heap.peek(), now):
                return heap.pop()
        return None

    @property
    def deadline(self) -> float | None:
        """When the next back-off is over; None if nobody waits."""
        heads = [self.until(heap.peek()) for heap in (self.refused, self.failed) if heap]
        return min(heads) + 1 if heads else None

    def get(self, key: str) -> QueuedPod | None:
        """The pod of that name, if it is backing off."""
        return self.refused.get(key) or self.failed.get(key)

    def discard(self, key: str) -> None:
        """Take a pod out, if it is in."""
        for heap in (self.refused, self.failed):
            if key in heap:
                heap.remove(key)

    def __contains__(self, key: str) -> bool:
        return key in self.refused or key in self.failed

    def __len__(self) -> int:
        return len(self.refused) + len(self.failed)

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self.refused
        yield from self.failed

    def check(self) -> None:
        """Raise InvariantError if a pod is in the wrong heap, or a heap out of order."""
        for heap, refused in ((self.refused, True), (self.failed, False)):
            for entry in heap:
                if entry.has_rejectors != refused:
                    raise InvariantError(f"{entry.key} backs off in the wrong heap")
            ends = [self.until(entry) for entry in heap]
            if ends != sorted(ends):
                raise InvariantError("the back-off has lost its order")
