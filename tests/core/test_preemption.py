"""Eviction of victims, one request at a time. Numbers are rows of the specification."""

import pytest
from msgspec.structs import replace

from moorage.api.meta import Condition
from moorage.api.server_requests import (
    BindPod,
    DeletePod,
    EmitEvent,
    LookUpPod,
    PatchPodStatus,
    PodRef,
)
from moorage.core.effects import Failed, Unknown
from moorage.core.journal import Preempted
from moorage.framework.status import SUCCESS, wait
from moorage.plugins.default_preemption import DefaultPreemption
from moorage.plugins.node_resources_fit import NodeResourcesFit
from moorage.testing import make_node, make_pod

MARK = "default-scheduler: preempting to accommodate a higher priority pod"
GONE = Failed('pods "x" not found', missing=True)
HELD = "DefaultPreemption"
IN_LINE = ("active", "backoff")


def node(name="n1"):
    return make_node(name, allocatable={"cpu": "3", "pods": 10})


def low(name, cpu="1", node="n1", priority=0, **fields):
    pod = make_pod(name, requests={"cpu": cpu}, priority=priority, node=node, **fields)
    return replace(pod, status=replace(pod.status, start_time="2026-01-01T00:00:00Z"))


def high(name="high", cpu="3", priority=1000):
    return make_pod(name, requests={"cpu": cpu}, priority=priority)


@pytest.fixture
def run(machine):
    """A machine with one node that victims fill."""

    def start(*pods, plugins=(), nodes=("n1",), **fields):
        made = [node(name) for name in nodes]
        run = machine(NodeResourcesFit, DefaultPreemption, *plugins, nodes=made, **fields)
        run.add(*pods)
        return run

    return start


def leaving(pod):
    """A pod as observed while it is being deleted."""
    meta = replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:30Z")
    return replace(pod, metadata=meta)


def marked(requests):
    return [r.pod.name for r in requests if isinstance(r, PatchPodStatus) and _is_mark(r.condition)]


def _is_mark(condition):
    return condition is not None and condition.type == "DisruptionTarget"


def deleted(requests):
    return [r.pod.name for r in requests if isinstance(r, DeletePod)]


def preempted(requests):
    return [(r.pod.name, r.note) for r in requests if r_is_event(r, "Preempted")]


def r_is_event(request, reason):
    return isinstance(request, EmitEvent) and request.reason == reason


def gate(run, pod):
    return run.entry(pod).gating_plugin


def answer(run, kind, name, outcome=None):
    """Complete the request of a kind for the named pod."""
    of_name = [e for e in run.effects if e.request.pod.name == name]
    effect = next(e for e in of_name if isinstance(e.request, kind))
    run.effects.remove(effect)
    run.effects.insert(0, effect)
    return run.answer(kind, outcome)


# One victim -------------------------------------------------------------------------------------


def test_a_victim_is_patched_deleted_and_reported(run):
    victim, pod = low("victim", "3"), high()
    it = run(victim)
    asked = it.schedule(pod)
    assert next(r.condition for r in asked if isinstance(r, PatchPodStatus)) == Condition(
        type="DisruptionTarget", status="True", reason="PreemptionByScheduler", message=MARK
    )
    assert (marked(asked), deleted(asked)) == (["victim"], [])
    assert [r.nominated_node_name for r in asked if r_is_refusal(r)] == ["n1"]
    asked = answer(it, PatchPodStatus, "victim")
    assert deleted(asked) == ["victim"]
    asked = answer(it, DeletePod, "victim")
    assert asked == [
        EmitEvent(
            PodRef.of(victim),
            "Normal",
            "Preempted",
            "Preempting",
            f"Preempted by pod {pod.uid} on node n1",
            "default-scheduler",
        )
    ]
    (fact,) = it.facts(victim, Preempted)
    assert (fact.node, fact.by, fact.by_uid) == ("n1", pod.key, pod.uid)


def r_is_refusal(request):
    return (
        isinstance(request, PatchPodStatus)
        and request.condition is not None
        and request.condition.type == "PodScheduled"
    )


def test_the_pod_is_scheduled_when_its_victim_is_deleted(run):
    victim, pod = low("victim", "3"), high()
    it = run(victim)
    it.schedule(pod)
    answer(it, PatchPodStatus, "victim")
    answer(it, DeletePod, "victim")
    it.update(leaving(victim))
    assert it.where(pod) == "unschedulable"
    it.delete(victim)
    assert it.where(pod) in IN_LINE
    it.advance(20)
    assert [type(r) for r in it.schedule_one()] == [BindPod]


