"""The whole scheduler: one attempt, its binding, its failure. Numbers are specification rows."""

import pickle
from random import Random

import pytest
from msgspec import UNSET
from msgspec.structs import replace
from tests.saying import make

from moorage.api.meta import Condition
from moorage.api.pod import Pod, PodStatus
from moorage.api.server_requests import (
    BindPod,
    DeletePod,
    EmitEvent,
    LookUpPod,
    PatchPodStatus,
    PodRef,
)
from moorage.core.effects import Done, Failed
from moorage.core.journal import (
    Bound,
    Decided,
    Erred,
    Expired,
    Forgotten,
    Refused,
    SlowPlugin,
    Waiting,
)
from moorage.core.observations import Added, Updated
from moorage.core.scheduler import Scheduler
from moorage.errors import ConfigError, PluginFailure
from moorage.framework.events import ClusterEvent, Hint
from moorage.framework.invoke import Loops
from moorage.framework.post_filter import PostFiltered
from moorage.framework.status import SKIP, SUCCESS, pending, unschedulable, wait
from moorage.testing import make_node, make_pod, strategies

POD = make_pod("p", uid="uid-p", requests={"cpu": "1"})
OTHER = make_pod("q", uid="uid-q", requests={"cpu": "1"})
REF = PodRef.of(POD)
NO = unschedulable("no")


def on(pod, node):
    return replace(pod, spec=replace(pod.spec, node_name=node))


def terminating(pod):
    return replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))


def with_status(pod, **fields):
    return replace(pod, status=PodStatus(**fields))


def kinds(requests):
    return [type(request).__name__ for request in requests]


def of(kind, requests):
    return [request for request in requests if isinstance(request, kind)]


CLEARED = ("nominated", "")


def patches(requests):
    """Reason and message of conditions, and nominations, as they are patched."""
    found = []
    for patch in of(PatchPodStatus, requests):
        if patch.condition is not None:
            found.append((patch.condition.reason, patch.condition.message))
        if patch.nominated_node_name is not UNSET:
            found.append(("nominated", patch.nominated_node_name))
    return found


# A successful attempt


def test_a_pod_is_bound_and_confirmed(machine):
    run = machine(nodes=["n1"])
    assert run.schedule(POD) == [BindPod(REF, "n1")]
    assert (run.cached(POD), run.requested("n1")) == ("n1?", 1000)
    assert run.answer(BindPod) == [
        EmitEvent(
            REF,
            "Normal",
            "Scheduled",
            "Binding",
            "Successfully assigned default/p to n1",
            "default-scheduler",
        )
    ]
    assert run.cached(POD) == "n1?"
    assert run.confirm(POD, "n1") == []
    assert (run.cached(POD), run.requested("n1")) == ("n1", 1000)
    assert run.story(POD) == ["Queued", "Popped", "Decided", "Bound", "Confirmed"]
    assert run.scheduler.deadline is None
    assert not run.scheduler.has_work


def test_the_next_pod_sees_the_reduced_capacity(machine):
    def roomy(state, pod, node):
        return NO if node.requested("cpu") else SUCCESS

    run = machine(make("Roomy", filter=roomy))
    requests = run.schedule(*(make_pod(f"p{i}", requests={"cpu": "1"}) for i in range(3)))
    assert {request.node for request in of(BindPod, requests)} == {"n1", "n2", "n3"}


def test_a_confirmation_before_the_binding_is_reported_done(machine):
    run = machine(nodes=["n1"])
    run.schedule(POD)
    run.confirm(POD, "n1")
    assert run.cached(POD) == "n1"
    assert kinds(run.answer(BindPod)) == ["EmitEvent"]
    assert run.story(POD)[-2:] == ["Confirmed", "Bound"]
    assert (run.scheduler.deadline, run.requested("n1")) == (None, 1000)


def test_a_pod_is_observed_on_another_node_than_assumed(machine):
    run = machine(nodes=["n1"])
    run.schedule(POD)
    run.add(make_node("n2"))
    run.confirm(POD, "n2")
    assert (run.cached(POD), run.requested("n1"), run.requested("n2")) == ("n2", 0, 1000)
    assert run.fail(BindPod, "already bound") == []
    assert (run.cached(POD), run.where(POD)) == ("n2", None)


def test_no_attempt_without_a_waiting_pod(machine):
    assert machine().schedule_one() == []


def test_pods_of_other_schedulers_are_left_alone(machine):
    run = machine()
    foreign = make_pod("p", scheduler_name="another")
    assert run.schedule(foreign) == []
    assert (run.where(foreign), run.story(foreign)) == (None, [])
    run.confirm(foreign, "n1")
    assert run.cached(foreign) == "n1"


def test_profiles_are_found_by_scheduler_name(machine):
    def profile(name, plugin):
        return {"schedulerName": name, "plugins": {"multiPoint": {"enabled": [{"name": plugin}]}}}

    run = machine(
        make("Left", filter=lambda s, p, node: SUCCESS if node.name == "n1" else NO),
        make("Right", filter=lambda s, p, node: SUCCESS if node.name == "n2" else NO),
        profiles=[profile("left", "Left"), profile("right", "Right")],
        nodes=["n1", "n2"],
    )
    requests = run.schedule(*(make_pod(n, scheduler_name=n) for n in ("right", "left")))
    assert [(r.pod.name, r.node) for r in requests] == [("right", "n2"), ("left", "n1")]
    (event,) = run.answer(BindPod)
    assert event.reporter == "right"


