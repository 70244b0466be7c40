"""Client: HTTP requests to one cluster.

Every request has a time limit and takes a token from a bucket (`token_bucket`). It is repeated,
after a back-off with jitter or when the server says so, if that is safe: a request that was not
sent or was refused with 429 always is; any other only if sending it twice has the effect of sending
it once.
"""

import asyncio
import copy
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
from moorage.live import api_errors
from moorage.live.api_errors import (
    ApiError,
    ApiStatusError,
    FencedError,
    NoResponseError,
    NotSentError,
)
from moorage.live.connection import Connection
from moorage.live.credentials import Credentials
from moorage.live.http1 import ConnectionPool, HttpConnection, header, keep_alive
from moorage.live.token_bucket import Priority, TokenBucket
from moorage.version import __version__

REQUEST_SECONDS = 30.0
CONNECT_SECONDS = 5.0
TRIES = 5
FIRST_WAIT_SECONDS = 0.05
LONGEST_WAIT_SECONDS = 5.0
LONGEST_RETRY_AFTER_SECONDS = 60.0
KEEP_ALIVE_SECONDS = 75.0

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

# (method, status code or 0 without a response, seconds), for metrics.
Observer = Callable[[str, int, float], None]
# Called just before a request is sent; False prevents that.
Fence = Callable[[], bool]


