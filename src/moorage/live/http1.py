"""HTTP/1.1 client connections with little overhead per request.

A scheduler sends two short requests per pod, a binding and an Event, and reads three or more watch
events per pod. Through a full HTTP client these take more CPU time than everything else together.
So `ConnectionPool` sends short requests over kept connections, and `HttpConnection` also streams a
long response, a watch, as it arrives.

Measured against the tests' API server: 80 us of CPU time per PATCH instead of 260 with aiohttp, and
60 % of the time per list.
"""

import asyncio
import base64
import math
import ssl
import time
from collections.abc import Callable, Mapping
from urllib.parse import unquote, urlsplit

from moorage.live.api_errors import NoResponseError, NotSentError
from moorage.live.http_connection import HttpConnection
from moorage.live.transport import HttpResponse

CONNECT_SECONDS = 5.0
# Servers close idle connections; one that may be closed at this moment is not used.
IDLE_SECONDS = 45.0
EARLY_SECONDS = 0.002


class ConnectionPool:
    """The connections to one server; each carries one request at a time.

    Through an HTTP proxy, requests over TLS use a tunnel (CONNECT).
    """

    def __init__(self, server: str, server_name: str | None = None, proxy: str = "") -> None:
        parts = urlsplit(server)
        self._proxy = HttpProxy(proxy) if proxy else None
        self._is_secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._is_secure else 80)
        self._server_name = server_name or self._host
        self._netloc = parts.netloc
        # What precedes a path; a proxy without a tunnel needs the whole URL.
        is_whole = self._proxy is not None and not self._is_secure
        self._prefix = f"http://{self._netloc}" if is_whole else ""
        self._prefix += parts.path.rstrip("/")
        self._idle: list[HttpConnection] = []
        self._ssl: ssl.SSLContext | None = None
        # Connections that wait for a response. They share one timer, set for the earliest
        # deadline: nearly every response is in time, and a timer per request costs more CPU time
        # than the rest of the request.
        self._pending: set[HttpConnection] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf

    def encode_headers(self, headers: Mapping[str, str]) -> str:
        """Headers in the form that `request` takes; callers cache it."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        if self._proxy is not None and not self._is_secure:
            lines += self._proxy.authorization
        return f"Host: {self._netloc}\r\n{lines}"

    def _head(self, method: str, path: str, headers: str) -> bytes:
        """Everything in a request before its body."""
        return f"{method} {self._prefix}{path} HTTP/1.1\r\n{headers}\r\n".encode("latin-1")

    async def request(
        self,
        method: str,
        path: str,
        headers: str,
        body: bytes | None,
        *,
        seconds: float,
        ssl_context: ssl.SSLContext | None,
        before_sending: Callable[[], None],
    ) -> HttpResponse:
        """Send a request and wait for its response; raises NotSentError or NoResponseError."""
        if body is None:
            request = self._head(method, path, headers)
        else:
            length = f"Content-Length: {len(body)}\r\n"
            request = self._head(method, path, headers + length) + body
        connection = self._take_idle(ssl_context)
        if connection is None:
            connection = await self._connect(_where(method, path), seconds, ssl_context)
        try:
            before_sending()
            connection.ends_at = ends_at = time.monotonic() + seconds
            answer = connection.exchange(request)
            self._pending.add(connection)
            if ends_at < self._timer_at:
                self._set_timer(ends_at)
            return await answer
        except TimeoutError:
            where = _where(method, path)
            raise NoResponseError(f"{where}: no answer within {seconds:g} s") from None
        except ConnectionError as error:
            where, why = _where(method, path), " ".join(str(error).split()) or "Server disconnected"
            raise NoResponseError(f"{where}: the connection broke: {why}") from None
        finally:
            self._pending.discard(connection)
            if connection.is_reusable:
                connection.idle_since = time.monotonic()
                self._idle.append(connection)
            else:
                connection.close()

    async def stream(
        self, path: str, headers: str, *, seconds: float, ssl_context: ssl.SSLContext | None
    ) -> HttpConnection:
        """Send a GET request on a connection of its own; returns it after the response's head.

        The whole response may take `seconds`. Raises ApiError, ConnectionError or TimeoutError.
        """
        connection = await self._connect(_where("GET", path), seconds, ssl_context)
        try:
            await connection.stream(self._head("GET", path, headers), seconds)
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Close the idle connections."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    def _set_timer(self, moment: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(moment - time.monotonic(), self._time_out)
        self._timer_at = moment

    def _time_out(self) -> None:
        """Fail the requests whose deadline has passed, and set the timer for the next one."""
        self._timer, self._timer_at = None, math.inf
        # A loop may count in whole milliseconds and call a little early.
        now = time.monotonic() + EARLY_SECONDS
        for connection in self._pending:
            if connection.ends_at <= now:
                connection.fail(TimeoutError())
            elif connection.ends_at < self._timer_at:
                self._timer_at = connection.ends_at
        if self._timer_at < math.inf:
            self._set_timer(self._timer_at)

    def _take_idle(self, ssl_context: ssl.SSLContext | None) -> HttpConnection | None:
        if ssl_context is not self._ssl:  # Connections made with another certificate are invalid.
            self.close()
            self._ssl = ssl_context
        while self._idle:
            connection = self._idle.pop()  # The latest is the least likely to be closed.
            if connection.is_open and time.monotonic() - connection.idle_since < IDLE_SECONDS:
                return connection
            connection.close()
        return None

    async def _connect(
        self, where: str, seconds: float, ssl_context: ssl.SSLContext | None
    ) -> HttpConnection:
        """Open a connection; raises NotSentError, whose text begins with `where`."""
        limit = min(CONNECT_SECONDS, seconds)
        try:
            async with asyncio.timeout(limit):
                if self._proxy is not None:
                    return await self._connect_by(self._proxy, ssl_context)
                _, connection = await asyncio.get_running_loop().create_connection(
                    HttpConnection,
                    self._host,
                    self._port,
                    ssl=ssl_context if self._is_secure else None,
                    server_hostname=self._server_name if self._is_secure else None,
                )
        except TimeoutError:
            raise NotSentError(f"{where}: no connection within {limit:g} s") from None
        except OSError as error:
            why = " ".join(str(error).split())
            by = "" if self._proxy is None else f" by the proxy {self._proxy.host}"
            raise NotSentError(
                f"{where}: Cannot connect to host {self._host}:{self._port}{by}: {why}"
            ) from None
        return connection

    async def _connect_by(
        self, proxy: "HttpProxy", ssl_context: ssl.SSLContext | None
    ) -> HttpConnection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(HttpConnection, proxy.host, proxy.port)
        if not self._is_secure:
            return connection
        assert ssl_context is not None
        try:
            host = f"[{self._host}]" if ":" in self._host else self._host
            await connection.open_tunnel(
                f"{host}:{self._port}", proxy.authorization, ssl_context, self._server_name
            )
        except BaseException:
            connection.close()
            raise
        return connection


def _where(method: str, path: str) -> str:
    return f"{method} {path.partition('?')[0]}"


class HttpProxy:
    """An HTTP proxy: `http://user:password@host:port`."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.host = parts.hostname or ""
        self.port = parts.port or 80
        self.authorization = ""  # A header line.
        if parts.username:
            user, password = unquote(parts.username), unquote(parts.password or "")
            pair = base64.b64encode(f"{user}:{password}".encode()).decode()
            self.authorization = f"Proxy-Authorization: Basic {pair}\r\n"