def test_a_deleted_pod_is_skipped(machine):
    run = machine()
    (event,) = run.schedule(terminating(POD))
    assert (event.type, event.reason, event.action, event.note) == (
        "Warning",
        "FailedScheduling",
        "Scheduling",
        "skip schedule deleting pod: default/p",
    )
    assert run.where(POD) is None


# A pod without a feasible node


def test_a_rejection_is_reported(machine):
    run = machine(make("A", filter=NO))
    pod = replace(POD, metadata=replace(POD.metadata, generation=3))
    event, patch = run.schedule(pod)
    text = "0/3 nodes are available: 3 no."
    assert event == EmitEvent(
        REF, "Warning", "FailedScheduling", "Scheduling", text, "default-scheduler"
    )
    assert patch == PatchPodStatus(
        REF,
        Condition(
            type="PodScheduled",
            status="False",
            reason="Unschedulable",
            message=text,
            observed_generation=3,
        ),
    )
    assert run.where(POD) == "unschedulable"
    assert run.entry(POD).unschedulable_plugins == {"A"}
    (refused,) = run.facts(POD, Refused)
    assert (refused.message, refused.plugins, refused.rejected_by) == (text, ("A",), {"A": 3})


def test_a_plugin_that_waits_for_something_outside(machine):
    run = machine(make("A", filter=pending("claim is not ready")))
    run.schedule(POD)
    entry = run.entry(POD)
    assert (entry.unschedulable_plugins, entry.pending_plugins) == ({"A"}, {"A"})


def test_a_pod_is_retried_after_an_attempt_without_nodes(machine):
    run = machine(nodes=())
    requests = run.schedule(POD)
    assert patches(requests) == [("Unschedulable", "no nodes available to schedule pods")]
    assert (run.where(POD), run.entry(POD).consecutive_errors) == ("backoff", 1)
    assert not run.scheduler.has_work  # An error's back-off is never cut short.
    (refused,) = run.facts(POD, Refused)
    assert refused.message == "no nodes available to schedule pods"


CONTENT = {"score": lambda *args: 1, "normalize_score": lambda *args: args[-1]}
# Methods that have a meaning only together with another one.
BESIDE = {"pre_score": "score", "normalize_score": "score", "pre_bind_pre_flight": "pre_bind"}


def shaky(point):
    """A plugin that raises at one point for the pod `p`, and succeeds otherwise."""
    content = CONTENT.get(point, lambda *args: SUCCESS)

    def method(*args):
        pod = next(arg for arg in args if isinstance(arg, Pod))
        if pod.name == "p":
            raise PluginFailure("oh")
        return content(*args)

    beside = BESIDE.get(point, point)
    return make("Shaky", **{beside: CONTENT.get(beside, SUCCESS), point: method})


@pytest.mark.parametrize(
    "point",
    [
        *("pre_filter", "filter", "pre_score", "score", "normalize_score", "reserve", "permit"),
        *("pre_bind_pre_flight", "pre_bind", "bind"),
    ],
)
def test_an_exception_fails_only_the_pod_it_was_raised_for(machine, point):
    run = machine(shaky(point))
    requests = run.schedule(POD)
    ((reason, message),) = [found for found in patches(requests) if found[0] != "nominated"]
    assert reason == "SchedulerError"
    assert '"Shaky"' in message
    assert message.endswith("oh")
    assert (run.where(POD), run.cached(POD)) == ("backoff", None)
    assert run.facts(POD, Erred)[-1].message == message
    run.schedule(OTHER)
    assert run.cached(OTHER) is not None


def test_an_exception_in_pre_enqueue_gates_only_its_own_pod(machine):
    run = machine(shaky("pre_enqueue"))
    run.schedule(POD, OTHER)
    assert (run.where(POD), run.entry(POD).gating_plugin) == ("gated", "Shaky")
    assert run.cached(OTHER) is not None


@pytest.mark.parametrize(
    ("methods", "fact"),
    [
        pytest.param(
            {"post_bind": PluginFailure("oh")}, 'running PostBind plugin "A": oh', id="post"
        ),
        pytest.param(
            {"reserve": SUCCESS, "unreserve": PluginFailure("oh"), "permit": NO},
            'running Unreserve plugin "A": oh',
            id="unreserve",
        ),
    ],
)
def test_an_error_that_changes_nothing_is_recorded(machine, methods, fact):
    run = machine(make("A", **methods))
    run.schedule(POD)
    if "post_bind" in methods:
        run.answer(BindPod)
    assert [noted.message for noted in run.facts(POD, Erred)] == [fact]


def test_a_plugin_that_is_slow_for_lack_of_a_whole_cluster_form_is_reported_once(
    machine, monkeypatch
):
    monkeypatch.setattr(Loops, "SLOW", 5)
    run = machine(make("Slow", filter=SUCCESS), nodes=["n1", "n2", "n3"])
    for i in range(4):
        run.schedule(make_pod(f"p{i}", requests={"cpu": f"{i}m"}))
    facts = [fact for fact in run.scheduler.journal if isinstance(fact, SlowPlugin)]
    assert [(fact.plugin, fact.point, fact.nodes) for fact in facts] == [("Slow", "filter", 6)]


