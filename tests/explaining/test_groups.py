"""Why the group of a pod does not fit."""

import pytest
from tests.group_builders import gang, group, node, pod, pods, settings

from moorage import explain

RACK = "rack"
CONFIG = settings(TopologyAwareWorkloadScheduling=True)


def test_a_gang_that_does_not_fit():
    nodes = [node("n0"), node("n1")]
    found = explain([*nodes, *gang("g", 9)], "g-0", CONFIG)
    assert found.picked == ""
    assert "needs 9 pods, and at most 8 of 9 pending members fit" in str(found)
    reason = "for 1: 0/2 nodes are available: 2 Insufficient cpu."
    assert f"8 of 9 members fit; {reason}" in found.advice
    assert found.to_dict()["podGroup"]["placements"][0]["fit"] == 8


def test_the_placements_of_a_gang():
    nodes = [node("a0", rack="a"), node("b0", rack="b"), node("b1", rack="b")]
    constraint = {"schedulingConstraints": {"topology": [{"key": RACK}]}}
    there = pod("there", nodeName="a0", cpu=3)
    objects = [*nodes, there, group("g", 9, **constraint), *pods("g", 9)]
    found = explain(objects, "g-0", CONFIG)
    assert "at most 8 of 9 pending members fit in one placement" in found.message
    assert [line.partition(";")[0] for line in found.advice] == [
        "b: 8 of 9 members fit",
        "a: 1 of 9 members fit",
    ]


def test_a_gang_that_fits_needs_no_explanation():
    found = explain([node("n0"), *gang("g", 4)], "g-0", CONFIG)
    assert (found.picked, found.group) == ("n0", None)


def test_members_that_are_too_few():
    found = explain([node("n0"), group("g", 3), *pods("g", 2)], "g-0", CONFIG)
    assert found.gate is not None
    assert found.advice == ["The gang default/g needs 3 pods: 2 exist, 0 of them are on nodes."]


def test_members_in_two_racks():
    nodes = [node("a0", rack="a"), node("b0", rack="b")]
    placed = [pod(f"g-{i}", "g", nodeName=name) for i, name in enumerate(("a0", "b0"))]
    constraint = {"schedulingConstraints": {"topology": [{"key": RACK}]}}
    found = explain([*nodes, group("g", 3, **constraint), *placed, pod("g-2", "g")], "g-2", CONFIG)
    assert "more than 1 domain found for pod group: a, b" in found.message


@pytest.mark.parametrize("gates", [{}, {"GenericWorkload": True}])
def test_without_gangs_each_pod_is_explained_alone(gates):
    config = {**CONFIG, "featureGates": gates}
    found = explain([node("n0"), *gang("g", 9)], "g-0", config)
    assert (found.picked, found.group) == ("n0", None)
