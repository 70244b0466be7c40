"""Cron schedules: `*/5 * * * *`, `0 3 * * MON-FRI`, `@hourly`, as CronJobs state them."""

import re
from typing import NamedTuple

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
_FIELDS = 5
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# February has 29 days in a leap year.
_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DURATION = re.compile(r"([0-9]+(\.[0-9]+)?(h|m|s|ms))+")


class _Bounds(NamedTuple):
    least: int
    most: int
    names: dict[str, int]


_BOUNDS = (
    _Bounds(0, 59, {}),
    _Bounds(0, 23, {}),
    _Bounds(1, 31, {}),
    _Bounds(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Bounds(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


class CronSchedule(NamedTuple):
    """The minutes, hours, days of the month, months and days of the week of a schedule.

    A day matches if both its fields match, or one of them if neither is `*`.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool

    @property
    def names_a_day(self) -> bool:
        """Whether a day of the calendar matches; none does in `0 0 30 2 *`."""
        if not self.any_day and not self.any_weekday and self.weekdays:
            return bool(self.months)
        return any(min(self.days, default=32) <= _LENGTHS[month - 1] for month in self.months)


def parse(schedule: str) -> CronSchedule | None:
    """The schedule; None for `@every` with a duration. Raises ValueError."""
    text = schedule
    if text.startswith(("TZ=", "CRON_TZ=")):
        text = text.partition(" ")[2].strip()
    if text.startswith("@"):
        if text.startswith(_EVERY):
            if not _DURATION.fullmatch(text.removeprefix(_EVERY)):
                raise ValueError(f"failed to parse duration {text}")
            return None
        if text not in _DESCRIPTORS:
            raise ValueError(f"unrecognized descriptor: {text}")
        text = _DESCRIPTORS[text]
    fields = text.split()
    if len(fields) != _FIELDS:
        listed = " ".join(fields)
        raise ValueError(f"expected exactly {_FIELDS} fields, found {len(fields)}: [{listed}]")
    minutes, hours, days, months, weekdays = (
        _values(field, bounds) for field, bounds in zip(fields, _BOUNDS, strict=True)
    )
    stars = [any(part.startswith(("*", "?")) for part in field.split(",")) for field in fields]
    return CronSchedule(minutes, hours, days, months, weekdays, stars[2], stars[4])


def _values(field: str, bounds: _Bounds) -> frozenset[int]:
    return frozenset(value for part in field.split(",") if part for value in _range(part, bounds))


def _range(text: str, bounds: _Bounds) -> range:
    parts = text.split("/")
    if len(parts) > 2:
        raise ValueError(f"too many slashes: {text}")
    ends = parts[0].split("-")
    if len(ends) > 2:
        raise ValueError(f"too many hyphens: {text}")
    if ends[0] in ("*", "?"):
        first, last = bounds.least, bounds.most
    else:
        first = _number(ends[0], bounds)
        # A step without an end goes up to the largest value.
        last = _number(ends[1], bounds) if len(ends) > 1 else first
        if len(ends) == 1 and len(parts) > 1:
            last = bounds.most
    step = _number(parts[1], _Bounds(0, 0, {})) if len(parts) > 1 else 1
    if first < bounds.least:
        raise ValueError(f"beginning of range ({first}) below minimum ({bounds.least}): {text}")
    if last > bounds.most:
        raise ValueError(f"end of range ({last}) above maximum ({bounds.most}): {text}")
    if first > last:
        raise ValueError(f"beginning of range ({first}) beyond end of range ({last}): {text}")
    if not step:
        raise ValueError(f"step of range should be a positive number: {text}")
    return range(first, last + 1, step)


def _number(text: str, bounds: _Bounds) -> int:
    if (named := bounds.names.get(text.lower())) is not None:
        return named
    if not (text.isascii() and text.isdecimal()) or len(text) > 9:
        raise ValueError(
            f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'
        )
    return int(text)
