"""HttpConnection: one HTTP/1.1 connection of a client, as a protocol of the event loop.

Only what API servers send is parsed: a status, the headers as bytes, and a body with a length, in
chunks, or up to the end of the connection.
"""

import asyncio
import math
import socket
import ssl
from typing import cast

from moorage.live.transport import HttpResponse

NO_BODY = (204, 304)
# Beyond this many unread bytes a response stays in the socket until it is read.
BUFFER_BYTES = 1 << 20
NOT_HTTP = "the answer is not HTTP"

# A peer that disappears without closing is detected after half a minute, not after hours.
KEEP_ALIVE = (
    ("SO_KEEPALIVE", socket.SOL_SOCKET, 1),
    ("TCP_KEEPIDLE", socket.IPPROTO_TCP, 15),
    ("TCP_KEEPINTVL", socket.IPPROTO_TCP, 5),
    ("TCP_KEEPCNT", socket.IPPROTO_TCP, 3),
)


class HttpConnection(asyncio.Protocol):
    """One connection, which carries one request at a time.

    `exchange` returns a future of the whole response, `stream` waits for the head and lets the
    caller read the body. Both raise ConnectionError if the connection breaks, and what `fail` was
    called with.
    """

    def __init__(self) -> None:
        self.idle_since = 0.0
        self.ends_at = math.inf  # The deadline of a pooled request.
        self.is_open = False
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        # What the caller waits for: the response of `exchange`, or the next part of a stream.
        self._answer: asyncio.Future[HttpResponse] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._is_paused = False
        self._error: Exception | None = None
        self._reset()

    def _reset(self) -> None:
        self.status = 0
        self.head = b""  # In lower case.
        self._is_complete = False
        self._chunks: list[bytes] = []
        self._buffered = 0
        self._rest = b""  # Bytes that cannot be parsed yet: part of the head or of a chunk's size.
        self._is_chunked = False
        self._left = 0  # Bytes left of this chunk or of the body; -1: up to the connection's end.
        self._is_behind_chunk = False  # The line end behind a chunk is still to come.
        self._is_last = False  # The chunk of size 0 was read; only trailers follow.

    # Requests and responses

    def exchange(self, request: bytes) -> asyncio.Future[HttpResponse]:
        """Send a request; the future has the whole response, or the error."""
        answer = self._answer = asyncio.get_running_loop().create_future()
        self._send(request)
        return answer

    def _send(self, request: bytes) -> None:
        assert self._transport is not None
        self._reset()
        self._transport.write(request)
        if not self.is_open:
            self.fail(ConnectionResetError())

    async def stream(self, request: bytes, seconds: float) -> None:
        """Send a request and wait for the head; the whole response may take `seconds`."""
        self._timer = asyncio.get_running_loop().call_later(seconds, self.fail, TimeoutError())
        self._send(request)
        await self._read_head()

    async def open_tunnel(
        self, target: str, authorization: str, context: ssl.SSLContext, server_name: str
    ) -> None:
        """Let a proxy connect to the target, and use TLS from there on."""
        assert self._transport is not None
        head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{authorization}\r\n"
        self._send(head.encode("latin-1"))
        await self._read_head()
        if self.status != 200:
            raise ConnectionRefusedError(f"the proxy answered {self.status}")
        self._reset()
        secure = await asyncio.get_running_loop().start_tls(
            self._transport, self, context, server_hostname=server_name
        )
        assert secure is not None
        self._transport = secure

    async def readany(self) -> bytes:
        """The bytes received so far, at least one; empty at the end of the response."""
        while not self._chunks:
            if self._is_complete:
                return b""
            await self._next_part()
        found = b"".join(self._chunks)
        self._chunks.clear()
        self._buffered = 0
        if self._is_paused and self._transport is not None and not self._transport.is_closing():
            self._is_paused = False
            self._transport.resume_reading()
        return found

    async def read(self) -> bytes:
        """The rest of the response."""
        found = []
        while chunk := await self.readany():
            found.append(chunk)
        return b"".join(found)

    @property
    def is_reusable(self) -> bool:
        """Whether another request may be sent after this response."""
        return (
            self.is_open
            and self._is_complete
            and self.head.startswith(b"http/1.1")
            and (b"\r\nconnection:" not in self.head or header(self.head, b"connection") != "close")
        )

    def close(self) -> None:
        """Close the connection at once."""
        self.is_open = False
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()

    def fail(self, error: Exception) -> None:
        """Make reading raise an error, unless the response is complete."""
        self._error = self._error or error
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(self._error)
        self._wake()

    async def _read_head(self) -> None:
        while not self.status:
            await self._next_part()

    def _next_part(self) -> asyncio.Future[None]:
        """Done when more of a streamed response has arrived, or it has failed."""
        if self._error is not None:
            raise self._error
        self._waiter = asyncio.get_running_loop().create_future()
        return self._waiter

    def _wake(self) -> None:
        """Let the caller continue with what has arrived."""
        answer = self._answer
        if answer is not None:
            if self._is_complete and not answer.done():
                answer.set_result(HttpResponse(self.status, self.head, b"".join(self._chunks)))
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # Callbacks of the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are not derived from it.
        self.is_open = True
        keep_alive(transport.get_extra_info("socket"))

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if self._is_complete:
            return
        if exc is None and self.status and (self._left < 0 or self._is_last):
            self._is_complete = True
            self._wake()
        else:
            self.fail(exc if isinstance(exc, ConnectionError) else ConnectionResetError())

    def data_received(self, data: bytes) -> None:
        if self._is_complete:  # No request is pending: the peer is out of step.
            self.close()
            return
        if self._rest:
            data = self._rest + data
            self._rest = b""
        try:
            if not self.status:
                data = self._parse_head(data)
            if self._is_chunked:
                self._parse_chunks(data)
            elif self.status and data:
                self._parse_body(data)
        except ValueError:
            self.fail(ConnectionResetError(NOT_HTTP))
            self.close()
            return
        if self._answer is None:
            self._limit_buffer(len(data))
        elif self._left < 0:  # Such a connection could not be used again.
            self.fail(ConnectionResetError(NOT_HTTP))
        self._wake()

    def _limit_buffer(self, received: int) -> None:
        self._buffered += received
        if self._buffered > BUFFER_BYTES and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def _parse_head(self, data: bytes) -> bytes:
        """Parse the head, if it is complete; returns the bytes behind it."""
        while (end := data.find(b"\r\n\r\n")) >= 0:
            if not data.startswith(b"HTTP/1."):
                raise ValueError(NOT_HTTP)
            status, head, data = int(data[9:12]), data[:end].lower(), data[end + 4 :]
            if status >= 200:  # A 1xx response precedes the real one.
                self.status, self.head = status, head
                self._is_chunked = b"\r\ntransfer-encoding:" in head and _is_chunked(head)
                if not self._is_chunked:
                    length = "0" if status in NO_BODY else header(head, b"content-length")
                    self._left = -1 if length is None else int(length)
                    self._is_complete = self._left == 0
                return data
        self._rest = data
        return b""

    def _parse_body(self, data: bytes) -> None:
        if self._left < 0:
            self._chunks.append(data)
        elif not self._is_complete:
            self._chunks.append(data[: self._left])
            self._left = max(self._left - len(data), 0)
            self._is_complete = not self._left

    def _parse_chunks(self, data: bytes) -> None:
        at = 0
        while not self._is_complete:
            if self._left:
                chunk = data[at : at + self._left]
                if not chunk:
                    return
                self._chunks.append(chunk)
                at += len(chunk)
                self._left -= len(chunk)
                self._is_behind_chunk = self._left == 0
                continue
            end = data.find(b"\r\n", at)
            if end < 0:
                self._rest = data[at:]
                return
            if self._is_last:
                self._is_complete = True
                return
            if self._is_behind_chunk:
                self._is_behind_chunk = False
                if end != at:
                    raise ValueError("a chunk is longer than its size")
                at = end + 2
                continue
            size = int(data[at:end].partition(b";")[0], 16)
            at, behind = end + 2, end + 2 + size
            if size and data.startswith(b"\r\n", behind):  # Usually the whole chunk is there.
                self._chunks.append(data[at:behind])
                at = behind + 2
            else:
                self._left = size
                self._is_last = size == 0


def keep_alive(made: socket.socket) -> None:
    """Let the kernel probe an idle connection."""
    for name, level, value in KEEP_ALIVE:
        if hasattr(socket, name):  # Not every system has every option.
            made.setsockopt(level, getattr(socket, name), value)


def _is_chunked(head: bytes) -> bool:
    return "chunked" in (header(head, b"transfer-encoding") or "")


def header(head: bytes, name: bytes) -> str | None:
    """The value of a header, or None; the head and the name are in lower case."""
    _, found, rest = head.partition(b"\r\n%b:" % name)
    return rest.partition(b"\r\n")[0].strip().decode("latin-1") if found else None
