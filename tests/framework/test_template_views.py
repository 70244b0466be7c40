"""Views of one template: filters, reasons and scores. Numbers are rows of the specification."""

import numpy as np
import pytest
from tests.saying import saying

from moorage.api.pod import Toleration
from moorage.errors import PluginError, PluginFailure
from moorage.framework.points import BY_PODS, ByMax, Depends
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


def by_name(**values):
    """A per-node method that returns or raises the value of each node."""

    def method(self, state, pod, node):
        value = values[node.name]
        if isinstance(value, Exception):
            raise value
        return value

    return method


def refusing(*names, status=NO):
    return by_name(**{name: status if name in names else SUCCESS for name in ALL})


# Pre-filter


@EVERY_DEPENDS
@pytest.mark.parametrize(
    ("results", "called", "rejected"),
    [
        pytest.param([SUCCESS, SUCCESS], "AB", None, id="no plugin rejects"),
        pytest.param([NO, SKIP], "AB", NO.by("A"), id="47: unschedulable, the next plugin runs"),
        pytest.param(
            [NEVER, SUCCESS],
            "A",
            NEVER.by("A"),
            id="47: unresolvable, the next plugin does not run",
        ),
        pytest.param(
            [NO, unschedulable("nor I")],
            "AB",
            unschedulable("nor I").by("B"),
            id="the last rejection counts",
        ),
        pytest.param([NO, NEVER], "AB", NEVER.by("B"), id="unresolvable after unschedulable"),
    ],
)
def test_47_pre_filter(bench, depends, results, called, rejected):
    calls = []
    plugins = [
        make(
            name,
            depends,
            filter=saying(SUCCESS),
            pre_filter=lambda self, state, pod, a=result: calls.append(self.name) or a,
        )
        for name, result in zip("AB", results, strict=True)
    ]
    workbench = bench(plugins)
    assert workbench.run(POD).pre.rejected == rejected
    assert "".join(calls) == called
    assert workbench.run(make_pod("q")).pre.rejected == rejected


@EVERY_DEPENDS
def test_a_plugin_that_skips_in_pre_filter_does_not_filter(bench, depends):
    skips = make("A", depends, pre_filter=saying(SKIP), filter=saying(NO))
    stays = make("B", depends, filter=refusing("n2"))
    results = bench([skips, stays]).run(POD)
    assert (results.fits, results.pre.skipped) == (["n1", "n3"], {"A"})


@pytest.mark.parametrize(
    ("sets", "names", "reason"),
    [
        pytest.param([{"n2"}, {"n1", "n2"}], {"n2"}, None, id="45: the intersection"),
        pytest.param(
            [{"n2"}, {"n1"}],
            set(),
            "node(s) didn't satisfy plugin(s) [P1 P2] simultaneously",
            id="45: disjoint node sets",
        ),
        pytest.param(
            [set(), {"n1"}], set(), "node(s) didn't satisfy plugin P1", id="45: an empty set"
        ),
    ],
)
def test_45_node_sets(bench, sets, names, reason):
    plugins = [
        make(f"P{i}", pre_filter=saying(only_nodes(named)), filter=saying(SUCCESS))
        for i, named in enumerate(sets, 1)
    ]
    pre = bench(plugins).run(POD).pre
    assert pre.names == names
    assert pre.rejected == (None if reason is None else unresolvable(reason))


def test_46_the_reason_for_nodes_outside_of_the_set_lists_plugins_in_order(bench):
    plugins = [
        make(name, pre_filter=saying(only_nodes(ALL)), filter=saying(SUCCESS)) for name in "BA"
    ]
    assert bench(plugins).run(POD).pre.absent.message == "node(s) didn't satisfy plugin(s) [A B]"


@EVERY_DEPENDS
@pytest.mark.parametrize(
    ("result", "text"),
    [
        pytest.param(PluginFailure("oh"), "oh", id="raises"),
        pytest.param(pending("soon"), "soon", id="pending is not allowed"),
        pytest.param(wait(3), "returned Wait", id="wait is not allowed"),
        pytest.param(
            None, "pre_filter returned None, which is not a Status (saying.py:7)", id="returns None"
        ),
    ],
)
def test_an_error_in_pre_filter_names_the_plugin(bench, depends, result, text):
    workbench = bench([make("A", depends, pre_filter=saying(result), filter=saying(SUCCESS))])
    for _ in range(2):
        with pytest.raises(PluginError) as raised:
            workbench.run(POD)
        assert str(raised.value) == f'running PreFilter plugin "A": {text}'