def test_an_error_in_post_filter_is_part_of_the_message(machine):
    run = machine(make("A", filter=NO), make("B", post_filter=PluginFailure("oh")))
    ((reason, message),) = patches(run.schedule(POD))
    assert (reason, message) == (
        "Unschedulable",
        '0/3 nodes are available: 3 no. running PostFilter plugin "B": oh',
    )


def test_requests_of_post_filter_are_performed(machine):
    victim = DeletePod(PodRef("default", "victim", "uid"))
    answer = PostFiltered(SUCCESS, "n1", (victim,))
    run = machine(make("A", filter=NO), make("B", post_filter=answer))
    requests = run.schedule(POD)
    assert victim in requests
    assert patches(requests) == [
        ("Unschedulable", "0/3 nodes are available: 3 no."),
        ("nominated", "n1"),
    ]
    assert run.scheduler.nominator.node_of(POD.uid) == "n1"
    assert run.facts(POD, Refused)[0].nominated == "n1"


@pytest.mark.parametrize(
    ("answer", "nominated", "patched"),
    [
        pytest.param(PostFiltered(NO, ""), None, [("nominated", "")], id="taken back"),
        pytest.param(PostFiltered(NO), "n1", [], id="left alone"),
    ],
)
def test_a_pod_is_added_with_a_nominated_node(machine, answer, nominated, patched):
    run = machine(make("A", filter=NO), make("B", post_filter=answer))
    requests = run.schedule(with_status(POD, nominated_node_name="n1"))
    assert run.scheduler.nominator.node_of(POD.uid) == nominated
    assert [found for found in patches(requests) if found[0] == "nominated"] == patched


# What is patched, and when


def shown(message, status="False", reason="Unschedulable"):
    return Condition(
        type="PodScheduled",
        status=status,
        reason=reason,
        message=message,
        last_transition_time="2026-01-01T00:00:00Z",
    )


TEXT = "0/3 nodes are available: 3 no."


@pytest.mark.parametrize(
    ("condition", "patched"),
    [
        pytest.param(shown(TEXT), [], id="57: the same is there already"),
        pytest.param(shown("other"), [("Unschedulable", TEXT)], id="57: another message"),
        pytest.param(
            shown(TEXT, reason="SchedulerError"), [("Unschedulable", TEXT)], id="another reason"
        ),
        pytest.param(shown(TEXT, status="True"), [("Unschedulable", TEXT)], id="another status"),
        pytest.param(None, [("Unschedulable", TEXT)], id="none"),
    ],
)
def test_57_the_condition_is_patched_only_when_it_changes(machine, condition, patched):
    run = machine(make("A", filter=NO))
    conditions = () if condition is None else (condition,)
    requests = run.schedule(with_status(POD, conditions=conditions))
    assert patches(requests) == patched
    assert len(of(EmitEvent, requests)) == 1


def test_57_the_condition_is_there_and_the_nomination_is_new(machine):
    run = machine(make("A", filter=NO), make("B", post_filter=PostFiltered(SUCCESS, "n2")))
    (patch,) = of(PatchPodStatus, run.schedule(with_status(POD, conditions=(shown(TEXT),))))
    assert patch == PatchPodStatus(REF, condition=None, nominated_node_name="n2")


@pytest.mark.parametrize(
    ("condition", "since"),
    [
        pytest.param(shown("other"), "2026-01-01T00:00:00Z", id="57: the status stays"),
        pytest.param(shown("other", status="True"), None, id="57: the status changes"),
        pytest.param(None, None, id="57: there was none"),
    ],
)
def test_57_the_time_of_transition_moves_with_the_status_only(machine, condition, since):
    """None stands for the time of the patch."""
    run = machine(make("A", filter=NO))
    conditions = () if condition is None else (condition,)
    (patch,) = of(PatchPodStatus, run.schedule(with_status(POD, conditions=conditions)))
    assert patch.condition.last_transition_time == since


def test_60_the_event_message_is_truncated_and_the_condition_is_not(machine):
    long = "x" * 2000
    run = machine(make("A", filter=unschedulable(long)))
    requests = run.schedule(POD)
    (event,) = of(EmitEvent, requests)
    assert len(event.note) == 1024
    assert event.note.endswith("x ...")
    assert patches(requests) == [("Unschedulable", f"0/3 nodes are available: 3 {long}.")]


# Reserve and permit


def test_51_unreserve_runs_in_reverse_order(machine):
    calls = []

    def noting(name, answer=SUCCESS):
        return make(
            name,
            reserve=lambda *_: calls.append(f"+{name}") or answer,
            unreserve=lambda *_: calls.append(f"-{name}"),
        )

    run = machine(noting("A"), noting("B", NO), noting("C"), nodes=["n1"])
    requests = run.schedule(POD)
    assert calls == ["+A", "+B", "-C", "-B", "-A"]
    assert patches(requests) == [("Unschedulable", "0/1 nodes are available: 1 no.")]
    assert (run.where(POD), run.entry(POD).unschedulable_plugins) == ("unschedulable", {"B"})
    assert (run.cached(POD), run.requested("n1")) == (None, 0)
    assert [fact.reason for fact in run.facts(POD, Forgotten)] == ["no"]


