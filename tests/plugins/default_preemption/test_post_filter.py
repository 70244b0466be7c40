"""Results of DefaultPreemption. Numbers are rows of the specification."""

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


# No candidates ----------------------------------------------------------------------------------


def test_1_an_unresolvable_node_is_no_candidate(bench, make):
    result = bench().add(make.node("n1", **TAINTED)).post_filter(make.pod("p", "high"))
    assert result.status == unschedulable(
        f"preemption: 0/1 nodes are available: 1 {NOT_HELPFUL}."
    ).by("DefaultPreemption")
    assert result.nominated == ""


def test_2_pods_of_equal_priority_are_no_victims(bench, make):
    there = make.pod("there", "high", node="n1")
    result = bench().add(make.node("n1"), there).post_filter(make.pod("p", "high"))
    assert result.status.message == f"preemption: 0/1 nodes are available: 1 {NO_VICTIMS}."
    assert result.nominated == ""


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
    result = cluster.post_filter(make.pod("p", "high"))
    assert result.status.message == (
        "preemption: 0/5 nodes are available: 1 Preemption is not helpful for scheduling, "
        "2 Insufficient cpu, 2 Insufficient memory, "
        "2 No preemption victims found for incoming pod."
    )


def test_5_a_pod_of_lower_priority_is_a_victim(bench, make):
    cluster = bench().add(make.node("n1", pods=1), make.pod("there", "low", "S", node="n1"))
    result = cluster.post_filter(make.pod("p", "high", "S"))
    assert (result.status, result.nominated) == (SUCCESS.by("DefaultPreemption"), "n1")
    assert [victim.name for victim in result.victims] == ["there"]


# Errors -----------------------------------------------------------------------------------------


class FailingRemove:
    """Raises in remove_pod for some nodes."""

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


def test_6_an_error_on_the_only_node_is_returned(bench, make):
    cluster = bench(FailingRemove).add(make.node("bad"), make.pod("there", "low", node="bad"))
    result = cluster.post_filter(make.pod("p", "high"))
    assert result.status.code is Code.ERROR
    assert result.status.message == (
        'preemption: running RemovePod on PreFilter plugin "test-plugin": failed to remove pod: p'
    )
    assert result.nominated is None


def test_6_errors_on_several_nodes_are_returned(bench, make):
    cluster = bench(FailingRemove)
    for name in ("bad1", "bad2"):
        cluster.add(make.node(name), make.pod(f"on-{name}", "low", node=name))
    text = 'running RemovePod on PreFilter plugin "test-plugin": failed to remove pod: p'
    assert cluster.post_filter(make.pod("p", "high")).status.message == f"preemption: {text}"


def test_7_an_error_is_ignored_if_another_node_is_a_candidate(bench, make):
    cluster = bench(FailingRemove)
    for name in ("bad", "good"):
        cluster.add(make.node(name), make.pod(f"on-{name}", "low", node=name))
    assert cluster.post_filter(make.pod("p", "high")).nominated == "good"


def test_8_a_node_without_victims_is_an_error(bench, make):
    class RejectsFirst:
        """Rejects the first call only."""

        name = "RejectsFirst"
        calls = 0

        def filter(self, state, pod, node):
            self.calls += 1
            return unschedulable("not yet") if self.calls == 1 else SUCCESS

    cluster = bench(RejectsFirst).add(make.node("n1"), make.pod("there", "low", "S", node="n1"))
    result = cluster.post_filter(make.pod("p", "high", "S"))
    text = 'preemption: expected at least one victim pod on node "n1"'
    assert (result.status.code, result.status.message) == (Code.ERROR, text)


# Victims ----------------------------------------------------------------------------------------


def test_9_pods_that_can_stay_are_reprieved(bench, make):
    cluster = bench().add(
        make.node("n1"),
        make.node("n2"),
        make.pod("small", "low", "S", node="n1"),
        make.pod("large", "mid", "L", node="n1"),
        make.pod("other", "mid", "L", node="n2"),
    )
    assert cluster.victims(make.pod("p", "high", "L")) == {"n1": ["large"], "n2": ["other"]}


def test_10_pods_of_higher_priority_are_reprieved_first(bench, make):
    cluster = bench().add(
        make.node("n1"),
        make.pod("small-mid", "mid", "S", node="n1"),
        make.pod("small-low", "low", "S", node="n1"),
        make.pod("medium-mid", "mid", "M", node="n1"),
        make.pod("small-high", "high", "S", node="n1"),
    )
    assert cluster.victims(make.pod("p", "high", "L")) == {"n1": ["medium-mid", "small-low"]}


