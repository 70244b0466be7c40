"""Run an aiohttp application on a port, with limits for slow clients and a quiet log.

aiohttp waits without limit for the first request of a connection, and logs a traceback for bytes
that are not HTTP. Both let any client that can connect use up connections or fill the log.
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

HEAD_SECONDS = 10.0
KEEP_ALIVE_SECONDS = 90.0

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_BEGAN = web.AppKey("connections with a request", set[int])


@asynccontextmanager
async def running(app: web.Application, *, shutdown_seconds: float) -> AsyncIterator[web.AppRunner]:
    """Run an application while the block runs; `listen` makes it reachable."""
    began: set[int] = set()
    app[_BEGAN] = began
    app.middlewares.insert(0, _note_request)
    runner = web.AppRunner(
        app,
        access_log=None,
        shutdown_timeout=shutdown_seconds,
        keepalive_timeout=KEEP_ALIVE_SECONDS,
        logger=_logger(),
    )
    closing: asyncio.Task[None] | None = None
    try:
        await runner.setup()
        closing = asyncio.create_task(_close_slow(runner, began))
        yield runner
    finally:
        if closing is not None:
            closing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await closing
        await runner.cleanup()


async def listen(
    runner: web.AppRunner, address: str, port: int, context: ssl.SSLContext | None
) -> int:
    """Listen on a port; returns it, because the system chooses one for 0. Raises OSError."""
    await web.TCPSite(runner, address, port, ssl_context=context).start()
    bound: int = runner.addresses[0][1]
    return bound


@web.middleware
async def _note_request(request: web.Request, handler: Handler) -> web.StreamResponse:
    request.config_dict[_BEGAN].add(id(request.protocol))
    return await handler(request)


async def _close_slow(runner: web.AppRunner, began: set[int]) -> None:
    """Close connections that have sent no complete head of a request for a while."""
    silent: set[int] = set()  # At the last look.
    while True:
        await asyncio.sleep(HEAD_SECONDS)
        server = runner.server
        connections = [] if server is None else server.connections
        for connection in connections:
            if id(connection) in silent and id(connection) not in began:
                connection.force_close()
        known = {id(connection) for connection in connections}
        began &= known
        silent = known - began


def _logger() -> logging.Logger:
    logger = logging.getLogger("moorage.http")
    if not any(isinstance(each, _OneLine) for each in logger.filters):
        logger.addFilter(_OneLine())
    return logger


class _OneLine(logging.Filter):
    """Reduces the record of a malformed request to one line below the default level."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if isinstance(error, HttpProcessingError | web.RequestPayloadError | ConnectionError):
            first = " ".join(str(error).split())[:200]
            logging.getLogger("moorage.http.malformed").debug("malformed request: %s", ascii(first))
            return False
        return True
