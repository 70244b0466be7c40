"""Stream: one long answer, read as it comes: a watch.

Of each pod a watch tells three times or more, and mostly in a piece of its own. So as little as can
be lies between the socket and the lines: a status, the headers, then what the chunks hold.
"""

import asyncio
import socket
from typing import cast

from moorage.live.exchange import header

# More than this is left in the socket until somebody has read it.
ROOM = 1 << 20
NOT_HTTP = "the answer is not HTTP"

# A peer that is gone without a word is noticed after half a minute, not after hours.
KEEP_ALIVE = (
    ("SO_KEEPALIVE", socket.SOL_SOCKET, 1),
    ("TCP_KEEPIDLE", socket.IPPROTO_TCP, 15),
    ("TCP_KEEPINTVL", socket.IPPROTO_TCP, 5),
    ("TCP_KEEPCNT", socket.IPPROTO_TCP, 3),
)


class Stream(asyncio.Protocol):
    """A connection for one request, which ends with its answer.

    Reading raises ConnectionError if it breaks, and TimeoutError if it lasts too long.
    """

    def __init__(self) -> None:
        self.status = 0
        self.head = b""  # In small letters.
        self._transport: asyncio.Transport | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._pieces: list[bytes] = []
        self._waiting_bytes = 0
        self._is_paused = False
        self._trouble: Exception | None = None
        self._is_over = False
        # What cannot be understood yet: a part of the head, or of the line before a chunk.
        self._rest = b""
        self._is_chunked = False
        self._left = 0  # Bytes of this chunk, or of the body; less than 0 if nobody knows.
        self._is_behind = False  # A chunk was read, the end of line behind it was not.

    async def ask(self, request: bytes, seconds: float) -> None:
        """Send a request and wait for the head of its answer; all of it may take so long."""
        assert self._transport is not None
        self._alarm = asyncio.get_running_loop().call_later(seconds, self._fail, TimeoutError())
        self._transport.write(request)
        while not self.status:
            await self._more()

    async def readany(self) -> bytes:
        """What has come, as soon as there is something; empty at the end."""
        while not self._pieces:
            if self._is_over:
                return b""
            await self._more()
        found = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._waiting_bytes = 0
        if self._is_paused and self._transport is not None and not self._transport.is_closing():
            self._is_paused = False
            self._transport.resume_reading()
        return found

    async def read(self) -> bytes:
        """All that is still to come."""
        found = []
        while piece := await self.readany():
            found.append(piece)
        return b"".join(found)

    def close(self) -> None:
        """Hang up."""
        if self._alarm is not None:
            self._alarm.cancel()
        if self._transport is not None:
            self._transport.abort()

    async def _more(self) -> None:
        if self._trouble is not None:
            raise self._trouble
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, trouble: Exception) -> None:
        self._trouble = self._trouble or trouble
        self._wake()

    # What the loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are not derived from it.
        keep_alive(transport.get_extra_info("socket"))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._is_over:
            return
        if self.status and self._left < 0 and exc is None:
            self._is_over = True  # It lasts until the connection ends.
            self._wake()
        else:
            self._fail(exc if isinstance(exc, ConnectionError) else ConnectionResetError())

    def data_received(self, data: bytes) -> None:
        if self._rest:
            data = self._rest + data
            self._rest = b""
        try:
            if not self.status:
                data = self._take_head(data)
            if self._is_chunked:
                self._take_chunks(data)
            elif self.status and data:
                self._take_body(data)
        except ValueError:
            self._fail(ConnectionResetError(NOT_HTTP))
            self.close()
            return
        if self._waiting_bytes > ROOM and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def _take_head(self, data: bytes) -> bytes:
        """Understand the head, if it is complete; what lies behind it."""
        while (end := data.find(b"\r\n\r\n")) >= 0:
            if not data.startswith(b"HTTP/1."):
                raise ValueError(NOT_HTTP)
            status, head, data = int(data[9:12]), data[:end].lower(), data[end + 4 :]
            if status >= 200:
                length = header(head, b"content-length")
                self._is_chunked = "chunked" in (header(head, b"transfer-encoding") or "")
                self._left = 0 if self._is_chunked else -1 if length is None else int(length)
                self._is_over = not self._is_chunked and self._left == 0
                self.status, self.head = status, head
                return data
        self._rest = data
        return b""

    def _take_body(self, data: bytes) -> None:
        if self._left < 0:
            self._add(data)
        elif not self._is_over:
            self._add(data[: self._left])
            self._left = max(self._left - len(data), 0)
            self._is_over = self._left == 0

    def _take_chunks(self, data: bytes) -> None:
        at = 0
        while not self._is_over:
            if self._left:
                piece = data[at : at + self._left]
                if not piece:
                    return
                self._add(piece)
                at += len(piece)
                self._left -= len(piece)
                self._is_behind = self._left == 0
                continue
            end = data.find(b"\r\n", at)
            if end < 0:
                self._rest = data[at:]
                return
            if self._is_behind:
                self._is_behind = False
                if end != at:
                    raise ValueError("a chunk is longer than it says")
                at = end + 2
                continue
            size = int(data[at:end].partition(b";")[0], 16)
            at, behind = end + 2, end + 2 + size
            if size and data[behind : behind + 2] == b"\r\n":  # All of it is there, as usual.
                self._add(data[at:behind])
                at = behind + 2
            else:
                self._left = size
                self._is_over = size == 0

    def _add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._waiting_bytes += len(piece)


def keep_alive(made: socket.socket) -> None:
    """Have a socket ask its peer, now and then, whether it is still there."""
    for name, level, value in KEEP_ALIVE:
        if hasattr(socket, name):  # Not every system has every one.
            made.setsockopt(level, getattr(socket, name), value)
