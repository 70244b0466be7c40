"""The store: objects by name, a version per change, and a log of the latest changes.

The store keeps whole objects as plain dicts that nothing modifies in place, each with its JSON,
which is encoded once for all lists, watches and journal rows. It runs in one thread and never
blocks. In memory every change is durable at once; `serve` has a store whose journal makes changes
durable a little later. A handler that acknowledges a write to a client awaits
`wait_until_durable`.

The store does not validate objects: `verbs/` implements the API server's rules.
"""

import bisect
import heapq
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

import msgspec

from moorage.cluster import status_errors
from moorage.cluster.resources import Resource
from moorage.cluster.status_errors import TooLargeError, UnavailableError
from moorage.controllers.objects import Object

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"

LOG_SIZE = 16_384
"""Changes of each resource; up to twice as many are kept."""
LOG_BYTES = 64 * 1024 * 1024
"""Bytes of JSON in all logs. The objects themselves take up to eight times as much memory."""
OBJECT_LIMIT = 1_500_000
"""Bytes of JSON: the limit of etcd."""
CACHED_BYTES = 16 * 1024
"""Results are kept for parts of objects up to this size: a thousand large ones take gigabytes."""

ObjectKey = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""

encode = msgspec.json.Encoder().encode


def key_of(obj: Object) -> ObjectKey:
    meta = obj["metadata"]
    return meta.get("namespace", ""), meta["name"]


class StoredObject(NamedTuple):
    """An object, its JSON, and the version of its last change."""

    object: Object
    body: bytes
    version: int


class Change(NamedTuple):
    """One change. The object of a deletion is the last one, with the version of the deletion."""

    type: str
    resource: Resource
    stored: StoredObject
    stored_before: StoredObject | None

    @property
    def object(self) -> Object:
        return self.stored.object

    @property
    def before(self) -> Object | None:
        return None if self.stored_before is None else self.stored_before.object

    @property
    def version(self) -> int:
        return self.stored.version

    @property
    def size(self) -> int:
        """The bytes of JSON that it keeps: the object, and the one before."""
        before = 0 if self.stored_before is None else len(self.stored_before.body)
        return before + len(self.stored.body)


class Scan(NamedTuple):
    """Objects in order of their keys, as they are taken, and how many there are."""

    length: int
    items: Iterator[tuple[ObjectKey, StoredObject]]


class ResourceChangeLog:
    """The latest changes of one resource in order of version; the oldest are dropped."""

    def __init__(self, size: int, floor: int) -> None:
        self.floor = floor  # changes up to this version were dropped
        self.first = 0  # the position of the oldest change; positions are never reused
        self.bytes = 0
        self._size = size
        self._changes: list[Change] = []

    @property
    def newest(self) -> int:
        """The version of the latest change."""
        return self._changes[-1].version if self._changes else self.floor

    def append(self, change: Change) -> None:
        self._changes.append(change)
        self.bytes += change.size
        if len(self._changes) > 2 * self._size:  # In bulk: removing a list's head is slow.
            self._drop(self._size)

    def halve(self) -> None:
        """Drop the oldest changes, half of the bytes; the latest change stays for its watchers."""
        bytes_, count = self.bytes, 0
        while bytes_ > self.bytes // 2 and count < len(self._changes) - 1:
            bytes_ -= self._changes[count].size
            count += 1
        self._drop(count)

    def _drop(self, count: int) -> None:
        if count:
            self.bytes -= sum(change.size for change in self._changes[:count])
            self.floor = self._changes[count - 1].version
            self.first += count
            del self._changes[:count]

    def position_after(self, version: int) -> int:
        """The position of the first change after a version; raises ExpiredError if dropped."""
        if version < self.floor:
            raise status_errors.too_old(version, self.floor)
        return self.first + bisect.bisect_right(self._changes, version, key=attrgetter("version"))

    def at(self, position: int) -> Change | None:
        """The change at a position; None if it is in the future. Raises ExpiredError."""
        index = position - self.first
        if index < 0:
            raise status_errors.too_old(0, self.floor)
        return self._changes[index] if index < len(self._changes) else None

    def since(self, version: int) -> list[Change]:
        """The changes after that version, oldest first; raises ExpiredError."""
        return self._changes[self.position_after(version) - self.first :]


