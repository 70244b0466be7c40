"""How full would the node be, and how good is that?"""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from moorage.api.config.structs import (
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from moorage.api.pod import Container, ResourceRequirements
from moorage.errors import PluginFailure
from moorage.plugins import utilization_shape
from moorage.plugins.node_resources_fit import NodeResourcesFit
from moorage.plugins.node_resources_fit.scoring import (
    LARGEST,
    LeastAllocated,
    MostAllocated,
    RequestedToCapacityRatio,
)
from moorage.testing.builders import make_node, make_pod, make_state, make_table
from moorage.testing.checks import check_plugin, check_twins, run_plugin

MI = 1 << 20
EXT, FOO, BAR = "example.com/ext", "intel.com/foo", "intel.com/bar"


def least(**weights):
    return strategy("LeastAllocated", weights)


def most(**weights):
    return strategy("MostAllocated", weights)


def ratio(*points, **weights):
    return strategy("RequestedToCapacityRatio", weights, points)


def strategy(kind, weights, points=()):
    names = {"ext": EXT, "foo": FOO, "bar": BAR, "ephemeral": "ephemeral-storage"}
    weights = weights or {"cpu": 1, "memory": 1}
    resources = [{"name": names.get(name, name), "weight": n} for name, n in weights.items()]
    shaped = {"shape": [{"utilization": u, "score": s} for u, s in points]}
    return {"type": kind, "resources": resources, "requestedToCapacityRatio": shaped}


def scored(settings, pod, allocatable, *running):
    """What both forms score a node with these pods on it."""
    node = make_node("n", allocatable=allocatable)
    plugin = NodeResourcesFit(scoring_strategy=settings)
    check_twins(plugin, pod, make_table([node], running))
    return run_plugin(plugin, pod, node, pods=running).score


def asking(cpu=None, memory=None, **others):
    renamed = {{"ext": EXT, "foo": FOO, "bar": BAR}.get(k, k): v for k, v in others.items()}
    asked = {"cpu": None if cpu is None else f"{cpu}m", "memory": memory, **renamed}
    return {name: amount for name, amount in asked.items() if amount is not None}


def on_node(*containers, **fields):
    return make_pod("running", node="n", containers=containers, **fields)


def container(cpu=None, memory=None, *, sidecar=False):
    return Container(
        resources=ResourceRequirements(requests=asking(cpu, memory)),
        restart_policy="Always" if sidecar else None,
    )


SPREAD, PACK = ((0, 10), (100, 0)), ((0, 0), (100, 10))


@pytest.mark.parametrize(
    ("settings", "pod", "allocatable", "used", "score"),
    [
        pytest.param(
            least(), asking(3000, 5000), asking(4000, 10000), asking(0, 0), 37, id="least: mean"
        ),
        pytest.param(
            least(memory=2, cpu=1),
            asking(3000, 5000),
            asking(4000, 10000),
            asking(0, 0),
            41,
            id="least: weighted mean",
        ),
        pytest.param(
            least(), asking(6000, 0), asking(4000, 10000), asking(0, 0), 50, id="least: over-used"
        ),
        pytest.param(least(), asking(1, 1), {}, asking(0, 0), 0, id="least: a node with nothing"),
        pytest.param(
            least(cpu=1, memory=1, ext=2),
            asking(1000, 2000),
            asking(6000, 10000, ext=9),
            asking(2000, 2000),
            55,
            id="least: an extended resource that the pod does not want",
        ),
        pytest.param(
            least(cpu=1, memory=1, ext=2),
            asking(1000, 2000),
            asking(6000, 10000),
            asking(2000, 2000),
            55,
            id="least: nor does the node have it",
        ),
        pytest.param(
            least(cpu=1, memory=1, ext=1),
            asking(1000, 1000, ext=1),
            asking(4000, 4000, ext=10),
            asking(1000, 1000, ext=1),
            60,
            id="least: an extended resource that the pod wants",
        ),
        pytest.param(
            least(cpu=1, memory=1, ext=5),
            asking(1000, 1000, ext=1),
            asking(4000, 4000),
            asking(1000, 1000),
            50,
            id="least: the pod wants it, the node has none",
        ),
        pytest.param(
            least(), asking(1000, 2000), asking(4000, 10000), asking(2000, 4000), 32, id="least: 1"
        ),
        pytest.param(
            least(), asking(1000, 2000), asking(6000, 10000), asking(1000, 2000), 63, id="least: 2"
        ),
        pytest.param(
            most(), asking(1000, 2000), asking(4000, 10000), asking(2000, 4000), 67, id="most: 1"
        ),
        pytest.param(
            most(), asking(1000, 2000), asking(6000, 10000), asking(1000, 2000), 36, id="most: 2"
        ),
        pytest.param(
            most(), asking(9000, 1), asking(4000, 10000), asking(0, 0), 50, id="most: over is full"
        ),
        pytest.param(most(), asking(1, 1), {"cpu": 0}, asking(0, 0), 0, id="most: nothing there"),
        pytest.param(
            most(pods=1, storage=9, memory=1),
            asking(1, 5, storage=5),
            {"pods": 10, "storage": 10, "memory": 10},
            asking(0, 0),
            50,
            id="most: pods and storage are not scored",
        ),
        pytest.param(
            most(ephemeral=1),
            {"ephemeral-storage": 5},
            {"ephemeral-storage": 20},
            {"ephemeral-storage": 10},
            75,
            id="most: ephemeral storage",
        ),
        pytest.param(
            ratio(*SPREAD),
            asking(3000, 5000),
            asking(4000, 10000),
            asking(2000, 4000),
            10,
            id="ratio: a resource that is rated 0 leaves the mean",
        ),
        pytest.param(
            ratio(*SPREAD),
            asking(3000, 5000),
            asking(4000, 10000),
            asking(0, 0),
            38,
            id="ratio: a half is rounded up",
        ),
        pytest.param(
            ratio(*PACK),
            asking(3000, 5000),
            asking(4000, 10000),
            asking(2000, 4000),
            95,
            id="ratio: packing, over-used",
        ),
        pytest.param(
            ratio(*PACK),
            asking(3000, 5000),
            asking(6000, 10000),
            asking(1000, 2000),
            68,
            id="ratio: packing, rounded down",
        ),
        pytest.param(
            ratio((0, 0), (100, 1), foo=3, bar=5),
            asking(foo=2, bar=2),
            asking(foo=8, bar=4),
            {},
            4,
            id="ratio: extended resources",
        ),
        pytest.param(
            ratio((0, 0), (100, 1), foo=3, bar=5),
            asking(foo=2, bar=2),
            asking(foo=4, bar=8),
            {},
            3,
            id="ratio: extended resources the other way round",
        ),
        pytest.param(
            ratio((0, 0), (100, 1), foo=3, bar=5),
            asking(foo=2, bar=2),
            asking(foo=4, bar=8),
            asking(foo=4, bar=2),
            7,
            id="ratio: extended resources, one over-used",
        ),
        pytest.param(
            ratio(*SPREAD, ext=1),
            asking(1000, 1000),
            asking(4000, 4000, ext=5),
            {},
            0,
            id="ratio: only what the pod does not want",
        ),
        pytest.param(
            ratio(*SPREAD), asking(1, 1), {}, asking(0, 0), 0, id="ratio: a node with nothing"
        ),
    ],
)
def test_score(settings, pod, allocatable, used, score):
    running = make_pod("running", node="n", requests={"cpu": 0, "memory": 0, **used})
    assert scored(settings, make_pod(requests=pod), allocatable, running) == score


@pytest.mark.parametrize(
    ("running", "score"),
    [
        pytest.param([on_node(container(), container())], 80, id="they have some on the node too"),
        pytest.param([], 30, id="an empty node"),
    ],
)
def test_containers_without_requests_count_for_something(running, score):
    allocatable = {"cpu": "250m", "memory": "1000Mi"}
    assert scored(most(), make_pod(), allocatable, *running) == score


@pytest.mark.parametrize(
    ("init", "score"),
    [
        pytest.param((container(1000, 2000, sidecar=True),), 67, id="with a sidecar"),
        pytest.param((), 45, id="without one"),
    ],
)
def test_sidecars_on_the_node_count(init, score):
    running = on_node(container(1000, 2000), init_containers=init)
    pod = make_pod(requests=asking(1000, 2000))
    assert scored(most(), pod, asking(4000, 10000), running) == score


def test_pod_level_requests_do_not_count_while_the_pod_is_new():
    pod = make_pod(resources=ResourceRequirements(requests={"cpu": "2"}))
    assert scored(most(cpu=1), pod, {"cpu": "1"}) == 10  # 100m, not 2


@pytest.mark.parametrize(
    ("resource", "score"),
    [
        pytest.param("cpu", 10, id="cpu by default, as none is stated"),
        pytest.param("memory", 50, id="memory by the pod level"),
    ],
)
def test_pod_level_requests_count_on_the_node(resource, score):
    level = ResourceRequirements(requests={"memory": "500Mi"})
    running = on_node(container(), init_containers=(container(),), resources=level)
    allocatable = {"cpu": "1", "memory": "1000Mi"}
    assert scored(most(**{resource: 1}), make_pod(requests=asking(0, 0)), allocatable, running) == (
        score
    )


ONE = asking(1000, "1Mi")


@pytest.mark.parametrize(
    ("containers", "init", "overhead", "cpu", "memory"),
    [
        pytest.param([container()] * 2, [], {}, 200, 400 * MI, id="two that state nothing"),
        pytest.param(
            [container(1000, MI), container()], [], ONE, 2100, 202 * MI, id="with overhead"
        ),
        pytest.param(
            [container(1000, MI), container()],
            [container(3000)],
            ONE,
            4000,
            202 * MI,
            id="with an init container of 3 CPUs",
        ),
        pytest.param([], [], ONE, 1000, MI, id="nothing but overhead"),
        pytest.param(
            [container(3, 3)],
            [container(), container(1, 1)],
            {},
            100,
            200 * MI,
            id="an init container that states nothing",
        ),
        pytest.param(
            [container(3, 3), container()],
            [container(), container(1, 1)],
            {},
            103,
            200 * MI + 3,
            id="and a container that states nothing",
        ),
    ],
)
def test_what_the_new_pod_adds(containers, init, overhead, cpu, memory):
    pod = make_pod(
        containers=tuple(containers), init_containers=tuple(init), overhead=dict(overhead)
    )
    _, shares = NodeResourcesFit().reads(pod)
    assert [(scored.resource, amount) for scored, amount in shares.each] == [
        ("cpu", cpu),
        ("memory", memory),
    ]
    # On a node of just that size nothing is left.
    assert scored(most(), pod, {"cpu": f"{cpu}m", "memory": memory}) == 100


def points(*pairs):
    return [UtilizationShapePoint(utilization=u, score=s) for u, s in pairs]


@pytest.mark.parametrize(
    ("line", "heights"),
    [
        pytest.param(
            [(10, 1), (90, 9)],
            {-10: 1, 9: 1, 10: 1, 19: 1.9, 20: 2, 89: 8.9, 90: 9, 110: 9},
            id="level at both ends",
        ),
        pytest.param(
            [(0, 2), (40, 10), (100, 0)],
            {0: 2, 20: 6, 30: 8, 40: 10, 70: 5, 100: 0, 110: 0},
            id="up and down",
        ),
        pytest.param([(0, 10), (70, 0)], {33: 5.3}, id="downhill it is rounded up"),
        pytest.param([(50, 3)], {0: 3, 50: 3, 100: 3}, id="a single point"),
    ],
)
def test_ratings_are_ten_times_as_high_as_the_shape(line, heights):
    ratings = {at: utilization_shape.rating(points(*line), at) for at in heights}
    assert ratings == {at: round(10 * height) for at, height in heights.items()}


def test_a_shape_has_points():
    with pytest.raises(ValueError, match="at least one point"):
        RequestedToCapacityRatio(())


def test_settings_may_be_structs():
    settings = ScoringStrategy(
        type="RequestedToCapacityRatio",
        resources=(ResourceSpec(name="memory", weight=3),),
        requested_to_capacity_ratio=RequestedToCapacityRatioParam(shape=tuple(points(*PACK))),
    )
    assert scored(settings, make_pod(requests={"memory": 7}), {"memory": 10}) == 70


@pytest.mark.parametrize("weight", [-1, 0, 101])
def test_weights_out_of_range(weight):
    with pytest.raises(ValueError, match=f"must be 1 to 100, is {weight}"):
        NodeResourcesFit(scoring_strategy=least(cpu=1, memory=weight))


def test_an_unknown_strategy_is_an_error():
    with pytest.raises(ValueError, match='"Fullest" is not supported'):
        NodeResourcesFit(scoring_strategy={"type": "Fullest"})


def test_no_resources_at_all():
    plugin = NodeResourcesFit(scoring_strategy={"type": "LeastAllocated", "resources": []})
    pod, table = make_pod(), make_table([make_node("n")])
    state = make_state(pod, table)
    assert plugin.pre_score(state, pod, np.ones(1, dtype=np.bool_)).is_success
    with pytest.raises(PluginFailure, match="resources not found"):
        plugin.score(state, pod, table.info(table.row_of["n"]))
    with pytest.raises(PluginFailure, match="resources not found"):
        plugin.score_all(state, pod, table)


@pytest.mark.parametrize("settings", [most(), ratio(*SPREAD, cpu=2, ext=3)], ids=["most", "ratio"])
def test_conforms(settings):
    check_plugin(NodeResourcesFit(scoring_strategy=settings))


@pytest.mark.parametrize(
    ("memory", "settings", "score"),
    [
        pytest.param("100P", least(), 49, id="least"),
        pytest.param(2**64 // 100, least(), 49, id="least: a hundredfold overflows"),
        # Together with the default of the incoming pod it is negative, so that all seems free.
        pytest.param(2**63 - 1, least(), 98, id="least: the sum overflows"),
        pytest.param("100P", most(), 51, id="most"),
        pytest.param(2**64 // 100, most(), 51, id="most: a hundredfold overflows"),
        pytest.param(2**63 - 1, most(), 1, id="most: the sum overflows"),
    ],
)
def test_a_pod_that_requests_more_than_any_node_has(memory, settings, score):
    running = make_pod("running", node="n", requests={"memory": memory})
    offered = {"cpu": 10, "memory": "1Ti", "pods": 9}
    assert scored(settings, make_pod(), offered, running) == score


@pytest.mark.parametrize(
    ("settings", "score"),
    [
        # A hundred times 2^63 // 100 + 1 does not fit into 64 bits: it is almost -2^63.
        pytest.param(least(memory=1), -99, id="least"),
        pytest.param(most(memory=1), 0, id="most"),
    ],
)
def test_percentages_overflow_as_in_go(settings, score):
    allocatable = {"memory": 2**63 // 100 + 1, "pods": 9}
    table = make_table([make_node("n", allocatable=allocatable)])
    pod = make_pod(requests={"memory": 0})
    plugin = NodeResourcesFit(scoring_strategy=settings)
    state = make_state(pod, table)
    plugin.pre_score(state, pod, table.active_rows)
    row = table.row_of["n"]
    assert plugin.score(state, pod, table.info(row)) == score
    assert plugin.score_all(state, pod, table)[row] == score


@given(st.integers(1, LARGEST), st.integers(0, 100), st.integers(-1, 1))
@example(LARGEST, 100, -1)
@example(LARGEST, 99, 0)
@example(LARGEST - 1, 50, -1)
def test_percentages_that_are_almost_whole(allocatable, percent, more):
    """Ratings in floats are those in integers next to every amount at which they change."""
    free = min(-(-percent * allocatable // 100) + more, allocatable)
    table = make_table([make_node("n", allocatable={"memory": allocatable, "pods": 9})])
    offers = table.allocatable_floats(("memory",))
    row = table.row_of["n"]
    for scorer in (LeastAllocated(), MostAllocated()):
        left = np.full((1, len(table)), 100.0 * free) + 0.5
        ratings = scorer.rate_floats(left, offers)
        assert ratings[0, row] == scorer.rate(allocatable - free, allocatable)
