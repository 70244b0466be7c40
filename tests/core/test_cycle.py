"""The scheduling cycle of one pod. Numbers in names are rows of the specification."""

from collections import Counter
from random import Random

import pytest
from msgspec.structs import replace
from tests.saying import make

from moorage.api import config
from moorage.api.pod import PodStatus
from moorage.core import diagnosis
from moorage.core.cycle import SchedulingCycle
from moorage.core.journal import Decided
from moorage.errors import PluginFailure
from moorage.framework.post_filter import PostFiltered
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    error,
    only_nodes,
    pending,
    unresolvable,
    unschedulable,
)
from moorage.testing import make_node, make_pod

POD = make_pod("p")
NO = unschedulable("no")
NAMES = ["n1", "n2", "n3"]


def per_node(**results):
    """A method that returns one result per node, SUCCESS by default, and raises exceptions."""

    def method(state, pod, node):
        result = results.get(node.name, SUCCESS)
        if isinstance(result, Exception):
            raise result
        return result

    return method


def nominated(pod, node):
    return replace(pod, status=PodStatus(nominated_node_name=node))


def decide(run, pod=POD, *, nominated_pods=None, seed=0, now=0.0):
    scheduler = run.scheduler
    cycle = scheduler.cycle
    if nominated_pods is not None or seed:
        cycle = SchedulingCycle(
            scheduler.cluster, scheduler.templates, nominated_pods or {}, Random(seed)
        )
    chosen = scheduler.profiles[pod.spec.scheduler_name]
    return cycle.decide(chosen, pod, scheduler.templates.of(pod), now)


# Selecting a node


def test_the_node_with_the_highest_score_is_selected(machine):
    scores = {"n1": 10, "n2": 30, "n3": 20}
    run = machine(make("A", score=lambda state, pod, node: scores[node.name]))
    decision = decide(run)
    assert (decision.node, decision.status, decision.feasible_count) == ("n2", SUCCESS, 3)
    assert [scored.node for scored in decision.best_nodes(3)] == ["n2", "n3", "n1"]


def test_49_the_seed_breaks_ties(machine):
    run = machine(make("A", score=1))
    candidates = {decide(run, seed=seed).node for seed in range(1, 40)}
    assert candidates == set(NAMES)
    assert len({decide(run, seed=7).node for _ in range(5)}) == 1


def test_a_single_feasible_node_is_not_scored(machine):
    plugin = make("A", filter=per_node(n1=NO, n3=NO), score=PluginFailure("called"))
    decision = decide(machine(plugin))
    assert (decision.node, decision.scored) == ("n2", None)


def test_48_any_node_may_be_selected_if_no_plugin_scores(machine):
    decision = decide(machine(make("A", pre_score=SKIP, score=5)))
    assert decision.node in NAMES
    assert {int(total) for total in decision.scored.totals[:3]} == {0}


def test_a_cluster_without_nodes_rejects_the_pod_without_post_filter(machine):
    decision = decide(machine(make("A", post_filter=PluginFailure("called")), nodes=()))
    assert decision.status == unresolvable(diagnosis.NO_NODES)
    assert (decision.diagnosis, decision.nominated) == (None, "")


# Rejection


def test_a_rejection_has_a_message_and_the_rejecting_plugins(machine):
    first = make("A", filter=per_node(n1=unresolvable("tainted")))
    second = make("B", filter=per_node(n1=NO, n2=NO, n3=pending("claim is not ready")))
    decision = decide(machine(first, second))
    assert decision.status == unschedulable(
        "0/3 nodes are available: 1 claim is not ready, 1 no, 1 tainted."
    )
    assert decision.diagnosis.unschedulable_plugins == {"A", "B"}
    assert decision.diagnosis.pending_plugins == {"B"}
    assert decision.rejected_by() == {"A": 1, "B": 2}
    assert decision.verdict(0) == unresolvable("tainted").by("A")


def narrowing(name, *names):
    return make(name, pre_filter=only_nodes(names), filter=SUCCESS)


