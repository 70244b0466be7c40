"""The map of the web UI in the report: how full every node was, with a slider over the run.

The scripts are those of the web UI, in one module element, so that the file needs no other.
"""

import base64
import json
import re
from collections.abc import Sequence
from importlib import resources

import numpy as np

from moorage.reporting import charts, heat_map
from moorage.reporting.html import tag
from moorage.sim.results.recorder import GONE
from moorage.sim.results.result import Result
from moorage.sim.results.samples import Sample

# A byte for each node and moment; more moments are left out evenly.
MOST_CELLS = 400_000
MOST_MOMENTS = 200
MOST_MARKS = 500

# In the order in which they depend on each other.
SCRIPTS = ("ui/static/dom.js", "ui/static/map.js", "reporting/cluster_map.js")


def figure(result: Result) -> str:
    """The map with its slider, its data and its scripts."""
    caption = (
        "A tile per node; the colour is the requested share of what the node has least left of. "
        "Move with the arrow keys, or point at a tile."
    )
    body = json.dumps(_data(result), separators=(",", ":")).replace("<", "\\u003c")
    parts = (
        tag("div", class_="map-time"),
        tag("div", tag("canvas", tabindex="0", role="application"), class_="map-frame"),
        tag("p", class_="map-text note", aria_live="polite"),
        f'<script type="application/json">{body}</script>',
        f"<style>{_style()}</style>",
        f'<script type="module">{_script()}</script>',
    )
    whole = charts.figure("Nodes over time", caption, *parts)
    return whole.replace("<figure>", '<figure class="cluster-map">', 1)


def _data(result: Result) -> dict[str, object]:
    order = sorted(range(len(result.rows)), key=lambda row: heat_map.natural(result.rows[row]))
    chosen = _evenly(result.samples, min(MOST_MOMENTS, max(2, MOST_CELLS // max(1, len(order)))))
    cells = np.full((len(chosen), len(order)), GONE, dtype=np.uint8)
    for moment, sample in enumerate(chosen):
        rows = np.full(max(len(order), len(sample.packing)), GONE, dtype=np.uint8)
        rows[: len(sample.packing)] = sample.packing
        cells[moment] = rows[order]
    return {
        "names": [result.rows[row] for row in order],
        "times": [round(sample.at, 2) for sample in chosen],
        "pending": [sample.pending for sample in chosen],
        "cells": base64.b64encode(cells.tobytes()).decode(),
        "gone": GONE,
        "disruptions": [
            {"at": round(each.at, 2), "text": f"{each.pod}: {each.cause} {each.by}".rstrip()}
            for each in result.disruptions[:MOST_MARKS]
        ],
    }


def _evenly(samples: Sequence[Sample], most: int) -> list[Sample]:
    """At most so many samples, with the first and the last."""
    if len(samples) <= most:
        return list(samples)
    return [samples[index] for index in np.linspace(0, len(samples) - 1, most).round().astype(int)]


def _style() -> str:
    """The colours of the web UI, for this figure only."""
    return _file("ui/static/style.css").partition("* {")[0].replace(":root", ".cluster-map")


def _script() -> str:
    """The modules as one: their own imports and exports are not needed."""
    text = "\n".join(map(_file, SCRIPTS))
    return re.sub(r"^export ", "", re.sub(r"^import .*\n", "", text, flags=re.M), flags=re.M)


def _file(path: str) -> str:
    return resources.files("moorage").joinpath(path).read_text(encoding="utf-8")
