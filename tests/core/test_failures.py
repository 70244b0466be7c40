"""The patch of a pod's status after a failed attempt."""

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from moorage.api.meta import Condition
from moorage.core.failures import status_patch
from moorage.core.queued_pod import QueuedPod
from moorage.framework.status import error, unschedulable
from moorage.testing import make_pod

FULL, BROKEN = unschedulable("full"), error("not bound")


def shows(pod, patch):
    """The pod after the patch."""
    status = pod.status
    if patch.condition is not None:
        status = replace(status, conditions=(patch.condition,))
    if patch.nominated_node_name is not UNSET:
        status = replace(status, nominated_node_name=patch.nominated_node_name)
    return replace(pod, status=status)


def ask(entry, pod, status, nominated=""):
    return status_patch(entry, pod, status, status.message, nominated)


@pytest.fixture
def pod():
    return make_pod("p")


@pytest.fixture
def entry(pod):
    return QueuedPod(pod, 0.0)


def test_what_is_there_is_not_written_again(entry, pod):
    first = ask(entry, pod, FULL)
    assert (first.condition.reason, first.condition.message) == ("Unschedulable", "full")
    assert ask(entry, shows(pod, first), FULL) is None


def test_what_another_client_wrote_is_not_written_again(entry, pod):
    condition = Condition("PodScheduled", "False", "Unschedulable", "full")
    assert (
        ask(entry, replace(pod, status=replace(pod.status, conditions=(condition,))), FULL) is None
    )


def test_a_patch_that_was_not_applied_is_written_again(entry, pod):
    ask(entry, pod, FULL)
    assert ask(entry, pod, FULL).condition.message == "full"


def test_what_is_on_its_way_is_written_over(entry, pod):
    """The first rejection is observed, the patch of the second is on its way."""
    pod = shows(pod, ask(entry, pod, FULL))
    assert ask(entry, pod, BROKEN).condition.reason == "SchedulerError"
    again = ask(entry, pod, FULL)
    assert again.condition.message == "full"
    assert ask(entry, shows(pod, again), FULL) is None


def test_a_nomination_on_its_way_is_cleared(entry, pod):
    pod = shows(pod, ask(entry, pod, FULL))
    assert ask(entry, pod, FULL, "n1").nominated_node_name == "n1"
    assert ask(entry, pod, FULL, "").nominated_node_name == ""
    assert ask(entry, pod, FULL, None) is None
