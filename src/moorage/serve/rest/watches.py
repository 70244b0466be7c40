"""Watches: every durable change once, in order, from a version on.

Each watch has its own position in the change log of the resource. A client that is slower than
the log gets an Expired error and lists again; a slow client uses no memory here.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from aiohttp import web

from moorage.cluster.resources import Resource
from moorage.cluster.status_errors import ExpiredError, StatusError
from moorage.cluster.store import (
    ADDED,
    DELETED,
    MODIFIED,
    Change,
    ObjectKey,
    ResourceChangeLog,
    Store,
    StoredObject,
    encode,
)
from moorage.serve.protobuf import envelope
from moorage.serve.rest import negotiation, responses
from moorage.serve.rest.lists import ObjectSelector
from moorage.serve.rest.requests import ListOptions

BOOKMARK, ERROR = "BOOKMARK", "ERROR"
INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}
BOOKMARK_SECONDS = 60.0
BATCH_SECONDS = 0.01
CONNECTION_CHECK_SECONDS = 10.0
# Changes and bytes per write: few enough to let other requests in, and for a client that does not
# read to take little memory.
_MAX_BATCH, _MAX_BATCH_BYTES = 256, 1024 * 1024
# Changes that are compared with a selector, or a namespace, before others are let in.
_MAX_SCANNED = 1024

Render = Callable[[StoredObject], bytes]
"""Encodes an object in the format of the client: plain, as a Table, as metadata only."""


class WatchRequest(NamedTuple):
    """The resource, selector and options of a watch."""

    resource: Resource
    namespace: str | None
    selector: ObjectSelector
    options: ListOptions
    timeout_seconds: float
    render: Render
    encoding: str = negotiation.JSON

    def frame(self, type_: str, body: bytes) -> bytes:
        """An event with an encoded object."""
        if self.encoding == negotiation.PROTOBUF:
            return envelope.watch_frame(type_, body)
        return b'{"type":"%b","object":%b}\n' % (type_.encode(), body)

    def error(self, error: StatusError) -> bytes:
        """The last event of a watch that fails."""
        return self.frame(ERROR, responses.encoded(error.to_status(), self.encoding)[0])

    @property
    def media_type(self) -> str:
        is_json = self.encoding == negotiation.JSON
        return self.encoding if is_json else f"{self.encoding};stream=watch"


class Watches:
    """All watches of a server."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # The watches of each log: a change of pods does not wake those of another kind. They are
        # woken in the order in which they began, so that a simulation can be repeated.
        self._woken: dict[ResourceChangeLog, dict[asyncio.Event, None]] = {}
        self._woken_for = store.durable_version
        self._unsubscribe = store.on_durable(self._wake)
        self._closing = False

    def close(self) -> None:
        """End all watches, before the server stops."""
        self._closing = True
        self._unsubscribe()
        for waiting in self._woken.values():
            for woken in waiting:
                woken.set()

    def _wake(self) -> None:
        before, self._woken_for = self._woken_for, self._store.durable_version
        for log, waiting in self._woken.items():
            if log.newest > before:
                for woken in waiting:
                    woken.set()

    async def stream(self, request: web.Request, watch: WatchRequest) -> web.StreamResponse:
        """Stream the changes of a watch until it ends."""

        def is_connected() -> bool:
            return request.transport is not None and not request.transport.is_closing()

        await self._store.wait_until_readable()
        response = web.StreamResponse(headers={"Content-Type": watch.media_type})
        response.enable_chunked_encoding()
        await response.prepare(request)
        try:
            async with contextlib.aclosing(self.chunks(watch, is_connected)) as chunks:
                async for chunk in chunks:
                    await response.write(chunk)
            await response.write_eof()
        except ConnectionError:
            pass  # The client closed the connection.
        return response

    async def chunks(
        self, watch: WatchRequest, is_connected: Callable[[], bool]
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a watch, many at a time, until it ends."""
        clock, store = asyncio.get_running_loop().time, self._store
        woken = asyncio.Event()
        log = store.log(watch.resource)
        self._woken.setdefault(log, {})[woken] = None
        try:
            initial, position = _initial_lines(store, watch)
            for chunk in _joined(initial):
                yield chunk
                await asyncio.sleep(0)
            ends_at = clock() + watch.timeout_seconds
            bookmark_at = clock() + BOOKMARK_SECONDS
            last = None  # the version at the end, which changes without a pause do not delay
            while not self._closing:
                woken.clear()
                batch = _Batch()
                if last is None and clock() >= ends_at:
                    last = store.durable_version
                durable = store.durable_version if last is None else last
                start = position
                while not batch.is_full and (change := log.at(position)) is not None:
                    if change.version > durable or position - start == _MAX_SCANNED:
                        break
                    position += 1
                    if line := _change_line(watch, change):
                        batch.add(line)
                is_behind = batch.is_full or position - start == _MAX_SCANNED
                if batch.lines:
                    yield b"".join(batch.lines)
                now = clock()
                if watch.options.bookmarks and now >= bookmark_at and not is_behind:
                    yield _bookmark(watch, durable)
                    bookmark_at = now + BOOKMARK_SECONDS
                if position > start:
                    # Changes often come in bursts: wait a little to send them in one write.
                    await asyncio.sleep(0 if is_behind else BATCH_SECONDS)
                    continue
                if now >= ends_at or not is_connected():
                    return
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(ends_at - now, CONNECTION_CHECK_SECONDS)):
                        await woken.wait()
        except ExpiredError as error:  # The version is too old, or the client is too slow.
            yield watch.error(error)
        finally:
            waiting = self._woken[log]
            del waiting[woken]
            if not waiting:
                del self._woken[log]


class _Batch:
    """The lines of one write."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self._bytes = 0

    def add(self, line: bytes) -> None:
        self.lines.append(line)
        self._bytes += len(line)

    @property
    def is_full(self) -> bool:
        return len(self.lines) >= _MAX_BATCH or self._bytes >= _MAX_BATCH_BYTES


def _joined(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines in batches."""
    batch = _Batch()
    for line in lines:
        batch.add(line)
        if batch.is_full:
            yield b"".join(batch.lines)
            batch = _Batch()
    if batch.lines:
        yield b"".join(batch.lines)


def _initial_lines(store: Store, watch: WatchRequest) -> tuple[Iterator[bytes], int]:
    """The lines to send at once, and the log position after them; raises ExpiredError."""
    log, durable = store.log(watch.resource), store.durable_version
    version = watch.options.version or 0
    if version > durable:
        # An API server waits for the version. Here it is one of a server before a restart, and a
        # client that gets this answer lists again.
        raise ExpiredError(f"Too large resource version: {version}, current: {durable}")
    if version and not watch.options.initial_events:
        return iter(()), log.position_after(version)
    found = store.snapshot(watch.resource, watch.namespace, durable)
    return _snapshot_lines(watch, found, durable), log.position_after(durable)


def _snapshot_lines(
    watch: WatchRequest, found: Sequence[tuple[ObjectKey, StoredObject]], version: int
) -> Iterator[bytes]:
    for _, stored in found:
        if watch.selector.matches(stored.object):
            yield watch.frame(ADDED, watch.render(stored))
    if watch.options.initial_events:
        yield _bookmark(watch, version, INITIAL_EVENTS_END)


def _change_line(watch: WatchRequest, change: Change) -> bytes:
    """The line of one change, if any; an object may start or stop to match the selector."""
    meta = change.object["metadata"]
    if watch.namespace is not None and meta.get("namespace") != watch.namespace:
        return b""
    if watch.selector.selects_all:
        return watch.frame(change.type, watch.render(change.stored))
    matched = change.before is not None and watch.selector.matches(change.before)
    if change.type == DELETED:
        return watch.frame(DELETED, watch.render(change.stored)) if matched else b""
    if watch.selector.matches(change.object):
        return watch.frame(MODIFIED if matched else ADDED, watch.render(change.stored))
    if not matched:
        return b""
    assert change.before is not None
    last = {**change.before, "metadata": {**change.before["metadata"]}}
    last["metadata"]["resourceVersion"] = meta["resourceVersion"]
    return watch.frame(DELETED, watch.render(StoredObject(last, encode(last), change.version)))


def _bookmark(
    watch: WatchRequest, version: int, annotations: dict[str, str] | None = None
) -> bytes:
    resource = watch.resource
    meta: dict[str, Any] = {"resourceVersion": str(version), "creationTimestamp": None}
    if annotations:
        meta["annotations"] = annotations
    obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
    return watch.frame(BOOKMARK, watch.render(StoredObject(obj, encode(obj), version)))
