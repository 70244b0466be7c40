"""Responses of servers and proxies, split into pieces in different ways."""

import asyncio
import ssl
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from moorage.live import tls
from moorage.live.api_errors import NoResponseError, NotSentError
from moorage.live.connection import ServerTrust
from moorage.live.http1 import ConnectionPool
from moorage.live.http_connection import header

PLAIN = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nRetry-After: 3\r\n\r\n{}"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"
)


class Server:
    """Answers each request with the next of some byte strings; None closes the connection."""

    def __init__(self, answers, piece=0):
        self.answers = list(answers)
        self.piece = piece
        self.connections = 0
        self.requests = []

    async def serve(self, reader, writer):
        self.connections += 1
        try:
            while self.answers:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(length))
                answer = self.answers.pop(0)
                if answer is None:
                    break
                await self.send(writer, answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    async def send(self, writer, answer):
        for i in range(0, len(answer), self.piece or len(answer)):
            writer.write(answer[i : i + (self.piece or len(answer))])
            await writer.drain()
            await asyncio.sleep(0)


@asynccontextmanager
async def serving(*answers, piece=0, context=None, path=""):
    made = Server(answers, piece)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    scheme = "https" if context else "http"
    pool = ConnectionPool(f"{scheme}://127.0.0.1:{port}{path}")
    try:
        yield made, pool
    finally:
        pool.close()
        server.close()


def ask(pool, context=None, seconds=60.0):
    return pool.request(
        "POST",
        "/x?a=b",
        pool.encode_headers({"Authorization": "Bearer t"}),
        b"{}",
        seconds=seconds,
        ssl_context=context,
        before_sending=lambda: None,
    )


def asked(*answers, times=1, piece=0, **options):
    async def go():
        async with serving(*answers, piece=piece, **options) as (server, pool):
            found = [await ask(pool) for _ in range(times)]
            return found, server

    return asyncio.run(go())


@pytest.mark.parametrize("piece", [0, 1, 7], ids=["at once", "byte by byte", "in pieces"])
@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        pytest.param(PLAIN, 201, b"{}", id="with a length"),
        pytest.param(CHUNKED, 200, b"abcdefg", id="in chunks"),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", id="without a body"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN, 201, b"{}", id="after a 100"),
    ],
)
def test_responses(answer, status, body, piece):
    (found,), _ = asked(answer, piece=piece)
    assert (found.status, found.body) == (status, body)


def test_request():
    (found,), server = asked(PLAIN, path="/k8s/clusters/c-1/")
    head = server.requests[0].split(b"\r\n")
    assert head[0] == b"POST /k8s/clusters/c-1/x?a=b HTTP/1.1"
    assert b"Authorization: Bearer t" in head
    assert server.requests[0].endswith(b"\r\n\r\n{}")
    assert header(found.head, b"retry-after") == "3"
    assert header(found.head, b"etag") is None


def test_connections_are_reused():
    _, server = asked(PLAIN, CHUNKED, PLAIN, times=3)
    assert server.connections == 1


def test_a_connection_with_connection_close_is_not_reused():
    closing = PLAIN.replace(b"Retry-After: 3", b"Connection: close")
    _, server = asked(closing, PLAIN, times=2)
    assert server.connections == 2


def test_a_connection_closed_while_idle_is_not_reused():
    async def go():
        async with serving(PLAIN) as (server, pool):
            await ask(pool)  # The server has no more answers, and closes.
            await asyncio.sleep(0.05)
            server.answers.append(PLAIN)
            await ask(pool)
            return server.connections

    assert asyncio.run(go()) == 2


