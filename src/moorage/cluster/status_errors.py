"""The errors of the API: HTTP code, reason and message, rendered as a `Status` object."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from moorage.cluster.resources import Resource
from moorage.errors import InputError


class StatusCause(NamedTuple):
    """One reason for an error, perhaps with the field that it concerns."""

    reason: str
    message: str
    field: str = ""

    def to_dict(self) -> dict[str, str]:
        return {key: value for key, value in self._asdict().items() if value or key == "message"}


class StatusError(InputError):
    """A request that failed without any change."""

    code: ClassVar[int] = 400
    reason: ClassVar[str] = "BadRequest"

    def __init_subclass__(cls, code: int = 400, reason: str = "BadRequest") -> None:
        cls.code, cls.reason = code, reason

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
        """The body of the response."""
        details: dict[str, Any] = {}
        if self.name:
            details["name"] = self.name
        if self.resource is not None:
            if self.resource.group:
                details["group"] = self.resource.group
            # As an API server does: the kind for invalid objects, else the resource.
            invalid = self.reason == "Invalid"
            details["kind"] = self.resource.kind if invalid else self.resource.plural
        if self.causes:
            details["causes"] = [each.to_dict() for each in self.causes]
        if self.retry_after_seconds:
            details["retryAfterSeconds"] = self.retry_after_seconds
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if details:
            status["details"] = details
        status["code"] = self.status_code
        return status


class BadRequestError(StatusError):
    """The request cannot be parsed, or does not fit its URL."""


class UnauthorizedError(StatusError, code=401, reason="Unauthorized"):
    """The bearer token is missing or wrong."""


class ForbiddenError(StatusError, code=403, reason="Forbidden"):
    """Admission rejects the object."""


class NotFoundError(StatusError, code=404, reason="NotFound"):
    """The object or the path does not exist."""


class MethodNotAllowedError(StatusError, code=405, reason="MethodNotAllowed"):
    """The path does not support this verb."""


class NotAcceptableError(StatusError, code=406, reason="NotAcceptable"):
    """The server supports no format of the Accept header."""


class AlreadyExistsError(StatusError, code=409, reason="AlreadyExists"):
    """An object of this name exists."""


class ConflictError(StatusError, code=409, reason="Conflict"):
    """The object differs from what the request expects."""


class WrongUidError(ConflictError, code=409, reason="Conflict"):
    """The request is for another object of that name, which does not exist any more."""


class ExpiredError(StatusError, code=410, reason="Expired"):
    """The requested version is no longer in the log; the client has to list again."""


class TooLargeError(StatusError, code=413, reason="RequestEntityTooLarge"):
    """The request or the object exceeds the size limit."""


class UnsupportedMediaTypeError(StatusError, code=415, reason="UnsupportedMediaType"):
    """The format of the body is not supported."""


class InvalidError(StatusError, code=422, reason="Invalid"):
    """A field has an invalid value."""


class TooManyRequestsError(StatusError, code=429, reason="TooManyRequests"):
    """A disruption budget does not allow the eviction now."""


class InternalError(StatusError, code=500, reason="InternalError"):
    """A bug, or what an API server reports as an internal error."""


class UnclassifiedError(StatusError, code=500, reason=""):
    """An error of the client for which an API server has no code: 500 without a reason."""


class UnavailableError(StatusError, code=503, reason="ServiceUnavailable"):
    """The journal cannot be written: no write can be acknowledged."""


class RequestTimeoutError(StatusError, code=504, reason="Timeout"):
    """The server does not have the requested version yet."""


def version_too_large(version: int, newest: int) -> RequestTimeoutError:
    """A list or a watch from a version that does not exist yet."""
    cause = StatusCause("ResourceVersionTooLarge", "Too large resource version")
    text = f"Timeout: Too large resource version: {version}, current: {newest}"
    return RequestTimeoutError(text, causes=[cause], retry_after_seconds=1)


def not_found(resource: Resource, name: str) -> NotFoundError:
    """The object does not exist."""
    return NotFoundError(f'{resource.key} "{name}" not found', resource, name)


def already_exists(resource: Resource, name: str) -> AlreadyExistsError:
    """An object of this name exists."""
    return AlreadyExistsError(f'{resource.key} "{name}" already exists', resource, name)


def conflict(resource: Resource, name: str, why: str) -> ConflictError:
    """A conflict in the API server's words."""
    return ConflictError(_unfulfilled(resource.key, name, why), resource, name)


def binding_conflict(resource: Resource, name: str, why: str) -> ConflictError:
    """A conflict of the subresource `binding`."""
    part = replace(resource, plural=f"{resource.plural}/binding")
    return ConflictError(_unfulfilled(part.key, name, why), part, name)


def _unfulfilled(what: str, name: str, why: str) -> str:
    return f'Operation cannot be fulfilled on {what} "{name}": {why}'


def modified(resource: Resource, name: str) -> ConflictError:
    """The object changed since the client read it."""
    return conflict(
        resource,
        name,
        "the object has been modified; please apply your changes to the latest version "
        "and try again",
    )


def check_uid(resource: Resource, name: str, expected: str | None, found: str) -> None:
    """Raise WrongUidError if the object has another UID than expected."""
    if expected is not None and expected != found:
        why = f"Precondition failed: UID in precondition: {expected}, UID in object meta: {found}"
        raise WrongUidError(_unfulfilled(resource.key, name, why), resource, name)


def precondition_failed(
    resource: Resource, name: str, field: str, expected: str, found: str, happened: str
) -> ConflictError:
    """The object that is to be deleted is another one than expected."""
    why = (
        f"the {field} in the precondition ({expected}) does not match the {field} in record "
        f"({found}). The object might have been {happened}"
    )
    text = f'Operation cannot be fulfilled on {resource.qualified_kind} "{name}": {why}'
    return ConflictError(text, resource, name)


def forbidden(resource: Resource, name: str, why: str) -> ForbiddenError:
    """Admission rejects the object."""
    return ForbiddenError(f'{resource.key} "{name}" is forbidden: {why}', resource, name)


def invalid_options(kind: str, reason: str, field: str, text: str) -> InvalidError:
    """An option of a request has an invalid value."""
    options = Resource("meta.k8s.io", "v1", kind, "", "Cluster")
    cause = StatusCause(reason, text, field)
    message = f'{kind}.meta.k8s.io "" is invalid: {field}: {text}'
    return InvalidError(message, options, causes=[cause])


def too_old(version: int, oldest: int) -> ExpiredError:
    """The version is no longer in the log."""
    return ExpiredError(f"too old resource version: {version} ({oldest})")
