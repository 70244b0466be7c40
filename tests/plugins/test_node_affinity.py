import pickle

import numpy as np
import pytest

from moorage import plugin as mp
from moorage.api.meta import LabelSelectorRequirement, NodeSelectorTerm
from moorage.api.pod import Affinity, PreferredSchedulingTerm
from moorage.plugins.node_affinity import (
    CONFLICT,
    NOT_ENFORCED,
    NOT_MATCHED,
    NodeAffinity,
)
from moorage.testing import (
    check_plugin,
    check_twins,
    make_node,
    make_pod,
    make_state,
    make_table,
    run_plugin,
)


def need(key, operator="In", *values):
    return LabelSelectorRequirement(key=key, operator=operator, values=values)


def named(*names, operator="In"):
    return need("metadata.name", operator, *names)


def term(*expressions, fields=()):
    return NodeSelectorTerm(match_expressions=expressions, match_fields=tuple(fields))


def node_affinity(*terms, preferred=None):
    """Required terms, None for no requirement at all; preferred ones with their weights."""
    liked = preferred and tuple(
        PreferredSchedulingTerm(weight=weight, preference=liking) for weight, liking in preferred
    )
    required = None if terms == (None,) else mp.NodeSelector(node_selector_terms=terms)
    return mp.NodeAffinity(
        required_during_scheduling_ignored_during_execution=required,
        preferred_during_scheduling_ignored_during_execution=liked,
    )


def liking(*preferred):
    return node_affinity(None, preferred=preferred)


def requiring(*terms, **fields):
    return make_pod(affinity=Affinity(node_affinity=node_affinity(*terms)), **fields)


def preferring(*preferred):
    return make_pod(affinity=Affinity(node_affinity=liking(*preferred)))


FOO = term(need("foo", "In", "bar", "value2"))
BAD = term(need("foo", "In", "not a value"))
NODE = make_node("n1", labels={"foo": "bar", "gen": "0206"})


