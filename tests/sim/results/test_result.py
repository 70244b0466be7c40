"""Result: the same figures as a recount, and its CSV tables."""

import csv
import io
import random

import pytest

from moorage import Simulation
from moorage.api import requests
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.sim.results.result import WaitTimes
from moorage.sim.results.samples import MOST_SAMPLES
from moorage.sim.results.tables import tables


def node(name, cpu="4", **labels):
    status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}} | {
        "status": status
    }


def pod(name, cpu="1", seconds=None, labels=None, **spec):
    meta = {"name": name, "namespace": "default", "labels": labels or {}}
    if seconds is not None:
        meta["annotations"] = {"moorage.dev/run-seconds": str(seconds)}
    spec["containers"] = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def test_a_small_course():
    # The node holds one at a time: b waits until a has ended, 1 s to start and 60 s to run.
    sim = Simulation([node("n", "1"), pod("a", seconds=60), pod("b", seconds=60)])
    sim.run(until=200)
    result = sim.result
    assert (result.created, result.bound, result.ended, result.running) == (2, 2, 2, 0)
    assert result.waits.max == 61
    assert result.waits.p50 == 0
    assert result.utilisation()["cpu"].peak == 1
    assert result.utilisation()["cpu"].mean == pytest.approx(122 / 200)
    assert result.samples[0].pending == 1
    assert result.samples[-1].at == 200


@pytest.mark.parametrize("interval", [7.0, 50.0, 100.0, None])
def test_utilisation_does_not_depend_on_the_samples(interval):
    # A pod requests the whole node for 11 s of every 50 s, from 5 s on; samples at multiples of 50
    # see an idle node only.
    sim = Simulation([node("n")])
    if interval is not None:
        sim.sample_every(interval)
    for start in range(5, 500, 50):
        sim.at(start, lambda start=start: sim.create([pod(f"p{start}", "4", seconds=10)]))
    sim.run(until=500)
    result = sim.result
    assert result.utilisation()["cpu"] == pytest.approx((11 / 50, 1.0, 0.0))
    halves = [result.mean_share("cpu", start, start + 250) for start in (0, 250)]
    if interval == 50:
        assert halves == pytest.approx([11 / 50, 11 / 50])
        assert result.mean_shares("cpu")[1:] == pytest.approx([11 / 50] * 10)


def test_times_in_tables_keep_their_precision():
    sim = Simulation([node("n"), pod("a", "4", priority=0)])
    sim.run(until=1234567.125)
    sim.create([pod("b", "4", priority=1)])
    sim.run(until=1234568.25)
    [row] = csv.DictReader(io.StringIO(tables(sim.result)["disruptions"]))
    assert row["seconds"] == "1234567.125"
    samples = list(csv.DictReader(io.StringIO(tables(sim.result)["samples"])))
    assert {"1234567.125", "1234568.25"} <= {each["seconds"] for each in samples}


def test_figures_equal_a_recount():
    random_source = random.Random(5)
    objects = [node(f"n{i}", str(2 + i % 3)) for i in range(6)]
    sim = Simulation(objects, seed=1)
    for number in range(120):
        seconds = random_source.choice([None, 5, 40])
        sim.create([pod(f"p{number}", f"{random_source.randrange(100, 900)}m", seconds)])
        sim.run(until=2.0 * number)
        if number % 30 == 7:
            sim.delete("Node", "", f"n{number // 30}")
    result = sim.result
    pods = sim.cluster.active(Pod)
    there = {each.name for each in sim.cluster.all(Node)}
    assert sim._recorder.usage.total_offered["cpu"] == sum(
        requests.allocatable(each)["cpu"] for each in sim.cluster.all(Node)
    )
    used = sum(requests.requested(p)["cpu"] for p in pods if p.node_name in there)
    assert result.samples[-1].requested["cpu"] == used
    assert result.samples[-1].offered["cpu"] == sum(
        requests.allocatable(each)["cpu"] for each in sim.cluster.all(Node)
    )
    assert result.running == sum(bool(p.node_name) for p in pods)
    assert result.pending_count == sum(not p.node_name for p in pods) == len(sim.pending)
    assert {packing.name for packing in result.nodes} == there
    for packing in result.nodes:
        mine = [p for p in pods if p.node_name == packing.name]
        assert packing.pods == len(mine)
        assert packing.requested["cpu"] == sum(requests.requested(p)["cpu"] for p in mine)
        assert packing.new == [p.key for p in mine], "none of them was created with its node"
    assert result.placements == sim.placements
    assert result.placed == [p.key for p in sim.cluster.all(Pod) if p.node_name]


