"""Protobuf bodies, read and never written: kubectl's typed commands send nothing else.

`messages.py` says which field has which number. A field that is not in its tables is refused by
name of its message, not dropped: half an object is worse than none.
"""

import base64
from collections.abc import Iterator
from typing import Any

from moorage.serve import times
from moorage.serve.objects.messages import KINDS, MESSAGES
from moorage.serve.refusals import BadRequest, UnsupportedMedia

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DEEPEST = 64

Value = int | bytes


class _Truncated(Exception):
    """The bytes end too soon, or are no protobuf."""


def decode(body: bytes) -> dict[str, Any]:
    """The object in a body; raises BadRequest or UnsupportedMedia."""
    if not body.startswith(_MAGIC):
        raise BadRequest("the body of the request is not Kubernetes protobuf")
    try:
        envelope = _message(body[len(_MAGIC) :], "Unknown", 0)
        stated = envelope.get("typeMeta", {})
        kind = stated.get("kind", "")
        api_version = stated.get("apiVersion", "")
        message = KINDS.get(kind)
        if message is None:
            raise UnsupportedMedia(f"{kind or 'this kind'} is not read as protobuf; send JSON")
        raw = base64.b64decode(envelope.get("raw", ""))
        return {"apiVersion": api_version, "kind": kind, **_message(raw, message, 0)}
    except (_Truncated, UnicodeDecodeError, OverflowError):
        raise BadRequest("the body of the request is not readable as protobuf") from None


def _message(body: bytes, name: str, depth: int) -> dict[str, Any]:
    if depth > _DEEPEST:
        raise _Truncated
    fields = MESSAGES[name]
    found: dict[str, Any] = {}
    for number, value in _fields(body):
        if number not in fields:
            if name.endswith("Status"):  # Whoever creates an object has no say in its status.
                continue
            raise UnsupportedMedia(f"field {number} of {name} is not read as protobuf; send JSON")
        field, type_ = fields[number]
        if type_.startswith("["):
            found.setdefault(field, []).append(_value(value, type_[1:-1], depth))
        elif type_.startswith("{"):
            key, inner = _entry(value, type_[1:-1], depth)
            found.setdefault(field, {})[key] = inner
        else:
            found[field] = _value(value, type_, depth)
    # Go writes texts that are empty, too; in JSON they would be absent.
    return {key: value for key, value in found.items() if value not in (None, "")}


def _value(value: Value, type_: str, depth: int) -> Any:
    match type_:
        case "int":
            number = _varint(value)
            return number - 2**64 if number >= 2**63 else number
        case "bool":
            return _varint(value) != 0
        case "text":
            return _bytes(value).decode()
        case "bytes":
            return base64.b64encode(_bytes(value)).decode()
        case "Quantity":
            return "".join(_bytes(v).decode() for n, v in _fields(_bytes(value)) if n == 1)
        case "Time" | "MicroTime":
            return _time(_message(_bytes(value), "Time", depth + 1))
        case "IntOrString":
            either = _message(_bytes(value), "IntOrString", depth + 1)
            is_text = either.get("type", 0) == 1
            return either.get("strVal", "") if is_text else either.get("intVal", 0)
    return _message(_bytes(value), type_, depth + 1)


def _time(parts: dict[str, Any]) -> str | None:
    seconds = parts.get("seconds", 0)
    # Go's zero time, and whatever is no date at all, is no time.
    return times.text(seconds) if 0 < seconds < 2**36 else None


def _entry(value: Value, type_: str, depth: int) -> tuple[str, Any]:
    key, inner = "", None
    for number, each in _fields(_bytes(value)):
        if number == 1:
            key = _bytes(each).decode()
        elif number == 2:
            inner = _value(each, type_, depth)
    return key, "" if inner is None else inner


def _fields(body: bytes) -> Iterator[tuple[int, Value]]:
    at = 0
    while at < len(body):
        tag, at = _read_varint(body, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _read_varint(body, at)
            yield number, value
        elif wire == _BYTES:
            length, at = _read_varint(body, at)
            if at + length > len(body):
                raise _Truncated
            yield number, body[at : at + length]
            at += length
        elif wire in (_FIXED64, _FIXED32):
            width = 8 if wire == _FIXED64 else 4
            yield number, int.from_bytes(body[at : at + width], "little")
            at += width
        else:
            raise _Truncated


def _read_varint(body: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(body) or shift > 63:
            raise _Truncated
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), at
        shift += 7


def _varint(value: Value) -> int:
    if not isinstance(value, int):
        raise _Truncated
    return value


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise _Truncated
    return value
