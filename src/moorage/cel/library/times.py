"""Durations and timestamps."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from fractions import Fraction
from zoneinfo import ZoneInfo

from moorage.cel.types import define, overload
from moorage.cel.values import SECOND, CelDuration, CelRuntimeError, Timestamp

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND, _MINUTE, _HOUR = 10**6, 60 * SECOND, 3600 * SECOND
_UNITS = {"h": _HOUR, "m": _MINUTE, "s": SECOND, "ms": _MILLISECOND, "us": 1000, "ns": 1}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(h|ms|m|s|us|ns)")
_TIMESTAMP = re.compile(
    r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)


@overload("duration(string) -> duration")
def duration(text: str) -> CelDuration:
    """Read a duration such as "1h30m"; raises CelRuntimeError."""
    body = text[1:] if text[:1] in ("+", "-") else text
    parts = [*_PART.finditer(body.replace("µ", "u"))] if len(body) <= 200 else []
    if body != "0" and (not parts or sum(len(part[0]) for part in parts) != len(body)):
        raise CelRuntimeError(f'time: invalid duration "{text[:40]}"')
    total = sum(
        Fraction(f"0{part[1]}0" if "." in part[1] else part[1]) * _UNITS[part[2]] for part in parts
    )
    return CelDuration(int(-total if text[0] == "-" else total))


@overload("timestamp(string) -> timestamp")
def timestamp(text: str) -> Timestamp:
    """Read a timestamp of RFC 3339; raises CelRuntimeError."""
    try:
        if not (match := _TIMESTAMP.fullmatch(text)):
            raise ValueError
        instant = datetime.fromisoformat(f"{match[1].upper()}+00:00")
    except ValueError:
        raise CelRuntimeError(f'invalid timestamp "{text[:40]}"') from None
    seconds = (instant - _EPOCH) // timedelta(seconds=1)
    if match[3]:
        offset = int(match[4]) * 3600 + int(match[5]) * 60
        seconds += offset if match[3] == "-" else -offset
    return Timestamp(seconds * SECOND + int((match[2] or "0").ljust(9, "0")))


def _fraction(nanoseconds: int) -> str:
    return f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""


@overload("string(duration) -> string")
def duration_to_string(length: CelDuration) -> str:
    """A duration in seconds, such as "5400s"."""
    whole, rest = divmod(abs(length.nanoseconds), SECOND)
    return f"{'-' if length.nanoseconds < 0 else ''}{whole}{_fraction(rest)}s"


@overload("string(timestamp) -> string")
def timestamp_to_string(instant: Timestamp) -> str:
    """A timestamp as RFC 3339 writes it, in UTC."""
    moment = _local(instant, "UTC")
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}{_fraction(instant.nanoseconds % SECOND)}Z"


def add_durations(a: CelDuration, b: CelDuration) -> CelDuration:
    """The sum of two durations."""
    return CelDuration(a.nanoseconds + b.nanoseconds)


def _later(a: Timestamp | CelDuration, b: Timestamp | CelDuration) -> Timestamp:
    return Timestamp(a.nanoseconds + b.nanoseconds)


def _difference(a: Timestamp | CelDuration, b: Timestamp | CelDuration) -> CelDuration:
    return CelDuration(a.nanoseconds - b.nanoseconds)


define("duration(duration) -> duration", "timestamp(timestamp) -> timestamp", run=lambda time: time)
define("timestamp(int) -> timestamp", run=lambda seconds: Timestamp(seconds * SECOND))
define("int(timestamp) -> int", run=lambda instant: instant.nanoseconds // SECOND)
define("int(duration) -> int", run=lambda length: length.nanoseconds)
define("+(duration, duration) -> duration", run=add_durations)
define("+(timestamp, duration) -> timestamp", "+(duration, timestamp) -> timestamp", run=_later)
define("-(duration, duration) -> duration", "-(timestamp, timestamp) -> duration", run=_difference)
define(
    "-(timestamp, duration) -> timestamp", run=lambda a, b: Timestamp(a.nanoseconds - b.nanoseconds)
)


def _zone(name: str) -> tzinfo:
    offset = re.fullmatch(r"([+-]?)(\d\d):(\d\d)", name, re.ASCII)
    try:
        if offset:
            minutes = int(offset[2]) * 60 + int(offset[3])
            return timezone(timedelta(minutes=-minutes if offset[1] == "-" else minutes))
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # ZoneInfoNotFoundError is a KeyError.
        raise CelRuntimeError(f"unknown time zone {name[:40]}") from None


def _local(instant: Timestamp, zone: str) -> datetime:
    try:
        moment = _EPOCH + timedelta(seconds=instant.nanoseconds // SECOND)
        return moment.astimezone(_zone(zone))
    except OverflowError:
        raise CelRuntimeError("timestamp overflow") from None


def _define_field(name: str, read: Callable[[datetime], int]) -> None:
    def run(instant: Timestamp, zone: str = "UTC") -> int:
        return read(_local(instant, zone))

    define(f"timestamp.{name}() -> int", f"timestamp.{name}(string) -> int", run=run)


_define_field("getFullYear", lambda moment: moment.year)
_define_field("getMonth", lambda moment: moment.month - 1)
_define_field("getDayOfYear", lambda moment: moment.timetuple().tm_yday - 1)
_define_field("getDayOfMonth", lambda moment: moment.day - 1)
_define_field("getDate", lambda moment: moment.day)
_define_field("getDayOfWeek", lambda moment: moment.isoweekday() % 7)
_define_field("getHours", lambda moment: moment.hour)
_define_field("getMinutes", lambda moment: moment.minute)
_define_field("getSeconds", lambda moment: moment.second)


def _milliseconds(instant: Timestamp, zone: str = "UTC") -> int:
    _zone(zone)  # Must exist.
    return instant.nanoseconds % SECOND // _MILLISECOND


define(
    "timestamp.getMilliseconds() -> int",
    "timestamp.getMilliseconds(string) -> int",
    run=_milliseconds,
)


def _whole(length: CelDuration, unit: int) -> int:
    """Whole units, rounded toward zero."""
    count = abs(length.nanoseconds) // unit
    return -count if length.nanoseconds < 0 else count


define("duration.getHours() -> int", run=lambda length: _whole(length, _HOUR))
define("duration.getMinutes() -> int", run=lambda length: _whole(length, _MINUTE))
define("duration.getSeconds() -> int", run=lambda length: _whole(length, SECOND))
define("duration.getMilliseconds() -> int", run=lambda length: _whole(length, _MILLISECOND))