@pytest.mark.parametrize(
    ("methods", "where", "reason", "message"),
    [
        pytest.param(
            {"permit": NO},
            "unschedulable",
            "Unschedulable",
            "0/1 nodes are available: 1 no.",
            id="51: permit refuses",
        ),
        pytest.param(
            {"reserve": PluginFailure("disk")},
            "backoff",
            "SchedulerError",
            'running Reserve plugin "A": disk',
            id="51: reserve raises",
        ),
        pytest.param(
            {"permit": PluginFailure("disk")},
            "backoff",
            "SchedulerError",
            'running Permit plugin "A": disk',
            id="permit raises",
        ),
    ],
)
def test_51_rejections_and_errors_in_reserve_and_permit(machine, methods, where, reason, message):
    run = machine(make("A", **methods), nodes=["n1"])
    requests = run.schedule(with_status(POD, nominated_node_name="n1"))
    assert patches(requests) == [(reason, message), ("nominated", "")]
    assert (run.where(POD), run.cached(POD), run.requested("n1")) == (where, None, 0)
    assert run.scheduler.nominator.node_of(POD.uid) is None


class Full:
    """Rejects `q` and registers for the deletion of any pod."""

    name = "Full"

    def filter(self, state, pod, node):
        return unschedulable("full") if pod.name == "q" else SUCCESS

    def events_to_register(self):
        return {ClusterEvent.POD_DELETE: None}


def test_51_a_rejection_within_the_cycle_requeues_no_pod(machine):
    """No other pod has seen the node's capacity reduced, so none waits for it."""
    run = machine(Full, make("A", reserve=lambda s, pod, n: NO))
    run.schedule(OTHER)
    assert run.where(OTHER) == "unschedulable"
    run.schedule(POD)
    assert run.where(OTHER) == "unschedulable"


def allow(run, pod=POD, plugin="A"):
    run.scheduler.cluster.waiting[pod.uid].allow(plugin)


def test_a_pod_waits_on_permit_and_is_allowed(machine):
    run = machine(make("A", permit=wait(10)), nodes=["n1"])
    assert patches(run.schedule(POD)) == [("nominated", "n1")]
    assert (run.cached(POD), run.where(POD), run.scheduler.deadline) == ("n1?", "in_flight", 10.0)
    assert run.facts(POD, Waiting)[0].plugins == ("A",)
    assert run.advance(5.0) == []
    allow(run)
    assert run.scheduler.deadline == run.now  # A signal from outside is due at once.
    assert run.advance() == [BindPod(REF, "n1")]
    assert (run.where(POD), run.scheduler.cluster.waiting) == (None, {})


def test_a_pod_is_allowed_within_the_same_step(machine):
    """One pod's permit may allow another pod: a gang is complete."""

    def gang(state, pod, node):
        waiting = state.cluster.waiting
        if len(waiting) < 2:
            return wait(60)
        for other in waiting.values():
            other.allow("Gang")
        return SUCCESS

    run = machine(make("Gang", permit=gang))
    pods = [make_pod(f"p{i}") for i in range(3)]
    requests = run.schedule(*pods)
    assert [r.pod.name for r in of(BindPod, requests)] == ["p2", "p0", "p1"]


def test_all_waiting_plugins_have_to_allow(machine):
    run = machine(make("A", permit=wait(10)), make("B", permit=wait(20)))
    run.schedule(POD)
    assert run.scheduler.deadline == 10.0
    allow(run, plugin="A")
    assert run.scheduler.deadline == 20.0
    assert run.advance(15.0) == []
    allow(run, plugin="B")
    assert kinds(run.advance()) == ["BindPod"]


@pytest.mark.parametrize(
    ("waits", "seconds", "waited", "plugin"),
    [
        pytest.param({"A": 0, "B": 1}, 0.0, "0s", "A", id="52: not at all"),
        pytest.param({"A": 70}, 70.0, "1m10s", "A", id="52: a minute and a bit"),
        pytest.param({"A": 3600}, 900.0, "15m0s", "A", id="a quarter of an hour at most"),
    ],
)
def test_52_permit_times_out(machine, waits, seconds, waited, plugin):
    undone = []
    plugins = [make(name, permit=wait(span)) for name, span in waits.items()]
    keeper = make("Keeper", reserve=SUCCESS, unreserve=lambda *_: undone.append("Keeper"))
    run = machine(*plugins, keeper, nodes=["n1"])
    run.schedule(POD)
    assert run.scheduler.deadline == seconds
    requests = run.advance(seconds)
    reason = f"rejected due to timeout after waiting {waited} at plugin {plugin}"
    # The nomination was not observed yet, but its patch is on its way.
    message = f"0/1 nodes are available: 1 {reason}."
    assert patches(requests) == [("Unschedulable", message), CLEARED]
    assert run.entry(POD).unschedulable_plugins == {plugin}
    assert (run.where(POD), run.cached(POD), undone) == ("unschedulable", None, ["Keeper"])


def test_a_waiting_pod_is_rejected(machine):
    run = machine(make("A", permit=wait(10)), nodes=["n1"])
    run.schedule(POD)
    run.scheduler.cluster.waiting[POD.uid].reject("A", "no quorum")
    requests = run.advance()
    message = "0/1 nodes are available: 1 no quorum."
    assert patches(requests) == [("Unschedulable", message), CLEARED]
    assert (run.where(POD), run.cached(POD)) == ("unschedulable", None)


def test_a_waiting_pod_is_preempted(machine):
    run = machine(make("A", permit=wait(10)))
    run.schedule(POD)
    run.scheduler.cluster.waiting[POD.uid].preempt("its place is needed")
    message = "waiting on permit for pod: its place is needed"
    assert patches(run.advance()) == [("SchedulerError", message), CLEARED]
    assert run.where(POD) == "backoff"