# Filter


@EVERY_DEPENDS
def test_the_first_rejection_counts(bench, depends):
    plugins = [
        make("A", depends, filter=refusing("n1", status=NEVER)),
        make("B", depends, filter=refusing("n1", "n2")),
    ]
    results = bench(plugins).run(POD)
    assert results.fits == ["n3"]
    assert (results.why_not("n1"), results.why_not("n2")) == (NEVER.by("A"), NO.by("B"))
    assert results.filtered.rejected_by == [1, 1]


def test_the_first_rejection_counts_among_cached_and_uncached_filters(bench):
    kinds = [Depends.ANYTHING, Depends.NODE, Depends.PLACEMENTS, Depends.USAGE]
    plugins = [
        make(f"P{i}", depends, filter=refusing(*ALL[: i + 1])) for i, depends in enumerate(kinds)
    ]
    results = bench(plugins).run(POD)
    assert [results.why_not(name).plugin for name in ALL] == ["P0", "P1", "P2"]
    assert bench(plugins[::-1]).run(POD).why_not("n1").plugin == "P3"


@EVERY_DEPENDS
def test_the_whole_cluster_form_is_used_for_many_nodes(bench, depends):
    def filter_all(self, state, pod, table):
        return Verdicts(fits=~table.named(["n2"]), otherwise=NO)

    plugin = make("A", depends, filter=by_name(), filter_all=filter_all)
    results = bench([plugin]).run(POD)
    assert (results.fits, results.why_not("n2")) == (["n1", "n3"], NO.by("A"))


@EVERY_DEPENDS
def test_several_reasons(bench, depends):
    reasons = [SUCCESS, NO, NEVER]

    def filter_all(self, state, pod, table):
        codes = np.zeros(len(table), dtype=np.int64)
        codes[table.named(["n1"])], codes[table.named(["n2"])] = 1, 2
        return Verdicts(codes=codes, status_of=reasons.__getitem__)

    plugin = make("A", depends, filter=by_name(), filter_all=filter_all)
    results = bench([plugin]).run(POD)
    rows = np.flatnonzero(results.profile.cluster.table.active)
    assert [(s, len(r)) for s, r in results.filtered.by_status(rows)] == [
        (NO.by("A"), 1),
        (NEVER.by("A"), 1),
    ]


def test_uncached_filters_do_not_run_for_rejected_nodes(bench):
    filtered = []

    def recording(self, state, pod, node):
        filtered.append(node.name)
        return SUCCESS

    plugins = [make("A", Depends.NODE, filter=refusing("n2")), make("B", filter=recording)]
    bench(plugins).run(POD)
    assert filtered == ["n1", "n3"]


@EVERY_DEPENDS
@pytest.mark.parametrize(
    ("result", "text"),
    [
        pytest.param(PluginFailure("oh"), "oh", id="raises"),
        pytest.param(
            None,
            "filter returned None, which is not a Status (test_template_views.py:38)",
            id="returns None",
        ),
        pytest.param(SKIP, "returned Skip", id="a code that is not allowed here"),
    ],
)
def test_an_error_for_a_node_fails_the_pod(bench, depends, result, text):
    workbench = bench([make("A", depends, filter=by_name(n1=SUCCESS, n2=result, n3=SUCCESS))])
    failure = workbench.run(POD).failure
    assert failure.code is Code.ERROR
    assert (failure.plugin, failure.message) == ("A", f'running "A" filter plugin: {text}')


@EVERY_DEPENDS
def test_an_error_for_a_node_that_another_plugin_rejects_is_ignored(bench, depends):
    plugins = [
        make("A", Depends.NODE, filter=refusing("n2")),
        make("B", depends, filter=by_name(n1=SUCCESS, n2=PluginFailure("oh"), n3=SUCCESS)),
    ]
    results = bench(plugins).run(POD)
    assert (results.failure, results.fits) == (None, ["n1", "n3"])


@EVERY_DEPENDS
def test_an_error_in_the_whole_cluster_form_names_the_plugin(bench, depends):
    plugin = make("A", depends, filter=saying(SUCCESS), filter_all=saying(PluginFailure("oh")))
    workbench = bench([plugin])
    for _ in range(2):
        failure = workbench.run(POD).failure
        assert (failure.plugin, failure.message) == ("A", 'running "A" filter plugin: oh')


