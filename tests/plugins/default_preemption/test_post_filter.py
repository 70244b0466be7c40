"""What DefaultPreemption answers; the numbers are rows of the specification."""

import pytest
from msgspec.structs import replace

from moorage.api.meta import Condition, LabelSelector, LabelSelectorRequirement
from moorage.api.node import Taint
from moorage.api.pod import Affinity, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from moorage.errors import PluginFailure
from moorage.framework.status import SUCCESS, Code, unschedulable
from moorage.plugins.default_preemption import DefaultPreemption, candidates

TAINTED = {"taints": [Taint(key="k", effect="NoSchedule")]}
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"


def with_status(pod, **fields):
    return replace(pod, status=replace(pod.status, **fields))


# Nothing helps ----------------------------------------------------------------------------------


def test_1_a_node_that_is_refused_for_good(bench, make):
    answer = bench().add(make.node("n1", **TAINTED)).ask(make.pod("p", "high"))
    assert answer.status == unschedulable(
        f"preemption: 0/1 nodes are available: 1 {NOT_HELPFUL}."
    ).by("DefaultPreemption")
    assert answer.nominated == ""


def test_2_only_equals_on_a_full_node(bench, make):
    there = make.pod("there", "high", node="n1")
    answer = bench().add(make.node("n1"), there).ask(make.pod("p", "high"))
    assert answer.status.message == f"preemption: 0/1 nodes are available: 1 {NO_VICTIMS}."
    assert answer.nominated == ""


def test_3_4_reasons_are_counted_over_all_nodes(bench, make):
    cluster = bench().add(
        make.node("tainted", **TAINTED),
        *(make.node(name) for name in ("a", "b", "c", "d")),
        make.pod("a1", "vhigh", "L", node="a"),
        make.pod("a2", "low", "M", node="a"),
        make.pod("b1", "vhigh", node="b"),
        make.pod("c1", "vhigh", "L", node="c"),
        make.pod("c2", "low", "S", node="c"),
        make.pod("d1", "high", node="d"),
    )
    answer = cluster.ask(make.pod("p", "high"))
    assert answer.status.message == (
        "preemption: 0/5 nodes are available: 1 Preemption is not helpful for scheduling, "
        "2 Insufficient cpu, 2 Insufficient memory, "
        "2 No preemption victims found for incoming pod."
    )


def test_5_somebody_makes_room(bench, make):
    cluster = bench().add(make.node("n1", pods=1), make.pod("there", "low", "S", node="n1"))
    answer = cluster.ask(make.pod("p", "high", "S"))
    assert (answer.status, answer.nominated) == (SUCCESS.by("DefaultPreemption"), "n1")
    assert [victim.name for victim in answer.victims] == ["there"]


# Trouble ----------------------------------------------------------------------------------------


class Shaky:
    """Cannot cope with pods that leave some nodes."""

    name = "test-plugin"

    def pre_filter(self, state, pod):
        return SUCCESS

    def filter(self, state, pod, node):
        return SUCCESS

    def add_pod(self, state, pod, other, node):
        pass

    def remove_pod(self, state, pod, other, node):
        if node.name.startswith("bad"):
            raise PluginFailure(f"failed to remove pod: {pod.name}")


def test_6_a_hook_fails_on_the_only_node(bench, make):
    cluster = bench(Shaky).add(make.node("bad"), make.pod("there", "low", node="bad"))
    answer = cluster.ask(make.pod("p", "high"))
    assert answer.status.code is Code.ERROR
    assert answer.status.message == (
        'preemption: running RemovePod on PreFilter plugin "test-plugin": failed to remove pod: p'
    )
    assert answer.nominated is None


def test_6_a_hook_fails_on_several_nodes(bench, make):
    cluster = bench(Shaky)
    for name in ("bad1", "bad2"):
        cluster.add(make.node(name), make.pod(f"on-{name}", "low", node=name))
    text = 'running RemovePod on PreFilter plugin "test-plugin": failed to remove pod: p'
    assert cluster.ask(make.pod("p", "high")).status.message == f"preemption: {text}"


