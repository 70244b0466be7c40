"""A pre_bind plugin with several rounds: more requests, then a wait for objects."""

from tests.storage_builders import make_waiting_claim

from moorage import plugin as mp
from moorage.api.server_requests import BindPod, PatchClaim
from moorage.core.observations import Listed
from moorage.testing import make_pod

POD = make_pod("p")
CLAIM = make_waiting_claim()
KEY = (mp.PersistentVolumeClaim, CLAIM.key)
TURN = mp.StateKey[int]("Patient.turn")


class Patient:
    """Writes a claim, writes it again, then waits until it is bound or ten seconds are over."""

    name = "Patient"

    def pre_bind(self, state, pod, node):
        state[TURN] = 1
        return mp.PatchClaim.to(pod, CLAIM)

    def pre_bind_next(self, state, pod, node):
        state[TURN] += 1
        if state[TURN] == 2:
            return (mp.PatchClaim.to(pod, CLAIM),)
        claim = state.cluster.get(*KEY)
        if claim is not None and claim.spec.volume_name:
            return mp.SUCCESS
        if state.now >= 10.0:
            raise mp.PluginFailure("timed out")
        return mp.Awaiting(seconds=10.0 - state.now, objects=(KEY,))


class Impatient(Patient):
    """Returns wait, but has no method to check again."""

    name = "Impatient"
    pre_bind_next = None

    def pre_bind(self, state, pod, node):
        return mp.Awaiting(seconds=1.0)


def waiting(machine):
    run = machine(Patient, nodes=["n1"])
    run.add(CLAIM)
    run.schedule(POD)
    run.answer(PatchClaim)
    run.answer(PatchClaim)
    return run


def bound(claim=CLAIM):
    return make_waiting_claim(claim.name, version="2", volume_name="pv")


def test_requests_follow_one_another(machine):
    run = machine(Patient, nodes=["n1"])
    run.schedule(POD)
    assert [type(effect.request) for effect in run.effects].count(PatchClaim) == 1
    assert [type(request) for request in run.answer(PatchClaim)] == [PatchClaim]
    assert run.answer(PatchClaim) == []
    assert run.cached(POD) == "n1?"


def test_the_awaited_change_lets_it_go_on(machine):
    run = waiting(machine)
    assert run.update(make_waiting_claim("other", version="2", volume_name="pv")) == []
    assert run.update(make_waiting_claim(version="2")) == []
    asked = run.update(make_waiting_claim(version="3", volume_name="pv"))
    assert [type(request) for request in asked] == [BindPod]
    assert run.scheduler.deadline is None


def test_a_list_ends_the_wait_too(machine):
    run = waiting(machine)
    listed = Listed(mp.PersistentVolumeClaim, (bound(),))
    asked = run._collect(run.scheduler.observe(listed, run.now))
    assert [type(request) for request in asked] == [BindPod]


def test_time_is_up(machine):
    run = waiting(machine)
    assert run.scheduler.deadline == 10.0
    run.advance(9.9)
    assert run.cached(POD) == "n1?"
    run.advance(0.1)
    assert (run.cached(POD), run.where(POD)) == (None, "backoff")
    text = 'running PreBind plugin "Patient": timed out'
    assert run.facts(POD)[-1].message == text


def test_a_request_that_fails(machine):
    run = machine(Patient, nodes=["n1"])
    run.schedule(POD)
    run.answer(PatchClaim)
    run.fail(PatchClaim, "conflict")
    assert (run.cached(POD), run.where(POD)) == (None, "backoff")


def test_a_pod_that_is_deleted_meanwhile(machine):
    run = waiting(machine)
    run.delete(POD)
    assert (run.cached(POD), run.where(POD), run.scheduler.deadline) == (None, None, None)
    assert run.update(bound()) == []


def test_a_pod_whose_place_another_takes(machine):
    run = waiting(machine)
    assert run.scheduler.bindings.preempt(POD, "DefaultPreemption")
    run.advance()
    assert (run.cached(POD), run.scheduler.deadline is None) == (None, False)
    assert run.where(POD) == "backoff"
    assert run.facts(POD)[-1].message == "preempted by DefaultPreemption"


def test_a_plugin_without_a_check_method_cannot_wait(machine):
    run = machine(Impatient, nodes=["n1"])
    run.schedule(POD)
    assert run.cached(POD) is None
    assert "which is not a Status" in run.facts(POD)[-1].message
