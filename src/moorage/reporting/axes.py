"""The size of a chart, its plot area, its axes, and round numbers and times for them.

Every chart is drawn twice, for wide and for narrow screens, because text in a picture that is
scaled down to a phone cannot be read. The style sheet shows one of the two.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from moorage.reporting import html
from moorage.reporting.html import tag

STEPS = (1, 2, 2.5, 5, 10)
# Seconds per unit, and the multiples of the unit at which an axis may be marked.
TIMES: tuple[tuple[str, float, tuple[float, ...]], ...] = (
    ("seconds", 1.0, (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30)),
    ("minutes", 60.0, (0.5, 1, 2, 5, 10, 15, 20, 30)),
    ("hours", 3600.0, (0.5, 1, 2, 3, 4, 6, 8, 12)),
    ("days", 86400.0, (0.5, 1, 2, 5, 7, 10, 14, 28, 56, 140, 364)),
)

LETTER = 7.0  # About the width of a letter, in the units of a picture.


@dataclass(frozen=True, slots=True)
class ChartSize:
    """The size of a picture, and how many times its axis shows at the most."""

    name: str
    width: int
    height: int
    time_marks: int


WIDE = ChartSize("wide", 620, 250, 9)
NARROW = ChartSize("narrow", 350, 230, 6)
SIZES = (WIDE, NARROW)


@dataclass(frozen=True, slots=True)
class PlotArea:
    """The inner part of a picture, and the positions of values in it."""

    size: ChartSize
    x_most: float
    y_most: float
    left: float
    bottom: float = 40.0
    top: float = 22.0
    right: float = 12.0

    @property
    def width(self) -> float:
        return self.size.width - self.left - self.right

    @property
    def height(self) -> float:
        return self.size.height - self.top - self.bottom

    @property
    def floor(self) -> float:
        return self.top + self.height

    def x(self, value: float) -> float:
        return round(self.left + self.width * value / self.x_most, 1) if self.x_most else self.left

    def y(self, value: float) -> float:
        return round(self.floor - self.height * value / self.y_most, 1)


def for_numbers(size: ChartSize, x_most: float, marks: Sequence[float]) -> PlotArea:
    """A plot area whose left margin has room for the marks of the y axis."""
    longest = max(len(number(mark)) for mark in marks)
    return PlotArea(size, x_most, marks[-1], left=14 + LETTER * longest)


def y_axis(area: PlotArea, marks: Sequence[float], unit: str) -> str:
    """Horizontal rules with their values, and the unit on top."""
    parts = [html.tag("text", html.text(unit), x=4, y=12, class_="unit")]
    for mark in marks:
        y = area.y(mark)
        end = area.left + area.width
        parts.append(f'<path class="rule" d="M{area.left:g} {y:g}H{end:g}"/>')
        label = html.text(number(mark))
        parts.append(tag("text", label, x=area.left - 6, y=y + 4, class_="end"))
    return "".join(parts)


def time_axis(area: PlotArea, seconds: float) -> str:
    """Marks below, with the unit in the middle."""
    unit, times = of_times(seconds, area.size.time_marks)
    marks = []
    for at, label in times:
        x = area.x(at)
        marks.append(f'<path class="axis" d="M{x:g} {area.floor:g}v4"/>')
        marks.append(tag("text", label, x=x, y=area.floor + 17, class_="middle"))
    return x_axis(area, marks, f"virtual time, {unit}")


def x_axis(area: PlotArea, marks: Sequence[str], name: str) -> str:
    """The line below, its marks, and what they are."""
    line = f'<path class="axis" d="M{area.left:g} {area.floor:g}h{area.width:g}"/>'
    middle, y = f"{area.left + area.width / 2:g}", area.size.height - 5
    return line + "".join(marks) + tag("text", html.text(name), x=middle, y=y, class_="middle unit")


def picture(size: ChartSize, label: str, *inner: str, **attributes: object) -> str:
    """A drawing with a description for screen readers."""
    return tag(
        "svg",
        tag("desc", html.text(label)),  # A title would pop up over the chart.
        *inner,
        viewBox=f"0 0 {size.width} {size.height}",
        role="img",
        aria_label=label,
        class_=f"plot {size.name}",
        **attributes,
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
    """A unit, and marks as (seconds, text): at most so many, if possible."""
    unit, per_unit, multiples = unit_of(seconds)
    step = next(
        (each for each in multiples if seconds / (each * per_unit) + 1 <= most), multiples[-1]
    )
    count = math.floor(seconds / (step * per_unit) + 1e-9)
    marks = [index * step for index in range(count + 1)]
    return unit, [(mark * per_unit, number(round(mark, 1))) for mark in marks]


def unit_of(seconds: float) -> tuple[str, float, tuple[float, ...]]:
    """The largest unit that a duration has at least two of: its name, seconds and steps."""
    return next((unit for unit in reversed(TIMES) if seconds >= 2 * unit[1]), TIMES[0])


def number(value: float) -> str:
    """`1,200`, `0.25`, `12.5`."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.3f}".rstrip("0").rstrip(".")


def span(seconds: float) -> str:
    """A duration for people: `0 s`, `12.3 s`, `4 min 10 s`, `24 h`."""
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
