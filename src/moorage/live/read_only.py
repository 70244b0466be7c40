"""ReadOnlyTransport: a transport that refuses every method but GET.

Below it there is only the network, so nothing above it can write to the cluster, by mistake or
otherwise.
"""

import ssl
from collections.abc import Callable, Mapping

from moorage.live.transport import HttpResponse, StreamedResponse, Transport

GET = "GET"


class ReadOnlyError(RuntimeError):
    """A bug of ours: a request that could write. No caller handles it, so the process stops."""


class ReadOnlyTransport:
    """See the module."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def encode_headers(self, headers: Mapping[str, str]) -> str:
        return self._transport.encode_headers(headers)

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
        """Send a GET request; raise ReadOnlyError for any other."""
        if method != GET or body is not None:
            raise ReadOnlyError(f"{method} {path} is refused: this client is read-only")
        return await self._transport.request(
            method,
            path,
            headers,
            body,
            seconds=seconds,
            ssl_context=ssl_context,
            before_sending=before_sending,
        )

    async def stream(
        self, path: str, headers: str, *, seconds: float, ssl_context: ssl.SSLContext | None
    ) -> StreamedResponse:
        """Send a GET request whose response is a stream."""
        return await self._transport.stream(path, headers, seconds=seconds, ssl_context=ssl_context)

    def close(self) -> None:
        self._transport.close()