def test_44_a_victim_that_is_marked_is_only_deleted(run):
    mark = Condition(
        type="DisruptionTarget", status="True", reason="PreemptionByScheduler", message=MARK
    )
    victim = low("victim", "3")
    it = run(replace(victim, status=replace(victim.status, conditions=(mark,))))
    asked = it.schedule(high())
    assert (marked(asked), deleted(asked)) == ([], ["victim"])


@pytest.mark.parametrize("at", [PatchPodStatus, DeletePod])
def test_45_a_victim_that_is_not_found_counts_as_evicted(run, at):
    victim, pod = low("victim", "3"), high()
    it = run(victim)
    it.schedule(pod)
    if at is DeletePod:
        answer(it, PatchPodStatus, "victim")
    asked = answer(it, at, "victim", GONE)
    assert asked == []
    assert len(it.scheduler.preemptions) == 0
    assert it.where(pod) == "unschedulable"


@pytest.mark.parametrize("at", [PatchPodStatus, DeletePod])
@pytest.mark.parametrize("outcome", [Failed("no"), Unknown("connection reset")])
def test_46_the_eviction_of_a_victim_fails(run, at, outcome):
    victim, pod = low("victim", "3"), high()
    it = run(victim)
    it.schedule(pod)
    if at is DeletePod:
        answer(it, PatchPodStatus, "victim")
    answer(it, at, "victim", outcome)
    assert it.where(pod) == "active"
    assert len(it.scheduler.preemptions) == 0
    it.advance(20)
    again = it.schedule_one()
    # It is retried from the start, with the current state.
    assert marked(again) == ["victim"]


def test_47_a_victim_that_is_already_terminating(run):
    victim, pod = leaving(low("victim", "3")), high()
    it = run(victim)
    asked = it.schedule(pod)
    assert (marked(asked), deleted(asked)) == ([], [])
    assert it.scheduler.nominator.node_of(pod.uid) == "n1"
    assert len(it.scheduler.preemptions) == 0
    it.delete(victim)
    assert it.where(pod) in IN_LINE


def test_a_victim_is_deleted_by_another_client_first(run):
    victim = low("victim", "3")
    it = run(victim)
    it.schedule(high())
    it.update(leaving(victim))
    asked = answer(it, PatchPodStatus, "victim")
    assert deleted(asked) == []
    assert len(it.scheduler.preemptions) == 0


# Outdated lists ---------------------------------------------------------------------------------


def hidden(pod):
    """A pod that a list lacks, which shows no version of it."""
    return replace(pod, metadata=replace(pod.metadata, resource_version=""))


def test_a_pod_that_was_hidden_meanwhile_is_tried_again(run):
    victim, pod = low("victim", "3"), high()
    it = run(victim)
    it.schedule(pod)
    answer(it, PatchPodStatus, "victim")
    answer(it, DeletePod, "victim")
    it.delete(hidden(pod))
    it.add(pod)
    assert (it.where(pod), gate(it, pod)) == ("gated", HELD)
    it.delete(victim)  # No plugin rejected this entry, so none has a hint.
    assert it.where(pod) == "active"


@pytest.mark.parametrize("at", [PatchPodStatus, DeletePod])
def test_a_victim_that_was_hidden_meanwhile_is_not_evicted_again(run, at):
    victim = low("victim", "3")
    it = run(victim)
    it.schedule(high())
    if at is DeletePod:
        answer(it, PatchPodStatus, "victim")
    it.delete(hidden(victim))
    it.add(victim)
    answer(it, at, "victim")
    if at is PatchPodStatus:
        answer(it, DeletePod, "victim")
    asked = it.schedule(high("second", priority=2000))
    assert (marked(asked), deleted(asked)) == ([], [])
    it.update(leaving(victim))
    assert len(it.scheduler.preemptions) == 0


# Several victims --------------------------------------------------------------------------------

THREE = ("a", "b", "c")


def three(run):
    it = run(*(low(name) for name in THREE))
    asked = it.schedule(high())
    assert marked(asked) == ["a", "b"]
    return it


@pytest.mark.parametrize("failing", ["a", "b"])
def test_48_the_last_victim_is_not_evicted_if_another_eviction_fails(run, failing):
    it = three(run)
    for name in ("a", "b"):
        answer(it, PatchPodStatus, name)
    asked = []
    for name in ("a", "b"):
        asked += answer(it, DeletePod, name, Failed("no") if name == failing else None)
    assert marked(asked) == []
    assert it.where(high()) == "active"


