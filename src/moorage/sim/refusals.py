"""Requests that an API server refuses: HTTP code, reason and message of the response.

RequestRefused (an InputError, so that a command prints the one line)
├── NotFound          404
├── AlreadyExists     409
├── Conflict          409   stale, being deleted, already bound
│   └── WrongUID      409   another object of that name
├── Forbidden         422   a field that may not be changed like this
└── Denied            403   admission refuses it
"""

from typing import ClassVar

from moorage.api.kinds import Kind
from moorage.api.meta import KubeObject
from moorage.errors import InputError


class RequestRefused(InputError):
    """A request that the API server refused; nothing changed."""

    code: ClassVar[int] = 400
    reason: ClassVar[str] = "BadRequest"


class NotFound(RequestRefused):
    """There is no such object."""

    code = 404
    reason = "NotFound"


class AlreadyExists(RequestRefused):
    """There is one by that name."""

    code = 409
    reason = "AlreadyExists"


class Conflict(RequestRefused):
    """The object is not, or no longer, what the request takes it for."""

    code = 409
    reason = "Conflict"


class WrongUID(Conflict):
    """A namesake is meant, which is gone."""


class Forbidden(RequestRefused):
    """A field that may not be changed like this."""

    code = 422
    reason = "Invalid"


class Denied(RequestRefused):
    """An admission plugin is against it."""

    code = 403
    reason = "Forbidden"


def not_found(plural: str, name: str) -> NotFound:
    """As kubectl prints it."""
    return NotFound(f'{plural} "{name}" not found')


def cannot_be_fulfilled(plural: str, name: str, why: str) -> Conflict:
    """As the API server words every conflict."""
    return Conflict(_unfulfilled(plural, name, why))


def forbidden(kind: Kind, name: str, why: str) -> Denied:
    """As the API server words what admission refuses."""
    plural = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
    return Denied(f'{plural} "{name}" is forbidden: {why}')


def check_uid(plural: str, obj: KubeObject, uid: str) -> None:
    """Refuse if a namesake is meant."""
    if obj.uid != uid:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {obj.uid}"
        raise WrongUID(_unfulfilled(plural, obj.name, why))


def _unfulfilled(plural: str, name: str, why: str) -> str:
    return f'Operation cannot be fulfilled on {plural} "{name}": {why}'
