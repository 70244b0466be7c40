import pytest

from moorage import plugin as mp
from moorage.api.pod import Container, PodStatus
from moorage.plugins.node_ports import TAKEN, NodePorts
from moorage.testing import (
    check_plugin,
    make_node,
    make_pod,
    make_port,
    make_state,
    make_table,
    run_plugin,
)


def container(*ports, **fields):
    return Container(ports=tuple(map(make_port, ports)), **fields)


def local(port, ip="127.0.0.1", protocol="TCP"):
    return (ip, protocol, port)


@pytest.mark.parametrize(
    ("wanted", "used", "status"),
    [
        pytest.param([], [8001], mp.SUCCESS, id="a pod without host ports"),
        pytest.param([8080], [], mp.SUCCESS, id="a node without host ports"),
        pytest.param([8080], [8080], TAKEN, id="the same port"),
        pytest.param([8000, 8080], [8001, 8080], TAKEN, id="one of several is taken"),
        pytest.param([8000], [8001], mp.SUCCESS, id="another port"),
        pytest.param([8001], [local(8001)], TAKEN, id="all addresses against one"),
        pytest.param([local(8001)], [8001], TAKEN, id="one address against all"),
        pytest.param([local(8001)], [local(8001)], TAKEN, id="the same address"),
        pytest.param(
            [local(8001)], [local(8001, "127.0.0.2")], mp.SUCCESS, id="two different addresses"
        ),
        pytest.param([local(80, "", "UDP")], [80], mp.SUCCESS, id="UDP against TCP"),
        pytest.param([local(80, "0.0.0.0")], [80], TAKEN, id="no address stands for 0.0.0.0"),
        pytest.param([local(80, "", "")], [local(80, "", "TCP")], TAKEN, id="TCP goes unsaid"),
        pytest.param(
            [local(80, "::")], [local(80)], mp.SUCCESS, id=":: is an address as any other"
        ),
        pytest.param([80, 80], [], mp.SUCCESS, id="a pod's own duplicates are not looked at"),
    ],
)
def test_filter(wanted, used, status):
    other = make_pod("other", node="node", host_ports=used)
    ran = run_plugin(NodePorts(), make_pod(host_ports=wanted), make_node(), pods=[other])
    assert ran == (status, None, None)


def test_reason_could_be_cured_by_preemption():
    assert mp.unschedulable("node(s) didn't have free ports for the requested pod ports") == TAKEN


@pytest.mark.parametrize(
    ("spec", "answer"),
    [
        pytest.param({"containers": (container(),)}, mp.SKIP, id="no ports at all"),
        pytest.param({"containers": (container(80),)}, mp.SUCCESS, id="a container's port"),
        pytest.param(
            {"init_containers": (container(80),)}, mp.SKIP, id="a plain init container's port"
        ),
        pytest.param(
            {"init_containers": (container(80, restart_policy="Always"),)},
            mp.SUCCESS,
            id="a sidecar's port",
        ),
        pytest.param({"containers": (container(0),)}, mp.SKIP, id="a port that is not a host port"),
    ],
)
def test_pre_filter(spec, answer):
    pod = make_pod(**spec)
    assert NodePorts().pre_filter(make_state(pod, make_table([])), pod) == answer


def test_a_sidecars_port_conflicts():
    sidecar = container(80, restart_policy="Always")
    holder = make_pod("other", node="node", init_containers=(sidecar,))
    assert (
        run_plugin(NodePorts(), make_pod(host_ports=[80]), make_node(), pods=[holder]).status
        == TAKEN
    )


def test_a_port_held_twice_is_free_when_one_holder_leaves():
    pod = make_pod(host_ports=[80])
    holders = [make_pod(name, node="node", host_ports=[80]) for name in ("a", "b")]
    table = make_table([make_node()], holders)
    table.remove_pod("node", holders[0].uid)
    state = make_state(pod, table)
    assert NodePorts().pre_filter(state, pod) == mp.SUCCESS
    assert NodePorts().filter(state, pod, table.info(table.row_of["node"])) == mp.SUCCESS
    assert not NodePorts().filter_all(state, pod, table).codes.any()


def test_filter_needs_what_pre_filter_left():
    pod, table = make_pod(host_ports=[80]), make_table([make_node()])
    with pytest.raises(mp.PluginFailure, match='reading "PreFilterNodePorts" from cycleState'):
        NodePorts().filter(make_state(pod, table), pod, table.info(table.row_of["node"]))


def test_tried_on_a_copy_of_the_node():
    """Preemption asks what would be if a pod were gone."""
    pod, holder = make_pod(host_ports=[80]), make_pod("other", node="node", host_ports=[80])
    table = make_table([make_node()], [holder])
    state = make_state(pod, table)
    NodePorts().pre_filter(state, pod)
    copy = table.info(table.row_of["node"]).copy()
    assert NodePorts().filter(state, pod, copy) == TAKEN
    copy.remove(holder)
    assert NodePorts().filter(state, pod, copy) == mp.SUCCESS


NOMINATED = PodStatus(nominated_node_name="node")


@pytest.mark.parametrize(
    ("deleted", "hint"),
    [
        pytest.param(make_pod("x", node="n", host_ports=[80]), mp.Hint.QUEUE, id="frees our port"),
        pytest.param(make_pod("x", host_ports=[80]), mp.Hint.QUEUE_SKIP, id="was on no node"),
        pytest.param(make_pod("x", node="n"), mp.Hint.QUEUE_SKIP, id="had no host ports"),
        pytest.param(
            make_pod("x", node="n", host_ports=[81]), mp.Hint.QUEUE_SKIP, id="frees another port"
        ),
        pytest.param(
            make_pod("x", node="n", host_ports=[("127.0.0.1", "UDP", 80)]),
            mp.Hint.QUEUE_SKIP,
            id="frees our port of another protocol",
        ),
        pytest.param(
            make_pod("x", node="n", host_ports=[("127.0.0.1", "TCP", 80)]),
            mp.Hint.QUEUE,
            id="frees our port on one address",
        ),
    ],
)
def test_pod_hint(deleted, hint):
    ask = NodePorts().events_to_register()[mp.ClusterEvent.POD_DELETE]
    assert ask(make_pod(host_ports=[80]), deleted, None) is hint


def test_a_nominated_pod_counts_as_placed():
    deleted = mp.Pod(
        metadata=make_pod("x").metadata, spec=make_pod("x", host_ports=[80]).spec, status=NOMINATED
    )
    ask = NodePorts().events_to_register()[mp.ClusterEvent.POD_DELETE]
    assert ask(make_pod(host_ports=[80]), deleted, None) is mp.Hint.QUEUE


def test_every_new_node_is_worth_a_try():
    registered = NodePorts().events_to_register()
    assert registered[mp.ClusterEvent.NODE_ADD] is None
    assert set(registered) == {mp.ClusterEvent.NODE_ADD, mp.ClusterEvent.POD_DELETE}


def test_conforms():
    check_plugin(NodePorts())