def test_49_the_eviction_of_the_last_victim_fails(run):
    it = three(run)
    for name in ("a", "b"):
        answer(it, PatchPodStatus, name)
    asked = answer(it, DeletePod, "a") + answer(it, DeletePod, "b")
    assert marked(asked) == ["c"]
    answer(it, PatchPodStatus, "c")
    answer(it, DeletePod, "c", Failed("no"))
    assert it.where(high()) == "active"


def test_no_further_victim_is_evicted_for_a_pod_that_is_gone(run):
    it = three(run)
    it.delete(high())
    for name in ("a", "b"):
        answer(it, PatchPodStatus, name)
    asked = answer(it, DeletePod, "a") + answer(it, DeletePod, "b")
    assert marked(asked) == []
    for name in ("a", "b"):
        it.update(leaving(low(name)))
    assert len(it.scheduler.preemptions) == 0


def test_52_53_the_pod_is_gated_until_all_victims_are_observed_terminating(run):
    it, pod = three(run), high()
    for name in ("a", "b"):
        answer(it, PatchPodStatus, name)
        answer(it, DeletePod, name)
    it.delete(low("a"))
    assert (it.where(pod), gate(it, pod)) == ("gated", HELD)
    it.update(leaving(low("b")))
    answer(it, PatchPodStatus, "c")
    assert it.where(pod) == "gated"
    # The last one is observed terminating before the outcome has come.
    it.update(leaving(low("c")))
    it.delete(low("b"))
    assert it.where(pod) in IN_LINE
    answer(it, DeletePod, "c")
    assert len(it.scheduler.preemptions) == 0


def test_a_pod_is_active_at_the_end_if_all_victims_are_gone_before(run):
    # No deletion is still to come that requeues it.
    it, pod = three(run), high()
    for name in ("a", "b"):
        answer(it, PatchPodStatus, name)
    for name in ("a", "b", "c"):
        it.delete(low(name))
    answer(it, DeletePod, "a")
    assert it.where(pod) == "gated"
    answer(it, DeletePod, "b")
    assert it.where(pod) == "active"


def test_a_victim_of_two_pods_is_evicted_once(run):
    victim, other = low("victim", "2"), low("other", priority=5000)
    it = run(victim, other)
    first, second = high("first", "2"), high("second", "2", priority=2000)
    assert marked(it.schedule(first)) == ["victim"]
    assert marked(it.schedule(second)) == []
    answer(it, PatchPodStatus, "victim")
    asked = answer(it, DeletePod, "victim")
    assert preempted(asked) == [("victim", f"Preempted by pod {first.uid} on node n1")]
    # Nor is it evicted again before it is observed terminating.
    third = high("third", "2", priority=3000)
    asked = it.schedule(third)
    assert (marked(asked), deleted(asked)) == ([], [])
    it.delete(other)
    assert [gate(it, pod) for pod in (first, second, third)] == [HELD] * 3
    it.update(leaving(victim))
    assert len(it.scheduler.preemptions) == 0


# Victims being bound ----------------------------------------------------------------------------


class Gatekeeper:
    """Makes pods of low priority wait on permit."""

    name = "Gatekeeper"

    def permit(self, state, pod, node):
        return wait(60) if pod.priority == 0 else SUCCESS


def test_50_a_victim_that_waits_on_permit(run):
    victim, pod = low("victim", "3", node=None), high()
    it = run(plugins=[Gatekeeper])
    it.schedule(victim)
    asked = it.schedule(pod)
    assert (marked(asked), deleted(asked)) == ([], [])
    note = f"Preempted by pod {pod.uid} on node n1 (in kube-scheduler memory)."
    assert preempted(asked) == [("victim", note)]
    reasons = [r.condition.message for r in asked if r_is_refusal(r)]
    assert "waiting on permit for pod: preempted" in reasons
    assert it.cached(victim) is None
    assert it.where(victim) == "backoff"
    assert it.where(pod) in ("active", "backoff")


class Preparing:
    """Makes a request before pods of low priority are bound."""

    name = "Preparing"

    def pre_bind(self, state, pod, node):
        return (LookUpPod(PodRef.of(pod)),) if pod.priority == 0 else SUCCESS


