"""Which nodes fit, why the others do not, and how good each is; numbers are rows of the spec."""

import numpy as np
import pytest
from tests.saying import saying

from moorage.api.pod import Toleration
from moorage.errors import PluginError, PluginFailure
from moorage.framework.points import ByMax, Depends
from moorage.framework.state import StateKey
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    Verdicts,
    only_nodes,
    pending,
    unresolvable,
    unschedulable,
    wait,
)
from moorage.testing import make_node, make_pod

POD = make_pod("p")
NO = unschedulable("no")
NEVER = unresolvable("never")
ALL = ["n1", "n2", "n3"]
EVERY_DEPENDS = pytest.mark.parametrize("depends", Depends, ids=lambda depends: depends.name)


def make(name, depends=Depends.ANYTHING, **body):
    return type(name, (), {"name": name, "depends": depends, **body})


def by_name(**answers):
    """A per-node method that gives an answer per node, or raises it."""

    def method(self, state, pod, node):
        answer = answers[node.name]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return method


def refusing(*names, status=NO):
    return by_name(**{name: status if name in names else SUCCESS for name in ALL})


# Pre-filter


@EVERY_DEPENDS
@pytest.mark.parametrize(
    ("answers", "asked", "rejected"),
    [
        pytest.param([SUCCESS, SUCCESS], "AB", None, id="nobody minds"),
        pytest.param([NO, SKIP], "AB", NO.by("A"), id="47: unschedulable, the next is asked"),
        pytest.param([NEVER, SUCCESS], "A", NEVER.by("A"), id="47: unresolvable, the next is not"),
        pytest.param([NO, unschedulable("nor I")], "AB", unschedulable("nor I").by("B"), id="last"),
        pytest.param([NO, NEVER], "AB", NEVER.by("B"), id="unresolvable after unschedulable"),
    ],
)
def test_47_pre_filter(bench, depends, answers, asked, rejected):
    calls = []
    plugins = [
        make(
            name,
            depends,
            filter=saying(SUCCESS),
            pre_filter=lambda self, state, pod, a=answer: calls.append(self.name) or a,
        )
        for name, answer in zip("AB", answers, strict=True)
    ]
    workbench = bench(plugins)
    assert workbench.ask(POD).pre.rejected == rejected
    assert "".join(calls) == asked
    assert workbench.ask(make_pod("q")).pre.rejected == rejected


@EVERY_DEPENDS
def test_who_skips_in_pre_filter_is_not_asked_to_filter(bench, depends):
    skips = make("A", depends, pre_filter=saying(SKIP), filter=saying(NO))
    stays = make("B", depends, filter=refusing("n2"))
    asked = bench([skips, stays]).ask(POD)
    assert (asked.fits, asked.pre.skipped) == (["n1", "n3"], {"A"})


@pytest.mark.parametrize(
    ("sets", "names", "reason"),
    [
        pytest.param([{"n2"}, {"n1", "n2"}], {"n2"}, None, id="45: what all name"),
        pytest.param(
            [{"n2"}, {"n1"}],
            set(),
            "node(s) didn't satisfy plugin(s) [P1 P2] simultaneously",
            id="45: nothing in common",
        ),
        pytest.param(
            [set(), {"n1"}], set(), "node(s) didn't satisfy plugin P1", id="45: an empty set"
        ),
    ],
)
def test_45_narrowing(bench, sets, names, reason):
    plugins = [
        make(f"P{i}", pre_filter=saying(only_nodes(named)), filter=saying(SUCCESS))
        for i, named in enumerate(sets, 1)
    ]
    pre = bench(plugins).ask(POD).pre
    assert pre.names == names
    assert pre.rejected == (None if reason is None else unresolvable(reason))


def test_46_the_reason_of_nodes_left_out_is_sorted_by_plugin(bench):
    plugins = [
        make(name, pre_filter=saying(only_nodes(ALL)), filter=saying(SUCCESS)) for name in "BA"
    ]
    assert bench(plugins).ask(POD).pre.absent.message == "node(s) didn't satisfy plugin(s) [A B]"


