import pytest

from moorage import plugin as mp
from moorage.plugins.node_name import OTHER_NODE, NodeName
from moorage.testing import check_plugin, make_node, make_pod, run_plugin


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        pytest.param(None, mp.SUCCESS, id="a pod that names no node goes anywhere"),
        pytest.param("n1", mp.SUCCESS, id="the node that the pod names"),
        pytest.param("n2", OTHER_NODE, id="another node than the pod names"),
        pytest.param("unheard", OTHER_NODE, id="the pod names a node that does not exist"),
    ],
)
def test_filter(wanted, status):
    ran = run_plugin(NodeName(), make_pod(node=wanted), make_node("n1"), others=[make_node("n2")])
    assert ran == (status, None, None)


def test_reason():
    assert mp.unresolvable("node(s) didn't match the requested node name") == OTHER_NODE


def test_every_new_node_is_worth_a_try():
    assert NodeName().events_to_register() == {mp.ClusterEvent.NODE_ADD: None}


def test_conforms():
    check_plugin(NodeName())
