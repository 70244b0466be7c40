"""A row dressed as a node, and a copy of it on which things are tried."""

import pytest

from moorage.nodes.usage import Usage
from moorage.testing import make_node, make_pod, make_table

HTTP = ("0.0.0.0", "TCP", 80)


def small(name, **options):
    return make_pod(name, node="n", requests={"cpu": "1"}, **options)


@pytest.fixture
def table():
    return make_table([make_node("n", labels={"a": "b"})], [small("there", host_ports=[80])])


def seen(node):
    return {
        "pods": sorted(pod.name for pod in node.pods),
        "pod_count": node.pod_count,
        "cpu": node.requested("cpu"),
        "nonzero": (node.nonzero_requested("cpu"), node.nonzero_requested("memory") >> 20),
        "ports": set(node.used_ports),
    }


THERE = {"pods": ["there"], "pod_count": 1, "cpu": 1000, "nonzero": (1000, 200), "ports": {HTTP}}


def test_a_node_with_its_pods(table):
    node = table.info(table.row_of["n"])
    assert (node.name, node.labels, node.taints) == ("n", {"a": "b"}, ())
    assert (node.allocatable("cpu"), node.allocatable("pods")) == (4000, 110)
    assert (node.allocatable("unheard"), node.requested("unheard")) == (0, 0)
    assert seen(node) == THERE


def test_a_copy_takes_pods_and_gives_them_back(table):
    node = table.info(table.row_of["n"])
    copy = node.copy()
    assert seen(copy) == THERE
    more = small("more", host_ports=[81])
    copy.add(more, Usage.of(more))
    assert seen(copy) == {
        "pods": ["more", "there"],
        "pod_count": 2,
        "cpu": 2000,
        "nonzero": (2000, 400),
        "ports": {HTTP, ("0.0.0.0", "TCP", 81)},
    }
    assert seen(node) == THERE
    copy.remove(more)
    assert seen(copy) == THERE
    copy.remove(small("there"))
    assert seen(copy) == {
        "pods": [],
        "pod_count": 0,
        "cpu": 0,
        "nonzero": (0, 0),
        "ports": set(),
    }
    assert seen(node) == THERE


def test_a_copy_stands_still_while_the_table_moves_on(table):
    copy = table.info(table.row_of["n"]).copy()
    late = small("late")
    table.add_pod("n", late, Usage.of(late))
    assert seen(copy) == THERE


def test_a_copy_of_a_copy_knows_what_was_tried(table):
    copy = table.info(table.row_of["n"]).copy()
    more = small("more")
    copy.add(more, Usage.of(more))
    second = copy.copy()
    assert seen(second) == seen(copy)
    second.remove(more)
    assert seen(copy)["cpu"] == 2000
    assert seen(second) == THERE


def test_a_row_without_a_node_has_no_node_to_show(table):
    row = table.row_of["n"]
    table.remove_node("n")
    with pytest.raises(AssertionError, match="never shown to a plugin"):
        assert table.info(row).node