@EVERY_DEPENDS
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(PluginFailure("oh"), "oh", id="raises"),
        pytest.param(pending("soon"), "soon", id="pending has no meaning here"),
        pytest.param(wait(3), "returned Wait", id="nor has wait"),
        pytest.param(None, "pre_filter returned None, which is not a Status", id="says nothing"),
    ],
)
def test_trouble_in_pre_filter(bench, depends, answer, text):
    workbench = bench([make("A", depends, pre_filter=saying(answer), filter=saying(SUCCESS))])
    for _ in range(2):
        with pytest.raises(PluginError) as raised:
            workbench.ask(POD)
        assert str(raised.value) == f'running PreFilter plugin "A": {text}'


# Filter


@EVERY_DEPENDS
def test_the_first_refusal_counts(bench, depends):
    plugins = [
        make("A", depends, filter=refusing("n1", status=NEVER)),
        make("B", depends, filter=refusing("n1", "n2")),
    ]
    asked = bench(plugins).ask(POD)
    assert asked.fits == ["n3"]
    assert (asked.why_not("n1"), asked.why_not("n2")) == (NEVER.by("A"), NO.by("B"))
    assert asked.filtered.rejected_by == [1, 1]


def test_the_first_refusal_counts_among_kept_and_fleeting_answers(bench):
    kinds = [Depends.ANYTHING, Depends.NODE, Depends.PLACEMENTS, Depends.USAGE]
    plugins = [
        make(f"P{i}", depends, filter=refusing(*ALL[: i + 1])) for i, depends in enumerate(kinds)
    ]
    asked = bench(plugins).ask(POD)
    assert [asked.why_not(name).plugin for name in ALL] == ["P0", "P1", "P2"]
    assert bench(plugins[::-1]).ask(POD).why_not("n1").plugin == "P3"


@EVERY_DEPENDS
def test_a_form_for_many_nodes_is_used_for_many(bench, depends):
    def filter_all(self, state, pod, table):
        return Verdicts(fits=~table.named(["n2"]), otherwise=NO)

    plugin = make("A", depends, filter=by_name(), filter_all=filter_all)
    asked = bench([plugin]).ask(POD)
    assert (asked.fits, asked.why_not("n2")) == (["n1", "n3"], NO.by("A"))


@EVERY_DEPENDS
def test_several_reasons(bench, depends):
    reasons = [SUCCESS, NO, NEVER]

    def filter_all(self, state, pod, table):
        codes = np.zeros(len(table), dtype=np.int64)
        codes[table.named(["n1"])], codes[table.named(["n2"])] = 1, 2
        return Verdicts(codes=codes, status_of=reasons.__getitem__)

    plugin = make("A", depends, filter=by_name(), filter_all=filter_all)
    asked = bench([plugin]).ask(POD)
    rows = np.flatnonzero(asked.profile.cluster.table.active)
    assert [(s, len(r)) for s, r in asked.filtered.by_status(rows)] == [
        (NO.by("A"), 1),
        (NEVER.by("A"), 1),
    ]


def test_fleeting_filters_are_not_asked_about_refused_nodes(bench):
    asked_about = []

    def curious(self, state, pod, node):
        asked_about.append(node.name)
        return SUCCESS

    plugins = [make("A", Depends.NODE, filter=refusing("n2")), make("B", filter=curious)]
    bench(plugins).ask(POD)
    assert asked_about == ["n1", "n3"]


@EVERY_DEPENDS
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(PluginFailure("oh"), "oh", id="raises"),
        pytest.param(None, "filter returned None, which is not a Status", id="says nothing"),
        pytest.param(SKIP, "returned Skip", id="a code that means nothing here"),
    ],
)
def test_trouble_about_a_node_fails_the_pod(bench, depends, answer, text):
    workbench = bench([make("A", depends, filter=by_name(n1=SUCCESS, n2=answer, n3=SUCCESS))])
    failure = workbench.ask(POD).failure
    assert failure.code is Code.ERROR
    assert (failure.plugin, failure.message) == ("A", f'running "A" filter plugin: {text}')