@pytest.mark.parametrize(
    ("pod", "status"),
    [
        pytest.param(make_pod(), mp.SUCCESS, id="nothing required"),
        pytest.param(make_pod(node_selector={"foo": "bar"}), mp.SUCCESS, id="a selector"),
        pytest.param(make_pod(node_selector={}), mp.SUCCESS, id="an empty selector"),
        pytest.param(
            make_pod(node_selector={"foo": "no"}), NOT_MATCHED, id="another value selected"
        ),
        pytest.param(make_pod(node_selector={"none": ""}), NOT_MATCHED, id="absent is not empty"),
        pytest.param(
            make_pod(node_selector={"foo": "bar", "baz": "x"}), NOT_MATCHED, id="all labels needed"
        ),
        pytest.param(requiring(FOO), mp.SUCCESS, id="In"),
        pytest.param(requiring(term(need("foo", "In", "no"))), NOT_MATCHED, id="In other values"),
        pytest.param(requiring(term(need("none", "NotIn", "x"))), mp.SUCCESS, id="NotIn, absent"),
        pytest.param(
            requiring(term(need("foo", "NotIn", "bar"))), NOT_MATCHED, id="NotIn, present"
        ),
        pytest.param(requiring(term(need("foo", "Exists"))), mp.SUCCESS, id="Exists"),
        pytest.param(requiring(term(need("foo", "DoesNotExist"))), NOT_MATCHED, id="DoesNotExist"),
        pytest.param(
            requiring(term(need("gen", "Gt", "0204"))), mp.SUCCESS, id="Gt with leading zeros"
        ),
        pytest.param(requiring(term(need("gen", "Lt", "206"))), NOT_MATCHED, id="Lt is strict"),
        pytest.param(
            requiring(term(need("foo", "Gt", "1"))),
            NOT_MATCHED,
            id="Gt with a value that is not a number",
        ),
        pytest.param(requiring(BAD), NOT_MATCHED, id="In with an invalid value never matches"),
        pytest.param(
            requiring(term(need("foo", "NotIn", "not a value"))),
            NOT_MATCHED,
            id="NotIn with an invalid value never matches",
        ),
        pytest.param(
            requiring(term(need("gen", "Gt", "-1"))), NOT_MATCHED, id="a signed bound is no value"
        ),
        pytest.param(
            requiring(term(need("foo", "Like", "b"))), NOT_MATCHED, id="an unknown operator"
        ),
        pytest.param(requiring(BAD, FOO), mp.SUCCESS, id="a bad term does not spoil a good one"),
        pytest.param(requiring(term()), NOT_MATCHED, id="an empty term never matches"),
        pytest.param(requiring(), NOT_MATCHED, id="no terms match nothing"),
        pytest.param(requiring(term(), FOO), mp.SUCCESS, id="an empty term and another one"),
        pytest.param(
            requiring(term(need("none", "Exists")), FOO), mp.SUCCESS, id="one term is enough"
        ),
        pytest.param(
            requiring(term(need("foo", "Exists"), need("none", "Exists"))),
            NOT_MATCHED,
            id="all requirements of a term are needed",
        ),
        pytest.param(
            requiring(FOO, node_selector={"foo": "no"}), NOT_MATCHED, id="selector and terms, both"
        ),
        pytest.param(requiring(term(fields=[named("n1")])), mp.SUCCESS, id="by name"),
        pytest.param(
            requiring(term(fields=[named("n1", operator="NotIn")])),
            NOT_MATCHED,
            id="all but a name",
        ),
        pytest.param(
            requiring(term(fields=[named("n2", operator="NotIn")])), mp.SUCCESS, id="another name"
        ),
        pytest.param(
            requiring(term(need("foo", "Exists"), fields=[named("n1")])),
            mp.SUCCESS,
            id="by name and label",
        ),
        pytest.param(
            requiring(term(need("none", "Exists"), fields=[named("n1")])),
            NOT_MATCHED,
            id="the right name, but not the label",
        ),
        pytest.param(
            requiring(term(fields=[need("metadata.namespace", "In", "x")])),
            NOT_MATCHED,
            id="an unknown field reads as empty",
        ),
        pytest.param(
            requiring(term(fields=[need("metadata.namespace", "NotIn", "x")])),
            mp.SUCCESS,
            id="an unknown field is not in anything",
        ),
        pytest.param(
            requiring(term(fields=[named("n1", "n2")])),
            NOT_MATCHED,
            id="several names in one field do not parse",
        ),
        pytest.param(
            requiring(term(fields=[named("n1", operator="Exists")])),
            NOT_MATCHED,
            id="fields know only In and NotIn",
        ),
    ],
)
def test_filter(pod, status):
    assert run_plugin(NodeAffinity(), pod, NODE, others=[make_node("n2")]).status == status
    check_twins(NodeAffinity(), pod, make_table([NODE, make_node("n2")]))


def test_reasons():
    assert [(s.code, s.message) for s in (NOT_ENFORCED, NOT_MATCHED, CONFLICT)] == [
        (mp.Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reason)
        for reason in (
            "node(s) didn't match scheduler-enforced node affinity",
            "node(s) didn't match Pod's node affinity/selector",
            "pod affinity terms conflict",
        )
    ]


def pre_filter(pod, plugin=None):
    return (plugin or NodeAffinity()).pre_filter(make_state(pod, make_table([])), pod)


