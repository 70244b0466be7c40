"""Refusals that name a field, worded as an API server does."""

from typing import Any

import msgspec

from moorage.serve.refusals import Cause, Invalid
from moorage.serve.resources import Resource


def invalid(resource: Resource, name: str, field: str, value: Any, rule: str) -> Invalid:
    """The refusal of one field's value."""
    return refuse(resource, name, [cause(field, value, rule)])


def required(resource: Resource, name: str, field: str, rule: str = "") -> Invalid:
    """The refusal of a field's absence."""
    text = f"Required value: {rule}" if rule else "Required value"
    return refuse(resource, name, [Cause("FieldValueRequired", text, field)])


def may_not_change(
    resource: Resource, name: str, field: str, rule: str = "field is immutable"
) -> Invalid:
    """The refusal of a change."""
    return refuse(resource, name, [Cause("FieldValueForbidden", f"Forbidden: {rule}", field)])


def refuse(resource: Resource, name: str, causes: list[Cause]) -> Invalid:
    """One refusal for everything that is wrong."""
    lines = [f"{cause.field}: {cause.message}" for cause in causes]
    text = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    return Invalid(
        f'{resource.qualified_kind} "{name}" is invalid: {text}', resource, name, causes=causes
    )


def cause(field: str, value: Any, rule: str) -> Cause:
    """One thing that is wrong; without a rule, that it is missing."""
    if not rule:
        return Cause("FieldValueRequired", "Required value", field)
    shown = msgspec.json.encode(value).decode() if value not in ("", None) else '""'
    return Cause("FieldValueInvalid", f"Invalid value: {shown[:200]}: {rule}", field)
