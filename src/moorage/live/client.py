"""Client: one HTTP client for one cluster.

Every request has a time limit and takes a token of a bucket; it is repeated, with jitter or when
the server says so, if that is safe: what was never sent and what was turned away (429) always is,
anything else only where doing it twice is the same as doing it once.
"""

import asyncio
import random
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, Protocol

import aiohttp
from yarl import URL

from moorage.errors import KubeconfigError
from moorage.live import refusals
from moorage.live.connection import Connection
from moorage.live.credentials import Credentials
from moorage.live.exchange import Exchanges, header
from moorage.live.refusals import ApiError, Fenced, Lost, Refused, Unreached
from moorage.live.stream import Stream, keep_alive
from moorage.live.throttle import TokenBucket
from moorage.version import __version__

REQUEST_SECONDS = 30.0
CONNECT_SECONDS = 5.0
TRIES = 5
FIRST_WAIT_SECONDS = 0.05
LONGEST_WAIT_SECONDS = 5.0
LONGEST_RETRY_AFTER_SECONDS = 60.0
KEEP_ALIVE_SECONDS = 75.0
UNAUTHORIZED = 401

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

# (method, status code or 0 if there was none, seconds), for those who count.
Observer = Callable[[str, int, float], None]
# Asked just before a request is sent; False keeps it from being sent.
Fence = Callable[[], bool]


class Readable(Protocol):
    """An answer as it comes."""

    async def readany(self) -> bytes: ...


