"""The pod-group cycle: what statuses of members mean for the group. Ids are rows of the spec."""

import pytest
from msgspec.structs import replace
from tests import group_builders
from tests.group_builders import node, pod, pods
from tests.saying import make

from moorage import Simulation
from moorage.api.meta import Condition, ObjectMeta
from moorage.api.pod import PodSchedulingGroup
from moorage.api.pod_groups import (
    GangSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    PodGroupStatus,
)
from moorage.api.server_requests import BindPod, DeletePod, PatchPodGroupStatus, PatchPodStatus
from moorage.core.journal import Decided, GroupDecided, GroupEnded, GroupPopped
from moorage.errors import PluginFailure
from moorage.framework.post_filter import PostFiltered
from moorage.framework.status import SUCCESS, unresolvable, unschedulable, wait
from moorage.nodes.pod_groups import GroupPlacement
from moorage.testing import make_node, make_pod

GATES = {"GenericWorkload": True}
WAIT = wait(300, "not yet")
NO = unschedulable("no")
VICTIM = make_pod("victim", node="n3")
FAILED = PluginFailure("broken")
GROUP_IS_UNSCHEDULABLE = (
    "pod group is unschedulable, not yet, "
    "one or more plugins asked to wait and no plugin rejected pod"
)


def member(name, group="g", **fields):
    spec = {"scheduling_group": PodSchedulingGroup(pod_group_name=group), **fields}
    return make_pod(name, **spec)


def gang(name="g", count=None, conditions=(), generation=1):
    gang = None if count is None else GangSchedulingPolicy(min_count=count)
    return PodGroup(
        metadata=ObjectMeta(
            name=name, namespace="default", uid=f"group-{name}", generation=generation
        ),
        spec=PodGroupSpec(scheduling_policy=PodGroupSchedulingPolicy(gang=gang)),
        status=PodGroupStatus(conditions=tuple(conditions)),
    )


def answered(answer):
    if isinstance(answer, BaseException):
        raise answer
    return answer


def plugin(filters=(), permits=(), preempts=()):
    """Answers for the pods p0, p1, p2, by their number; the rest succeeds."""

    def of(answers, pod):
        number = int(pod.name[1:])
        return answered(answers[number]) if number < len(answers) else SUCCESS

    def post_filter(state, pod, failure):
        if int(pod.name[1:]) in preempts:
            return PostFiltered(SUCCESS, "n3", victims=(VICTIM,))
        return PostFiltered(unschedulable(), "")

    return make(
        "Test",
        filter=lambda state, pod, node: of(filters, pod),
        permit=lambda state, pod, node: of(permits, pod),
        post_filter=post_filter,
    )


@pytest.fixture
def start(machine):
    """A machine with three members in the queue, the first tried and the group with it."""

    def begin(count=3, group=None, **answers):
        turned = machine(plugin(**answers), featureGates=GATES)
        turned.add(gang() if group is None else group, VICTIM)
        turned.members = [member(f"p{i}") for i in range(count)]
        turned.add(*turned.members)
        turned.requests = turned.schedule_one()
        return turned

    return begin


def bound(turned):
    return sorted(each.pod.name for each in turned.requests if isinstance(each, BindPod))


def evicted(turned):
    """Pods that are marked as a disruption's target, which comes before their deletion."""
    return {
        each.pod.name
        for each in turned.requests
        if (isinstance(each, PatchPodStatus) and each.condition is not None)
        and each.condition.type == "DisruptionTarget"
    }


def refusals(turned):
    """Reason and message of the members that were rejected."""
    return {
        each.pod.name: (each.condition.reason, each.condition.message)
        for each in turned.requests
        if isinstance(each, PatchPodStatus)
        and each.condition is not None
        and each.condition.type == "PodScheduled"
    }


def nominated(turned):
    nodes = {pod.name: turned.scheduler.nominator.node_of(pod.uid) for pod in turned.members}
    return {name: node for name, node in nodes.items() if node}


def result(turned):
    [fact] = [f for f in turned.scheduler.journal if isinstance(f, GroupEnded)]
    return fact.result


REJECTED = "0/3 nodes are available: 3 no."


