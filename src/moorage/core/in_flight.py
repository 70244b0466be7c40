"""InFlight: pods that are being tried, and the changes that they missed meanwhile.

A pod that comes back refused may have been cured by a change that happened while it was being
tried. So changes are kept, in order, for as long as a pod is in flight that was popped before
them. A pod's marker is the number of changes seen when it was popped.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from moorage.core.queued_pod import QueuedPod
from moorage.errors import InvariantError
from moorage.framework.events import ClusterEvent


class Missed(Struct, frozen=True, gc=False):
    """A change that happened while pods were in flight."""

    event: ClusterEvent
    old: Any
    new: Any


class _Marker(Struct, frozen=True, gc=False):
    entry: QueuedPod
    position: int


class InFlight:
    """Pods in the order in which they were popped, by UID."""

    def __init__(self) -> None:
        # Ordered, because the oldest marker is asked for again and again: a plain dict walks over
        # the holes that its former first keys have left.
        self._markers: OrderedDict[str, _Marker] = OrderedDict()
        self._missed: list[Missed] = []
        # The position of the first change that is still kept.
        self._first = 0

    def add(self, entry: QueuedPod) -> None:
        """A pod takes off."""
        self._markers[entry.uid] = _Marker(entry, self._first + len(self._missed))

    def get(self, uid: str) -> QueuedPod | None:
        """The pod with that UID, if it is in flight."""
        marker = self._markers.get(uid)
        return None if marker is None else marker.entry

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Keep a change for those in flight, if there are any."""
        if self._markers:
            self._missed.append(Missed(event, old, new))

    def missed_by(self, uid: str) -> Iterator[Missed] | None:
        """What happened since a pod was popped; None if it is not in flight."""
        marker = self._markers.get(uid)
        if marker is None:
            return None
        missed = self._missed
        return (missed[i] for i in range(marker.position - self._first, len(missed)))

    def done(self, uid: str) -> None:
        """A pod has landed, if it was in flight."""
        if self._markers.pop(uid, None) is not None and self._missed:
            self._prune()

    def _prune(self) -> None:
        """Let go of what nobody in flight has missed; in large bites, as each moves the rest."""
        seen = self._oldest() - self._first
        if 2 * seen >= len(self._missed):
            del self._missed[:seen]
            self._first += seen

    def _oldest(self) -> int:
        for marker in self._markers.values():
            return marker.position
        return self._first + len(self._missed)

    def __contains__(self, uid: str) -> bool:
        return uid in self._markers

    def __len__(self) -> int:
        return len(self._markers)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter([marker.entry for marker in self._markers.values()])

    def timeline(self) -> list[QueuedPod | Missed]:
        """Pods and the changes that they may have missed, in the order in which they came."""
        line: list[QueuedPod | Missed] = []
        position = self._oldest()
        for marker in self._markers.values():
            line += self._missed[position - self._first : marker.position - self._first]
            line.append(marker.entry)
            position = marker.position
        return line + self._missed[position - self._first :]

    def check(self) -> None:
        """Raise InvariantError if a marker has no pod or points nowhere."""
        position = self._first
        for uid, marker in self._markers.items():
            if marker.entry.uid != uid or marker.entry.pod.uid != uid:
                raise InvariantError(
                    f"in flight under {uid}: {marker.entry.key} {marker.entry.uid}"
                )
            if not position <= marker.position <= self._first + len(self._missed):
                raise InvariantError(f"in flight: {marker.entry.key} has a marker out of order")
            position = marker.position
        if self._missed and not self._markers:
            raise InvariantError(f"{len(self._missed)} changes kept, and nobody in flight")
