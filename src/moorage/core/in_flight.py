"""InFlightPods: pods that are being tried, and the cluster events of the meantime.

An event during an attempt may help a pod that the attempt rejects. So events are kept, in order, as
long as a pod is in flight that was popped before them. A pod's marker is the number of events
before its pop.
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


class _Marker(Struct, frozen=True, gc=False):
    entry: QueuedPod
    position: int


class InFlightPods:
    """Pods in the order in which they were popped, by UID."""

    def __init__(self) -> None:
        # Ordered, because the oldest marker is read often: a plain dict skips the slots of all
        # removed keys to find its first one.
        self.markers: OrderedDict[str, _Marker] = OrderedDict()
        self._events: list[InFlightEvent] = []
        # The position of the first event that is still kept.
        self._first = 0

    def add(self, entry: QueuedPod) -> None:
        """Add a pod that was popped."""
        self.markers[entry.uid] = _Marker(entry, self._first + len(self._events))

    def get(self, uid: str) -> QueuedPod | None:
        """The pod with that UID, if it is in flight."""
        marker = self.markers.get(uid)
        return None if marker is None else marker.entry

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Keep an event for the pods in flight, if there are any."""
        if self.markers:
            self._events.append(InFlightEvent(event, old, new))

    def events_since_pop(self, uid: str) -> Iterator[InFlightEvent] | None:
        """The events since a pod was popped; None if it is not in flight."""
        marker = self.markers.get(uid)
        if marker is None:
            return None
        kept = self._events
        return (kept[i] for i in range(marker.position - self._first, len(kept)))

    def done(self, uid: str) -> QueuedPod | None:
        """Remove and return a pod; None if it is not in flight."""
        marker = self.markers.pop(uid, None)
        if marker is None:
            return None
        if self._events:
            self._prune()
        return marker.entry

    def _prune(self) -> None:
        """Drop events older than all pods in flight, many at once: a deletion moves the rest."""
        unused = self._oldest() - self._first
        if 2 * unused >= len(self._events):
            del self._events[:unused]
            self._first += unused

    def _oldest(self) -> int:
        for marker in self.markers.values():
            return marker.position
        return self._first + len(self._events)

    def __contains__(self, uid: str) -> bool:
        return uid in self.markers

    def __len__(self) -> int:
        return len(self.markers)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter([marker.entry for marker in self.markers.values()])

    def timeline(self) -> list[QueuedPod | InFlightEvent]:
        """Pods and the events kept for them, in the order in which they came."""
        line: list[QueuedPod | InFlightEvent] = []
        position = self._oldest()
        for marker in self.markers.values():
            line += self._events[position - self._first : marker.position - self._first]
            line.append(marker.entry)
            position = marker.position
        return line + self._events[position - self._first :]

    def check(self) -> None:
        """Raise InvariantError if a marker has no pod or is out of order."""
        position = self._first
        for uid, marker in self.markers.items():
            if marker.entry.uid != uid or marker.entry.pod.uid != uid:
                raise InvariantError(
                    f"in flight under {uid}: {marker.entry.key} {marker.entry.uid}"
                )
            if not position <= marker.position <= self._first + len(self._events):
                raise InvariantError(f"in flight: {marker.entry.key} has a marker out of order")
            position = marker.position
        if self._events and not self.markers:
            raise InvariantError(f"{len(self._events)} events kept, and no pod in flight")