@pytest.mark.parametrize(
    ("answers", "label", "names"),
    [
        pytest.param({"permits": [WAIT, WAIT]}, "scheduled", ["p2"], id="1: the others park"),
        pytest.param({"permits": [SUCCESS, SUCCESS, WAIT]}, "scheduled", ["p0", "p1"], id="2"),
        pytest.param({"permits": [WAIT, WAIT, WAIT]}, "unschedulable", [], id="3"),
        pytest.param({"permits": [WAIT, NO]}, "scheduled", ["p2"], id="4"),
        pytest.param({"filters": [NO, NO]}, "scheduled", ["p2"], id="basic: what fits is bound"),
        pytest.param(
            {"filters": [NO] * 3, "preempts": {0, 1, 2}}, "waiting_on_preemption", [], id="5"
        ),
        pytest.param(
            {"filters": [NO] * 3, "preempts": {0, 1, 2}, "permits": [WAIT] * 3},
            "unschedulable",
            [],
            id="6",
        ),
        pytest.param(
            {"filters": [NO], "preempts": {0}, "permits": [WAIT, WAIT, SUCCESS]},
            "waiting_on_preemption",
            [],
            id="7",
        ),
        pytest.param({"filters": [unresolvable("no"), NO, NO]}, "unschedulable", [], id="9"),
        pytest.param({"filters": [SUCCESS, FAILED]}, "error", [], id="10"),
        pytest.param(
            {"filters": [NO], "preempts": {0}, "permits": [SUCCESS, FAILED]}, "error", [], id="11"
        ),
    ],
)
def test_the_result_of_a_group(start, answers, label, names):
    turned = start(**answers)
    assert result(turned) == label
    assert bound(turned) == names
    if label != "scheduled":
        assert all(turned.cached(pod) is None for pod in turned.members)


def test_row_1_members_that_asked_to_wait_do_so_and_are_bound_when_allowed(start):
    turned = start(permits=[WAIT, WAIT])
    waiting = turned.scheduler.cluster.waiting
    assert sorted(each.pod.name for each in waiting.values()) == ["p0", "p1"]
    for each in waiting.values():
        each.allow("Test")
    turned.requests += turned.advance()
    assert bound(turned) == ["p0", "p1", "p2"]


def test_the_journal_has_the_attempt_and_the_decision_of_each_member(start):
    turned = start()
    [popped] = [f for f in turned.scheduler.journal if isinstance(f, GroupPopped)]
    assert (popped.group, popped.members) == ("default/g", 3)
    assert [len(turned.facts(each, Decided)) for each in turned.members] == [1, 1, 1]


def test_row_3_a_group_that_does_not_fit_fails_with_the_reasons_of_permit(start):
    turned = start(permits=[WAIT] * 3)
    expected = ("Unschedulable", GROUP_IS_UNSCHEDULABLE)
    assert refusals(turned) == dict.fromkeys(("p0", "p1", "p2"), expected)


def test_row_4_a_member_that_permit_rejects_fails_alone(start):
    turned = start(permits=[WAIT, NO])
    assert refusals(turned) == {"p1": ("Unschedulable", "0/1 nodes are available: 1 no.")}


def test_row_5_members_with_victims_are_nominated(start):
    turned = start(filters=[NO] * 3, preempts={0, 1, 2})
    assert nominated(turned) == dict.fromkeys(("p0", "p1", "p2"), "n3")
    assert evicted(turned) == {"victim"}


def test_row_6_no_pod_is_evicted_for_a_group_that_does_not_fit(start):
    turned = start(filters=[NO] * 3, preempts={0, 1, 2}, permits=[WAIT] * 3)
    assert nominated(turned) == {}
    assert evicted(turned) == set()
    assert not [each for each in turned.requests if isinstance(each, DeletePod)]
    expected = ("Unschedulable", GROUP_IS_UNSCHEDULABLE)
    assert refusals(turned) == dict.fromkeys(("p0", "p1", "p2"), expected)


def test_row_7_members_that_fit_wait_with_those_that_preempt(start):
    turned = start(filters=[NO], preempts={0}, permits=[WAIT, WAIT, SUCCESS])
    hosts = nominated(turned)
    assert hosts.keys() == {"p0", "p1", "p2"}
    assert hosts["p0"] == "n3"
    waiting = ("Unschedulable", "pod group is waiting for preemption to complete")
    assert refusals(turned) == {"p0": ("Unschedulable", REJECTED), "p1": waiting, "p2": waiting}
    # All wait for what helps the member that was rejected.
    entries = [turned.entry(each) for each in turned.members]
    assert [(e.state, e.unschedulable_plugins) for e in entries] == [
        ("unschedulable", {"Test"})
    ] * 3