class Client:
    """See the module; used as `async with Client(connection) as client`."""

    def __init__(
        self,
        connection: Connection,
        *,
        per_second: float = 0.0,
        burst: int = 100,
        user_agent: str = "scheduler",
    ) -> None:
        self.server = connection.server
        self.observer: Observer | None = None
        self._connection = connection
        self._credentials = Credentials(connection)
        self._per_second = per_second
        self._burst = burst
        self._bucket = TokenBucket(per_second, burst)
        self._always = {
            "Accept": JSON,
            "Accept-Encoding": "identity",  # Schedulers live close to their API server.
            "User-Agent": f"moorage/{__version__} {user_agent}",
        }
        self._session: aiohttp.ClientSession | None = None
        self._server_name = connection.trust.server_name or None
        self._exchanges = Exchanges(connection.server, self._server_name)
        # Headers as they are sent, by content type, and the credentials that they were made of.
        self._written: dict[str, str] = {}
        self._written_headers: dict[str, str] | None = None
        self._random = random.Random()  # Jitter; decisions have a source of their own.

    async def __aenter__(self) -> "Client":
        connector = aiohttp.TCPConnector(
            limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS, socket_factory=_socket
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._always,
            skip_auto_headers=("Content-Type",),
            timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
        self._exchanges.close()

    def with_own_bucket(self) -> "Client":
        """The same connections with tokens of their own, for what must not hold up the rest."""
        other = object.__new__(Client)
        other.__dict__.update(self.__dict__)
        other._bucket = TokenBucket(self._per_second, self._burst)
        return other

    def without_bucket(self) -> "Client":
        """The same connections without a limit, for what must not wait: the lease."""
        other = object.__new__(Client)
        other.__dict__.update(self.__dict__)
        other._bucket = TokenBucket(0, 1)
        return other

    async def check(self) -> None:
        """Get hold of credentials now, so that a fault in them is found at the start."""
        await self._credentials.headers()

    async def get(
        self, path: str, *, seconds: float = REQUEST_SECONDS, tries: int = TRIES
    ) -> bytes:
        """Read something."""
        return await self.request("GET", path, seconds=seconds, tries=tries, repeatable=True)

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        content_type: str = JSON,
        seconds: float = REQUEST_SECONDS,
        tries: int = TRIES,
        repeatable: bool = False,
        fence: Fence | None = None,
    ) -> bytes:
        """Send a request until it is answered; the answer's body, or an ApiError."""
        attempt = 1
        while True:
            error: ApiError
            try:
                return await self._once(method, path, body, content_type, seconds, fence)
            except (aiohttp.ClientError, TimeoutError, OSError) as trouble:
                error = _of_trouble(trouble, method, path, seconds)
            except ApiError as refused:
                error = refused
            if attempt >= tries or not self._may_repeat(error, attempt, repeatable=repeatable):
                raise error
            await asyncio.sleep(self._wait_seconds(error, attempt))
            attempt += 1

    @asynccontextmanager
    async def stream(self, path: str, *, seconds: float) -> AsyncIterator[Readable]:
        """Read an answer as it comes, for as long as `seconds`."""
        try:
            await self._bucket.take()
            headers = await self._headers()
            if self._connection.proxy:
                async with await self._sent("GET", path, None, headers, seconds) as answer:
                    yield answer.content
                return
            stream = await self._exchanges.connect(
                Stream, f"GET {path.partition('?')[0]}", seconds, self._credentials.ssl
            )
            try:
                await self._begin(stream, path, headers, seconds)
                yield stream
            finally:
                stream.close()
        except (aiohttp.ClientError, TimeoutError, OSError) as trouble:
            raise _of_trouble(trouble, "GET", path, seconds) from None

    async def _begin(
        self, stream: Stream, path: str, headers: dict[str, str], seconds: float
    ) -> None:
        lines = self._exchanges.lines({**self._always, **headers})
        began = time.perf_counter()
        try:
            await stream.ask(self._exchanges.head("GET", path, lines), seconds)
        finally:
            if self.observer is not None:
                self.observer("GET", stream.status, time.perf_counter() - began)
        if not 200 <= stream.status < 300:
            retry_after = header(stream.head, b"retry-after")
            raise refusals.of_answer(stream.status, await stream.read(), retry_after)

    async def _once(
        self,
        method: str,
        path: str,
        body: bytes | None,
        content_type: str,
        seconds: float,
        fence: Fence | None,
    ) -> bytes:
        def check_fence() -> None:
            if fence is not None and not fence():
                raise Fenced("not sent: this scheduler does not lead any more")

        if wait_seconds := self._bucket.reserve():
            await asyncio.sleep(wait_seconds)
        headers = self._credentials.at_hand()
        if headers is None:
            headers = await self._headers()
        check_fence()
        if body is None:
            answer = await self._sent(method, path, None, headers, seconds)
            return await answer.read()
        if self._connection.proxy:
            headers = {**headers, "Content-Type": content_type}
            answer = await self._sent(method, path, body, headers, seconds)
            return await answer.read()
        # The fence once more when there is a connection: that may have taken its time.
        lines = self._lines(headers, content_type)
        return await self._exchanged(method, path, body, lines, seconds, check_fence)

    async def _headers(self) -> dict[str, str]:
        try:
            return await self._credentials.headers()
        except KubeconfigError as error:  # At work that is trouble like any other.
            raise Unreached(str(error)) from None

    def _lines(self, headers: dict[str, str], content_type: str) -> str:
        """The headers of a request, written once for as long as credentials are the same."""
        if headers is not self._written_headers:
            self._written_headers, self._written = headers, {}
        lines = self._written.get(content_type)
        if lines is None:
            everything = {**self._always, **headers, "Content-Type": content_type}
            lines = self._written[content_type] = self._exchanges.lines(everything)
        return lines

    async def _exchanged(
        self,
        method: str,
        path: str,
        body: bytes,
        lines: str,
        seconds: float,
        check_fence: Callable[[], None],
    ) -> bytes:
        began, code = time.perf_counter(), 0
        try:
            answer = await self._exchanges.ask(
                method,
                path,
                lines,
                body,
                seconds=seconds,
                ssl_context=self._credentials.ssl,
                before_sending=check_fence,
            )
            code = answer.status
        finally:
            if self.observer is not None:
                self.observer(method, code, time.perf_counter() - began)
        if not 200 <= code < 300:
            raise refusals.of_answer(code, answer.body, answer.header("Retry-After"))
        return answer.body

    async def _sent(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], seconds: float
    ) -> aiohttp.ClientResponse:
        """The answer's head, if it is a good one; its body is still to be read."""
        assert self._session is not None, "the client is used outside of `async with`"
        began, code = time.perf_counter(), 0
        try:
            answer = await self._session.request(
                method,
                URL(self.server + path, encoded=True),
                data=body,
                headers=headers,
                timeout=_limit(seconds),
                allow_redirects=False,
                ssl=self._credentials.ssl or True,
                server_hostname=self._server_name,
                proxy=self._connection.proxy or None,
            )
            code = answer.status
        finally:
            if self.observer is not None:
                self.observer(method, code, time.perf_counter() - began)
        if not 200 <= code < 300:
            retry_after = answer.headers.get("Retry-After")
            raise refusals.of_answer(code, await answer.read(), retry_after)
        return answer

    def _may_repeat(self, error: ApiError, attempt: int, *, repeatable: bool) -> bool:
        match error:
            case Refused(code=401):
                return attempt == 1 and self._credentials.refused()
            case Refused(code=refusals.TOO_MANY):
                return True
            case Refused():
                return repeatable and error.is_passing
            case Lost():
                return repeatable
            case _:
                return not isinstance(error, Fenced)

    def _wait_seconds(self, error: ApiError, attempt: int) -> float:
        if isinstance(error, Refused) and error.code == UNAUTHORIZED:
            return 0.0
        longest = min(FIRST_WAIT_SECONDS * 2.0**attempt, LONGEST_WAIT_SECONDS)
        jitter = self._random.uniform(longest / 2, longest)
        if error.retry_after_seconds is None:
            return jitter
        # Those who were told the same moment come back at different ones.
        return min(error.retry_after_seconds, LONGEST_RETRY_AFTER_SECONDS) + jitter


@cache
def _limit(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds, connect=min(CONNECT_SECONDS, seconds))


def _socket(address: Any) -> socket.socket:
    family, kind, protocol = address[:3]
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    keep_alive(made)
    return made


def _of_trouble(trouble: Exception, method: str, path: str, seconds: float) -> ApiError:
    where = f"{method} {path.partition('?')[0]}"
    match trouble:
        case aiohttp.ConnectionTimeoutError():
            return Unreached(f"{where}: no connection within {CONNECT_SECONDS:g} s")
        case aiohttp.ClientConnectorError() | aiohttp.ClientProxyConnectionError():
            return Unreached(f"{where}: {_words(trouble)}")
        case TimeoutError():
            return Lost(f"{where}: no answer within {seconds:g} s")
        case _:
            return Lost(f"{where}: the connection broke: {_words(trouble)}")


def _words(trouble: Exception) -> str:
    if isinstance(trouble, aiohttp.ClientConnectorError):  # Its own words name an SSLContext.
        where = f"{trouble.host}:{trouble.port}"
        return f"Cannot connect to host {where}: {' '.join(str(trouble.os_error).split())}"
    if isinstance(trouble, aiohttp.ClientPayloadError):
        return "the answer ended too soon"
    return " ".join(str(trouble).split()) or type(trouble).__name__
