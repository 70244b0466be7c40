"""Does the pod bring the node nearer to balance? 75 is no difference."""

import pytest

from moorage import plugin as mp
from moorage.api.config.structs import ResourceSpec
from moorage.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from moorage.testing.builders import make_node, make_pod, make_state, make_table
from moorage.testing.checks import check_plugin, check_twins, run_plugin

GPU = "nvidia.com/gpu"
WITH_GPU = [{"name": "cpu"}, {"name": "memory"}, {"name": GPU}]


def amounts(cpu=0, memory=0, gpu=None):
    gpus = {} if gpu is None else {GPU: gpu}
    return {"cpu": f"{cpu}m", "memory": memory, **gpus}


def scored(plugin, pod, allocatable, used):
    """What both forms score a node on which pods request `used` in all."""
    node = make_node("n", allocatable=allocatable)
    running = [make_pod("running", node="n", requests=used)]
    check_twins(plugin, pod, make_table([node], running))
    return run_plugin(plugin, pod, node, pods=running).score


@pytest.mark.parametrize(
    ("pod", "allocatable", "used", "score"),
    [
        pytest.param(amounts(3000, 5000), amounts(4000, 10000), amounts(), 68, id="100 becomes 87"),
        pytest.param(amounts(3000, 5000), amounts(6000, 10000), amounts(), 75, id="half of each"),
        pytest.param(
            amounts(3000, 5000), amounts(10000, 20000), amounts(3000), 73, id="as skewed as before"
        ),
        pytest.param(
            amounts(3000, 5000),
            amounts(10000, 20000),
            amounts(3000, 5000),
            74,
            id="a little more skewed",
        ),
        pytest.param(
            amounts(3000, 5000), amounts(10000, 50000), amounts(3000, 5000), 70, id="more skewed"
        ),
        pytest.param(
            {"memory": 5000}, amounts(3000, 5000), amounts(3000), 100, id="from worst to best"
        ),
        pytest.param({"memory": 5000}, amounts(3000, 5000), {}, 50, id="from best to worst"),
        pytest.param(
            {"cpu": "3000m"}, amounts(6000, 10000), amounts(3000), 62, id="all cpu, no memory"
        ),
        pytest.param(
            {"cpu": "3000m"}, amounts(6000, 10000), amounts(3000, 5000), 62, id="out of balance"
        ),
        pytest.param(
            amounts(3000, 5000), amounts(6000, 10000), amounts(9000, 20000), 75, id="over-used"
        ),
        pytest.param(amounts(3000, 5000), {"cpu": 4}, {}, 75, id="one resource is in balance"),
        pytest.param(amounts(3000, 5000), {}, {}, 75, id="and so is none"),
        pytest.param(
            {"cpu": "3000m"}, {"cpu": 4, "memory": 0}, {}, 75, id="0 is the same as not there"
        ),
        pytest.param(
            {"memory": 21858167712400726},
            {"cpu": 1, "memory": 26021628229048483},
            {},
            53,  # 54 if the exact fraction were rounded
            id="amounts become floats before they are divided",
        ),
    ],
)
def test_cpu_and_memory(pod, allocatable, used, score):
    assert scored(NodeResourcesBalancedAllocation(), make_pod(requests=pod), allocatable, used) == (
        score
    )


@pytest.mark.parametrize(
    ("pod", "allocatable", "used", "score"),
    [
        pytest.param(
            {GPU: 1}, amounts(3500, 40000, 8), amounts(3000, 5000, 3), 75, id="hardly a change"
        ),
        pytest.param(
            {GPU: 1}, amounts(3500, 40000, 8), amounts(3000, 5000, 0), 76, id="a little better"
        ),
        pytest.param(
            amounts(3000, 5000), amounts(3500, 40000, 8), {}, 56, id="GPUs that are not requested"
        ),
        pytest.param(amounts(3000, 5000), amounts(3500, 40000), {}, 56, id="no GPUs there"),
        pytest.param(
            amounts(3000, 5000, 1),
            amounts(3500, 40000),
            {},
            56,
            id="GPUs wanted and not there: two are left",
        ),
        pytest.param(
            amounts(1000, 8, 1),
            amounts(1000, 25),
            {},
            58,  # 57 by way of squares and a root
            id="two that are left are compared as two",
        ),
        pytest.param({"memory": 5000, GPU: 1}, {GPU: 2, "memory": 5000}, {}, 62, id="no cpu there"),
        pytest.param({GPU: 1}, {GPU: 2}, {}, 75, id="nothing but GPUs there"),
    ],
)
def test_three_resources(pod, allocatable, used, score):
    plugin = NodeResourcesBalancedAllocation(resources=WITH_GPU)
    assert scored(plugin, make_pod(requests=pod), allocatable, used) == score


@pytest.mark.parametrize(
    ("resources", "requests", "skipped"),
    [
        pytest.param(["cpu", "memory"], {}, True, id="a pod that asks for nothing"),
        pytest.param(["cpu", "memory"], {GPU: 1}, True, id="only for what is not balanced"),
        pytest.param(["cpu", "memory"], {"cpu": 0}, True, id="for 0"),
        pytest.param(["cpu", "memory"], {"cpu": "1m"}, False, id="for one of two"),
        pytest.param(["cpu", GPU], {GPU: 1}, False, id="for a scalar"),
        pytest.param(["cpu", "storage"], {"storage": 1}, False, id="for what no node counts"),
    ],
)
def test_skip(resources, requests, skipped):
    plugin = NodeResourcesBalancedAllocation(
        resources=[ResourceSpec(name=name) for name in resources]
    )
    pod, table = make_pod(requests=requests), make_table([make_node("n")])
    status = plugin.pre_score(make_state(pod, table), pod, table.active)
    assert status == (mp.SKIP if skipped else mp.SUCCESS)
    if not skipped:
        check_twins(plugin, pod, table)


def test_weights_are_always_one():
    with pytest.raises(ValueError, match=r"resources\[1\].weight: must be 1, is 2"):
        NodeResourcesBalancedAllocation(resources=[{"name": "a"}, {"name": "b", "weight": 2}])


@pytest.mark.parametrize("resources", [WITH_GPU[:2], WITH_GPU], ids=["two", "three"])
def test_conforms(resources):
    check_plugin(NodeResourcesBalancedAllocation(resources=resources))


@pytest.mark.parametrize("running", [2, 3])
def test_sums_that_do_not_fit_into_64_bits(running):
    """Both forms overflow as Go does, without a warning of NumPy."""
    pods = [
        make_pod(f"p{i}", node="n", requests={"memory": 2**62, "cpu": 1}) for i in range(running)
    ]
    nodes = [make_node("n", allocatable={"memory": "1Gi", "cpu": 8}), make_node("m")]
    table = make_table(nodes, pods)
    pod = make_pod(requests={"memory": "1Mi", "cpu": 1})
    plugin, state = NodeResourcesBalancedAllocation(), make_state(pod, table)
    assert plugin.pre_score(state, pod, table.active_rows).is_success
    rows = [table.row_of[name] for name in ("n", "m")]
    scores = [plugin.score(state, pod, table.info(row)) for row in rows]
    assert plugin.score_all(state, pod, table)[rows].tolist() == scores
    assert scores[0] != scores[1]
