import pickle

import pytest

from moorage.api.meta import NodeName
from moorage.framework.effects import (
    BindPod,
    DeletePod,
    EmitEvent,
    LookUpPod,
    PatchPodStatus,
    PodRef,
)
from moorage.sim.faults import GOOD, Faults, Trouble

REF = PodRef("default", "web", "u")
BIND = BindPod(REF, NodeName("n1"))


def test_no_faults_no_trouble():
    trouble = Trouble(7, Faults.none())
    assert trouble.fate(BIND, 0) == GOOD
    assert not trouble.is_possible
    assert trouble.restarts() == []


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
def test_what_fails_is_not_carried_out(faults, request_):
    fate = Trouble(7, faults).fate(request_, 0)
    assert fate.failed
    assert not fate.carried_out


def test_unknown_may_have_happened_or_not():
    trouble = Trouble(7, Faults(bind_unknown=1))
    fates = [trouble.fate(BIND, 0) for _ in range(50)]
    assert all(fate.unknown and not fate.failed for fate in fates)
    assert {fate.carried_out for fate in fates} == {True, False}


def test_trouble_ends():
    trouble = Trouble(7, Faults(bind_fails=1, watch_lost=1, until_seconds=10))
    assert trouble.fate(BIND, 9.9).failed
    assert trouble.fate(BIND, 10) == GOOD
    assert not trouble.loses_watch(10)
    assert trouble.over_since(10) == 10


def test_mixtures_follow_from_the_seed():
    mixtures = [Faults.some(seed) for seed in range(20)]
    assert mixtures == [Faults.some(seed) for seed in range(20)]
    assert len(set(map(repr, mixtures))) == 20


def test_a_copy_has_the_same_dice():
    trouble = Trouble(7, Faults.some(7))
    copy = pickle.loads(pickle.dumps(trouble))
    assert [trouble.fate(BIND, 0) for _ in range(9)] == [copy.fate(BIND, 0) for _ in range(9)]
