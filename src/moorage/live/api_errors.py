"""How a request to the API server can fail.

ApiError
├── ApiStatusError    the server answered with an error status; final, unless it is a 5xx
├── NotSentError      the request was not sent: there is no connection
│   └── FencedError       it must not be sent, because this scheduler is not the leader any more
└── NoResponseError   the request was sent, but there is no response: the outcome is unknown
"""

import msgspec
from msgspec import Struct

from moorage.errors import MoorageError

UNAUTHORIZED = 401
FORBIDDEN = 403
NOT_FOUND = 404
NOT_SERVED = (FORBIDDEN, NOT_FOUND)
CONFLICT = 409
GONE = 410
TOO_MANY_REQUESTS = 429

# Why a request is not sent by a scheduler that has lost the lease.
NOT_LEADER = "not sent: this scheduler does not lead any more"


class ApiError(MoorageError):
    """A request that did not succeed."""

    retry_after_seconds: float | None = None


class NotSentError(ApiError):
    """The request was not sent."""


class FencedError(NotSentError):
    """The request must not be sent any more."""


class NoResponseError(ApiError):
    """The request was sent, but there is no response."""


class _Details(Struct, frozen=True, rename="camel"):
    retry_after_seconds: float | None = None


class ApiStatus(Struct, frozen=True, rename="camel"):
    """Kubernetes' `Status` object: why a request failed."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


class ApiStatusError(ApiError):
    """The server answered with an error status."""

    def __init__(self, code: int, message: str, reason: str = "") -> None:
        super().__init__(code, message, reason)
        self.code = code
        self.message = message
        self.reason = reason

    def __str__(self) -> str:
        return self.message or f"HTTP status {self.code}"

    @property
    def is_final(self) -> bool:
        """Whether nothing was changed; after a 5xx the change may have been made all the same."""
        return self.code < 500

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed a little later."""
        return self.code == TOO_MANY_REQUESTS or self.code >= 500


def from_response(code: int, body: bytes, retry_after: str | None) -> ApiStatusError:
    """The error for a response whose status is not 2xx."""
    try:
        status = msgspec.json.decode(body, type=ApiStatus)
    except msgspec.MsgspecError:
        first = body[:200].decode(errors="replace").strip().split("\n")[0]
        status = ApiStatus(message=first or f"HTTP status {code}")
    error = ApiStatusError(code, status.message, status.reason)
    if retry_after is not None and retry_after.strip().isdigit():
        error.retry_after_seconds = float(retry_after)
    elif status.details is not None:
        error.retry_after_seconds = status.details.retry_after_seconds
    return error


def from_watch_event(raw: bytes | msgspec.Raw) -> ApiStatusError:
    """The error for an ERROR event of a watch."""
    try:
        status = msgspec.json.decode(raw, type=ApiStatus)
    except msgspec.MsgspecError:
        status = ApiStatus(code=500, message="the watch ended with an error that cannot be read")
    return ApiStatusError(status.code, status.message, status.reason)
