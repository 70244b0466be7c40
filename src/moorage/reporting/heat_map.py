"""How full every node was at every time: a row per node, a column per moment, as a small PNG."""

import base64
import re
import struct
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from moorage.api import texts
from moorage.reporting import axes, charts, html
from moorage.reporting.axes import SIZES, ChartSize, PlotArea
from moorage.reporting.html import tag
from moorage.sim.results.recorder import GONE
from moorage.sim.results.samples import Sample

Cells = npt.NDArray[np.uint8]

MOST_ROWS, MOST_COLUMNS = 600, 288
MOST_NAMED = 24
# Dark to bright, even to the eye, distinct without red and green: anchors of `viridis`.
ANCHORS = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))
OVERFULL = (214, 39, 40)
FULL = 100
NOTHING, TOO_MUCH = 255, 101  # indexes in the palette


def figure(samples: Sequence[Sample], names: Sequence[str], seconds: float) -> str:
    """The heat map with its axes and a scale."""
    order = sorted(range(len(names)), key=lambda row: natural(names[row]))
    cells = _cells(samples, order, seconds)
    image = "data:image/png;base64," + base64.b64encode(png(cells)).decode()
    labels = [names[row] for row in order]
    pictures = [_picture(size, image, labels, seconds) for size in SIZES]
    caption = (
        "A row per node, from the first name to the last; the colour is the share of what the node "
        "has least left of. Blank: the node was not there."
    )
    return charts.figure("Packing of nodes", caption, _scale(), *pictures)


def natural(name: str) -> list[tuple[int, int, str]]:
    """`n-10` after `n-9`."""
    parts = re.findall(r"\d+|\D+", name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def _cells(samples: Sequence[Sample], order: Sequence[int], seconds: float) -> Cells:
    columns = min(MOST_COLUMNS, max(1, len(samples)))
    starts = np.array([sample.at for sample in samples])
    moments = (np.arange(columns) + 0.5) * seconds / columns
    chosen = np.maximum(np.searchsorted(starts, moments, side="right") - 1, 0)
    cells = np.full((len(order), columns), GONE, dtype=np.uint8)
    for column, index in enumerate(chosen.tolist()):
        packing = samples[index].packing
        rows = np.full(max(len(order), len(packing)), GONE, dtype=np.uint8)
        rows[: len(packing)] = packing
        cells[:, column] = rows[list(order)]
    cells[(cells > FULL) & (cells != GONE)] = TOO_MUCH
    return _fewer_rows(cells)


def _fewer_rows(cells: Cells) -> Cells:
    """Averages of neighbouring rows, if there are more rows than pixels."""
    if len(cells) <= MOST_ROWS:
        return cells
    groups = np.array_split(cells, MOST_ROWS)
    return np.array([_average(group) for group in groups], dtype=np.uint8)


def _average(group: Cells) -> Cells:
    there = group != GONE
    count = there.sum(axis=0)
    total = np.where(there, group, 0).sum(axis=0)
    mean = np.divide(total, count, out=np.full(group.shape[1], float(GONE)), where=count > 0)
    averaged: Cells = mean.astype(np.uint8)
    return averaged


def png(cells: Cells) -> bytes:
    """A PNG with a pixel per cell; cells are indexes in the palette."""
    height, width = cells.shape
    lines = b"".join(b"\0" + row.tobytes() for row in cells)
    colours = bytearray(3 * 256)
    for index in range(FULL + 1):
        colours[3 * index : 3 * index + 3] = bytes(colour(index))
    colours[3 * TOO_MUCH : 3 * TOO_MUCH + 3] = bytes(OVERFULL)
    opaque = bytes([255] * NOTHING + [0])
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", bytes(colours)),
            _chunk(b"tRNS", opaque),
            _chunk(b"IDAT", zlib.compress(lines, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, body: bytes) -> bytes:
    check = zlib.crc32(kind + body)
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)


def colour(percent: int) -> tuple[int, int, int]:
    """The colour of a share."""
    index = min(max(percent, 0), FULL) / FULL * (len(ANCHORS) - 1)
    low = min(int(index), len(ANCHORS) - 2)
    part = index - low
    red, green, blue = (
        round(a + (b - a) * part) for a, b in zip(ANCHORS[low], ANCHORS[low + 1], strict=True)
    )
    return red, green, blue


def _scale() -> str:
    """What the colours mean."""
    stops = ", ".join(f"rgb{colour(percent)}" for percent in range(0, FULL + 1, 25))
    bar = tag("i", class_="scale", style=f"background: linear-gradient(to right, {stops})")
    over = tag("i", class_="key", style=f"background: rgb{OVERFULL}")
    scale, beyond = tag("span", "0 %", bar, "100 %"), tag("span", over, "more than it has")
    return tag("p", scale, beyond, class_="legend")


def _picture(size: ChartSize, image: str, names: Sequence[str], seconds: float) -> str:
    named = len(names) <= MOST_NAMED
    most = 24 if size.name == "wide" else 14
    shown = [_cut(name, most) for name in names]
    height = 80 + (18 * len(names) if named else 320)
    # It has the whole width of the page, twice that of other charts.
    width = 2 * size.width if size.name == "wide" else size.width
    sheet = ChartSize(size.name, width, height, size.time_marks)
    longest = max(map(len, shown), default=1) if named else 6
    inner = PlotArea(sheet, seconds, 1.0, left=14 + axes.LETTER * longest)
    parts = [
        f'<image href="{image}" x="{inner.left:g}" y="{inner.top:g}" width="{inner.width:g}" '
        f'height="{inner.height:g}" preserveAspectRatio="none" class="heat"/>',
        axes.time_axis(inner, seconds),
    ]
    if named:
        for row, name in enumerate(shown):
            y = inner.top + inner.height * (row + 0.5) / len(shown) + 4
            parts.append(tag("text", html.text(name), x=inner.left - 6, y=f"{y:.1f}", class_="end"))
    else:
        parts.append(tag("text", "node", x=4, y=12, class_="unit"))
        for row in (0, len(names) // 4, len(names) // 2, 3 * len(names) // 4, len(names)):
            y = inner.top + inner.height * row / len(names) + 4
            label = f"{max(1, row):,}"
            parts.append(tag("text", label, x=inner.left - 6, y=f"{y:.1f}", class_="end"))
    label = f"How full each of {texts.count(len(names), 'node')} was over time"
    return axes.picture(sheet, label, *parts)


def _cut(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
