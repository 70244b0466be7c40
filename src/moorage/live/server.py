"""SecureServer: health, metrics, configuration and dumps over HTTPS.

/healthz /livez /readyz       and /healthz/CHECK; ?verbose, ?exclude=CHECK
/metrics /metrics/slis        DELETE /metrics resets all metrics
/configz                      the configuration in effect
/debug/queue /debug/cache     the content of queue and cache; SIGUSR2 writes the same to the log
"""

import asyncio
import ipaddress
import os
import signal
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Any

import msgspec
from aiohttp import web

from moorage.api import config, quantity
from moorage.core.queued_pod import QueuedPod
from moorage.core.scheduler import Scheduler
from moorage.errors import InputError
from moorage.live import http_server, logs
from moorage.live.authorization import Authorizer
from moorage.live.health import Health, HealthResponse
from moorage.live.reflector import Reflector
from moorage.live.run import LiveScheduler
from moorage.metrics.meter import CONTENT_TYPE, Meter

# All paths of the server; tests check the deployment manifests against them.
HEALTH_PATHS = ("/healthz", "/livez", "/readyz")
PATHS = (*HEALTH_PATHS, "/metrics", "/metrics/slis", "/configz", "/debug/queue", "/debug/cache")

SECURE_PORT = 10259

LOG = logs.named("server")

Handle = Callable[[web.Request], Awaitable[web.StreamResponse]]


class SecureServer:
    """The secure port of one scheduler."""

    def __init__(
        self,
        live: LiveScheduler,
        meter: Meter,
        configuration: config.SchedulerConfiguration,
        authorizer: Authorizer,
        health: Health | None = None,
        *,
        extend: Callable[[web.Application], None] | None = None,
    ) -> None:
        """`extend` adds routes, such as those of the web UI."""
        self._extend = extend
        self._live = live
        self._meter = meter
        self._configuration = configuration
        self._authorizer = authorizer
        self._health = health or Health(live)

    @asynccontextmanager
    async def listening(
        self, address: str, port: int, context: ssl.SSLContext | None
    ) -> AsyncIterator[int]:
        """Listen while the block runs; yields the port, which the system chooses for 0."""
        async with http_server.running(self._application(), shutdown_seconds=1.0) as runner:
            try:
                bound = await http_server.listen(runner, address, port, context)
            except OSError as error:
                # The number of a name resolution error is below 0, and it has its own text.
                number = error.errno or 0
                reason = os.strerror(number) if number > 0 else error.strerror or str(error)
                raise InputError(f"cannot listen on {address}:{port}: {reason.lower()}") from None
            LOG.info("listening", address=address, port=bound, tls=context is not None)
            with self._dump_on_signal():
                yield bound

    def _application(self) -> web.Application:
        application = web.Application(middlewares=[self._authorize])
        for path in HEALTH_PATHS:
            application.router.add_get(path, self._all_checks)
            application.router.add_get(f"{path}/{{check}}", self._one_check)
        application.router.add_get("/metrics", self._metrics)
        application.router.add_delete("/metrics", self._reset_metrics)
        application.router.add_get("/metrics/slis", self._slis)
        application.router.add_get("/configz", self._configz)
        application.router.add_get("/debug/queue", self._queue)
        application.router.add_get("/debug/cache", self._cache)
        if self._extend is not None:
            self._extend(application)
        return application

    @web.middleware
    async def _authorize(self, request: web.Request, handler: Handle) -> web.StreamResponse:
        authorization = request.headers.get("Authorization", "")
        if request.path.startswith("/ui/") and not authorization and not _has_address(request.host):
            # A web site can resolve its name to this address (DNS rebinding).
            return web.Response(status=403, text="without a token only addresses are served\n")
        code = await self._authorizer.code(
            request.remote or "", authorization, request.method, request.path
        )
        if code != 200:
            return web.Response(status=code, text=f"{HTTPStatus(code).phrase}\n")
        return await handler(request)

    # Health

    async def _all_checks(self, request: web.Request) -> web.Response:
        return _health_response(
            self._health.check_all(
                request.path.strip("/"),
                verbose="verbose" in request.query,
                exclude=request.query.getall("exclude", []),
            )
        )

    async def _one_check(self, request: web.Request) -> web.Response:
        path, check = request.path.split("/")[1], request.match_info["check"]
        if check not in self._health.paths[path]:
            raise web.HTTPNotFound(text=f"there is no check {check}\n")
        return _health_response(self._health.check_one(path, check))

    # Metrics

    async def _metrics(self, request: web.Request) -> web.Response:
        async with self._live.cycling:
            body = self._meter.text()
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    async def _reset_metrics(self, request: web.Request) -> web.Response:
        self._meter.reset()
        return web.Response(text="metrics reset\n")

    async def _slis(self, request: web.Request) -> web.Response:
        body = "".join(f"{line}\n" for line in self._health.slis()).encode()
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    # Configuration and dumps

    async def _configz(self, request: web.Request) -> web.Response:
        plain = config.to_dict(self._configuration)
        for extender in plain.get("extenders", ()):
            extender.get("tlsConfig", {}).pop("keyData", None)  # A secret.
        return _json({"componentconfig": plain})

    async def _queue(self, request: web.Request) -> web.Response:
        async with self._live.cycling:
            return _json(dump_queue(self._live.scheduler))

    async def _cache(self, request: web.Request) -> web.Response:
        async with self._live.cycling:
            dump = dump_cache(self._live.scheduler)
            dump["differences"] = cache_differences(self._live.scheduler, self._live.reflectors)
        return _json(dump)

    @contextmanager
    def _dump_on_signal(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        tasks: set[asyncio.Task[None]] = set()  # The loop holds only weak references to tasks.

        def start() -> None:
            task = asyncio.ensure_future(self._dump())
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        loop.add_signal_handler(signal.SIGUSR2, start)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGUSR2)

    async def _dump(self) -> None:
        scheduler = self._live.scheduler
        async with self._live.cycling:
            LOG.info("dump of the queue", queue=dump_queue(scheduler))
            LOG.info("dump of the cache", cache=dump_cache(scheduler))
            found = cache_differences(scheduler, self._live.reflectors)
        for difference in found:
            LOG.warning("cache mismatch", difference=difference)
        LOG.info("cache comparison done", mismatches=len(found))