@EVERY_DEPENDS
def test_trouble_about_a_node_that_another_refuses_harms_nobody(bench, depends):
    plugins = [
        make("A", Depends.NODE, filter=refusing("n2")),
        make("B", depends, filter=by_name(n1=SUCCESS, n2=PluginFailure("oh"), n3=SUCCESS)),
    ]
    asked = bench(plugins).ask(POD)
    assert (asked.failure, asked.fits) == (None, ["n1", "n3"])


@EVERY_DEPENDS
def test_trouble_about_all_nodes_names_the_plugin(bench, depends):
    plugin = make("A", depends, filter=saying(SUCCESS), filter_all=saying(PluginFailure("oh")))
    workbench = bench([plugin])
    for _ in range(2):
        with pytest.raises(PluginError, match='running "A" filter plugin: oh'):
            workbench.ask(POD)


@EVERY_DEPENDS
def test_trouble_ends_when_its_node_is_mended(bench, depends):
    def count(self, state, pod, node):
        return SUCCESS if int(node.labels.get("rank", "0")) < 9 else NO

    workbench = bench([make("A", depends, filter=count)])
    table = workbench.cluster.table
    assert workbench.ask(POD).failure is None
    table.set_node(make_node("n2", labels={"rank": "high"}))
    assert "invalid literal" in workbench.ask(POD).failure.message
    table.set_node(make_node("n2", labels={"rank": "10"}))
    asked = workbench.ask(POD)
    assert (asked.failure, asked.fits) == (None, ["n1", "n3"])


# Score


@EVERY_DEPENDS
def test_scores_are_weighted_and_summed(bench, depends):
    plugins = [
        make("A", depends, score=by_name(n1=10, n2=20, n3=30)),
        make("B", depends, score=by_name(n1=1, n2=2, n3=3)),
    ]
    score = {"enabled": [{"name": "A", "weight": 3}, {"name": "B"}]}
    asked = bench(plugins, score=score).ask(POD)
    assert [asked.total(name) for name in ALL] == [31, 62, 93]
    assert asked.scores("n2") == {"A": 60, "B": 2}


def test_scores_are_shown_in_the_configured_order(bench):
    plugins = [
        make("A", score=saying(1)),
        make("B", Depends.NODE, score=saying(1)),
        make("C", score=saying(1)),
        make("D", Depends.USAGE, score=saying(1)),
    ]
    assert list(bench(plugins).ask(POD).scores("n1")) == ["A", "B", "C", "D"]


@EVERY_DEPENDS
def test_48_who_skips_in_pre_score_gives_nothing(bench, depends):
    plugin = make("A", depends, pre_score=saying(SKIP), score=saying(7))
    asked = bench([plugin]).ask(POD)
    assert [asked.total(name) for name in ALL] == [0, 0, 0]
    assert asked.scores("n1") == {}


@EVERY_DEPENDS
def test_refused_nodes_have_no_total(bench, depends):
    plugins = [make("A", depends, filter=refusing("n2"), score=by_name(n1=1, n2=2, n3=3))]
    assert [bench(plugins).ask(POD).total(name) for name in ALL] == [1, -1, 3]


@EVERY_DEPENDS
def test_normalisation_sees_feasible_nodes_only(bench, depends):
    plugins = [
        make(
            "A",
            depends,
            filter=refusing("n3"),
            score=by_name(n1=1, n2=2, n3=400),
            normalizer=ByMax(),
        )
    ]
    assert [bench(plugins).ask(POD).total(name) for name in ALL] == [50, 100, -1]


