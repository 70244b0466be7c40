"""Short requests over kept connections: HTTP/1.1 with as little around it as can be.

A scheduler sends two of these for each pod, a binding and an Event. Sent through a full client,
they cost more than everything else together; so they go this way, and lists and watches, which
are few and long, the other. What comes back is a status, the headers as bytes, and a body.
"""

import asyncio
import math
import ssl
import time
from collections.abc import Callable, Mapping
from typing import TypeVar, cast
from urllib.parse import urlsplit

from moorage.live.refusals import Lost, Unreached

P = TypeVar("P", bound=asyncio.Protocol)

CONNECT_SECONDS = 5.0
# Servers close what is idle; a connection that may be closed at this moment is not used.
IDLE_SECONDS = 45.0
EARLY_SECONDS = 0.002
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
        return header(self.head, name.lower().encode())


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
        # Those that wait for an answer. All of them share one alarm, set for the first to be given
        # up: nearly every answer comes in time, and an alarm for each costs more than the rest.
        self._asked: set[_Connection] = set()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = math.inf

    def lines(self, headers: Mapping[str, str]) -> str:
        """Headers as `ask` takes them; most requests have the same."""
        written = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"Host: {self._netloc}\r\n{written}"

    def head(self, method: str, path: str, lines: str) -> bytes:
        """All of a request that comes before its body."""
        return f"{method} {self._prefix}{path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")

    async def ask(
        self,
        method: str,
        path: str,
        lines: str,
        body: bytes,
        *,
        seconds: float,
        ssl_context: ssl.SSLContext | None,
        before_sending: Callable[[], None],
    ) -> Answer:
        """Send a request and wait for its answer; raises Unreached or Lost."""
        head = self.head(method, path, f"{lines}Content-Length: {len(body)}\r\n")
        connection = self._kept(ssl_context)
        if connection is None:
            where = _where(method, path)
            connection = await self.connect(_Connection, where, seconds, ssl_context)
        try:
            before_sending()
            waiter = connection.send(head + body, seconds)
            self._asked.add(connection)
            if connection.ends_at < self._alarm_at:
                self._set_alarm(connection.ends_at)
            answer = await waiter
        except TimeoutError:
            connection.close()
            raise Lost(f"{_where(method, path)}: no answer within {seconds:g} s") from None
        except ConnectionError as trouble:
            connection.close()
            why = " ".join(str(trouble).split()) or "Server disconnected"
            raise Lost(f"{_where(method, path)}: the connection broke: {why}") from None
        except BaseException:
            connection.close()
            raise
        finally:
            self._asked.discard(connection)
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

    def _set_alarm(self, moment: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        loop = asyncio.get_running_loop()
        self._alarm = loop.call_later(moment - time.monotonic(), self._give_up)
        self._alarm_at = moment

    def _give_up(self) -> None:
        """Wait no longer for answers that are overdue."""
        self._alarm, self._alarm_at = None, math.inf
        # A loop may count in whole milliseconds, and come a little early.
        now = time.monotonic() + EARLY_SECONDS
        for connection in self._asked:
            if connection.ends_at <= now:
                connection.fail(TimeoutError())
            elif connection.ends_at < self._alarm_at:
                self._alarm_at = connection.ends_at
        if self._alarm_at < math.inf:
            self._set_alarm(self._alarm_at)

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

    async def connect(
        self,
        protocol: Callable[[], P],
        where: str,
        seconds: float,
        ssl_context: ssl.SSLContext | None,
    ) -> P:
        """A new connection; raises Unreached."""
        limit = min(CONNECT_SECONDS, seconds)
        try:
            async with asyncio.timeout(limit):
                _, made = await asyncio.get_running_loop().create_connection(
                    protocol,
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
        self.ends_at = 0.0  # When there is no more waiting for the answer.
        self.is_open = False
        self.is_reusable = False
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._waiter: asyncio.Future[Answer] | None = None

    def send(self, request: bytes, seconds: float) -> asyncio.Future[Answer]:
        """Send a request; what to wait for raises ConnectionError, or what it is told to."""
        assert self._transport is not None
        self._buffer = b""
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        self.ends_at = time.monotonic() + seconds
        self._transport.write(request)
        if not self.is_open:
            self.fail(ConnectionResetError())
        return waiter

    def close(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are not derived from it.
        self.is_open = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self.fail(exc if isinstance(exc, ConnectionError) else ConnectionResetError())

    def data_received(self, data: bytes) -> None:
        if self._waiter is None or self._waiter.done():  # Nobody asked: it is out of step.
            self.close()
            return
        self._buffer += data
        try:
            answer = self._answer()
        except ValueError:
            self.fail(ConnectionResetError("the answer is not HTTP"))
            return
        if answer is not None:
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
            self.is_open and header(head, b"connection") != "close" and head.startswith(b"http/1.1")
        )
        return Answer(status, head, body)

    def fail(self, trouble: Exception) -> None:
        """There will be no answer."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(trouble)


def _where(method: str, path: str) -> str:
    return f"{method} {path.partition('?')[0]}"


def _body(status: int, head: bytes, rest: bytes) -> bytes | None:
    """The body, or None as long as a part of it is missing."""
    if status in NO_BODY:
        return b""
    length = header(head, b"content-length")
    if length is not None:
        return rest[: int(length)] if len(rest) >= int(length) else None
    if "chunked" in (header(head, b"transfer-encoding") or ""):
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


def header(head: bytes, name: bytes) -> str | None:
    """A header's value; the head and the name are in small letters."""
    at = head.find(b"\r\n" + name + b":")
    if at < 0:
        return None
    end = head.find(b"\r\n", at + 2)
    value = head[at + len(name) + 3 : end if end >= 0 else None]
    return value.strip().decode("latin-1")
