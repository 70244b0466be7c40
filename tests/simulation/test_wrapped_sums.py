"""Requests whose sum on a node is beyond 64 bits: it wraps around, as in kube-scheduler.

What is expected here was read off kube-scheduler 1.36.4.
"""

import pytest

from moorage import Simulation, explain

MOST = 2**63 - 1


def node(name="n", memory="8Gi"):
    room = {"pods": "110", "cpu": "4", "memory": memory}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": room},
    }


def pod(name, memory, priority=0, **spec):
    container = {"name": "c", "resources": {"requests": {"memory": str(memory)}}}
    spec = {"containers": [container], "priority": priority, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def huge(*names, memory=MOST):
    return [pod(name, memory, nodeName="n") for name in names]


@pytest.mark.parametrize(
    ("objects", "request_", "priority", "placed"),
    [
        pytest.param([node(), *huge("a", "b")], "8Gi", 0, "n", id="the sum is -2"),
        pytest.param([node(), *huge("a", "b")], "9Gi", 0, None, id="-2 is less than a GiB"),
        pytest.param(
            [node(), *huge("a", "b", "c")], "1Gi", 0, None, id="the sum is positive again"
        ),
        pytest.param(
            [node(memory=str(MOST)), *huge("a", "b")], "1Gi", 0, None, id="what is left wraps, too"
        ),
        pytest.param([node(), *huge("a", "b", "c")], "1Gi", 100, "n", id="preemption"),
    ],
)
def test_explain_and_simulation_agree(objects, request_, priority, placed):
    objects = [*objects, pod("me", request_, priority)]
    explained = explain(objects, "default/me").to_dict()
    assert explained.get("nominated" if priority else "picked") == placed
    sim = Simulation(objects, check=True)
    sim.run()
    assert sim.placements["default/me"] == placed


def test_utilization_does_not_wrap():
    sim = Simulation([node(memory=str(MOST)), *huge("a", "b"), *huge("c", memory=5)], check=True)
    sim.run(until=1)
    [used] = sim.result.nodes
    assert used.requested["memory"] == 2 * MOST + 5
    shown = sim.result.to_dict()["nodes"]["n"]["requested"]["memory"]
    assert shown == str(2 * MOST + 5)