@EVERY_DEPENDS
@pytest.mark.parametrize(
    ("refused", "failed"),
    [
        pytest.param(("n1", "n2", "n3"), False, id="every node is rejected before"),
        pytest.param(("n1", "n2"), True, id="a node is left"),
    ],
)
def test_an_error_in_the_whole_cluster_form_is_one_of_the_rows_that_are_left(
    bench, depends, refused, failed
):
    raising = saying(PluginFailure("oh"))
    plugins = [
        make("A", Depends.NODE, filter=refusing(*refused)),
        make("B", depends, filter=saying(SUCCESS), filter_all=raising),
    ]
    workbench = bench(plugins)
    for _ in range(2):
        assert (workbench.run(POD).failure is not None) == failed


@EVERY_DEPENDS
def test_an_error_in_the_whole_cluster_form_is_not_kept(bench, depends):
    fails = [True]

    def filter_all(self, state, pod, table):
        if fails[0]:
            raise PluginFailure("oh")
        return Verdicts(all_fit=len(table))

    workbench = bench([make("A", depends, filter=saying(SUCCESS), filter_all=filter_all)])
    assert workbench.run(POD).failure is not None
    fails[0] = False
    assert workbench.run(POD).failure is None


@EVERY_DEPENDS
def test_an_error_is_gone_after_its_node_is_updated(bench, depends):
    def count(self, state, pod, node):
        return SUCCESS if int(node.labels.get("rank", "0")) < 9 else NO

    workbench = bench([make("A", depends, filter=count)])
    table = workbench.cluster.table
    assert workbench.run(POD).failure is None
    table.set_node(make_node("n2", labels={"rank": "high"}))
    assert "invalid literal" in workbench.run(POD).failure.message
    table.set_node(make_node("n2", labels={"rank": "10"}))
    results = workbench.run(POD)
    assert (results.failure, results.fits) == (None, ["n1", "n3"])


# Score


@EVERY_DEPENDS
def test_scores_are_weighted_and_summed(bench, depends):
    plugins = [
        make("A", depends, score=by_name(n1=10, n2=20, n3=30)),
        make("B", depends, score=by_name(n1=1, n2=2, n3=3)),
    ]
    score = {"enabled": [{"name": "A", "weight": 3}, {"name": "B"}]}
    results = bench(plugins, score=score).run(POD)
    assert [results.total(name) for name in ALL] == [31, 62, 93]
    assert results.scores("n2") == {"A": 60, "B": 2}


def test_scores_are_shown_in_the_configured_order(bench):
    plugins = [
        make("A", score=saying(1)),
        make("B", Depends.NODE, score=saying(1)),
        make("C", score=saying(1)),
        make("D", Depends.USAGE, score=saying(1)),
    ]
    assert list(bench(plugins).run(POD).scores("n1")) == ["A", "B", "C", "D"]


@EVERY_DEPENDS
def test_48_a_plugin_that_skips_in_pre_score_adds_no_score(bench, depends):
    plugin = make("A", depends, pre_score=saying(SKIP), score=saying(7))
    results = bench([plugin]).run(POD)
    assert [results.total(name) for name in ALL] == [0, 0, 0]
    assert results.scores("n1") == {}


@EVERY_DEPENDS
def test_rejected_nodes_have_no_total(bench, depends):
    plugins = [make("A", depends, filter=refusing("n2"), score=by_name(n1=1, n2=2, n3=3))]
    assert [bench(plugins).run(POD).total(name) for name in ALL] == [1, -1, 3]


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
    assert [bench(plugins).run(POD).total(name) for name in ALL] == [50, 100, -1]


@EVERY_DEPENDS
def test_normalisation_of_all_scores_together(bench, depends):
    def normalize_score(self, state, pod, scores):
        return scores - scores.min()

    plugin = make("A", depends, score=by_name(n1=-5, n2=7, n3=0), normalize_score=normalize_score)
    assert [bench([plugin]).run(POD).total(name) for name in ALL] == [0, 12, 5]


@EVERY_DEPENDS
def test_a_normalizer_of_none_is_no_normalizer(bench, depends):
    plain = make("A", depends, score=saying(7), normalizer=None)
    assert bench([plain]).run(POD).total("n1") == 7
    together = make(
        "A",
        depends,
        score=saying(7),
        normalizer=None,
        normalize_score=lambda self, state, pod, scores: scores * 2,
    )
    assert bench([together]).run(POD).total("n1") == 14