@pytest.mark.parametrize(
    ("pod", "answer"),
    [
        pytest.param(make_pod(), mp.SKIP, id="nothing required"),
        pytest.param(preferring((1, FOO)), mp.SKIP, id="only preferences"),
        pytest.param(make_pod(node_selector={}), mp.SUCCESS, id="an empty selector does not skip"),
        pytest.param(requiring(), mp.SUCCESS, id="no terms: the filter is to refuse"),
        pytest.param(requiring(FOO), mp.SUCCESS, id="no names"),
        pytest.param(
            requiring(term(fields=[named("n1"), named("n2")])), CONFLICT, id="two names at once"
        ),
        pytest.param(
            requiring(term(fields=[named("n1")]), term(fields=[named("n2")])),
            mp.only_nodes({"n1", "n2"}),
            id="either of two names",
        ),
        pytest.param(
            requiring(term(fields=[named("n1"), named("n2")]), FOO),
            mp.SUCCESS,
            id="a conflict and a term without names",
        ),
        pytest.param(
            requiring(term(fields=[named("n1"), named("n2")]), term(fields=[named("n3")])),
            mp.only_nodes({"n3"}),
            id="a conflict and a name",
        ),
        pytest.param(
            requiring(term(need("foo", "In", "bar"), fields=[named("n1")])),
            mp.only_nodes({"n1"}),
            id="a name and a label: only the name narrows",
        ),
        pytest.param(
            requiring(term(fields=[named("n1", operator="NotIn")])),
            mp.SUCCESS,
            id="all but a name does not narrow",
        ),
        pytest.param(
            requiring(term(fields=[named("n1", "n2")])),
            mp.only_nodes({"n1", "n2"}),
            id="several names narrow, although the filter will refuse",
        ),
        pytest.param(requiring(term()), mp.SUCCESS, id="an empty term does not narrow"),
    ],
)
def test_pre_filter(pod, answer):
    assert pre_filter(pod) == answer


def test_the_filter_runs_for_the_node_set_of_pre_filter():
    pod = requiring(term(need("foo", "In", "bar"), fields=[named("n1")]))
    table = make_table([make_node(name, labels={"foo": "bar"}) for name in ("n1", "n2")])
    state = make_state(pod, table)
    assert NodeAffinity().pre_filter(state, pod) == mp.only_nodes({"n1"})
    assert NodeAffinity().filter(state, pod, table.info(table.row_of["n2"])) == NOT_MATCHED


ADDED = NodeAffinity(added_affinity=node_affinity(term(need("zone", "In", "a"))))


@pytest.mark.parametrize(
    ("labels", "pod", "status"),
    [
        pytest.param({"zone": "b"}, make_pod(), NOT_ENFORCED, id="not what the profile wants"),
        pytest.param({"zone": "a"}, make_pod(), mp.SUCCESS, id="what the profile wants"),
        pytest.param({"zone": "a"}, requiring(FOO), NOT_MATCHED, id="but not what the pod wants"),
        pytest.param({"foo": "bar"}, requiring(FOO), NOT_ENFORCED, id="only what the pod wants"),
        pytest.param({}, requiring(FOO), NOT_ENFORCED, id="neither: the profile speaks first"),
        pytest.param({"zone": "a", "foo": "bar"}, requiring(FOO), mp.SUCCESS, id="what both want"),
    ],
)
def test_added_affinity(labels, pod, status):
    node = make_node(labels=labels)
    assert run_plugin(ADDED, pod, node).status == status
    check_twins(ADDED, pod, make_table([node]))


def test_added_terms_do_not_narrow():
    plugin = NodeAffinity(added_affinity=node_affinity(term(fields=[named("n1")])))
    assert pre_filter(make_pod(), plugin) == mp.SUCCESS


def test_added_affinity_without_terms_matches_nothing():
    plugin = NodeAffinity(added_affinity=node_affinity())
    assert run_plugin(plugin, make_pod(), NODE).status == NOT_ENFORCED


@pytest.mark.parametrize(
    ("added", "path"),
    [
        pytest.param(
            node_affinity(FOO, BAD), "nodeSelectorTerms[1].matchExpressions", id="required"
        ),
        pytest.param(liking((5, BAD)), "Execution[0].matchExpressions[0].values", id="preferred"),
    ],
)
def test_added_terms_have_to_parse(added, path):
    with pytest.raises(ValueError, match=r"^addedAffinity\.") as raised:
        NodeAffinity(added_affinity=added)
    assert path in str(raised.value)