def test_what_members_wait_for_if_the_whole_group_preempts():
    low = pod("low", nodeName="n1", terminationGracePeriodSeconds=30)
    group = [group_builders.group("g", 2, priority=1), *pods("g", 2, priority=1)]
    config = group_builders.settings(WorkloadAwarePreemption=True)
    sim = Simulation([node("n0", 1), node("n1", 1), low, *group], config=config)
    sim.run(until=10.0)
    assert sim.pending == {
        "default/g-0": "pod group is unschedulable",  # It fits, without the other.
        "default/g-1": "0/2 nodes are available: 2 Insufficient cpu. "
        "preemption: not eligible due to workload aware preemption enabled",
    }


def test_row_8_a_member_without_a_way_out_plainly_fails(start):
    turned = start(filters=[NO, NO], preempts={0})
    assert nominated(turned).keys() == {"p0", "p2"}
    assert refusals(turned)["p1"] == ("Unschedulable", REJECTED)


def test_row_9_a_member_that_cannot_be_helped_does_not_stop_the_others(start):
    turned = start(filters=[unresolvable("no"), NO, NO])
    assert refusals(turned) == dict.fromkeys(("p0", "p1", "p2"), ("Unschedulable", REJECTED))


def test_row_10_an_error_ends_the_attempt_for_all(start):
    turned = start(filters=[SUCCESS, FAILED])
    reasons = refusals(turned)
    assert {reason for reason, _ in reasons.values()} == {"SchedulerError"}
    text = "failed to schedule other pod from a pod group: "
    assert reasons["p0"][1].startswith(text)
    assert not reasons["p1"][1].startswith(text)
    assert reasons["p2"] == reasons["p0"]
    assert turned.facts(turned.members[2], GroupDecided) == []


def test_row_11_an_error_clears_nominations(start):
    turned = start(filters=[NO], preempts={0}, permits=[SUCCESS, FAILED])
    assert nominated(turned) == {}
    assert evicted(turned) == set()


TOPOLOGY = {**GATES, "TopologyAwareWorkloadScheduling": True}


def in_placements(machine, *groups):
    """Members are tried in groups of nodes, none on n1; and which placements are scored."""
    scored = []

    def generate(cluster, group):
        return [GroupPlacement(names[0], cluster.table.named(names)) for names in groups]

    def score(cluster, group, placement, pods):
        scored.append(placement.name)
        return 50

    def keep_off(state, pod, node):
        return NO if node.name == "n1" else SUCCESS

    chooses = make("Test", placement_generate=generate, placement_score=score, filter=keep_off)
    turned = machine(chooses, featureGates=TOPOLOGY)
    turned.members = [member(f"p{i}") for i in range(3)]
    turned.add(gang(), *turned.members)
    turned.requests = turned.schedule_one()
    return turned, scored


def test_row_12_a_group_without_a_placement_fails_with_its_own_text(machine):
    turned, _ = in_placements(machine)
    expected = ("Unschedulable", "no feasible placements found")
    assert refusals(turned) == dict.fromkeys(("p0", "p1", "p2"), expected)
    assert patched(turned) == [("False", *expected)]


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        pytest.param([("n1",), ("n2", "n3")], [], id="31: one has room"),
        pytest.param([("n2",), ("n3",)], ["n2", "n3"], id="both have"),
    ],
)
def test_row_31_the_only_placement_with_room_is_taken_without_scoring(machine, groups, expected):
    turned, scored = in_placements(machine, *groups)
    assert bound(turned) == ["p0", "p1", "p2"]
    assert scored == expected


def test_row_13_members_are_tried_by_priority_then_by_age(machine):
    tried = []

    def note(state, pod, node):
        tried.append(pod.name)
        return SUCCESS

    turned = machine(make("Test", permit=note), featureGates=GATES)
    turned.add(member("a", priority=100), member("b", priority=200))
    turned.add(member("d", priority=150))
    turned.now = 1.0
    turned.add(member("c", priority=150))
    turned.schedule_one()
    assert tried[:4] == ["b", "d", "c", "a"]


def test_row_14_members_that_are_not_in_the_queue_are_left_out(machine):
    gates = make("Gates", pre_enqueue=lambda pod: NO if pod.name == "p1" else SUCCESS)
    turned = machine(gates, featureGates=GATES)
    pods = [member("p0"), member("p1"), member("p2", group="other")]
    turned.add(*pods)
    turned.requests = turned.schedule_one()
    assert bound(turned) == ["p0"]
    assert turned.where(pods[1]) == "gated"
    assert turned.where(pods[2]) == "active"


