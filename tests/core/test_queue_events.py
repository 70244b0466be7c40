"""What the queue relies on in changes and their registrations (rows 25 to 27)."""

import pytest

from moorage.api.meta import Condition, ObjectMeta
from moorage.api.node import Node, NodeSpec, NodeStatus
from moorage.api.pod import Pod, PodSchedulingGate, PodSpec
from moorage.core import updates
from moorage.core.requeueing import HintMap, always
from moorage.framework.events import (
    NODE,
    POD,
    UNSCHEDULABLE_POD,
    WILDCARD,
    Action,
    ClusterEvent,
    Hint,
)


@pytest.mark.parametrize(
    ("registered", "incoming", "covered"),
    [
        pytest.param(
            ClusterEvent(NODE, Action.UPDATE_NODE_LABEL),
            ClusterEvent(NODE, Action.UPDATE),
            False,
            id="25: one aspect does not cover a general update",
        ),
        pytest.param(
            ClusterEvent(NODE, Action.UPDATE),
            ClusterEvent(NODE, Action.UPDATE_NODE_LABEL),
            True,
            id="25: a general update covers an aspect",
        ),
        pytest.param(
            ClusterEvent(POD, Action.UPDATE_POD_LABEL),
            ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE_POD_LABEL),
            True,
            id="25: Pod covers pods without a node",
        ),
        pytest.param(
            ClusterEvent(POD, Action.ALL),
            ClusterEvent(WILDCARD, Action.ALL),
            False,
            id="25: Pod does not cover an incoming wildcard",
        ),
        pytest.param(
            ClusterEvent(WILDCARD, Action.ALL),
            ClusterEvent(NODE, Action.DELETE),
            True,
            id="a registered wildcard covers everything",
        ),
    ],
)
def test_covers(registered, incoming, covered):
    assert registered.covers(incoming) is covered


def nothing(pod, old, new):
    return Hint.QUEUE_SKIP


def test_26_a_registration_for_node_add_covers_taint_updates():
    hints = HintMap({"P": {ClusterEvent.NODE_ADD: nothing}})
    [added] = hints.covering(ClusterEvent.NODE_ADD)
    [tainted] = hints.covering(ClusterEvent.UPDATE_NODE_TAINT)
    assert (added.plugin, added.hint) == ("P", nothing)
    assert (tainted.plugin, tainted.hint) == ("P", always)


def node(*, unschedulable=False, heartbeat=""):
    condition = Condition(type="Ready", status="True", last_transition_time=heartbeat)
    return Node(
        metadata=ObjectMeta(name="n"),
        spec=NodeSpec(unschedulable=unschedulable),
        status=NodeStatus(conditions=(condition,)),
    )


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        pytest.param(node(heartbeat="1"), node(heartbeat="2"), [], id="27: a heartbeat"),
        pytest.param(
            node(unschedulable=True),
            node(),
            [ClusterEvent.UPDATE_NODE_TAINT],
            id="27: uncordoned",
        ),
        pytest.param(node(), node(unschedulable=True), [], id="27: cordoned"),
    ],
)
def test_node_update(old, new, changes):
    assert updates.node_update(old, new) == changes


def gated(*gates):
    spec = PodSpec(scheduling_gates=tuple(PodSchedulingGate(name=gate) for gate in gates))
    return Pod(metadata=ObjectMeta(name="p", namespace="ns", uid="u"), spec=spec)


@pytest.mark.parametrize(
    ("old", "new", "action"),
    [
        pytest.param(gated("a", "b"), gated("b"), Action.UPDATE, id="23: one of two gates removed"),
        pytest.param(
            gated("b"),
            gated(),
            Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
            id="23: the last one removed",
        ),
    ],
)
def test_pod_update(old, new, action):
    assert updates.pod_update(old, new) == [ClusterEvent(UNSCHEDULABLE_POD, action)]