def pre_score(pod, plugin=None):
    table = make_table([])
    return (plugin or NodeAffinity()).pre_score(make_state(pod, table), pod, table.active_rows)


LIKES_KEY = NodeAffinity(added_affinity=liking((3, term(need("key", "Exists")))))


@pytest.mark.parametrize(
    ("plugin", "pod", "answer"),
    [
        pytest.param(NodeAffinity(), make_pod(), mp.SKIP, id="no preferences"),
        pytest.param(NodeAffinity(), requiring(FOO), mp.SKIP, id="only requirements"),
        pytest.param(NodeAffinity(), preferring(), mp.SUCCESS, id="an empty list does not skip"),
        pytest.param(NodeAffinity(), preferring((1, FOO)), mp.SUCCESS, id="the pod has some"),
        pytest.param(LIKES_KEY, make_pod(), mp.SUCCESS, id="the profile has some"),
        pytest.param(
            NodeAffinity(added_affinity=liking()), make_pod(), mp.SKIP, id="an empty list added"
        ),
    ],
)
def test_pre_score(plugin, pod, answer):
    assert pre_score(pod, plugin) == answer


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        pytest.param(
            term(need("invalid key", "In", "x")),
            '[0].matchExpressions[0].key: Invalid value: "invalid key": name part must consist of',
            id="an invalid key",
        ),
        pytest.param(
            term(fields=[named("a", "b")]),
            '[0].matchFields[0].values: Invalid value: ["a","b"]: must have one element',
            id="a field with two values",
        ),
    ],
)
def test_preferred_terms_have_to_parse(wrong, text):
    with pytest.raises(ValueError, match=r"^\[0\]") as raised:
        pre_score(preferring((1, wrong)))
    assert str(raised.value).startswith(text)


def test_preferred_terms_that_cannot_count_are_not_even_parsed():
    assert pre_score(preferring((0, BAD), (5, term()))) == mp.SUCCESS


def has(*keys):
    return term(*(need(key, "Exists") for key in keys))


@pytest.mark.parametrize(
    ("plugin", "pod", "per_node", "expected"),
    [
        pytest.param(
            NodeAffinity(),
            preferring((2, has("foo")), (4, has("key")), (5, has("foo", "key", "az"))),
            [("foo",), ("foo", "key", "az"), ("key",)],
            [18, 100, 36],
            id="weights add up",
        ),
        pytest.param(
            LIKES_KEY,
            preferring((2, has("foo"))),
            [("foo",), ("key",), ("foo", "key")],
            [40, 60, 100],
            id="the profile's and the pod's add up",
        ),
        pytest.param(
            NodeAffinity(), preferring((2, has("foo"))), [(), ()], [0, 0], id="no node is liked"
        ),
        pytest.param(NodeAffinity(), preferring(), [("foo",), ()], [0, 0], id="an empty list"),
        pytest.param(
            NodeAffinity(),
            preferring((1, term(fields=[named("n1")]))),
            [(), ()],
            [0, 100],
            id="by name",
        ),
        pytest.param(
            NodeAffinity(), make_pod(), [("foo",), ()], [None, None], id="no preferences, no scores"
        ),
    ],
)
def test_score(plugin, pod, per_node, expected):
    nodes = [make_node(f"n{i}", labels=dict.fromkeys(keys, "x")) for i, keys in enumerate(per_node)]
    ran = [run_plugin(plugin, pod, n, others=[o for o in nodes if o is not n]) for n in nodes]
    assert [one.score for one in ran] == expected
    check_twins(plugin, pod, make_table(nodes))


@pytest.mark.parametrize(
    ("raw", "scores"),
    [
        pytest.param([1, 2, 3, 4], [25, 50, 75, 100], id="in proportion"),
        pytest.param([1000, 1, 1, 1], [100, 0, 0, 0], id="small ones are truncated to nothing"),
        pytest.param([0, 0], [0, 0], id="nothing anywhere"),
    ],
)
def test_normalizer(raw, scores):
    normalizer = NodeAffinity.normalizer
    array = np.array(raw, dtype=np.int64)
    assert normalizer.apply(array, normalizer.summarize(array)).tolist() == scores


