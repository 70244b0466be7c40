"""One pod's decision; numbers are rows of the specification."""

from random import Random

import pytest
from msgspec.structs import replace
from tests.saying import make

from moorage.api.pod import PodStatus
from moorage.core import diagnosis
from moorage.core.cycle import SchedulingCycle
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


def per_node(**answers):
    """An answer per node, SUCCESS for those that are not named; trouble is raised."""

    def said(state, pod, node):
        answer = answers.get(node.name, SUCCESS)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return said


def nominated(pod, node):
    return replace(pod, status=PodStatus(nominated_node_name=node))


def decide(run, pod=POD, *, promised=None, seed=0, now=0.0):
    scheduler = run.scheduler
    cycle = scheduler.cycle
    if promised is not None or seed:
        cycle = SchedulingCycle(
            scheduler.cluster, scheduler.templates, promised or {}, Random(seed)
        )
    chosen = scheduler.profiles[pod.spec.scheduler_name]
    return cycle.decide(chosen, pod, scheduler.templates.of(pod), now)


# Finding a node


def test_the_best_node_is_picked(machine):
    scores = {"n1": 10, "n2": 30, "n3": 20}
    run = machine(make("A", score=lambda state, pod, node: scores[node.name]))
    decision = decide(run)
    assert (decision.node, decision.status, decision.feasible_count) == ("n2", SUCCESS, 3)
    assert decision.best_rows(3) == [1, 2, 0]


def test_49_ties_fall_to_the_seed(machine):
    run = machine(make("A", score=1))
    picks = {decide(run, seed=seed).node for seed in range(1, 40)}
    assert picks == set(NAMES)
    assert len({decide(run, seed=7).node for _ in range(5)}) == 1


def test_a_single_feasible_node_is_not_scored(machine):
    plugin = make("A", filter=per_node(n1=NO, n3=NO), score=PluginFailure("nobody asks"))
    decision = decide(machine(plugin))
    assert (decision.node, decision.scored) == ("n2", None)
    assert decision.best_rows(3) == [1]


def test_48_no_score_counts_for_anything(machine):
    decision = decide(machine(make("A", pre_score=SKIP, score=5)))
    assert decision.node in NAMES
    assert {int(total) for total in decision.scored.totals[:3]} == {0}


def test_no_nodes_at_all(machine):
    decision = decide(machine(make("A", post_filter=PluginFailure("nobody asks")), nodes=()))
    assert decision.status == unresolvable(diagnosis.NO_NODES)
    assert (decision.diagnosis, decision.nominated) == (None, "")


# Refusing


def test_the_sentence_and_who_is_blamed(machine):
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


def test_45_only_what_all_name_is_looked_at(machine):
    asked = []

    def look(state, pod, node):
        asked.append(node.name)
        return SUCCESS

    run = machine(make("P1", filter=look), narrowing("P2", "n2"), narrowing("P3", "n1", "n2"))
    assert decide(run).node == "n2"
    assert asked == ["n2"]


@pytest.mark.parametrize(
    ("plugins", "message", "blamed"),
    [
        pytest.param(
            [narrowing("P2", "n2"), narrowing("P3", "n1")],
            "0/3 nodes are available: node(s) didn't satisfy plugin(s) [P2 P3] simultaneously.",
            {"P2", "P3"},
            id="45: nothing in common",
        ),
        pytest.param(
            [make("P2", pre_filter=only_nodes([]), filter=SUCCESS)],
            "0/3 nodes are available: node(s) didn't satisfy plugin P2.",
            {"P2"},
            id="45: an empty set",
        ),
        pytest.param(
            [narrowing("P", "n2"), make("F", filter=per_node(n2=NO))],
            "0/3 nodes are available: 1 no, 2 node(s) didn't satisfy plugin(s) [P].",
            {"P", "F"},
            id="46: the named one is refused",
        ),
        pytest.param(
            [narrowing("P", "unheard")],
            "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [P].",
            {"P"},
            id="46: only an unknown node is named",
        ),
        pytest.param(
            [narrowing("P", "n1"), make("A", pre_filter=NO, filter=SUCCESS)],
            "0/3 nodes are available: no.",
            {"A", "P"},
            id="47: unschedulable for all, beside narrowing",
        ),
        pytest.param(
            [narrowing("P", "n1"), make("A", pre_filter=unresolvable("never"), filter=SUCCESS)],
            "0/3 nodes are available: never.",
            {"A"},
            id="47: unresolvable for all, beside narrowing",
        ),
    ],
)
def test_refusals_before_and_by_narrowing(machine, plugins, message, blamed):
    decision = decide(machine(*plugins))
    assert decision.status == unschedulable(message)
    assert decision.diagnosis.unschedulable_plugins == blamed
    assert decision.nominated == ""


