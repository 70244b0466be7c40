"""How a request to the API server can fail, as a tree.

ApiError
├── Refused      it answered, and the answer is no; for certain, unless it is a 5xx
├── Unreached    it was never sent: there is no connection
│   └── Fenced       nor may it be, because we do not lead any more
└── Lost         it was sent, and nobody knows what became of it
"""

import msgspec
from msgspec import Struct

from moorage.errors import MoorageError

FORBIDDEN = 403
NOT_FOUND = 404
NOT_SERVED = (FORBIDDEN, NOT_FOUND)
GONE = 410
TOO_MANY = 429


class ApiError(MoorageError):
    """A request that came to nothing."""

    retry_after_seconds: float | None = None


class Unreached(ApiError):
    """The request was not sent."""


class Fenced(Unreached):
    """The request must not be sent any more."""


class Lost(ApiError):
    """Sent, but not answered."""


class _Details(Struct, frozen=True, rename="camel"):
    retry_after_seconds: float | None = None


class Status(Struct, frozen=True, rename="camel"):
    """Kubernetes' own words for a failure."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


class Refused(ApiError):
    """The server answered, and the answer is no."""

    def __init__(self, code: int, message: str, reason: str = "") -> None:
        super().__init__(code, message, reason)
        self.code = code
        self.message = message
        self.reason = reason

    def __str__(self) -> str:
        return self.message or f"HTTP status {self.code}"

    @property
    def is_certain(self) -> bool:
        """Whether nothing was done; a server in trouble may have done it all the same."""
        return self.code < 500

    @property
    def is_passing(self) -> bool:
        """Whether the same request may be granted a little later."""
        return self.code == TOO_MANY or self.code >= 500


def of_answer(code: int, body: bytes, retry_after: str | None) -> Refused:
    """What an answer other than 2xx says."""
    try:
        status = msgspec.json.decode(body, type=Status)
    except msgspec.MsgspecError:
        first = body[:200].decode(errors="replace").strip().split("\n")[0]
        status = Status(message=first or f"HTTP status {code}")
    refused = Refused(code, status.message, status.reason)
    refused.retry_after_seconds = _retry_after(retry_after, status)
    return refused


def of_watch(raw: bytes | msgspec.Raw) -> Refused:
    """What an ERROR line of a watch says."""
    try:
        status = msgspec.json.decode(raw, type=Status)
    except msgspec.MsgspecError:
        status = Status(code=500, message="the watch ended with an error that cannot be read")
    return Refused(status.code, status.message, status.reason)


def _retry_after(header: str | None, status: Status) -> float | None:
    if header is not None and header.strip().isdigit():
        return float(header)
    return status.details.retry_after_seconds if status.details is not None else None
