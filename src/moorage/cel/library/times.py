"""Durations and timestamps."""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from fractions import Fraction
from zoneinfo import ZoneInfo

from moorage.cel.types import overload
from moorage.cel.values import SECOND, CelRuntimeError, Duration, Timestamp

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = {
    "h": 3600 * SECOND,
    "m": 60 * SECOND,
    "s": SECOND,
    "ms": 10**6,
    "us": 1000,
    "µs": 1000,
    "μs": 1000,
    "ns": 1,
}
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(h|ms|m|s|us|µs|μs|ns)", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(?:[Zz]|([+-])(\d\d):(\d\d))",
    re.ASCII,
)


@overload("duration(string) -> duration", "duration(duration) -> duration")
def duration(text: str | Duration) -> Duration:
    if isinstance(text, Duration):
        return text
    body = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    total = Fraction(0)
    end = 0
    while (match := _PART.match(body, end)) and len(body) <= 200:
        total += Fraction(match[1] if match[1][-1] != "." else match[1] + "0") * _UNITS[match[2]]
        end = match.end()
    if body == "0":
        return Duration(0)
    if end == 0 or end != len(body):
        raise CelRuntimeError(f'time: invalid duration "{text[:40]}"')
    return Duration(int(-total if text.startswith("-") else total))


@overload("timestamp(string) -> timestamp", "timestamp(timestamp) -> timestamp")
def timestamp(text: str | Timestamp) -> Timestamp:
    if isinstance(text, Timestamp):
        return text
    match = _TIMESTAMP.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        instant = datetime.fromisoformat(f"{match[1]}T{match[2]}+00:00")
    except ValueError:
        raise CelRuntimeError(f'invalid timestamp "{text[:40]}"') from None
    seconds = (instant - _EPOCH) // timedelta(seconds=1)
    if match[4]:
        offset = int(match[5]) * 3600 + int(match[6]) * 60
        seconds += offset if match[4] == "-" else -offset
    return Timestamp(seconds * SECOND + int((match[3] or "0").ljust(9, "0")))


@overload("timestamp(int) -> timestamp")
def timestamp_of_seconds(seconds: int) -> Timestamp:
    return Timestamp(seconds * SECOND)


@overload("int(timestamp) -> int")
def to_seconds(instant: Timestamp) -> int:
    return instant.nanoseconds // SECOND


@overload("int(duration) -> int")
def to_nanoseconds(length: Duration) -> int:
    return length.nanoseconds


@overload("string(duration) -> string")
def duration_to_string(length: Duration) -> str:
    whole, rest = divmod(abs(length.nanoseconds), SECOND)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{'-' if length.nanoseconds < 0 else ''}{whole}{fraction}s"


@overload("string(timestamp) -> string")
def timestamp_to_string(instant: Timestamp) -> str:
    whole, rest = divmod(instant.nanoseconds, SECOND)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    moment = _EPOCH + timedelta(seconds=whole)
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}{fraction}Z"


@overload("+(duration, duration) -> duration")
def add_durations(a: Duration, b: Duration) -> Duration:
    return Duration(a.nanoseconds + b.nanoseconds)


@overload("+(timestamp, duration) -> timestamp")
def add_after(a: Timestamp, b: Duration) -> Timestamp:
    return Timestamp(a.nanoseconds + b.nanoseconds)


@overload("+(duration, timestamp) -> timestamp")
def add_before(a: Duration, b: Timestamp) -> Timestamp:
    return Timestamp(a.nanoseconds + b.nanoseconds)


@overload("-(duration, duration) -> duration", "-(timestamp, timestamp) -> duration")
def difference(a: Duration | Timestamp, b: Duration | Timestamp) -> Duration:
    return Duration(a.nanoseconds - b.nanoseconds)


@overload("-(timestamp, duration) -> timestamp")
def earlier(a: Timestamp, b: Duration) -> Timestamp:
    return Timestamp(a.nanoseconds - b.nanoseconds)


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


def _field(name: str) -> tuple[str, str]:
    return f"timestamp.{name}() -> int", f"timestamp.{name}(string) -> int"


@overload(*_field("getFullYear"))
def full_year(instant: Timestamp, zone: str = "UTC") -> int:
    return _local(instant, zone).year


@overload(*_field("getMonth"))
def month(instant: Timestamp, zone: str = "UTC") -> int:
    return _local(instant, zone).month - 1


@overload(*_field("getDayOfYear"))
def day_of_year(instant: Timestamp, zone: str = "UTC") -> int:
    return _local(instant, zone).timetuple().tm_yday - 1


@overload(*_field("getDayOfMonth"))
def day_of_month(instant: Timestamp, zone: str = "UTC") -> int:
    return _local(instant, zone).day - 1


@overload(*_field("getDate"))
def date(instant: Timestamp, zone: str = "UTC") -> int:
    return _local(instant, zone).day


@overload(*_field("getDayOfWeek"))
def day_of_week(instant: Timestamp, zone: str = "UTC") -> int:
    return _local(instant, zone).isoweekday() % 7


@overload(*_field("getHours"))
def hours(instant: Timestamp, zone: str = "UTC") -> int:
    return _local(instant, zone).hour


@overload(*_field("getMinutes"))
def minutes(instant: Timestamp, zone: str = "UTC") -> int:
    return _local(instant, zone).minute


@overload(*_field("getSeconds"))
def seconds(instant: Timestamp, zone: str = "UTC") -> int:
    return _local(instant, zone).second


@overload(*_field("getMilliseconds"))
def milliseconds(instant: Timestamp, zone: str = "UTC") -> int:
    _zone(zone)
    return instant.nanoseconds % SECOND // 10**6


def _whole(length: Duration, unit: int) -> int:
    """Whole units, rounded toward zero."""
    count = abs(length.nanoseconds) // unit
    return -count if length.nanoseconds < 0 else count


@overload("duration.getHours() -> int")
def duration_hours(length: Duration) -> int:
    return _whole(length, 3600 * SECOND)


@overload("duration.getMinutes() -> int")
def duration_minutes(length: Duration) -> int:
    return _whole(length, 60 * SECOND)


@overload("duration.getSeconds() -> int")
def duration_seconds(length: Duration) -> int:
    return _whole(length, SECOND)


@overload("duration.getMilliseconds() -> int")
def duration_milliseconds(length: Duration) -> int:
    # Of the whole duration in milliseconds only the part below a second.
    return (
        _whole(length, 10**6) % 1000 if length.nanoseconds >= 0 else -(_whole(length, 10**6) % 1000)
    )