@EVERY_DEPENDS
def test_normalisation_of_all_scores_together(bench, depends):
    def normalize_score(self, state, pod, scores):
        return scores - scores.min()

    plugin = make("A", depends, score=by_name(n1=-5, n2=7, n3=0), normalize_score=normalize_score)
    assert [bench([plugin]).ask(POD).total(name) for name in ALL] == [0, 12, 5]


@EVERY_DEPENDS
def test_a_normalizer_of_none_is_no_normalizer(bench, depends):
    plain = make("A", depends, score=saying(7), normalizer=None)
    assert bench([plain]).ask(POD).total("n1") == 7
    together = make(
        "A",
        depends,
        score=saying(7),
        normalizer=None,
        normalize_score=lambda self, state, pod, scores: scores * 2,
    )
    assert bench([together]).ask(POD).total("n1") == 14


class Share:
    """A normalizer that wants to know how many there are: a hundred, shared out."""

    def summarize(self, feasible):
        return int(feasible.sum())

    def apply(self, raw, summary):
        return raw * 100 // summary


@EVERY_DEPENDS
def test_a_normalizer_may_count(bench, depends):
    plugin = make("A", depends, score=saying(5), normalizer=Share())
    asked = bench([plugin], nodes=[f"n{i}" for i in range(64)]).ask(POD)
    assert asked.total("n0") == 1


class Halves:
    """A normalizer whose answers are floats."""

    def summarize(self, feasible):
        return 2

    def apply(self, raw, summary):
        return raw / summary


@EVERY_DEPENDS
def test_a_normalizers_floats_are_cut(bench, depends):
    plugin = make("A", depends, score=saying(5), normalizer=Halves())
    workbench = bench([plugin])
    assert workbench.ask(POD).total("n1") == 2
    workbench.cluster.table.set_node(make_node("n1", labels={"changed": "a little"}))
    assert workbench.ask(POD).total("n1") == 2


@EVERY_DEPENDS
@pytest.mark.parametrize(
    ("score", "invalid"), [(101, True), (-1, True), (0, False), (100, False)], ids=str
)
def test_scores_lie_between_0_and_100(bench, depends, score, invalid):
    workbench = bench([make("A", depends, score=by_name(n1=1, n2=score, n3=3))])
    if not invalid:
        assert workbench.ask(POD).total("n2") == score
        return
    for _ in range(2):
        with pytest.raises(PluginError) as raised:
            workbench.ask(POD)
        assert str(raised.value) == (
            'applying score defaultWeights on Score plugins: plugin "A" returns an invalid score '
            f"{score}, it should in the range of [0, 100] after normalizing"
        )


@EVERY_DEPENDS
def test_an_invalid_score_of_a_refused_node_harms_nobody(bench, depends):
    plugin = make("A", depends, filter=refusing("n2"), score=by_name(n1=1, n2=999, n3=3))
    assert bench([plugin]).ask(POD).total("n3") == 3


@EVERY_DEPENDS
def test_trouble_over_a_refused_node_harms_nobody(bench, depends):
    plugin = make(
        "A", depends, filter=refusing("n2"), score=by_name(n1=1, n2=PluginFailure("oh"), n3=3)
    )
    workbench = bench([plugin])
    assert workbench.ask(POD).total("n3") == 3
    workbench.cluster.table.set_node(make_node("n2", labels={"changed": "a little"}))
    assert workbench.ask(POD).total("n3") == 3


class Broken:
    def __init__(self, where):
        self.where = where

    def summarize(self, feasible):
        if self.where == "summarize":
            raise PluginFailure("oh")
        return 1

    def apply(self, raw, summary):
        if self.where == "apply":
            raise PluginFailure("oh")
        return "nonsense" if self.where == "nonsense" else raw


SCORING = 'running Score plugins: plugin "A" failed with: oh'
NORMALIZING = 'running Normalize on Score plugins: plugin "A" failed with: '


