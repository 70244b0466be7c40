"""Which changes make it worth trying again?"""

import pytest
from msgspec.structs import replace

from moorage import plugin as mp
from moorage.api.pod import PodStatus
from moorage.plugins.node_resources_fit import NodeResourcesFit
from moorage.testing.builders import make_node, make_pod
from moorage.testing.checks import run_plugin

EXT = "example.com/ext"
POD = make_pod("waiting", requests={"memory": 2, EXT: 1, "example.com/none": 0})
EVENTS = NodeResourcesFit().events_to_register()


def node(**allocatable):
    renamed = {{"ext": EXT}.get(name, name): amount for name, amount in allocatable.items()}
    return make_node("n", allocatable={"pods": 10, "memory": 4, EXT: 2, **renamed})


def queued(event, pod, old, new):
    hint = EVENTS[event]
    assert hint is not None
    return hint(pod, old, new) is mp.Hint.QUEUE


def test_registered():
    assert list(EVENTS) == [
        mp.ClusterEvent.POD_DELETE,
        mp.ClusterEvent.UPDATE_POD_SCALE_DOWN,
        mp.ClusterEvent.NODE_ADD,
        mp.ClusterEvent.UPDATE_NODE_ALLOCATABLE,
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(node(ext=2), node(ext=1), False, id="less of a scalar"),
        pytest.param(node(ext=1), node(ext=2), True, id="more of a scalar"),
        pytest.param(node(memory=4), node(memory=1), False, id="too little memory now"),
        pytest.param(node(memory=1), node(memory=4), True, id="enough memory now"),
        pytest.param(node(memory=1), node(memory=4, ext=0), False, id="but not of the scalar"),
        pytest.param(
            node(cpu=1), node(cpu=2), False, id="more of a resource that is not requested"
        ),
        pytest.param(
            node(),
            node(**{"example.com/none": 5}),
            False,
            id="more of a resource with a request of 0",
        ),
        pytest.param(node(pods=10), node(pods=11), True, id="room for more pods"),
        pytest.param(node(pods=1), node(pods=0, memory=9), False, id="room for no pod at all"),
    ],
)
def test_node_update(old, new, expected):
    assert queued(mp.ClusterEvent.UPDATE_NODE_ALLOCATABLE, POD, old, new) is expected


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        pytest.param(node(), True, id="large enough"),
        pytest.param(node(memory=1), False, id="too small"),
        pytest.param(make_node("n", allocatable={"memory": 9, EXT: 9}), False, id="no room stated"),
    ],
)
def test_node_add(new, expected):
    assert queued(mp.ClusterEvent.NODE_ADD, POD, None, new) is expected


def test_ignored_resources_are_not_ignored_here():
    plugin = NodeResourcesFit(ignored_resources=["example.com/other"])
    pod = make_pod(requests={"example.com/other": 1})
    assert run_plugin(plugin, pod, node()).status.is_success
    hint = plugin.events_to_register()[mp.ClusterEvent.NODE_ADD]
    assert hint is not None
    assert hint(pod, None, node()) is mp.Hint.QUEUE_SKIP


NOMINATED = replace(make_pod("other"), status=PodStatus(nominated_node_name="n"))


@pytest.mark.parametrize(
    ("deleted", "expected"),
    [
        pytest.param(make_pod("other"), False, id="it had no node"),
        pytest.param(NOMINATED, True, id="it had a nominated node"),
        pytest.param(make_pod("other", node="n"), True, id="it was on a node"),
    ],
)
def test_pod_delete(deleted, expected):
    assert queued(mp.ClusterEvent.POD_DELETE, POD, deleted, None) is expected


def scaled(name, requests, *, on="n"):
    return make_pod(name, node=on, requests=requests)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            scaled("waiting", {"cpu": 2}, on=""),
            scaled("waiting", {"cpu": 1}, on=""),
            True,
            id="the pod itself",
        ),
        pytest.param(
            scaled("other", {"memory": 2}, on=""),
            scaled("other", {"memory": 1}, on=""),
            False,
            id="a pod without a node",
        ),
        pytest.param(
            scaled("other", {"cpu": 2}),
            scaled("other", {"cpu": 1}),
            False,
            id="a resource that is not requested",
        ),
        pytest.param(
            scaled("other", {"example.com/none": 2}),
            scaled("other", {"example.com/none": 1}),
            False,
            id="a resource with a request of 0",
        ),
        pytest.param(
            scaled("other", {"memory": 2}),
            scaled("other", {"memory": 1}),
            True,
            id="a requested resource",
        ),
        pytest.param(
            scaled("other", {EXT: 2}), scaled("other", {}), True, id="all of a requested resource"
        ),
        pytest.param(
            scaled("other", {"memory": 2, "cpu": 2}),
            scaled("other", {"memory": 3, "cpu": 1}),
            False,
            id="more of a requested resource",
        ),
    ],
)
def test_scale_down(old, new, expected):
    assert queued(mp.ClusterEvent.UPDATE_POD_SCALE_DOWN, POD, old, new) is expected