class Share:
    """A normalizer that divides 100 by the number of feasible nodes."""

    def summarize(self, feasible):
        return int(feasible.sum())

    def apply(self, raw, summary):
        return raw * 100 // summary


@EVERY_DEPENDS
def test_a_normalizer_may_count_feasible_nodes(bench, depends):
    plugin = make("A", depends, score=saying(5), normalizer=Share())
    results = bench([plugin], nodes=[f"n{i}" for i in range(64)]).run(POD)
    assert results.total("n0") == 1


class Halves:
    """A normalizer that returns floats."""

    def summarize(self, feasible):
        return 2

    def apply(self, raw, summary):
        return raw / summary


@EVERY_DEPENDS
def test_a_normalizers_floats_are_truncated(bench, depends):
    plugin = make("A", depends, score=saying(5), normalizer=Halves())
    workbench = bench([plugin])
    assert workbench.run(POD).total("n1") == 2
    workbench.cluster.table.set_node(make_node("n1", labels={"changed": "a little"}))
    assert workbench.run(POD).total("n1") == 2


@EVERY_DEPENDS
@pytest.mark.parametrize(
    ("score", "invalid"), [(101, True), (-1, True), (0, False), (100, False)], ids=str
)
def test_scores_lie_between_0_and_100(bench, depends, score, invalid):
    workbench = bench([make("A", depends, score=by_name(n1=1, n2=score, n3=3))])
    if not invalid:
        assert workbench.run(POD).total("n2") == score
        return
    for _ in range(2):
        with pytest.raises(PluginError) as raised:
            workbench.run(POD)
        assert str(raised.value) == (
            'applying score defaultWeights on Score plugins: plugin "A" returns an invalid score '
            f"{score}, it should in the range of [0, 100] after normalizing"
        )


@EVERY_DEPENDS
def test_an_invalid_score_of_a_rejected_node_is_ignored(bench, depends):
    plugin = make("A", depends, filter=refusing("n2"), score=by_name(n1=1, n2=999, n3=3))
    assert bench([plugin]).run(POD).total("n3") == 3


@EVERY_DEPENDS
def test_an_error_for_a_rejected_node_is_ignored(bench, depends):
    plugin = make(
        "A", depends, filter=refusing("n2"), score=by_name(n1=1, n2=PluginFailure("oh"), n3=3)
    )
    workbench = bench([plugin])
    assert workbench.run(POD).total("n3") == 3
    workbench.cluster.table.set_node(make_node("n2", labels={"changed": "a little"}))
    assert workbench.run(POD).total("n3") == 3


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
            {"pre_score": saying(NO)}, 'running PreScore plugin "A": no', id="pre_score rejects"
        ),
        pytest.param(
            {"pre_score": saying(None)},
            'running PreScore plugin "A": pre_score returned None, which is not a Status',
            id="pre_score returns None",
        ),
        pytest.param(
            {"normalize_score": saying(PluginFailure("oh"))}, NORMALIZING + "oh", id="all"
        ),
        pytest.param({"normalizer": Broken("summarize")}, NORMALIZING + "oh", id="summarize"),
        pytest.param({"normalizer": Broken("apply")}, NORMALIZING + "oh", id="apply"),
        pytest.param({"normalizer": Broken("nonsense")}, NORMALIZING, id="nonsense"),
        pytest.param({"reads": saying(PluginFailure("oh"))}, 'plugin "A": reads: oh', id="reads"),
        pytest.param(
            {"reads": saying([])},
            'plugin "A": reads: reads returned [], which is not hashable',
            id="unhashable",
        ),
    ],
)
def test_an_error_while_scoring_names_the_plugin(bench, depends, body, text):
    workbench = bench([make("A", depends, **{"score": saying(1), **body})])
    if "reads" in body and depends in (Depends.PLACEMENTS, Depends.ANYTHING):
        assert workbench.run(POD).total("n1") == 1  # Nothing is cached, so `reads` is not called.
        return
    if "reads" in body and depends in BY_PODS:
        assert workbench.run(POD).total("n1") == 1  # Nor for the first pod of its template.
    for _ in range(2):
        with pytest.raises(PluginError) as raised:
            workbench.run(POD)
        assert raised.value.plugin == "A"
        assert str(raised.value).startswith(text)