def test_51_a_victim_in_pre_bind(run):
    victim, pod = low("victim", "3", node=None), high()
    it = run(plugins=[Preparing])
    it.schedule(victim)
    asked = it.schedule(pod)
    assert (marked(asked), deleted(asked)) == ([], [])
    assert [name for name, _ in preempted(asked)] == ["victim"]
    assert it.cached(victim) == "n1?"
    asked = it.answer(LookUpPod)
    assert [r.condition.message for r in asked if r_is_refusal(r)] == [
        "preempted by DefaultPreemption"
    ]
    assert it.cached(victim) is None


def test_a_victim_that_is_being_bound_is_deleted(run):
    victim = low("victim", "3", node=None)
    it = run()
    it.schedule(victim)
    assert marked(it.schedule(high())) == ["victim"]


# Other nominations ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("priority", "nominated", "cleared"),
    [
        pytest.param(10, "n1", ["other"], id="54: a lesser pod has to look elsewhere"),
        pytest.param(1000, "n1", [], id="54: an equal keeps it"),
        pytest.param(10, "", [], id="54: nothing to take back"),
    ],
)
def test_54_nominations_of_pods_of_lower_priority(run, priority, nominated, cleared):
    other = make_pod("other", requests={"cpu": "0"}, priority=priority, gates=["g"])
    other = replace(other, status=replace(other.status, nominated_node_name=nominated))
    it = run(low("victim", "3"))
    it.add(other)
    it.scheduler.nominator.follow(other)
    asked = it.schedule(high())
    patches = [r for r in asked if isinstance(r, PatchPodStatus) and r.pod.name == "other"]
    assert [r.pod.name for r in patches if r.nominated_node_name == ""] == cleared


def with_nominated(run, victim, pod):
    """A pod is preempting on a node that is nominated to another one."""
    other = make_pod("other", requests={"cpu": "0"}, priority=10, gates=["g"])
    other = replace(other, status=replace(other.status, nominated_node_name="n1"))
    it = run(victim)
    it.add(other)
    it.scheduler.nominator.follow(other)
    it.schedule(pod)
    return it


def test_54_a_preemption_ends_when_the_nominations_are_cleared(run):
    victim, pod = low("victim", "3"), high()
    it = with_nominated(run, victim, pod)
    answer(it, PatchPodStatus, "victim")
    answer(it, DeletePod, "victim")
    it.delete(victim)
    assert len(it.scheduler.preemptions) == 1
    answer(it, PatchPodStatus, "other")
    assert len(it.scheduler.preemptions) == 0


def test_54_a_nomination_that_cannot_be_cleared(run):
    victim, pod = low("victim", "3"), high()
    it = with_nominated(run, victim, pod)
    answer(it, PatchPodStatus, "other", Failed("no"))
    # The victim is evicted anyway; then the pod is retried.
    answer(it, PatchPodStatus, "victim")
    answer(it, DeletePod, "victim")
    it.update(leaving(victim))
    assert it.where(pod) == "active"


# A deleted node ---------------------------------------------------------------------------------


def test_the_nominated_node_is_deleted(run):
    victim, pod = low("victim", "3"), high()
    it = run(victim, low("other", "3", node="n2"), nodes=("n1",))
    it.schedule(pod)
    answer(it, PatchPodStatus, "victim")
    answer(it, DeletePod, "victim")
    it.update(leaving(victim))
    it.delete(node("n1"))
    it.add(node("n2"))
    it.delete(victim)
    it.advance(20)
    asked = it.schedule_one()
    assert marked(asked) == ["other"]
    assert it.scheduler.nominator.node_of(pod.uid) == "n2"


# A nomination that the status does not show -------------------------------------------------------


def test_a_nomination_missing_from_the_status_still_counts(run):
    victim, pod = low("victim", "3"), high()
    it = run(victim, low("other", "3", node="n2", priority=5), nodes=("n1", "n2"))
    it.schedule(pod)
    answer(it, PatchPodStatus, "high", Failed("no"))
    answer(it, PatchPodStatus, "victim")
    answer(it, DeletePod, "victim")
    mark = Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    gone = leaving(replace(victim, status=replace(victim.status, conditions=(mark,))))
    it.update(gone)
    it.add(make_node("n3", allocatable={"cpu": "3", "pods": 0}))
    it.scheduler.queue.activate([pod], it.now)
    asked = it.schedule_one()
    assert marked(asked) == []
    assert it.scheduler.nominator.node_of(pod.uid) == "n1"
