"""Round numbers and times for axes."""

import math

STEPS = (1, 2, 2.5, 5, 10)
# Seconds per unit, and the multiples of the unit at which an axis may be marked.
TIMES: tuple[tuple[str, float, tuple[float, ...]], ...] = (
    ("seconds", 1.0, (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30)),
    ("minutes", 60.0, (0.5, 1, 2, 5, 10, 15, 20, 30)),
    ("hours", 3600.0, (0.5, 1, 2, 3, 4, 6, 8, 12)),
    ("days", 86400.0, (0.5, 1, 2, 5, 7, 10, 14, 28, 56, 140, 364)),
)


def of_numbers(largest: float, about: int, *, whole: bool = False) -> list[float]:
    """Marks from 0 to at least the largest value, about so many."""
    if largest <= 0:
        return [0.0, 1.0]
    rough = largest / about
    power = 10 ** math.floor(math.log10(rough))
    step = next(each * power for each in STEPS if each * power >= rough * 0.999)
    if whole:
        step = max(1, math.ceil(step))
    count = math.ceil(largest / step - 1e-9)
    return [number * step for number in range(count + 1)]


def of_times(seconds: float, most: int) -> tuple[str, list[tuple[float, str]]]:
    """A unit, and marks as (seconds, text), so many at the most where that is possible."""
    unit, per_unit, multiples = unit_of(seconds)
    step = next(
        (each for each in multiples if seconds / (each * per_unit) + 1 <= most), multiples[-1]
    )
    count = math.floor(seconds / (step * per_unit) + 1e-9)
    marks = [place * step for place in range(count + 1)]
    return unit, [(mark * per_unit, number(round(mark, 1))) for mark in marks]


def unit_of(seconds: float) -> tuple[str, float, tuple[float, ...]]:
    """The largest unit of which a span has at least two: its name, its seconds, its steps."""
    found = TIMES[0]
    for unit in TIMES:
        if seconds >= 2 * unit[1]:
            found = unit
    return found


def number(value: float) -> str:
    """`1,200`, `0.25`, `12.5`."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.3f}".rstrip("0").rstrip(".")


def span(seconds: float) -> str:
    """A time as people say it: `0 s`, `12.3 s`, `4 min 10 s`, `24 h`."""
    if seconds < 60:
        return f"{number(round(seconds, 1))} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"
