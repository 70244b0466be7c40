"""Server: health, metrics, configuration and dumps over HTTPS, for probes, Prometheus and people.

/healthz /livez /readyz       and /healthz/CHECK; ?verbose, ?exclude=CHECK
/metrics /metrics/slis        DELETE /metrics counts from nothing again
/configz                      the configuration in effect
/debug/queue /debug/cache     what the scheduler holds; SIGUSR2 writes the same to the log
"""

import asyncio
import os
import signal
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from moorage.api import config
from moorage.errors import InputError
from moorage.live import dumps, logs
from moorage.live.authorization import Gate
from moorage.live.health import Answer, Health
from moorage.live.run import Live
from moorage.metrics.meter import CONTENT_TYPE, Meter

# The paths that it answers; manifests are checked against them.
HEALTH_PATHS = ("/healthz", "/livez", "/readyz")
PATHS = (*HEALTH_PATHS, "/metrics", "/metrics/slis", "/configz", "/debug/queue", "/debug/cache")

SECURE_PORT = 10259
BIND_ADDRESS = "0.0.0.0"  # As kube-scheduler; who may look is the gate's business.

LOG = logs.named("server")

Handle = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """Answers for one scheduler."""

    def __init__(
        self,
        live: Live,
        meter: Meter,
        configuration: config.SchedulerConfiguration,
        gate: Gate,
        health: Health | None = None,
    ) -> None:
        self._live = live
        self._meter = meter
        self._configuration = configuration
        self._gate = gate
        self._health = health or Health(live)

    @asynccontextmanager
    async def listening(
        self, address: str, port: int, context: ssl.SSLContext | None
    ) -> AsyncIterator[int]:
        """Listen for as long as the block lasts; gives the port, which 0 leaves to the system."""
        runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            site = web.TCPSite(runner, address, port, ssl_context=context)
            try:
                await site.start()
            except OSError as error:
                # A name that nobody knows has a number below 0, and words of its own.
                number = error.errno or 0
                reason = os.strerror(number) if number > 0 else error.strerror or str(error)
                raise InputError(f"cannot listen on {address}:{port}: {reason.lower()}") from None
            bound = runner.addresses[0][1]
            LOG.info("listening", address=address, port=bound, tls=context is not None)
            with self._dumping():
                yield bound
        finally:
            await runner.cleanup()

    def _application(self) -> web.Application:
        application = web.Application(middlewares=[self._guarded])
        for path in HEALTH_PATHS:
            application.router.add_get(path, self._all_checks)
            application.router.add_get(f"{path}/{{check}}", self._one_check)
        application.router.add_get("/metrics", self._metrics)
        application.router.add_delete("/metrics", self._reset_metrics)
        application.router.add_get("/metrics/slis", self._slis)
        application.router.add_get("/configz", self._configz)
        application.router.add_get("/debug/queue", self._queue)
        application.router.add_get("/debug/cache", self._cache)
        return application

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handle) -> web.StreamResponse:
        authorization = request.headers.get("Authorization", "")
        code = await self._gate.code(
            request.remote or "", authorization, request.method, request.path
        )
        if code != 200:
            reason = "Unauthorized" if code == 401 else "Forbidden"
            return web.Response(status=code, text=f"{reason}\n")
        return await handler(request)

    # Health

    async def _all_checks(self, request: web.Request) -> web.Response:
        return _answered(
            self._health.all(
                request.path.strip("/"),
                verbose="verbose" in request.query,
                exclude=request.query.getall("exclude", []),
            )
        )

    async def _one_check(self, request: web.Request) -> web.Response:
        path, check = request.path.split("/")[1], request.match_info["check"]
        if check not in self._health.paths[path]:
            raise web.HTTPNotFound(text=f"there is no check {check}\n")
        return _answered(self._health.one(path, check))

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

    # What it is made of, and holds

    async def _configz(self, request: web.Request) -> web.Response:
        plain = config.to_dict(self._configuration)
        for extender in plain.get("extenders", ()):
            extender.get("tlsConfig", {}).pop("keyData", None)  # Nobody has to see that.
        return _json({"componentconfig": plain})

    async def _queue(self, request: web.Request) -> web.Response:
        async with self._live.cycling:
            return _json(dumps.queue(self._live.scheduler))

    async def _cache(self, request: web.Request) -> web.Response:
        async with self._live.cycling:
            held = dumps.cache(self._live.scheduler)
            held["differences"] = dumps.differences(self._live.scheduler, self._live.reflectors)
        return _json(held)

    def _dumping(self) -> "_OnSignal":
        return _OnSignal(signal.SIGUSR2, self._dump)

    async def _dump(self) -> None:
        scheduler = self._live.scheduler
        async with self._live.cycling:
            LOG.info("dump of the queue", queue=dumps.queue(scheduler))
            LOG.info("dump of the cache", cache=dumps.cache(scheduler))
            found = dumps.differences(scheduler, self._live.reflectors)
        for difference in found:
            LOG.warning("cache mismatch", difference=difference)
        LOG.info("cache comparison done", mismatches=len(found))


class _OnSignal:
    """Starts something whenever a signal comes."""

    def __init__(self, number: int, start: Callable[[], Awaitable[None]]) -> None:
        self._number = number
        self._start = start
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> None:
        asyncio.get_running_loop().add_signal_handler(self._number, self._came)

    def __exit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_signal_handler(self._number)

    def _came(self) -> None:
        task = asyncio.ensure_future(self._start())
        self._tasks.add(task)  # Tasks that nobody holds may vanish.
        task.add_done_callback(self._tasks.discard)


def tls_context(certificate_file: str = "", key_file: str = "") -> ssl.SSLContext:
    """What a server shows: the given certificate, or one of its own making."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if bool(certificate_file) != bool(key_file):
        raise InputError("--tls-cert-file and --tls-private-key-file have to be given together")
    if certificate_file:
        try:
            context.load_cert_chain(certificate_file, key_file)
        except (ssl.SSLError, OSError) as error:
            reason = getattr(error, "reason", None) or error.strerror or error
            raise InputError(f"{certificate_file}, {key_file}: {reason}") from None
        return context
    try:
        from moorage.live.certificates import self_signed
    except ModuleNotFoundError:
        raise InputError(
            "a certificate is needed to serve HTTPS: give --tls-cert-file and "
            "--tls-private-key-file, or install moorage[live], which makes one"
        ) from None
    with tempfile.TemporaryDirectory() as folder:
        # OpenSSL takes it from a file only; it is readable by us alone, and gone at once.
        file = Path(folder) / "both.pem"
        file.touch(0o600)
        file.write_bytes(b"".join(self_signed()))
        context.load_cert_chain(file)
    return context


def _answered(answer: Answer) -> web.Response:
    return web.Response(
        status=answer.code, text=answer.text, headers={"X-Content-Type-Options": "nosniff"}
    )


def _json(value: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")
