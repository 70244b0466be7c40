"""A server in this process whose responses a test lists."""

import asyncio
import json
from contextlib import asynccontextmanager

from aiohttp import web

from moorage.live.client import Client
from moorage.live.connection import Connection, Identity


class Scripted:
    """Sends the listed responses in order; the last one is repeated.

    An answer is a (status, body) or (status, body, headers), a list of watch lines (after which
    the watch ends), `HANG_UP`, or a coroutine function that takes the request.
    """

    def __init__(self, answers):
        self.answers = list(answers)
        self.requests = []
        self.bodies = []

    async def handle(self, request):
        self.requests.append(f"{request.method} {request.raw_path}")
        self.bodies.append(await request.read())
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is HANG_UP:
            request.transport.abort()
            return web.Response()
        if callable(answer):
            return await answer(request)
        if isinstance(answer, list):
            return await watched(request, answer)
        status, body, *headers = answer
        return web.json_response(body, status=status, headers=headers[0] if headers else None)


HANG_UP = object()


async def watched(request, lines):
    stream = web.StreamResponse()
    await stream.prepare(request)
    for line in lines:
        text = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
        await stream.write(text)
    return stream


async def never(request):
    await asyncio.sleep(3600)


@asynccontextmanager
async def serving(*answers, token="", **settings):
    """A scripted server and a client of it."""
    scripted = Scripted(answers)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", scripted.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.05, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    connection = Connection(server=f"http://127.0.0.1:{port}", identity=Identity(token=token))
    try:
        async with Client(connection, **settings) as client:
            yield scripted, client
    finally:
        # asyncio leaks a connection whose acceptance `stop` interrupts: it takes three turns.
        for _ in range(3):
            await asyncio.sleep(0)
        await site.stop()
        # `cleanup` would drop a connection whose end the server has not noticed yet.
        async with asyncio.timeout(10):
            while runner.server.connections:
                await asyncio.sleep(0.001)
        await runner.cleanup()