class Store:
    """All objects, and the latest changes."""

    def __init__(
        self,
        *,
        clock: Callable[[], str],
        uid: Callable[[], str],
        log_size: int = LOG_SIZE,
    ) -> None:
        self.clock = clock  # the time as a timestamp of objects: 2026-01-31T12:00:00Z
        self.uid = uid
        self.version = 1
        self.durable_version = 1
        self.failure: UnavailableError | None = None
        self._objects: dict[str, dict[ObjectKey, StoredObject]] = {}  # by storage key
        self._keys: dict[str, list[ObjectKey]] = {}  # sorted, once a list was asked for
        self._logs: dict[str, ResourceChangeLog] = {}
        self._log_bytes = 0
        self._log_size = log_size
        self._floor = 1
        self._subscribers: list[Callable[[Change], None]] = []
        self._on_durable: list[Callable[[], None]] = []

    # Reading.

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """The object; raises NotFoundError."""
        return self.stored(resource, namespace, name).object

    def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """The object, or None."""
        found = self.find_stored(resource, namespace, name)
        return None if found is None else found.object

    def find_stored(self, resource: Resource, namespace: str, name: str) -> StoredObject | None:
        """The object with its JSON, or None."""
        return self._objects_of(resource).get((namespace, name))

    def stored(self, resource: Resource, namespace: str, name: str) -> StoredObject:
        """The object with its JSON; raises NotFoundError."""
        found = self.find_stored(resource, namespace, name)
        if found is None:
            raise status_errors.not_found(resource, name)
        return found

    def each(self, resource: Resource) -> Iterator[Object]:
        """All objects in no particular order; the store must not change during the iteration."""
        for stored in self._objects_of(resource).values():
            yield stored.object

    def bodies(self, resource: Resource) -> tuple[bytes, ...]:
        """The JSON of all objects, in no particular order."""
        return tuple(stored.body for stored in self._objects_of(resource).values())

    def count(self, resource: Resource) -> int:
        return len(self._objects_of(resource))

    def snapshot(
        self, resource: Resource, namespace: str | None = None, at_version: int | None = None
    ) -> Sequence[tuple[ObjectKey, StoredObject]]:
        """The objects now, or at a version that is still in the log, in order of their keys."""
        return list(self.scan(resource, namespace, at_version).items)

    def scan(
        self,
        resource: Resource,
        namespace: str | None = None,
        at_version: int | None = None,
        after: ObjectKey | None = None,
    ) -> "Scan":
        """As `snapshot`, but only the objects that are taken, of those after a key, cost time.

        The store must not change meanwhile.
        """
        found, keys = self._objects_of(resource), self._sorted_keys(resource)
        first, last = ("", "") if namespace is None else (namespace, ""), None
        if namespace is not None:
            last = f"{namespace}\0", ""
        start = bisect.bisect_left(keys, first)
        if after is not None:
            start = max(start, bisect.bisect_right(keys, after))
        end = len(keys) if last is None else bisect.bisect_left(keys, last)
        there = (keys[index] for index in range(start, end))
        before = self._before(resource, at_version)
        if not before:
            return Scan(max(0, end - start), ((key, found[key]) for key in there))
        inside = [
            key
            for key in before
            if first <= key and (last is None or key < last) and (after is None or after < key)
        ]
        gone = sorted(key for key in inside if key not in found and before[key] is not None)
        new = sum(key in found and before[key] is None for key in inside)
        items = (
            (key, stored)
            for key in heapq.merge(there, gone)
            if (stored := before.get(key, found.get(key))) is not None
        )
        return Scan(max(0, end - start) + len(gone) - new, items)

    def _before(
        self, resource: Resource, version: int | None
    ) -> dict[ObjectKey, StoredObject | None]:
        """What was at a version where there is something else now; None if nothing was."""
        if version is None or version >= self.version:
            return {}
        changes = reversed(self.log(resource).since(version))
        return {key_of(change.object): change.stored_before for change in changes}

    def _sorted_keys(self, resource: Resource) -> list[ObjectKey]:
        keys = self._keys.get(resource.storage_key)
        if keys is None:
            keys = self._keys[resource.storage_key] = sorted(self._objects_of(resource))
        return keys

    # Changing.

    def with_identity(self, obj: Object) -> Object:
        """The object with a new UID and a creation timestamp."""
        new = {"uid": self.uid(), "creationTimestamp": self.clock()}
        return {**obj, "metadata": {**obj["metadata"], **new}}

    def create(self, resource: Resource, obj: Object) -> Object:
        """Add an object with a new UID; raises AlreadyExistsError."""
        key = key_of(obj)
        if key in self._objects_of(resource):
            raise status_errors.already_exists(resource, key[1])
        return self._put(resource, key, self.with_identity(obj), None)

    def update(self, resource: Resource, obj: Object) -> Object:
        """Replace an object; raises NotFoundError.

        An update without any difference gets no version and no event.
        """
        key = key_of(obj)
        before = self.stored(resource, *key)
        if _same(obj, before.object):
            return before.object
        return self._put(resource, key, obj, before)

    def delete(self, resource: Resource, namespace: str, name: str) -> Object:
        """Remove an object without regard to finalizers; raises NotFoundError."""
        before = self.stored(resource, namespace, name)
        self.version += 1
        last = _with_version(before.object, self.version)
        del self._objects_of(resource)[namespace, name]
        if (keys := self._keys.get(resource.storage_key)) is not None:
            del keys[bisect.bisect_left(keys, (namespace, name))]
        stored = StoredObject(last, encode(last), self.version)
        self._publish(Change(DELETED, resource, stored, before))
        return last

    # Changes and durability.

    def subscribe(self, callback: Callable[[Change], None]) -> Callable[[], None]:
        """Call back after each change; returns the function that unsubscribes.

        A callback that changes the store is called again inside that change, before other
        subscribers see the first one: record the change and act on it later.
        """
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    def log(self, resource: Resource) -> ResourceChangeLog:
        """The latest changes of one resource."""
        key = resource.storage_key
        log = self._logs.get(key)
        if log is None:
            log = self._logs[key] = ResourceChangeLog(self._log_size, self._floor)
        return log

    def on_durable(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back whenever more is durable; returns the function that unsubscribes."""
        self._on_durable.append(callback)
        return lambda: self._on_durable.remove(callback)

    @property
    def readable_version(self) -> int | None:
        """The version that clients may read; None is the latest one.

        While the journal cannot be written, later changes may still be lost.
        """
        return None if self.failure is None else self.durable_version

    async def wait_until_readable(self) -> None:
        """Wait until all changes so far are durable, unless the journal cannot be written."""
        if self.failure is None:
            await self.wait_until_durable()

    async def wait_until_durable(self) -> None:
        """Wait until all changes so far are durable; raises UnavailableError."""

    def start(self) -> None:
        """Start to make changes durable; call it inside the event loop."""

    def close(self) -> None:
        """Make all changes durable."""

    def _objects_of(self, resource: Resource) -> dict[ObjectKey, StoredObject]:
        return self._objects.setdefault(resource.storage_key, {})

    def _put(
        self, resource: Resource, key: ObjectKey, obj: Object, before: StoredObject | None
    ) -> Object:
        obj = _with_version(obj, self.version + 1)
        stored = StoredObject(obj, encode(obj), self.version + 1)
        if len(stored.body) > OBJECT_LIMIT:
            raise TooLargeError(f"the object would be larger than {OBJECT_LIMIT} bytes", resource)
        self.version += 1
        self._objects_of(resource)[key] = stored
        if before is None and (keys := self._keys.get(resource.storage_key)) is not None:
            bisect.insort(keys, key)
        self._publish(Change(ADDED if before is None else MODIFIED, resource, stored, before))
        return obj

    def _publish(self, change: Change) -> None:
        self._append(change)
        self._record(change)
        for subscriber in tuple(self._subscribers):
            subscriber(change)
        if self.durable_version == self.version:
            self._notify_durable()

    def _append(self, change: Change) -> None:
        """Log a change; the longest log makes room if all of them become too long."""
        log = self.log(change.resource)
        before = log.bytes
        log.append(change)
        self._log_bytes += log.bytes - before
        if self._log_bytes > LOG_BYTES:
            longest = max(self._logs.values(), key=attrgetter("bytes"))
            before = longest.bytes
            longest.halve()
            self._log_bytes += longest.bytes - before

    def _record(self, change: Change) -> None:
        """Make a change durable, or begin to."""
        self.durable_version = self.version

    def _notify_durable(self) -> None:
        for callback in tuple(self._on_durable):
            callback()


def _with_version(obj: Object, version: int) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}


def _same(new: Object, old: Object) -> bool:
    """Whether the objects differ in their version at most."""
    version = {"resourceVersion": ""}
    old_meta, new_meta = old["metadata"] | version, new["metadata"] | version
    return new is old or old | {"metadata": old_meta} == new | {"metadata": new_meta}
