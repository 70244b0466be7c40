import pickle

import pytest
from random_faults import random_faults

from moorage.api.meta import NodeName
from moorage.api.server_requests import (
    BindPod,
    DeletePod,
    EmitEvent,
    LookUpPod,
    PatchPodStatus,
    PodRef,
)
from moorage.sim.faults import NO_FAULT, FaultPlan, Faults

REF = PodRef("default", "web", "u")
BIND = BindPod(REF, NodeName("n1"))


def test_no_faults_no_trouble():
    fault_plan = FaultPlan(7, Faults())
    assert fault_plan.decide(BIND, 0) == NO_FAULT
    assert not fault_plan.is_enabled
    assert fault_plan.restarts() == []


@pytest.mark.parametrize(
    ("faults", "request_"),
    [
        pytest.param(Faults(bind_fails=1), BIND, id="bind"),
        pytest.param(Faults(bind_conflicts=1), BIND, id="bind, conflict"),
        pytest.param(Faults(patch_fails=1), PatchPodStatus(REF), id="status"),
        pytest.param(Faults(delete_fails=1), DeletePod(REF), id="delete"),
        pytest.param(Faults(look_up_fails=1), LookUpPod(REF), id="look up"),
        pytest.param(Faults(event_lost=1), EmitEvent(REF, "", "", "", "", ""), id="Event"),
    ],
)
def test_what_fails_is_not_performed(faults, request_):
    decision = FaultPlan(7, faults).decide(request_, 0)
    assert decision.failed
    assert not decision.performed


def test_unknown_may_have_happened_or_not():
    fault_plan = FaultPlan(7, Faults(bind_unknown=1))
    decisions = [fault_plan.decide(BIND, 0) for _ in range(50)]
    assert all(decision.unknown and not decision.failed for decision in decisions)
    assert {decision.performed for decision in decisions} == {True, False}


def test_trouble_ends():
    fault_plan = FaultPlan(7, Faults(bind_fails=1, watch_lost=1, until_seconds=10))
    assert fault_plan.decide(BIND, 9.9).failed
    assert fault_plan.decide(BIND, 10) == NO_FAULT
    assert not fault_plan.breaks_watch(10)
    assert fault_plan.over_since(10) == 10


def test_mixtures_follow_from_the_seed():
    mixtures = [random_faults(seed) for seed in range(20)]
    assert mixtures == [random_faults(seed) for seed in range(20)]
    assert len(set(map(repr, mixtures))) == 20


def test_a_copy_has_the_same_dice():
    fault_plan = FaultPlan(7, random_faults(7))
    copy = pickle.loads(pickle.dumps(fault_plan))
    assert [fault_plan.decide(BIND, 0) for _ in range(9)] == [
        copy.decide(BIND, 0) for _ in range(9)
    ]