def _health_response(response: HealthResponse) -> web.Response:
    return web.Response(
        status=response.code, text=response.text, headers={"X-Content-Type-Options": "nosniff"}
    )


def _has_address(host: str) -> bool:
    """Whether the name of a request is an address or localhost."""
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return name == "localhost"
    return True


def _json(value: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")


def dump_queue(scheduler: Scheduler) -> dict[str, Any]:
    """Every queued pod by queue state, with the plugins that rejected it."""
    return {
        "counts": scheduler.queue.counts(),
        **{
            state: [_dump_entry(entry) for entry in entries]
            for state, entries in scheduler.queue.dump().items()
        },
    }


def _dump_entry(entry: QueuedPod) -> dict[str, Any]:
    values = {
        "pod": entry.key,
        "uid": entry.uid,
        "schedulerName": entry.pod.spec.scheduler_name,
        "priority": entry.pod.priority,
        "attempts": entry.attempts,
        "queuedAt": entry.queued_at,
        "unschedulablePlugins": sorted(entry.unschedulable_plugins),
        "pendingPlugins": sorted(entry.pending_plugins),
        "gatingPlugin": entry.gating_plugin,
        "nominatedNode": entry.pod.status.nominated_node_name,
    }
    return {name: value for name, value in values.items() if value not in ("", [])}


def dump_cache(scheduler: Scheduler) -> dict[str, Any]:
    """Every node with its pods and requests, and the assumed pods."""
    table = scheduler.cluster.table
    nodes = [table.info(row) for row in table.zone_order.rows().tolist()]
    return {
        "nodes": len(nodes),
        "pods": len(scheduler.cache),
        "assumed": sorted(each.pod.key for each in scheduler.cache if each.assumed),
        "table": [
            {
                "node": node.name,
                "pods": sorted(each.pod.key for each in node.placed().values()),
                "requested": _amounts(node.requested),
                "allocatable": _amounts(node.allocatable),
            }
            for node in nodes
        ],
    }


def _amounts(amount: Callable[[str], int]) -> dict[str, str]:
    names = [name for name in ("cpu", "memory") if amount(name)]
    return {name: quantity.format_value(amount(name), name) for name in names}


def cache_differences(scheduler: Scheduler, reflectors: Iterable[Reflector]) -> list[str]:
    """Nodes and pods that only the cache has, or only the reflectors."""
    found: list[str] = []
    for reflector in reflectors:
        if reflector.kind.name == "Node":
            cached = set(scheduler.cluster.table.row_of)
            found += _compare("node", cached, set(reflector.keys()))
        elif reflector.kind.name == "Pod":
            cached = {pod.key for pod in scheduler.known_pods()}
            found += _compare("pod", cached, set(reflector.keys()))
    return found


def _compare(kind: str, cached: set[str], listed: set[str]) -> list[str]:
    missing = [f"{kind} {key} is not in the cache" for key in sorted(listed - cached)]
    return missing + [f"{kind} {key} is only in the cache" for key in sorted(cached - listed)]
