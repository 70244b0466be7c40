"""Short requests over kept connections: HTTP/1.1 with as little around it as can be.

A scheduler sends two of these for each pod, a binding and an Event. Sent through a full client,
they cost more than everything else together; so they go this way, and lists and watches, which
are few and long, the other. What comes back is a status, the headers as bytes, and a body.
"""

import asyncio
import ssl
import time
from collections.abc import Callable
from typing import cast
from urllib.parse import urlsplit

from moorage.live.refusals import Lost, Unreached

CONNECT_SECONDS = 5.0
# Servers close what is idle; a connection that may be closed at this moment is not used.
IDLE_SECONDS = 45.0
NO_BODY = (204, 304)


class Answer:
    """A status, the headers in small letters, and a body."""

    __slots__ = ("body", "head", "status")

    def __init__(self, status: int, head: bytes, body: bytes) -> None:
        self.status = status
        self.head = head
        self.body = body

    def header(self, name: str) -> str | None:
        """A header's value, or None."""
        return _header(self.head, name.lower().encode())


class Exchanges:
    """The connections to one server."""

    def __init__(self, server: str, server_name: str | None = None) -> None:
        parts = urlsplit(server)
        self._is_secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._is_secure else 80)
        self._server_name = server_name or self._host
        self._prefix = parts.path.rstrip("/")
        self._netloc = parts.netloc
        self._idle: list[_Connection] = []
        self._ssl: ssl.SSLContext | None = None

    async def ask(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        body: bytes,
        *,
        seconds: float,
        ssl_context: ssl.SSLContext | None,
        before_sending: Callable[[], None],
    ) -> Answer:
        """Send a request and wait for its answer; raises Unreached or Lost."""
        lines = [f"{method} {self._prefix}{path} HTTP/1.1", f"Host: {self._netloc}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join((*lines, f"Content-Length: {len(body)}", "", "")).encode("latin-1")
        where = f"{method} {path.partition('?')[0]}"
        connection = self._kept(ssl_context) or await self._connect(where, seconds, ssl_context)
        try:
            before_sending()
            answer = await connection.ask(head + body, seconds, where)
        except BaseException:
            connection.close()
            raise
        if connection.is_reusable:
            connection.idle_since = time.monotonic()
            self._idle.append(connection)
        else:
            connection.close()
        return answer

    def close(self) -> None:
        """Close what is kept."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    def _kept(self, ssl_context: ssl.SSLContext | None) -> "_Connection | None":
        if ssl_context is not self._ssl:  # Another certificate: what was made with the old is void.
            self.close()
            self._ssl = ssl_context
        while self._idle:
            connection = self._idle.pop()  # The latest: it is the least likely to be closed.
            if connection.is_open and time.monotonic() - connection.idle_since < IDLE_SECONDS:
                return connection
            connection.close()
        return None

    async def _connect(
        self, where: str, seconds: float, ssl_context: ssl.SSLContext | None
    ) -> "_Connection":
        limit = min(CONNECT_SECONDS, seconds)
        try:
            async with asyncio.timeout(limit):
                _, made = await asyncio.get_running_loop().create_connection(
                    _Connection,
                    self._host,
                    self._port,
                    ssl=ssl_context if self._is_secure else None,
                    server_hostname=self._server_name if self._is_secure else None,
                )
        except TimeoutError:
            raise Unreached(f"{where}: no connection within {limit:g} s") from None
        except OSError as error:
            why = " ".join(str(error).split())
            raise Unreached(
                f"{where}: Cannot connect to host {self._host}:{self._port}: {why}"
            ) from None
        return made


class _Connection(asyncio.Protocol):
    """One connection, which carries one request at a time."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self.is_open = False
        self.is_reusable = False
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._waiter: asyncio.Future[Answer] | None = None

    async def ask(self, request: bytes, seconds: float, where: str) -> Answer:
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        self._buffer = b""
        waiter: asyncio.Future[Answer] = loop.create_future()
        self._waiter = waiter
        alarm = loop.call_later(
            seconds, self._fail, Lost(f"{where}: no answer within {seconds:g} s")
        )
        self._transport.write(request)
        if not self.is_open:
            self._fail(ConnectionResetError())
        try:
            return await waiter
        except ConnectionError as trouble:
            why = " ".join(str(trouble).split()) or "Server disconnected"
            raise Lost(f"{where}: the connection broke: {why}") from None
        finally:
            alarm.cancel()
            self._waiter = None

    def close(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are not derived from it.
        self.is_open = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self._fail(exc if isinstance(exc, ConnectionError) else ConnectionResetError())

    def data_received(self, data: bytes) -> None:
        if self._waiter is None:  # Nobody asked: this server is out of step.
            self.close()
            return
        self._buffer += data
        try:
            answer = self._answer()
        except ValueError:
            self._fail(ConnectionResetError("the answer is not HTTP"))
            return
        if answer is not None and not self._waiter.done():
            self._waiter.set_result(answer)

    def _answer(self) -> Answer | None:
        """The answer, once it is complete."""
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return None
            if not self._buffer.startswith(b"HTTP/1."):
                raise ValueError("not HTTP")
            status, head = int(self._buffer[9:12]), self._buffer[:end].lower()
            if status >= 200:
                break
            self._buffer = self._buffer[end + 4 :]  # 1xx: the answer is still to come.
        body = _body(status, head, self._buffer[end + 4 :])
        if body is None:
            return None
        self.is_reusable = (
            self.is_open
            and _header(head, b"connection") != "close"
            and head.startswith(b"http/1.1")
        )
        return Answer(status, head, body)

    def _fail(self, trouble: Exception) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(trouble)


def _body(status: int, head: bytes, rest: bytes) -> bytes | None:
    """The body, or None as long as a part of it is missing."""
    if status in NO_BODY:
        return b""
    length = _header(head, b"content-length")
    if length is not None:
        return rest[: int(length)] if len(rest) >= int(length) else None
    if "chunked" in (_header(head, b"transfer-encoding") or ""):
        return _chunks(rest)
    raise ValueError("an answer of unknown length")


def _chunks(rest: bytes) -> bytes | None:
    found: list[bytes] = []
    at = 0
    while (end := rest.find(b"\r\n", at)) >= 0:
        size = int(rest[at:end].partition(b";")[0], 16)
        at = end + 2
        if size == 0:
            return b"".join(found) if rest.find(b"\r\n", at) >= 0 else None
        if len(rest) < at + size + 2:
            return None
        found.append(rest[at : at + size])
        at += size + 2
    return None


def _header(head: bytes, name: bytes) -> str | None:
    at = head.find(b"\r\n" + name + b":")
    if at < 0:
        return None
    end = head.find(b"\r\n", at + 2)
    value = head[at + len(name) + 3 : end if end >= 0 else None]
    return value.strip().decode("latin-1")
