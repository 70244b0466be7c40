"""InFlightPods: pods that are being tried, and the cluster events of the meantime.

An event during an attempt may help a pod that the attempt rejects. So events are kept, in order, as
long as a pod is in flight that was popped before them.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from moorage.core.queued_pod import QueuedPod
from moorage.errors import InvariantError
from moorage.framework.events import ClusterEvent


class InFlightEvent(Struct, frozen=True, gc=False):
    """A cluster event that happened while pods were in flight."""

    event: ClusterEvent
    old: Any
    new: Any


class InFlightPods:
    """Pods in the order in which they were popped, by UID."""

    def __init__(self) -> None:
        # Ordered, because the oldest entry is read often: a plain dict skips the slots of all
        # removed keys to find its first one.
        self.entries: OrderedDict[str, QueuedPod] = OrderedDict()
        self._events: list[InFlightEvent] = []
        # The position of the first event that is still kept.
        self._first = 0

    def add(self, entry: QueuedPod) -> None:
        """Add a pod that was popped."""
        entry.events_before = self._first + len(self._events)
        self.entries[entry.uid] = entry

    def get(self, uid: str) -> QueuedPod | None:
        """The pod with that UID, if it is in flight."""
        return self.entries.get(uid)

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Keep an event for the pods in flight, if there are any."""
        if self.entries:
            self._events.append(InFlightEvent(event, old, new))

    def events_since_pop(self, uid: str) -> Iterator[InFlightEvent] | None:
        """The events since a pod was popped; None if it is not in flight."""
        entry = self.entries.get(uid)
        if entry is None:
            return None
        kept = self._events
        return (kept[i] for i in range(entry.events_before - self._first, len(kept)))

    def done(self, uid: str) -> QueuedPod | None:
        """Remove and return a pod; None if it is not in flight."""
        entry = self.entries.pop(uid, None)
        if self._events:
            self._prune()
        return entry

    def _prune(self) -> None:
        """Drop events older than all pods in flight, many at once: a deletion moves the rest."""
        unused = self._oldest() - self._first
        if 2 * unused >= len(self._events):
            del self._events[:unused]
            self._first += unused

    def _oldest(self) -> int:
        for entry in self.entries.values():
            return entry.events_before
        return self._first + len(self._events)

    def __contains__(self, uid: str) -> bool:
        return uid in self.entries

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter([*self.entries.values()])

    def timeline(self) -> list[QueuedPod | InFlightEvent]:
        """Pods and the events kept for them, in the order in which they came."""
        line: list[QueuedPod | InFlightEvent] = []
        position = self._oldest()
        for entry in self.entries.values():
            line += self._events[position - self._first : entry.events_before - self._first]
            line.append(entry)
            position = entry.events_before
        return line + self._events[position - self._first :]

    def check(self) -> None:
        """Raise InvariantError if an entry is under another UID, or out of order."""
        position = self._first
        for uid, entry in self.entries.items():
            if entry.uid != uid or entry.pod.uid != uid:
                raise InvariantError(f"in flight under {uid}: {entry.key} {entry.uid}")
            if not position <= entry.events_before <= self._first + len(self._events):
                raise InvariantError(f"in flight: {entry.key} is out of order")
            position = entry.events_before
        if self._events and not self.entries:
            raise InvariantError(f"{len(self._events)} events kept, and no pod in flight")