def test_pods_by_how_they_came_to_their_node():
    ended = pod("ended", nodeName="n") | {"status": {"phase": "Succeeded"}}
    gated = pod("gated", schedulingGates=[{"name": "wait"}])
    sim = Simulation([node("n"), pod("given", nodeName="n"), ended, pod("new"), gated])
    sim.run()
    result = sim.result
    assert (result.placed, result.already_running) == (["default/new"], ["default/given"])
    assert result.gated == ["default/gated"]
    (packing,) = result.nodes
    assert (packing.pods, packing.new) == (2, ["default/new"])


def test_fragmentation_is_room_where_a_typical_pod_does_not_fit():
    # Both pods ask 2; the small node has 1 left, the large one 6: one of seven is stranded.
    sim = Simulation([node("small", "3"), node("large", "8"), pod("a", "2"), pod("b", "2")])
    sim.create([])
    sim.run()
    free = {name: 8 if name == "large" else 3 for name in ("small", "large")}
    for on in sim.placements.values():
        free[on] -= 2
    stranded = sum(each for each in free.values() if each < 2)
    expected = stranded / sum(free.values())
    assert sim.result.samples[-1].fragmentation["cpu"] == pytest.approx(expected, abs=1e-6)


def test_disruptions_name_their_cause():
    sim = Simulation([node("n", "1"), pod("low", priority=0)])
    sim.run()
    sim.create([pod("high", priority=10)])
    sim.run()
    [gone] = sim.result.disruptions
    assert (gone.pod, gone.cause, gone.by) == ("default/low", "preemption", "default/high")


@pytest.mark.parametrize(
    ("zones", "violated"),
    [
        pytest.param(["a", "a", "a", "b"], 2, id="three to one"),
        pytest.param(["a", "a", "b", "b"], None, id="even"),
    ],
)
def test_spread_violations(zones, violated):
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    nodes = [node("a", zone="a"), node("b", zone="b")]
    pods = [
        pod(f"w{i}", labels={"app": "web"}, nodeName=zone, topologySpreadConstraints=[spread])
        for i, zone in enumerate(zones)
    ]
    found = Simulation([*nodes, *pods]).result.spread_violations
    assert [each.skew for each in found] == ([violated] if violated else [])
    if violated:
        assert found[0].selector == "app=web"
        assert found[0].pods == 4


@pytest.mark.parametrize(
    ("seconds", "p50", "p90", "p99"),
    [
        pytest.param([], 0, 0, 0, id="none"),
        pytest.param([3.0], 3, 3, 3, id="one"),
        pytest.param([float(i) for i in range(1, 101)], 50, 90, 99, id="a hundred"),
    ],
)
def test_percentiles(seconds, p50, p90, p99):
    waits = WaitTimes.of(seconds)
    assert (waits.p50, waits.p90, waits.p99) == (p50, p90, p99)
    assert sum(waits.histogram) == len(seconds)


def test_a_long_course_takes_no_more_room():
    sim = Simulation([node("n"), pod("a")])
    for second in range(3 * MOST_SAMPLES):
        sim.run(until=second)
    samples = sim.result.samples
    assert MOST_SAMPLES / 3 < len(samples) <= MOST_SAMPLES + 1
    assert [each.at for each in samples] == sorted({each.at for each in samples})


def test_tables_are_csv():
    sim = Simulation([node("n"), pod("a"), pod("huge", "64")])
    sim.run()
    for name, text in tables(sim.result).items():
        head, *rows = csv.reader(io.StringIO(text))
        assert all(len(row) == len(head) for row in rows), name
    assert "default/huge" in tables(sim.result)["pending"]
    assert tables(sim.result)["nodes"].splitlines()[1].startswith("n,1,0.25,4000,1000")


def test_an_empty_cluster():
    result = Simulation([]).result
    assert result.nodes == []
    assert result.to_dict()["summary"]["pending"] == 0
