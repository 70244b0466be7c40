"""Requests of unreserve: sent when a binding fails, and repeated until they are carried out."""

import pytest
from tests.saying import make

from moorage.api.server_requests import (
    BindPod,
    DeleteResourceClaim,
    PatchPodStatus,
    PodRef,
)
from moorage.core.effects import Failed
from moorage.framework.status import SUCCESS
from moorage.testing import make_pod

POD = make_pod("p")
UNDO = PatchPodStatus(PodRef.of(make_pod("written")), nominated_node_name="")
DELETE = DeleteResourceClaim(PodRef.of(POD), "default", "claim", "u1")


@pytest.fixture
def run(machine):
    """A machine whose binding has failed."""
    keeper = make("Keeper", reserve=SUCCESS, unreserve=lambda *_: (UNDO,))
    run = machine(keeper, nodes=["n1"])
    run.schedule(POD)
    run.sent = run.fail(BindPod)
    # Only the request of unreserve is answered below, not the patch of the pod's own status.
    run.effects = [effect for effect in run.effects if effect.request == UNDO]
    return run


def test_a_request_is_sent_once_if_it_succeeds(run):
    assert run.sent.count(UNDO) == 1
    run.answer(PatchPodStatus)
    assert (len(run.scheduler.undoing), run.scheduler.undoing.deadline) == (0, None)


def test_a_request_that_fails_is_repeated_after_a_second(run):
    run.fail(PatchPodStatus)
    assert run.scheduler.undoing.deadline == run.now + 1.0
    assert UNDO not in run.advance(0.5)
    assert UNDO in run.advance(0.5)
    run.answer(PatchPodStatus)
    assert len(run.scheduler.undoing) == 0


def test_an_object_that_is_gone_needs_no_undoing(run):
    run.answer(PatchPodStatus, Failed("not found", missing=True))
    assert len(run.scheduler.undoing) == 0


@pytest.mark.parametrize(
    ("request_", "repeated"),
    [
        pytest.param(DELETE, True, id="of a claim"),
        pytest.param(UNDO, False, id="any other"),
    ],
)
def test_what_post_filter_requests_is_repeated_if_it_changes_a_claim(machine, request_, repeated):
    run = machine(nodes=["n1"])
    run.scheduler.undoing.carry_out([request_])
    run.advance()
    run.lose(type(request_))
    assert (request_ in run.advance(1.0)) == repeated