@pytest.mark.parametrize(
    ("answer", "seconds", "text"),
    [
        pytest.param(None, 60, "the connection broke", id="closed without an answer"),
        pytest.param(b"hello\r\n\r\n", 60, "is not HTTP", id="another protocol"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\nabc", 60, "is not HTTP", id="of unknown length"),
        pytest.param(PLAIN[:-1], 0.1, "no answer within 0.1 s", id="half an answer"),
    ],
)
def test_no_response(answer, seconds, text):
    async def go():
        async with serving(answer, PLAIN) as (_, pool):
            with pytest.raises(NoResponseError, match=text):
                await ask(pool, seconds=seconds)
            assert (await ask(pool)).status == 201  # The next is not harmed.

    asyncio.run(go())


def test_each_request_has_its_own_timeout():
    async def go():
        loop = asyncio.get_running_loop()
        left = asyncio.Semaphore(0)

        async def deaf(reader, writer):
            await reader.read()
            writer.close()
            await asyncio.sleep(0.01)
            left.release()

        server = await asyncio.start_server(deaf, "127.0.0.1", 0)
        pool = ConnectionPool(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")

        async def waited(seconds):
            began = loop.time()
            with pytest.raises(NoResponseError, match=f"no answer within {seconds} s"):
                await ask(pool, seconds=seconds)
            return loop.time() - began

        try:
            return await asyncio.gather(*(waited(seconds) for seconds in (0.6, 0.2, 0.4)))
        finally:
            for _ in range(3):
                await left.acquire()
            pool.close()
            server.close()

    longest, shortest, middle = asyncio.run(go())
    assert 0.19 <= shortest < middle < longest
    assert middle >= 0.39
    assert longest >= 0.59


def test_tls(tmp_path):
    authority, context = server_certificate(tmp_path)

    async def go():
        async with serving(PLAIN, PLAIN, context=context) as (_, pool):
            trusted = tls.client_context(ServerTrust(authority=authority))
            assert (await ask(pool, trusted)).status == 201
            reckless = tls.client_context(ServerTrust(insecure=True))
            assert (await ask(pool, reckless)).status == 201
            strict = tls.client_context(ServerTrust())
            with pytest.raises(NotSentError, match="CERTIFICATE_VERIFY_FAILED"):
                await ask(pool, strict)

    asyncio.run(go())


def server_certificate(folder):
    certificate, key = tls.self_signed(["localhost", "127.0.0.1"])
    (folder / "tls.pem").write_bytes(certificate + key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "tls.pem")
    return certificate, context


class Proxy:
    """An HTTP proxy that tunnels; with `refuses`, it answers so instead."""

    def __init__(self, refuses=b""):
        self.refuses = refuses
        self.heads = []

    async def serve(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
        if self.refuses:
            writer.write(self.refuses)
            writer.close()
            return
        address = target if method == "CONNECT" else urlsplit(target).netloc
        host, _, port = address.rpartition(":")
        to_reader, to_writer = await asyncio.open_connection(host, int(port))
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            to_writer.write(head)
        await asyncio.gather(self.copy(reader, to_writer), self.copy(to_reader, writer))

    async def copy(self, reader, writer):
        try:
            while found := await reader.read(65536):
                writer.write(found)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


def asked_by_proxy(*, proxy, context=None, client_context=None, user=""):
    """The response to a request through a proxy."""

    async def go():
        listening = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        async with serving(PLAIN, context=context) as (server, direct):
            scheme = "http" if context is None else "https"
            pool = ConnectionPool(
                f"{scheme}://{direct._netloc}", None, f"http://{user}127.0.0.1:{port}"
            )
            try:
                return await ask(pool, client_context), server
            finally:
                pool.close()
                listening.close()
                await asyncio.sleep(0.01)  # The proxy's tasks end.

    return asyncio.run(go())


def test_proxy_without_tls():
    proxy = Proxy()
    found, server = asked_by_proxy(proxy=proxy, user="me:p%40ss@")
    assert found.status == 201
    assert proxy.heads[0].startswith(b"POST http://127.0.0.1:")
    assert b"Proxy-Authorization: Basic bWU6cEBzcw==" in proxy.heads[0]
    assert len(server.requests) == 1


def test_tunnel_for_tls(tmp_path):
    authority, context = server_certificate(tmp_path)
    trusted = tls.client_context(ServerTrust(authority=authority))
    proxy = Proxy()
    found, server = asked_by_proxy(
        proxy=proxy, context=context, client_context=trusted, user="me:secret@"
    )
    assert found.status == 201
    assert proxy.heads[0].startswith(b"CONNECT 127.0.0.1:")
    assert b"Proxy-Authorization" in proxy.heads[0]
    assert b"Proxy-Authorization" not in server.requests[0]


def test_proxy_that_refuses(tmp_path):
    _, context = server_certificate(tmp_path)
    proxy = Proxy(refuses=b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
    reckless = tls.client_context(ServerTrust(insecure=True))
    with pytest.raises(NotSentError, match=r"by the proxy 127\.0\.0\.1: the proxy answered 407"):
        asked_by_proxy(proxy=proxy, context=context, client_context=reckless)
