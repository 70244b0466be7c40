"""Is there room? Amounts are tiny, so that what is missing can be seen."""

import pickle

import pytest

from moorage import plugin as mp
from moorage.api.meta import Condition
from moorage.api.pod import Container, ContainerStatus, PodStatus, ResourceRequirements
from moorage.errors import PluginFailure
from moorage.plugins.node_resources_fit import NodeResourcesFit
from moorage.testing.builders import make_node, make_pod, make_state, make_table
from moorage.testing.checks import check_plugin, check_twins, run_plugin

EXT = "example.com/aaa"
HUGE = "hugepages-2Mi"
NODE = {"cpu": "10m", "memory": 20, "pods": 32, "ephemeral-storage": 20, EXT: 5, HUGE: 5}


def container(name="c", *, sidecar=False, **requests):
    renamed = {key.replace("_", "-"): amount for key, amount in requests.items() if key != "ext"}
    if "ext" in requests:
        renamed[EXT] = requests["ext"]
    return Container(
        name=name,
        resources=ResourceRequirements(requests=renamed),
        restart_policy="Always" if sidecar else None,
    )


def pod_of(*containers, init=(), level=None, **fields):
    if level is not None:
        fields["resources"] = ResourceRequirements(requests=level)
    return make_pod(containers=containers, init_containers=tuple(init), **fields)


def said(pod, used=None, allocatable=NODE, **settings):
    """What both forms say of a node on which pods request `used` in all."""
    node = make_node("n", allocatable=allocatable)
    running = [] if used is None else [make_pod("running", node="n", requests=used)]
    plugin = NodeResourcesFit(**settings)
    check_twins(plugin, pod, make_table([node], running))
    return run_plugin(plugin, pod, node, pods=running).status


def lacks(*resources):
    return mp.unschedulable(*(f"Insufficient {resource}" for resource in resources))


def never(*resources):
    return mp.unresolvable(*(f"Insufficient {resource}" for resource in resources))


@pytest.mark.parametrize(
    ("pod", "used", "status"),
    [
        pytest.param(pod_of(), {"cpu": "10m", "memory": 20}, mp.SUCCESS, id="a pod without needs"),
        pytest.param(
            pod_of(container(cpu="1m", memory=1)),
            {"cpu": "10m", "memory": 20},
            lacks("cpu", "memory"),
            id="all that is missing is reported",
        ),
        pytest.param(
            pod_of(container(cpu="3m", memory=5)),
            {"cpu": "7m", "memory": 15},
            mp.SUCCESS,
            id="exactly what is left",
        ),
        pytest.param(
            pod_of(container(cpu="3m", memory=1)),
            {"cpu": "8m", "memory": 5},
            lacks("cpu"),
            id="one resource of two is missing",
        ),
        pytest.param(
            pod_of(container(cpu="11m", memory=16)),
            {"memory": 5},
            never("cpu", "memory"),
            id="one that can never fit makes the whole refusal final",
        ),
        pytest.param(pod_of(container(ext=10)), None, never(EXT), id="more than the node has"),
        pytest.param(pod_of(container(ext=1)), {EXT: 5}, lacks(EXT), id="all of it is taken"),
        pytest.param(
            pod_of(container(ext=3), container(ext=3)),
            {EXT: 2},
            never(EXT),
            id="containers add up to more than the node has",
        ),
        pytest.param(
            pod_of(init=[container(ext=3), container(ext=3)]),
            {EXT: 2},
            mp.SUCCESS,
            id="init containers run one after another",
        ),
        pytest.param(
            make_pod(requests={"example.com/unknown": 1}),
            None,
            never("example.com/unknown"),
            id="an extended resource that no node has",
        ),
        pytest.param(
            make_pod(requests={"kubernetes.io/something": 1}),
            None,
            never("kubernetes.io/something"),
            id="a kubernetes.io resource that no node has",
        ),
        pytest.param(
            make_pod(requests={"storage": 1, "foo": 1, "pods": 1000}),
            None,
            mp.SUCCESS,
            id="names that nodes keep no count of",
        ),
        pytest.param(
            pod_of(container(ext=0, cpu="1m")), {EXT: 9}, mp.SUCCESS, id="none of what is over-used"
        ),
        pytest.param(
            pod_of(container(memory=1)), {"cpu": "99m"}, mp.SUCCESS, id="cpu over-used, not needed"
        ),
        pytest.param(
            pod_of(container(cpu="1m"), level={"cpu": "7m"}),
            {"cpu": "5m"},
            lacks("cpu"),
            id="the pod level says more than the containers",
        ),
        pytest.param(
            pod_of(container(cpu="7m"), level={"cpu": "1m"}),
            {"cpu": "9m"},
            mp.SUCCESS,
            id="the pod level says less than the containers",
        ),
        pytest.param(pod_of(level={HUGE: 10}), None, never(HUGE), id="huge pages at the pod level"),
        pytest.param(
            pod_of(container(memory=1), overhead={"memory": 15}),
            {"memory": 5},
            lacks("memory"),
            id="overhead counts",
        ),
        pytest.param(
            pod_of(container(ephemeral_storage=25)),
            None,
            never("ephemeral-storage"),
            id="ephemeral storage",
        ),
        pytest.param(
            make_pod(requests={"z.io/a": 1, "a.io/z": 1, HUGE: 9, "memory": 99, "cpu": 1}),
            None,
            never("cpu", "memory", "a.io/z", HUGE, "z.io/a"),
            id="scalars are reported by name after the rest",
        ),
        pytest.param(make_pod(requests={"cpu": "-1m"}), {"cpu": 1}, mp.SUCCESS, id="negative"),
    ],
)
def test_room(pod, used, status):
    assert said(pod, used) == status


