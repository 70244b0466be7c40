"""EventRecorder: the Events that operators read (events.k8s.io/v1); nobody waits for them.

The same Event about the same pod is one object: the second time makes it a series of two, later
times are counted here and written when the series falls silent, or every half hour; if the object
is gone by then, it is made anew. What comes faster than it can be written is dropped: a scheduler
schedules, and tells only on the side.
"""

import asyncio
import random
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from moorage.framework.effects import EmitEvent
from moorage.live import logs, paths
from moorage.live.client import STRATEGIC_MERGE_PATCH, Client
from moorage.live.refusals import ApiError, Refused

# A burst of bindings takes most of an API server's time; their Events are written behind it.
ROOM = 10_000
MOST_SERIES = 4096
WRITERS = 8
TRIES = 12
RETRY_SECONDS = 10.0
SILENCE_SECONDS = 6 * 60.0
REFRESH_SECONDS = 30 * 60.0
TIDY_SECONDS = 60.0
# The API server takes no longer ones.
LONGEST_NAME = 253
LONGEST_INSTANCE = 128
NOT_FOUND = 404

Key = tuple[str, ...]


@dataclass(slots=True)
class _Series:
    """One Event that is kept in mind, because it may happen again."""

    event: EmitEvent
    name: str
    began_at: float
    last_at: float
    written_at: float
    count: int = 1
    written_count: int = 1


@dataclass(slots=True)
class _Write:
    method: str
    path: str
    body: bytes
    anew: dict[str, Any] | None = None  # What to create if there is nothing to patch.


class EventRecorder:
    """See the module."""

    def __init__(
        self,
        client: Client,
        host: str,
        *,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.dropped = 0
        self._client = client
        self._host = host
        self._clock = wall_clock
        self._log = logs.named("events")
        self._random = random.Random()
        self._writes: asyncio.Queue[_Write] = asyncio.Queue(ROOM)
        # A plain dict takes ever longer to find its first, the more of them are gone.
        self._series: OrderedDict[Key, _Series] = OrderedDict()

    def emit(self, event: EmitEvent) -> None:
        """Write an Event, or count it to those that are there."""
        now = self._clock()
        # kube-scheduler tells Events apart by the pod's version, which changes with the message.
        key = (event.pod.uid, event.reporter, event.type, event.reason, event.action, event.note)
        series = self._series.get(key)
        if series is not None and now - series.last_at < SILENCE_SECONDS:
            series.count += 1
            series.last_at = now
            if series.count == 2:
                self._write_series(series, now)
            return
        name = _name(event.pod.name)
        self._series.pop(key, None)
        self._series[key] = _Series(event, name, now, now, now)
        if len(self._series) > MOST_SERIES:
            self._end(next(iter(self._series)), now)
        self._put("POST", _all(event.pod.namespace), _document(event, name, self._host, now))

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tidy())
            for _ in range(WRITERS):
                group.create_task(self._write())

    async def flushed(self) -> None:
        """Wait until everything is written."""
        await self._writes.join()

    def _put(
        self,
        method: str,
        path: str,
        document: dict[str, Any],
        anew: dict[str, Any] | None = None,
    ) -> None:
        try:
            self._writes.put_nowait(_Write(method, path, msgspec.json.encode(document), anew))
        except asyncio.QueueFull:
            self.dropped += 1

    async def _write(self) -> None:
        while True:
            write = await self._writes.get()
            try:
                await self._send(write)
            finally:
                self._writes.task_done()

    async def _send(self, write: _Write) -> None:
        is_patch = write.method == "PATCH"
        content_type = STRATEGIC_MERGE_PATCH if is_patch else "application/json"
        for attempt in range(1, TRIES + 1):
            try:
                await self._client.request(
                    write.method, write.path, write.body, content_type=content_type
                )
                return
            except Refused as refused:
                if refused.code == NOT_FOUND and write.anew is not None:
                    await self._send(_created(write.anew))
                    return
                if not refused.is_passing:
                    self._log.verbose(1, "Event refused", why=str(refused))
                    return
            except ApiError as error:
                if attempt == TRIES:
                    self._log.warning("Event given up", why=str(error))
                    return
            await asyncio.sleep(RETRY_SECONDS * self._random.uniform(1.0, 1.25))

    async def _tidy(self) -> None:
        reported = 0
        while True:
            await asyncio.sleep(TIDY_SECONDS)
            self.tidy()
            if self.dropped > reported:
                self._log.warning("Events dropped", count=self.dropped - reported)
                reported = self.dropped

    def tidy(self) -> None:
        """Write series that last, end those that have fallen silent."""
        now = self._clock()
        for key, series in list(self._series.items()):
            is_silent = now - series.last_at >= SILENCE_SECONDS
            if is_silent:
                self._end(key, now)
            elif now - series.written_at >= REFRESH_SECONDS:
                self._write_series(series, now)

    def _end(self, key: Key, now: float) -> None:
        series = self._series.pop(key)
        if series.count > series.written_count:
            self._write_series(series, now)

    def _write_series(self, series: _Series, now: float) -> None:
        series.written_count, series.written_at = series.count, now
        patch = {"series": {"count": series.count, "lastObservedTime": _micro(series.last_at)}}
        anew = _document(series.event, series.name, self._host, series.began_at) | patch
        self._put("PATCH", _path(series.event.pod.namespace, series.name), patch, anew)


def _created(document: dict[str, Any]) -> _Write:
    path = _path(document["metadata"]["namespace"])
    return _Write("POST", path, msgspec.json.encode(document))


def _name(pod: str) -> str:
    """A name of its own for an Event about a pod; what is cut off may not end in a dot or dash."""
    moment = f"{time.time_ns():x}"
    room = LONGEST_NAME - len(moment) - 1
    return f"{pod if len(pod) <= room else pod[:room].rstrip('.-')}.{moment}"


@lru_cache(maxsize=64)
def _all(namespace: str) -> str:
    return _path(namespace)


def _path(namespace: str, *name: str) -> str:
    return paths.namespaced("/apis/events.k8s.io/v1", namespace, "events", *name)


def _document(event: EmitEvent, name: str, host: str, now: float) -> dict[str, Any]:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": event.pod.namespace},
        "eventTime": _micro(now),
        "reportingController": event.reporter,
        "reportingInstance": f"{event.reporter}-{host}"[:LONGEST_INSTANCE],
        "action": event.action,
        "reason": event.reason,
        "regarding": {
            "kind": "Pod",
            "apiVersion": "v1",
            "namespace": event.pod.namespace,
            "name": event.pod.name,
            "uid": event.pod.uid,
        },
        "note": event.note,
        "type": event.type,
    }


def _micro(moment: float) -> str:
    seconds, micros = divmod(round(moment * 1e6), 1_000_000)
    return f"{_second(seconds)}.{micros:06}Z"


@lru_cache(maxsize=8)
def _second(moment: int) -> str:
    # Hundreds of Events share one, and writing it down takes longer than all else about them.
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S")
