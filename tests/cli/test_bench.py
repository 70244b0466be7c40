"""`moorage bench`."""

import json

import pytest

from moorage.bench.shapes import SHAPES

SMALL = ("--nodes", "20", "--repeat", "1")


def test_list(run):
    got = run("bench", "--list")
    assert got.exit_code == 0
    assert [line.split()[0] for line in got.stdout.splitlines()] == list(SHAPES)
    assert all(len(line) <= 100 for line in got.stdout.splitlines())


def test_for_people(run):
    got = run("bench", "basic", "taints", *SMALL)
    assert got.exit_code == 0
    assert got.stdout.startswith("20 nodes, 4 pods on them before; the median of 1 run, ")
    rows = [line.split()[:2] for line in got.stdout.splitlines()]
    assert ["basic", "40"] in rows
    assert ["taints", "40"] in rows


def test_for_programs(run):
    got = run("bench", "basic", "-o", "json", "--nodes", "20", "--pods", "30", "--initial", "5")
    assert got.exit_code == 0
    figures = json.loads(got.stdout)
    assert set(figures["machine"]) >= {"python", "numpy", "platform", "processor", "cores"}
    basic = figures["shapes"]["basic"]
    assert basic | {"nodes": 20, "initial": 5, "pods": 30, "bound": 30, "repeats": 3} == basic
    speed = basic["podsPerSecond"]
    assert 0 < speed["min"] <= speed["median"] <= speed["max"]
    assert basic["microsecondsPerPod"]["cpu"] > 0
    assert basic["calibrationSeconds"] > 0
    assert basic["podsPerCalibration"] > 0


def test_profile(run):
    got = run("bench", "basic", "--profile", *SMALL)
    assert got.exit_code == 0
    assert got.stdout.startswith("basic: ")
    assert "Ordered by: internal time" in got.stdout
    assert "cycle.py" in got.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(["nope"], 'no shape "nope"; there is basic, ', id="an unknown shape"),
        pytest.param(
            ["basic", "--nodes", "1", "--pods", "100", "--initial", "0"],
            "40 of 100 pods fit on 1 nodes; ask for fewer pods, or for more nodes",
            id="more pods than fit",
        ),
    ],
)
def test_bad_input(run, arguments, complaint):
    got = run("bench", *arguments)
    assert (got.exit_code, got.stdout) == (2, "")
    assert got.stderr.startswith(f"moorage: {complaint}")
    assert got.stderr.count("\n") == 1
