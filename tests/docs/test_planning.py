"""The examples of docs/planning.md, each checked by a calculation of its own."""

import math
from collections import Counter
from pathlib import Path

import pytest

from moorage import Simulation
from moorage.api import manifests, requests
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.planning.add_nodes import add_nodes
from moorage.planning.capacity import capacity
from moorage.planning.compact import compact
from moorage.planning.compare import compare
from moorage.planning.drain import drain

FOLDER = Path(__file__).parents[2] / "examples" / "planning"
WORKER = {"cpu": 1500, "memory": 3 << 30, "pods": 1}


def load(*names):
    return manifests.load([FOLDER / name for name in names]).everything


@pytest.fixture(scope="module")
def cluster():
    return load("cluster.yaml")


@pytest.fixture(scope="module")
def placed(cluster):
    simulation = Simulation(cluster)
    simulation.run()
    assert not simulation.pending
    return simulation


@pytest.fixture(scope="module")
def dump(placed):
    """The same cluster as `kubectl get` would show it: every pod on its node."""
    return placed.objects


def free(simulation):
    """What is left on each node, added up from the objects themselves."""
    left = {node.name: Counter(requests.allocatable(node)) for node in simulation.cluster.all(Node)}
    for pod in simulation.cluster.all(Pod):
        left[pod.node_name].subtract(requests.requested(pod))
        left[pod.node_name]["pods"] -= 1
    return left


def room_for_workers(simulation):
    """How many fit on each node, by division."""
    return {
        node: min(amounts[name] // WORKER[name] for name in WORKER)
        for node, amounts in free(simulation).items()
    }


def test_capacity_is_what_division_says(dump, placed):
    (worker,) = load("worker.yaml")
    expected = room_for_workers(placed)
    got = capacity(dump, worker)
    assert got.fits == sum(expected.values())
    assert got.nodes == {node: count for node, count in expected.items() if count}


def test_no_more_nodes_are_added_than_it_takes(dump, placed):
    objects = [*dump, *load("batch.yaml")]
    got = add_nodes(objects, load("new-nodes.yaml"))
    # 60 pods of 1.5 CPUs; a large node has 16 and gives 0.2 of them to the agent.
    lacking = 60 * 1500 - sum(amounts["cpu"] for amounts in free(placed).values())
    assert got.lower_bound == math.ceil(lacking / (16_000 - 200))
    # Pods are not cut in two: the bound is not always met.
    left = 60 - sum(room_for_workers(placed).values())
    assert got.pending_before == left
    assert got.total == math.ceil(left / ((16_000 - 200) // 1500))
    assert not got.impossible
    pools = load("new-nodes.yaml")
    grown = [with_count(pool, got.counts[pool.name]) for pool in pools]
    simulation = Simulation([*objects, *grown])
    simulation.run(until=1)
    assert not simulation.pending


def with_count(pool, count):
    plain = manifests.dump(pool)
    plain["spec"]["count"] = count
    return plain


def test_draining_every_node_of_a_zone(dump, placed):
    zone = "topology.kubernetes.io/zone=eu-1b"
    got = drain(dump, selector=zone)
    assert got.nodes == ("general-1", "general-4", "memory-1")
    on_them = [p for p in placed.cluster.all(Pod) if p.node_name in got.nodes]
    by_app = Counter(pod.labels.get("app") for pod in on_them)
    # Databases may not go, agents do not, and all of the web tier finds room elsewhere.
    assert len(got.blocked) == by_app["db"]
    assert len(got.stays) == by_app["agent"]
    assert len(got.moves) == by_app["web"]
    assert not {move.to for move in got.moves} & {*got.nodes, ""}
    assert got.rounds == math.ceil(by_app["web"] / 2)


def test_the_bare_pod_is_lost(cluster):
    assert [stay.pod for stay in drain(cluster, ["general-0"]).lost] == ["shop/debug"]


def test_compaction_keeps_to_its_bounds(cluster):
    got = compact(cluster, seeds=range(5))
    # Three databases that do not share a node; and 19 CPUs beside the agents.
    assert got.lower_bound == 3
    assert all(3 <= kept <= 8 for kept in got.kept.values())
    assert got.needed == sorted(got.kept.values())[4]


def test_packing_is_less_even(cluster):
    got = compare(cluster, {"default": None, "packed": FOLDER / "packed.yaml"})
    spread, packed = got.outcomes
    assert spread.imbalance["cpu"] < packed.imbalance["cpu"]
    assert spread.utilisation == packed.utilisation
    assert not spread.pending
