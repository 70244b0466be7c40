"""Which hints cover an event: registered ones, the default, and taints added to Node Add."""

import pytest

from moorage.core import updates
from moorage.core.requeueing import HintMap, always
from moorage.framework.events import EVERYTHING, Action, ClusterEvent, Hint


def skip(pod, old, new):
    return Hint.QUEUE_SKIP


def covering(hints, event):
    return [(registration.plugin, registration.hint) for registration in hints.covering(event)]


TAINT = ClusterEvent.UPDATE_NODE_TAINT


@pytest.mark.parametrize(
    ("registered", "extra"),
    [
        pytest.param({ClusterEvent.NODE_ADD: skip}, True, id="26: Node Add"),
        pytest.param(
            {ClusterEvent("Node", Action.ADD | Action.DELETE): skip}, True, id="Node Add and Delete"
        ),
        pytest.param(
            {ClusterEvent.NODE_ADD: skip, TAINT: skip},
            False,
            id="Node Add and taints, two registrations",
        ),
        pytest.param(
            {ClusterEvent("Node", Action.ADD | Action.UPDATE_NODE_TAINT): skip},
            False,
            id="Node Add and taints, one registration",
        ),
        pytest.param({ClusterEvent.UPDATE_NODE_LABEL: skip}, False, id="no Node Add"),
        pytest.param({ClusterEvent.POD_ADD: skip}, False, id="no node event"),
        pytest.param({}, False, id="no registration"),
    ],
)
def test_26_a_registration_for_node_add_covers_taint_updates(registered, extra):
    hints = HintMap({"P": registered})
    assert (("P", always) in covering(hints, TAINT)) is extra
    assert len(hints.registrations) == len(registered) + extra


def test_the_registered_hint_function_is_used():
    hints = HintMap({"P": {ClusterEvent.NODE_ADD: skip}, "Q": {ClusterEvent.NODE_ADD: None}})
    assert covering(hints, ClusterEvent.NODE_ADD) == [("P", skip), ("Q", always)]
    assert covering(hints, ClusterEvent.NODE_DELETE) == []
    assert [each.event for each in hints.registrations if each.plugin == "P"] == [
        ClusterEvent.NODE_ADD,
        TAINT,
    ]


def test_the_default_registration_covers_all_events_that_can_requeue_a_pod():
    hints = HintMap({"P": EVERYTHING})
    covered = [
        ClusterEvent.NODE_ADD,
        ClusterEvent("Node", Action.UPDATE),
        updates.ASSIGNED_POD_DELETE,
        updates.UNSCHEDULABLE_POD_UPDATE,
        ClusterEvent("PersistentVolumeClaim", Action.ADD),
        ClusterEvent("resource.k8s.io/ResourceClaim", Action.UPDATE),
    ]
    assert all(covering(hints, event) == [("P", always)] for event in covered)
    not_covered = ["resource.k8s.io/ResourceSlice", "storage.k8s.io/VolumeAttachment"]
    assert not any(covering(hints, ClusterEvent(resource, Action.ADD)) for resource in not_covered)


def test_always_returns_queue():
    assert always(None, None, None) is Hint.QUEUE
