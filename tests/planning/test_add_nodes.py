"""The fewest nodes, against lower bounds and against simulations that know of no search."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.planning.conftest import node, pod

from moorage import Simulation
from moorage.errors import InputError
from moorage.planning.add_nodes import add_nodes

SMALL = node("small", 2000, 4096)
LARGE = node("large", 8000, 16384)
GPU = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu"}} | {
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10", "example.com/gpu": "2"}}
}


def everything_fits(objects, template, count):
    """Whether a plain simulation places all pods with so many more nodes of a template."""
    nodes = [node(f"new-{i}", *template) for i in range(count)]
    simulation = Simulation([*objects, *nodes])
    simulation.run()
    return not simulation.pending


def gpu_pod(name):
    wanted = pod(name, 100)
    limits = {"example.com/gpu": "1"}
    wanted["spec"]["containers"][0]["resources"]["limits"] = limits
    return wanted


@given(st.integers(1, 40), st.integers(1, 8), st.integers(1, 8))
@settings(max_examples=settings.default.max_examples // 4)
def test_equal_pods_take_what_division_says(pods, cpu, memory):
    objects = [node("full", 0), *(pod(f"p{i}", 250 * cpu, 512 * memory) for i in range(pods))]
    got = add_nodes(objects, [SMALL])
    each = min(2000 // (250 * cpu), 4096 // (512 * memory))
    assert got.total == math.ceil(pods / each)


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8)), min_size=1, max_size=25))
@settings(max_examples=settings.default.max_examples // 4)
def test_one_fewer_would_not_do(sizes):
    objects = [
        node("there"),
        *(pod(f"p{i}", 250 * c, 512 * m) for i, (c, m) in enumerate(sizes)),
    ]
    got = add_nodes(objects, [SMALL])
    cpu, memory = sum(c for c, _ in sizes) * 250, sum(m for _, m in sizes) * 512
    by_sums = max(0, math.ceil((cpu - 4000) / 2000), math.ceil((memory - 8192) / 4096))
    assert got.total >= got.lower_bound == max(by_sums, int(got.pending_before > 0))
    assert everything_fits(objects, (2000, 4096), got.total)
    assert not got.total or not everything_fits(objects, (2000, 4096), got.total - 1)


def test_many_are_not_tried_one_by_one():
    objects = [node("there", 0), *(pod(f"p{i}", 1500) for i in range(300))]
    got = add_nodes(objects, [SMALL])
    assert (got.total, got.lower_bound) == (300, 225)
    assert got.tries < 12


def test_nothing_is_needed():
    got = add_nodes([node("n"), pod("p", 1000)], [SMALL])
    assert (got.total, got.is_optimal, got.tries) == (0, True, 0)


def test_the_larger_template_if_that_takes_fewer():
    objects = [node("full", 0), *(pod(f"p{i}", 1000) for i in range(16))]
    got = add_nodes(objects, [SMALL, LARGE])
    assert got.counts == {"small": 0, "large": 2}
    assert got.is_optimal


def test_smaller_templates_are_not_tried_in_vain():
    objects = [node("full", 0), *(pod(f"p{i}", 3000) for i in range(9))]
    got = add_nodes(objects, [SMALL, LARGE])
    # Two fit on a large node, none on a small one; by sums, four large ones would do.
    assert (got.counts, got.lower_bound) == ({"small": 0, "large": 5}, 4)
    assert got.tries == add_nodes(objects, [LARGE]).tries


def test_two_templates_where_neither_does_alone():
    objects = [
        node("full", 0),
        *(gpu_pod(f"g{i}") for i in range(4)),
        *(pod(f"p{i}", 6000) for i in range(3)),
    ]
    got = add_nodes(objects, [GPU, LARGE])
    assert got.counts == {"gpu": 2, "large": 3}
    assert not got.impossible


def test_daemons_take_their_share():
    spec = pod("x", 1000)["spec"] | {"nodeSelector": {"role": "worker"}}
    daemon = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {"template": {"metadata": {}, "spec": spec}},
    }
    worker = node("worker", 2000, 4096, labels={"role": "worker"})
    objects = [worker, *(pod(f"p{i}", 1000, nodeSelector=spec["nodeSelector"]) for i in range(7))]
    assert add_nodes(objects, [worker]).counts == {"worker": 3}
    assert add_nodes([*objects, daemon], [worker]).counts == {"worker": 6}
    # A dump may show a daemon set by its pods alone.
    shown = pod("agent-x", 1000, owner="DaemonSet/agent", nodeName="worker")
    assert add_nodes([*objects, shown], [worker]).counts == {"worker": 6}


def test_pods_that_no_template_helps_are_named_and_left_out():
    objects = [node("full", 0), pod("huge", 9000), pod("p", 1000), gpu_pod("g")]
    got = add_nodes(objects, [SMALL])
    assert got.counts == {"small": 1}
    assert got.impossible == {
        "default/huge": "Insufficient cpu",
        "default/g": "Insufficient example.com/gpu",
    }


def test_a_pod_whose_affinity_no_pod_matches():
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "nobody"}},
    }
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    got = add_nodes([node("n"), pod("lonely", affinity=affinity), pod("p", 5000)], [LARGE])
    assert got.counts == {"large": 1}
    assert list(got.impossible) == ["default/lonely"]


@pytest.mark.parametrize(
    ("objects", "templates", "message"),
    [
        pytest.param([], [SMALL], "the cluster is empty", id="empty cluster"),
        pytest.param([node("n")], [pod("p")], "no template", id="not a node"),
        pytest.param(
            [node("n")],
            [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "t"}}],
            "template t, status.allocatable: is missing",
            id="a template with nothing in it",
        ),
    ],
)
def test_bad_input_is_one_line(objects, templates, message):
    with pytest.raises(InputError, match=message):
        add_nodes(objects, templates)
