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
    reason = "for 1: 0/2 nodes are available: 2 Insufficient cpu"
    more = "1 more node like n0 would be enough"
    assert f"8 of 9 members fit; {reason}; {more}." in found.advice
    [placement] = found.to_dict()["podGroup"]["placements"]
    assert (placement["fit"], placement["moreNodes"]) == (8, {"nodes": 1, "like": "n0"})


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


@pytest.mark.parametrize(
    ("cpu", "spec", "expected"),
    [
        pytest.param("1", {}, ["3 more nodes like b0 would be enough", "4 more"], id="room"),
        pytest.param("4", {}, ["16 more nodes", "17 more"], id="one member per node"),
        pytest.param("5", {}, ["", ""], id="no node is large enough"),
        pytest.param("1", {"nodeSelector": {"no": "node"}}, ["", ""], id="more than room"),
    ],
)
def test_how_many_more_nodes_a_rack_needs(cpu, spec, expected):
    nodes = [node("a0", rack="a"), node("b0", rack="b"), node("b1", rack="b")]
    constraint = {"schedulingConstraints": {"topology": [{"key": RACK}]}}
    members = [pod(f"g-{i}", "g", cpu, **spec) for i in range(18)]
    found = explain([*nodes, group("g", 18, **constraint), *members], "g-0", CONFIG)
    lines = [line for line in found.advice if " of 18 members fit" in line]
    for line, text in zip(lines[-2:], expected, strict=True):
        assert (text in line) if text else ("more node" not in line)


def test_a_gang_that_fits_needs_no_explanation():
    found = explain([node("n0"), *gang("g", 4)], "g-0", CONFIG)
    assert (found.picked, found.group) == ("n0", None)


def test_members_that_are_too_few():
    found = explain([node("n0"), group("g", 3), *pods("g", 2)], "g-0", CONFIG)
    assert found.gate is not None
    assert found.advice == ["The gang default/g needs 3 pods: 2 pods exist, 0 on nodes."]


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
