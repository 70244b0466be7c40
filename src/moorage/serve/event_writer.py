"""Kubernetes Events in the store: create, count repetitions, expire after an hour.

Equal Events about the same object become one Event with a count, as with Kubernetes' recorders.
"""

from collections import OrderedDict, deque
from typing import NamedTuple

from moorage.serve import timestamps
from moorage.serve.controllers import objects
from moorage.serve.controllers.objects import Object
from moorage.serve.resources import EVENTS
from moorage.serve.store import Store

KEPT_SECONDS = 3600.0
# So many different notes are remembered, so that they can be counted up.
MOST_REMEMBERED = 4096
LONGEST_NOTE = 1024
COMBINED = "(combined from similar events): "


class NewEvent(NamedTuple):
    """Something to be told about an object."""

    type: str
    reason: str
    text: str
    reporter: str
    action: str = ""
    stands_for_similar: bool = False  # one Event for all of the same reason; it shows the latest


class EventWriter:
    """Writes EventWriter to the store, and takes old ones out."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._names: OrderedDict[tuple[str, NewEvent], tuple[str, str]] = OrderedDict()
        self._ends: deque[tuple[float, str, str]] = deque()
        self._serial = 0
        for event in sorted(store.each(EVENTS), key=_last_seen):
            ends_at = _last_seen(event) + KEPT_SECONDS
            self._ends.append((ends_at, objects.namespace(event), objects.name(event)))

    def tell(self, about: Object, note: NewEvent, now: float) -> None:
        """Write an Event, or count up the one that says the same."""
        similar = note.stands_for_similar
        note = note._replace(text=f"{COMBINED if similar else ''}{note.text}"[:LONGEST_NOTE])
        subject = (objects.uid(about), note._replace(text="") if similar else note)
        place = self._names.get(subject)
        known = None if place is None else self._store.find(EVENTS, *place)
        if known is not None:
            count = int(known.get("count") or 1) + 1
            seen = {"count": count, "lastTimestamp": timestamps.to_text(now), "message": note.text}
            self._store.update(EVENTS, {**known, **seen})
            return
        event = self._new(about, note, now)
        self._store.create(EVENTS, event)
        place = (objects.namespace(event), objects.name(event))
        self._names[subject] = place
        if len(self._names) > MOST_REMEMBERED:
            self._names.popitem(last=False)
        self._ends.append((now + KEPT_SECONDS, *place))

    def expire(self, now: float) -> None:
        """Take out what has been there for long enough."""
        while self._ends and self._ends[0][0] <= now:
            _, namespace, name = self._ends.popleft()
            event = self._store.find(EVENTS, namespace, name)
            if event is None:
                continue
            if (again_at := _last_seen(event) + KEPT_SECONDS) > now:
                self._ends.append((again_at, namespace, name))
                return  # Out of order by a little, once in an hour: the others come up soon.
            self._store.delete(EVENTS, namespace, name)

    def _new(self, about: Object, note: NewEvent, now: float) -> Object:
        namespace = objects.namespace(about) or "default"
        while True:
            # Told apart by the moment, as everywhere; a number settles two in the same.
            self._serial += 1
            name = f"{objects.name(about)[:200]}.{int(now * 1e6) + self._serial:x}"
            if self._store.find(EVENTS, namespace, name) is None:
                break
        at = timestamps.to_text(now)
        involved = {key: about[key] for key in ("apiVersion", "kind")}
        involved |= {"name": objects.name(about), "uid": objects.uid(about)}
        involved |= {"resourceVersion": about["metadata"].get("resourceVersion", "")}
        if objects.namespace(about):
            involved["namespace"] = objects.namespace(about)
        event: Object = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": involved,
            "type": note.type,
            "reason": note.reason,
            "message": note.text,
            "source": {"component": note.reporter},
            "reportingComponent": note.reporter,
            "reportingInstance": "moorage",
            "count": 1,
            "firstTimestamp": at,
            "lastTimestamp": at,
        }
        return {**event, "action": note.action} if note.action else event


def _last_seen(event: Object) -> float:
    return max(
        timestamps.to_seconds(event.get("lastTimestamp")),
        timestamps.to_seconds(event.get("eventTime")),
        timestamps.to_seconds(event["metadata"].get("creationTimestamp")),
    )