# Post filter


@pytest.mark.parametrize(
    ("answer", "suffix", "promise"),
    [
        pytest.param(PostFiltered(SUCCESS, "n1"), "", "n1", id="a node is promised"),
        pytest.param(PostFiltered(NO, ""), " no", "", id="a promise is taken back"),
        pytest.param(PostFiltered(NO), " no", None, id="a promise is left alone"),
        pytest.param(
            PluginFailure("not found"),
            ' running PostFilter plugin "B": not found',
            None,
            id="trouble leaves promises alone",
        ),
    ],
)
def test_post_filter_has_the_last_word(machine, answer, suffix, promise):
    decision = decide(machine(make("A", filter=NO), make("B", post_filter=answer)))
    assert decision.status == unschedulable(f"0/3 nodes are available: 3 no.{suffix}")
    assert decision.nominated == promise


def test_post_filter_runs_after_a_refusal_for_all_nodes(machine):
    refused = []

    def note(state, pod, refusal):
        refused.append([refusal.status(row) for row in range(3)])
        return NO

    decide(machine(make("A", pre_filter=NO, filter=SUCCESS), make("B", post_filter=note)))
    assert refused == [[NO.by("A")] * 3]


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(unresolvable("never"), id="refused for good"),
        pytest.param(only_nodes([]), id="narrowed to nothing"),
    ],
)
def test_post_filter_is_not_asked_about_a_pod_that_no_node_can_ever_take(machine, refusal):
    plugins = (
        make("A", pre_filter=refusal, filter=SUCCESS),
        make("B", post_filter=PluginFailure("asked")),
    )
    decision = decide(machine(*plugins), nominated(POD, "n1"))
    assert "asked" not in decision.message
    assert decision.post_filter is None
    assert decision.nominated is None
    # A promise that the pod's status does not show would keep others out for ever.
    assert decide(machine(*plugins)).nominated == ""


def test_post_filter_hears_why_each_node_was_refused(machine):
    heard = []

    def note(state, pod, refusal):
        heard.extend(refusal.status(row) for row in range(3))
        return NO

    plugins = [
        narrowing("P", "n1", "n2"),
        make("F", filter=per_node(n1=NO, n2=unresolvable("never"))),
        make("N", post_filter=note),
    ]
    decide(machine(*plugins))
    assert heard == [
        NO.by("F"),
        unresolvable("never").by("F"),
        unresolvable("node(s) didn't satisfy plugin(s) [P]"),
    ]


# Nominations


class Watch:
    """A filter that notes whom it was asked about."""

    def __init__(self, **answers):
        self.asked = []
        self.answers = answers
        self.plugin = make("Watch", filter=self.filter)

    def filter(self, state, pod, node):
        self.asked.append((node.name, node.pod_count))
        return self.answers.get(node.name, SUCCESS)


@pytest.mark.parametrize(
    ("node", "answers", "picks"),
    [
        pytest.param("n2", {}, {"n2"}, id="43: the promised node passes"),
        pytest.param("n2", {"n2": NO}, {"n1", "n3"}, id="43: the promised node refuses"),
        pytest.param("unheard", {}, set(NAMES), id="43: the promised node is not there"),
    ],
)
def test_43_a_node_promised_to_the_pod_comes_first(machine, node, answers, picks):
    run = machine(make("A", filter=per_node(**answers), score=per_node(n1=90, n2=1, n3=90)))
    pod = nominated(POD, node)
    assert {decide(run, pod, seed=seed).node for seed in range(1, 30)} <= picks
    if len(picks) == 1:
        decision = decide(run, pod)
        assert (decision.feasible_count, decision.scored) == (1, None)


def other(name="other", priority=0, cpu="3"):
    return make_pod(name, priority=priority, requests={"cpu": cpu})


@pytest.mark.parametrize(
    ("priority", "passes"),
    [
        pytest.param(5, [("n1", 1), ("n1", 0)], id="44: a higher priority: asked twice"),
        pytest.param(0, [("n1", 1), ("n1", 0)], id="44: an equal priority: asked twice"),
        pytest.param(-1, [("n1", 0)], id="44: a lower priority: asked once"),
    ],
)
def test_44_filters_are_asked_beside_promised_pods(machine, priority, passes):
    watch = Watch()
    run = machine(watch.plugin, nodes=["n1"])
    decision = decide(run, promised={"n1": [other(priority=priority)]})
    assert sorted(watch.asked, reverse=True) == passes
    assert decision.node == "n1"


