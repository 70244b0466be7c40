"""A gang that is bound in part and does not fit: when its members are evicted."""

import pytest
from tests.core.conftest import on
from tests.core.test_pod_group_cycle import gang, member
from tests.saying import make

from moorage.api.server_requests import DeletePod, PatchPodStatus
from moorage.core.journal import Preempted
from moorage.framework.status import SUCCESS, unschedulable

GATES = {"GenericWorkload": True, "GangScheduling": True}
TIME = 300.0


@pytest.fixture
def torn(machine):
    """Two of three members are on n1; the third fits nowhere, or gets a node at last."""
    answers = [unschedulable("no")]
    fits = make("Test", filter=lambda state, pod, node: answers[-1])
    turned = machine(fits, featureGates=GATES)
    turned.answers = answers
    turned.bound = [on(member(f"p{i}"), "n1") for i in range(2)]
    turned.rest = member("p2")
    turned.add(gang(count=3), *turned.bound, turned.rest)
    turned.schedule_one()
    turned.effects.clear()
    return turned


def evicted(requests):
    return sorted(
        each.pod.name
        for each in requests
        if isinstance(each, PatchPodStatus)
        and each.condition is not None
        and each.condition.type == "DisruptionTarget"
    )


def test_members_on_nodes_are_patched_then_deleted(torn):
    assert evicted(torn.advance(TIME - 1)) == []
    assert evicted(torn.advance(1)) == ["p0", "p1"]
    deleted = torn.answer(PatchPodStatus)
    assert [type(each) for each in deleted] == [DeletePod]
    torn.answer(DeletePod)
    [fact] = torn.facts(torn.bound[0], Preempted)
    assert (fact.node, fact.by, fact.by_uid) == ("n1", "default/g", "group-g")


def test_a_member_that_could_not_be_evicted_is_evicted_again(torn):
    torn.advance(TIME)
    torn.fail(PatchPodStatus)
    assert torn.scheduler.deadline == torn.now + 1
    torn.answer(PatchPodStatus)
    assert evicted(torn.advance(1)) == [], "the other one is being deleted"
    torn.answer(DeletePod)
    torn.delete(torn.bound[1])
    torn.schedule_one()
    assert evicted(torn.advance(1)) == ["p0"]


def test_no_gang_is_released_that_is_going_to_be_tried(torn):
    torn.answers.append(SUCCESS)
    torn.scheduler.queue.activate([torn.rest], torn.now)
    assert evicted(torn.advance(TIME)) == []
    torn.schedule_one()
    assert torn.cached(torn.rest) is not None
    assert evicted(torn.advance(TIME)) == []