@pytest.mark.parametrize(
    ("allocatable", "pod", "used", "status"),
    [
        pytest.param(
            {"pods": 1}, pod_of(), {}, mp.unschedulable("Too many pods"), id="no place for one more"
        ),
        pytest.param(
            {"pods": 1, "cpu": "10m"},
            make_pod(requests={"cpu": "11m"}),
            {"cpu": "1m"},
            mp.unresolvable("Too many pods", "Insufficient cpu"),
            id="too many pods, and too large a pod",
        ),
        pytest.param({"pods": 2}, pod_of(), {}, mp.SUCCESS, id="one more than there are"),
        pytest.param(
            {"cpu": 1}, pod_of(), None, mp.unschedulable("Too many pods"), id="places not stated"
        ),
        pytest.param(
            {"pods": 9, "cpu": "2m"},
            pod_of(container(cpu="1m"), init=[container(cpu="2m", sidecar=True)]),
            None,
            never("cpu"),
            id="a sidecar runs with the containers",
        ),
        pytest.param({"pods": 9}, make_pod(requests={"cpu": 1}), None, never("cpu"), id="no cpu"),
    ],
)
def test_what_a_node_offers(allocatable, pod, used, status):
    assert said(pod, used, allocatable) == status


@pytest.mark.parametrize(
    ("containers", "init", "needed"),
    [
        pytest.param(
            [1],
            [(5, False), (1, True), (2, True), (5, False), (3, True)],
            8,
            id="an init container with the sidecars before it",
        ),
        pytest.param([1], [(5, False), (1, True), (2, True), (3, True)], 7, id="sidecars stay"),
        pytest.param([100], [(10, True), (200, False)], 210, id="an init container with a sidecar"),
    ],
)
def test_init_containers_and_sidecars(containers, init, needed):
    pod = pod_of(
        *(container(cpu=f"{n}m") for n in containers),
        init=[container(cpu=f"{n}m", sidecar=sidecar) for n, sidecar in init],
    )
    assert said(pod, None, {"cpu": f"{needed}m", "pods": 1}) == mp.SUCCESS
    assert said(pod, None, {"cpu": f"{needed - 1}m", "pods": 1}) == never("cpu")


def test_pod_level_and_containers_together():
    level = pod_of(container(cpu="2m"), level={"memory": "2Mi"})
    assert said(level, None, {"cpu": "2m", "memory": "2Mi", "pods": 1}) == mp.SUCCESS
    assert said(level, None, {"cpu": "1m", "memory": "1Mi", "pods": 1}) == never("cpu", "memory")


@pytest.mark.parametrize(
    ("spec", "allocated", "actual", "reason", "held"),
    [
        pytest.param(4, None, 2, None, 4, id="growing"),
        pytest.param(4, None, 2, "Infeasible", 2, id="the node refused to let it grow"),
        pytest.param(6, 4, 2, "Infeasible", 4, id="infeasible, but allocated more than it uses"),
        pytest.param(30, 20, 10, None, 30, id="the requested amount is the largest"),
        pytest.param(20, 10, 30, None, 30, id="the actual amount is the largest"),
        pytest.param(10, 30, 20, None, 30, id="the allocated amount is the largest"),
    ],
)
def test_what_a_resized_pod_holds(spec, allocated, actual, reason, held):
    pending = Condition(type="PodResizePending", reason=reason or "Deferred")
    running = make_pod("running", node="n", containers=(container(cpu=f"{spec}m"),))
    status = PodStatus(
        conditions=() if reason is None else (pending,),
        container_statuses=(
            ContainerStatus(
                name="c",
                resources=ResourceRequirements(requests={"cpu": f"{actual}m"}),
                allocated_resources={} if allocated is None else {"cpu": f"{allocated}m"},
            ),
        ),
    )
    running = type(running)(metadata=running.metadata, spec=running.spec, status=status)
    node = make_node("n", allocatable={"cpu": "100m", "pods": 9})
    for needed, expected in ((100 - held, mp.SUCCESS), (101 - held, lacks("cpu"))):
        pod = make_pod(requests={"cpu": f"{needed}m"})
        check_twins(NodeResourcesFit(), pod, make_table([node], [running]))
        assert run_plugin(NodeResourcesFit(), pod, node, pods=[running]).status == expected


