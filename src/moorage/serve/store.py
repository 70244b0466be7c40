"""The store: objects by name, a version per change, and a log of the latest changes.

The store keeps whole objects as plain dicts that nothing modifies in place, each with its JSON,
which is encoded once for all lists, watches and journal rows. It runs in one thread and never
blocks. A journal makes changes durable a little later; `wait_until_durable` waits for it, and so
does every handler that acknowledges a write to a client.

The store does not validate objects: `verbs/` implements the API server's rules.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from moorage.serve import status_errors
from moorage.serve.controllers.objects import Object
from moorage.serve.resources import Resource
from moorage.serve.status_errors import TooLargeError, UnavailableError

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class StoredObject(NamedTuple):
    """An object, its JSON, and the version of its last change."""

    object: Object
    body: bytes
    version: int


class Change(NamedTuple):
    """One thing that happened. A deletion's object is the last one, under the new version."""

    type: str
    resource: Resource
    object: Object
    before: Object | None
    version: int
    stored: StoredObject
    stored_before: StoredObject | None


class ChangeLog:
    """Changes in order of version; old ones are forgotten."""

    def __init__(self, size: int, floor: int) -> None:
        self.floor = floor  # changes up to this version are no longer here
        self.first = 0  # the position of the oldest change, counted from the beginning of time
        self._size = size
        self._changes: list[Change] = []

    @property
    def end(self) -> int:
        """The position that the next change will have."""
        return self.first + len(self._changes)

    def append(self, change: Change) -> None:
        self._changes.append(change)
        if len(self._changes) > 2 * self._size:  # In bulk: a list's head is costly to cut.
            self.floor = self._changes[self._size - 1].version
            self.first += self._size
            del self._changes[: self._size]

    def position_after(self, version: int) -> int:
        """Where the changes after that version begin; raises Gone if some are forgotten."""
        if version < self.floor:
            raise status_errors.too_old(version, self.floor)
        low, high = 0, len(self._changes)
        while low < high:
            middle = (low + high) // 2
            if self._changes[middle].version <= version:
                low = middle + 1
            else:
                high = middle
        return self.first + low

    def at(self, position: int) -> Change | None:
        """The change at a position; None if that is not there yet. Forgotten ones raise Gone."""
        index = position - self.first
        if index < 0:
            raise status_errors.too_old(0, self.floor)
        return self._changes[index] if index < len(self._changes) else None

    def since(self, version: int) -> list[Change]:
        """The changes after that version."""
        return self._changes[self.position_after(version) - self.first :]


ObjectKey = tuple[str, str]
"""Namespace (empty for cluster-wide objects) and name."""

LOG_SIZE = 16_384
OBJECT_LIMIT = 1_500_000
"""Bytes of JSON: as much as etcd would take."""

encode = msgspec.json.Encoder().encode


class JournalRow(NamedTuple):
    """One change as a journal keeps it; no body means that the object is gone."""

    version: int
    shelf: str
    namespace: str
    name: str
    body: bytes | None


class StoreJournal(Protocol):
    """Where changes become durable; `notify(version, failure)` may come from another thread."""

    def load(self) -> tuple[list[JournalRow], int, int]:
        """All objects, the last version written, and the first that may be given out now."""

    def start(self, notify: Callable[[int, Exception | None], None]) -> None: ...
    def write(self, row: JournalRow) -> None: ...
    def close(self) -> None: ...