def test_7_a_hook_fails_elsewhere(bench, make):
    cluster = bench(Shaky)
    for name in ("bad", "good"):
        cluster.add(make.node(name), make.pod(f"on-{name}", "low", node=name))
    assert cluster.ask(make.pod("p", "high")).nominated == "good"


def test_8_nobody_has_to_leave(bench, make):
    class Moody:
        """Refuses a pod until it is asked again."""

        name = "Moody"
        asked = 0

        def filter(self, state, pod, node):
            self.asked += 1
            return unschedulable("not yet") if self.asked == 1 else SUCCESS

    cluster = bench(Moody).add(make.node("n1"), make.pod("there", "low", "S", node="n1"))
    answer = cluster.ask(make.pod("p", "high", "S"))
    text = 'preemption: expected at least one victim pod on node "n1"'
    assert (answer.status.code, answer.status.message) == (Code.ERROR, text)


# Victims ----------------------------------------------------------------------------------------


def test_9_who_can_stay_stays(bench, make):
    cluster = bench().add(
        make.node("n1"),
        make.node("n2"),
        make.pod("small", "low", "S", node="n1"),
        make.pod("large", "mid", "L", node="n1"),
        make.pod("other", "mid", "L", node="n2"),
    )
    assert cluster.victims(make.pod("p", "high", "L")) == {"n1": ["large"], "n2": ["other"]}


def test_10_the_most_important_come_back_first(bench, make):
    cluster = bench().add(
        make.node("n1"),
        make.pod("small-mid", "mid", "S", node="n1"),
        make.pod("small-low", "low", "S", node="n1"),
        make.pod("medium-mid", "mid", "M", node="n1"),
        make.pod("small-high", "high", "S", node="n1"),
    )
    assert cluster.victims(make.pod("p", "high", "L")) == {"n1": ["medium-mid", "small-low"]}


def test_11_of_equals_who_started_later_leaves(bench, make):
    cluster = bench().add(
        make.node("n1"),
        make.pod("young", "low", "S", start=5, node="n1"),
        make.pod("old", "low", "S", start=4, node="n1"),
        make.pod("large", "high", "L", node="n1"),
    )
    assert cluster.victims(make.pod("p", "high", "S")) == {"n1": ["young"]}


def test_who_has_not_started_leaves_before_all_that_have(bench, make):
    cluster = bench().add(
        make.node("n1", 200),
        make.pod("not-started", "low", "S", node="n1"),
        make.pod("started", "low", "S", start=59, node="n1"),
    )
    assert cluster.victims(make.pod("p", "high", "S")) == {"n1": ["not-started"]}


