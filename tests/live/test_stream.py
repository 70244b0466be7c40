"""Streamed responses, split into pieces in different ways."""

import asyncio
import ssl
import time
from contextlib import asynccontextmanager

import pytest

from moorage.live import tls
from moorage.live.api_errors import ApiStatusError, NoResponseError
from moorage.live.client import Client
from moorage.live.connection import Connection, ServerTrust
from moorage.live.http_connection import BUFFER_BYTES

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
BODY = b"4;x=y\r\none\n\r\nA\r\ntwo\nthree\n\r\n0\r\n\r\n"


@asynccontextmanager
async def asking(answer, piece=0, seconds=60.0, *, lasts=False, context=None):
    """Stream from a server that sends this in pieces, and then closes unless `lasts`."""

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        try:
            for at in range(0, len(answer), piece or len(answer)):
                writer.write(answer[at : at + (piece or len(answer))])
                await writer.drain()
                await asyncio.sleep(0)
            if lasts:
                await reader.read()
        except ConnectionError:
            pass  # It has heard enough.
        writer.close()
        ended.set()

    ended = asyncio.Event()
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    scheme, port = "https" if context else "http", server.sockets[0].getsockname()[1]
    trust = ServerTrust(insecure=True)
    connection = Connection(server=f"{scheme}://127.0.0.1:{port}", trust=trust)
    try:
        async with (
            Client(connection) as client,
            client.stream("/x?watch=true", seconds=seconds) as stream,
        ):
            yield stream
    finally:
        await ended.wait()
        server.close()
        await asyncio.sleep(0.001)  # Connections end in the loop's next turns.


def read(*answer, **settings):
    async def go():
        async with asking(*answer, **settings) as stream:
            return await stream.read()

    return asyncio.run(go())


@pytest.mark.parametrize("piece", [0, 1, 2, 3, 7])
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(CHUNKED + BODY, b"one\ntwo\nthree\n", id="in chunks"),
        pytest.param(CHUNKED + b"0\r\n\r\n", b"", id="no chunks"),
        pytest.param(HEAD + b"Content-Length: 4\r\n\r\nfour", b"four", id="a length"),
        pytest.param(HEAD + b"Content-Length: 0\r\n\r\n", b"", id="nothing"),
        pytest.param(HEAD + b"\r\nuntil the end", b"until the end", id="until the end"),
        pytest.param(
            b"HTTP/1.1 100 Continue\r\n\r\n" + CHUNKED + BODY,
            b"one\ntwo\nthree\n",
            id="wait for it",
        ),
    ],
)
def test_read(answer, expected, piece):
    assert read(answer, piece) == expected


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"Content-Length: 4\r\n\r\nlate", id="with a length"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n4\r\nlate\r\n0\r\n\r\n", id="in chunks"),
    ],
)
def test_error_status(body):
    with pytest.raises(ApiStatusError, match="late") as refused:
        read(b"HTTP/1.1 429 Busy\r\nRetry-After: 3\r\n" + body)
    assert (refused.value.code, refused.value.retry_after_seconds) == (429, 3.0)


def test_over_tls(tmp_path):
    file = tmp_path / "both.pem"
    file.write_bytes(b"".join(tls.self_signed()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    assert read(CHUNKED + BODY, context=context) == b"one\ntwo\nthree\n"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(HEAD, id="within the head"),
        pytest.param(CHUNKED + b"4\r\non", id="within a chunk"),
        pytest.param(CHUNKED + b"4\r\none\n\r\n", id="between two chunks"),
        pytest.param(HEAD + b"Content-Length: 9\r\n\r\nfour", id="too short"),
        pytest.param(b"SSH-2.0\r\n\r\n", id="another protocol"),
        pytest.param(CHUNKED + b"ten\r\n", id="an invalid chunk size"),
        pytest.param(CHUNKED + b"2\r\none\n\r\n", id="a chunk longer than its size"),
    ],
)
def test_broken(answer):
    with pytest.raises(NoResponseError):
        read(answer)


def test_time_limit():
    began = time.monotonic()
    with pytest.raises(NoResponseError, match=r"no answer within 0\.2 s"):
        read(CHUNKED + b"4\r\none\n\r\n", seconds=0.2, lasts=True)
    assert time.monotonic() - began >= 0.19


def test_more_than_the_buffer():
    """Beyond the buffer, reading from the socket is paused; nothing is lost."""
    text = b"x" * (3 * BUFFER_BYTES)
    assert read(CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (len(text), text)) == text


def test_data_before_a_break_is_read_first():
    async def go():
        async with asking(CHUNKED + b"4\r\none\n\r\n4\r\ntw") as stream:
            await asyncio.sleep(0.05)  # All of it is there, and the connection has ended.
            assert await stream.readany() == b"one\ntw"
            with pytest.raises(ConnectionError):
                await stream.readany()

    asyncio.run(go())
