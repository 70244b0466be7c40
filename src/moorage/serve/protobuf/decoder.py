"""Messages to the values that JSON has, driven by the table of fields.

Fields that the table does not list are skipped, as an API server skips them. Clients in Go also
send fields that are zero; as in JSON from Go, they are absent unless they are pointers or required.
"""

from typing import Any, NamedTuple

from moorage.api.schema import messages
from moorage.api.schema.messages import Field
from moorage.serve.protobuf import values, wire
from moorage.serve.protobuf.wire import WireError

# How the value of a field is read: plain integers, because they are compared for every field.
_TEXT, _MESSAGE, _VALUE, _MAP, _TEXT_LIST, _MESSAGE_LIST, _VALUE_LIST, _INLINE = range(8)
_INT, _BOOL, _INT_LIST, _BOOL_LIST = range(8, 12)


class Reader(NamedTuple):
    """How one field is read."""

    step: int
    name: str
    # The readers of a message, or the function that reads a value.
    argument: Any
    # Whether JSON has the field also if it is zero.
    keep: bool


Readers = dict[int, Reader]
"""The fields of a message by their tags."""

_compiled: dict[str, Readers] = {}


def read(body: bytes, name: str) -> dict[str, Any]:
    """The message of a full name; raises WireError."""
    try:
        return _read(body, 0, len(body), _readers(name))
    except (IndexError, OverflowError, ValueError, RecursionError):
        raise WireError from None


def _readers(name: str) -> Readers:
    found = _compiled.get(name)
    if found is None:
        found = _compiled[name] = {}  # Before its fields: a message may contain itself.
        for field in messages.message(name).fields:
            found.update(_field_readers(field))
    return found


def _field_readers(field: Field) -> Readers:
    # Special types are structs in Go, and `omitempty` omits no struct: `targetPort: ""` stays.
    keep = field.is_pointer or field.is_kept or field.type in messages.SPECIAL
    name, number, argument = field.name, field.number, _argument(field.type)
    if field.type in ("int32", "int64", "bool"):
        first = _BOOL if field.type == "bool" else _INT
        step = first + 2 if field.is_list else first
        return {wire.tag(number, wire.VARINT): Reader(step, name, None, keep)}
    if field.type == "double":
        reader = Reader(_VALUE, name, values.read_double, keep)
        return {wire.tag(number, wire.FIXED64): reader}
    if field.is_map:
        step = _MAP
    elif field.is_inline:
        step = _INLINE
    else:
        step = _TEXT if field.type == "string" else _VALUE if callable(argument) else _MESSAGE
        step += _TEXT_LIST if field.is_list else _TEXT
    return {wire.tag(number, wire.BYTES): Reader(step, name, argument, keep)}


def _argument(type_: str) -> Any:
    """None for texts and numbers, the function of a special value, the readers of a message."""
    if type_ in values.READ:
        return values.READ[type_]
    if type_ in _ALTERNATIVES:
        return _ALTERNATIVES[type_]
    return None if type_ in messages.SCALARS else _readers(type_)


def _read(body: bytes, at: int, end: int, readers: Readers) -> dict[str, Any]:
    """The message between two positions. One loop, because it runs for every field of a body."""
    found: dict[str, Any] = {}
    while at < end:
        tag = body[at]
        at += 1
        if tag > 127:
            tag, at = wire.read_varint(body, at - 1)
        reader = readers.get(tag)
        wire_type = tag & 7
        if wire_type == wire.BYTES:
            size = body[at]
            at += 1
            if size > 127:
                size, at = wire.read_varint(body, at - 1)
            stop = at + size
            if stop > end:
                raise WireError
            if reader is not None:
                step, name, argument, keep = reader
                if step == _TEXT:
                    if size or keep:
                        found[name] = body[at:stop].decode()
                elif step == _MESSAGE:
                    found[name] = _read(body, at, stop, argument)
                elif step == _VALUE:
                    value = argument(body[at:stop])
                    if value is not None and (keep or value != ""):
                        found[name] = value
                elif step == _MAP:
                    key, value = _entry(body, at, stop, argument)
                    found.setdefault(name, {})[key] = value
                elif step == _INLINE:
                    found.update(_read(body, at, stop, argument))
                else:
                    if step == _TEXT_LIST:
                        value = body[at:stop].decode()
                    elif step == _MESSAGE_LIST:
                        value = _read(body, at, stop, argument)
                    else:
                        value = argument(body[at:stop])
                    found.setdefault(name, []).append(value)
            at = stop
        elif wire_type == wire.VARINT:
            number = body[at]
            at += 1
            if number > 127:
                number, at = wire.read_varint(body, at - 1)
                if number >= 2**63:
                    number -= 2**64
            if reader is not None:
                step, name, _, keep = reader
                value = number != 0 if step in (_BOOL, _BOOL_LIST) else number
                if step in (_INT_LIST, _BOOL_LIST):
                    found.setdefault(name, []).append(value)
                elif number or keep:
                    found[name] = value
        elif wire_type in (wire.FIXED64, wire.FIXED32):
            stop = at + (8 if wire_type == wire.FIXED64 else 4)
            if reader is not None:
                found[reader.name] = reader.argument(body[at:stop])
            at = stop
        else:
            raise WireError
    if at > end:
        raise WireError
    return found


def _entry(body: bytes, at: int, end: int, argument: Any) -> tuple[str, Any]:
    """The key and the value of an entry of a map."""
    length = body[at + 1]
    middle = at + 2 + length  # if the key comes first and is short, as usual
    if length < 128 and middle + 1 < end and (body[at], body[middle]) == (0x0A, 0x12):
        is_short = body[middle + 1] == end - middle - 2 < 128
        if is_short and (argument is None or callable(argument)):
            raw = body[middle + 2 : end]
            value: Any = raw.decode() if argument is None else argument(raw)
            return body[at + 2 : middle].decode(), value
    parts = wire.texts(body[at:end])
    raw = parts.get(2, b"")
    if argument is None:
        value = raw.decode()
    elif callable(argument):
        value = argument(raw)
    else:
        value = _read(raw, 0, len(raw), argument)
    return parts.get(1, b"").decode(), value


# JSON schemas have fields that are a schema, or a list, a flag or texts.

_SCHEMA = "apiextensions.k8s.io/v1.JSONSchemaProps"


def _read_or_array(body: bytes) -> Any:
    found = [value for value in wire.fields(body) if isinstance(value[1], bytes)]
    schemas = [_read_schema(value) for number, value in found if number == 2]
    single = [_read_schema(value) for number, value in found if number == 1]
    return single[0] if single else schemas


def _read_or_bool(body: bytes) -> Any:
    schema = wire.texts(body).get(2)
    return wire.numbers(body).get(1, 0) != 0 if schema is None else _read_schema(schema)


def _read_or_strings(body: bytes) -> Any:
    schema = wire.texts(body).get(1)
    return values.read_strings(body) if schema is None else _read_schema(schema)


def _read_schema(body: Any) -> dict[str, Any]:
    return _read(body, 0, len(body), _readers(_SCHEMA))


_ALTERNATIVES: dict[str, values.Read] = {
    "OrArray": _read_or_array,
    "OrBool": _read_or_bool,
    "OrStringArray": _read_or_strings,
}
