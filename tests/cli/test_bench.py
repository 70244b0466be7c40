"""`moorage bench`."""

import json
import shutil
import subprocess

import pytest

from moorage.bench.shapes import SHAPES
from moorage.cli import bench

SMALL = ("--nodes", "20", "--repeat", "1")


def test_list(run):
    got = run("bench", "--list")
    assert got.exit_code == 0
    assert [line.split()[0] for line in got.stdout.splitlines()] == list(SHAPES)
    assert all(len(line) <= 100 for line in got.stdout.splitlines())


def test_for_people(run):
    got = run("bench", "basic", "taints", *SMALL)
    assert got.exit_code == 0
    assert got.stdout.startswith("20 nodes with 4 pods; the median of 1 run; ")
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


def test_a_shape_with_unschedulable_pods(run):
    got = run("bench", "with-unschedulable", "-o", "json", *SMALL)
    assert json.loads(got.stdout)["shapes"]["with-unschedulable"]["againstWithout"] > 0
    assert "of the rate without the waiting pods" in run("bench", "with-gated", *SMALL).stdout


PICKY = """
from moorage import plugin as mp

class Picky:
    name = "Picky"

    def filter(self, state, pod, node):
        return mp.SUCCESS if pod.name.endswith("0") else mp.unschedulable("not round")
"""


def test_what_a_plugin_costs(run, tmp_path):
    (tmp_path / "picky.py").write_text(PICKY, encoding="utf-8")
    plugin = f"{tmp_path}/picky.py:Picky"
    got = run("bench", "basic", "--plugin", plugin, "-o", "json", *SMALL)
    assert got.exit_code == 0
    basic = json.loads(got.stdout)["shapes"]["basic"]
    assert (basic["pods"], basic["bound"], basic["boundWithout"]) == (40, 4, 40)
    figures = basic["cpuMicrosecondsPerPod"]
    assert figures["with"] - figures["without"] == pytest.approx(figures["plugin"], abs=0.02)
    shown = run("bench", "basic", "--plugin", plugin, *SMALL).stdout
    assert ["basic", "40", "4"] in [line.split()[:3] for line in shown.splitlines()]
    assert "not as many pods were bound" in " ".join(shown.split())


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A git checkout of its own, with these sources as its only commit."""
    for folder in ("src", "tools"):
        shutil.copytree(bench.SOURCES.parent / folder, tmp_path / folder)
    shutil.copy(bench.SOURCES.parent / "pyproject.toml", tmp_path)
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "all"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True, capture_output=True)
    monkeypatch.setattr(bench, "SOURCES", tmp_path / "src")
    return tmp_path


def test_two_commits(run, checkout):
    changed = checkout / "src" / "moorage" / "bench" / "basic.py"
    new = changed.read_text(encoding="utf-8").replace("def basic(", "def simple(")
    changed.write_text(new, encoding="utf-8")  # What counts is the commit, not the files here.
    got = run("bench", "taints", "--compare", "HEAD", "-o", "json", *SMALL)
    assert got.exit_code == 0, got.stderr
    told = json.loads(got.stdout)
    figures = told["shapes"]["taints"]
    times = figures["cpuMicrosecondsPerPod"]
    assert figures["timesAsFast"]["median"] == pytest.approx(times["there"] / times["here"], 0.01)
    got = run("bench", "basic", "--compare", "HEAD", *SMALL)
    assert got.exit_code == 2
    assert 'failed here: moorage: no shape "basic"' in got.stderr


def test_not_a_checkout(run, tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "SOURCES", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    got = run("bench", "basic", "--compare", "HEAD", *SMALL)
    assert (got.exit_code, got.stdout) == (2, "")
    assert got.stderr == (
        f"moorage: {tmp_path} is not in a git checkout; only there commits can be compared\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["nope"], 'no shape "nope"; the shapes are basic, ', id="an unknown shape"),
        pytest.param(
            ["basic", "--plugin", "x"], 'plugin "x": has to be FILE.py:Class', id="no file"
        ),
        pytest.param(
            ["basic", "--plugin", "/nowhere.py:X"],
            'plugin "/nowhere.py:X": /nowhere.py: no such file',
            id="a file that is not there",
        ),
        pytest.param(
            ["basic", "--nodes", "1", "--pods", "100", "--initial", "0"],
            "40 of 100 pods fit on 1 node; ask for fewer pods, or for more nodes",
            id="more pods than fit",
        ),
    ],
)
def test_bad_input(run, arguments, message):
    got = run("bench", *arguments)
    assert (got.exit_code, got.stdout) == (2, "")
    assert got.stderr.startswith(f"moorage: {message}")
    assert got.stderr.count("\n") == 1


def test_an_unknown_commit(run, checkout):
    got = run("bench", "basic", "--compare", "no-such-thing", *SMALL)
    assert (got.exit_code, got.stdout) == (2, "")
    assert got.stderr == f'moorage: no commit "no-such-thing" in {checkout}\n'


@pytest.mark.parametrize("nodes", [0, 1_000_001])
def test_a_number_of_nodes_that_cannot_be_measured(run, nodes):
    got = run("bench", "basic", "--nodes", nodes)
    assert got.exit_code == 2
    assert f"{nodes} is not in the range 1<=x<=1000000" in got.stderr
