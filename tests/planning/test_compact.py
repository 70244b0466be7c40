"""Compaction against bounds, and against simulations on the nodes that are said to be enough."""

import math
import pickle
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.planning.conftest import node, pod

from moorage import Simulation
from moorage.errors import InputError
from moorage.planning.compact import CompactedCell, compact, percentile
from moorage.planning.input_cluster import InputCluster


@given(
    st.lists(st.sampled_from([1000, 2000, 4000]), min_size=1, max_size=12),
    st.lists(st.integers(1, 4), max_size=12),
)
@settings(max_examples=settings.default.max_examples // 4)
def test_enough_and_not_one_too_many(nodes, pods):
    objects = [node(f"n{i}", cpu, 65536) for i, cpu in enumerate(nodes)]
    pods = [pod(f"p{i}", 250 * cpu) for i, cpu in enumerate(pods)]
    got = compact([*objects, *pods], seeds=range(3))
    asked = [p for p in pods if f"default/{p['metadata']['name']}" not in got.left_out]
    wanted = sum(
        int(p["spec"]["containers"][0]["resources"]["requests"]["cpu"][:-1]) for p in asked
    )
    # The largest nodes first: no smaller number of nodes is possible.
    sums = [sum(sorted(nodes, reverse=True)[:count]) for count in range(len(nodes) + 1)]
    assert got.lower_bound == next(count for count, total in enumerate(sums) if total >= wanted)
    for seed, kept in got.kept.items():
        assert got.lower_bound <= kept <= len(nodes)
        order = list(objects)
        Random(seed).shuffle(order)
        assert fits(order[:kept], asked, seed) or kept == len(nodes)
        assert not kept or not fits(order[: kept - 1], asked, seed)


def fits(nodes, pods, seed):
    simulation = Simulation([*nodes, *pods], seed=seed)
    simulation.run()
    return not simulation.pending


def test_equal_pods_on_equal_nodes_take_what_division_says():
    objects = [node(f"n{i}") for i in range(10)]
    # Where they run now does not matter: everything is packed anew.
    objects += [pod(f"p{i}", 1000, nodeName=f"n{i % 10}") for i in range(13)]
    got = compact(objects)
    assert (got.needed, got.lower_bound, got.nodes) == (4, 4, 10)
    assert set(got.kept.values()) == {4}
    assert list(got.kept) == list(range(11))


def test_daemons_go_with_their_nodes():
    objects = [node(f"n{i}", 2000) for i in range(6)]
    objects += [pod(f"p{i}", 1000) for i in range(4)]
    daemons = [pod(f"d{i}", 1000, owner="DaemonSet/d", nodeName=f"n{i}") for i in range(6)]
    assert compact(objects).needed == 2
    assert compact([*objects, *daemons]).needed == 4


def test_what_never_fits_is_named_and_left_out():
    got = compact([node("a"), node("b"), pod("huge", 9000), pod("p", 1000)])
    assert list(got.left_out) == ["default/huge"]
    assert got.needed == 1


def test_cordoned_nodes_are_not_counted():
    got = compact([node("a"), node("b", unschedulable=True), pod("p", 1000)])
    assert (got.nodes, got.needed) == (1, 1)


def test_a_few_may_be_pending():
    objects = [*(node(f"n{i}", 1000) for i in range(10)), *(pod(f"p{i}", 1000) for i in range(10))]
    assert compact(objects).needed == 10
    got = compact(objects, allowed_share=0.2)
    assert (got.allowed_pending, got.needed) == (2, 8)


def test_a_cell_goes_to_another_process():
    objects = [node("a"), node("b"), pod("p", 3000), pod("q", 3000)]
    cell = pickle.loads(pickle.dumps(CompactedCell(InputCluster.of(objects))))
    assert cell.compacted(0) == 2


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        pytest.param([5], 90, 5, id="one"),
        pytest.param(list(range(1, 11)), 90, 9, id="ten: the ninth"),
        pytest.param(list(range(1, 12)), 90, 10, id="eleven: the tenth"),
        pytest.param([3, 1, 2], 50, 2, id="the middle"),
    ],
)
def test_percentile(values, percent, expected):
    assert percentile(values, percent) == expected
    assert sum(value <= expected for value in values) >= math.ceil(len(values) * percent / 100)


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        pytest.param([], "the cluster is empty", id="no nodes"),
        pytest.param([node("a", unschedulable=True)], "all nodes are cordoned", id="all cordoned"),
    ],
)
def test_bad_input_is_one_line(objects, message):
    with pytest.raises(InputError, match=message):
        compact(objects)
