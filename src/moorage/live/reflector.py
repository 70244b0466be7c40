"""Reflector: list and watch one kind, turn it into observations, recover from network failures.

    state      action                                    next state
    LISTING    list all pages, queue the differences     WATCHING
    WATCHING   queue each event                          WATCHING from the last resourceVersion, if
                                                         the connection ends or breaks; LISTING, if
                                                         that version has expired (410) or an event
                                                         cannot be decoded

A reflector keeps the last version of each object, so a new list becomes the few differences to what
is known, including deletions whose events were missed. (One `Listed` would be equivalent, but the
core handles it in one call, and with very many pods that blocks the event loop for too long.)
Heartbeats of nodes, the updates that change nothing that is read, are not queued.

An API server whose storage was restored from a backup goes back to earlier versions, and a watch
from a later one waits without an error. So the version is looked up when a watch is silent. A list
overrules what is known, also with earlier versions: a deletion without a version lets the core
accept an older object.
"""

import asyncio
import math
from collections import deque
from collections.abc import Iterable, Iterator

from msgspec import structs

from moorage.api.kinds import Kind
from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.core.observations import Added, Deleted, Observation, Updated
from moorage.live import api_errors, kinds, listing, logs, paths, wire
from moorage.live.api_errors import ApiError, ApiStatusError
from moorage.live.client import Client

# A watch ends by itself after a random time in this range, so that new watches are spread out.
WATCH_SECONDS = (300, 600)
GRACE_SECONDS = 15.0
# A watch that ends sooner than this counts as failed: back off before the next one.
SHORT_SECONDS = 1.0
FIRST_WAIT_SECONDS = 0.4
# client-go waits up to 30 s, to protect an API server with thousands of clients. Schedulers are
# few, and while one waits here it sees no changes: pods would wait although the server is back.
LONGEST_WAIT_SECONDS = 5.0
# Single broken connections are normal; this many in a row are logged as a warning.
LOUD_FAILURES = 3
UNSERVED_WAIT_SECONDS = 60.0
# API servers send a bookmark about once a minute.
SILENT_SECONDS = 90.0
# An API server that starts answers 403 to everything until it has read the roles.
FORBIDDEN_SECONDS = 10.0

# Part of the message for a version in the future.
TOO_LARGE = "Too large resource version"

Change = type[Added | Updated | Deleted]
OBSERVATIONS: dict[str, Change] = {"ADDED": Added, "MODIFIED": Updated, "DELETED": Deleted}


class ObservationQueue:
    """Observations that reflectors have read and the core has not handled yet, in order."""

    def __init__(self, wake: asyncio.Event | None = None) -> None:
        self.wake = wake or asyncio.Event()  # Set when there is an observation to handle.
        self.put_count = 0
        self.taken_count = 0
        self._waiting: deque[Observation] = deque()

    def put(self, observations: Iterable[Observation]) -> None:
        """Append observations."""
        before = len(self._waiting)
        self._waiting.extend(observations)
        self.put_count += len(self._waiting) - before
        self.wake.set()

    def take(self) -> Observation | None:
        """Remove and return the oldest observation, or None."""
        if not self._waiting:
            return None
        self.taken_count += 1
        return self._waiting.popleft()


