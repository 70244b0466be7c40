"""Preemption in virtual time."""

import pytest
from tests.group_builders import group, settings

from moorage import Simulation
from moorage.sim.faults import Faults


def node(name, cpu="4", pods="10"):
    room = {"cpu": cpu, "memory": "8Gi", "pods": pods}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": room},
    }


def pod(name, cpu, priority=0, on=None, grace=5, labels=None, **spec):
    spec = {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
        "priority": priority,
        "terminationGracePeriodSeconds": grace,
        **spec,
    }
    status = {}
    if on is not None:
        spec["nodeName"] = on
        status["startTime"] = "2026-01-01T00:00:00Z"
    meta = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}


def full(names="ab", per_node=4, **fields):
    """Nodes, and pods that fill them."""
    pods = [pod(f"low-{n}-{i}", "1", on=n, **fields) for n in names for i in range(per_node)]
    return [*(node(name) for name in names), *pods]


def test_victims_terminate_after_their_grace_period():
    sim = Simulation([*full("a"), pod("high", "3", 1000)], check=True)
    sim.run(until=4.9)
    assert sim.placements["default/high"] is None
    assert "default/low-a-3" in sim.placements
    assert sim.read("Pod", "default", "high")["status"]["nominatedNodeName"] == "a"
    sim.run()
    assert sim.placements["default/high"] == "a"
    assert [victim for victim in sim.placements if "low" in victim] == ["default/low-a-0"]


def test_evictions_name_the_victim_and_the_preemptor():
    sim = Simulation([*full("a"), pod("high", "2", 1000)], check=True)
    sim.run()
    assert [(e.pod, e.by, e.node, e.at) for e in sim.evictions] == [
        ("default/low-a-2", "default/high", "a", 0.0),
        ("default/low-a-3", "default/high", "a", 0.0),
    ]
    evicted = [event.pod.name for event in sim.events if event.reason == "Preempted"]
    assert evicted == ["low-a-2", "low-a-3"]


def test_a_victims_condition_shows_the_reason():
    sim = Simulation([*full("a"), pod("high", "1", 1000)], check=True)
    sim.run(until=1)
    conditions = sim.read("Pod", "default", "low-a-3")["status"]["conditions"]
    (mark,) = [each for each in conditions if each["type"] == "DisruptionTarget"]
    assert (mark["status"], mark["reason"]) == ("True", "PreemptionByScheduler")
    assert mark["message"] == "default-scheduler: preempting to accommodate a higher priority pod"


def test_several_preemptors_evict_pods_from_several_nodes():
    highs = [pod(f"high-{i}", "4", 1000) for i in range(3)]
    sim = Simulation([*full("abc"), *highs], check=True)
    sim.run()
    assert sorted(node for key, node in sim.placements.items() if "high" in key) == ["a", "b", "c"]
    assert len(sim.evictions) == 12


def test_a_policy_of_never_evicts_no_pod():
    sim = Simulation([*full("a"), pod("high", "1", 1000, preemptionPolicy="Never")], check=True)
    sim.run()
    assert sim.evictions == []
    assert sim.pending["default/high"].endswith(
        "preemption: not eligible due to preemptionPolicy=Never."
    )


def test_a_pod_that_is_bound_elsewhere_makes_preemption_possible():
    """No queueing hint tells of it; the retry after five minutes does."""
    labels = {"app": "a"}
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }
    nodes = [node("large", "2"), node("small", "1")]
    for each in nodes:
        each["metadata"]["labels"] = {"kubernetes.io/hostname": each["metadata"]["name"]}
    running = [pod("one", "500m", 2000, on="large", labels=labels), pod("low", "1", on="large")]
    high = pod("high", "1500m", 1000, labels=labels, topologySpreadConstraints=[spread])
    sim = Simulation([*nodes, *running, high], check=True)
    sim.run()
    assert "didn't match pod topology spread constraints" in sim.pending["default/high"]
    sim.create([pod("two", "1", labels=labels, nodeSelector={"kubernetes.io/hostname": "small"})])
    sim.run()
    assert sim.placements["default/high"] == "large"


@pytest.mark.parametrize("preemptor", ["pod", "gang"])
def test_a_nominated_pod_that_is_placed_elsewhere_frees_the_nominated_node(preemptor):
    in_gang = {"schedulingGroup": {"podGroupName": "g"}} if preemptor == "gang" else {}
    high = pod("high", "3", 1000, **in_gang)
    sim = Simulation([*full("a", grace=20), group("g", 1), high], settings(), check=True)
    sim.run(until=5)
    sim.create([pod("mid", "4", 500)])
    sim.run(until=6)
    assert sim.read("Pod", "default", "high")["status"]["nominatedNodeName"] == "a"
    assert "nominatedNodeName" not in sim.read("Pod", "default", "mid")["status"]
    sim.create([node("b", "3")])  # No queueing hint says that this helps a pod that needs 4.
    sim.run(until=10)
    assert sim.placements["default/high"] == "b"
    assert sim.read("Pod", "default", "mid")["status"]["nominatedNodeName"] == "a"
    sim.run()
    assert sim.placements["default/mid"] == "a"


def test_a_pod_of_higher_priority_takes_the_nominated_node():
    sim = Simulation([*full("a", grace=20), pod("high", "4", 1000)], check=True)
    sim.run(until=5)
    sim.create([pod("top", "4", 2000)])
    sim.run()
    assert sim.placements["default/top"] == "a"
    assert sim.placements["default/high"] is None
    # No pod is evicted twice, and the pod with lower priority is not nominated any more.
    assert len(sim.evictions) == 4
    assert "nominatedNodeName" not in sim.read("Pod", "default", "high")["status"]


def test_the_pod_is_deleted_while_its_victims_terminate():
    sim = Simulation([*full("a", grace=20), pod("high", "4", 1000)], check=True)
    sim.run(until=5)
    sim.delete("Pod", "default", "high")
    sim.create([pod("next", "4", 0)])
    sim.run()
    assert sim.placements == {"default/next": "a"}


def test_the_nominated_node_is_deleted():
    sim = Simulation([*full("a", grace=20), pod("high", "4", 1000)], check=True)
    sim.run(until=5)
    sim.delete("Node", "", "a")
    sim.create([node("b")])
    sim.run()
    assert sim.placements["default/high"] == "b"


def test_a_node_without_budget_violations_is_preferred():
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "guard", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "guarded"}}},
        "status": {"disruptionsAllowed": 0},
    }
    guarded = [pod(f"g-{i}", "1", on="a", labels={"app": "guarded"}) for i in range(4)]
    others = [pod(f"o-{i}", "1", 500, on="b") for i in range(4)]
    sim = Simulation(
        [node("a"), node("b"), budget, *guarded, *others, pod("high", "4", 1000)], check=True
    )
    sim.run()
    assert sim.placements["default/high"] == "b"


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(Faults(delete_fails=1, until_seconds=4), id="deletions fail"),
        pytest.param(Faults(patch_fails=1, until_seconds=4), id="nothing can be written"),
    ],
)
def test_failed_evictions_are_retried(faults):
    sim = Simulation([*full("ab"), pod("high", "4", 1000)], faults=faults, check=True)
    sim.run()
    assert sim.placements["default/high"] in ("a", "b")
    # No pod on the other node was evicted for it.
    assert len({each.node for each in sim.evictions}) == 1
