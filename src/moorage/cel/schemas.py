"""Structural schemas of custom resources as types of CEL, and values of JSON as values of them.

A declaration has, besides the type, how large its values can be: the cost of an expression is
estimated from that before there is a value. An object is a type with fields; a value whose schema
says too little (`x-kubernetes-preserve-unknown-fields`) has no type and cannot be referred to.
"""

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from moorage.cel.library import times
from moorage.cel.syntax import CONSTANTS, RESERVED
from moorage.cel.types import BOOL, BYTES, DOUBLE, DYN, INT, STRING, Type
from moorage.cel.values import CelRuntimeError, KeyedList, SetList

Schema = dict[str, Any]

MAX_REQUEST_BYTES = 3 * 1024 * 1024
_TIMESTAMP, _DURATION = Type("google.protobuf.Timestamp"), Type("google.protobuf.Duration")
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
# By format of a string: type, least size in JSON, greatest length.
_FORMATS = {
    "duration": (_DURATION, 3, 32),
    "date": (_TIMESTAMP, 12, 12),
    "date-time": (_TIMESTAMP, 21, 32),
}
_SCALARS = {"boolean": (BOOL, 4), "number": (DOUBLE, 1), "integer": (INT, 1)}
_TEXT = {"type": "string"}


@dataclass(frozen=True, slots=True)
class Declaration:
    """The type of a schema, with limits of its values.

    `max_elements` limits characters, elements or entries; `min_size` is the least number of bytes
    of a value in JSON.
    """

    type: Type
    min_size: int
    max_elements: int = 0
    element: "Declaration | None" = None  # of a list or map
    fields: dict[str, "Declaration"] = field(default_factory=dict)  # by escaped name


def escaped(name: str) -> str | None:
    """The identifier for a property; None if there is none, so that it cannot be referred to."""
    if name in RESERVED or name in CONSTANTS:
        return f"__{name}__"
    if not re.fullmatch(r"[A-Za-z_./-][A-Za-z0-9_./-]*", name):
        return None
    return re.sub(r"__|[./-]", lambda match: _ESCAPES[match[0]], name)


def declare(schema: Schema, name: str, *, is_resource: bool = False) -> Declaration | None:
    """The declaration of a schema; objects are types that are named after where they are."""
    if schema.get("x-kubernetes-int-or-string"):
        return Declaration(DYN, 1, _max_length(schema))
    kind = schema.get("type")
    if kind == "array":
        return _list(schema, name)
    if kind == "object":
        if isinstance(schema.get("additionalProperties"), dict) and not is_resource:
            return _map(schema, name)
        return _object(with_object_meta(schema) if is_resource else schema, name)
    if kind == "string":
        type_, size, length = _FORMATS.get(schema.get("format", ""), (STRING, 2, None))
        if schema.get("format") == "byte":
            longest = schema.get("maxLength")
            return Declaration(BYTES, 2, MAX_REQUEST_BYTES - 2 if longest is None else longest)
        return Declaration(type_, size, _max_length(schema) if length is None else length)
    if kind in _SCALARS:
        return Declaration(*_SCALARS[kind])
    return None


def with_object_meta(schema: Schema) -> Schema:
    """The schema of a resource, whose kind, apiVersion and name every rule may refer to."""
    meta = {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}}
    stated = schema.get("properties") or {}
    names = (stated.get("metadata") or {}).get("properties") or {}
    if all(each in stated for each in ("kind", "apiVersion")) and "generateName" in names:
        return schema
    return {
        **schema,
        "properties": {**stated, "kind": _TEXT, "apiVersion": _TEXT, "metadata": meta},
    }


def fields_of(declaration: Declaration) -> dict[str, dict[str, Type]]:
    """The fields of all object types inside of a declaration, by name of the type."""
    found: dict[str, dict[str, Type]] = {}
    pending = [declaration]
    while pending:
        each = pending.pop()
        if each.element is not None:
            pending.append(each.element)
        elif each.type not in (DYN, STRING, BYTES, _TIMESTAMP, _DURATION, BOOL, INT, DOUBLE):
            found[each.type.name] = {name: inner.type for name, inner in each.fields.items()}
            pending += each.fields.values()
    return found