def test_45_only_nodes_in_all_pre_filter_sets_are_filtered(machine):
    filtered = []

    def look(state, pod, node):
        filtered.append(node.name)
        return SUCCESS

    run = machine(make("P1", filter=look), narrowing("P2", "n2"), narrowing("P3", "n1", "n2"))
    assert decide(run).node == "n2"
    assert filtered == ["n2"]


@pytest.mark.parametrize(
    ("plugins", "message", "rejecting"),
    [
        pytest.param(
            [narrowing("P2", "n2"), narrowing("P3", "n1")],
            "0/3 nodes are available: node(s) didn't satisfy plugin(s) [P2 P3] simultaneously.",
            {"P2", "P3"},
            id="45: disjoint node sets",
        ),
        pytest.param(
            [make("P2", pre_filter=only_nodes([]), filter=SUCCESS)],
            "0/3 nodes are available: node(s) didn't satisfy plugin P2.",
            {"P2"},
            id="45: an empty node set",
        ),
        pytest.param(
            [narrowing("P", "n2"), make("F", filter=per_node(n2=NO))],
            "0/3 nodes are available: 1 no, 2 node(s) didn't satisfy plugin(s) [P].",
            {"P", "F"},
            id="46: the only node in the set is rejected",
        ),
        pytest.param(
            [narrowing("P", "unknown")],
            "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [P].",
            {"P"},
            id="46: the set holds an unknown node only",
        ),
        pytest.param(
            [narrowing("P", "n1"), make("A", pre_filter=NO, filter=SUCCESS)],
            "0/3 nodes are available: no.",
            {"A", "P"},
            id="47: unschedulable in pre_filter, with a node set",
        ),
        pytest.param(
            [narrowing("P", "n1"), make("A", pre_filter=unresolvable("never"), filter=SUCCESS)],
            "0/3 nodes are available: never.",
            {"A"},
            id="47: unresolvable in pre_filter, with a node set",
        ),
    ],
)
def test_rejections_by_pre_filter_and_by_node_sets(machine, plugins, message, rejecting):
    decision = decide(machine(*plugins))
    assert decision.status == unschedulable(message)
    assert decision.diagnosis.unschedulable_plugins == rejecting
    assert decision.nominated == ""


# Post filter


@pytest.mark.parametrize(
    ("result", "suffix", "nominated_node"),
    [
        pytest.param(PostFiltered(SUCCESS, "n1"), "", "n1", id="a node is nominated"),
        pytest.param(PostFiltered(NO, ""), " no", "", id="the nomination is cleared"),
        pytest.param(PostFiltered(NO), " no", None, id="the nomination is unchanged"),
        pytest.param(
            PluginFailure("not found"),
            ' running PostFilter plugin "B": not found',
            None,
            id="an error leaves the nomination unchanged",
        ),
    ],
)
def test_post_filter_sets_the_message_suffix_and_the_nomination(
    machine, result, suffix, nominated_node
):
    decision = decide(machine(make("A", filter=NO), make("B", post_filter=result)))
    assert decision.status == unschedulable(f"0/3 nodes are available: 3 no.{suffix}")
    assert decision.nominated == nominated_node


def test_post_filter_runs_after_pre_filter_rejects_all_nodes(machine):
    refused = []

    def note(state, pod, refusal):
        refused.append([refusal.status(row) for row in range(3)])
        return NO

    decide(machine(make("A", pre_filter=NO, filter=SUCCESS), make("B", post_filter=note)))
    assert refused == [[NO.by("A")] * 3]


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(unresolvable("never"), id="unresolvable in pre_filter"),
        pytest.param(only_nodes([]), id="an empty node set"),
    ],
)
def test_post_filter_runs_after_a_final_rejection_too(machine, refusal):
    """DynamicResources ends the post_filter plugins then; without it, they look in vain."""
    seen = []

    def note(state, pod, failure):
        seen.append(failure.pre.rejected.code)
        return unresolvable()

    plugins = (make("A", pre_filter=refusal, filter=SUCCESS), make("B", post_filter=note))
    decision = decide(machine(*plugins))
    assert seen == [Code.UNSCHEDULABLE_AND_UNRESOLVABLE]
    assert decision.message == decision.diagnosis.message


