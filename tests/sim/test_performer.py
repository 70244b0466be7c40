import pytest

from moorage.api.meta import Condition, NodeName
from moorage.api.pod import Pod
from moorage.api.server_requests import (
    BindPod,
    DeletePod,
    EmitEvent,
    LookUpPod,
    PatchPodStatus,
    PodRef,
)
from moorage.core.effects import Done, Failed, Unknown
from moorage.sim.cluster import MemoryCluster
from moorage.sim.faults import NO_FAULT, FaultDecision
from moorage.sim.performer import perform
from moorage.testing.builders import make_pod

WEB = PodRef("default", "web", "default/web")
NAMESAKE = PodRef("default", "web", "another")
BIND = BindPod(WEB, NodeName("n1"))
REFUSED = FaultDecision(performed=False, failed="no")
EVENT = EmitEvent(WEB, "Normal", "Scheduled", "Binding", "there it goes", "me")


def cluster() -> MemoryCluster:
    made = MemoryCluster()
    made.create(make_pod("web"), 0)
    return made


def web(made: MemoryCluster) -> Pod:
    pod = made.get(Pod, "default/web")
    assert pod is not None
    return pod


@pytest.mark.parametrize(
    ("fault", "outcome", "node"),
    [
        pytest.param(NO_FAULT, Done(), "n1", id="done"),
        pytest.param(REFUSED, Failed("no"), "", id="refused"),
        pytest.param(
            FaultDecision(unknown="lost"), Unknown("lost"), "n1", id="done, outcome unknown"
        ),
        pytest.param(
            FaultDecision(unknown="lost", performed=False),
            Unknown("lost"),
            "",
            id="lost on the way",
        ),
    ],
)
def test_bind(fault, outcome, node):
    made = cluster()
    assert perform(made, BIND, fault, 0, []) == outcome
    assert web(made).node_name == node


@pytest.mark.parametrize(
    ("ref", "text", "missing"),
    [
        pytest.param(WEB, "is already assigned", False, id="there, but bound"),
        pytest.param(NAMESAKE, "UID in precondition", True, id="a namesake"),
        pytest.param(PodRef("default", "x", "x"), "not found", True, id="not there"),
    ],
)
def test_what_the_server_refuses_has_failed(ref, text, missing):
    made = cluster()
    perform(made, BIND, NO_FAULT, 0, [])
    outcome = perform(made, BindPod(ref, NodeName("n2")), NO_FAULT, 0, [])
    assert isinstance(outcome, Failed)
    assert text in outcome.reason
    assert outcome.missing == missing


def test_patch_status():
    made = cluster()
    condition = Condition(type="PodScheduled", status="False", message="no room")
    perform(made, PatchPodStatus(WEB, condition, "n2"), NO_FAULT, 0, [])
    assert web(made).status.nominated_node_name == "n2"
    shown = web(made).condition("PodScheduled")
    assert shown is not None
    assert shown.message == "no room"


@pytest.mark.parametrize(("ref", "gone"), [(WEB, True), (NAMESAKE, False)])
def test_delete_leaves_a_namesake_alone(ref, gone):
    made = cluster()
    outcome = perform(made, DeletePod(ref), NO_FAULT, 0, [])
    assert isinstance(outcome, Done) == gone
    assert (made.get(Pod, "default/web") is None) == gone


def test_look_up():
    made = cluster()
    assert perform(made, LookUpPod(WEB), NO_FAULT, 0, []) == Done(web(made))
    assert perform(made, LookUpPod(NAMESAKE), NO_FAULT, 0, []) == Done(None)


@pytest.mark.parametrize(("fault", "seen"), [(NO_FAULT, [EVENT]), (REFUSED, [])])
def test_events(fault, seen):
    events: list[EmitEvent] = []
    perform(cluster(), EVENT, fault, 0, events)
    assert events == seen