def test_terminating_and_assumed_pods_are_victims_too(bench, make):
    leaving = make.pod("leaving", "low", node="n1")
    meta = replace(leaving.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    cluster = bench().add(make.node("n1"), replace(leaving, metadata=meta))
    assert cluster.victims(make.pod("p", "high")) == {"n1": ["leaving"]}


# Disruption budgets -----------------------------------------------------------------------------

GUARDED = {"labels": {"app": "budget"}}
NOBODY = LabelSelector(match_labels={})


@pytest.mark.parametrize(
    ("sizes", "budget", "victims", "violations"),
    [
        pytest.param(
            "MM", {"allowed": 1}, ["p0", "p1"], 1, id="12: a budget that suffices for one"
        ),
        pytest.param(
            "MM", {"allowed": 1, "disrupted": ["p0"]}, ["p0", "p1"], 0, id="13: one is leaving"
        ),
        pytest.param(
            "MM", {"allowed": 1, "disrupted": ["x"]}, ["p0", "p1"], 1, id="14: somebody else is"
        ),
        pytest.param(
            "SSL",
            {"allowed": 1, "disrupted": ["p2"]},
            ["p0", "p1", "p2"],
            1,
            id="15: of three one is leaving",
        ),
        pytest.param("MM", {"selector": NOBODY}, ["p0", "p1"], 0, id="16: an empty selector"),
        pytest.param(
            "MM",
            {
                "selector": LabelSelector(
                    match_expressions=(LabelSelectorRequirement(key="app", operator="Odd"),)
                )
            },
            ["p0", "p1"],
            0,
            id="a selector that is none",
        ),
    ],
)
def test_12_to_16_one_budget(bench, make, sizes, budget, victims, violations):
    there = [
        make.pod(f"p{i}", "mid", size, start=i, node="n1", **GUARDED)
        for i, size in enumerate(sizes)
    ]
    cluster = bench().add(make.node("n1"), make.budget(**budget), *there)
    (found,) = cluster.ask(make.pod("p", "high")).candidates
    assert [victim.name for victim in found.victims] == victims
    assert found.violations == violations
    assert found.budgets == (("default/budget",) if violations else ())


def test_16_no_selector_at_all(bench, make):
    budget = make.budget()
    budget = replace(budget, spec=replace(budget.spec, selector=None))
    there = make.pod("there", "low", node="n1", **GUARDED)
    (found,) = bench().add(make.node("n1"), budget, there).ask(make.pod("p", "high")).candidates
    assert found.violations == 0


def test_17_of_two_budgets_one_is_spent(bench, make):
    both = LabelSelector(match_labels={"app": "both"})
    cluster = bench().add(
        make.node("n1"),
        make.budget("one", 1, both),
        make.budget("two", 0, both),
        make.pod("there", "low", node="n1", labels={"app": "both"}),
    )
    (found,) = cluster.ask(make.pod("p", "high")).candidates
    assert (found.violations, found.budgets) == (1, ("default/two",))


def test_18_a_pod_without_labels_is_not_protected(bench, make):
    without = LabelSelector(
        match_expressions=(LabelSelectorRequirement(key="app", operator="DoesNotExist"),)
    )
    cluster = bench().add(
        make.node("n1"), make.budget("all", 0, without), make.pod("there", "low", node="n1")
    )
    (found,) = cluster.ask(make.pod("p", "high")).candidates
    assert found.violations == 0


def test_other_namespaces_have_other_budgets(bench, make):
    there = make.pod("there", "low", node="n1", namespace="other", **GUARDED)
    (found,) = (
        bench().add(make.node("n1"), make.budget(), there).ask(make.pod("p", "high")).candidates
    )
    assert found.violations == 0


def test_19_equal_violations_then_the_lower_priority(bench, make):
    cluster = bench().add(
        make.budget("loose", 9),
        make.budget("tight", 0),
        make.node("n1"),
        make.node("n2"),
        make.pod("high", "high", "M", node="n1", labels={"app": "loose"}),
        make.pod("low", "low", "L", node="n1", labels={"app": "tight"}),
        make.pod("mid", "mid", node="n2", labels={"app": "tight"}),
    )
    answer = cluster.ask(make.pod("p", "vhigh"))
    assert {each.node: each.violations for each in answer.candidates} == {"n1": 1, "n2": 1}
    assert answer.nominated == "n2"


# How many nodes are looked at -------------------------------------------------------------------


def five(bench, make, impossible=(), guarded=(), **args):
    cluster = bench(**args).add(make.budget())
    for i in range(1, 6):
        priority = "vhigh" if i in impossible else "low"
        labels = {"app": "budget"} if i in guarded else {}
        there = make.pod(f"on-{i}", priority, node=f"node{i}", labels=labels)
        cluster.add(make.node(f"node{i}"), there)
    return cluster


FORTY = {"minCandidateNodesPercentage": 40, "minCandidateNodesAbsolute": 1}


@pytest.mark.parametrize(
    ("offset", "impossible", "found"),
    [
        pytest.param(4, (), ["node5", "node1"], id="20: two of five are enough"),
        pytest.param(4, (2, 5), ["node1", "node3"], id="21: those that help not are passed over"),
        pytest.param(1, (), ["node2", "node3"], id="22: another start"),
        pytest.param(3, (), ["node4", "node5"], id="22: and another"),
    ],
)
def test_20_to_22_a_walk_from_a_random_node(bench, make, offset, impossible, found):
    cluster = five(bench, make, impossible, **FORTY)
    assert list(cluster.victims(make.pod("p", "high"), offset)) == found


def test_23_the_walk_goes_on_for_a_node_without_violations(bench, make):
    args = {"minCandidateNodesPercentage": 40, "minCandidateNodesAbsolute": 2}
    cluster = five(bench, make, guarded=(5, 1, 2), **args)
    assert list(cluster.victims(make.pod("p", "high"), 4)) == ["node3", "node5", "node1"]


@pytest.mark.parametrize(
    ("nodes", "enough"),
    [
        pytest.param(6, 6, id="24: few nodes"),
        pytest.param(1500, 150, id="25: a tenth"),
        pytest.param(500, 100, id="a hundred at least"),
    ],
)
def test_24_25_how_many_are_enough(nodes, enough):
    assert candidates.enough(nodes, 10, 100) == enough


# Which node -------------------------------------------------------------------------------------

CHOICES = [
    pytest.param(
        [[("mid", 0)], [("mid", 0)], [("low", 0)]],
        2,
        "the most important pod that has to leave is less important than elsewhere",
        id="28: the lowest priority",
    ),
    pytest.param(
        [[("mid", 0), ("low", 0)], [("mid", 0), ("neg", 0)]],
        1,
        "the priorities of the pods that have to leave add up to the least",
        id="29: the smaller sum",
    ),
    pytest.param(
        [
            [("mid", 0), ("mid", 0), ("neg", 0), ("neg", 0)],
            [("mid", 0), ("neg", 0)],
            [("mid", 0), ("neg", 0), ("low", 0)],
        ],
        1,
        "the priorities of the pods that have to leave add up to the least",
        id="30: fewer negative ones",
    ),
    pytest.param(
        [[("low", 2)], [("low", 3)], [("low", 1)]],
        1,
        "the most important pod that has to leave was started last",
        id="31: who started last",
    ),
    pytest.param(
        [[("low", 4), ("low", 2)], [("low", 5), ("low", 1)], [("low", 3), ("low", 6)]],
        2,
        "the most important pod that has to leave was started last",
        id="32: the earliest start of each counts",
    ),
    pytest.param(
        [[("mid", 2), ("low", 1)], [("mid", 6), ("low", 0)], [("mid", 5), ("low", 9)]],
        1,
        "the most important pod that has to leave was started last",
        id="33: of the most important ones",
    ),
    pytest.param(
        [[("low", 1)], [("low", 1)], [("mid", 1)]],
        0,
        "nothing tells it from another, and it was looked at first",
        id="a tie",
    ),
    pytest.param([[("low", 1)]], 0, "there is no other node where it helps", id="the only one"),
]


@pytest.mark.parametrize(("nodes", "best", "why"), CHOICES)
def test_28_to_33_the_least_harm(bench, make, nodes, best, why):
    cluster = bench()
    for n, pods in enumerate(nodes):
        cluster.add(make.node(f"n{n}", size=1200))
        for i, (priority, start) in enumerate(pods):
            size = 1200 // len(pods)  # The node is full, and the pod needs all of it.
            cluster.add(make.pod(f"p{n}-{i}", priority, size, start=start, node=f"n{n}"))
    answer = cluster.ask(make.pod("p", "high", 1200))
    assert (answer.nominated, answer.why) == (f"n{best}", why)


def test_fewest_violations_before_all_else(bench, make):
    cluster = bench().add(
        make.budget(),
        make.node("n1"),
        make.node("n2"),
        make.pod("guarded", "neg", node="n1", labels={"app": "budget"}),
        make.pod("other", "mid", node="n2"),
    )
    answer = cluster.ask(make.pod("p", "high"))
    assert answer.nominated == "n2"
    assert answer.why == "it goes against the fewest disruption budgets"


def test_fewer_victims_of_the_same_sum(bench, make):
    # Priorities count from the lowest that there is, where a pod more adds nothing to the sum.
    lowest = -(1 << 31)
    cluster = bench().add(make.node("n1", size=1200), make.node("n2", size=1200))
    for name, size in (("a", 600), ("b", 600)):
        cluster.add(make.pod(name, lowest, size, start=1, node="n1"))
    cluster.add(make.pod("c", lowest, 1200, start=1, node="n2"))
    answer = cluster.ask(make.pod("p", "high", 1200))
    assert (answer.nominated, answer.why) == ("n2", "the fewest pods have to leave")


# Other filters ----------------------------------------------------------------------------------


def test_26_spread_is_mended_by_one_who_leaves(bench, make):
    spread = TopologySpreadConstraint(
        max_skew=1,
        topology_key="zone",
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels={"foo": "bar"}),
    )
    foo = {"labels": {"foo": "bar"}}
    cluster = bench().add(
        make.node("node-a", labels={"zone": "zone1"}),
        make.node("node-b", labels={"zone": "zone1"}),
        make.node("node-x", labels={"zone": "zone2"}),
        make.pod("a1", "high", "S", node="node-a", **foo),
        make.pod("a2", "low", "S", node="node-a", **foo),
        make.pod("b1", "low", "S", node="node-b", **foo),
        make.pod("x1", "vhigh", "XL", node="node-x"),
        make.pod("x2", "vhigh", 0, node="node-x", **foo),
        make.pod("x3", "vhigh", 0, node="node-x", **foo),
    )
    preemptor = make.pod("p", "high", "S", topology_spread_constraints=(spread,), **foo)
    assert cluster.victims(preemptor) == {"node-a": ["a2"], "node-b": ["b1"]}


