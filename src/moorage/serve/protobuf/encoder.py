"""The values that JSON has to messages, driven by the table of fields.

Only fields that the object has are written: to a client, an absent field and a zero are the same.
Fields that the table does not list are left out.
"""

from typing import Any, NamedTuple

from moorage.api.schema import messages
from moorage.api.schema.messages import Field
from moorage.serve.protobuf import values, wire

# How the value of a field is written.
_TEXT, _MESSAGE, _VALUE, _MAP, _TEXT_LIST, _MESSAGE_LIST, _VALUE_LIST, _INLINE = range(8)
_INT, _INT_LIST, _DOUBLE = range(8, 11)

_size, _small = wire.size, wire.SMALL


class UnencodableError(Exception):
    """An object has a field of a wrong type."""


class Writer(NamedTuple):
    """How one field is written."""

    step: int
    tag: bytes
    # The writers of a message, or the function that writes a value.
    argument: Any


Writers = dict[str, Writer]
"""The fields of a message by their names in JSON."""

_compiled: dict[str, Writers] = {}


def write(obj: dict[str, Any], name: str) -> bytes:
    """An object as the message of a full name; raises UnencodableError."""
    try:
        return bytes(_write(obj, _writers(name)))
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UnencodableError(f"an object of type {name} has no protobuf: {error}") from None


def _writers(name: str) -> Writers:
    found = _compiled.get(name)
    if found is None:
        found = _compiled[name] = {}  # Before its fields: a message may contain itself.
        for field in messages.message(name).fields:
            if field.is_inline:
                tag = wire.varint(wire.tag(field.number, wire.BYTES))
                inner = _writers(field.type)
                found.update(dict.fromkeys(inner, Writer(_INLINE, tag, inner)))
            else:
                found[field.name] = _writer(field)
    return found


def _writer(field: Field) -> Writer:
    wire_type = wire.BYTES
    argument: Any = None
    if field.type in ("int32", "int64", "bool"):
        step, wire_type = (_INT_LIST if field.is_list else _INT), wire.VARINT
    elif field.type == "double":
        step, wire_type = _DOUBLE, wire.FIXED64
    else:
        special = values.WRITE.get(field.type) or _ALTERNATIVES.get(field.type)
        if field.type == "string":
            step = _TEXT
        elif special is not None:
            step, argument = _VALUE, special
        else:
            step, argument = _MESSAGE, _writers(field.type)
        if field.is_map:
            step = _MAP
        elif field.is_list:
            step += _TEXT_LIST
    return Writer(step, wire.varint(wire.tag(field.number, wire_type)), argument)


def _write(obj: dict[str, Any], writers: Writers) -> bytearray:
    """A message. One loop, because it runs for every field of an object."""
    out = bytearray()
    inlined: dict[bytes, bytearray] = {}
    for name, value in obj.items():
        writer = writers.get(name)
        if writer is None or value is None:
            continue
        step, tag, argument = writer
        if step == _TEXT:
            data = value.encode()
            out += tag + _size(len(data)) + data
        elif step == _MESSAGE:
            inner = _write(value, argument)
            out += tag + _size(len(inner))
            out += inner
        elif step == _INT:
            out += tag
            out += _small[value] if 0 <= value < 4096 else wire.varint(int(value))
        elif step == _VALUE:
            data = argument(value)
            out += tag + _size(len(data)) + data
        elif step == _MESSAGE_LIST:
            for each in value:
                inner = _write(each, argument)
                out += tag + _size(len(inner))
                out += inner
        elif step == _MAP:
            for key, each in value.items():
                entry = wire.field(1, key.encode()) + wire.field(2, _map_value(each, argument))
                out += tag + _size(len(entry)) + entry
        elif step == _TEXT_LIST:
            for each in value:
                data = each.encode()
                out += tag + _size(len(data)) + data
        elif step == _VALUE_LIST:
            for each in value:
                data = argument(each)
                out += tag + _size(len(data)) + data
        elif step == _INLINE:
            inlined.setdefault(tag, bytearray()).extend(_write({name: value}, argument))
        elif step == _INT_LIST:
            for each in value:
                out += tag + wire.varint(int(each))
        else:
            out += tag + values.write_double(value)
    for tag, inner in inlined.items():
        out += tag + _size(len(inner)) + inner
    return out


def _map_value(value: Any, argument: Any) -> bytes:
    if argument is None:
        text: bytes = value.encode()
        return text
    return argument(value) if callable(argument) else bytes(_write(value, argument))


# JSON schemas have fields that are a schema, or a list, a flag or texts.

_SCHEMA = "apiextensions.k8s.io/v1.JSONSchemaProps"


def _write_or_array(value: Any) -> bytes:
    if isinstance(value, list):
        return b"".join(wire.field(2, _write_schema(each)) for each in value)
    return wire.field(1, _write_schema(value))


def _write_or_bool(value: Any) -> bytes:
    if isinstance(value, bool):
        return b"\x08" + wire.varint(value)
    return b"\x08\x01" + wire.field(2, _write_schema(value))


def _write_or_strings(value: Any) -> bytes:
    if isinstance(value, list):
        return b"".join(wire.field(2, each.encode()) for each in value)
    return wire.field(1, _write_schema(value))


def _write_schema(value: Any) -> bytes:
    return bytes(_write(value, _writers(_SCHEMA)))


_ALTERNATIVES: dict[str, values.Write] = {
    "OrArray": _write_or_array,
    "OrBool": _write_or_bool,
    "OrStringArray": _write_or_strings,
}
