"""Limited volumes: pods wait for them, preempt their users, and get them when free."""

import pytest
from tests.storage_manifests import DRIVER, claimed, csi_node

from moorage import Simulation

BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def node(name):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    }


def pod(name, *volumes, on=None, priority=0):
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "priority": priority,
        "terminationGracePeriodSeconds": 5,
        "volumes": [v if isinstance(v, dict) else claimed(v) for v in volumes],
    }
    if on:
        spec["nodeName"] = on
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def disk(name):
    return {"name": name, "gcePersistentDisk": {"pdName": name}}


def bound(name, mode="ReadWriteOnce"):
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "annotations": BOUND},
        "spec": {"accessModes": [mode], "volumeName": f"pv-{name}"},
        "status": {"phase": "Bound"},
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"pv-{name}"},
        "spec": {
            "accessModes": [mode],
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": "default", "name": name},
            "csi": {"driver": DRIVER, "volumeHandle": name},
        },
        "status": {"phase": "Bound"},
    }
    return [claim, volume]


def test_a_read_write_once_pod_claim_is_preempted_by_higher_priority():
    objects = [node("a"), node("b"), *bound("data", "ReadWriteOncePod")]
    low, high = pod("low", "data", on="a"), pod("high", "data", priority=100)
    sim = Simulation([*objects, low, high], check=True)
    sim.run()
    # Eviction of its user helps only on the user's node.
    assert [(e.pod, e.by, e.node) for e in sim.evictions] == [("default/low", "default/high", "a")]
    assert sim.placements == {"default/high": "a"}


def test_a_pod_of_equal_priority_waits_for_a_read_write_once_pod_claim():
    objects = [node("a"), *bound("data", "ReadWriteOncePod")]
    sim = Simulation([*objects, pod("one", "data", on="a"), pod("two", "data")], check=True)
    sim.run()
    assert "ReadWriteOncePod" in sim.pending["default/two"]
    sim.delete("Pod", "default", "one")
    sim.run()
    assert sim.placements["default/two"] == "a"


def test_a_disk_is_preempted_from_a_pod_of_lower_priority():
    low, high = pod("low", disk("d"), on="a"), pod("high", disk("d"), priority=100)
    sim = Simulation([node("a"), low, high], check=True)
    sim.run()
    assert sim.placements == {"default/high": "a"}


def test_nodes_fill_up_to_their_limits_and_no_further():
    claims = [each for i in range(6) for each in bound(f"c{i}")]
    pods = [pod(f"p{i}", f"c{i}") for i in range(6)]
    nodes = [node("a"), node("b"), csi_node("a", 2), csi_node("b", 3)]
    sim = Simulation([*nodes, *claims, *pods], check=True)
    sim.run()
    taken = list(sim.placements.values())
    assert (taken.count("a"), taken.count("b"), taken.count(None)) == (2, 3, 1)
    assert list(sim.pending.values()) == [
        "0/2 nodes are available: 2 node(s) exceed max volume count. preemption: 0/2 nodes are "
        "available: 2 No preemption victims found for incoming pod."
    ]


@pytest.mark.parametrize("cure", ["limit", "pod", "preemption"])
def test_room_for_a_volume_is_made(cure):
    objects = [node("a"), csi_node("a", 1), *bound("one"), *bound("two")]
    priority = 100 if cure == "preemption" else 0
    pods = [pod("first", "one", on="a"), pod("second", "two", priority=priority)]
    sim = Simulation([*objects, *pods], check=True)
    sim.run(until=3)
    assert sim.placements["default/second"] is None
    if cure == "limit":
        sim.update(csi_node("a", 2))
    elif cure == "pod":
        sim.delete("Pod", "default", "first")
    sim.run(until=60)
    assert sim.placements["default/second"] == "a"


def test_pods_of_one_template_are_distinguished_by_their_claims():
    """Results for a pod with one claim are not reused for a pod with another claim."""
    once = [*bound("kept", "ReadWriteOncePod"), *bound("yielded", "ReadWriteOncePod")]
    users = [pod("king", "kept", on="a", priority=1000), pod("low", "yielded", on="a")]
    equals = [pod("first", "kept", priority=100), pod("second", "yielded", priority=100)]
    sim = Simulation([node("a"), *once, *users, *equals], check=True)
    sim.run()
    assert sim.placements["default/second"] == "a"
    assert "default/low" not in sim.placements
    assert list(sim.pending) == ["default/first"]
