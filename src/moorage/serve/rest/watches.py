"""Watches: every change once, in order, from a version on, until the client has enough.

A watch reads the resource's log from a position of its own, as far as changes are durable. A
client that is too slow for the log is told so, and lists again; it never holds memory here.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from aiohttp import web

from moorage.serve.resources import Resource
from moorage.serve.rest.lists import ObjectSelector
from moorage.serve.status_errors import ExpiredError
from moorage.serve.store import ADDED, DELETED, MODIFIED, Change, Store, StoredObject, encode

BOOKMARK, ERROR = "BOOKMARK", "ERROR"
INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}
BOOKMARK_SECONDS = 60.0
CROWD_SECONDS = 0.002
LOOK_AGAIN_SECONDS = 10.0  # whether the client is still there
_BATCH = 256  # changes per write: large enough to be cheap, small enough to let others in

Render = Callable[[StoredObject], bytes]
"""How an object looks to this client: as it is, as a Table, as metadata alone."""


class WatchRequest(NamedTuple):
    """What somebody wants to hear of."""

    resource: Resource
    namespace: str | None
    choice: ObjectSelector
    version: int | None
    bookmarks: bool
    initial_events: bool
    timeout_seconds: float
    render: Render


class Watches:
    """All watches of a server."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._woken: set[asyncio.Event] = set()
        self._closing = False

    def close(self) -> None:
        """End them all: the server goes."""
        self._closing = True
        for woken in self._woken:
            woken.set()

    async def stream(self, request: web.Request, watch: WatchRequest) -> web.StreamResponse:
        """Answer a watch for as long as it lasts."""
        store = self._store
        await store.settled()
        position: int | None = None
        try:
            lines, position = _beginning(store, watch)
        except ExpiredError as error:
            lines = [_line(ERROR, encode(error.to_status()))]
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        woken = asyncio.Event()
        self._woken.add(woken)
        unsubscribe = store.on_durable(woken.set)
        try:
            if lines:
                await response.write(b"".join(lines))
            if position is not None:
                await self._follow(request, response, watch, position, woken)
            await response.write_eof()
        except ConnectionError:
            pass  # The client has enough.
        finally:
            unsubscribe()
            self._woken.discard(woken)
        return response

    async def _follow(
        self,
        request: web.Request,
        response: web.StreamResponse,
        watch: WatchRequest,
        position: int,
        woken: asyncio.Event,
    ) -> None:
        clock, store = asyncio.get_running_loop().time, self._store
        log = store.log(watch.resource)
        ends_at = clock() + watch.timeout_seconds
        bookmark_at = clock() + BOOKMARK_SECONDS
        while not self._closing:
            woken.clear()
            lines: list[bytes] = []
            upto = store.durable_version
            try:
                while len(lines) < _BATCH and (change := log.at(position)) is not None:
                    if change.version > upto:
                        break
                    position += 1
                    lines += _lines(watch, change)
            except ExpiredError as error:  # Too slow for the log.
                await response.write(_line(ERROR, encode(error.to_status())))
                return
            if lines:
                await response.write(b"".join(lines))
                # Changes often come in crowds: those of a moment share a write.
                await asyncio.sleep(0 if len(lines) >= _BATCH else CROWD_SECONDS)
                continue
            now = clock()
            if now >= ends_at or request.transport is None or request.transport.is_closing():
                return
            if watch.bookmarks and now >= bookmark_at:
                await response.write(_bookmark(watch, upto))
                bookmark_at = now + BOOKMARK_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(ends_at - now, LOOK_AGAIN_SECONDS)):
                    await woken.wait()


def _beginning(store: Store, watch: WatchRequest) -> tuple[list[bytes], int]:
    """What is sent at once, and the position in the log to go on from; raises ExpiredError."""
    log, upto = store.log(watch.resource), store.durable_version
    wanted = watch.version or 0
    if wanted > upto:
        raise ExpiredError(f"Too large resource version: {wanted}, current: {upto}")
    if wanted and not watch.initial_events:
        return [], log.position_after(wanted)
    lines = [
        _line(ADDED, watch.render(stored))
        for _, stored in store.snapshot(watch.resource, watch.namespace, upto)
        if watch.choice.matches(stored.object)
    ]
    if watch.initial_events:
        lines.append(_bookmark(watch, upto, INITIAL_EVENTS_END))
    return lines, log.position_after(upto)


def _lines(watch: WatchRequest, change: Change) -> Iterator[bytes]:
    """What one change looks like from here: objects come into view and leave it."""
    meta = change.object["metadata"]
    if watch.namespace is not None and meta.get("namespace") != watch.namespace:
        return
    if watch.choice.is_everything:
        yield _line(change.type, watch.render(change.stored))
        return
    seen = change.before is not None and watch.choice.matches(change.before)
    if change.type == DELETED:
        if seen:
            yield _line(DELETED, watch.render(change.stored))
    elif watch.choice.matches(change.object):
        yield _line(MODIFIED if seen else ADDED, watch.render(change.stored))
    elif seen:
        assert change.before is not None
        last = {**change.before, "metadata": {**change.before["metadata"]}}
        last["metadata"]["resourceVersion"] = meta["resourceVersion"]
        yield _line(DELETED, watch.render(StoredObject(last, encode(last), change.version)))


def _line(type_: str, body: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (type_.encode(), body)


def _bookmark(
    watch: WatchRequest, version: int, annotations: dict[str, str] | None = None
) -> bytes:
    resource = watch.resource
    meta: dict[str, Any] = {"resourceVersion": str(version), "creationTimestamp": None}
    if annotations:
        meta["annotations"] = annotations
    obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
    return _line(BOOKMARK, watch.render(StoredObject(obj, encode(obj), version)))