def test_post_filter_receives_the_status_of_each_rejected_node(machine):
    received = []

    def note(state, pod, refusal):
        received.extend(refusal.status(row) for row in range(3))
        return NO

    plugins = [
        narrowing("P", "n1", "n2"),
        make("F", filter=per_node(n1=NO, n2=unresolvable("never"))),
        make("N", post_filter=note),
    ]
    decide(machine(*plugins))
    assert received == [
        NO.by("F"),
        unresolvable("never").by("F"),
        unresolvable("node(s) didn't satisfy plugin(s) [P]"),
    ]


# Nominations


class RecordingFilter:
    """A filter that records the nodes it is called for, and how many pods they hold."""

    def __init__(self, **results):
        self.calls = []
        self.results = results
        self.plugin = make("RecordingFilter", filter=self.filter)

    def filter(self, state, pod, node):
        self.calls.append((node.name, node.pod_count))
        return self.results.get(node.name, SUCCESS)


@pytest.mark.parametrize(
    ("node", "results", "candidates"),
    [
        pytest.param("n2", {}, {"n2"}, id="43: the nominated node is feasible"),
        pytest.param("n2", {"n2": NO}, {"n1", "n3"}, id="43: the nominated node is rejected"),
        pytest.param("unknown", {}, set(NAMES), id="43: the nominated node does not exist"),
    ],
)
def test_43_the_nominated_node_is_tried_first(machine, node, results, candidates):
    run = machine(make("A", filter=per_node(**results), score=per_node(n1=90, n2=1, n3=90)))
    pod = nominated(POD, node)
    assert {decide(run, pod, seed=seed).node for seed in range(1, 30)} <= candidates
    if len(candidates) == 1:
        decision = decide(run, pod)
        assert (decision.feasible_count, decision.scored) == (1, None)


def other(name="other", priority=0, cpu="3"):
    return make_pod(name, priority=priority, requests={"cpu": cpu})


@pytest.mark.parametrize(
    ("priority", "passes"),
    [
        pytest.param(5, [("n1", 1), ("n1", 0)], id="44: a higher priority, filtered twice"),
        pytest.param(0, [("n1", 1), ("n1", 0)], id="44: an equal priority, filtered twice"),
        pytest.param(-1, [("n1", 0)], id="44: a lower priority, filtered once"),
    ],
)
def test_44_filters_run_with_and_without_nominated_pods(machine, priority, passes):
    recorder = RecordingFilter()
    run = machine(recorder.plugin, nodes=["n1"])
    decision = decide(run, nominated_pods={"n1": [other(priority=priority)]})
    assert sorted(recorder.calls, reverse=True) == passes
    assert decision.node == "n1"


def crowded(state, pod, node):
    return unschedulable("crowded") if node.pod_count else SUCCESS


def test_44_a_node_must_have_room_for_its_nominated_pods_too(machine):
    run = machine(make("A", filter=crowded))
    decision = decide(run, nominated_pods={"n1": [other()], "n2": [other("second")]})
    assert decision.node == "n3"
    assert decision.rejected_beside_nominated == {
        row: unschedulable("crowded").by("A") for row in range(2)
    }


def test_44_the_pod_is_rejected_if_nominated_pods_fill_all_nodes(machine):
    run = machine(make("A", filter=crowded))
    decision = decide(run, nominated_pods={name: [other(name)] for name in NAMES})
    assert decision.message == "0/3 nodes are available: 3 crowded."
    assert decision.diagnosis.unschedulable_plugins == {"A"}
    assert decision.verdict(0) == unschedulable("crowded").by("A")


def test_44_the_pods_own_nomination_does_not_count_against_it(machine):
    run = machine(make("A", filter=crowded))
    pod = nominated(POD, "n1")
    assert decide(run, pod, nominated_pods={"n1": [pod]}).node == "n1"


def test_44_a_nomination_for_an_unknown_node_is_ignored(machine):
    run = machine(make("A", filter=crowded))
    assert decide(run, nominated_pods={"unknown": [other()]}).node in NAMES


