"""Values whose form in JSON differs from their message: times, quantities, numbers or texts."""

import base64
import calendar
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from moorage.serve.protobuf import wire
from moorage.serve.protobuf.wire import WireError

Read = Callable[[bytes], Any]
"""The value of a message's bytes; None if JSON does not have the field."""
Write = Callable[[Any], bytes]

_MIN_SECONDS, _MAX_SECONDS = -62_135_596_800, 253_402_300_799  # the years 1 to 9999


def _moment(body: bytes) -> tuple[int, int] | None:
    """Seconds and nanoseconds; None for Go's zero time, which has no bytes."""
    if not body:
        return None
    found = wire.numbers(body)
    seconds = wire.signed(found.get(1, 0))
    return (seconds, found.get(2, 0)) if _MIN_SECONDS < seconds <= _MAX_SECONDS else None


@lru_cache(maxsize=4096)
def read_time(body: bytes) -> str | None:
    moment = _moment(body)
    if moment is None:
        return None
    return datetime.fromtimestamp(moment[0], UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@lru_cache(maxsize=1024)
def read_micro_time(body: bytes) -> str | None:
    moment = _moment(body)
    if moment is None:
        return None
    text = datetime.fromtimestamp(moment[0], UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{moment[1] // 1000 % 1_000_000:06}Z"


@lru_cache(maxsize=4096)
def write_time(text: str) -> bytes:
    """The message of a time; whole seconds, as an API server writes it."""
    return _timestamp(text, fraction=False)


@lru_cache(maxsize=1024)
def write_micro_time(text: str) -> bytes:
    return _timestamp(text, fraction=True)


def _timestamp(text: str, *, fraction: bool) -> bytes:
    at = datetime.fromisoformat(text)
    seconds = calendar.timegm((at if at.tzinfo is None else at.astimezone(UTC)).timetuple())
    nanos = at.microsecond * 1000 if fraction else 0
    return b"\x08" + wire.varint(seconds) + b"\x10" + wire.varint(nanos)


@lru_cache(maxsize=4096)
def read_quantity(body: bytes) -> str:
    return wire.texts(body).get(1, b"0").decode() or "0"


@lru_cache(maxsize=4096)
def _quantity(text: str) -> bytes:
    return wire.field(1, text.encode())


def write_quantity(value: Any) -> bytes:
    return _quantity(str(value))  # JSON may have a number.


@lru_cache(maxsize=1024)
def read_int_or_string(body: bytes) -> int | str:
    found = dict(wire.fields(body))
    value = found.get(3, b"") if found.get(1) == 1 else found.get(2, 0)
    return value.decode() if isinstance(value, bytes) else wire.signed(value)


def write_int_or_string(value: Any) -> bytes:
    if isinstance(value, str):
        return b"\x08\x01\x10\x00" + wire.field(3, value.encode())
    return b"\x08\x00\x10" + wire.varint(int(value)) + b"\x1a\x00"


def read_raw(body: bytes) -> Any:
    """A part without a type: JSON inside of protobuf."""
    raw = wire.texts(body).get(1, b"")
    if not raw:
        return None
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        raise WireError from None


def write_raw(value: Any) -> bytes:
    return wire.field(1, msgspec.json.encode(value))


def read_strings(body: bytes) -> list[str]:
    return [value.decode() for _, value in wire.fields(body) if isinstance(value, bytes)]


def write_strings(value: Any) -> bytes:
    return b"".join(wire.field(1, each.encode()) for each in value)


def read_bytes(body: bytes) -> str:
    return base64.b64encode(body).decode()


def write_bytes(value: Any) -> bytes:
    return base64.b64decode(value)


def read_double(body: bytes) -> float | int:
    (value,) = struct.unpack("<d", body)
    number: float = value
    return int(number) if number.is_integer() else number


def write_double(value: Any) -> bytes:
    return struct.pack("<d", value)


READ: dict[str, Read] = {
    "Time": read_time,
    "MicroTime": read_micro_time,
    "Quantity": read_quantity,
    "IntOrString": read_int_or_string,
    "Raw": read_raw,
    "Strings": read_strings,
    "bytes": read_bytes,
}
WRITE: dict[str, Write] = {
    "Time": write_time,
    "MicroTime": write_micro_time,
    "Quantity": write_quantity,
    "IntOrString": write_int_or_string,
    "Raw": write_raw,
    "Strings": write_strings,
    "bytes": write_bytes,
}
