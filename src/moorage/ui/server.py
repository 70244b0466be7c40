"""Routes of the web UI for an HTTP application: the page and its JSON API.

`mount` adds them. A `SnapshotSource` answers: of a fixed snapshot, or of a cluster that changes.
"""

import asyncio
import contextlib
import math
import multiprocessing
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
from aiohttp import web

from moorage.api.config import Source
from moorage.ui import history, worker
from moorage.ui.activity import Activity
from moorage.ui.snapshot import ClusterSnapshot
from moorage.ui.timeline import Timeline
from moorage.ui.worker import Bodies, UnanswerableRequest

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

STATIC = Path(__file__).parent / "static"
TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
# A new snapshot is taken after a change, but not before the last one is so old, and so many times
# the CPU time that it took to make: at most a twentieth of a core is used for snapshots.
MIN_AGE_SECONDS = 1.0
AGE_PER_BUILD_SECOND = 20.0
# How often a stream of events looks for a new version, and sends something in any case.
EVENT_SECONDS = 0.5
HEARTBEAT_SECONDS = 15.0
ACTIVITY_SECONDS = 1.0

# Parameters that are not changes of a what-if.
OTHER_PARAMETERS = ("resource", "group", "at")

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


class SnapshotSource(Protocol):
    """What the API asks."""

    activity: Activity | None

    async def answer(self, question: str, arguments: dict[str, Any], at: str = "") -> bytes:
        """The answer as JSON, of a recording at a time; raises UnanswerableRequest."""
        ...

    def available(self) -> int:
        """The version that an answer to a request made now would have, or a later one."""
        ...

    def close(self) -> None: ...


class FixedSource:
    """A snapshot of files; a thread answers one question after another."""

    activity: Activity | None = None

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._snapshot = snapshot
        self._pool = ThreadPoolExecutor(1)

    async def answer(self, question: str, arguments: dict[str, Any], at: str = "") -> bytes:
        return await asyncio.get_running_loop().run_in_executor(
            self._pool, worker.answer_about, self._snapshot, question, arguments
        )

    def available(self) -> int:
        return self._snapshot.version

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


class RecordedSource:
    """A recording; a thread answers one question after another."""

    activity: Activity | None = None

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._pool = ThreadPoolExecutor(1)

    async def answer(self, question: str, arguments: dict[str, Any], at: str = "") -> bytes:
        try:
            moment = float(at or 0)
        except ValueError:
            moment = math.nan
        if not moment >= 0:
            raise UnanswerableRequest(f"at: {at!r} is not a number of seconds")
        return await asyncio.get_running_loop().run_in_executor(
            self._pool, worker.answer_at, self._timeline, question, arguments, moment
        )

    def available(self) -> int:
        return 0

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


class StoredObjects(NamedTuple):
    """The objects of a cluster at a version."""

    version: int
    bodies: Bodies


class ChangingSource:
    """Snapshots of a cluster that changes, in a process of their own."""

    def __init__(
        self,
        version: Callable[[], int],
        read: Callable[[], Awaitable[StoredObjects]],
        config: Source,
        title: str,
        activity: Activity | None = None,
    ) -> None:
        self.activity = activity
        self._version = version
        self._read = read
        self._config = config
        self._title = title
        self._pool: ProcessPoolExecutor | None = None
        self._loading = asyncio.Lock()
        self._loaded_version = -1
        self._next_at = 0.0

    async def answer(self, question: str, arguments: dict[str, Any], at: str = "") -> bytes:
        if self.activity is not None:
            if question == "activity":
                return msgspec.json.encode(self.activity.document())
            if question == "history":
                return await self._history(self.activity, **arguments)
        async with self._loading:
            if self._is_old():
                await self._load()
        body: bytes = await self._call(worker.answer, question, arguments)
        return body

    async def _history(self, activity: Activity, key: str, node: str) -> bytes:
        """The facts about a node, or a pod; the snapshot knows its UID."""
        if node:
            return msgspec.json.encode({"lines": activity.facts_of_node(node)})
        uid = await self._call(worker.uid_of, key)
        facts = activity.facts(uid) if uid else []
        return msgspec.json.encode({"lines": history.lines(facts)})

    def available(self) -> int:
        return self._version() if self._is_old() else self._loaded_version

    def _is_old(self) -> bool:
        if self._loaded_version < 0:
            return True
        return self._version() != self._loaded_version and time.monotonic() >= self._next_at

    async def _load(self) -> None:
        found = await self._read()
        spent: float = await self._call(
            _load_timed, found.bodies, self._config, self._title, found.version
        )
        if self._loaded_version < 0:
            spent = 0.0  # Most of it was the start of the process.
        self._loaded_version = found.version
        self._next_at = time.monotonic() + max(MIN_AGE_SECONDS, AGE_PER_BUILD_SECOND * spent)

    async def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        if self._pool is None:  # Started by the first request: most servers get none.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, context, initializer=worker.begin)
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *args)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


def _load_timed(*arguments: Any) -> float:
    """Load a snapshot in the other process; returns the seconds of CPU time."""
    began = time.process_time()
    worker.load(*arguments)
    return time.process_time() - began