MATCH, NO_MATCH = make_node(labels={"foo": "bar"}), make_node(labels={"foo": "no"})


@pytest.mark.parametrize("event", [mp.ClusterEvent.NODE_ADD, mp.ClusterEvent.UPDATE_NODE_LABEL])
@pytest.mark.parametrize(
    ("plugin", "pod", "old", "new", "hint"),
    [
        pytest.param(
            NodeAffinity(), requiring(FOO), None, MATCH, mp.Hint.QUEUE, id="a new node that matches"
        ),
        pytest.param(
            NodeAffinity(),
            requiring(FOO),
            None,
            NO_MATCH,
            mp.Hint.QUEUE_SKIP,
            id="one that does not",
        ),
        pytest.param(
            NodeAffinity(), requiring(FOO), NO_MATCH, MATCH, mp.Hint.QUEUE, id="it matches now"
        ),
        pytest.param(
            NodeAffinity(), requiring(FOO), MATCH, MATCH, mp.Hint.QUEUE_SKIP, id="it matched before"
        ),
        pytest.param(
            NodeAffinity(), requiring(FOO), MATCH, NO_MATCH, mp.Hint.QUEUE_SKIP, id="no longer"
        ),
        pytest.param(
            NodeAffinity(),
            make_pod(node_selector={"foo": "bar"}),
            NO_MATCH,
            MATCH,
            mp.Hint.QUEUE,
            id="by node selector",
        ),
        pytest.param(
            NodeAffinity(), requiring(BAD), None, MATCH, mp.Hint.QUEUE, id="a term does not parse"
        ),
        pytest.param(
            NodeAffinity(),
            requiring(BAD, node_selector={"foo": "bar"}),
            None,
            NO_MATCH,
            mp.Hint.QUEUE_SKIP,
            id="a term does not parse, but the selector settles it",
        ),
        pytest.param(
            NodeAffinity(),
            requiring(BAD, FOO),
            MATCH,
            MATCH,
            mp.Hint.QUEUE_SKIP,
            id="a term does not parse, but another matched before",
        ),
        pytest.param(
            ADDED,
            requiring(FOO),
            NO_MATCH,
            MATCH,
            mp.Hint.QUEUE_SKIP,
            id="not what the profile wants",
        ),
        pytest.param(
            ADDED,
            requiring(FOO),
            None,
            make_node(labels={"zone": "a", "foo": "bar"}),
            mp.Hint.QUEUE,
            id="a new node that the profile wants too",
        ),
        pytest.param(
            ADDED,
            requiring(FOO),
            MATCH,
            make_node(labels={"zone": "a", "foo": "bar"}),
            mp.Hint.QUEUE_SKIP,
            id="only the profile is newly content, which Kubernetes does not notice",
        ),
    ],
)
def test_hint(event, plugin, pod, old, new, hint):
    assert plugin.events_to_register()[event](pod, old, new) is hint


def test_reads_tells_selectors_apart():
    reads = NodeAffinity().reads
    pods = [
        make_pod(),
        make_pod(node_selector={}),
        make_pod(node_selector={"a": "b"}),
        requiring(FOO),
        preferring((1, FOO)),
        preferring(),
    ]
    assert len({reads(pod) for pod in pods}) == len(pods)
    assert reads(make_pod(node_selector={"a": "b", "c": "d"})) == reads(
        make_pod("other", node_selector={"c": "d", "a": "b"})
    )


def test_pickles_with_its_terms():
    copy = pickle.loads(pickle.dumps(ADDED))
    assert run_plugin(copy, make_pod(), NODE).status == NOT_ENFORCED


def test_conforms():
    check_plugin(NodeAffinity())


def test_conforms_with_preferences_of_its_own():
    check_plugin(LIKES_KEY)
