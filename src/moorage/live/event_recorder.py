"""EventRecorder: write Events (events.k8s.io/v1) in the background.

Equal Events about one pod are one object. The second occurrence makes it a series of two; later
ones are counted here and written when the series ends (no occurrence for six minutes) or every half
hour. If the object is deleted by then, it is created again. Events that arrive faster than they can
be written are dropped: scheduling has precedence. While pods wait to be scheduled, few are written.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from moorage.api.server_requests import EmitEvent
from moorage.live import api_errors, logs, paths
from moorage.live.api_errors import ApiError, ApiStatusError
from moorage.live.client import JSON, STRATEGIC_MERGE_PATCH, Client

# A burst of bindings keeps an API server busy; their Events are written after it.
MAX_WRITES = 20_000
MAX_SERIES = 4096
WRITERS = 8
BUSY_PAUSE_SECONDS = 0.1  # Of each writer.
TRIES = 12
RETRY_SECONDS = 10.0
SILENCE_SECONDS = 6 * 60.0
REFRESH_SECONDS = 30 * 60.0
CLEANUP_SECONDS = 60.0
# The API server's limits.
MAX_NAME_LENGTH = 253
MAX_INSTANCE_LENGTH = 128

Key = tuple[str, ...]


@dataclass(slots=True)
class _Series:
    """One Event that may occur again."""

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
    document: dict[str, Any]
    fallback: dict[str, Any] | None = None  # The object to create if there is none to patch.


class EventRecorder:
    """See the module."""

    def __init__(
        self,
        client: Client,
        host: str,
        *,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self.dropped = 0
        self.outstanding = 0  # Waiting or being written.
        self.given_up = 0
        self._reported = 0
        self._client = client
        self._host = host
        self._clock = client.clock.wall
        self._is_busy = is_busy
        self._log = logs.named("events")
        self._random = client.random
        self._writes: asyncio.Queue[_Write] = asyncio.Queue(MAX_WRITES)
        # In a plain dict, finding the first key takes the longer the more keys were deleted.
        self._series: OrderedDict[Key, _Series] = OrderedDict()

    def emit(self, event: EmitEvent) -> None:
        """Write an Event, or count it in its series."""
        now = self._clock()
        # kube-scheduler's key has the pod's resourceVersion, which changes with the message.
        key = (event.pod.uid, event.reporter, event.type, event.reason, event.action, event.note)
        series = self._series.get(key)
        if series is not None and now - series.last_at < SILENCE_SECONDS:
            series.count += 1
            series.last_at = now
            if series.count == 2:
                self._write_series(series, now)
            return
        name = _name(event.pod.name, now)
        self._series.pop(key, None)
        self._series[key] = _Series(event, name, now, now, now)
        if len(self._series) > MAX_SERIES:
            self._end(next(iter(self._series)), now)
        document = _document(event, name, self._host, now)
        self._put(_Write("POST", _collection_path(event.pod.namespace), document))

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._clean_up_regularly())
            for _ in range(WRITERS):
                group.create_task(self._write())

    async def flushed(self) -> None:
        """Wait until everything is written."""
        await self._writes.join()

    def _put(self, write: _Write) -> None:
        try:
            self._writes.put_nowait(write)
            self.outstanding += 1
        except asyncio.QueueFull:
            self.dropped += 1

    async def _write(self) -> None:
        while True:
            write = await self._writes.get()
            if self._is_busy():
                await asyncio.sleep(BUSY_PAUSE_SECONDS)
            try:
                await self._send(write)
            finally:
                self.outstanding -= 1
                self._writes.task_done()

    async def _send(self, write: _Write) -> None:
        body = msgspec.json.encode(write.document)
        kind = STRATEGIC_MERGE_PATCH if write.method == "PATCH" else JSON
        for attempt in range(1, TRIES + 1):
            try:
                await self._client.request(write.method, write.path, body, content_type=kind)
                return
            except ApiStatusError as error:
                if error.code == api_errors.NOT_FOUND and (document := write.fallback) is not None:
                    path = _path(document["metadata"]["namespace"])
                    await self._send(_Write("POST", path, document))
                    return
                if not error.is_transient:
                    self._log.verbose(1, "Event refused", why=str(error))
                    return
            except ApiError as error:
                if attempt == TRIES:
                    self.given_up += 1
                    self._log.warning("Event given up", why=str(error))
                    return
            await asyncio.sleep(RETRY_SECONDS * self._random.uniform(1.0, 1.25))

    async def _clean_up_regularly(self) -> None:
        while True:
            await asyncio.sleep(CLEANUP_SECONDS)
            self.clean_up()
            self.report_dropped()

    def report_dropped(self) -> None:
        """Log how many Events were dropped since the last time."""
        if self.dropped > self._reported:
            self._log.warning("Events dropped", count=self.dropped - self._reported)
            self._reported = self.dropped

    def clean_up(self) -> None:
        """End the series without a recent occurrence, and write long ones."""
        now = self._clock()
        for key, series in list(self._series.items()):
            if now - series.last_at >= SILENCE_SECONDS:
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
        full = _document(series.event, series.name, self._host, series.began_at) | patch
        path = _path(series.event.pod.namespace, series.name)
        self._put(_Write("PATCH", path, patch, fallback=full))


def _name(pod: str, now: float) -> str:
    """A unique name for an Event about a pod; a shortened name must not end in a dot or dash."""
    suffix = f"{round(now * 1e9):x}"
    length = MAX_NAME_LENGTH - len(suffix) - 1
    return f"{pod if len(pod) <= length else pod[:length].rstrip('.-')}.{suffix}"


@lru_cache(maxsize=64)
def _collection_path(namespace: str) -> str:
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
        "reportingInstance": f"{event.reporter}-{host}"[:MAX_INSTANCE_LENGTH],
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
    # Hundreds of Events share a second, and formatting it is the slowest part of an Event.
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S")
