"""Lines, stacked areas and bars, as SVG that needs no script to be seen."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from moorage.reporting import axes, html
from moorage.reporting.axes import SIZES, PlotArea
from moorage.reporting.html import tag

WHOLE = ("pods", "nodes")  # units that come in pieces
SERIES = 6  # The number of colours in the style sheet.


class Series(NamedTuple):
    """A name and a value for every moment."""

    name: str
    values: Sequence[float]


def figure(title: str, caption: str, *inner: str, legend: Sequence[str] = ()) -> str:
    """A chart with its title, a line about it, and what its colours mean."""
    keys = (
        tag("li", tag("i", class_=f"key s{i % SERIES}"), html.text(name))
        for i, name in enumerate(legend)
    )
    listed = tag("ul", *keys, class_="legend") if legend else ""
    head = tag("figcaption", tag("h3", html.text(title)), tag("p", html.text(caption)))
    return tag("figure", head, listed, *inner)


def over_time(
    title: str,
    caption: str,
    times: Sequence[float],
    series: Sequence[Series],
    unit: str,
    *,
    stacked: bool = False,
) -> str:
    """Quantities over time: lines in steps, as a value holds until the next; or stacked areas."""
    sums = [[0.0] * len(times)]
    for each in series:
        sums.append([a + b for a, b in zip(sums[-1], each.values, strict=True)])
    largest = max(sums[-1]) if stacked else max((max(each.values) for each in series), default=0)
    marks = axes.of_numbers(largest, 5, whole=unit in WHOLE)
    label = _description(title, series, unit)
    pictures = []
    for size in SIZES:
        inner = axes.for_numbers(size, times[-1], marks)
        both = axes.y_axis(inner, marks, unit) + axes.time_axis(inner, times[-1])
        if stacked:
            kind, paths = "area", [_between(inner, times, *each) for each in pairwise(sums)]
        else:
            kind, paths = "line", [_steps(inner, times, each.values) for each in series]
        drawn = (f'<path class="{kind} s{i % SERIES}" d="{path}"/>' for i, path in enumerate(paths))
        pictures.append(axes.picture(size, label, both, *drawn, **_plot(inner)))
    names = [each.name for each in series]
    return figure(title, caption, *pictures, _data(times, series, unit), legend=names)


def bars(
    title: str, caption: str, names: Sequence[str], series: Sequence[Series], unit: str, axis: str
) -> str:
    """A bar for each name; several series are stacked."""
    totals = [sum(each.values[i] for each in series) for i in range(len(names))]
    marks = axes.of_numbers(max(totals, default=0), 5, whole=True)
    pictures = []
    for size in SIZES:
        inner = axes.for_numbers(size, len(names), marks)
        parts = [axes.y_axis(inner, marks, unit)]
        slot = inner.width / max(1, len(names))
        for i, name in enumerate(names):
            x, reached = inner.x(i) + slot * 0.1, 0.0
            for number, each in enumerate(series):
                value = each.values[i]
                if value:
                    y = inner.y(reached + value)
                    height = inner.y(reached) - y
                    label = f"{each.name + ', ' if len(series) > 1 else ''}{name}: "
                    parts.append(
                        f'<rect class="bar s{number % SERIES}" x="{x:.1f}" y="{y:g}" '
                        f'width="{slot * 0.8:.1f}" height="{height:.1f}"><title>'
                        f"{html.text(label + axes.number(value))} {unit}</title></rect>"
                    )
                    reached += value
        parts.append(_names(inner, names, axis))
        pictures.append(axes.picture(size, f"{title}: {unit} by {axis}", *parts))
    legend = [each.name for each in series] if len(series) > 1 else ()
    return figure(title, caption, *pictures, legend=legend)


def _names(inner: PlotArea, names: Sequence[str], axis: str) -> str:
    """Names below the bars; as many as fit side by side."""
    slot = inner.width / max(1, len(names))
    longest = max((len(name) for name in names), default=1) * axes.LETTER + 6
    every = max(1, -(-int(longest) // max(1, int(slot))))
    marks = []
    for i in range(0, len(names), every):
        x = inner.left + slot * (i + 0.5)
        label = html.text(names[i])
        marks.append(tag("text", label, x=f"{x:.1f}", y=inner.floor + 16, class_="middle"))
    return axes.x_axis(inner, marks, axis)


def _steps(inner: PlotArea, times: Sequence[float], values: Sequence[float]) -> str:
    path = f"M{inner.x(times[0]):g} {inner.y(values[0]):g}"
    return path + _turns(inner, times[1:], values) + f"H{inner.x(times[-1]):g}"


def _between(
    inner: PlotArea, times: Sequence[float], low: Sequence[float], high: Sequence[float]
) -> str:
    path = _steps(inner, times, high) + f"V{inner.y(low[-1]):g}"
    # A value holds from its own moment on, so the way back turns at the later one.
    return path + _turns(inner, times[:0:-1], low[::-1]) + f"H{inner.x(times[0]):g}Z"


def _turns(inner: PlotArea, times: Sequence[float], values: Sequence[float]) -> str:
    """A step at each time at which the value differs from the one before."""
    return "".join(
        f"H{inner.x(at):g}V{inner.y(value):g}"
        for at, (last, value) in zip(times, pairwise(values), strict=True)
        if value != last
    )


def _description(title: str, series: Sequence[Series], unit: str) -> str:
    """What a chart shows, for screen readers."""
    parts = (
        f"{each.name} from {axes.number(round(min(each.values), 1))} to "
        f"{axes.number(round(max(each.values), 1))}, "
        f"{axes.number(round(each.values[-1], 1))} at the end"
        for each in series
    )
    return f"{title}, in {unit}: {'; '.join(parts)}"


def _plot(inner: PlotArea) -> dict[str, object]:
    """The position of the plot area, for the script."""
    return {
        "data_left": f"{inner.left:g}",
        "data_width": f"{inner.width:g}",
        "data_top": f"{inner.top:g}",
        "data_floor": f"{inner.floor:g}",
    }


def _data(times: Sequence[float], series: Sequence[Series], unit: str) -> str:
    """The figures behind a chart, for the script that shows them under the pointer."""
    plain = {
        "unit": unit,
        "times": [round(at, 2) for at in times],
        "series": [[each.name, [round(value, 2) for value in each.values]] for each in series],
    }
    body = json.dumps(plain, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json">{body}</script>'
