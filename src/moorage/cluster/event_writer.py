"""Kubernetes Events in the store: create, count repetitions, limit floods, expire after an hour.

Equal Events about the same object become one Event with a count. As with Kubernetes' recorders,
many similar Events are combined into one, and the number of Events per object is limited.
"""

from collections import OrderedDict, deque

from moorage.api import timestamps
from moorage.cluster.resources import EVENTS
from moorage.cluster.store import Store, key_of
from moorage.controllers import objects
from moorage.controllers.events import NewEvent
from moorage.controllers.objects import Object

TTL_SECONDS = 3600.0
# The number of different Events that can be counted up.
MAX_REMEMBERED = 4096
MAX_MESSAGE = 1024
COMBINED = "(combined from similar events): "

# Events of one reason are combined from the tenth on, unless there was a pause.
MAX_SIMILAR, SIMILAR_SECONDS = 9, 600.0
# A token bucket per object: its size, and the time until a token comes back.
BURST, REFILL_SECONDS = 25, 300.0


class EventWriter:
    """Writes Events to the store, and deletes expired ones."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._names: OrderedDict[tuple[str, NewEvent], tuple[str, str]] = OrderedDict()
        self._expirations: deque[tuple[float, str, str]] = deque()
        self._serial = 0
        for event in sorted(store.each(EVENTS), key=_last_seen):
            self._expirations.append((_last_seen(event) + TTL_SECONDS, *key_of(event)))

    def emit(self, obj: Object, event: NewEvent, now: float) -> None:
        """Create an Event about an object, or count up an equal one."""
        prefix = COMBINED if event.is_combined else ""
        event = event._replace(text=f"{prefix}{event.text}"[:MAX_MESSAGE])
        identity = (objects.uid(obj), event._replace(text="") if event.is_combined else event)
        key = self._names.get(identity)
        known = None if key is None else self._store.find(EVENTS, *key)
        if known is not None:
            count = int(known.get("count") or 1) + 1
            seen = {"count": count, "lastTimestamp": timestamps.to_text(now), "message": event.text}
            self._store.update(EVENTS, {**known, **seen})
            return
        new = self._new_object(obj, event, now)
        self._store.create(EVENTS, new)
        key = key_of(new)
        self._names[identity] = key
        if len(self._names) > MAX_REMEMBERED:
            self._names.popitem(last=False)
        self._expirations.append((now + TTL_SECONDS, *key))

    def expire(self, now: float) -> None:
        """Delete the Events that were last seen too long ago."""
        while self._expirations and self._expirations[0][0] <= now:
            _, namespace, name = self._expirations.popleft()
            event = self._store.find(EVENTS, namespace, name)
            if event is None:
                continue
            if (expires_at := _last_seen(event) + TTL_SECONDS) > now:
                self._expirations.append((expires_at, namespace, name))
                return  # The queue is slightly out of order now; the next calls correct it.
            self._store.delete(EVENTS, namespace, name)

    def _new_object(self, obj: Object, event: NewEvent, now: float) -> Object:
        namespace = objects.namespace(obj) or "default"
        while True:
            # Names contain the time, as in Kubernetes; the serial number separates equal times.
            self._serial += 1
            name = f"{objects.name(obj)[:200]}.{int(now * 1e6) + self._serial:x}"
            if self._store.find(EVENTS, namespace, name) is None:
                break
        at = timestamps.to_text(now)
        involved = objects.reference(obj)
        involved["resourceVersion"] = obj["metadata"].get("resourceVersion", "")
        if objects.namespace(obj):
            involved["namespace"] = objects.namespace(obj)
        new: Object = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": involved,
            "type": event.type,
            "reason": event.reason,
            "message": event.text,
            "source": {"component": event.reporter},
            "reportingComponent": event.reporter,
            "reportingInstance": "moorage",
            "count": 1,
            "firstTimestamp": at,
            "lastTimestamp": at,
        }
        return {**new, "action": event.action} if event.action else new


def _last_seen(event: Object) -> float:
    created_at = event["metadata"].get("creationTimestamp")
    times = (event.get("lastTimestamp"), event.get("eventTime"), created_at)
    return max(map(timestamps.to_seconds, times))


class EventCorrelator:
    """Combines similar Events and limits the number of Events per object."""

    def __init__(self) -> None:
        self._texts: dict[str, dict[str, tuple[float, set[str]]]] = {}
        self._spent: dict[str, tuple[float, float]] = {}

    def correlate(self, obj: Object, event: NewEvent, now: float) -> NewEvent | None:
        """The Event to emit, perhaps a combined one; None if the object has too many."""
        uid = objects.uid(obj)
        last, texts = self._texts.setdefault(uid, {}).get(event.reason, (now, set[str]()))
        if now - last > SIMILAR_SECONDS:
            texts = set()
        self._texts[uid][event.reason] = now, texts
        if len(texts) < MAX_SIMILAR:
            texts.add(event.text)
        elif event.text not in texts:
            event = event._replace(is_combined=True)
        at, spent = self._spent.get(uid, (now, 0.0))
        spent = max(0.0, spent - (now - at) / REFILL_SECONDS)
        if spent + 1 > BURST:
            return None
        self._spent[uid] = now, spent + 1
        return event

    def forget(self, obj: Object) -> None:
        """Drop the state of a deleted object."""
        self._texts.pop(objects.uid(obj), None)
        self._spent.pop(objects.uid(obj), None)