class Store:
    """Every object there is, and the latest changes."""

    def __init__(
        self,
        *,
        clock: Callable[[], str],
        uid: Callable[[], str],
        journal: StoreJournal | None = None,
        log_size: int = LOG_SIZE,
    ) -> None:
        self.clock = clock  # the time as objects state it: 2026-01-31T12:00:00Z
        self.uid = uid
        self.version = 1
        self.durable_version = 1
        self.failure: UnavailableError | None = None
        self._shelves: dict[str, dict[ObjectKey, StoredObject]] = {}
        self._logs: dict[str, ChangeLog] = {}
        self._log_size = log_size
        self._floor = 1
        self._subscribers: list[Callable[[Change], None]] = []
        self._on_durable: list[Callable[[], None]] = []
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._journal = journal
        if journal is not None:
            self._load(journal)

    # Reading.

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """The object; raises NotFound."""
        return self.stored(resource, namespace, name).object

    def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """The object, or None."""
        found = self._shelf(resource).get((namespace, name))
        return None if found is None else found.object

    def stored(self, resource: Resource, namespace: str, name: str) -> StoredObject:
        """The object with its JSON; raises NotFound."""
        found = self._shelf(resource).get((namespace, name))
        if found is None:
            raise status_errors.not_found(resource, name)
        return found

    def list(self, resource: Resource, namespace: str | None = None) -> tuple[list[Object], int]:
        """All objects, or those of a namespace, by namespace and name; and the version."""
        found = self.snapshot(resource, namespace)
        return [each.object for _, each in found], self.version

    def each(self, resource: Resource) -> Iterator[Object]:
        """All objects in no particular order; don't change the store meanwhile."""
        for stored in self._shelf(resource).values():
            yield stored.object

    def count(self, resource: Resource) -> int:
        return len(self._shelf(resource))

    def snapshot(
        self, resource: Resource, namespace: str | None = None, at_version: int | None = None
    ) -> Sequence[tuple[ObjectKey, StoredObject]]:
        """What there is, or was at a version that is still remembered, in order of place."""
        shelf = self._shelf(resource)
        if at_version is not None and at_version < self.version:
            shelf = dict(shelf)
            for change in reversed(self.log(resource).since(at_version)):
                _undo(shelf, change)
        if namespace is None:
            return sorted(shelf.items(), key=_by_place)
        return sorted(
            [(place, each) for place, each in shelf.items() if place[0] == namespace],
            key=_by_place,
        )

    # Changing.

    def create(self, resource: Resource, obj: Object) -> Object:
        """Put a new object in, under a new UID; raises AlreadyExists."""
        meta = obj["metadata"]
        place = (meta.get("namespace", ""), meta["name"])
        if place in self._shelf(resource):
            raise status_errors.already_exists(resource, meta["name"])
        born = {"uid": self.uid(), "creationTimestamp": self.clock()}
        return self._put(resource, place, {**obj, "metadata": {**meta, **born}}, None)

    def update(
        self, resource: Resource, obj: Object, *, expect_version: str | int | None = None
    ) -> Object:
        """Put an object in another's place; raises NotFound, or Conflict if it has changed.

        A change that changes nothing gets no version, and nobody hears of it.
        """
        meta = obj["metadata"]
        place = (meta.get("namespace", ""), meta["name"])
        before = self.stored(resource, *place)
        _check_version(resource, before, expect_version)
        if _same(obj, before.object):
            return before.object
        return self._put(resource, place, obj, before)

    def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str | None = None,
        expect_version: str | int | None = None,
    ) -> Object:
        """Take an object out for good, whatever its finalizers say; raises NotFound, Conflict."""
        before = self.stored(resource, namespace, name)
        found = before.object["metadata"]["uid"]
        if uid is not None and uid != found:
            raise status_errors.uid_differs(resource, name, uid, found)
        _check_version(resource, before, expect_version)
        self.version += 1
        last = _at_version(before.object, self.version)
        del self._shelf(resource)[namespace, name]
        self._tell(DELETED, resource, StoredObject(last, encode(last), self.version), before)
        return last

    # Hearing of changes.

    def subscribe(self, callback: Callable[[Change], None]) -> Callable[[], None]:
        """Be called after each change, at once; returns what ends it.

        Whoever changes the store from a callback is told of that change inside the call, before
        others have heard of the first: note what happened and act on it later.
        """
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    def changes_since(self, resource: Resource, version: int) -> Sequence[Change]:
        """What happened after that version, oldest first; raises Gone if it is too long ago."""
        return self.log(resource).since(version)

    def log(self, resource: Resource) -> ChangeLog:
        """The latest changes of one resource."""
        shelf = resource.storage_key
        log = self._logs.get(shelf)
        if log is None:
            log = self._logs[shelf] = ChangeLog(self._log_size, self._floor)
        return log

    def on_durable(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Be called whenever more has become durable; returns what ends it."""
        self._on_durable.append(callback)
        return lambda: self._on_durable.remove(callback)

    async def settled(self) -> None:
        """Wait until all changes so far are durable; raises UnavailableError."""
        if self.failure is not None:
            raise self.failure
        if self.version > self.durable_version:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append((self.version, future))
            await future

    def start(self) -> None:
        """Begin to write the journal, if there is one; from inside the event loop."""
        if self._journal is not None:
            loop = asyncio.get_running_loop()

            def notify(version: int, failure: Exception | None) -> None:
                with contextlib.suppress(RuntimeError):  # The loop ended: nobody is waiting.
                    loop.call_soon_threadsafe(self._settle, version, failure)

            self._journal.start(notify)

    def close(self) -> None:
        """Write what is not written yet, and let go of the journal."""
        if self._journal is not None:
            self._journal.close()

    # Inside.

    def _load(self, journal: StoreJournal) -> None:
        rows, self._floor, self.version = journal.load()
        self.durable_version = self.version
        for row in rows:
            assert row.body is not None
            stored = StoredObject(msgspec.json.decode(row.body), row.body, row.version)
            self._shelves.setdefault(row.shelf, {})[row.namespace, row.name] = stored

    def _shelf(self, resource: Resource) -> dict[ObjectKey, StoredObject]:
        return self._shelves.setdefault(resource.storage_key, {})

    def _put(
        self, resource: Resource, place: ObjectKey, obj: Object, before: StoredObject | None
    ) -> Object:
        obj = _at_version(obj, self.version + 1)
        stored = StoredObject(obj, encode(obj), self.version + 1)
        if len(stored.body) > OBJECT_LIMIT:
            raise TooLargeError(f"the object would be larger than {OBJECT_LIMIT} bytes", resource)
        self.version += 1
        self._shelf(resource)[place] = stored
        self._tell(ADDED if before is None else MODIFIED, resource, stored, before)
        return obj

    def _tell(
        self, type_: str, resource: Resource, after: StoredObject, before: StoredObject | None
    ) -> None:
        change = Change(
            type_,
            resource,
            after.object,
            None if before is None else before.object,
            after.version,
            after,
            before,
        )
        self.log(resource).append(change)
        if self._journal is None:
            self.durable_version = self.version
        else:
            body = None if type_ == DELETED else after.body
            meta = after.object["metadata"]
            namespace, name = meta.get("namespace", ""), meta["name"]
            self._journal.write(
                JournalRow(self.version, resource.storage_key, namespace, name, body)
            )
        for subscriber in tuple(self._subscribers):
            subscriber(change)
        if self._journal is None:
            self._announce()

    def _settle(self, version: int, failure: Exception | None) -> None:
        if failure is not None:
            self.failure = UnavailableError(f"the journal cannot be written: {failure}")
        self.durable_version = max(version, self.durable_version)
        still_waiting = []
        for wanted, future in self._waiting:
            if future.done():
                continue
            if self.failure is not None:
                future.set_exception(self.failure)
            elif wanted <= self.durable_version:
                future.set_result(None)
            else:
                still_waiting.append((wanted, future))
        self._waiting = still_waiting
        self._announce()

    def _announce(self) -> None:
        for callback in tuple(self._on_durable):
            callback()


def _by_place(item: tuple[ObjectKey, StoredObject]) -> ObjectKey:
    return item[0]


def _at_version(obj: Object, version: int) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}


def _check_version(resource: Resource, before: StoredObject, expected: str | int | None) -> None:
    if expected is not None and str(expected) != str(before.version):
        raise status_errors.modified(resource, before.object["metadata"]["name"])


def _same(new: Object, old: Object) -> bool:
    """Whether nothing differs but the version."""
    if new is old:
        return True
    if new.keys() != old.keys() or any(new[k] != old[k] for k in new if k != "metadata"):
        return False
    return _telling(new["metadata"]) == _telling(old["metadata"])


def _telling(meta: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in meta.items() if k != "resourceVersion"}


def _undo(shelf: dict[ObjectKey, StoredObject], change: Change) -> None:
    meta = change.object["metadata"]
    place = (meta.get("namespace", ""), meta["name"])
    if change.stored_before is None:
        del shelf[place]
    else:
        shelf[place] = change.stored_before