def _max_length(schema: Schema) -> int:
    if (limit := schema.get("maxLength")) is not None:
        return max(0, int(limit)) * 4  # A character has up to four bytes.
    if options := schema.get("enum"):
        return max((len(each.encode()) for each in options if isinstance(each, str)), default=0)
    return MAX_REQUEST_BYTES - 2


def _list(schema: Schema, name: str) -> Declaration | None:
    items = _inner(schema.get("items"), f"{name}.@idx")
    if items is None:
        return None
    limit = schema.get("maxItems")
    most = (MAX_REQUEST_BYTES - 2) // (items.min_size + 1) if limit is None else max(0, limit)
    return Declaration(Type("list", (items.type,)), 2, most, items)


def _map(schema: Schema, name: str) -> Declaration | None:
    values = _inner(schema["additionalProperties"], f"{name}.@elem")
    if values is None:
        return None
    limit = schema.get("maxProperties")
    most = (MAX_REQUEST_BYTES - 2) // (values.min_size + 6) if limit is None else max(0, limit)
    return Declaration(Type("map", (STRING, values.type)), 2, most, values)


def _object(schema: Schema, name: str) -> Declaration:
    fields: dict[str, Declaration] = {}
    size = 2
    for key, inner in (schema.get("properties") or {}).items():
        identifier = escaped(key)
        declared = _inner(inner, f"{name}.{identifier}")
        if declared is None:
            continue
        if identifier is not None:
            fields[identifier] = declared
        if key in (schema.get("required") or ()) and inner.get("default") is None:
            size += len(key.encode()) + declared.min_size + 4
    return Declaration(Type(name), size, fields=fields)


def _inner(schema: Any, name: str) -> Declaration | None:
    if not isinstance(schema, dict):
        return None
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    return declare(schema, name, is_resource=embedded)


# Values ----------------------------------------------------------------------------------------


def value_of(value: Any, schema: Schema) -> Any:
    """A value of JSON as CEL sees it. Raises CelRuntimeError if it does not fit its format."""
    if isinstance(value, dict):
        return _object_value(value, schema)
    if isinstance(value, list):
        return _list_value(value, schema)
    if isinstance(value, str) and (parse := PARSERS.get(schema.get("format", ""))):
        return parse(value) if schema.get("type") == "string" else value
    if type(value) in (int, float) and schema.get("type") == "number":
        return float(value)
    return int(value) if type(value) is float and schema.get("type") == "integer" else value


def _object_value(value: dict[str, Any], schema: Schema) -> dict[str, Any]:
    properties, more = schema.get("properties"), schema.get("additionalProperties")
    if schema.get("x-kubernetes-embedded-resource"):
        properties = with_object_meta(schema)["properties"]
    if not properties:
        values = more if isinstance(more, dict) else {}
        return {key: value_of(each, values) for key, each in value.items()}
    # A property that is null counts as absent.
    return {
        escaped(key) or key: value_of(each, properties.get(key) or {})
        for key, each in value.items()
        if each is not None
    }


def _list_value(value: list[Any], schema: Schema) -> list[Any]:
    items = [value_of(each, schema.get("items") or {}) for each in value]
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return SetList(items)
        case "map":
            keys = schema.get("x-kubernetes-list-map-keys") or ()
            return KeyedList(items, tuple(escaped(key) or key for key in keys))
    return items


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise CelRuntimeError(f"Invalid byte formatted string {text[:80]}") from None


PARSERS: dict[str, Callable[[str], Any]] = {
    "duration": times.duration,
    "date": lambda text: times.timestamp(f"{text}T00:00:00Z"),
    "date-time": times.timestamp,
    "byte": _decoded,
}