def test_row_15_terminating_members_are_skipped(machine):
    turned = machine(featureGates=GATES)
    pods = [member("p0"), member("p1")]
    turned.add(*pods)
    gone = replace(pods[1].metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    turned.update(replace(pods[1], metadata=gone))
    turned.requests = turned.schedule_one()
    assert bound(turned) == ["p0"]
    assert "skip schedule deleting pod: default/p1" in [
        getattr(each, "note", "") for each in turned.requests
    ]


def test_row_16_all_members_have_one_scheduler(machine):
    names = ("one", "two")
    profiles = [{"schedulerName": name} for name in names]
    turned = machine(profiles=profiles, featureGates=GATES)
    turned.members = [member(f"p{i}", scheduler_name=name) for i, name in enumerate(names)]
    turned.add(gang(), *turned.members)
    turned.requests = turned.schedule_one()
    text = "all pods in a single pod group should have the same .spec.schedulerName set"
    expected = ("SchedulerError", f'{text}, got: "two" and "one"')
    assert refusals(turned) == dict.fromkeys(("p0", "p1"), expected)
    assert not [each for each in turned.requests if isinstance(each, PatchPodGroupStatus)]


def test_the_node_of_a_member_whose_binding_fails_stays_nominated(start):
    turned = start()
    [first, *_] = [each for each in turned.requests if isinstance(each, BindPod)]
    turned.fail(BindPod)
    assert nominated(turned) == {first.pod.name: first.node}


def test_no_node_is_kept_for_members_of_a_gang_that_lost_its_quorum(start):
    turned = start(group=gang(count=3))
    turned.fail(BindPod)
    [name] = nominated(turned)
    lost = next(pod for pod in turned.members if pod.name != name)
    cleared = turned.delete(lost)
    assert nominated(turned) == {}
    patches = [each for each in cleared if isinstance(each, PatchPodStatus)]
    assert [(each.pod.name, each.nominated_node_name) for each in patches] == [(name, "")]


# Conditions

TRUE = Condition(type="PodGroupScheduled", status="True", reason="Scheduled")
FALSE = Condition(
    type="PodGroupScheduled",
    status="False",
    reason="Unschedulable",
    message="pod group is unschedulable",
    last_transition_time="2026-01-01T00:00:00Z",
)


def patched(turned):
    found = [each for each in turned.requests if isinstance(each, PatchPodGroupStatus)]
    return [
        (each.condition.status, each.condition.reason, each.condition.message) for each in found
    ]


@pytest.mark.parametrize(
    ("shown", "answers", "expected"),
    [
        pytest.param((), {}, [("True", "Scheduled", "")], id="scheduled"),
        pytest.param(
            (),
            {"filters": [NO] * 3},
            [("False", "Unschedulable", "pod group is unschedulable")],
            id="unschedulable",
        ),
        pytest.param((TRUE,), {"filters": [NO] * 3}, [], id="17: True stays, rejected"),
        pytest.param((TRUE,), {"filters": [FAILED]}, [], id="17: True stays, error"),
        pytest.param((FALSE,), {"filters": [NO] * 3}, [], id="nothing changes"),
        pytest.param((FALSE,), {}, [("True", "Scheduled", "")], id="scheduled at last"),
    ],
)
def test_the_condition_of_a_group(start, shown, answers, expected):
    assert patched(start(group=gang(conditions=shown), **answers)) == expected


def test_row_18_the_transition_time_moves_only_with_the_status(start):
    turned = start(group=gang(conditions=[FALSE], generation=4), filters=[FAILED])
    [request] = [each for each in turned.requests if isinstance(each, PatchPodGroupStatus)]
    condition = request.condition
    assert (condition.status, condition.reason) == ("False", "SchedulerError")
    assert condition.last_transition_time == FALSE.last_transition_time
    assert condition.observed_generation == 4


def test_row_19_a_group_that_is_gone_has_no_condition(machine):
    turned = machine(featureGates=GATES)
    turned.add(member("p0"))
    turned.requests = turned.schedule_one()
    assert (bound(turned), patched(turned)) == (["p0"], [])


def test_a_patch_that_failed_is_repeated_by_the_next_attempt(start):
    turned = start(filters=[NO] * 3)
    turned.fail(PatchPodGroupStatus)
    turned.add(make_node("n4"))
    turned.requests = turned.schedule_one()
    assert len(patched(turned)) == 1


# Gates


def test_without_the_gate_members_are_plain_pods(machine):
    turned = machine(plugin(permits=[WAIT] * 3))
    turned.add(gang(), *(member(f"p{i}") for i in range(3)))
    turned.schedule_one()
    assert len(turned.scheduler.cluster.waiting) == 1
    assert turned.scheduler.cluster.pod_groups is None