def test_fractions_are_rounded_up_once():
    two = pod_of(container(cpu="0.1005"), container(cpu="0.1005"))
    assert said(two, None, {"cpu": "201m", "pods": 1}) == mp.SUCCESS
    assert said(two, None, {"cpu": "200m", "pods": 1}) == never("cpu")
    assert said(make_pod(requests={"cpu": "101m"}), None, {"cpu": "0.1005", "pods": 1}).is_success


@pytest.mark.parametrize(
    ("settings", "requests", "status"),
    [
        pytest.param(
            {"ignored_resources": ["example.com/bbb"]},
            {"example.com/bbb": 1},
            mp.SUCCESS,
            id="an ignored resource",
        ),
        pytest.param(
            {"ignored_resource_groups": ["example.com"]},
            {"example.com/bbb": 1, "kubernetes.io/something": 1},
            never("kubernetes.io/something"),
            id="a group says nothing of other groups",
        ),
        pytest.param(
            {"ignored_resource_groups": ["example.com"]},
            {"sub.example.com/bbb": 1},
            never("sub.example.com/bbb"),
            id="a group is a whole prefix",
        ),
        pytest.param(
            {"ignored_resources": [HUGE, "cpu"], "ignored_resource_groups": ["kubernetes.io"]},
            {HUGE: 9, "cpu": 1, "kubernetes.io/something": 1},
            never("cpu", HUGE, "kubernetes.io/something"),
            id="only extended resources can be ignored",
        ),
    ],
)
def test_ignored(settings, requests, status):
    assert said(make_pod(requests=requests), **settings) == status


def test_a_node_to_try_things_on():
    running = make_pod("running", node="n", requests={"cpu": "8m"})
    pod = make_pod(requests={"cpu": "5m"})
    table = make_table([make_node("n", allocatable=NODE)], [running])
    plugin, state = NodeResourcesFit(), make_state(pod, table)
    plugin.pre_filter(state, pod)
    copy = table.info(table.row_of["n"]).copy()
    assert plugin.filter(state, pod, copy) == lacks("cpu")
    copy.remove(running)
    assert plugin.filter(state, pod, copy) == mp.SUCCESS


def test_equal_refusals_are_one_object():
    table = make_table([make_node(name, allocatable={"pods": 1}) for name in ("a", "b")])
    found = []
    for requests in ({"cpu": 1}, {"cpu": 2}):
        pod = make_pod(requests=requests)
        plugin, state = NodeResourcesFit(), make_state(pod, table)
        plugin.pre_filter(state, pod)
        verdicts = plugin.filter_all(state, pod, table)
        found += [plugin.filter(state, pod, table.info(table.row_of[name])) for name in ("a", "b")]
        found += [verdicts.status_of(int(code)) for code in verdicts.codes[table.active_rows]]
        status_of = pickle.loads(pickle.dumps(verdicts.status_of))
        assert status_of(int(verdicts.codes[table.row_of["a"]])) == found[0]
    assert found[0] == never("cpu")
    assert all(status is found[0] for status in found)


def test_as_many_resources_as_there_are_bits():
    names = [f"example.com/r{i:02}" for i in range(61)]
    pod = make_pod(requests=dict.fromkeys(names, 2))
    assert said(pod) == never(*names)
    assert said(pod, None, {"pods": 1, **dict.fromkeys(names[:-1], 2)}) == never(names[-1])
    with pytest.raises(PluginFailure, match="61 different resources"):
        said(make_pod(requests=dict.fromkeys([*names, "cpu"], 1)))


def test_conforms():
    check_plugin(NodeResourcesFit())


@pytest.mark.parametrize(
    ("requests", "copies"),
    [
        pytest.param({"cpu": "1"}, [3, 0, 2], id="cpu"),
        pytest.param({"cpu": "500m", "memory": "3Gi"}, [2, 0, 2], id="the scarcest resource"),
        pytest.param({}, [109, 0, 2], id="pods"),
        pytest.param({"example.com/gpu": "1"}, [0, 0, 0], id="nothing of it"),
    ],
)
def test_how_many_equal_pods_a_node_has_room_for(requests, copies):
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    nodes = [
        make_node("a", allocatable=amounts),
        make_node("b", allocatable={**amounts, "pods": "1"}),
        make_node("c", allocatable={**amounts, "pods": "3"}),
    ]
    there = [make_pod(f"on-{n}", node=n, requests={"cpu": "1", "memory": "1Gi"}) for n in "abc"]
    pod = make_pod("p", requests=requests)
    table = make_table(nodes, there)
    plugin, state = NodeResourcesFit(), make_state(pod, table)
    plugin.pre_filter(state, pod)
    assert plugin.filter_copies(state, pod, table).tolist()[:3] == copies