@pytest.mark.parametrize(
    ("bodies", "text"),
    [
        pytest.param(
            [{"score": saying(PluginFailure("oh"))}, {"score": saying(PluginFailure("no"))}],
            'plugin "A" failed with: oh',
            id="the first plugin",
        ),
        pytest.param(
            [{"score": saying(101)}, {"score": saying(PluginFailure("no"))}],
            'plugin "B" failed with: no',
            id="an error before a score out of range",
        ),
        pytest.param(
            [{"score": saying(PluginFailure("oh"))}, {"pre_score": saying(PluginFailure("no"))}],
            'running PreScore plugin "B": no',
            id="pre_score before scores",
        ),
    ],
)
@pytest.mark.parametrize("cached", [0, 1])
def test_one_of_several_errors_while_scoring(bench, bodies, text, cached):
    depends = [Depends.ANYTHING, Depends.ANYTHING]
    depends[cached] = Depends.NODE
    plugins = [
        make(name, each, **{"score": saying(1), **body})
        for name, each, body in zip("AB", depends, bodies, strict=True)
    ]
    workbench = bench(plugins)
    for _ in range(2):
        with pytest.raises(PluginError, match=text):
            workbench.run(POD)


@EVERY_DEPENDS
def test_pre_score_runs_without_score(bench, depends):
    failing = make("A", depends, pre_score=saying(PluginFailure("oh")), score=saying(1))
    other = make("B", Depends.NODE, score=saying(1))
    workbench = bench([failing, other], score={"disabled": [{"name": "A"}]})
    for _ in range(2):
        with pytest.raises(PluginError, match='running PreScore plugin "A": oh'):
            workbench.run(POD)
    workbench = bench([failing, other], score={"disabled": [{"name": "*"}]})
    assert workbench.run(POD).total("n1") == 0


@EVERY_DEPENDS
def test_totals_are_correct_after_an_error(bench, depends):
    """Scores that were partly updated when a plugin raised are not used afterwards."""

    def reading(label):
        return lambda self, state, pod, node: int(node.labels.get(label, "1"))

    workbench = bench(
        [
            make("A", depends, score=reading("a"), normalizer=ByMax()),
            make("B", depends, score=reading("b")),
        ]
    )
    table = workbench.cluster.table
    assert [workbench.run(POD).total(name) for name in ALL] == [101, 101, 101]
    table.set_node(make_node("n1", labels={"a": "4", "b": "500"}))
    with pytest.raises(PluginError, match="invalid score 500"):
        workbench.run(POD)
    table.set_node(make_node("n1", labels={"a": "4", "b": "5"}))
    assert [workbench.run(POD).total(name) for name in ALL] == [105, 26, 26]


# What is cached, and which pods share it


def counting(result=SUCCESS):
    calls = []

    def method(self, state, pod, node):
        calls.append(node.name)
        return result

    return calls, method


@pytest.mark.parametrize(
    ("depends", "after_pod", "after_node"),
    [
        pytest.param(Depends.NODE, [], ["n2"], id="that node's object"),
        pytest.param(Depends.USAGE, ["n2"], ["n2"], id="the node's object and its pods"),
        pytest.param(Depends.RESOURCES, ["n2"], [], id="the node's resources"),
        pytest.param(Depends.NODES, [], ALL, id="all node objects"),
        pytest.param(Depends.PLACEMENTS, ALL, ALL, id="all pods"),
        pytest.param(Depends.ANYTHING, ALL, ALL, id="anything"),
    ],
)
@pytest.mark.parametrize("point", ["filter", "score"])
def test_changes_invalidate_the_results_that_depend_on_them(
    bench, point, depends, after_pod, after_node
):
    calls, method = counting(SUCCESS if point == "filter" else 1)
    workbench = bench([make("A", depends, **{point: method})])
    table = workbench.cluster.table
    workbench.templates.of(POD)  # Nothing is cached for a template seen once.
    workbench.run(POD)
    assert calls == ALL
    calls.clear()
    workbench.run(make_pod("equal"))
    assert calls == (ALL if depends in (Depends.PLACEMENTS, Depends.ANYTHING) else [])
    calls.clear()
    other = make_pod("other", node="n2")
    table.add_pod("n2", other, workbench.templates.of(other).usage)
    workbench.run(POD)
    assert calls == after_pod
    calls.clear()
    table.set_node(make_node("n2", labels={"a": "b"}))
    workbench.run(POD)
    assert calls == after_node


