"""What the API says when it will not: code, reason and text, as a `Status` object tells them.

Refusal
├── BadRequest        400   cannot be understood
├── Unauthorized      401   no token, or a wrong one
├── Forbidden         403   admission is against it
├── NotFound          404   no such object
├── MethodNotAllowed  405   not with this verb
├── NotAcceptable     406   not in this format
├── AlreadyExists     409   there is one by that name
├── Conflict          409   not, or no longer, what the request takes it for
├── Gone              410   the version asked for is no longer remembered
├── TooLarge          413   more than anybody needs to send
├── UnsupportedMedia  415   a body in a format that is not read here
├── Invalid           422   a field that does not hold; names the field
├── TooManyRequests   429   a disruption budget is in the way
└── Unavailable       503   nothing can be made durable any more
"""

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

from moorage.errors import InputError
from moorage.serve.resources import Resource


class Cause(NamedTuple):
    """One thing that is wrong: what sort, which text, and where."""

    reason: str
    message: str
    field: str = ""


class Refusal(InputError):
    """A request that was turned down; nothing changed."""

    code: ClassVar[int] = 400
    reason: ClassVar[str] = "BadRequest"

    def __init__(
        self,
        message: str,
        resource: Resource | None = None,
        name: str = "",
        *,
        causes: Iterable[Cause] = (),
        retry_after_seconds: int = 0,
        code: int = 0,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.resource = resource
        self.name = name
        self.causes = tuple(causes)
        self.retry_after_seconds = retry_after_seconds
        self.status_code = code or self.code

    def to_status(self) -> dict[str, Any]:
        """The answer's body."""
        details: dict[str, Any] = {}
        if self.name:
            details["name"] = self.name
        if self.resource is not None:
            if self.resource.group:
                details["group"] = self.resource.group
            # An API server names the kind here for invalid objects, else the resource.
            invalid = self.reason == "Invalid"
            details["kind"] = self.resource.kind if invalid else self.resource.plural
        if self.causes:
            details["causes"] = [_cause(each) for each in self.causes]
        if self.retry_after_seconds:
            details["retryAfterSeconds"] = self.retry_after_seconds
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if details:
            status["details"] = details
        status["code"] = self.status_code
        return status


def _cause(cause: Cause) -> dict[str, str]:
    told = {"reason": cause.reason, "message": cause.message}
    return told | {"field": cause.field} if cause.field else told


class BadRequest(Refusal):
    """A request that cannot be understood."""


class Unauthorized(Refusal):
    """No token, or a wrong one."""

    code = 401
    reason = "Unauthorized"


class Forbidden(Refusal):
    """Admission is against it."""

    code = 403
    reason = "Forbidden"


class NotFound(Refusal):
    """There is no such object, or no such place."""

    code = 404
    reason = "NotFound"


class MethodNotAllowed(Refusal):
    """The place is there, but not for this verb."""

    code = 405
    reason = "MethodNotAllowed"


class NotAcceptable(Refusal):
    """The client takes no format that is spoken here."""

    code = 406
    reason = "NotAcceptable"


class AlreadyExists(Refusal):
    """There is one by that name."""

    code = 409
    reason = "AlreadyExists"


class Conflict(Refusal):
    """The object is not, or no longer, what the request takes it for."""

    code = 409
    reason = "Conflict"


class Gone(Refusal):
    """The version asked for is no longer remembered; list again."""

    code = 410
    reason = "Expired"


class TooLarge(Refusal):
    """More than anybody needs to send."""

    code = 413
    reason = "RequestEntityTooLarge"


class UnsupportedMedia(Refusal):
    """A body in a format that is not read here."""

    code = 415
    reason = "UnsupportedMediaType"


class Invalid(Refusal):
    """A field that does not hold."""

    code = 422
    reason = "Invalid"


class TooManyRequests(Refusal):
    """Not now: a disruption budget is in the way."""

    code = 429
    reason = "TooManyRequests"


class Unavailable(Refusal):
    """The journal cannot be written: nothing can be acknowledged any more."""

    code = 503
    reason = "ServiceUnavailable"


def not_found(resource: Resource, name: str) -> NotFound:
    """As kubectl prints it."""
    return NotFound(f'{resource.key} "{name}" not found', resource, name)


def already_exists(resource: Resource, name: str) -> AlreadyExists:
    """As kubectl prints it."""
    return AlreadyExists(f'{resource.key} "{name}" already exists', resource, name)


def conflict(resource: Resource, name: str, why: str) -> Conflict:
    """As the API server words every conflict."""
    text = f'Operation cannot be fulfilled on {resource.key} "{name}": {why}'
    return Conflict(text, resource, name)


def modified(resource: Resource, name: str) -> Conflict:
    """Somebody else was quicker."""
    return conflict(
        resource,
        name,
        "the object has been modified; please apply your changes to the latest version "
        "and try again",
    )


def uid_differs(resource: Resource, name: str, wanted: str, found: str) -> Conflict:
    """A namesake is meant."""
    why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    return conflict(resource, name, why)


def forbidden(resource: Resource, name: str, why: str) -> Forbidden:
    """As admission words it."""
    return Forbidden(f'{resource.key} "{name}" is forbidden: {why}', resource, name)


def too_old(version: int, oldest: int) -> Gone:
    """As the API server's watches say it."""
    return Gone(f"too old resource version: {version} ({oldest})")
