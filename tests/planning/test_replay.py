"""Recordings come out the same byte for byte; under another configuration, the differences do."""

from pathlib import Path

import pytest
from tests.planning.conftest import node, pod
from tests.planning.test_compare import PACKED

from moorage import Simulation
from moorage.errors import InputError
from moorage.planning import recording
from moorage.planning.replay import replay, rerun
from moorage.scenarios import reading
from moorage.scenarios.play import Play


def record(path, simulation):
    recording.write(path, simulation)
    return recording.read(path)


def day(config=None, seed=3):
    """A cluster with something of everything: arrivals, deletions, preemption, a failing node."""
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "batch", "namespace": "default"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "batch"}},
            "template": {
                "metadata": {"labels": {"app": "batch"}},
                "spec": pod("x", 1000)["spec"],
            },
        },
    }
    nodes = [node(name) for name in ("a", "b", "c")]
    simulation = Simulation([*nodes, replica_set], config, seed, trace=True)
    simulation.at(10, lambda: simulation.create([pod(f"w{i}", 1500) for i in range(4)]))
    simulation.at(20, lambda: simulation.delete("Pod", "default", "w1"))
    simulation.at(30, lambda: simulation.create([pod("vip", 3500, priority=100)]))
    simulation.at(40, lambda: simulation.create([node("d")]))
    short = pod("short", 100, annotations={"moorage.dev/run-seconds": "5"})
    simulation.at(50, lambda: simulation.create([short]))
    simulation.at(60, lambda: simulation.delete("Node", "", "b"))
    simulation.run(until=200)
    simulation.run()
    return simulation


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.gz"])
def test_the_same_byte_for_byte(tmp_path, name):
    recorded = record(tmp_path / name, day())
    got = replay(recorded)
    assert got.is_same
    assert got.calls == len(recorded.texts) > 50


def test_the_same_run_gives_the_same_file(tmp_path):
    for name in ("one.gz", "two.gz"):
        recording.write(tmp_path / name, day())
    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "two.gz").read_bytes()


def test_the_configuration_is_kept(tmp_path):
    recorded = record(tmp_path / "run", day(PACKED))
    assert replay(recorded).is_same
    _, *lines = (tmp_path / "run").read_text().splitlines()
    other = recording.read(_write(tmp_path / "other", [_default_header(tmp_path), *lines]))
    assert not replay(other).is_same


def test_a_line_that_came_out_otherwise_is_shown(tmp_path):
    simulation = Simulation([node("a"), pod("p", 100)], trace=True)
    simulation.run()
    recording.write(tmp_path / "run", simulation)
    texts = (tmp_path / "run").read_text().splitlines()
    at = next(i for i, text in enumerate(texts) if '"BindPod"' in text)
    texts[at] = texts[at].replace('"node":"a"', '"node":"z"')
    got = replay(recording.read(_write(tmp_path / "changed", texts)))
    assert got.difference is not None
    line, recorded, replayed = got.difference
    assert line == at + 1
    assert ('"node":"z"' in recorded, '"node":"a"' in replayed) == (True, True)


def test_the_same_configuration_has_the_same_outcome(tmp_path):
    simulation = day()
    got = rerun(record(tmp_path / "run", simulation), None)
    assert got.is_same
    assert got.evictions == len(simulation.evictions) > 0
    assert got.pods == len(simulation.placements)


@pytest.mark.parametrize("kind", ["StatefulSet", "ReplicaSet"])
def test_a_recording_without_changes_ends(tmp_path, kind):
    """Its workloads have no template, so that their controllers have nothing to compare."""
    labels = {"app": "db"}
    workload = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod("x", 1000)["spec"]},
        },
    }
    first = Simulation([node("a"), node("b"), workload])
    first.run()
    second = Simulation(first.objects, trace=True)
    second.run()
    got = rerun(record(tmp_path / "run", second))
    assert (got.pods, got.is_same, got.waits.count) == (2, True, 0)


def test_another_configuration_has_another(tmp_path):
    simulation = Simulation([node("a"), node("b"), pod("p0", 1000)], trace=True)
    simulation.at(5, lambda: simulation.create([pod("p1", 1000)]))
    simulation.run(until=10)
    assert len(set(simulation.placements.values())) == 2
    recorded = record(tmp_path / "run", simulation)
    got = rerun(recorded, PACKED)
    assert len(got.moved) == 1
    (before, after) = next(iter(got.moved.values()))
    assert {before, after} == {"a", "b"}
    assert (got.pending, got.recorded_pending, got.evictions) == ({}, 0, 0)


def test_what_others_changed_is_played_again(tmp_path):
    gated = pod("p", 100, schedulingGates=[{"name": "example.com/wait"}])
    simulation = Simulation([node("a", unschedulable=True), gated], trace=True)

    def open_gate():
        waiting = simulation.read("Pod", "default", "p")
        waiting["spec"]["schedulingGates"] = []
        simulation.update(waiting)

    def uncordon():
        there = simulation.read("Node", "", "a")
        there["spec"] = {}
        simulation.update(there)

    simulation.at(5, open_gate)
    simulation.at(9, uncordon)
    simulation.run(until=60)
    assert simulation.placements == {"default/p": "a"}
    got = rerun(record(tmp_path / "run", simulation), PACKED)
    assert (got.pods, got.pending, got.moved) == (1, {}, {})


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        pytest.param([], "line 1: is not a recording", id="empty"),
        pytest.param(["kind: Pod"], "line 1: is not a recording", id="something else"),
        pytest.param(['{"recording":9,"config":{}}'], "version 9", id="of another version"),
        pytest.param(["HEADER"], "nothing is recorded", id="only the first line"),
        pytest.param(["HEADER", "{"], "line 2: is not a recorded call", id="cut off"),
        pytest.param(
            ["HEADER", '{"at":0,"call":"advance","replica":0}'],
            "line 2: scheduler 0 has not been started",
            id="without a start",
        ),
        pytest.param(
            ["HEADER", '{"at":0,"call":"dance","replica":0}'], 'call "dance"', id="unknown call"
        ),
        pytest.param(
            ["HEADER", '{"at":0,"call":"observe","replica":0,"news":"Added","kind":"Cat"}'],
            'kind "Cat"',
            id="unknown kind",
        ),
    ],
)
def test_bad_input_is_one_line(tmp_path, lines, message):
    header = _default_header(tmp_path)
    path = _write(tmp_path / "file", [header if line == "HEADER" else line for line in lines])
    with pytest.raises(InputError, match=message) as caught:
        recording.read(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"nowhere: No such file"):
        recording.read(tmp_path / "nowhere")


def _write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def _default_header(tmp_path):
    simulation = Simulation([node("a")], trace=True)
    recording.write(tmp_path / "default", simulation)
    return (tmp_path / "default").read_text().splitlines()[0]


def test_a_scenario_has_the_same_outcome(tmp_path):
    path = Path(__file__).parents[2] / "examples" / "scenarios" / "hour.yaml"
    simulation = Play(reading.load(path), trace=True).run()
    recorded = record(tmp_path / "run", simulation)
    assert replay(recorded).is_same
    got = rerun(recorded, None)
    assert got.is_same
    assert got.pods == len(simulation.placements) > 0