def test_pods_with_equal_reads_share_results(bench):
    calls, method = counting(1)
    plugin = make("A", Depends.NODE, score=method, reads=lambda self, pod: pod.spec.tolerations)
    workbench = bench([plugin])
    exists = [Toleration(operator="Exists")]
    for i in range(2):  # The results for what is read for the first time are not kept.
        workbench.run(make_pod(f"a{i}", labels={"a": f"{i}"}))
        workbench.run(make_pod(f"b{i}", labels={"a": f"{i}"}, tolerations=exists))
    calls.clear()
    workbench.run(make_pod("c", labels={"a": "2"}))
    workbench.run(make_pod("d", labels={"a": "2"}, tolerations=exists, priority=5))
    assert calls == []


def test_templates_without_reads_do_not_share_results(bench):
    calls, method = counting()
    workbench = bench([make("A", Depends.NODE, filter=method)])
    workbench.run(make_pod("a", labels={"a": "1"}))
    workbench.run(make_pod("b", labels={"a": "2"}))
    assert calls == ALL * 2


class Spread:
    """Scores by how many nodes have the same disk; `nodes_key` says how many have each."""

    name = "Spread"
    depends = Depends.NODES
    looked: list[str]

    def __new__(cls, **_):
        cls.looked = []
        return super().__new__(cls)

    def nodes_key(self, pod, table):
        return tuple(sorted(node.labels.get("disk", "") for node in table.nodes if node))

    def score(self, state, pod, node):
        self.looked.append(node.name)
        return self.nodes_key(pod, node.table).count(node.labels.get("disk", ""))


def test_results_that_depend_on_all_nodes_hold_while_the_nodes_key_is_equal(bench):
    workbench = bench([Spread])

    def run_after(*nodes):
        for node in nodes:
            workbench.cluster.table.set_node(node)
        results, looked = workbench.run(POD), [*Spread.looked]
        Spread.looked.clear()
        return [results.total(name) for name in ALL], looked

    for _ in range(2):  # Nothing is kept of the first pod of a template.
        run_after()
    assert run_after() == ([3, 3, 3], [])
    assert run_after(make_node("n2", labels={"rack": "1"})) == ([3, 3, 3], ["n2"])
    assert run_after(make_node("n2", labels={"disk": "ssd"})) == ([2, 1, 2], ALL)


def test_a_nodes_key_that_is_not_hashable(bench):
    unhashable = type("Unhashable", (Spread,), {"nodes_key": lambda *_: []})
    with pytest.raises(PluginError, match=r"nodes_key returned \[\], which is not hashable"):
        bench([unhashable]).run(POD)


def test_a_hundred_templates_by_turns_keep_their_views(bench):
    """As many as teams with a namespace of their own, in a cluster of 5,000 nodes."""
    workbench = bench([make("A", Depends.NODE, filter=counting()[1])])
    workbench.cluster.table.reserve(5_000)

    def views():
        pods = [make_pod(f"p{i}", labels={"team": f"{i}"}) for i in range(100)]
        return [workbench.profile.views.of(workbench.templates.of(pod)) for pod in pods]

    views()  # The first pod of a template has no views of its own.
    assert all(one is other for one, other in zip(views(), views(), strict=True))


DISKS, RARE = StateKey("Rarest.disks"), StateKey("Rarest.rare")


def test_a_change_of_any_node_invalidates_results_that_depend_on_all_nodes(bench):
    """`NODES` also covers what pre_filter and pre_score compute from all nodes."""

    class Rarest:
        """Scores 100 for nodes with a rare disk; disks are counted in pre_filter and pre_score."""

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
    assert [workbench.run(POD).total(name) for name in ALL] == [0, 0, 100]
    workbench.cluster.table.set_node(make_node("n1", labels={"disk": "ssd"}))
    assert [workbench.run(POD).total(name) for name in ALL] == [0, 100, 0]
    workbench.cluster.table.set_node(make_node("n2", labels={"disk": "ssd"}))
    assert workbench.run(POD).fits == []
    workbench.cluster.table.remove_node("n1")
    results = workbench.run(POD)
    assert (results.pre.skipped, results.fits) == ({"Rarest"}, ["n2", "n3"])


HEAVY = 1 << 25


def test_weighted_32_bit_scores_do_not_overflow(bench):
    """A plugin may return 32-bit scores; the weighted score may need more bits."""
    plugin = make(
        "A",
        Depends.USAGE,
        score=lambda self, state, pod, node: 100,
        score_all=lambda self, state, pod, table: np.full(len(table), 100, dtype=np.int32),
    )
    score = {"enabled": [{"name": "A", "weight": HEAVY}]}
    workbench = bench([plugin], score=score)
    assert workbench.run(POD).total("n1") == 100 * HEAVY