def test_11_of_equal_pods_the_one_that_started_later_is_the_victim(bench, make):
    cluster = bench().add(
        make.node("n1"),
        make.pod("young", "low", "S", start=5, node="n1"),
        make.pod("old", "low", "S", start=4, node="n1"),
        make.pod("large", "high", "L", node="n1"),
    )
    assert cluster.victims(make.pod("p", "high", "S")) == {"n1": ["young"]}


def test_of_pods_that_have_not_started_the_one_that_came_first_is_the_victim(bench, make):
    cluster = bench().add(
        make.node("n1"),
        make.pod("first", "low", "M", node="n1"),
        make.pod("second", "low", "M", node="n1"),
    )
    assert cluster.victims(make.pod("p", "high", "M")) == {"n1": ["first"]}


def test_a_pod_that_has_not_started_is_the_victim_before_started_pods(bench, make):
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
EMPTY_SELECTOR = LabelSelector(match_labels={})


@pytest.mark.parametrize(
    ("sizes", "budget", "victims", "violations"),
    [
        pytest.param(
            "MM", {"allowed": 1}, ["p0", "p1"], 1, id="12: a budget that allows one disruption"
        ),
        pytest.param(
            "MM",
            {"allowed": 1, "disrupted": ["p0"]},
            ["p0", "p1"],
            0,
            id="13: one pod is being disrupted",
        ),
        pytest.param(
            "MM",
            {"allowed": 1, "disrupted": ["x"]},
            ["p0", "p1"],
            1,
            id="14: another pod is being disrupted",
        ),
        pytest.param(
            "SSL",
            {"allowed": 1, "disrupted": ["p2"]},
            ["p0", "p1", "p2"],
            1,
            id="15: one of three is being disrupted",
        ),
        pytest.param(
            "MM", {"selector": EMPTY_SELECTOR}, ["p0", "p1"], 0, id="16: an empty selector"
        ),
        pytest.param(
            "MM",
            {
                "selector": LabelSelector(
                    match_expressions=(LabelSelectorRequirement(key="app", operator="Odd"),)
                )
            },
            ["p0", "p1"],
            0,
            id="an invalid selector",
        ),
    ],
)
def test_12_to_16_one_budget(bench, make, sizes, budget, victims, violations):
    there = [
        make.pod(f"p{i}", "mid", size, start=i, node="n1", **GUARDED)
        for i, size in enumerate(sizes)
    ]
    cluster = bench().add(make.node("n1"), make.budget(**budget), *there)
    (found,) = cluster.post_filter(make.pod("p", "high")).candidates
    assert [victim.name for victim in found.victims] == victims
    assert found.violations == violations
    assert found.budgets == (("default/budget",) if violations else ())


def test_16_a_budget_without_a_selector(bench, make):
    budget = make.budget()
    budget = replace(budget, spec=replace(budget.spec, selector=None))
    there = make.pod("there", "low", node="n1", **GUARDED)
    (found,) = (
        bench().add(make.node("n1"), budget, there).post_filter(make.pod("p", "high")).candidates
    )
    assert found.violations == 0


def test_17_one_of_two_budgets_is_exhausted(bench, make):
    both = LabelSelector(match_labels={"app": "both"})
    cluster = bench().add(
        make.node("n1"),
        make.budget("one", 1, both),
        make.budget("two", 0, both),
        make.pod("there", "low", node="n1", labels={"app": "both"}),
    )
    (found,) = cluster.post_filter(make.pod("p", "high")).candidates
    assert (found.violations, found.budgets) == (1, ("default/two",))


def test_18_a_pod_without_labels_is_not_protected(bench, make):
    without = LabelSelector(
        match_expressions=(LabelSelectorRequirement(key="app", operator="DoesNotExist"),)
    )
    cluster = bench().add(
        make.node("n1"), make.budget("all", 0, without), make.pod("there", "low", node="n1")
    )
    (found,) = cluster.post_filter(make.pod("p", "high")).candidates
    assert found.violations == 0


def test_other_namespaces_have_other_budgets(bench, make):
    there = make.pod("there", "low", node="n1", namespace="other", **GUARDED)
    (found,) = (
        bench()
        .add(make.node("n1"), make.budget(), there)
        .post_filter(make.pod("p", "high"))
        .candidates
    )
    assert found.violations == 0