def test_27_only_who_repels_the_pod_leaves(bench, make):
    term = PodAffinityTerm(
        label_selector=LabelSelector(match_labels={"app": "new"}), topology_key="host"
    )
    repels = Affinity(
        pod_anti_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    )
    cluster = bench().add(
        make.node("n1", labels={"host": "n1"}),
        make.pod("repels", "mid", "S", node="n1", affinity=repels),
        make.pod("other", "low", "S", node="n1"),
    )
    assert cluster.victims(make.pod("p", "high", "S", labels={"app": "new"})) == {"n1": ["repels"]}


def test_promised_pods_need_room_beside_the_victims(bench, make):
    cluster = bench().add(
        make.node("n1"), make.pod("a", "low", "M", node="n1"), make.pod("b", "low", "M", node="n1")
    )
    waiting = make.pod("waiting", "high", "M")
    alone = cluster.decide(make.pod("p", "high", "M")).post_filter
    assert [victim.name for victim in alone.victims] == ["b"]
    row = cluster.scheduler.cluster.table.row_of["n1"]
    cluster.scheduler.cluster.nomination_changes.add(row)
    beside = cluster.decide(make.pod("p", "high", "M"), promised={"n1": [waiting]}).post_filter
    assert [victim.name for victim in beside.victims] == ["a", "b"]


