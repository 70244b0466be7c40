"""The text of an explanation with preemption."""

import pytest

from moorage import explain


def node(name):
    room = {"cpu": "2", "memory": "8Gi", "pods": "10"}
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "status": {"allocatable": room},
    }


def pod(name, cpu="1", priority=0, on=None, **spec):
    spec |= {
        "priority": priority,
        "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
    }
    status = {}
    if on:
        spec["nodeName"] = on
        status["startTime"] = "2026-01-01T00:00:00Z"
    meta = {"name": name, "labels": {"app": name.partition("-")[0]}}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": spec, "status": status}


BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "guard", "namespace": "default"},
    "spec": {"selector": {"matchLabels": {"app": "db"}}},
    "status": {"disruptionsAllowed": 0},
}
CLUSTER = [
    node("n1"),
    node("n2"),
    BUDGET,
    pod("web-0", on="n1"),
    pod("web-1", on="n1"),
    pod("db-0", on="n2"),
    pod("db-1", on="n2"),
]


def test_victims_and_why_the_node_is_nominated():
    explanation = explain([*CLUSTER, pod("new", "2", 100)], "new")
    assert (
        str(explanation)
        == """\
default/new fits no node without preemption. 2 pods would be preempted on n1; of 2 nodes where
preemption helps, it violates the fewest disruption budgets.

Preemption is possible on 2 nodes:
  * n1: default/web-0 (priority 0), default/web-1 (priority 0)
    n2: default/db-0 (priority 0), default/db-1 (priority 0); violates disruption budget
      default/guard (2 pods)

2 nodes are rejected:
  2  Insufficient cpu (NodeResourcesFit)
      n1, n2

Details:
  - Insufficient cpu: the pod requests 2; of the 2 nodes with this reason, n1 has the most free: 0.
    Large enough if other pods left: n1, n2."""
    )
    assert explanation.to_dict()["nominated"] == "n1"
    assert explanation.to_dict()["candidates"]["n2"] == {
        "victims": ["default/db-0", "default/db-1"],
        "pdbViolations": 2,
    }


@pytest.mark.parametrize(
    ("pods", "text"),
    [
        pytest.param(
            [pod("new", "2", 0)],
            "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.",
            id="no pod of lower priority",
        ),
        pytest.param(
            [pod("new", "2", 100, preemptionPolicy="Never")],
            "preemption: not eligible due to preemptionPolicy=Never.",
            id="the preemption policy is Never",
        ),
    ],
)
def test_why_preemption_does_not_help(pods, text):
    explanation = explain([*CLUSTER, *pods], "new")
    assert explanation.preemption_message == text
    assert text in str(explanation).replace("\n", " ")
    assert explanation.to_dict()["preemptionMessage"] == text
