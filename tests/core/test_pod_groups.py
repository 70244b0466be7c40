"""Members of pod groups: in the cache, and when a new one requeues the others."""

import pytest
from tests.core.test_pod_group_cycle import gang, member
from tests.saying import make

from moorage.api.server_requests import BindPod
from moorage.framework.events import ClusterEvent
from moorage.framework.status import unschedulable

GATES = {"GenericWorkload": True}


@pytest.mark.parametrize(
    ("count", "state"),
    [
        pytest.param(2, "backoff", id="enough"),
        pytest.param(3, "unschedulable", id="one is still missing"),
    ],
)
def test_a_new_member_requeues_the_others_if_there_are_enough(machine, count, state):
    waits = make(
        "Waits",
        filter=unschedulable("too few"),
        events_to_register=lambda: {ClusterEvent.UNSCHEDULABLE_POD_ADD: None},
    )
    run = machine(waits, featureGates=GATES)
    first = member("first")
    run.add(gang(count=count))
    run.schedule(first)
    assert run.where(first) == "unschedulable"
    run.add(member("second"))
    assert run.where(first) == state


def test_a_pod_that_the_cache_does_not_know_is_not_forgotten(machine):
    assert machine(featureGates=GATES).scheduler.cache.forget("unknown") is None


def test_a_member_that_is_gone_before_its_binding_fails(machine):
    run = machine(featureGates=GATES)
    pod = member("p")
    run.add(gang())
    run.schedule(pod)
    run.delete(pod)
    run.fail(BindPod)
    assert (run.cached(pod), run.scheduler.cluster.members("default/g")) == (None, None)
