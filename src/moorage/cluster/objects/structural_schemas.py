"""Whether the schema of a CustomResourceDefinition is structural: what Kubernetes demands of it.

The type of every value is stated outside of `allOf`, `anyOf`, `oneOf` and `not`, and these add
conditions only. Pruning, defaults and rules in CEL depend on it.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from moorage.cluster.status_errors import StatusCause

Schema = dict[str, Any]

_INT_OR_STRING = "x-kubernetes-int-or-string"
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
# What must not be inside a condition, and how the error says it.
_FORBIDDEN = {
    "type": "empty",
    "additionalProperties": "undefined",
    "default": "undefined",
    "title": "empty",
    "description": "empty",
    "nullable": "false",
    _PRESERVE: "false",
    _EMBEDDED: "false",
    _INT_OR_STRING: "false",
    "x-kubernetes-list-map-keys": "empty",
    "x-kubernetes-list-type": "undefined",
    "x-kubernetes-map-type": "undefined",
    "x-kubernetes-validations": "empty",
}
_EITHER = [{"type": "integer"}, {"type": "string"}]


def errors(schema: Schema, path: str) -> list[StatusCause]:
    """The errors of a schema, sorted as an API server sorts them."""
    return sorted(_invariants(schema, path, "at the root"), key=lambda e: f"{e.field}: {e.message}")


def _invariants(schema: Schema, path: str, where: str) -> Iterator[StatusCause]:
    is_root = where == "at the root"
    kind, items = schema.get("type"), schema.get("items")
    more = schema.get("additionalProperties")
    if kind == "array" and not isinstance(items, dict):
        yield _required(f"{path}.items", "must be specified")
    if isinstance(items, dict):
        yield from _invariants(items, f"{path}.items", "for specified array items")
    for name, inner in (schema.get("properties") or {}).items():
        if isinstance(inner, dict):
            inside = f"{path}.properties[{name}]"
            yield from _invariants(inner, inside, "for specified object fields")
    if more is not None and is_root:
        yield _forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if isinstance(more, dict):
        yield from _invariants(more, f"{path}.additionalProperties", "for specified object fields")
    if schema.get(_EMBEDDED) and kind != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        yield _invalid(f"{path}.type", kind, text) if kind else _required(f"{path}.type", text)
    elif not kind and not schema.get(_INT_OR_STRING) and not schema.get(_PRESERVE):
        yield _required(f"{path}.type", f"must not be empty {where}")
    if is_root and kind and kind != "object":
        yield _invalid(f"{path}.type", kind, "must be object at the root")
    yield from _conditions(schema, path, may_have_types=_is_int_or_string(schema))


def _is_int_or_string(schema: Schema) -> bool:
    if not schema.get(_INT_OR_STRING):
        return False
    all_of = schema.get("allOf") or [{}]
    return schema.get("anyOf") == _EITHER or all_of[0].get("anyOf") == _EITHER


def _conditions(
    schema: Schema, path: str, *, may_have_types: bool = False
) -> Iterator[StatusCause]:
    for keyword in ("allOf", "anyOf", "oneOf"):
        for i, inner in enumerate(schema.get(keyword) or ()):
            inside = f"{path}.{keyword}[{i}]"
            yield from _condition(inner, inside, may_have_types=may_have_types)
    if isinstance(inner := schema.get("not"), dict):
        yield from _condition(inner, f"{path}.not")


def _condition(schema: Schema, path: str, *, may_have_types: bool = False) -> Iterator[StatusCause]:
    for field, state in _FORBIDDEN.items():
        if schema.get(field) and not (field == "type" and may_have_types):
            yield _forbidden(f"{path}.{field}", f"must be {state} to be structural")
    for name, inner in (schema.get("properties") or {}).items():
        if isinstance(inner, dict):
            yield from _condition(inner, f"{path}.properties[{name}]")
    if isinstance(items := schema.get("items"), dict):
        yield from _condition(items, f"{path}.items")
    yield from _conditions(schema, path, may_have_types=may_have_types)


def _required(path: str, text: str) -> StatusCause:
    return StatusCause("FieldValueRequired", f"Required value: {text}", path)


def _forbidden(path: str, text: str) -> StatusCause:
    return StatusCause("FieldValueForbidden", f"Forbidden: {text}", path)


def _invalid(path: str, value: Any, text: str) -> StatusCause:
    shown = msgspec.json.encode(value).decode()
    return StatusCause("FieldValueInvalid", f"Invalid value: {shown}: {text}", path)
