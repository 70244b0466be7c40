"""How many sets of several pods fit, checked by counting by hand and by brute force."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.planning.conftest import node, pod

from moorage.errors import InputError
from moorage.planning.capacity import capacity
from moorage.planning.pod_sets import pod_sets


@given(st.integers(0, 12), st.lists(st.integers(1, 4), min_size=2, max_size=3))
def test_on_one_node_it_is_a_division(cpu, sizes):
    pods = [pod(f"p{i}", 100 * size) for i, size in enumerate(sizes)]
    got = pod_sets([node("n", 100 * cpu)], pods)
    assert got.fits == cpu // sum(sizes)
    assert sum(got.nodes.get("n", {}).values()) == got.fits * len(sizes)
    assert [each.fits for each in got.alone] == [cpu // size for size in sizes]


def test_sets_and_each_pod_alone():
    # The third web pod takes one of the last two CPUs, which are on one node.
    objects = [node("a", 4000), node("b", 4000)]
    got = pod_sets(objects, [pod("web", 1000), pod("db", 2000)])
    assert (got.fits, got.is_limited) == (2, False)
    assert got.pods == {"default/web": 1, "default/db": 1}
    assert sum(map(Counter, got.nodes.values()), Counter()) == {"default/web": 2, "default/db": 2}
    assert (got.rejected, got.first) == ("default/db", "Insufficient cpu")
    assert {each.pod: each.fits for each in got.alone} == {"default/web": 8, "default/db": 4}
    assert got.alone[0] == capacity(objects, pod("web", 1000))


def test_a_pod_that_is_given_twice_counts_twice():
    got = pod_sets([node("a", 4000)], [pod("web", 500), pod("web", 500), pod("db", 1000)])
    assert got.fits == 2
    assert got.pods == {"default/web": 2, "default/db": 1}
    assert got.nodes == {"a": {"default/web": 4, "default/db": 2}}
    assert [each.pod for each in got.alone] == ["default/web", "default/db"]


def test_incomplete_sets_do_not_count():
    got = pod_sets([node("a", 3000)], [pod("web", 1000), pod("db", 1000)])
    assert (got.fits, got.rejected) == (1, "default/db")
    assert got.nodes == {"a": {"default/web": 1, "default/db": 1}}


def test_nodes_of_the_rejected_pod_that_take_none():
    objects = [node("a", 4000), node("small", 500), node("away", unschedulable=True)]
    got = pod_sets(objects, [pod("web", 100), pod("db", 1000)])
    assert got.rejected == "default/db"
    assert got.unusable == {"Insufficient cpu": 1, "node(s) were unschedulable": 1}
    assert got.runs_out == {"Insufficient cpu": 1}


def test_counting_stops_at_the_limit():
    got = pod_sets([node("a", 4000)], [pod("web", 100), pod("db", 100)], most=3)
    assert (got.fits, got.is_limited, got.rejected) == (3, True, "")


def test_different_pods_of_one_name_are_refused():
    with pytest.raises(InputError, match="default/web: is given twice, with different specs"):
        pod_sets([node("a")], [pod("web", 100), pod("web", 200)])


def test_pods_of_workloads_are_named_after_them():
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod("x", 100)["spec"]},
        },
    }
    got = pod_sets([node("n", 1000)], [deployment, pod("cache", 100)])
    assert [got.title(each) for each in got.pods] == ["Deployment shop/web", "default/cache"]
    assert list(got.to_dict()["workloads"].values()) == ["Deployment shop/web"]