@EVERY_DEPENDS
@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param({"score": saying(PluginFailure("oh"))}, SCORING, id="score"),
        pytest.param({"score_all": saying(PluginFailure("oh"))}, SCORING, id="score_all"),
        pytest.param(
            {"pre_score": saying(PluginFailure("oh"))},
            'running PreScore plugin "A": oh',
            id="pre_score",
        ),
        pytest.param(
            {"pre_score": saying(NO)}, 'running PreScore plugin "A": no', id="pre_score refuses"
        ),
        pytest.param(
            {"pre_score": saying(None)},
            'running PreScore plugin "A": returned None',
            id="pre_score says nothing",
        ),
        pytest.param(
            {"normalize_score": saying(PluginFailure("oh"))}, NORMALIZING + "oh", id="all"
        ),
        pytest.param({"normalizer": Broken("summarize")}, NORMALIZING + "oh", id="summarize"),
        pytest.param({"normalizer": Broken("apply")}, NORMALIZING + "oh", id="apply"),
        pytest.param({"normalizer": Broken("nonsense")}, NORMALIZING, id="nonsense"),
        pytest.param({"reads": saying(PluginFailure("oh"))}, 'plugin "A": reads: oh', id="reads"),
        pytest.param({"reads": saying([])}, 'plugin "A": reads: unhashable type', id="unhashable"),
    ],
)
def test_trouble_while_scoring_names_the_plugin(bench, depends, body, text):
    workbench = bench([make("A", depends, **{"score": saying(1), **body})])
    if "reads" in body and depends in (Depends.PLACEMENTS, Depends.ANYTHING):
        assert workbench.ask(POD).total("n1") == 1  # Nothing is kept, so nobody asks.
        return
    if "reads" in body and depends is Depends.USAGE:
        assert workbench.ask(POD).total("n1") == 1  # Nor for the first of its template.
    for _ in range(2):
        with pytest.raises(PluginError) as raised:
            workbench.ask(POD)
        assert raised.value.plugin == "A"
        assert str(raised.value).startswith(text)


@EVERY_DEPENDS
def test_totals_are_right_again_after_trouble(bench, depends):
    """Scores that were half brought up to date when a plugin raised are not used afterwards."""

    def reading(label):
        return lambda self, state, pod, node: int(node.labels.get(label, "1"))

    workbench = bench(
        [
            make("A", depends, score=reading("a"), normalizer=ByMax()),
            make("B", depends, score=reading("b")),
        ]
    )
    table = workbench.cluster.table
    assert [workbench.ask(POD).total(name) for name in ALL] == [101, 101, 101]
    table.set_node(make_node("n1", labels={"a": "4", "b": "500"}))
    with pytest.raises(PluginError, match="invalid score 500"):
        workbench.ask(POD)
    table.set_node(make_node("n1", labels={"a": "4", "b": "5"}))
    assert [workbench.ask(POD).total(name) for name in ALL] == [105, 26, 26]


# What is kept, and for whom


def counting(answer=SUCCESS):
    asked = []

    def method(self, state, pod, node):
        asked.append(node.name)
        return answer

    return asked, method


@pytest.mark.parametrize(
    ("depends", "after_pod", "after_node"),
    [
        pytest.param(Depends.NODE, [], ["n2"], id="that node's object"),
        pytest.param(Depends.USAGE, ["n2"], ["n2"], id="the pods on it, too"),
        pytest.param(Depends.NODES, [], ALL, id="all node objects"),
        pytest.param(Depends.PLACEMENTS, ALL, ALL, id="all pods"),
        pytest.param(Depends.ANYTHING, ALL, ALL, id="anything"),
    ],
)
@pytest.mark.parametrize("point", ["filter", "score"])
def test_a_plugin_is_asked_again_as_far_as_it_says(bench, point, depends, after_pod, after_node):
    asked, method = counting(SUCCESS if point == "filter" else 1)
    workbench = bench([make("A", depends, **{point: method})])
    table = workbench.cluster.table
    workbench.templates.of(POD)  # Somebody who comes alone is not worth keeping anything for.
    workbench.ask(POD)
    assert asked == ALL
    asked.clear()
    workbench.ask(make_pod("equal"))
    assert asked == (ALL if depends in (Depends.PLACEMENTS, Depends.ANYTHING) else [])
    asked.clear()
    other = make_pod("other", node="n2")
    table.add_pod("n2", other, workbench.templates.of(other).usage)
    workbench.ask(POD)
    assert asked == after_pod
    asked.clear()
    table.set_node(make_node("n2", labels={"a": "b"}))
    workbench.ask(POD)
    assert asked == after_node


