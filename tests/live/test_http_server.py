"""Slow and malformed requests."""

import asyncio
import logging

import pytest
from aiohttp import web

from moorage.live import http_server


def responses(*requests, seconds=60.0):
    """The bytes that each raw request gets until the server closes or `seconds` have passed."""

    async def hello(request):
        return web.Response(text="hello")

    async def ask(port, request):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        try:
            async with asyncio.timeout(seconds):
                return await reader.read()
        except TimeoutError:
            return None
        finally:
            writer.close()

    async def run():
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", hello)
        async with http_server.running(app, shutdown_seconds=0.1) as runner:
            port = await http_server.listen(runner, "127.0.0.1", 0, None)
            return await asyncio.gather(*(ask(port, request) for request in requests))

    return asyncio.run(run())


def test_unfinished_heads_are_closed(monkeypatch):
    monkeypatch.setattr(http_server, "HEAD_SECONDS", 0.05)
    found = responses(b"", b"GET / HTTP/1.1\r\nHost: a\r\n")
    assert found == [b"", b""]


def test_kept_connections_stay(monkeypatch):
    monkeypatch.setattr(http_server, "HEAD_SECONDS", 0.05)
    (found,) = responses(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", seconds=0.4)
    assert found is None  # Neither closed nor cut off.


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(b"GET /\0 HTTP/1.1\r\n\r\n", id="control character"),
        pytest.param(b"nonsense\r\n\r\n", id="not HTTP"),
        pytest.param(b"GET / HTTP/1.1\r\nContent-Length: a\r\n\r\n", id="no length"),
        pytest.param(b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\n\r\n", id="long path"),
    ],
)
def test_malformed_requests_log_no_traceback(caplog, request_):
    caplog.set_level(logging.INFO)
    (found,) = responses(request_)
    assert b" 400 " in found.splitlines()[0]
    assert caplog.records == []
