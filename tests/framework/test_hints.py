"""Who is asked about a change: registrations, the default one, and taints that come for free."""

import pytest

from moorage.framework import events
from moorage.framework.events import EVERYTHING, Action, ClusterEvent, Hint, HintMap, always


def skip(pod, old, new):
    return Hint.QUEUE_SKIP


def asked(hints, event):
    return [(registration.plugin, registration.hint) for registration in hints.covering(event)]


TAINT = ClusterEvent.UPDATE_NODE_TAINT


@pytest.mark.parametrize(
    ("registered", "extra"),
    [
        pytest.param({ClusterEvent.NODE_ADD: skip}, True, id="26: Node Add"),
        pytest.param({ClusterEvent("Node", Action.ADD | Action.DELETE): skip}, True, id="and more"),
        pytest.param({ClusterEvent.NODE_ADD: skip, TAINT: skip}, False, id="taints asked for"),
        pytest.param(
            {ClusterEvent("Node", Action.ADD | Action.UPDATE_NODE_TAINT): skip}, False, id="in one"
        ),
        pytest.param({ClusterEvent.UPDATE_NODE_LABEL: skip}, False, id="no Node Add"),
        pytest.param({ClusterEvent.POD_ADD: skip}, False, id="no nodes at all"),
        pytest.param({}, False, id="nothing"),
    ],
)
def test_26_who_waits_for_nodes_hears_of_taints(registered, extra):
    hints = HintMap({"P": registered})
    assert (("P", always) in asked(hints, TAINT)) is extra
    assert len(hints.registrations) == len(registered) + extra


def test_the_registered_function_is_asked():
    hints = HintMap({"P": {ClusterEvent.NODE_ADD: skip}, "Q": {ClusterEvent.NODE_ADD: None}})
    assert asked(hints, ClusterEvent.NODE_ADD) == [("P", skip), ("Q", always)]
    assert asked(hints, ClusterEvent.NODE_DELETE) == []
    assert hints.events_of("P") == [ClusterEvent.NODE_ADD, TAINT]


def test_the_default_hears_of_everything_it_can_be_cured_by():
    hints = HintMap({"P": EVERYTHING})
    heard = [
        ClusterEvent.NODE_ADD,
        ClusterEvent("Node", Action.UPDATE),
        events.ASSIGNED_POD_DELETE,
        events.UNSCHEDULABLE_POD_UPDATE,
        ClusterEvent("PersistentVolumeClaim", Action.ADD),
        ClusterEvent("resource.k8s.io/ResourceClaim", Action.UPDATE),
    ]
    assert all(asked(hints, event) == [("P", always)] for event in heard)
    deaf = ["resource.k8s.io/ResourceSlice", "storage.k8s.io/VolumeAttachment"]
    assert not any(asked(hints, ClusterEvent(resource, Action.ADD)) for resource in deaf)


def test_always_is_always_worth_it():
    assert always(None, None, None) is Hint.QUEUE
