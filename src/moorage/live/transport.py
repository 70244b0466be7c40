"""Transport: how requests reach an API server. `http1` is the real one.

A simulated one connects a client to a cluster in memory, with faults, in virtual time.
"""

import ssl
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol


class HttpResponse(NamedTuple):
    """A response; the head is in lower case."""

    status: int
    head: bytes
    body: bytes


class Readable(Protocol):
    """A response body that arrives in parts."""

    async def readany(self) -> bytes:
        """The bytes received so far, at least one; empty at the end."""


class StreamedResponse(Readable, Protocol):
    """A response whose body is still to be read; the head is in lower case."""

    status: int
    head: bytes

    async def read(self) -> bytes: ...
    def close(self) -> None: ...


class Transport(Protocol):
    """Sends requests to one server.

    `request` raises NotSentError if nothing was sent, NoResponseError if the outcome is unknown,
    and what `before_sending` raises. `stream` may also raise ConnectionError and TimeoutError, and
    so may reading its response.
    """

    def encode_headers(self, headers: Mapping[str, str]) -> str: ...

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
    ) -> HttpResponse: ...

    async def stream(
        self, path: str, headers: str, *, seconds: float, ssl_context: ssl.SSLContext | None
    ) -> StreamedResponse: ...

    def close(self) -> None: ...