def test_19_with_equal_violations_the_lower_priority_decides(bench, make):
    cluster = bench().add(
        make.budget("loose", 9),
        make.budget("tight", 0),
        make.node("n1"),
        make.node("n2"),
        make.pod("high", "high", "M", node="n1", labels={"app": "loose"}),
        make.pod("low", "low", "L", node="n1", labels={"app": "tight"}),
        make.pod("mid", "mid", node="n2", labels={"app": "tight"}),
    )
    result = cluster.post_filter(make.pod("p", "vhigh"))
    assert {each.node: each.violations for each in result.candidates} == {"n1": 1, "n2": 1}
    assert result.nominated == "n2"


# Number of candidates ---------------------------------------------------------------------------


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
        pytest.param(
            4, (2, 5), ["node1", "node3"], id="21: nodes that are no candidates are skipped"
        ),
        pytest.param(1, (), ["node2", "node3"], id="22: another offset"),
        pytest.param(3, (), ["node4", "node5"], id="22: a third offset"),
    ],
)
def test_20_to_22_the_search_starts_at_a_random_node(bench, make, offset, impossible, found):
    cluster = five(bench, make, impossible, **FORTY)
    assert list(cluster.victims(make.pod("p", "high"), offset)) == found


def test_23_the_search_continues_until_a_candidate_without_violations(bench, make):
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
def test_24_25_number_of_candidates(nodes, enough):
    assert candidates.enough(nodes, 10, 100) == enough


# Node selection----------------------------------------------------------------------------------

CHOICES = [
    pytest.param(
        [[("mid", 0)], [("mid", 0)], [("low", 0)]],
        2,
        "the highest priority of its victims is lower than elsewhere",
        id="28: the lowest priority",
    ),
    pytest.param(
        [[("mid", 0), ("low", 0)], [("mid", 0), ("neg", 0)]],
        1,
        "the sum of its victims' priorities is the lowest",
        id="29: the smaller sum",
    ),
    pytest.param(
        [
            [("mid", 0), ("mid", 0), ("neg", 0), ("neg", 0)],
            [("mid", 0), ("neg", 0)],
            [("mid", 0), ("neg", 0), ("low", 0)],
        ],
        1,
        "the sum of its victims' priorities is the lowest",
        id="30: fewer negative ones",
    ),
    pytest.param(
        [[("low", 2)], [("low", 3)], [("low", 1)]],
        1,
        "its victim with the highest priority started last",
        id="31: the victim that started last",
    ),
    pytest.param(
        [[("low", 4), ("low", 2)], [("low", 5), ("low", 1)], [("low", 3), ("low", 6)]],
        2,
        "its victim with the highest priority started last",
        id="32: the earliest start on each node counts",
    ),
    pytest.param(
        [[("mid", 2), ("low", 1)], [("mid", 6), ("low", 0)], [("mid", 5), ("low", 9)]],
        1,
        "its victim with the highest priority started last",
        id="33: the start of the victims of highest priority counts",
    ),
    pytest.param(
        [[("low", 1)], [("low", 1)], [("mid", 1)]],
        0,
        "it equals another in every criterion and was evaluated first",
        id="a tie",
    ),
    pytest.param([[("low", 1)]], 0, "preemption helps on no other node", id="the only one"),
]


@pytest.mark.parametrize(("nodes", "best", "why"), CHOICES)
def test_28_to_33_criteria_for_the_nominated_node(bench, make, nodes, best, why):
    cluster = bench()
    for n, pods in enumerate(nodes):
        cluster.add(make.node(f"n{n}", size=1200))
        for i, (priority, start) in enumerate(pods):
            size = 1200 // len(pods)  # The node is full, and the pod needs all of it.
            cluster.add(make.pod(f"p{n}-{i}", priority, size, start=start, node=f"n{n}"))
    result = cluster.post_filter(make.pod("p", "high", 1200))
    assert (result.nominated, result.why()) == (f"n{best}", why)


def test_fewest_violations_is_the_first_criterion(bench, make):
    cluster = bench().add(
        make.budget(),
        make.node("n1"),
        make.node("n2"),
        make.pod("guarded", "neg", node="n1", labels={"app": "budget"}),
        make.pod("other", "mid", node="n2"),
    )
    result = cluster.post_filter(make.pod("p", "high"))
    assert result.nominated == "n2"
    assert result.why() == "it violates the fewest disruption budgets"