class Reflector:
    """Keeps the core up to date about one kind."""

    def __init__(
        self,
        client: Client,
        kind: Kind,
        queue: ObservationQueue,
        *,
        needed_by: tuple[str, ...] = (),
    ) -> None:
        self.kind = kind
        self.is_synced = False  # Whether at least one list was queued.
        self.unserved = ""  # Why the cluster does not serve the kind; empty if it does.
        self.listed_at = -math.inf  # When the last list began.
        self._client = client
        self._queue = queue
        self._needed_by = needed_by
        self._clock = client.clock.monotonic
        self._log = logs.named("reflector").bound(kind=kind.name)
        self._random = client.random
        self._known: dict[str, KubeObject] = {}
        self._version = ""  # The resourceVersion of the last list or event; empty: list next.
        self._newest = ""  # The latest since the last list; it stays when a list is needed.
        self._heard_at = -math.inf  # When the watch last sent something.
        self._failures = 0
        self._forbidden_since = math.inf
        self._step: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()  # Listed, or known to be unserved.

    async def settled(self) -> None:
        """Wait until everything is listed, or the cluster is known not to serve the kind."""
        await self._settled.wait()

    async def refresh(self) -> None:
        """List again now, and wait for it."""
        self._version = ""
        self._settled.clear()
        if self._step is not None:
            self._step.cancel()
        await self._settled.wait()

    def keys(self) -> Iterable[str]:
        """The known objects by namespace and name."""
        return self._known.keys()

    def objects(self) -> list[KubeObject]:
        """The known objects."""
        return list(self._known.values())

    def __len__(self) -> int:
        return len(self._known)

    async def run(self) -> None:
        """List and watch until cancelled."""
        try:
            while True:
                self._step = asyncio.create_task(self._list_or_watch())
                await asyncio.wait({self._step})
                if not self._step.cancelled():  # `refresh` cancels it.
                    self._step.result()
        finally:
            if self._step is not None:
                self._step.cancel()

    async def _list_or_watch(self) -> None:
        """One list or one watch, and the wait after it."""
        wait_seconds = 0.0
        try:
            await (self._watch() if self._version else self._list())
        except ApiStatusError as error:
            wait_seconds = self._handle_status(error)
        except wire.UnreadableError as error:
            self._log.warning("listing anew", why=str(error))
            self._version = ""
            wait_seconds = self._back_off()
        except ApiError as error:
            wait_seconds = self._back_off()
            values = {"why": str(error), "seconds": round(wait_seconds, 2)}
            if self._failures < LOUD_FAILURES or self.kind.name not in kinds.INDISPENSABLE:
                self._log.verbose(1, "trying again", **values)
            else:
                self._log.warning("the API server cannot be reached; trying again", **values)
        if wait_seconds:
            await asyncio.sleep(wait_seconds)

    def _handle_status(self, error: ApiStatusError) -> float:
        """Decide what follows an error status; returns the seconds to wait."""
        if error.code == api_errors.GONE or TOO_LARGE in str(error):
            self._log.verbose(1, "listing anew", why=str(error))
            self._version = ""
            if self._failures:
                return self._back_off()
            self._failures = 1  # List at once, but only the first time.
            return 0.0
        if not self._version and self._is_unserved(error):
            if not self.unserved:
                self._log.warning(
                    "the cluster does not serve this kind; going on without it",
                    why=str(error),
                    needed_by=", ".join(self._needed_by) or "no plugin",
                )
            self.unserved = str(error)
            self._settled.set()
            return UNSERVED_WAIT_SECONDS * self._random.uniform(0.8, 1.2)
        wait_seconds = self._back_off()
        self._log.warning("trying again", why=str(error), seconds=round(wait_seconds, 2))
        return max(wait_seconds, error.retry_after_seconds or 0.0)

    def _is_unserved(self, error: ApiStatusError) -> bool:
        """Whether to continue without the kind: it does not exist, or has long been forbidden."""
        if self.kind.name in kinds.INDISPENSABLE:
            return False
        if error.code != api_errors.FORBIDDEN:
            return error.code == api_errors.NOT_FOUND
        self._forbidden_since = min(self._forbidden_since, self._clock())
        return self._clock() - self._forbidden_since >= FORBIDDEN_SECONDS

    def _back_off(self) -> float:
        longest = min(FIRST_WAIT_SECONDS * 2.0**self._failures, LONGEST_WAIT_SECONDS)
        self._failures = min(self._failures + 1, 16)
        return self._random.uniform(longest / 2, longest)

    # List

    async def _list(self) -> None:
        began = self._clock()
        objects, version = await listing.list_all(self._client, self.kind, self._log)
        if is_earlier := _is_before(version, self._newest):
            self._log.warning(
                "the API server went back to an earlier version; what it lists now counts",
                version=version,
                known=self._newest,
            )
        self._queue.put(self._differences(objects, is_earlier=is_earlier))
        self._version = self._newest = version
        self._log.verbose(2, "listed", objects=len(objects), version=version)
        self.listed_at = began
        self.unserved = ""
        self._forbidden_since = math.inf
        self.is_synced = True
        self._settled.set()

    def _differences(self, objects: list[KubeObject], *, is_earlier: bool) -> Iterator[Observation]:
        """What a list changes; deletions first, because they free resources.

        The core drops what is older than what it knows or knew. So before such an object there is a
        deletion without a version, and in an earlier list all deletions are of that kind, because
        the watch from there on may show the same versions again.
        """
        listed = {obj.key: obj for obj in objects}
        before, self._known = self._known, listed
        for key, obj in before.items():
            if key not in listed:
                yield Deleted(_without_version(obj) if is_earlier else obj)
        for key, obj in listed.items():
            old = before.get(key)
            # After a restore, versions are used a second time.
            if old is not None and (old == obj if is_earlier else _is_same_version(old, obj)):
                continue
            # An object that is not known, but not new either, was deleted before the restore.
            known = self._newest if old is None else old.metadata.resource_version
            if is_earlier or _is_before(obj.metadata.resource_version, known):
                if old is not None and old.uid != obj.uid:
                    yield Deleted(_without_version(old))
                yield Deleted(_without_version(obj))
                yield Added(obj)
            else:
                yield Added(obj) if old is None else Updated(obj)

    # Watch

    async def _watch(self) -> None:
        self._heard_at = self._clock()
        checking = asyncio.create_task(self._check_silence())
        try:
            await self._read_watch()
        finally:
            checking.cancel()

    async def _check_silence(self) -> None:
        """List again if the watch is silent because its version is in the future."""
        while True:
            await asyncio.sleep(max(self._heard_at + SILENT_SECONDS - self._clock(), 0.001))
            if self._clock() < self._heard_at + SILENT_SECONDS:
                continue
            self._heard_at = self._clock()
            try:
                version = await listing.current_version(self._client, self.kind)
            except (ApiError, wire.UnreadableError):
                continue  # The watch has the same problem, and handles it.
            if _is_before(version, self._version) and self._step is not None:
                self._version = ""
                self._step.cancel()

    async def _read_watch(self) -> None:
        seconds = self._random.randint(*WATCH_SECONDS)
        path = paths.query(
            paths.of_kind(self.kind),
            watch="true",
            allowWatchBookmarks="true",
            fieldSelector=listing.field_selector(self.kind),
            resourceVersion=self._version,
            timeoutSeconds=seconds,
        )
        began = self._clock()
        try:
            async with self._client.stream(path, seconds=seconds + GRACE_SECONDS) as stream:
                rest = b""
                while chunk := await stream.readany():
                    *lines, rest = (rest + chunk).split(b"\n")
                    if lines:
                        self._heard_at = self._clock()
                        if found := self._decode(lines):
                            self._queue.put(found)
                        self._failures = 0
                if rest.strip():
                    self._log.verbose(1, "the watch ended within a line")
        finally:
            lasted = self._clock() - began
        if lasted >= SHORT_SECONDS:
            self._failures = 0
        else:
            await asyncio.sleep(self._back_off())

    def _decode(self, lines: list[bytes]) -> list[Observation]:
        """The observations of some watch events; those before an error are queued as well."""
        found: list[Observation] = []
        try:
            for line in lines:
                if line:
                    self._decode_event(line, found)
        except (ApiStatusError, wire.UnreadableError):
            self._queue.put(found)
            if found:  # The watch made progress, so the back-off starts again.
                self._failures = 0
            raise
        return found

    def _decode_event(self, line: bytes, found: list[Observation]) -> None:
        event, obj, bookmark = wire.decode_event(line, self.kind, self._log)
        if event == "BOOKMARK":
            if _is_before(bookmark, self._version):
                raise wire.UnreadableError(f"a bookmark has the earlier version {bookmark}")
            self._advance(bookmark)
        elif obj is not None:
            if event not in OBSERVATIONS:
                raise wire.UnreadableError(f"the watch sent an event of type {event!r}")
            self._advance(obj.metadata.resource_version)
            if event == "DELETED":
                self._known.pop(obj.key, None)
            elif isinstance(obj, Node) and (old := self._unchanged(obj)) is not None:
                self._known[obj.key] = old
                return
            else:
                self._known[obj.key] = obj
            found.append(OBSERVATIONS[event](obj))

    def _unchanged(self, node: Node) -> KubeObject | None:
        """The known node with the version of this one, if nothing else is different."""
        old = self._known.get(node.key)
        if not isinstance(old, Node) or old.spec != node.spec or old.status != node.status:
            return None
        version = node.metadata.resource_version
        meta = structs.replace(old.metadata, resource_version=version)
        return structs.replace(old, metadata=meta) if meta == node.metadata else None

    def _advance(self, version: str) -> None:
        """Take the version of an event; a watch that repeats events shows earlier ones."""
        self._version = version or self._version
        if not _is_before(self._version, self._newest):
            self._newest = self._version


def _without_version(obj: KubeObject) -> KubeObject:
    return structs.replace(obj, metadata=structs.replace(obj.metadata, resource_version=""))


def _is_before(version: str, known: str) -> bool:
    """Whether a version is earlier than a known one; those that are no numbers do not tell."""
    return version.isdecimal() and known.isdecimal() and int(version) < int(known)


def _is_same_version(old: KubeObject, new: KubeObject) -> bool:
    version = new.metadata.resource_version
    return bool(version) and version == old.metadata.resource_version and old.uid == new.uid