# Who may ----------------------------------------------------------------------------------------

LEAVING_FOR_ANOTHER = Condition(
    type="DisruptionTarget", status="True", reason="PreemptionByScheduler"
)
EVICTED = Condition(type="DisruptionTarget", status="True", reason="EvictionByEvictionAPI")
TERMINATING = "preemption: not eligible due to a terminating pod on the nominated node."


def test_40_policy_never(bench, make):
    cluster = bench().add(make.node("n1"), make.pod("there", "low", node="n1"))
    answer = cluster.ask(make.pod("p", "high", preemption_policy="Never"))
    assert answer.status.message == "preemption: not eligible due to preemptionPolicy=Never."
    assert (answer.nominated, answer.victims) == (None, ())


@pytest.mark.parametrize(
    ("conditions", "priority", "node", "text"),
    [
        pytest.param([LEAVING_FOR_ANOTHER], "low", {}, TERMINATING, id="42: victims are leaving"),
        pytest.param([], "low", {}, "", id="43: somebody leaves for reasons of his own"),
        pytest.param([EVICTED, LEAVING_FOR_ANOTHER], "low", {}, "", id="the first mark counts"),
        pytest.param([LEAVING_FOR_ANOTHER], "high", {}, "", id="an equal leaves"),
        pytest.param([LEAVING_FOR_ANOTHER], "low", TAINTED, "", id="41: the node is out for good"),
    ],
)
def test_41_to_43_terminating_pods_on_the_nominated_node(
    bench, make, conditions, priority, node, text
):
    leaving = with_status(make.pod("leaving", priority, node="n1"), conditions=tuple(conditions))
    meta = replace(leaving.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    cluster = bench().add(
        make.node("n1", **node),
        make.node("n2"),
        replace(leaving, metadata=meta),
        make.pod("there", "mid", node="n2"),
    )
    preemptor = with_status(make.pod("p", "high"), nominated_node_name="n1")
    answer = cluster.ask(preemptor)
    assert answer.status.message == text
    assert bool(answer.victims) == (not text)


def test_a_nominated_node_that_is_gone(bench, make):
    cluster = bench().add(make.node("n1"), make.pod("there", "low", node="n1"))
    preemptor = with_status(make.pod("p", "high"), nominated_node_name="unheard")
    assert cluster.ask(preemptor).nominated == "n1"


def test_53_held_back_while_victims_leave(make):
    plugin = DefaultPreemption()
    pod, other = make.pod("p", "high"), make.pod("other", "high")
    plugin.preemption_started(pod)
    assert plugin.pre_enqueue(pod).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert plugin.pre_enqueue(pod).message == (
        "waiting for the preemption for this pod to be finished"
    )
    assert plugin.pre_enqueue(other) is SUCCESS
    plugin.preemption_finished(pod)
    assert plugin.pre_enqueue(pod) is SUCCESS


def test_a_pod_refused_for_all_nodes_may_preempt_on_any(bench, make):
    class Early:
        """Refuses the pod before any node is looked at, though not for good."""

        name = "Early"

        def pre_filter(self, state, pod):
            return unschedulable("not now") if pod.name == "p" else SUCCESS

    cluster = bench(Early).add(
        make.node("n1"),
        make.node("n2", **TAINTED),
        make.node("n3"),
        make.pod("there", "low", node="n1"),
        make.pod("too-high", "vhigh", node="n3"),
        make.pod("tainted", "low", node="n2"),
    )
    decision = cluster.decide(make.pod("p", "high"))
    assert decision.diagnosis.message == "0/3 nodes are available: not now."
    assert decision.post_filter.nominated == "n1"
    assert [each.node for each in decision.post_filter.candidates] == ["n1"]


def test_what_is_kept_does_not_outlive_a_change(bench, make):
    cluster = bench().add(make.node("n1"), make.pod("first", "low", node="n1"))
    assert cluster.victims(make.pod("p", "high")) == {"n1": ["first"]}
    cluster.add(make.node("n2"), make.pod("second", "neg", node="n2"))
    assert cluster.ask(make.pod("p", "high")).nominated == "n2"
    cluster.add(make.budget("guard"), make.budget("other"))
    guarded = make.pod("second", "neg", node="n2", labels={"app": "guard"})
    cluster.add(guarded)
    answer = cluster.ask(make.pod("p", "high"))
    assert answer.nominated == "n1"
    cluster.add(make.budget("guard", allowed=1))
    assert cluster.ask(make.pod("p", "high")).nominated == "n2"