def test_fewer_victims_decide_when_priority_sums_are_equal(bench, make):
    # Priorities are offset by the lowest one, so a pod of that priority adds nothing to the sum.
    lowest = -(1 << 31)
    cluster = bench().add(make.node("n1", size=1200), make.node("n2", size=1200))
    for name, size in (("a", 600), ("b", 600)):
        cluster.add(make.pod(name, lowest, size, start=1, node="n1"))
    cluster.add(make.pod("c", lowest, 1200, start=1, node="n2"))
    result = cluster.post_filter(make.pod("p", "high", 1200))
    assert (result.nominated, result.why()) == ("n2", "it has the fewest victims")


# Other filters ----------------------------------------------------------------------------------


def test_26_a_victim_reduces_the_topology_skew(bench, make):
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


def test_27_only_the_pod_with_matching_anti_affinity_is_a_victim(bench, make):
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


def test_nominated_pods_need_room_too(bench, make):
    cluster = bench().add(
        make.node("n1"),
        make.pod("a", "low", "M", start=0, node="n1"),
        make.pod("b", "low", "M", start=1, node="n1"),
    )
    waiting = make.pod("waiting", "high", "M")
    alone = cluster.decide(make.pod("p", "high", "M")).post_filter
    assert [victim.name for victim in alone.victims] == ["b"]
    row = cluster.scheduler.cluster.table.row_of["n1"]
    cluster.scheduler.cluster.nomination_changes.add(row)
    result = cluster.decide(
        make.pod("p", "high", "M"), nominated_pods={"n1": [waiting]}
    ).post_filter
    assert [victim.name for victim in result.victims] == ["a", "b"]


# Eligibility-------------------------------------------------------------------------------------

LEAVING_FOR_ANOTHER = Condition(
    type="DisruptionTarget", status="True", reason="PreemptionByScheduler"
)
EVICTED = Condition(type="DisruptionTarget", status="True", reason="EvictionByEvictionAPI")
TERMINATING = "preemption: not eligible due to a terminating pod on the nominated node."


def test_40_policy_never(bench, make):
    cluster = bench().add(make.node("n1"), make.pod("there", "low", node="n1"))
    result = cluster.post_filter(make.pod("p", "high", preemption_policy="Never"))
    assert result.status.message == "preemption: not eligible due to preemptionPolicy=Never."
    assert (result.nominated, result.victims) == (None, ())


@pytest.mark.parametrize(
    ("conditions", "priority", "node", "text"),
    [
        pytest.param(
            [LEAVING_FOR_ANOTHER], "low", {}, TERMINATING, id="42: victims are terminating"
        ),
        pytest.param([], "low", {}, "", id="43: a pod terminates for another reason"),
        pytest.param(
            [EVICTED, LEAVING_FOR_ANOTHER],
            "low",
            {},
            "",
            id="the first disruption condition counts",
        ),
        pytest.param(
            [LEAVING_FOR_ANOTHER], "high", {}, "", id="a pod of equal priority terminates"
        ),
        pytest.param([LEAVING_FOR_ANOTHER], "low", TAINTED, "", id="41: the node is unresolvable"),
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
    result = cluster.post_filter(preemptor)
    assert result.status.message == text
    assert bool(result.victims) == (not text)


def test_a_deleted_nominated_node_does_not_block_preemption(bench, make):
    cluster = bench().add(make.node("n1"), make.pod("there", "low", node="n1"))
    preemptor = with_status(make.pod("p", "high"), nominated_node_name="unheard")
    assert cluster.post_filter(preemptor).nominated == "n1"


def test_53_the_pod_is_gated_while_victims_terminate(make):
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


def test_a_pod_that_pre_filter_rejects_may_preempt_on_any_node(bench, make):
    class Early:
        """Rejects the pod in pre_filter as unschedulable."""

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


def test_cached_results_are_invalidated_by_a_change(bench, make):
    cluster = bench().add(make.node("n1"), make.pod("first", "low", node="n1"))
    assert cluster.victims(make.pod("p", "high")) == {"n1": ["first"]}
    cluster.add(make.node("n2"), make.pod("second", "neg", node="n2"))
    assert cluster.post_filter(make.pod("p", "high")).nominated == "n2"
    cluster.add(make.budget("guard"), make.budget("other"))
    guarded = make.pod("second", "neg", node="n2", labels={"app": "guard"})
    cluster.add(guarded)
    result = cluster.post_filter(make.pod("p", "high"))
    assert result.nominated == "n1"
    cluster.add(make.budget("guard", allowed=1))
    assert cluster.post_filter(make.pod("p", "high")).nominated == "n2"