def test_pods_that_agree_in_what_is_read_share_answers(bench):
    asked, method = counting(1)
    plugin = make("A", Depends.NODE, score=method, reads=lambda self, pod: pod.spec.tolerations)
    workbench = bench([plugin])
    exists = [Toleration(operator="Exists")]
    workbench.ask(make_pod("a", labels={"a": "1"}))
    workbench.ask(make_pod("b", labels={"a": "2"}))
    assert asked == ALL
    workbench.ask(make_pod("c", tolerations=exists))
    assert asked == ALL * 2
    workbench.ask(make_pod("d", tolerations=exists, priority=5))
    assert asked == ALL * 2


def test_other_templates_do_not_share_unless_told(bench):
    asked, method = counting()
    workbench = bench([make("A", Depends.NODE, filter=method)])
    workbench.ask(make_pod("a", labels={"a": "1"}))
    workbench.ask(make_pod("b", labels={"a": "2"}))
    assert asked == ALL * 2


DISKS, RARE = StateKey("Rarest.disks"), StateKey("Rarest.rare")


def test_what_all_nodes_say_together_is_not_kept_too_long(bench):
    """`NODES` covers what a plugin works out about the nodes beforehand, too."""

    class Rarest:
        """A hundred for nodes whose disk is rare; counted before any node is looked at."""

        name = "Rarest"
        depends = Depends.NODES

        def pre_filter(self, state, pod):
            state[DISKS] = [node.labels.get("disk") for node in state.table.nodes if node]
            return SUCCESS if len(state[DISKS]) > 2 else SKIP

        def filter(self, state, pod, node):
            return NO if state[DISKS].count(node.labels.get("disk")) > 2 else SUCCESS

        def pre_score(self, state, pod, feasible):
            state[RARE] = min(state[DISKS], key=state[DISKS].count)
            return SUCCESS

        def score(self, state, pod, node):
            return 100 if node.labels.get("disk") == state[RARE] else 0

    disks = {"n1": "hdd", "n2": "hdd", "n3": "ssd"}
    workbench = bench([Rarest], nodes=[make_node(n, labels={"disk": d}) for n, d in disks.items()])
    assert [workbench.ask(POD).total(name) for name in ALL] == [0, 0, 100]
    workbench.cluster.table.set_node(make_node("n1", labels={"disk": "ssd"}))
    assert [workbench.ask(POD).total(name) for name in ALL] == [0, 100, 0]
    workbench.cluster.table.set_node(make_node("n2", labels={"disk": "ssd"}))
    assert workbench.ask(POD).fits == []
    workbench.cluster.table.remove_node("n1")
    asked = workbench.ask(POD)
    assert (asked.pre.skipped, asked.fits) == ({"Rarest"}, ["n2", "n3"])


HEAVY = 1 << 25


def test_narrow_scores_under_a_heavy_weight(bench):
    """A plugin may score in 32 bits; what comes of its weight may need more."""
    plugin = make(
        "A",
        Depends.USAGE,
        score=lambda self, state, pod, node: 100,
        score_all=lambda self, state, pod, table: np.full(len(table), 100, dtype=np.int32),
    )
    score = {"enabled": [{"name": "A", "weight": HEAVY}]}
    workbench = bench([plugin], score=score)
    assert workbench.ask(POD).total("n1") == 100 * HEAVY
