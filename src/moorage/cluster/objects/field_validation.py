"""Field validation: unknown fields are dropped, and refused or reported as the request asks."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from moorage.api.schema import fields, messages
from moorage.api.schema.fields import FieldTypeError
from moorage.cluster.objects import custom_schemas
from moorage.cluster.resources import Resource
from moorage.cluster.status_errors import (
    BadRequestError,
    InvalidError,
    StatusCause,
    UnclassifiedError,
)
from moorage.cluster.store import Store
from moorage.controllers import objects
from moorage.controllers.objects import Object

STRICT, WARN, IGNORE = "Strict", "Warn", "Ignore"


class Checked(NamedTuple):
    """An object without unknown fields, and the warnings for the client."""

    object: Object
    warnings: tuple[str, ...] = ()


def check_fields(
    store: Store,
    resource: Resource,
    obj: Object,
    mode: str = IGNORE,
    *,
    applied: bool = False,
    patched: bool = False,
    duplicates: Iterable[str] = (),
) -> Checked:
    """Compare an object with the fields of its kind; raises BadRequestError.

    An applied configuration has no unknown fields in any mode. For the result of a patch it is
    InvalidError that is raised.
    """
    refuse = _invalid_patch if patched and not resource.custom else _unhandled
    try:
        conformed, unknown = _conformed(store, resource, obj)
    except FieldTypeError as error:
        raise refuse(resource, obj, str(error)) from None
    if applied and unknown:
        where = f"{objects.namespace(obj)}/{objects.name(obj)}"
        kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
        raise UnclassifiedError(
            f"failed to create typed patch object ({where}; {kind}): "
            f".{unknown[0]}: field not declared in schema"
        )
    problems = (
        *(f'unknown field "{path}"' for path in unknown),
        *(f'duplicate field "{path}"' for path in duplicates),
    )
    if problems and mode == STRICT:
        text = f"strict decoding error: {', '.join(problems)}"
        raise refuse(resource, obj, text)
    return Checked(conformed, problems if mode == WARN else ())


def _conformed(store: Store, resource: Resource, obj: Object) -> tuple[Object, list[str]]:
    if resource.custom:
        schema = resource.schema
        return (obj, []) if schema is None else custom_schemas.prune(obj, schema)
    message = messages.message_of(resource.api_version, resource.kind)
    return (obj, []) if message is None else fields.conform(message.name, obj)


def _unhandled(resource: Resource, obj: Object, problem: str) -> BadRequestError:
    kind = resource.kind
    text = f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {problem}'
    return BadRequestError(text)


def _invalid_patch(resource: Resource, obj: Object, problem: str) -> InvalidError:
    shown = msgspec.json.encode(msgspec.json.encode(obj).decode()).decode()
    cause = StatusCause("FieldValueInvalid", f"Invalid value: {shown}: {problem}", "patch")
    return InvalidError(f' "" is invalid: patch: {cause.message}', causes=[cause])
