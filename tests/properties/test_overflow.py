"""Sums of requests overflow as in Go, where amounts are integers of 64 bits.

A recount with that arithmetic is compared with the filter for one node, for all nodes, for nodes
from which pods went one by one, and for hypothetical ones. All forms of the scores agree.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import Simulation, explain
from moorage.api import requests
from moorage.api.quantity import wrapped
from moorage.nodes.hypothetical import HypotheticalRows, NumberedUsages
from moorage.nodes.usage import Usage
from moorage.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from moorage.plugins.node_resources_fit import NodeResourcesFit
from moorage.testing.builders import make_node, make_pod, make_state, make_table
from moorage.testing.checks import check_twins

GPU = "example.com/gpu"
NAMES = ("cpu", "memory", GPU)
MOST = 2**63 - 1
edges = st.sampled_from([0, 1, 2**40, 2**52, 2**61, 2**62, MOST - 1, MOST])
amount = edges | st.integers(0, MOST) | st.integers(0, 10**6)


@st.composite
def amounts(draw):
    found = draw(st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, amount)))
    return {name: f"{n}m" if name == "cpu" else n for name, n in found.items()}


@st.composite
def clusters(draw):
    """Nodes, the pods that come to each, and those of them that go."""
    nodes, pods = [], []
    for i in range(draw(st.integers(1, 3))):
        nodes.append(make_node(f"n{i}", allocatable=draw(amounts()) | {"pods": 110}))
        sizes = draw(st.lists(amounts(), max_size=4))
        pods += [make_pod(f"p{i}-{j}", node=f"n{i}", requests=n) for j, n in enumerate(sizes)]
    leaving = draw(st.lists(st.sampled_from(pods), unique_by=lambda pod: pod.key)) if pods else []
    return nodes, pods, leaving


def fits(node, pods, pod):
    """Whether a pod fits beside others, as kube-scheduler counts."""
    offered, wanted = requests.allocatable(node), requests.filter_request(pod)
    used = dict.fromkeys(NAMES, 0)
    for other in pods:
        for name, n in requests.requested(other).items():
            used[name] = wrapped(used.get(name, 0) + n)
    return all(
        n <= wrapped(offered.get(name, 0) - used.get(name, 0)) for name, n in wanted.items() if n
    )


def verdicts(table, pod):
    """What both forms say of every node."""
    plugin, state = NodeResourcesFit(), make_state(pod, table)
    plugin.pre_filter(state, pod)
    codes = plugin.filter_all(state, pod, table).codes
    both = {}
    for name, row in table.row_of.items():
        one = plugin.filter(state, pod, table.info(row)).is_success
        assert one == (not codes[row]), f"{name}: {one} for the node, {codes[row]} for all"
        both[name] = one
    return both


def counted(nodes, pods, pod):
    on = {node.name: [other for other in pods if other.node_name == node.name] for node in nodes}
    return {node.name: fits(node, on[node.name], pod) for node in nodes}


@given(clusters(), amounts())
def test_the_filter_counts_as_go_does(cluster, wanted):
    nodes, pods, leaving = cluster
    pod, table = make_pod("pod", requests=wanted), make_table(nodes)
    there = []
    for other in pods:
        table.add_pod(other.node_name, other, Usage.of(other))
        there.append(other)
        assert verdicts(table, pod) == counted(nodes, there, pod)
    for other in leaving:
        table.remove_pod(other.node_name, other.uid)
        there.remove(other)
        assert verdicts(table, pod) == counted(nodes, there, pod)
    many = make_table(nodes)
    many.add_pods(there, [Usage.of(other) for other in there])
    assert verdicts(many, pod) == counted(nodes, there, pod)


@given(clusters(), amounts())
def test_forms_agree(cluster, wanted):
    nodes, pods, leaving = cluster
    pod, table = make_pod("pod", requests=wanted), make_table(nodes, pods)
    resources = [{"name": name, "weight": 1} for name in NAMES]
    plugins = [
        *[
            NodeResourcesFit(scoring_strategy={"type": kind, "resources": resources})
            for kind in ("LeastAllocated", "MostAllocated")
        ],
        NodeResourcesBalancedAllocation(resources=[{"name": name} for name in NAMES]),
    ]
    for other in [None, *leaving]:
        if other is not None:
            table.remove_pod(other.node_name, other.uid)
        for plugin in plugins:
            check_twins(plugin, pod, table)


@given(clusters(), amounts())
def test_hypothetical_nodes_count_as_go_does(cluster, wanted):
    nodes, pods, leaving = cluster
    pod, table = make_pod("pod", requests=wanted), make_table(nodes, pods)
    plugin, state = NodeResourcesFit(), make_state(pod, table)
    plugin.pre_filter(state, pod)
    rows = np.array([table.row_of[node.name] for node in nodes])
    for come in (False, True):
        book, changed = NumberedUsages(), HypotheticalRows(table, rows)
        copies = [table.info(row).copy() for row in rows]
        there = {node.name: [p for p in pods if p.node_name == node.name] for node in nodes}
        for other in leaving:
            at = [node.name for node in nodes].index(other.node_name)
            placed = make_pod(f"{other.name}-2", node=other.node_name) if come else other
            numbers = np.zeros(len(nodes), dtype=np.int64)
            numbers[at] = book.number(Usage.of(other))
            changed.shift(numbers, book, 1 if come else -1)
            if come:
                copies[at].add(placed, Usage.of(other))
                there[other.node_name].append(other)
            else:
                copies[at].remove(other)
                there[other.node_name].remove(other)
        codes = plugin.filter_all(state, pod, changed).codes
        for at, node in enumerate(nodes):
            expected = fits(node, there[node.name], pod)
            assert plugin.filter(state, pod, copies[at]).is_success == expected
            assert (not codes[at]) == expected


@pytest.mark.parametrize("running", [1, 2, 3])
def test_a_simulation_with_such_pods(running):
    """Two pods that request 2^63 - 1 bytes request -2 together, also in figures."""
    nodes = [
        make_node("full", allocatable={"memory": MOST - 2, "pods": 110}),
        make_node("small", allocatable={"memory": 2**33, "pods": 110}),
    ]
    old = [
        make_pod(f"old-{i}", node="full", requests={"memory": MOST}, priority=0)
        for i in range(running)
    ]
    new = make_pod("new", requests={"memory": 1}, priority=0, node_selector={"on": "full"})
    vip = make_pod("vip", requests={"memory": MOST - 2}, priority=9)
    nodes[0].metadata.labels["on"] = "full"
    objects = [*nodes, *old, new, vip]
    sim = Simulation(objects, check=True)
    sim.run()
    assert sim.placements["default/vip"] == "full"  # It preempts, or fits.
    assert len(sim.result.nodes) == 2
    for pod in ("new", "vip", "old-0"):
        assert str(explain(objects, pod))
