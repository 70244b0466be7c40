"""Version 2 of the OpenAPI document in protobuf, the only form that client-go's discovery reads.

The document has the definitions, and no paths: clients look up kinds in it.
"""

from typing import Any

import msgspec

from moorage.serve.openapi.schemas import Json
from moorage.serve.protobuf import values, wire

# The media types of the request, and of the response.
MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
RESPONSE_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

_TEXTS = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
_DOUBLES = {"multipleOf": 6, "maximum": 7, "minimum": 9}
_NUMBERS = {
    "exclusiveMaximum": 8,
    "exclusiveMinimum": 10,
    "maxLength": 11,
    "minLength": 12,
    "maxItems": 14,
    "minItems": 15,
    "uniqueItems": 16,
    "maxProperties": 17,
    "minProperties": 18,
}
_ANY = {"default": 5, "example": 30}


def encode(document: Json) -> bytes:
    """The document with its definitions."""
    info = document["info"]
    described = wire.field(1, info["title"].encode()) + wire.field(2, info["version"].encode())
    head = wire.field(1, document["swagger"].encode()) + wire.field(2, described)
    return head + wire.field(8, b"") + wire.field(9, _named(document["definitions"]))


def _named(schemas: Json) -> bytes:
    """Schemas by name; in version 2 maps are lists of names and values."""
    return b"".join(
        wire.field(1, wire.field(1, name.encode()) + wire.field(2, _schema(schema)))
        for name, schema in schemas.items()
    )


def _schema(schema: Json) -> bytes:
    return b"".join(_part(name, value) for name, value in schema.items())


def _part(name: str, value: Any) -> bytes:
    if name in _TEXTS:
        return wire.field(_TEXTS[name], str(value).encode())
    if name in _NUMBERS:
        return wire.varint(wire.tag(_NUMBERS[name], wire.VARINT)) + wire.varint(int(value))
    if name in _DOUBLES:
        tag = wire.varint(wire.tag(_DOUBLES[name], wire.FIXED64))
        return tag + values.write_double(value)
    if name in _ANY:
        return wire.field(_ANY[name], _any(value))
    match name:
        case "type":
            return wire.field(22, wire.field(1, value.encode()))
        case "required":
            return b"".join(wire.field(19, each.encode()) for each in value)
        case "enum":
            return b"".join(wire.field(20, _any(each)) for each in value)
        case "additionalProperties":
            inner = b"\x10" + wire.varint(value) if isinstance(value, bool) else None
            return wire.field(21, wire.field(1, _schema(value)) if inner is None else inner)
        case "items" if isinstance(value, dict):
            return wire.field(23, wire.field(1, _schema(value)))
        case "allOf":
            return b"".join(wire.field(24, _schema(each)) for each in value)
        case "properties":
            return wire.field(25, _named(value))
    if name.startswith("x-"):
        return wire.field(31, wire.field(1, name.encode()) + wire.field(2, _any(value)))
    return b""  # Version 2 has no `oneOf`, `anyOf`, `not` and `nullable`.


def _any(value: Any) -> bytes:
    """A value as YAML; JSON is YAML."""
    return wire.field(2, msgspec.json.encode(value) + b"\n")
