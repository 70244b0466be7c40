import pytest

from moorage import plugin as mp
from moorage.plugins.node_unschedulable import CORDONED, TAINT, NodeUnschedulable
from moorage.testing import check_plugin, make_node, make_pod, run_plugin

KEY = "node.kubernetes.io/unschedulable"
TOLERATION = mp.Toleration(key=KEY, effect="NoSchedule")


@pytest.mark.parametrize(
    ("node", "tolerations", "status"),
    [
        pytest.param(make_node(), [], mp.SUCCESS, id="a node that is open"),
        pytest.param(make_node(unschedulable=True), [], CORDONED, id="a cordoned node"),
        pytest.param(
            make_node(unschedulable=True),
            [TOLERATION],
            mp.SUCCESS,
            id="tolerated by key and effect, without an operator",
        ),
        pytest.param(
            make_node(unschedulable=True),
            [mp.Toleration(operator="Exists")],
            mp.SUCCESS,
            id="tolerates everything",
        ),
        pytest.param(
            make_node(unschedulable=True),
            [mp.Toleration(key=KEY, operator="Exists", effect="NoExecute")],
            CORDONED,
            id="tolerates the key with another effect",
        ),
        pytest.param(
            make_node(unschedulable=True),
            [mp.Toleration(key=KEY, value="yes")],
            CORDONED,
            id="tolerates another value",
        ),
        pytest.param(
            make_node(taints=[TAINT]), [], mp.SUCCESS, id="the taint alone is not looked at"
        ),
    ],
)
def test_filter(node, tolerations, status):
    ran = run_plugin(NodeUnschedulable(), make_pod(tolerations=tolerations), node)
    assert ran == (status, None, None)


def test_reason():
    assert mp.unresolvable("node(s) were unschedulable") == CORDONED


OPEN, CLOSED = make_node(), make_node(unschedulable=True)


@pytest.mark.parametrize("event", [mp.ClusterEvent.NODE_ADD, mp.ClusterEvent.UPDATE_NODE_TAINT])
@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, OPEN, mp.Hint.QUEUE, id="a new node that is open"),
        pytest.param(None, CLOSED, mp.Hint.QUEUE_SKIP, id="a new node that is cordoned"),
        pytest.param(CLOSED, OPEN, mp.Hint.QUEUE, id="a node was uncordoned"),
        pytest.param(OPEN, CLOSED, mp.Hint.QUEUE_SKIP, id="a node was cordoned"),
        pytest.param(OPEN, OPEN, mp.Hint.QUEUE_SKIP, id="it was open before"),
        pytest.param(CLOSED, CLOSED, mp.Hint.QUEUE_SKIP, id="it is still cordoned"),
    ],
)
def test_node_hint(event, old, new, hint):
    ask = NodeUnschedulable().events_to_register()[event]
    assert ask(make_pod(), old, new) is hint
    # Kubernetes leaves the pod's tolerations out of it: one that tolerates was never refused.
    assert ask(make_pod(tolerations=[TOLERATION]), old, new) is hint


@pytest.mark.parametrize(
    ("changed", "hint"),
    [
        pytest.param(
            make_pod("mine", tolerations=[TOLERATION]), mp.Hint.QUEUE, id="the pod tolerates it now"
        ),
        pytest.param(
            make_pod("mine", tolerations=[mp.Toleration(key="gpu", operator="Exists")]),
            mp.Hint.QUEUE_SKIP,
            id="the pod tolerates something else now",
        ),
        pytest.param(
            make_pod("other", tolerations=[TOLERATION]),
            mp.Hint.QUEUE_SKIP,
            id="another pod tolerates it now",
        ),
    ],
)
def test_pod_hint(changed, hint):
    ask = NodeUnschedulable().events_to_register()[mp.ClusterEvent.UPDATE_POD_TOLERATION]
    assert ask(make_pod("mine"), make_pod(changed.name), changed) is hint


def test_conforms():
    check_plugin(NodeUnschedulable())