def test_a_rejection_requeues_others_but_not_the_pod_itself(machine):
    run = machine(Full, make("A", permit=wait(10), events_to_register=lambda: WOKEN))
    run.schedule(POD)
    run.schedule(OTHER)
    assert run.where(OTHER) == "unschedulable"
    run.scheduler.cluster.waiting[POD.uid].reject("A", "no quorum")
    run.advance()
    assert (run.where(OTHER), run.where(POD)) == ("backoff", "unschedulable")


WOKEN = {ClusterEvent.POD_DELETE: None}


def test_signals_sent_during_unreserve_are_handled_in_the_same_step(machine):
    """A gang is rejected: unreserve of the first pod rejects the others."""

    def disband(state, pod, node):
        for other in state.cluster.waiting.values():
            other.reject("Gang", "the gang is gone")

    run = machine(make("Gang", reserve=SUCCESS, unreserve=disband, permit=wait(60)))
    pods = [make_pod(f"p{i}") for i in range(3)]
    run.schedule(*pods)
    run.scheduler.cluster.waiting[pods[0].uid].reject("Gang", "one is missing")
    run.advance()
    assert [run.cached(pod) for pod in pods] == [None, None, None]
    assert run.scheduler.cluster.waiting == {}


@pytest.mark.parametrize("how", ["terminating", "deleted"])
def test_38_a_waiting_pod_is_deleted(machine, how):
    run = machine(Full, make("A", permit=wait(10)), nodes=["n1"])
    run.schedule(OTHER)
    run.schedule(POD)
    requests = run.update(terminating(POD)) if how == "terminating" else run.delete(POD)
    assert (run.cached(POD), run.scheduler.cluster.waiting) == (None, {})
    assert run.facts(POD, Forgotten)[0].reason == "removed"
    assert run.where(OTHER) == "backoff"
    if how == "terminating":
        message = "0/1 nodes are available: 1 removed."
        assert patches(requests) == [("Unschedulable", message), CLEARED]
    else:
        assert requests == []


@pytest.mark.parametrize("how", ["terminating", "deleted"])
def test_38_a_pod_is_deleted_while_it_is_being_bound(machine, how):
    undone = []
    keeper = make("Keeper", reserve=SUCCESS, unreserve=lambda *_: undone.append("Keeper"))
    run = machine(Full, keeper)
    run.schedule(OTHER)
    run.schedule(POD)
    assert (run.update(terminating(POD)) if how == "terminating" else run.delete(POD)) == []
    assert (run.cached(POD), undone) == (None, [])  # Its binding continues, and will fail.
    assert run.where(OTHER) == "backoff"
    requests = run.fail(BindPod, "is being deleted")
    assert undone == ["Keeper"]
    if how == "terminating":
        assert patches(requests)[0][0] == "SchedulerError"
    else:
        assert requests == []


# Pre-bind


@pytest.mark.parametrize(
    ("flight", "asked"),
    [
        pytest.param(SKIP, ["BindPod"], id="53: nothing to do"),
        pytest.param(SUCCESS, ["PatchPodStatus", "DeletePod"], id="53: something to do"),
    ],
)
def test_53_pre_flight(machine, flight, asked):
    run = machine(make("A", pre_bind=(DeletePod(REF),), pre_bind_pre_flight=flight), nodes=["n1"])
    requests = run.schedule(POD)
    assert kinds(requests) == asked
    assert patches(requests) == ([("nominated", "n1")] if flight is SUCCESS else [])


def test_53_pre_flight_refuses(machine):
    run = machine(make("A", pre_bind=SUCCESS, pre_bind_pre_flight=NO))
    ((reason, message),) = patches(run.schedule(POD))
    assert reason == "SchedulerError"
    assert message.startswith('PreBindPreFlight A returned "Unschedulable"')
    assert (run.where(POD), run.cached(POD)) == ("backoff", None)


def test_pre_bind_requests_come_before_the_binding(machine):
    run = machine(make("A", pre_bind=(DeletePod(REF), DeletePod(PodRef.of(OTHER)))))
    assert kinds(run.schedule(POD)) == ["PatchPodStatus", "DeletePod", "DeletePod"]
    assert run.answer(DeletePod) == []
    assert kinds(run.answer(DeletePod)) == ["BindPod"]


def test_a_request_of_pre_bind_fails(machine):
    undone = []
    keeper = make("Keeper", reserve=SUCCESS, unreserve=lambda *_: undone.append("Keeper"))
    run = machine(keeper, make("A", pre_bind=(DeletePod(REF), DeletePod(PodRef.of(OTHER)))))
    run.schedule(POD)
    assert run.fail(DeletePod, "conflict") == []
    assert (run.cached(POD)[-1], undone) == ("?", [])  # The other request is still in progress.
    requests = run.answer(DeletePod)
    assert patches(requests)[0] == ("SchedulerError", 'running PreBind plugin "A": conflict')
    assert (run.where(POD), run.cached(POD), undone) == ("backoff", None, ["Keeper"])


def test_54_pre_bind_refuses(machine):
    """A rejection at this stage does not wait for a cluster event: the pod is retried."""
    run = machine(make("A", pre_bind=NO))
    requests = run.schedule(POD)
    assert [found for found in patches(requests) if found[0] != "nominated"] == [
        ("Unschedulable", "no")
    ]
    entry = run.entry(POD)
    assert (run.where(POD), entry.consecutive_errors) == ("backoff", 1)
    assert entry.unschedulable_plugins == set()


