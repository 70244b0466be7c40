"""Whether the schema of a CustomResourceDefinition is structural: what Kubernetes demands of it.

The type of every value is stated outside of `allOf`, `anyOf`, `oneOf` and `not`, and these add
conditions only. Pruning, defaults and rules in CEL depend on it.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from moorage.cel.library import strings
from moorage.cel.values import CelRuntimeError
from moorage.cluster.objects import custom_schemas
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


# Lists, maps, defaults and patterns --------------------------------------------------------------

_LIST_TYPE, _MAP_TYPE = "x-kubernetes-list-type", "x-kubernetes-map-type"
_LIST_KEYS = "x-kubernetes-list-map-keys"


def keyword_errors(schema: Schema, path: str) -> Iterator[StatusCause]:
    """The errors of one schema, without those of its parts."""
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield _forbidden(f"{path}.uniqueItems", text)
    if schema.get("properties") and schema.get("additionalProperties") not in (None, True):
        text = "additionalProperties and properties are mutual exclusive"
        yield _forbidden(f"{path}.additionalProperties", text)
    if schema.get(_PRESERVE) is False:
        yield _invalid(f"{path}.{_PRESERVE}", value=False, text="must be true or undefined")
    for keyword, kind, options in (
        (_MAP_TYPE, "object", ("atomic", "granular")),
        (_LIST_TYPE, "array", ("atomic", "set", "map")),
    ):
        yield from _container_errors(schema, path, keyword, kind, options)
    yield from _key_errors(schema, path)
    if isinstance(pattern := schema.get("pattern"), str):
        try:
            strings.compiled(pattern)
        except CelRuntimeError as error:
            text = f"must be a valid regular expression, but isn't: {error}"
            yield _invalid(f"{path}.pattern", pattern, text)
    if "default" in schema:
        for cause in custom_schemas.causes(schema["default"], {**schema, "default": None}):
            inside = f"{path}.default.{cause.field}" if cause.field else f"{path}.default"
            yield cause._replace(field=inside)


def _container_errors(
    schema: Schema, path: str, keyword: str, kind: str, options: tuple[str, ...]
) -> Iterator[StatusCause]:
    stated, actual = schema.get(keyword), schema.get("type")
    if stated is None:
        return
    if actual != kind:
        text = f"must be {kind} if {keyword} is specified"
        yield _invalid(f"{path}.type", actual, text) if actual else _required(f"{path}.type", text)
    if stated not in options:
        listed = ", ".join(f'"{each}"' for each in options)
        text = f'Unsupported value: "{stated}": supported values: {listed}'
        yield StatusCause("FieldValueNotSupported", text, f"{path}.{keyword}")


def _key_errors(schema: Schema, path: str) -> Iterator[StatusCause]:
    keys, kind = schema.get(_LIST_KEYS) or [], schema.get(_LIST_TYPE)
    if kind == "set" and isinstance(items := schema.get("items"), dict):
        keyword = {"array": _LIST_TYPE, "object": _MAP_TYPE}.get(items.get("type", ""))
        default = "atomic" if keyword == _LIST_TYPE else None
        if keyword and items.get(keyword, default) != "atomic":
            text = f"must be atomic as item of a list with {_LIST_TYPE}=set"
            yield _invalid(f"{path}.items.{keyword}", items.get(_LIST_TYPE), text)
    if kind != "map":
        if keys:
            text = f"must be map if {_LIST_KEYS} is non-empty"
            where = f"{path}.{_LIST_TYPE}"
            yield _required(where, text) if kind is None else _invalid(where, kind, text)
        return
    if not keys:
        yield _required(f"{path}.{_LIST_KEYS}", f"must not be empty if {_LIST_TYPE} is map")
    items = schema.get("items")
    if not isinstance(items, dict):
        yield _required(f"{path}.items", f"must have a schema if {_LIST_TYPE} is map")
        return
    parent = f"if parent array's {_LIST_TYPE} is map"
    if items.get("type") != "object":
        text = f"must be object {parent}"
        yield _invalid(f"{path}.items.type", items.get("type", ""), text)
        return
    properties = items.get("properties") or {}
    for i, key in enumerate(keys):
        if key in keys[:i]:
            yield _invalid(f"{path}.{_LIST_KEYS}", keys, "must not contain duplicate entries")
        stated, where = properties.get(key), f"{path}.items.properties[{key}]"
        if stated is None:
            text = "entries must all be names of item properties"
            yield _invalid(f"{path}.{_LIST_KEYS}", keys, text)
            continue
        if stated.get("type") in ("array", "object"):
            yield _invalid(f"{where}.type", items["type"], f"must be a scalar type {parent}")
        if key not in (items.get("required") or ()) and stated.get("default") is None:
            text = f"this property is in {_LIST_KEYS}, so it must have a default or be a required"
            yield _required(f"{where}.default", f"{text} property")