def mount(app: web.Application, source: SnapshotSource) -> None:
    """Add the routes of the UI; before any route that matches every path."""
    routes = _Routes(source)
    add = app.router.add_get
    add("/ui", routes.page)
    add("/ui/", routes.page)
    add("/ui/static/{name}", routes.static)
    add("/ui/api/cluster", routes.cluster)
    add("/ui/api/nodes", routes.nodes)
    add("/ui/api/nodes/{name:.+}", routes.node)
    add("/ui/api/match", routes.match)
    add("/ui/api/what-if", routes.what_if)
    add("/ui/api/events", routes.events)
    add("/ui/api/timeline", routes.timeline)
    add("/ui/api/history", routes.history)
    add("/ui/api/activity", routes.activity)
    add("/ui/api/pending", routes.pending)
    add("/ui/api/pods", routes.pods)
    add("/ui/api/pods/{namespace:[^/]+}/{name:.+}", routes.pod)

    async def run(_app: web.Application) -> AsyncIterator[None]:
        reading = asyncio.create_task(_read_activity(source))
        yield
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading
        source.close()

    app.cleanup_ctx.append(run)


async def _read_activity(source: SnapshotSource) -> None:
    activity = source.activity
    while activity is not None:
        activity.read(time.time())  # noqa: TID251 a shell may know the time
        await asyncio.sleep(ACTIVITY_SECONDS)


# The page itself, which has no data of the cluster.
PUBLIC_PATHS = ("/ui", "/ui/", "/ui/static/*")


def is_public(path: str) -> bool:
    """Whether a path is part of the page itself."""
    return any(
        path.startswith(each[:-1]) if each.endswith("*") else path == each for each in PUBLIC_PATHS
    )


class _Routes:
    def __init__(self, source: SnapshotSource) -> None:
        self._source = source

    async def page(self, request: web.Request) -> web.Response:
        return _file("index.html")

    async def static(self, request: web.Request) -> web.Response:
        return _file(request.match_info["name"])

    async def cluster(self, request: web.Request) -> web.Response:
        return await self._answer(request, "cluster")

    async def nodes(self, request: web.Request) -> web.Response:
        query = request.query
        return await self._answer(
            request, "nodes", resource=query.get("resource", "cpu"), group=query.get("group", "")
        )

    async def node(self, request: web.Request) -> web.Response:
        return await self._answer(
            request, "node", name=request.match_info["name"], changes=_changes(request)
        )

    async def match(self, request: web.Request) -> web.Response:
        return await self._answer(request, "matching", query=request.query.get("q", ""))

    async def pending(self, request: web.Request) -> web.Response:
        return await self._answer(request, "pending")

    async def pods(self, request: web.Request) -> web.Response:
        return await self._answer(request, "pods", query=request.query.get("q", ""))

    async def pod(self, request: web.Request) -> web.Response:
        match = request.match_info
        key = f"{match['namespace']}/{match['name']}"
        return await self._answer(request, "pod", key=key, compare=request.query.get("compare", ""))

    async def what_if(self, request: web.Request) -> web.Response:
        query = request.query
        return await self._answer(
            request,
            "what_if",
            changes=_changes(request),
            resource=query.get("resource", "cpu"),
            group=query.get("group", ""),
        )

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events: the version of the snapshot that the next request would get."""
        response = web.StreamResponse(headers=HEADERS | {"Content-Type": "text/event-stream"})
        await response.prepare(request)
        sent, silent_seconds = -1, 0.0
        while True:
            version = self._source.available()
            if version != sent:
                sent, silent_seconds = version, 0.0
                await response.write(b'data: {"version": %d}\n\n' % version)
            elif silent_seconds >= HEARTBEAT_SECONDS:  # Finds out whether the client is there.
                silent_seconds = 0.0
                await response.write(b":\n\n")
            await asyncio.sleep(EVENT_SECONDS)
            silent_seconds += EVENT_SECONDS

    async def timeline(self, request: web.Request) -> web.Response:
        return await self._answer(request, "timeline")

    async def activity(self, request: web.Request) -> web.Response:
        return await self._answer(request, "activity")

    async def history(self, request: web.Request) -> web.Response:
        query = request.query
        return await self._answer(
            request, "history", key=query.get("pod", ""), node=query.get("node", "")
        )

    async def _answer(self, request: web.Request, question: str, **arguments: Any) -> web.Response:
        at = request.query.get("at", "")
        try:
            body, status = await self._source.answer(question, arguments, at), 200
        except UnanswerableRequest as error:
            body, status = msgspec.json.encode({"error": str(error)}), 400
        return web.Response(
            body=body, status=status, content_type="application/json", headers=HEADERS
        )


def _changes(request: web.Request) -> list[tuple[str, str]]:
    return [(kind, text) for kind, text in request.query.items() if kind not in OTHER_PARAMETERS]


def _file(name: str) -> web.Response:
    # Only names of files that are there: no path of a request reaches the file system.
    found = {path.name: path for path in STATIC.iterdir()}.get(name)
    if found is None or found.suffix not in TYPES:
        raise web.HTTPNotFound(text="not found")
    return web.Response(
        body=found.read_bytes(),
        content_type=TYPES[found.suffix],
        charset="utf-8",
        headers=HEADERS,
    )


def local_app(source: SnapshotSource) -> web.Application:
    """An application with the UI alone, for a loopback address."""

    @web.middleware
    async def check_host(request: web.Request, handler: Handler) -> web.StreamResponse:
        # A web site can resolve its name to this address (DNS rebinding); Host has that name.
        name = request.host.rpartition(":")[0] or request.host
        if name not in ("127.0.0.1", "localhost"):
            raise web.HTTPForbidden(text="only loopback names are served")
        return await handler(request)

    app = web.Application(middlewares=[check_host])
    mount(app, source)

    async def to_page(_request: web.Request) -> web.Response:
        raise web.HTTPFound("/ui")

    app.router.add_get("/", to_page)
    return app