# Bind


def test_55_the_binding_fails(machine):
    undone = []
    keeper = make("Keeper", reserve=SUCCESS, unreserve=lambda *_: undone.append("Keeper"))
    run = machine(Full, keeper, nodes=["n1"])
    run.schedule(OTHER)
    run.schedule(with_status(POD, nominated_node_name="n1"))
    requests = run.fail(BindPod, "conflict")
    text = 'running Bind plugin "DefaultBinder": conflict'
    assert patches(requests) == [("SchedulerError", text), ("nominated", "")]
    assert (run.cached(POD), run.requested("n1"), undone) == (None, 0, ["Keeper"])
    assert (run.where(POD), run.entry(POD).consecutive_errors) == ("backoff", 1)
    assert run.where(OTHER) == "backoff"
    assert [fact.message for fact in run.facts(POD, Erred)] == [text]


def test_all_bind_plugins_skip(machine):
    bind = {"enabled": [{"name": "Shy"}], "disabled": [{"name": "*"}]}
    run = machine(make("Shy", bind=SKIP), profiles=[{"plugins": {"bind": bind}}], nodes=["n1"])
    assert run.schedule(POD) == []  # No message, so no Event and no condition.
    assert (run.where(POD), run.entry(POD).consecutive_errors) == ("backoff", 1)
    assert run.cached(POD) is None


def test_a_bind_plugin_may_succeed_without_a_request(machine):
    run = machine(make("A", bind=SUCCESS))
    assert kinds(run.schedule(POD)) == ["EmitEvent"]
    assert run.facts(POD, Bound)


def test_post_bind_is_called(machine):
    called = []
    run = machine(make("A", post_bind=lambda state, pod, node: called.append((pod.name, node))))
    run.schedule(POD)
    assert called == []
    run.answer(BindPod)
    assert called == [("p", run.facts(POD, Bound)[0].node)]


# Unknown outcomes of bindings


def test_an_unknown_outcome_of_a_binding_that_succeeded(machine):
    run = machine(nodes=["n1"])
    run.schedule(POD)
    assert run.lose(BindPod) == []
    assert run.cached(POD) == "n1?"  # The capacity stays reserved until the outcome is known.
    assert run.scheduler.deadline == 0.0
    assert run.advance() == [LookUpPod(REF)]
    assert kinds(run.answer(LookUpPod, Done(on(POD, "n1")))) == ["EmitEvent"]
    assert run.cached(POD) == "n1"
    assert {"Bound", "Confirmed"} <= set(run.story(POD))
    assert run.scheduler.deadline is None


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        pytest.param(POD, "the pod is not bound", id="not bound"),
        pytest.param(None, "the pod is gone", id="gone"),
        pytest.param(make_pod("p", uid="new"), "the pod is gone", id="recreated"),
    ],
)
def test_an_unknown_outcome_of_a_binding_that_failed(machine, found, reason):
    run = machine(nodes=["n1"])
    run.schedule(POD)
    run.lose(BindPod)
    run.advance()
    requests = run.answer(LookUpPod, Done(found))
    assert patches(requests) == [
        ("SchedulerError", f'running Bind plugin "DefaultBinder": {reason}')
    ]
    assert (run.cached(POD), run.where(POD), run.requested("n1")) == (None, "backoff", 0)


def test_an_unknown_outcome_and_another_scheduler_bound_the_pod(machine):
    run = machine(nodes=["n1", "n2"])
    run.schedule(POD)
    asked = run.cached(POD).rstrip("?")
    elsewhere = "n2" if asked == "n1" else "n1"
    run.lose(BindPod)
    run.advance()
    assert run.answer(LookUpPod, Done(on(POD, elsewhere))) == []
    assert (run.cached(POD), run.where(POD)) == (elsewhere, None)
    assert (run.requested(asked), run.requested(elsewhere)) == (0, 1000)


def test_an_unknown_outcome_is_resolved_by_the_watch(machine):
    run = machine(nodes=["n1"])
    run.schedule(POD)
    run.lose(BindPod)
    run.confirm(POD, "n1")
    assert run.advance() == [LookUpPod(REF)]
    assert kinds(run.answer(LookUpPod, Done(on(POD, "n1")))) == ["EmitEvent"]
    assert (run.cached(POD), run.scheduler.deadline) == ("n1", None)


@pytest.mark.parametrize("outcome", ["failed", "unknown"])
def test_a_look_up_that_fails_is_tried_again(machine, outcome):
    run = machine(nodes=["n1"])
    run.schedule(POD)
    run.lose(BindPod)
    for _ in range(3):
        assert run.advance() == [LookUpPod(REF)]
        assert (run.fail if outcome == "failed" else run.lose)(LookUpPod) == []
        assert run.scheduler.deadline == run.now + 1.0
        assert run.advance(0.5) == []
        run.now += 0.5
    run.advance()
    run.answer(LookUpPod, Done(on(POD, "n1")))
    assert run.cached(POD) == "n1"