def crowded(state, pod, node):
    return unschedulable("crowded") if node.pod_count else SUCCESS


def test_44_a_node_must_have_room_beside_promised_pods(machine):
    run = machine(make("A", filter=crowded))
    decision = decide(run, promised={"n1": [other()], "n2": [other("second")]})
    assert decision.node == "n3"
    assert decision.rejected_beside_nominated == {
        row: unschedulable("crowded").by("A") for row in range(2)
    }


def test_44_all_nodes_are_promised(machine):
    run = machine(make("A", filter=crowded))
    decision = decide(run, promised={name: [other(name)] for name in NAMES})
    assert decision.message == "0/3 nodes are available: 3 crowded."
    assert decision.diagnosis.unschedulable_plugins == {"A"}
    assert decision.verdict(0) == unschedulable("crowded").by("A")


def test_44_the_pods_own_promise_does_not_stand_in_its_way(machine):
    run = machine(make("A", filter=crowded))
    pod = nominated(POD, "n1")
    assert decide(run, pod, promised={"n1": [pod]}).node == "n1"


def test_44_a_promise_of_an_unknown_node_is_nobodys_concern(machine):
    run = machine(make("A", filter=crowded))
    assert decide(run, promised={"unheard": [other()]}).node in NAMES


def test_44_trouble_beside_promised_pods_fails_the_attempt(machine):
    def shaky(state, pod, node):
        if node.pod_count:
            raise PluginFailure("oh")
        return SUCCESS

    decision = decide(machine(make("A", filter=shaky)), promised={"n1": [other()]})
    assert decision.status == error('running "A" filter plugin: oh', "A")


# Trouble


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
def test_trouble_costs_the_pod_and_names_the_plugin(machine, methods, text):
    decision = decide(machine(make("A", **methods)))
    assert decision.status == error(text, "A")
    assert (decision.node, decision.diagnosis, decision.nominated) == ("", None, "")


def test_trouble_over_one_node_fails_the_attempt(machine):
    decision = decide(machine(make("A", filter=per_node(n2=PluginFailure("oh")))))
    assert decision.status.code is Code.ERROR


@pytest.mark.parametrize(
    "way",
    [
        pytest.param("narrowed", id="narrowing leaves it out"),
        pytest.param("nominated", id="another node is promised to the pod"),
        pytest.param("refused", id="another plugin refuses it"),
    ],
)
def test_trouble_over_a_node_that_is_not_in_question_harms_nobody(machine, way):
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


def test_40_a_profiles_percentage_beats_the_global_one(machine):
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
def test_40_how_many_nodes(machine, settings, feasible):
    run = machine(make("A", score=1), nodes=many(200), **settings)
    assert decide(run).feasible_count == feasible


def test_41_the_walk_goes_on_where_it_stopped(machine):
    run = machine(make("A", score=1), nodes=many(500), percentageOfNodesToScore=30)
    starts = []
    for _ in range(4):
        decision = decide(run)
        assert decision.feasible_count == 150
        starts.append(run.scheduler.cycle._walk.start)
    assert starts == [150, 300, 450, 100]


def test_42_without_scores_the_first_that_fits_is_enough(machine):
    run = machine(make("A", filter=SUCCESS), percentageOfNodesToScore=50)
    assert [decide(run).node for _ in range(4)] == ["n1", "n2", "n3", "n1"]


def test_43_a_promised_node_does_not_move_the_walk(machine):
    run = machine(make("A", score=1), nodes=many(500), percentageOfNodesToScore=30)
    decide(run, nominated(POD, "n7"))
    assert run.scheduler.cycle._walk.start == 0


def test_a_walk_that_finds_nothing_has_seen_all(machine):
    run = machine(make("A", filter=NO, score=1), nodes=many(200), percentageOfNodesToScore=50)
    assert decide(run).message == "0/200 nodes are available: 200 no."


def test_trouble_beyond_the_end_of_the_walk_is_not_met(machine):
    run = machine(
        make("A", filter=per_node(n150=PluginFailure("oh")), score=1),
        nodes=many(200),
        percentageOfNodesToScore=50,
    )
    assert decide(run).feasible_count == 100
    assert decide(run).status.message == 'running "A" filter plugin: oh'


def test_the_walk_goes_zone_by_zone(machine):
    zones = {"a1": "a", "a2": "a", "b1": "b"}
    nodes = [make_node(n, labels={"topology.kubernetes.io/zone": z}) for n, z in zones.items()]
    run = machine(make("A", filter=SUCCESS), nodes=nodes, percentageOfNodesToScore=50)
    assert [decide(run).node for _ in range(3)] == ["a1", "b1", "a2"]
