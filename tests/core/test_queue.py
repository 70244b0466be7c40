"""The queue's operations; the numbers are rows of the specification."""

import pickle

import pytest
from msgspec.structs import replace

from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod, PodSchedulingGate, PodSpec, PodStatus
from moorage.core import updates
from moorage.core.in_flight import InFlightEvent
from moorage.core.journal import Journal, Popped, Queued
from moorage.core.nominator import Nominator
from moorage.core.queue import SchedulingQueue
from moorage.errors import InvariantError
from moorage.framework.events import ClusterEvent, Hint, TargetedHint
from moorage.framework.status import unschedulable

X = ClusterEvent.NODE_ADD
Y = ClusterEvent.UPDATE_NODE_LABEL


class Says:
    """A hint function that returns one hint and counts its calls."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = 0

    def __call__(self, pod, old, new):
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Profile:
    """The part of a profile that the queue uses: hints, and pre_enqueue results by pod name."""

    def __init__(self, registered):
        self.events = registered
        self.holds = {}

    def run_pre_enqueue(self, pod):
        if pod.spec.scheduling_gates:
            return unschedulable("waiting for scheduling gates").by("SchedulingGates")
        plugin = self.holds.get(pod.name)
        return None if plugin is None else unschedulable("held").by(plugin)

    def queue_path_methods(self):
        return []

    def queue_key(self, pod, queued_at):
        return -pod.priority, queued_at


class Rig:
    """A queue with one profile, and shorthands for its operations."""

    def __init__(self, registered, **options):
        self.profile = Profile(registered)
        self.journal = Journal()
        self.queue = SchedulingQueue(
            {"default-scheduler": self.profile}, journal=self.journal, **options
        )

    def fly(self, pod, now=0.0):
        self.queue.add(pod, now)
        entry = self.queue.pop(now)
        assert entry.pod is pod
        return entry

    def rest(self, pod, now=0.0, *plugins, pending=()):
        """Reject a pod once, so that it is unschedulable."""
        entry = self.fly(pod, now)
        entry.rejected_by(plugins, pending)
        self.queue.return_unschedulable(entry, now)
        assert self.queue.where(pod.key) == "unschedulable"
        return entry

    def where(self, pod):
        self.queue.check()
        return self.queue.where(pod.key)


def make_pod(name="p1", *, priority=0, uid=None, labels=None, gates=(), nominated="", version=""):
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="ns",
            uid=uid or f"uid-{name}",
            labels=labels or {},
            resource_version=version,
        ),
        spec=PodSpec(
            priority=priority,
            scheduling_gates=tuple(PodSchedulingGate(name=gate) for gate in gates),
        ),
        status=PodStatus(nominated_node_name=nominated),
    )


def rig(hint=Hint.QUEUE, **options):
    """A rig whose plugin A registered X and returns `hint`, and B registered Y."""
    return Rig({"A": {X: Says(hint)}, "B": {Y: None}}, **options)


# Cluster events while a pod is in flight.


@pytest.mark.parametrize(
    ("event", "plugins", "state"),
    [
        pytest.param(X, ["A"], "backoff", id="1: a change that its rejector wants"),
        pytest.param(X, ["B"], "unschedulable", id="a change that only another wants"),
        pytest.param(
            ClusterEvent.NODE_DELETE, ["A"], "unschedulable", id="2: an unregistered event"
        ),
    ],
)
def test_a_change_while_in_flight(event, plugins, state):
    r, pod = rig(), make_pod()
    entry = r.fly(pod)
    r.queue.move_all(event, None, None, 0.1)
    entry.rejected_by(plugins)
    assert r.queue.return_unschedulable(entry, 0.2)
    assert r.where(pod) == state
    assert r.queue.timeline() == []


def test_1_a_change_while_in_flight_without_back_off():
    r, pod = rig(max_backoff_seconds=0), make_pod()
    entry = r.fly(pod)
    r.queue.move_all(X, None, None, 0.1)
    entry.rejected_by(["A"])
    r.queue.return_unschedulable(entry, 0.2)
    assert r.where(pod) == "active"


def test_2_a_change_before_the_pop_is_ignored():
    r, pod = rig(), make_pod()
    r.queue.add(pod, 0.0)
    r.queue.move_all(X, None, None, 0.1)
    entry = r.queue.pop(0.2)
    entry.rejected_by(["A"])
    r.queue.return_unschedulable(entry, 0.3)
    assert r.where(pod) == "unschedulable"


def test_2_an_unregistered_event_is_not_recorded():
    r = rig()
    entry = r.fly(make_pod())
    r.queue.move_all(ClusterEvent.NODE_DELETE, None, None, 0.1)
    assert r.queue.timeline() == [entry]


@pytest.mark.parametrize(
    ("pods", "asked", "states"),
    [
        pytest.param(("ns/p2", "ns/other"), 1, ["unschedulable", "backoff"], id="one pod"),
        pytest.param((), 0, ["unschedulable", "unschedulable"], id="no pod"),
        pytest.param(None, 2, ["backoff", "backoff"], id="any pod"),
    ],
)
def test_a_targeted_hint_is_asked_about_its_pods_only(pods, asked, states):
    says = Says(Hint.QUEUE)
    r = Rig({"A": {X: TargetedHint(says, lambda old, new: pods)}, "B": {Y: None}})
    waiting = [make_pod("p1"), make_pod("p2")]
    for pod in waiting:
        r.rest(pod, 0.0, "A")
    other = make_pod("other")
    r.rest(other, 0.0, "B")
    r.queue.move_all(X, None, None, 0.1)
    assert says.asked == asked
    assert [r.where(pod) for pod in waiting] == states
    assert r.where(other) == "unschedulable"


def test_a_targeted_hint_finds_pods_by_their_aliases():
    hint = TargetedHint(
        Says(Hint.QUEUE), lambda old, new: (f"claim {new}",), lambda pod: (f"claim {pod.name[0]}",)
    )
    r = Rig({"A": {X: hint}})
    named, again, other = make_pod("a1"), make_pod("a2"), make_pod("b1")
    for pod in (named, again, other):
        r.rest(pod, 0.0, "A")
    r.queue.delete(again)
    r.queue.move_all(X, None, "a", 0.1)
    assert r.where(named) == "backoff"
    assert r.where(other) == "unschedulable"
    r.queue.move_all(X, None, "b", 0.2)
    assert r.where(other) == "backoff"


def failing(*_):
    raise ValueError("no")


@pytest.mark.parametrize(
    "hint",
    [
        pytest.param(TargetedHint(Says(Hint.QUEUE), failing), id="pods"),
        pytest.param(TargetedHint(Says(Hint.QUEUE), lambda old, new: None, failing), id="aliases"),
    ],
)
def test_a_targeted_hint_that_fails_to_name_pods_keeps_none_waiting(hint):
    r = Rig({"A": {X: hint}})
    pod = make_pod()
    r.rest(pod, 0.0, "A")
    r.queue.move_all(X, None, None, 0.1)
    assert r.where(pod) == "backoff"
    assert "ValueError('no')" in r.queue.hint_errors[-1]


def test_a_targeted_hint_does_not_limit_others():
    r = Rig({"A": {X: TargetedHint(Says(Hint.QUEUE), lambda old, new: ())}, "B": {X: None}})
    pod = make_pod()
    r.rest(pod, 0.0, "B")
    r.queue.move_all(X, None, None, 0.1)
    assert r.where(pod) == "backoff"


def test_5_an_error_leads_to_the_error_backoff():
    r, pod = rig(), make_pod()
    entry = r.fly(pod)
    entry.rejected_by()
    r.queue.return_unschedulable(entry, 0.0)
    assert r.where(pod) == "backoff"
    assert entry.consecutive_errors == 1
    assert not r.queue.has_work
    assert r.queue.pop(0.5) is None


def test_a_rejection_resets_the_error_count():
    r, pod = rig(), make_pod()
    entry = r.fly(pod)
    r.queue.return_unschedulable(entry, 0.0)
    r.queue.advance(2.0)
    entry = r.queue.pop(2.0)
    entry.rejected_by(["A"])
    r.queue.return_unschedulable(entry, 2.0)
    assert (entry.consecutive_errors, entry.unschedulable_count, entry.attempts) == (0, 1, 2)


def test_a_pod_that_was_done_returns_after_its_backoff():
    r, pod = rig(), make_pod()
    entry = r.fly(pod)
    r.queue.done(pod.uid)
    entry.rejected_by(["A"])
    assert r.queue.return_unschedulable(entry, 0.0)
    assert r.where(pod) == "backoff"


@pytest.mark.parametrize("version", ["", "2"], ids=["the same pod", "a newer version"])
def test_a_pod_that_is_queued_already_is_left_alone(version):
    r, pod = rig(), make_pod()
    entry = r.fly(pod)
    r.queue.done(pod.uid)
    r.queue.update(pod, make_pod(version=version), 1.0)
    assert not r.queue.return_unschedulable(entry, 2.0)
    assert r.where(pod) == "active"
    assert r.queue.pop(3.0).attempts == 1


# Cluster events for unschedulable pods.


@pytest.mark.parametrize(
    ("a", "b", "state"),
    [
        pytest.param(Hint.QUEUE, Hint.QUEUE_SKIP, "active", id="6: what it waits for happened"),
        pytest.param(Hint.QUEUE_SKIP, Hint.QUEUE, "backoff", id="6: only a refusal is cured"),
        pytest.param(Hint.QUEUE, Hint.QUEUE, "active", id="6: both, and the wait counts"),
        pytest.param(Hint.QUEUE_SKIP, Hint.QUEUE_SKIP, "unschedulable", id="6: neither"),
    ],
)
def test_pending_plugins(a, b, state):
    # B is called first, so that its result has to wait for A's.
    r = Rig({"B": {X: Says(b)}, "C": {Y: None}, "A": {X: Says(a)}})
    pod = make_pod()
    r.rest(pod, 0.0, "B", "C", pending=["A"])
    r.queue.move_all(X, None, None, 0.1)
    assert r.where(pod) == state


def test_6_pending_plugins_count_in_flight_too():
    r, pod = rig(), make_pod()
    entry = r.fly(pod)
    r.queue.move_all(Y, None, None, 0.1)
    r.queue.move_all(X, None, None, 0.1)
    entry.rejected_by(["B"], ["A"])
    r.queue.return_unschedulable(entry, 0.2)
    assert r.where(pod) == "active"


def test_7_a_hint_that_raises_counts_as_queue():
    r, pod = rig(ValueError("no such label")), make_pod()
    r.rest(pod, 0.0, "A")
    r.queue.move_all(X, None, None, 0.1)
    assert r.where(pod) == "backoff"
    [error] = r.queue.hint_errors
    assert error == "A: hint for NodeAdd on ns/p1: ValueError('no such label')"


@pytest.mark.parametrize(
    ("event", "target", "state"),
    [
        pytest.param(updates.FORCE_ACTIVATE, make_pod("p2"), "unschedulable", id="8: for another"),
        pytest.param(updates.FORCE_ACTIVATE, make_pod("p1"), "backoff", id="8: for this pod"),
        pytest.param(updates.UNSCHEDULABLE_TIMEOUT, None, "backoff", id="8: for all"),
    ],
)
def test_wildcard_events_call_no_hints(event, target, state):
    says = Says(Hint.QUEUE)
    r, pod = Rig({"A": {X: says, Y: says}}), make_pod("p1")
    r.rest(pod, 0.0, "A")
    r.queue.move_all(event, None, target, 0.1)
    assert r.where(pod) == state
    assert says.asked == 0


@pytest.mark.parametrize(
    ("event", "asked", "state", "runs"),
    [
        pytest.param(Y, 0, "gated", 0, id="9: not registered by the gating plugin"),
        pytest.param(X, 1, "active", 1, id="9: registered"),
    ],
)
def test_gated_pods(event, asked, state, runs):
    says = Says(Hint.QUEUE)
    r, pod = Rig({"Gate": {X: says}, "Other": {Y: None}}), make_pod()
    r.profile.holds = {"p1": "Gate"}
    r.queue.add(pod, 0.0)
    assert r.where(pod) == "gated"
    # Another plugin rejected it before; while the pod is gated, its hint is not called.
    r.queue.dump()["gated"][0].unschedulable_plugins.add("Other")
    r.profile.holds = {}
    r.queue.move_all(event, None, None, 0.1)
    assert (says.asked, r.where(pod)) == (asked, state)
    assert len(list(r.journal)) == 1 + runs


def test_a_pod_stays_gated_while_pre_enqueue_rejects_it():
    r, pod = Rig({"Gate": {X: None}}), make_pod()
    r.profile.holds = {"p1": "Gate"}
    r.queue.add(pod, 0.0)
    r.queue.move_all(X, None, None, 1.0)
    assert r.where(pod) == "gated"


@pytest.mark.parametrize(
    ("holds", "state"),
    [
        pytest.param({}, "active", id="10: the gate opened"),
        pytest.param({"p1": "Gate"}, "gated", id="10: the gate still holds"),
    ],
)
def test_a_gated_pod_is_flushed(holds, state):
    r, pod = Rig({"Gate": {}}), make_pod()
    r.profile.holds = {"p1": "Gate"}
    r.queue.add(pod, 0.0)
    r.profile.holds = holds
    r.queue.flush_unschedulable(301.0, 301.0)
    assert r.where(pod) == state
    [entry] = r.queue.dump()[state]
    assert entry.was_flushed is (state == "active")
    assert entry.flushed_at == 301.0


def test_10_a_gated_pod_in_its_backoff_period_is_flushed_into_backoff():
    r = Rig({"Gate": {}, "A": {}}, initial_backoff_seconds=600, max_backoff_seconds=600)
    pod = make_pod()
    r.rest(pod, 0.0, "A")
    r.profile.holds = {"p1": "Gate"}
    r.queue.activate([pod], 1.0)
    assert r.where(pod) == "gated"
    r.profile.holds = {}
    r.queue.flush_unschedulable(301.0, 301.0)
    assert r.where(pod) == "backoff"


def test_11_a_flushed_gated_pod_is_gated_again():
    r, pod = Rig({"Gate": {}}), make_pod()
    r.profile.holds = {"p1": "Gate"}
    r.queue.add(pod, 0.0)
    entry = r.queue.dump()["gated"][0]
    for now, flushed_at in [(301.0, 301.0), (541.0, 301.0), (602.0, 602.0)]:
        r.queue.flush_unschedulable(now, now)
        assert entry.flushed_at == flushed_at


@pytest.mark.parametrize(
    ("now", "state"),
    [
        pytest.param(300.0, "unschedulable", id="exactly five minutes is not longer"),
        pytest.param(329.9, "unschedulable", id="not on the grid yet"),
        pytest.param(330.0, "active", id="the next tick"),
    ],
)
def test_old_unschedulable_pods_are_flushed_at_fixed_intervals(now, state):
    r, pod = rig(), make_pod()
    r.rest(pod, 0.0, "A")
    assert r.queue.deadline(1.0) == 330.0
    r.queue.advance(now)
    assert r.where(pod) == state


def test_a_flush_without_pods_is_no_event():
    r = rig()
    entry = r.fly(make_pod())
    r.queue.advance(330.0)
    r.queue.flush_unschedulable(331.0, 331.0)
    assert r.queue.timeline() == [entry]


def test_a_failure_clears_the_record_of_a_flush():
    r, pod = rig(), make_pod()
    r.rest(pod, 0.0, "A")
    r.queue.advance(330.0)
    entry = r.queue.pop(331.0)
    assert (entry.was_flushed, entry.flushed_at) == (True, 330.0)
    r.queue.return_unschedulable(entry, 332.0)
    assert (entry.was_flushed, entry.flushed_at) == (False, None)
    assert entry.first_tried_at == 0.0


def test_a_flush_is_an_event_for_pods_in_flight():
    r, resting, flying = rig(), make_pod("p1"), make_pod("p2")
    r.rest(resting, 0.0, "A")
    entry = r.fly(flying, 300.0)
    r.queue.advance(330.0)
    entry.rejected_by(["A"])
    r.queue.return_unschedulable(entry, 331.0)
    assert r.where(flying) == "backoff"


def test_an_unregistered_event_visits_no_pod():
    r, pod = rig(), make_pod()
    r.rest(pod, 0.0, "A")
    seen = []
    r.queue.move_all(Y, None, None, 1.0, only=seen.append)
    r.queue.move_all(ClusterEvent.NODE_DELETE, None, None, 1.0, only=seen.append)
    assert seen == []


def test_pods_without_a_profile_are_requeued_by_any_event():
    r = rig()
    pod = Pod(metadata=ObjectMeta(name="p", uid="u"), spec=PodSpec(scheduler_name="other"))
    r.rest(pod, 0.0, "Unknown")
    r.queue.move_all(Y, None, None, 1.0)
    assert r.where(pod) == "backoff"


def test_pods_of_one_move_leave_in_the_order_in_which_they_came():
    r = Rig({"A": {X: None}, "B": {X: None}}, max_backoff_seconds=0)
    for name, plugin in [("p3", "B"), ("p1", "A"), ("p2", "B")]:
        r.rest(make_pod(name), 0.0, plugin)
    r.queue.move_all(X, None, None, 1.0)
    assert [r.queue.pop(1.0).pod.name for _ in range(3)] == ["p3", "p1", "p2"]


def test_pods_that_stay_unschedulable_keep_their_order():
    r = rig(max_backoff_seconds=0)
    first, second = make_pod("p1"), make_pod("p2")
    r.rest(first, 0.0, "A")
    r.rest(second, 0.0, "A")
    r.queue.update(first, make_pod("p1", version="2"), 0.5)
    r.queue.move_all(X, None, None, 1.0)
    assert [r.queue.pop(1.0).pod.name for _ in range(2)] == ["p1", "p2"]


# Popping.


def test_pods_are_popped_by_priority_then_age():
    r = rig()
    for name, priority, at in [("old", 0, 1.0), ("young", 0, 2.0), ("high", 5, 3.0)]:
        r.queue.add(make_pod(name, priority=priority), at)
    assert [r.queue.pop(4.0).pod.name for _ in range(3)] == ["high", "old", "young"]
    assert r.queue.pop(4.0) is None


def test_17_rejected_pods_are_popped_before_their_backoff_ends_failed_ones_are_not():
    r = rig()
    failed = r.fly(make_pod("failed", priority=9))
    r.queue.return_unschedulable(failed, 0.0)
    refused = r.fly(make_pod("refused", priority=9))
    r.queue.move_all(X, None, None, 0.0)
    refused.rejected_by(["A"])
    r.queue.return_unschedulable(refused, 0.0)
    r.queue.add(make_pod("medium", priority=5), 0.0)
    assert r.queue.counts() == {
        "active": 1,
        "backoff": 2,
        "unschedulable": 0,
        "gated": 0,
        "in_flight": 0,
    }
    assert [r.queue.pop(0.1).pod.name for _ in range(2)] == ["medium", "refused"]
    assert r.queue.pop(0.1) is None
    assert not r.queue.has_work


@pytest.mark.parametrize("leave", ["flush", "activate"])
def test_18_pre_enqueue_does_not_run_when_a_pod_leaves_backoff(leave):
    r, pod = rig(), make_pod()
    entry = r.fly(pod)
    r.queue.return_unschedulable(entry, 0.0)
    r.profile.holds = {"p1": "Gate"}
    if leave == "flush":
        r.queue.advance(2.0)
    else:
        r.queue.activate([pod], 0.5)
    assert r.where(pod) == "active"


def test_18_pre_enqueue_runs_when_a_pod_leaves_unschedulable():
    r, pod = rig(), make_pod()
    r.rest(pod, 0.0, "A")
    r.profile.holds = {"p1": "Gate"}
    r.queue.activate([pod], 0.5)
    assert r.where(pod) == "gated"
    assert r.journal.last(Queued, pod.uid).queue == "gated"


def test_activating_an_unschedulable_pod_ignores_its_backoff():
    r, pod = rig(), make_pod()
    r.rest(pod, 0.0, "A")
    r.queue.activate([pod], 0.1)
    assert r.where(pod) == "active"


def test_activating_a_former_pod_of_that_name_does_nothing():
    r, pod = rig(), make_pod(uid="two")
    r.rest(pod, 0.0, "A")
    r.queue.activate([make_pod(uid="one")], 0.1)
    assert r.where(pod) == "unschedulable"


@pytest.mark.parametrize(
    ("prepare", "facts"),
    [
        pytest.param("fly", 3, id="19: in flight"),
        pytest.param(None, 0, id="19: unknown"),
        pytest.param("add", 1, id="19: active already"),
    ],
)
def test_activating_a_pod_that_does_not_wait(prepare, facts):
    r, pod = rig(), make_pod()
    if prepare is not None:
        getattr(r if prepare == "fly" else r.queue, prepare)(pod, 0.0)
    r.queue.activate([pod], 0.1)
    if prepare == "fly":
        [entry, missed] = r.queue.timeline()
        assert (missed.event, missed.new) == (updates.FORCE_ACTIVATE, pod)
        entry.rejected_by(["A"])
        r.queue.return_unschedulable(entry, 0.2)
        assert r.where(pod) == "backoff"
    assert len(r.journal) == facts


def test_24_a_pod_in_flight_is_not_queued_a_second_time():
    r, pod, other = rig(), make_pod("p1"), make_pod("p2")
    entry = r.fly(pod)
    r.queue.add(pod, 0.1)
    r.queue.add(other, 0.2)
    assert r.where(pod) == "in_flight"
    assert r.queue.pop(0.3).pod is other
    entry.rejected_by(["A"])
    r.queue.return_unschedulable(entry, 0.4)
    assert r.where(pod) == "backoff", "what came twice is tried again"


# Updates.


def test_20_an_update_in_flight_counts_as_a_cluster_event():
    r, pod = rig(), make_pod()
    r.fly(pod)
    r.queue.update(pod, make_pod(labels={"a": "b"}), 0.1)
    assert r.where(pod) == "in_flight"
    assert [type(item) for item in r.queue.timeline()[1:]] == [InFlightEvent]
    assert r.queue.timeline()[1].event.label == "UnschedulablePodUpdatePodLabel"


@pytest.mark.parametrize(
    ("hint", "now", "state"),
    [
        pytest.param(Hint.QUEUE_SKIP, 0.5, "unschedulable", id="21: it does not help"),
        pytest.param(Hint.QUEUE, 0.5, "backoff", id="21: it helps, but the pod backs off"),
        pytest.param(Hint.QUEUE, 2.0, "active", id="21: it helps, and the back-off is over"),
    ],
)
def test_an_update_of_an_unschedulable_pod(hint, now, state):
    r = Rig({"A": {ClusterEvent.UPDATE_POD_LABEL: Says(hint)}})
    pod, newer = make_pod(), make_pod(labels={"a": "b"})
    r.rest(pod, 0.0, "A")
    r.queue.update(pod, newer, now)
    assert r.where(pod) == state
    [entry] = r.queue.dump()[state]
    assert entry.pod is newer


def test_an_update_ends_with_the_first_change_that_helps():
    says = Says(Hint.QUEUE)
    r = Rig({"A": {ClusterEvent.UPDATE_POD_LABEL: says, ClusterEvent.POD_GATES_ELIMINATED: says}})
    pod, newer = make_pod(gates=("g",)), make_pod(labels={"a": "b"})
    r.queue.add(pod, 0.0)
    r.queue.dump()["gated"][0].pending_plugins.add("A")
    r.queue.update(pod, newer, 1.0)
    assert r.where(pod) == "active"
    assert (says.asked, len(r.journal)) == (1, 2)


def test_22_an_update_of_an_unknown_pod_adds_it():
    r, pod = rig(), make_pod(version="2")
    r.queue.update(make_pod(), pod, 0.0)
    assert r.where(pod) == "active"
    assert next(iter(r.journal)).event == "UnschedulablePodUpdate"


def test_23_scheduling_gates():
    eliminated = ClusterEvent.POD_GATES_ELIMINATED
    r = Rig({"SchedulingGates": {eliminated: Says(Hint.QUEUE)}})
    two, one, none = make_pod(gates=("a", "b")), make_pod(gates=("b",)), make_pod()
    r.queue.add(two, 0.0)
    r.queue.update(two, one, 1.0)
    assert r.where(one) == "gated"
    r.queue.update(one, none, 2.0)
    assert r.where(none) == "active"
    assert [(fact.queue, fact.event) for fact in r.journal] == [
        ("gated", "UnschedulablePodAdd"),
        ("active", "UnschedulablePodUpdatePodSchedulingGatesEliminated"),
    ]


def test_an_update_reorders_active_pods():
    r, low, other = rig(), make_pod("p1"), make_pod("p2")
    r.queue.add(other, 0.0)
    r.queue.add(low, 1.0)
    r.queue.update(low, make_pod("p1", priority=7), 2.0)
    r.queue.check()
    assert [r.queue.pop(3.0).pod.name for _ in range(2)] == ["p1", "p2"]


def test_an_update_reorders_pods_that_back_off():
    r = rig()
    for name in ("p1", "p2"):
        entry = r.fly(make_pod(name))
        r.queue.move_all(X, None, None, 0.0)
        entry.rejected_by(["A"])
        r.queue.return_unschedulable(entry, 0.0)
    r.queue.update(make_pod("p2"), make_pod("p2", priority=7), 0.1)
    assert [entry.pod.name for entry in r.queue.dump()["backoff"]] == ["p2", "p1"]


def test_an_update_of_a_pod_that_backs_off_leaves_it_there():
    r, pod = rig(), make_pod()
    r.queue.return_unschedulable(r.fly(pod), 0.0)
    newer = make_pod(priority=3)
    r.queue.update(pod, newer, 0.5)
    assert r.where(pod) == "backoff"
    assert r.queue.dump()["backoff"][0].pod is newer


# Identity.


@pytest.mark.parametrize("tell", ["add", "update"])
@pytest.mark.parametrize("start", ["active", "unschedulable", "gated"])
def test_a_pod_recreated_under_its_name_starts_afresh(start, tell):
    r, first, second = rig(), make_pod(uid="one"), make_pod(uid="two")
    if start == "unschedulable":
        r.rest(first, 0.0, "A")
    else:
        r.profile.holds = {"p1": "Gate"} if start == "gated" else {}
        r.queue.add(first, 0.0)
    assert r.where(first) == start
    r.profile.holds = {}
    r.queue.nominator.nominate(first, "n1")
    if tell == "add":
        r.queue.add(second, 5.0)
    else:
        r.queue.update(first, second, 5.0)
    assert r.where(second) == "active"
    assert r.queue.where("one") is None
    assert list(r.queue.nominator.by_node) == []
    assert r.queue.pop(6.0).queued_at == 5.0


def test_a_gated_pod_replaces_an_active_pod_of_the_same_name():
    r, first, second = rig(), make_pod(uid="one"), make_pod(uid="two", gates=("g",))
    r.queue.add(first, 0.0)
    r.queue.add(second, 1.0)
    assert r.queue.where("two") == "gated"
    assert r.queue.where("one") is None


def test_a_pod_is_queued_while_one_of_the_same_name_is_in_flight():
    r, first, second = rig(), make_pod(uid="one"), make_pod(uid="two")
    entry = r.fly(first)
    r.queue.delete(first)
    r.queue.add(second, 1.0)
    r.queue.check()
    assert (r.queue.where("one"), r.queue.where("two")) == ("in_flight", "active")
    assert not r.queue.return_unschedulable(entry, 2.0)
    assert (r.queue.where("one"), r.queue.where("two")) == (None, "active")


def test_the_end_of_an_earlier_attempt_is_ignored_during_a_later_one():
    r, pod = rig(), make_pod()
    former = r.fly(pod)
    r.queue.done(pod.uid)
    later = r.fly(pod, 1.0)
    r.queue.move_all(X, None, None, 1.5)
    assert not r.queue.return_unschedulable(former, 2.0)
    assert r.where(pod) == "in_flight"
    later.rejected_by(["A"])
    assert r.queue.return_unschedulable(later, 3.0)
    assert r.where(pod) == "backoff"


def test_a_second_added_event_does_not_gate_a_pod():
    r, pod = rig(), make_pod()
    r.queue.add(pod, 0.0)
    r.queue.add(make_pod(gates=("g",)), 1.0)
    assert r.where(pod) == "active"
    r.queue.add(pod, 2.0)
    assert r.where(pod) == "active"
    assert r.queue.counts()["active"] == 1


@pytest.mark.parametrize("name", ["ns/p1", "uid-p1"], ids=["by name", "by UID"])
def test_where(name):
    r, pod = rig(), make_pod()
    assert r.queue.where(name) is None
    entry = r.rest(pod, 0.0, "A")
    assert r.queue.where(name) == "unschedulable"
    r.queue.move_all(X, None, None, 0.1)
    assert r.queue.where(name) == "backoff"
    r.queue.activate([pod], 0.2)
    assert r.queue.where(name) == "active"
    r.queue.pop(0.3)
    assert r.queue.where(name) == "in_flight"
    r.queue.done(entry.uid)
    assert r.queue.where(name) is None


def test_a_late_deletion_of_another_pod_with_the_same_name_is_ignored():
    r, first, second = rig(), make_pod(uid="one"), make_pod(uid="two")
    r.queue.add(second, 0.0)
    r.queue.delete(first)
    assert r.where(second) == "active"


@pytest.mark.parametrize("state", ["active", "backoff", "unschedulable", "gated", "in_flight"])
def test_delete(state):
    r, pod = rig(), make_pod(nominated="n1")
    if state == "gated":
        r.profile.holds = {"p1": "Gate"}
        r.queue.add(pod, 0.0)
        r.queue.nominator.follow(pod)
    elif state == "unschedulable":
        r.rest(pod, 0.0, "A")
    elif state == "backoff":
        r.queue.return_unschedulable(r.fly(pod), 0.0)
    elif state == "active":
        r.queue.add(pod, 0.0)
    else:
        r.fly(pod)
    assert r.where(pod) == state
    assert list(r.queue.nominator.by_node) == ["n1"]
    r.queue.delete(pod)
    assert r.where(pod) == ("in_flight" if state == "in_flight" else None)
    assert list(r.queue.nominator.by_node) == []


# Nominations.


@pytest.mark.parametrize(
    ("priority", "state"),
    [
        pytest.param(1, "backoff", id="28: lower"),
        pytest.param(5, "backoff", id="28: equal"),
        pytest.param(9, "unschedulable", id="28: higher"),
    ],
)
def test_a_cleared_nomination_requeues_pods_of_no_higher_priority(priority, state):
    r = Rig({"A": {ClusterEvent.POD_DELETE: Says(Hint.QUEUE)}})
    middle, pod = make_pod("mid", priority=5), make_pod(priority=priority)
    r.rest(pod, 0.0, "A")
    flying = r.fly(make_pod("flying", priority=9))
    r.queue.move_all(updates.ASSIGNED_POD_DELETE, middle, None, 0.1, only=lambda p: p.priority <= 5)
    assert r.where(pod) == state
    flying.rejected_by(["A"])
    r.queue.return_unschedulable(flying, 0.2)
    assert r.where(flying.pod) == "backoff", "the restriction is not for those in flight"


def test_nominated_pods_are_seen_as_the_queue_has_them():
    r, pod = rig(), make_pod(priority=4, nominated="n1")
    r.queue.add(pod, 0.0)
    assert r.queue.nominated_pods("n1") == [pod]
    newer = make_pod(priority=4, nominated="n2", version="2")
    r.queue.update(pod, newer, 0.1)
    assert r.queue.nominated_pods("n1") == []
    assert r.queue.nominated_pods("n2") == [newer]
    r.queue.pop(0.2)
    [stub] = r.queue.nominated_pods("n2")
    assert (stub.key, stub.uid, stub.priority) == (pod.key, pod.uid, 0)


def test_29_updates_keep_a_nomination_that_is_not_written_yet():
    nominator = Nominator({"ns/p1": make_pod()})
    r, pod = rig(nominator=nominator), make_pod()
    r.rest(pod, 0.0, "A")
    nominator.nominate(pod, "n1")
    r.queue.update(pod, make_pod(version="2"), 0.5)
    assert nominator.node_of(pod.uid) == "n1"


# Time, facts and invariants.


def test_the_deadline_is_when_something_can_be_done():
    r = rig()
    assert r.queue.deadline(0.0) is None
    r.queue.add(make_pod("idle"), 0.0)
    assert r.queue.deadline(0.0) is None
    r.queue.pop(0.0)
    failed = r.fly(make_pod("failed"), 10.7)
    r.queue.return_unschedulable(failed, 10.7)
    assert r.queue.deadline(10.7) == 12.0
    assert r.queue.deadline(15.0) == 15.0
    r.queue.advance(11.999)
    assert r.queue.counts()["backoff"] == 1
    r.queue.advance(12.0)
    assert r.queue.counts()["active"] == 1
    assert r.queue.deadline(12.0) is None


def test_the_facts_of_a_pod():
    r, pod = rig(), make_pod()
    entry = r.fly(pod, 1.0)
    entry.rejected_by(["A"])
    r.queue.return_unschedulable(entry, 1.1)
    r.queue.move_all(X, None, None, 1.2)
    entry = r.queue.pop(1.3)
    r.queue.return_unschedulable(entry, 1.4)
    recorded = [
        (fact.queue, fact.event) if isinstance(fact, Queued) else fact.attempt
        for fact in r.journal.story(pod.uid)
    ]
    assert recorded == [
        ("active", "UnschedulablePodAdd"),
        1,
        ("unschedulable", "ScheduleAttemptFailure"),
        ("backoff", "NodeAdd"),
        ("active", "PopFromBackoffQ"),
        2,
        ("unschedulable", "ScheduleAttemptFailure"),
    ]
    assert isinstance(r.journal.last(Popped, pod.uid), Popped)
    assert entry.first_tried_at == 1.0


def test_the_labels_of_time_and_force():
    r, pod = rig(), make_pod()
    r.queue.return_unschedulable(r.fly(pod), 0.0)
    r.queue.advance(2.0)
    entry = r.queue.pop(2.0)
    entry.rejected_by(["A"])
    r.queue.return_unschedulable(entry, 2.0)
    r.queue.activate([pod], 3.0)
    entry = r.queue.pop(3.0)
    r.queue.return_unschedulable(entry, 3.0)
    r.queue.advance(360.0)
    labels = [fact.event for fact in r.journal if isinstance(fact, Queued)]
    assert labels[2::2] == ["BackoffComplete", "ForceActivate", "UnschedulableTimeout"]


def test_a_pickled_queue_continues_like_the_original():
    r = Rig({"A": {X: None}})
    for name in ("p1", "p2"):
        r.rest(make_pod(name), 0.0, "A")
    r.fly(make_pod("p3"))
    copy = pickle.loads(pickle.dumps(r.queue))
    for queue in (r.queue, copy):
        queue.move_all(X, None, None, 5.0)
        queue.check()
        assert queue.pop(5.0).pod.name == "p1"
        assert queue.counts()["in_flight"] == 2


def test_check_finds_a_pod_in_two_queue_states():
    r, pod = rig(), make_pod()
    entry = r.rest(pod, 0.0, "A")
    r.queue._queues.active.push(entry.key, entry, (0, 0.0))
    with pytest.raises(InvariantError, match="ns/p1 is both active and unschedulable"):
        r.queue.check()


def test_an_update_lists_a_pod_under_the_plugins_of_its_present_scheduler():
    """The entry may hold another scheduler's version than the observed old one."""
    r, pod = rig(), make_pod()
    entry = r.rest(pod, 0.0, "A")
    entry.update(replace(pod, spec=replace(pod.spec, scheduler_name="other")))
    r.queue._unschedulable.put(entry)
    r.queue.update(pod, make_pod(version="2"), 0.5)
    r.queue.check()


def test_check_finds_a_stale_list():
    r, pod = rig(), make_pod()
    entry = r.rest(pod, 0.0, "A")
    entry.unschedulable_plugins.add("B")
    with pytest.raises(InvariantError, match="under the wrong plugins"):
        r.queue.check()


def test_check_finds_a_pod_in_flight_and_queued():
    r, pod = rig(), make_pod()
    entry = r.fly(pod)
    r.queue._queues.enter_active(entry, "NodeAdd", 0.0)
    with pytest.raises(InvariantError, match="ns/p1 is in flight and active"):
        r.queue.check()