def test_44_an_error_with_nominated_pods_fails_the_attempt(machine):
    def fails_when_occupied(state, pod, node):
        if node.pod_count:
            raise PluginFailure("oh")
        return SUCCESS

    decision = decide(
        machine(make("A", filter=fails_when_occupied)), nominated_pods={"n1": [other()]}
    )
    assert decision.status == error('running "A" filter plugin: oh', "A")


# Errors


@pytest.mark.parametrize(
    ("methods", "text"),
    [
        pytest.param(
            {"pre_filter": PluginFailure("oh"), "filter": SUCCESS},
            'running PreFilter plugin "A": oh',
            id="pre_filter",
        ),
        pytest.param({"filter": PluginFailure("oh")}, 'running "A" filter plugin: oh', id="filter"),
        pytest.param(
            {"pre_score": PluginFailure("oh"), "score": 1},
            'running PreScore plugin "A": oh',
            id="pre_score",
        ),
        pytest.param(
            {"score": PluginFailure("oh")},
            'running Score plugins: plugin "A" failed with: oh',
            id="score",
        ),
        pytest.param(
            {"score": 1, "normalize_score": PluginFailure("oh")},
            'running Normalize on Score plugins: plugin "A" failed with: oh',
            id="normalize_score",
        ),
        pytest.param(
            {"score": 101},
            'applying score defaultWeights on Score plugins: plugin "A" returns an invalid score '
            "101, it should in the range of [0, 100] after normalizing",
            id="an invalid score",
        ),
    ],
)
def test_an_error_fails_the_pod_and_names_the_plugin(machine, methods, text):
    decision = decide(machine(make("A", **methods)))
    assert decision.status == error(text, "A")
    assert (decision.node, decision.diagnosis, decision.nominated) == ("", None, "")


def test_an_error_for_one_node_fails_the_attempt(machine):
    decision = decide(machine(make("A", filter=per_node(n2=PluginFailure("oh")))))
    assert decision.status.code is Code.ERROR


@pytest.mark.parametrize(
    "way",
    [
        pytest.param("narrowed", id="outside of the pre_filter node set"),
        pytest.param("nominated", id="another node is nominated for the pod"),
        pytest.param("refused", id="rejected by another plugin"),
    ],
)
def test_an_error_for_a_node_that_is_no_candidate_is_ignored(machine, way):
    plugins = [make("A", filter=per_node(n2=PluginFailure("oh")))]
    if way == "narrowed":
        plugins.append(narrowing("P", "n1"))
    if way == "refused":
        plugins.insert(0, make("R", filter=per_node(n2=NO, n3=NO)))
    pod = nominated(POD, "n1") if way == "nominated" else POD
    assert decide(machine(*plugins), pod).node == "n1"


# Sampling


def many(count):
    return [f"n{i}" for i in range(count)]


def test_40_a_profiles_percentage_overrides_the_global_one(machine):
    enabled = [{"name": name} for name in ("PrioritySort", "A", "DefaultBinder")]
    multi_point = {"disabled": [{"name": "*"}], "enabled": enabled}
    run = machine(
        make("A", score=1),
        nodes=many(1000),
        profiles=[{"percentageOfNodesToScore": 40, "plugins": {"multiPoint": multi_point}}],
        percentageOfNodesToScore=100,
    )
    assert decide(run).feasible_count == 400


@pytest.mark.parametrize(
    ("settings", "feasible"),
    [
        pytest.param({}, 200, id="unset: all nodes"),
        pytest.param({"percentageOfNodesToScore": 0}, 100, id="0: adaptive"),
        pytest.param({"percentageOfNodesToScore": 60}, 120, id="60 %"),
    ],
)
def test_40_the_percentage_sets_how_many_feasible_nodes_are_found(machine, settings, feasible):
    run = machine(make("A", score=1), nodes=many(200), **settings)
    assert decide(run).feasible_count == feasible


def test_41_the_next_search_starts_where_the_last_one_stopped(machine):
    run = machine(make("A", score=1), nodes=many(500), percentageOfNodesToScore=30)
    starts = []
    for _ in range(4):
        decision = decide(run)
        assert decision.feasible_count == 150
        starts.append(run.scheduler.cycle._walk.start)
    assert starts == [150, 300, 450, 100]