class Readable(Protocol):
    """A response body that arrives in parts."""

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
        self._common_headers = {
            "Accept": JSON,
            "Accept-Encoding": "identity",  # The API server is near: compression would cost time.
            "User-Agent": f"moorage/{__version__} {user_agent}",
        }
        self._session: aiohttp.ClientSession | None = None
        self._server_name = connection.trust.server_name or None
        self._pool = ConnectionPool(connection.server, self._server_name)
        # Encoded headers by content type, and the credentials that they contain.
        self._encoded: dict[str, str] = {}
        self._encoded_credentials: dict[str, str] | None = None
        self._random = random.Random()  # For jitter; decisions have their own source.

    async def __aenter__(self) -> "Client":
        connector = aiohttp.TCPConnector(
            limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS, socket_factory=_socket
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._common_headers,
            skip_auto_headers=("Content-Type",),
            timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
        self._pool.close()

    def with_own_bucket(self, *, is_limited: bool = True) -> "Client":
        """A client with the same connections and a rate limit of its own, or none."""
        other = copy.copy(self)
        other._bucket = TokenBucket(self._per_second if is_limited else 0, self._burst)
        return other

    async def check(self) -> None:
        """Use the credentials once, so that errors in them are reported at the start.

        A server that cannot be reached yet is no error.
        """
        await self._credentials.headers()
        try:
            await self.get("/version", seconds=CONNECT_SECONDS, tries=2)
        except ApiError as error:
            if isinstance(error, ApiStatusError) and error.code == api_errors.UNAUTHORIZED:
                source = self._connection.source or self.server
                raise KubeconfigError(
                    f"{source}: {self.server} refuses these credentials (401): {error}"
                ) from None

    async def get(
        self, path: str, *, seconds: float = REQUEST_SECONDS, tries: int = TRIES
    ) -> bytes:
        """Send a GET request; see `request`."""
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
        priority: Priority = Priority.URGENT,
    ) -> bytes:
        """Send a request, with retries; returns the response's body or raises ApiError."""
        attempt = 1
        while True:
            error: ApiError
            if not self._bucket.take_now():
                await self._bucket.wait(priority)
            try:
                return await self._send_once(method, path, body, content_type, seconds, fence)
            except (aiohttp.ClientError, TimeoutError, OSError) as raised:
                error = _api_error(raised, method, path, seconds)
            except ApiError as raised:
                error = raised
            if attempt >= tries or not self._may_repeat(error, attempt, repeatable=repeatable):
                raise error
            await asyncio.sleep(self._wait_seconds(error, attempt))
            attempt += 1

    @asynccontextmanager
    async def stream(self, path: str, *, seconds: float) -> AsyncIterator[Readable]:
        """Send a GET request and read the response as it arrives, for at most `seconds`."""
        if not self._bucket.take_now():
            await self._bucket.wait(Priority.URGENT)
        try:
            headers = await self._credential_headers()
            if self._connection.proxy:
                async with await self._send_aiohttp("GET", path, None, headers, seconds) as found:
                    yield found.content
                return
            where = f"GET {path.partition('?')[0]}"
            connection = await self._pool.connect(where, seconds, self._credentials.ssl)
            try:
                await self._begin_stream(connection, path, headers, seconds)
                yield connection
            finally:
                connection.close()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _api_error(error, "GET", path, seconds) from None

    async def _begin_stream(
        self, connection: HttpConnection, path: str, headers: dict[str, str], seconds: float
    ) -> None:
        encoded = self._pool.encode_headers({**self._common_headers, **headers})
        began = time.perf_counter()
        try:
            await connection.stream(self._pool.request_head("GET", path, encoded), seconds)
        finally:
            self._observe("GET", connection.status, began)
        if not 200 <= connection.status < 300:
            retry_after = header(connection.head, b"retry-after")
            raise api_errors.from_response(connection.status, await connection.read(), retry_after)

    async def _send_once(
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
                raise FencedError(api_errors.NOT_LEADER)

        headers = self._credentials.cached_headers()
        if headers is None:
            headers = await self._credential_headers()
        check_fence()
        if body is None or self._connection.proxy:
            if body is not None:
                headers = {**headers, "Content-Type": content_type}
            found = await self._send_aiohttp(method, path, body, headers, seconds)
            return await found.read()
        began, code = time.perf_counter(), 0
        try:
            response = await self._pool.request(
                method,
                path,
                self._encode_headers(headers, content_type),
                body,
                seconds=seconds,
                ssl_context=self._credentials.ssl,
                before_sending=check_fence,  # Again: connecting may take long.
            )
            code = response.status
        finally:
            self._observe(method, code, began)
        if not 200 <= code < 300:
            retry_after = header(response.head, b"retry-after")
            raise api_errors.from_response(code, response.body, retry_after)
        return response.body

    async def _credential_headers(self) -> dict[str, str]:
        try:
            return await self._credentials.headers()
        except KubeconfigError as error:  # After the start this is an error like any other.
            raise NotSentError(str(error)) from None

    def _encode_headers(self, headers: dict[str, str], content_type: str) -> str:
        """The headers of a request; encoded once per credentials and content type."""
        if headers is not self._encoded_credentials:
            self._encoded_credentials, self._encoded = headers, {}
        encoded = self._encoded.get(content_type)
        if encoded is None:
            everything = {**self._common_headers, **headers, "Content-Type": content_type}
            encoded = self._encoded[content_type] = self._pool.encode_headers(everything)
        return encoded

    async def _send_aiohttp(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], seconds: float
    ) -> aiohttp.ClientResponse:
        """The response after its head, if its status is 2xx; the body is still to be read."""
        assert self._session is not None, "the client is used outside of `async with`"
        began, code = time.perf_counter(), 0
        try:
            response = await self._session.request(
                method,
                URL(self.server + path, encoded=True),
                data=body,
                headers=headers,
                timeout=_timeout(seconds),
                allow_redirects=False,
                ssl=self._credentials.ssl or True,
                server_hostname=self._server_name,
                proxy=self._connection.proxy or None,
            )
            code = response.status
        finally:
            self._observe(method, code, began)
        if not 200 <= code < 300:
            retry_after = response.headers.get("Retry-After")
            raise api_errors.from_response(code, await response.read(), retry_after)
        return response

    def _observe(self, method: str, code: int, began: float) -> None:
        if self.observer is not None:
            self.observer(method, code, time.perf_counter() - began)

    def _may_repeat(self, error: ApiError, attempt: int, *, repeatable: bool) -> bool:
        match error:
            case ApiStatusError(code=api_errors.UNAUTHORIZED):
                return attempt == 1 and self._credentials.invalidate()
            case ApiStatusError(code=api_errors.TOO_MANY_REQUESTS):
                return True
            case ApiStatusError():
                return repeatable and error.is_transient
            case NoResponseError():
                return repeatable
            case _:
                return not isinstance(error, FencedError)

    def _wait_seconds(self, error: ApiError, attempt: int) -> float:
        if isinstance(error, ApiStatusError) and error.code == api_errors.UNAUTHORIZED:
            return 0.0
        longest = min(FIRST_WAIT_SECONDS * 2.0**attempt, LONGEST_WAIT_SECONDS)
        jitter = self._random.uniform(longest / 2, longest)
        if error.retry_after_seconds is None:
            return jitter
        # With jitter, so that clients with the same Retry-After do not return together.
        return min(error.retry_after_seconds, LONGEST_RETRY_AFTER_SECONDS) + jitter


@cache
def _timeout(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds, connect=min(CONNECT_SECONDS, seconds))


def _socket(address: Any) -> socket.socket:
    made = socket.socket(*address[:3])  # Family, type, protocol.
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    keep_alive(made)
    return made


def _api_error(error: Exception, method: str, path: str, seconds: float) -> ApiError:
    where = f"{method} {path.partition('?')[0]}"
    match error:
        case aiohttp.ConnectionTimeoutError():
            return NotSentError(f"{where}: no connection within {CONNECT_SECONDS:g} s")
        case aiohttp.ClientConnectorError() | aiohttp.ClientProxyConnectionError():
            return NotSentError(f"{where}: {_error_text(error)}")
        case TimeoutError():
            return NoResponseError(f"{where}: no answer within {seconds:g} s")
        case _:
            return NoResponseError(f"{where}: the connection broke: {_error_text(error)}")


def _error_text(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):  # Its own text names an SSLContext.
        where = f"{error.host}:{error.port}"
        return f"Cannot connect to host {where}: {' '.join(str(error.os_error).split())}"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the answer ended too soon"
    return " ".join(str(error).split()) or type(error).__name__
