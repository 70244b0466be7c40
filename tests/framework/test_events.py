"""Which changes a registration covers, and what they are called."""

import pytest

from moorage.core import updates
from moorage.framework.events import Action, ClusterEvent

NODE_UPDATE = ClusterEvent("Node", Action.UPDATE)
ANY_NODE = ClusterEvent("Node", Action.ALL)
EVERYTHING = ClusterEvent("*", Action.ALL)
UNASSIGNED_LABEL = ClusterEvent("UnschedulablePod", Action.UPDATE_POD_LABEL)
ANY_ADD = ClusterEvent("*", Action.ADD)


@pytest.mark.parametrize(
    ("registered", "incoming", "covers"),
    [
        pytest.param(
            ClusterEvent.UPDATE_NODE_LABEL, NODE_UPDATE, False, id="25: one aspect, general update"
        ),
        pytest.param(
            NODE_UPDATE, ClusterEvent.UPDATE_NODE_LABEL, True, id="25: all updates, one aspect"
        ),
        pytest.param(
            ClusterEvent.UPDATE_POD_LABEL, UNASSIGNED_LABEL, True, id="25: Pod is both kinds of pod"
        ),
        pytest.param(
            ClusterEvent.UPDATE_POD_LABEL, EVERYTHING, False, id="25: Pod is not everything"
        ),
        pytest.param(NODE_UPDATE, NODE_UPDATE, True, id="a general update"),
        pytest.param(ANY_NODE, NODE_UPDATE, True, id="all actions"),
        pytest.param(ANY_NODE, ClusterEvent.NODE_ADD, True, id="all actions, an add"),
        pytest.param(ClusterEvent.NODE_ADD, ClusterEvent.NODE_DELETE, False, id="other action"),
        pytest.param(ClusterEvent.NODE_ADD, ClusterEvent.POD_ADD, False, id="other resource"),
        pytest.param(EVERYTHING, ClusterEvent.NODE_ADD, True, id="the wildcard"),
        pytest.param(EVERYTHING, updates.FORCE_ACTIVATE, True, id="the wildcard, a wildcard event"),
        pytest.param(ANY_ADD, ClusterEvent.NODE_ADD, True, id="any resource, that action"),
        pytest.param(ANY_ADD, ClusterEvent.NODE_DELETE, False, id="any resource, other action"),
        pytest.param(ClusterEvent.POD_ADD, updates.ASSIGNED_POD_ADD, True, id="an assigned pod"),
        pytest.param(
            updates.ASSIGNED_POD_ADD,
            updates.UNSCHEDULABLE_POD_ADD,
            False,
            id="the other kind of pod",
        ),
    ],
)
def test_25_covers(registered, incoming, covers):
    assert registered.covers(incoming) is covers


@pytest.mark.parametrize(
    ("event", "label"),
    [
        pytest.param(ClusterEvent.UPDATE_NODE_TAINT, "NodeUpdateNodeTaint", id="one aspect"),
        pytest.param(updates.ASSIGNED_POD_DELETE, "AssignedPodDelete", id="a delete"),
        pytest.param(updates.UNSCHEDULABLE_POD_ADD, "UnschedulablePodAdd", id="an add"),
        pytest.param(updates.UNSCHEDULABLE_POD_UPDATE, "UnschedulablePodUpdate", id="an update"),
        pytest.param(updates.FORCE_ACTIVATE, "ForceActivate", id="a label of its own"),
        pytest.param(
            ClusterEvent.POD_GATES_ELIMINATED, "PodUpdatePodSchedulingGatesEliminated", id="gates"
        ),
        pytest.param(ClusterEvent("Node", Action.ADD | Action.DELETE), "NodeAddDelete", id="two"),
        pytest.param(
            ClusterEvent("storage.k8s.io/CSINode", Action.ADD),
            "storage.k8s.io/CSINodeAdd",
            id="csi",
        ),
    ],
)
def test_labels(event, label):
    assert event.label == label


def test_bits_are_kubernetes_own():
    assert (Action.UPDATE, Action.ALL) == (8188, 8191)
    single = [bit for bit in Action if bit.bit_count() == 1]
    assert sum(single) == Action.ALL