@pytest.mark.parametrize("moment", ["before the answer", "before the look-up", "meanwhile"])
@pytest.mark.parametrize("how", ["terminating", "deleted"])
def test_an_unknown_outcome_of_a_pod_that_is_deleted(machine, how, moment):
    """Unreserve runs, whatever comes first."""
    undone = []
    keeper = make("Keeper", reserve=SUCCESS, unreserve=lambda *_: undone.append("Keeper"))
    run = machine(keeper, nodes=["n1"])

    def delete():
        return run.update(terminating(POD)) if how == "terminating" else run.delete(POD)

    run.schedule(POD)
    if moment == "before the answer":
        delete()
    run.lose(BindPod)
    if moment == "before the look-up":
        delete()
    assert run.advance() == [LookUpPod(REF)]
    if moment == "meanwhile":
        delete()
    run.answer(LookUpPod, Done(terminating(POD) if how == "terminating" else None))
    assert undone == ["Keeper"]
    assert (run.cached(POD), run.requested("n1")) == (None, 0)
    assert len(run.scheduler.bindings) == 0


def test_a_look_up_that_fails_after_the_pod_was_deleted(machine):
    undone = []
    keeper = make("Keeper", reserve=SUCCESS, unreserve=lambda *_: undone.append("Keeper"))
    run = machine(keeper, nodes=["n1"])
    run.schedule(POD)
    run.lose(BindPod)
    run.advance()
    run.delete(POD)
    run.lose(LookUpPod)
    assert run.advance(1.0) == [LookUpPod(REF)]
    run.answer(LookUpPod, Done(None))
    assert (undone, len(run.scheduler.bindings)) == (["Keeper"], 0)


# Bindings that are not confirmed


def test_a_binding_that_is_never_confirmed_is_looked_up(machine):
    run = machine(nodes=["n1"], confirm_seconds=30.0)
    run.schedule(POD)
    run.answer(BindPod)
    assert run.scheduler.deadline == 30.0
    assert run.advance(29.0) == []
    assert run.advance(1.0) == [LookUpPod(REF)]
    assert run.scheduler.deadline is None  # The lookup is in progress.
    assert run.answer(LookUpPod, Done(on(POD, "n1"))) == []
    assert (run.cached(POD), run.scheduler.deadline) == ("n1", None)


def test_the_deadline_is_that_of_the_first_lookup(machine):
    run = machine(nodes=["n1"], confirm_seconds=30.0)
    run.schedule(OTHER)
    run.answer(BindPod)
    run.schedule(POD)
    run.lose(BindPod)
    run.advance(1.0)
    run.fail(LookUpPod)
    assert run.scheduler.deadline == 2.0  # POD again, before OTHER has been unconfirmed too long.


def test_a_missing_binding_expires_and_the_pod_is_retried(machine):
    run = machine(Full, nodes=["n1"])
    run.schedule(OTHER)
    run.schedule(POD)
    run.answer(BindPod)
    run.advance(30.0)
    assert run.answer(LookUpPod, Done(POD)) == []
    assert run.facts(POD, Expired)[0].node == "n1"
    assert (run.cached(POD), run.where(POD), run.requested("n1")) == (None, "active", 0)
    assert run.where(OTHER) == "active"
    run.schedule_one()
    assert BindPod(REF, "n1") in run.schedule_one()


def test_a_pod_that_is_gone_meanwhile_does_not_come_back(machine):
    run = machine(nodes=["n1"])
    run.schedule(POD)
    run.answer(BindPod)
    run.advance(30.0)
    run.delete(POD)
    run.answer(LookUpPod, Done(None))
    assert (run.cached(POD), run.where(POD), run.requested("n1")) == (None, None, 0)


def test_outcomes_of_requests_without_consequence_are_ignored(machine):
    run = machine(make("A", filter=NO))
    run.schedule(POD)
    assert run.fail(EmitEvent) == []
    assert run.fail(PatchPodStatus) == []
    assert run._collect(run.scheduler.complete(999, Failed("what?"), 0.0)) == []


# Changes during an attempt


@pytest.mark.parametrize(
    "meanwhile",
    [
        pytest.param(lambda run: run.delete(POD), id="deleted"),
        pytest.param(
            lambda run: (run.delete(POD), run.add(make_pod("p", uid="new"))), id="56: recreated"
        ),
        pytest.param(lambda run: run.confirm(POD, "n9"), id="bound elsewhere"),
    ],
)
def test_56_a_pod_that_changed_meanwhile_is_neither_requeued_nor_reported(machine, meanwhile):
    run = machine(nodes=["n1"])
    run.schedule(POD)
    meanwhile(run)
    assert run.fail(BindPod) == []
    assert run.where(POD) is None
    assert run.scheduler.nominator.node_of(POD.uid) is None
    assert run.scheduler.queue.counts()["in_flight"] == 0


def test_a_recreated_pod_gets_its_own_attempt(machine):
    run = machine(nodes=["n1"])
    run.schedule(POD)
    new = make_pod("p", uid="new")
    run.delete(POD)
    (request,) = run.schedule(new)
    assert request.pod.uid == "new"
    assert run.fail(BindPod) == []  # The old one's
    assert run.cached(new) == "n1?"


def test_a_failed_pod_is_requeued_in_its_observed_version(machine):
    run = machine(nodes=["n1"])
    run.schedule(POD)
    newer = replace(POD, metadata=replace(POD.metadata, labels={"a": "b"}))
    run.update(newer)
    run.fail(BindPod)
    assert run.entry(POD).pod == newer


