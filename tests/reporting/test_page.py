"""The report as a file."""

import base64
import re
import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest
from tests.queue_builders import node, pods, queue, settings

from moorage import Simulation
from moorage.reporting import axes, heat_map, page
from moorage.scenarios import reading
from moorage.scenarios.play import Play


def test_same_seed_same_page(scenario, crowded):
    again = Play(reading.plan(*scenario)).run()
    assert page.render(again.result, title="x", seed=3) == page.render(
        crowded.result, title="x", seed=3
    )


def test_sections(report):
    heads = re.findall(r"<h2[^>]*>([^<]*)</h2>", report)
    assert heads == [
        "Over time",
        "Pending",
        "Cluster map",
        "Node map",
        "Time to schedule",
        "Disruptions",
        "Nodes at the end",
        "Decisions",
    ]
    for cause in ("preemption", "drain", "node failure"):
        assert f"<td>{cause}</td>" in report


def test_the_heat_map_is_a_picture_of_the_packing():
    cells = np.array([[0, 50, 100], [heat_map.GONE, 101, 25]], dtype=np.uint8)
    data = heat_map.png(cells)
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (3, 2)
    packed = data[data.index(b"IDAT") + 4 : data.index(b"IEND") - 8]
    assert zlib.decompress(packed) == b"\0" + bytes([0, 50, 100]) + b"\0" + bytes([255, 101, 25])


def test_many_nodes_stay_a_small_picture(crowded):
    result = crowded.result
    samples = [replace(each, packing=np.resize(each.packing, 5000)) for each in result.samples]
    figure = heat_map.figure(samples, [f"n-{i}" for i in range(5000)], result.seconds)
    image = re.search(r"base64,([^\"]*)", figure)[1]
    height = struct.unpack(">I", base64.b64decode(image)[20:24])[0]
    assert height == heat_map.MOST_ROWS


@pytest.mark.parametrize(
    ("largest", "marks"),
    [
        pytest.param(0, [0, 1], id="nothing"),
        pytest.param(100, [0, 20, 40, 60, 80, 100], id="percents"),
        pytest.param(7, [0, 2, 4, 6, 8], id="a few"),
        pytest.param(1234, [0, 250, 500, 750, 1000, 1250], id="many"),
    ],
)
def test_round_numbers(largest, marks):
    assert axes.of_numbers(largest, 5, whole=True) == marks


@pytest.mark.parametrize(
    ("seconds", "unit", "labels"),
    [
        pytest.param(86400, "hours", "0 3 6 9 12 15 18 21 24", id="a day"),
        pytest.param(10800, "hours", "0 0.5 1 1.5 2 2.5 3", id="three hours"),
        pytest.param(330, "minutes", "0 1 2 3 4 5", id="some minutes"),
        pytest.param(1, "seconds", "0 0.2 0.4 0.6 0.8 1", id="a second"),
        pytest.param(30 * 86400, "days", "0 5 10 15 20 25 30", id="a month"),
    ],
)
def test_round_times(seconds, unit, labels):
    found, marks = axes.of_times(seconds, 9)
    assert (found, " ".join(label for _, label in marks)) == (unit, labels)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (12.34, "12.3 s"), (250, "4 min 10 s"), (5400, "1 h 30 min"), (259200, "3 d")],
)
def test_spans(seconds, said):
    assert axes.span(seconds) == said


def test_queues_are_shown_with_their_shares():
    objects = [queue("team-a"), queue("team-b", weight=3), node("node", 8), *pods("team-a", 3)]
    sim = Simulation(objects, config=settings())
    sim.run(until=700)
    found = page.render(sim.result, title="x", seed=0)
    assert "Shares of queues" in found
    for text in ("team-a", "25.0%", "37.5%"):
        assert text in found
