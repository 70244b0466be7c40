"""BackoffQueue: pods that wait a while after a failed attempt.

There are two heaps. Pods that plugins rejected may be tried early when no pod is active. Pods whose
attempt ended in an error may not, so that an idle scheduler does not retry an error in a loop.
Backoffs end at whole seconds: pods of one second leave together, in the order of the active queue.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

from moorage.core.heap import Heap
from moorage.core.queued_pod import QueuedPod
from moorage.errors import InvariantError

# More doublings than a 64-bit duration has bits change nothing.
MOST_DOUBLINGS = 63


def seconds(failures: int, initial_seconds: float, max_seconds: float) -> float:
    """The backoff after so many failures: it doubles from initial to max."""
    return min(initial_seconds * (1 << min(failures - 1, MOST_DOUBLINGS)), max_seconds)


class BackoffQueue:
    """Pods that back off, ordered by the end of their backoff."""

    def __init__(self, initial_seconds: float, max_seconds: float) -> None:
        self.initial_seconds = initial_seconds
        self.max_seconds = max_seconds
        self.rejected: Heap[QueuedPod] = Heap()
        self.failed: Heap[QueuedPod] = Heap()

    def until(self, entry: QueuedPod) -> float:
        """The second in which the pod's backoff ends; kept until its next failure."""
        if entry.backoff_until is not None:
            return entry.backoff_until
        # Errors count by themselves: a pod that was rejected often must not wait long after one.
        failures = entry.consecutive_errors or entry.unschedulable_count
        if failures == 0 or self.max_seconds == 0:
            entry.backoff_until = -math.inf
        else:
            span = seconds(failures, self.initial_seconds, self.max_seconds)
            entry.backoff_until = math.floor(entry.queued_at + span)
        return entry.backoff_until

    def is_backing_off(self, entry: QueuedPod, now: float) -> bool:
        """Whether the pod still has to wait; its last second counts."""
        return self.until(entry) >= math.floor(now)

    def put(self, entry: QueuedPod, order: Any) -> None:
        """Add a pod, or sort it again after a change; `order` is its key in the active queue."""
        heap: Heap[QueuedPod] = self.rejected
        key: tuple[Any, ...] = (self.until(entry), order)
        if not entry.has_rejectors:
            # After an error, priority does not count.
            heap, key = self.failed, key[:1]
        if entry.key in heap:
            heap.update(entry.key, entry, key)
        else:
            heap.push(entry.key, entry, key)

    def rekey(self, order_of: Callable[[QueuedPod], Any]) -> None:
        """Take the other keys of the active queue."""
        self.rejected.rekey(lambda entry: (self.until(entry), order_of(entry)))

    def pop_over(self, now: float) -> QueuedPod | None:
        """Remove and return a pod whose backoff is over: rejected pods first."""
        for heap in (self.rejected, self.failed):
            if heap and not self.is_backing_off(heap.peek(), now):
                return heap.pop()
        return None

    @property
    def deadline(self) -> float | None:
        """When the next backoff is over; None if no pod backs off."""
        heads = [self.until(heap.peek()) for heap in (self.rejected, self.failed) if heap]
        return min(heads) + 1 if heads else None

    def discard(self, key: str) -> None:
        """Remove a pod, if it is here."""
        for heap in (self.rejected, self.failed):
            if key in heap:
                heap.remove(key)

    def __len__(self) -> int:
        return len(self.rejected) + len(self.failed)

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self.rejected
        yield from self.failed

    def check(self) -> None:
        """Raise InvariantError if a pod is in the wrong heap, or a heap out of order."""
        for heap, rejected in ((self.rejected, True), (self.failed, False)):
            for entry in heap:
                if entry.has_rejectors != rejected:
                    raise InvariantError(f"{entry.key} backs off in the wrong heap")
            ends = [self.until(entry) for entry in heap]
            if ends != sorted(ends):
                raise InvariantError("the backoff queue is out of order")
