"""Client: HTTP requests to one cluster.

Every request has a time limit and takes a token from a bucket (`token_bucket`). It is repeated,
after a back-off with jitter or when the server says so, if that is safe: a request that was not
sent or was refused with 429 always is; any other only if sending it twice has the effect of sending
it once.
"""

import asyncio
import copy
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random

from moorage.errors import KubeconfigError
from moorage.live import api_errors
from moorage.live import clock as clocks
from moorage.live.api_errors import (
    ApiError,
    ApiStatusError,
    FencedError,
    NoResponseError,
    NotSentError,
)
from moorage.live.clock import Clock
from moorage.live.connection import Connection
from moorage.live.credentials import Credentials
from moorage.live.http1 import ConnectionPool
from moorage.live.http_connection import header
from moorage.live.read_only import ReadOnlyTransport
from moorage.live.token_bucket import Priority, TokenBucket
from moorage.live.transport import Readable, StreamedResponse, Transport
from moorage.version import __version__

REQUEST_SECONDS = 30.0
CONNECT_SECONDS = 5.0
TRIES = 5
FIRST_WAIT_SECONDS = 0.05
LONGEST_WAIT_SECONDS = 5.0
LONGEST_RETRY_AFTER_SECONDS = 60.0

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

# (method, status code or 0 without a response, seconds), for metrics.
Observer = Callable[[str, int, float], None]
# Called just before a request is sent; False prevents that.
Fence = Callable[[], bool]


class Client:
    """See the module; used as `async with Client(connection) as client`."""

    def __init__(
        self,
        connection: Connection,
        *,
        per_second: float = 0.0,
        burst: int = 100,
        user_agent: str = "scheduler",
        transport: Transport | None = None,
        read_only: bool = False,
        clock: Clock = clocks.SYSTEM,
        random: Random | None = None,
    ) -> None:
        self.server = connection.server
        self.observer: Observer | None = None
        self.clock = clock
        self.random = random or Random()  # For jitter; decisions have their own source.
        self._connection = connection
        self._credentials = Credentials(connection, clock)
        self._per_second = per_second
        self._burst = burst
        self._bucket = TokenBucket(per_second, burst, clock.monotonic)
        self._common_headers = {
            "Accept": JSON,
            "Accept-Encoding": "identity",  # The API server is near: compression would cost time.
            "User-Agent": f"moorage/{__version__} {user_agent}",
        }
        server_name = connection.trust.server_name or None
        self._transport: Transport = transport or ConnectionPool(
            connection.server, server_name, connection.proxy
        )
        if read_only:
            self._transport = ReadOnlyTransport(self._transport)
        # Encoded headers by content type, and the credentials that they contain.
        self._encoded: dict[str, str] = {}
        self._encoded_credentials: dict[str, str] | None = None

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        self._transport.close()

    def with_own_bucket(self, *, is_limited: bool = True) -> "Client":
        """A client with the same connections and a rate limit of its own, or none."""
        other = copy.copy(self)
        per_second = self._per_second if is_limited else 0
        other._bucket = TokenBucket(per_second, self._burst, self.clock.monotonic)
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
        where = f"GET {path.partition('?')[0]}"
        try:
            headers = self._encode_headers(await self._credential_headers(), "")
            response = await self._open_stream(path, headers, seconds)
            try:
                if not 200 <= response.status < 300:
                    raise self._refusal(response.status, response.head, await response.read())
                yield response
            finally:
                response.close()
        except TimeoutError:
            raise NoResponseError(f"{where}: no answer within {seconds:g} s") from None
        except OSError as error:
            why = " ".join(str(error).split()) or type(error).__name__
            raise NoResponseError(f"{where}: the connection broke: {why}") from None

    async def _open_stream(self, path: str, headers: str, seconds: float) -> StreamedResponse:
        began, code = time.perf_counter(), 0
        try:
            found = await self._transport.stream(
                path, headers, seconds=seconds, ssl_context=self._credentials.ssl
            )
            code = found.status
        finally:
            self._observe("GET", code, began)
        return found

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
        began, code = time.perf_counter(), 0
        try:
            response = await self._transport.request(
                method,
                path,
                self._encode_headers(headers, "" if body is None else content_type),
                body,
                seconds=seconds,
                ssl_context=self._credentials.ssl,
                before_sending=check_fence,  # Again: connecting may take long.
            )
            code = response.status
        finally:
            self._observe(method, code, began)
        if not 200 <= code < 300:
            raise self._refusal(code, response.head, response.body)
        return response.body

    def _refusal(self, code: int, head: bytes, body: bytes) -> ApiStatusError:
        if code == api_errors.UNAUTHORIZED:
            self._credentials.invalidate()  # Also for a request that is not repeated.
        return api_errors.from_response(code, body, header(head, b"retry-after"))

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
            everything = {**self._common_headers, **headers}
            if content_type:
                everything["Content-Type"] = content_type
            encoded = self._encoded[content_type] = self._transport.encode_headers(everything)
        return encoded

    def _observe(self, method: str, code: int, began: float) -> None:
        if self.observer is not None:
            self.observer(method, code, time.perf_counter() - began)

    def _may_repeat(self, error: ApiError, attempt: int, *, repeatable: bool) -> bool:
        match error:
            case ApiStatusError(code=api_errors.UNAUTHORIZED):
                return attempt == 1 and self._credentials.can_change
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
        jitter = self.random.uniform(longest / 2, longest)
        if error.retry_after_seconds is None:
            return jitter
        # With jitter, so that clients with the same Retry-After do not return together.
        return min(error.retry_after_seconds, LONGEST_RETRY_AFTER_SECONDS) + jitter
