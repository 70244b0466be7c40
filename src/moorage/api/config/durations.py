"""Go's durations: "1m30s" to seconds and back.

Configuration files have Go's durations. In memory a duration is a float of seconds; Go counts whole
nanoseconds, which a float represents exactly up to three months.
"""

import math
import re

NANOSECONDS = {
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "µs": 1_000,  # U+00B5, the micro sign
    "μs": 1_000,  # U+03BC, the Greek letter; Go accepts both
    "ns": 1,
}
LONGEST_NANOSECONDS = 2**63 - 1
PART = re.compile(r"(?P<number>[0-9]+\.?[0-9]*|\.[0-9]+)(?P<unit>[^0-9.]*)", re.ASCII)


def parse(text: str) -> float:
    """Seconds in a Go duration such as `1m30s`; raises ValueError with Go's text."""
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if unsigned == "0":
        return 0.0
    parts = list(PART.finditer(unsigned))
    is_complete = parts and sum(len(part.group()) for part in parts) == len(unsigned)
    nanoseconds = sum(_part(part, text) for part in parts) if is_complete else math.inf
    if nanoseconds > LONGEST_NANOSECONDS:
        raise ValueError(f'time: invalid duration "{text}"')
    return (-nanoseconds if text.startswith("-") else nanoseconds) / NANOSECONDS["s"]


def text(seconds: float) -> str:
    """The duration as Go prints it: `15s`, `1m30s`, `10m0s`, `250ms`."""
    nanoseconds = min(round(abs(seconds) * NANOSECONDS["s"]), LONGEST_NANOSECONDS)
    sign = "-" if seconds < 0 else ""
    if nanoseconds == 0:
        return "0s"
    for unit in ("ns", "µs", "ms"):
        if nanoseconds < 1000 * NANOSECONDS[unit]:
            return f"{sign}{_decimal(nanoseconds, NANOSECONDS[unit])}{unit}"
    hours, rest = divmod(nanoseconds, NANOSECONDS["h"])
    minutes, rest = divmod(rest, NANOSECONDS["m"])
    large = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{large}{_decimal(rest, NANOSECONDS['s'])}s"


def _part(part: re.Match[str], whole: str) -> int:
    unit = part["unit"]
    if not unit:
        raise ValueError(f'time: missing unit in duration "{whole}"')
    if unit not in NANOSECONDS:
        raise ValueError(f'time: unknown unit "{unit}" in duration "{whole}"')
    integer, _, fraction = part["number"].partition(".")
    scale = NANOSECONDS[unit]
    # Integers only: with a float, 0.1s would be one nanosecond too short.
    tail: int = int(fraction or "0") * scale // 10 ** len(fraction)
    return int(integer or "0") * scale + tail


def _decimal(nanoseconds: int, unit: int) -> str:
    whole, rest = divmod(nanoseconds, unit)
    if not rest:
        return str(whole)
    digits = len(str(unit)) - 1
    return f"{whole}.{rest:0{digits}d}".rstrip("0")