def test_pods_to_activate(machine):
    """A plugin may activate other pods after this one is scheduled."""
    hidden = {ClusterEvent.UPDATE_POD_LABEL: lambda *_: Hint.QUEUE_SKIP}

    def stash(state, pod, node):
        state.to_activate[OTHER.key] = OTHER
        return SUCCESS

    class Picky:
        name = "Picky"

        def filter(self, state, pod, node):
            return NO if pod.name == "q" else SUCCESS

        def events_to_register(self):
            return hidden

    run = machine(Picky, make("Friend", reserve=stash))
    run.schedule(OTHER)
    assert run.where(OTHER) == "unschedulable"
    run.schedule(POD)
    assert run.where(OTHER) == "active"


def test_pods_to_activate_after_the_binding(machine):
    def stash(state, pod, node):
        state.to_activate[OTHER.key] = OTHER

    class Picky:
        name = "Picky"

        def filter(self, state, pod, node):
            return NO if pod.name == "q" else SUCCESS

        def events_to_register(self):
            return {}

    run = machine(Picky, make("Friend", post_bind=stash))
    run.schedule(OTHER)
    run.schedule(POD)
    assert run.where(OTHER) == "unschedulable"
    run.answer(BindPod)
    assert run.where(OTHER) == "active"


# Errors at startup


def test_an_invalid_plugin_is_refused_at_startup(machine):
    with pytest.raises(ConfigError, match="it has no method of any extension point"):
        machine(make("Idle"))


# Determinism


class Fickle:
    """A plugin of each kind, at module level so that it pickles."""

    name = "Fickle"

    def filter(self, state, pod, node):
        return NO if node.pod_count > 3 else SUCCESS

    def score(self, state, pod, node):
        return 50

    def permit(self, state, pod, node):
        return wait(5) if pod.name.endswith("3") else SUCCESS

    def pre_bind(self, state, pod, node):
        return (DeletePod(PodRef.of(pod)),) if pod.name.endswith("4") else SUCCESS


def life(run, steps=range(60)):
    """A run that uses all operations; each step depends on its number only."""
    for step in steps:
        pod = make_pod(f"p{step}", requests={"cpu": "100m"}, priority=step % 3)
        run.now += 0.5
        run.add(pod)
        run.schedule_one()
        if step % 3 == 0 and any(isinstance(e.request, BindPod) for e in run.effects):
            (run.fail if step % 9 == 0 else run.lose if step % 6 == 0 else run.answer)(BindPod)
        if step % 5 == 0 and any(isinstance(e.request, DeletePod) for e in run.effects):
            run.answer(DeletePod)
        if step % 7 == 0:
            run.update(make_node(f"n{step % 4}", labels={"step": step}))
        if step == 40:
            run.delete(make_node("n2"))
        run.advance()
        if any(isinstance(effect.request, LookUpPod) for effect in run.effects):
            run.fail(LookUpPod)
    return list(run.scheduler.journal.lines())


def nodes():
    return [make_node(f"n{i}", allocatable={"cpu": "1", "pods": "10"}) for i in range(4)]


def test_the_same_seed_gives_the_same_journal(machine):
    first, again, other = (life(machine(Fickle, nodes=nodes(), seed=s)) for s in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_pickled_scheduler_continues_like_the_original(machine):
    run = machine(Fickle, nodes=nodes(), seed=3)
    life(run, range(30))
    fork = pickle.loads(pickle.dumps(run))
    assert life(run, range(30, 60)) == life(fork, range(30, 60))
    kinds_seen = {type(fact).__name__ for fact in run.scheduler.journal}
    assert {"Decided", "Bound", "Erred", "Waiting", "Refused", "Forgotten"} <= kinds_seen


def ordinary_life(scheduler, rng, steps):
    """Random pods and nodes under the default configuration; every binding succeeds at once."""
    for step in steps:
        now = float(step)
        scheduler.observe(Updated(strategies.random_node(rng, f"n{rng.randrange(6)}")), now)
        pod = strategies.random_pod(rng, f"p{step}")
        if step % 2:  # Random pods rarely fit.
            pod = make_pod(f"p{step}", labels=pod.labels, tolerations=pod.spec.tolerations)
        scheduler.observe(Added(pod), now)
        for effect in [*scheduler.schedule_one(now), *scheduler.advance(now)]:
            scheduler.complete(effect.ticket, Done(), now)
            if isinstance(effect.request, BindPod) and effect.request.pod.uid == pod.uid:
                scheduler.observe(Updated(on(pod, effect.request.node)), now)
        scheduler.check_invariants()


def test_built_in_plugins_pickle_with_their_caches():
    scheduler, rng = Scheduler(seed=5), Random(5)
    ordinary_life(scheduler, rng, range(40))
    fork, same_dice = pickle.loads(pickle.dumps((scheduler, rng)))
    ordinary_life(scheduler, rng, range(40, 80))
    ordinary_life(fork, same_dice, range(40, 80))
    assert list(fork.journal.lines()) == list(scheduler.journal.lines())
    assert sum(isinstance(fact, Bound) for fact in scheduler.journal) > 5


def test_observations_alone_cause_nothing(machine):
    run = machine()
    assert run.scheduler.observe(Added(POD), 0.0) == []
    assert run.scheduler.observe(Updated(POD), 0.0) == []
    assert [pod.key for pod in run.scheduler.known_pods()] == ["default/p"]
    assert run.facts(POD, Decided) == []
