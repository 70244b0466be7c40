"""A chart's paper: how large it is, where things lie on it, axes and grid.

Every chart is drawn twice, for wide and for narrow screens, because text in a picture that is
scaled down to a phone cannot be read. The style sheet shows one of the two.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from moorage.reporting import html, ticks
from moorage.reporting.html import tag

LETTER = 7.0  # About the width of a letter, in the units of a picture.


@dataclass(frozen=True, slots=True)
class Paper:
    """A size to draw for."""

    name: str
    width: int
    height: int
    time_marks: int


WIDE = Paper("wide", 620, 250, 9)
NARROW = Paper("narrow", 350, 230, 6)
PAPERS = (WIDE, NARROW)


@dataclass(frozen=True, slots=True)
class Frame:
    """The inner part of a picture, and how values become places on it."""

    paper: Paper
    x_most: float
    y_most: float
    left: float
    bottom: float = 40.0
    top: float = 22.0
    right: float = 12.0

    @property
    def width(self) -> float:
        return self.paper.width - self.left - self.right

    @property
    def height(self) -> float:
        return self.paper.height - self.top - self.bottom

    @property
    def floor(self) -> float:
        return self.top + self.height

    def x(self, value: float) -> float:
        return round(self.left + self.width * value / self.x_most, 1) if self.x_most else self.left

    def y(self, value: float) -> float:
        return round(self.floor - self.height * value / self.y_most, 1)


def for_numbers(paper: Paper, x_most: float, marks: Sequence[float]) -> Frame:
    """A frame whose left margin has room for the marks of the y axis."""
    longest = max(len(ticks.number(mark)) for mark in marks)
    return Frame(paper, x_most, marks[-1], left=14 + LETTER * longest)


def y_axis(frame: Frame, marks: Sequence[float], unit: str) -> str:
    """Lines across with their values, and the unit on top."""
    parts = [html.tag("text", html.text(unit), x=4, y=12, class_="unit")]
    for mark in marks:
        y = frame.y(mark)
        end = frame.left + frame.width
        parts.append(f'<path class="rule" d="M{frame.left:g} {y:g}H{end:g}"/>')
        label = html.text(ticks.number(mark))
        parts.append(tag("text", label, x=frame.left - 6, y=y + 4, class_="end"))
    return "".join(parts)


def time_axis(frame: Frame, seconds: float) -> str:
    """Marks below, with the unit in the middle."""
    unit, marks = ticks.of_times(seconds, frame.paper.time_marks)
    parts = [f'<path class="axis" d="M{frame.left:g} {frame.floor:g}h{frame.width:g}"/>']
    for at, label in marks:
        x = frame.x(at)
        parts.append(f'<path class="axis" d="M{x:g} {frame.floor:g}v4"/>')
        parts.append(tag("text", label, x=x, y=frame.floor + 17, class_="middle"))
    middle = frame.left + frame.width / 2
    name = f"virtual time, {unit}"
    parts.append(tag("text", name, x=f"{middle:g}", y=frame.paper.height - 5, class_="middle unit"))
    return "".join(parts)


def picture(paper: Paper, label: str, *inner: str, **attributes: object) -> str:
    """A drawing with a description for those who do not see it."""
    return tag(
        "svg",
        tag("desc", html.text(label)),  # A title would pop up over the figures.
        *inner,
        viewBox=f"0 0 {paper.width} {paper.height}",
        role="img",
        aria_label=label,
        class_=f"plot {paper.name}",
        **attributes,
    )
