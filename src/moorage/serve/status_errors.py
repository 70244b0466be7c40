"""The errors of the API: HTTP code, reason and message, rendered as a `Status` object."""

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

from moorage.errors import InputError
from moorage.serve.resources import Resource


class StatusCause(NamedTuple):
    """One thing that is wrong: what sort, which text, and where."""

    reason: str
    message: str
    field: str = ""


class StatusError(InputError):
    """A request that was turned down; nothing changed."""

    code: ClassVar[int] = 400
    reason: ClassVar[str] = "BadRequest"

    def __init__(
        self,
        message: str,
        resource: Resource | None = None,
        name: str = "",
        *,
        causes: Iterable[StatusCause] = (),
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


def _cause(cause: StatusCause) -> dict[str, str]:
    told = {"reason": cause.reason, "message": cause.message}
    return told | {"field": cause.field} if cause.field else told


class BadRequestError(StatusError):
    """A request that cannot be understood."""


class UnauthorizedError(StatusError):
    """No token, or a wrong one."""

    code = 401
    reason = "Unauthorized"


class ForbiddenError(StatusError):
    """Admission is against it."""

    code = 403
    reason = "Forbidden"


class NotFoundError(StatusError):
    """There is no such object, or no such place."""

    code = 404
    reason = "NotFound"


class MethodNotAllowedError(StatusError):
    """The place is there, but not for this verb."""

    code = 405
    reason = "MethodNotAllowed"


class NotAcceptableError(StatusError):
    """The client takes no format that is spoken here."""

    code = 406
    reason = "NotAcceptable"


class AlreadyExistsError(StatusError):
    """There is one by that name."""

    code = 409
    reason = "AlreadyExists"


class ConflictError(StatusError):
    """The object is not, or no longer, what the request takes it for."""

    code = 409
    reason = "Conflict"


class ExpiredError(StatusError):
    """The version asked for is no longer remembered; list again."""

    code = 410
    reason = "Expired"


class TooLargeError(StatusError):
    """More than anybody needs to send."""

    code = 413
    reason = "RequestEntityTooLarge"


class UnsupportedMediaTypeError(StatusError):
    """A body in a format that is not read here."""

    code = 415
    reason = "UnsupportedMediaType"


class InvalidError(StatusError):
    """A field that does not hold."""

    code = 422
    reason = "Invalid"


class TooManyRequestsError(StatusError):
    """Not now: a disruption budget is in the way."""

    code = 429
    reason = "TooManyRequests"


class UnavailableError(StatusError):
    """The journal cannot be written: nothing can be acknowledged any more."""

    code = 503
    reason = "ServiceUnavailable"


def not_found(resource: Resource, name: str) -> NotFoundError:
    """As kubectl prints it."""
    return NotFoundError(f'{resource.key} "{name}" not found', resource, name)


def already_exists(resource: Resource, name: str) -> AlreadyExistsError:
    """As kubectl prints it."""
    return AlreadyExistsError(f'{resource.key} "{name}" already exists', resource, name)


def conflict(resource: Resource, name: str, why: str) -> ConflictError:
    """As the API server words every conflict."""
    text = f'Operation cannot be fulfilled on {resource.key} "{name}": {why}'
    return ConflictError(text, resource, name)


def modified(resource: Resource, name: str) -> ConflictError:
    """Somebody else was quicker."""
    return conflict(
        resource,
        name,
        "the object has been modified; please apply your changes to the latest version "
        "and try again",
    )


def uid_differs(resource: Resource, name: str, wanted: str, found: str) -> ConflictError:
    """A namesake is meant."""
    why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    return conflict(resource, name, why)


def forbidden(resource: Resource, name: str, why: str) -> ForbiddenError:
    """As admission words it."""
    return ForbiddenError(f'{resource.key} "{name}" is forbidden: {why}', resource, name)


def too_old(version: int, oldest: int) -> ExpiredError:
    """As the API server's watches say it."""
    return ExpiredError(f"too old resource version: {version} ({oldest})")