def test_42_without_score_plugins_the_search_stops_at_the_first_feasible_node(machine):
    run = machine(make("A", filter=SUCCESS), percentageOfNodesToScore=50)
    assert [decide(run).node for _ in range(4)] == ["n1", "n2", "n3", "n1"]


def test_43_a_nominated_node_does_not_move_the_start_of_the_search(machine):
    run = machine(make("A", score=1), nodes=many(500), percentageOfNodesToScore=30)
    decide(run, nominated(POD, "n7"))
    assert run.scheduler.cycle._walk.start == 0


def test_a_search_without_a_feasible_node_visits_all_nodes(machine):
    run = machine(make("A", filter=NO, score=1), nodes=many(200), percentageOfNodesToScore=50)
    assert decide(run).message == "0/200 nodes are available: 200 no."


def test_an_error_for_a_node_after_the_end_of_the_search_is_not_seen(machine):
    run = machine(
        make("A", filter=per_node(n150=PluginFailure("oh")), score=1),
        nodes=many(200),
        percentageOfNodesToScore=50,
    )
    assert decide(run).feasible_count == 100
    assert decide(run).status.message == 'running "A" filter plugin: oh'


def test_the_search_alternates_between_zones(machine):
    zones = {"a1": "a", "a2": "a", "b1": "b"}
    nodes = [make_node(n, labels={"topology.kubernetes.io/zone": z}) for n, z in zones.items()]
    run = machine(make("A", filter=SUCCESS), nodes=nodes, percentageOfNodesToScore=50)
    assert [decide(run).node for _ in range(3)] == ["a1", "b1", "a2"]


# Equal pods, one after the other: what is known of the last one is used where nothing else decides


PODS = [make_pod(f"p{i}", requests={"cpu": "100m"}) for i in range(12)]
DEFAULT_PLUGINS = ({"schedulerName": "default-scheduler"},)


def roomy(count):
    return [make_node(f"n{i}", allocatable={"cpu": "8", "pods": 110}) for i in range(count)]


def test_every_equal_pod_is_decided_among_a_sample(machine):
    run = machine(profiles=DEFAULT_PLUGINS, nodes=roomy(200), percentageOfNodesToScore=60)
    run.schedule(*PODS)
    assert {run.facts(pod, Decided)[0].feasible for pod in PODS} == {120}


def test_every_equal_pod_is_scored_by_extenders(machine):
    class Prefers:
        settings = config.Extender(url_prefix="http://e", prioritize_verb="v", weight=100)

        def prioritize(self, pod, nodes):
            return [("n1", 10), ("n3", 10)]

    run = machine(profiles=DEFAULT_PLUGINS, nodes=roomy(8), extenders=[Prefers()])
    run.schedule(*PODS)
    assert Counter(run.cached(pod) for pod in PODS) == {"n1?": 6, "n3?": 6}


def test_equal_pods_go_where_there_is_most_room(machine):
    run = machine(profiles=DEFAULT_PLUGINS, nodes=roomy(4))
    run.schedule(*PODS)
    assert Counter(run.cached(pod) for pod in PODS) == {f"n{i}?": 3 for i in range(4)}


@pytest.mark.parametrize("is_sampling", [False, True])
def test_filters_and_scores_of_every_equal_pod_are_measured(machine, is_sampling):
    measured = Counter()

    class Meter:
        def __init__(self):
            self.is_sampling = is_sampling

        def cycle_started(self, views):
            pass

        def now(self):
            return 0.0

        begin = now

        def end_method(self, *_):
            pass

        def end_point(self, label, *_):
            measured[label] += 1

        def repeated(self, *_):
            measured.update(("Filter", "Score", "repeated"))

    run = machine(profiles=DEFAULT_PLUGINS, nodes=roomy(8))
    run.scheduler.profiles["default-scheduler"].measure(Meter())
    run.schedule(*PODS)
    assert (measured["Filter"], measured["Score"]) == (len(PODS), len(PODS))
    assert (measured["repeated"] > 0) == (not is_sampling)
