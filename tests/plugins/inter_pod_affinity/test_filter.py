import pytest
from msgspec.structs import replace
from tests.affinity_builders import make_affinity, make_term

import moorage
from moorage import plugin as mp
from moorage.api.meta import LabelSelector, ObjectMeta
from moorage.api.pod import PodAffinityTerm, PodStatus
from moorage.framework.cluster import Cluster
from moorage.nodes.usage import Usage
from moorage.plugins.inter_pod_affinity import InterPodAffinity
from moorage.plugins.inter_pod_affinity.filtering import (
    AFFINITY_NOT_MET,
    ANTI_AFFINITY_NOT_MET,
    EXISTING_ANTI_AFFINITY,
)
from moorage.plugins.inter_pod_affinity.plugin import COUNTS
from moorage.testing import check_plugin, make_node, make_pod, make_state, make_table

OK = mp.SUCCESS
TEAMS = [
    mp.Namespace(metadata=ObjectMeta(name=f"subteam{i}.team{j}", labels={"team": f"team{j}"}))
    for i in (1, 2)
    for j in (1, 2)
]


def pod(labels="", *, namespace="default", node=None, name="pod", **wishes):
    """A pod; labels are written `a=b,c`, where a bare key has an empty value."""
    pairs = [each.partition("=") for each in labels.split(",") if each]
    affinity = make_affinity(**wishes) if wishes else None
    return make_pod(
        name,
        namespace=namespace,
        labels={key: value for key, _, value in pairs},
        node=node,
        affinity=affinity,
        uid=name if node is None else f"{node} {labels} {wishes}",
    )


class FilterRun:
    """pre_filter and filter for one pod; nodes are given as name -> labels."""

    def __init__(self, pod, nodes, pods=(), namespaces=TEAMS):
        self.pod = pod
        self.names = list(nodes)
        table = make_table([make_node(name, labels=nodes[name]) for name in nodes], pods)
        self.cluster = Cluster(table)
        for each in namespaces:
            self.cluster.put(each)
        self.plugin = InterPodAffinity()
        self.state = make_state(pod, self.cluster)
        self.found = self.plugin.pre_filter(self.state, pod)

    def info(self, name):
        return self.cluster.table.info(self.cluster.table.row_of[name])

    def statuses(self, state=None):
        state = state or self.state
        one_by_one = [self.plugin.filter(state, self.pod, self.info(n)) for n in self.names]
        verdicts = self.plugin.filter_all(state, self.pod, self.cluster.table)
        codes = [int(verdicts.codes[self.cluster.table.row_of[n]]) for n in self.names]
        assert one_by_one == [verdicts.status_of(code) if code else OK for code in codes]
        return one_by_one


Z1, Z2 = {"region": "r1", "zone": "z1"}, {"region": "r1", "zone": "z2"}
FAR = {"region": "r2", "zone": "z3"}


@pytest.mark.parametrize(
    ("asking", "nodes", "pods", "statuses"),
    [
        pytest.param(
            pod("foo,service", near=["foo@zone", "service@zone"]),
            {"a": Z1, "b": FAR, "bare": {}},
            [pod("foo", node="a")],
            [OK, OK, AFFINITY_NOT_MET],
            id="a pod that matches itself fits if no other pod matches all terms",
        ),
        pytest.param(
            pod("foo", near=["foo@zone"]), {"a": {}, "b": {}}, [], [AFFINITY_NOT_MET] * 2,
            id="... but not on a node without the topology label",
        ),
        pytest.param(
            pod("foo", near=["foo@zone"]),
            {"a": Z1, "b": FAR},
            [pod("foo", node="a")],
            [OK, AFFINITY_NOT_MET],
            id="... nor if another pod matches in another domain",
        ),
        pytest.param(
            pod("foo", near=["foo@zone"]),
            {"a": Z1, "bare": {}},
            [pod("foo", node="bare")],
            [OK, AFFINITY_NOT_MET],
            id="... but a matching pod on a node without the label does not count",
        ),
        pytest.param(
            pod("foo", near=["foo@zone"]),
            {"a": Z1},
            [pod("foo", node="gone")],
            [OK],
            id="... nor one on an unknown node",
        ),
        pytest.param(
            pod(near=["foo@zone"]), {"a": Z1}, [], [AFFINITY_NOT_MET],
            id="a pod that does not match itself needs a matching pod",
        ),
        pytest.param(
            pod(near=["foo@region", "bar@zone"]),
            {"a": Z1, "b": Z2},
            [pod("foo", node="a"), pod("bar", node="b")],
            [AFFINITY_NOT_MET] * 2,
            id="one pod has to match all terms",
        ),
        pytest.param(
            pod(near=["foo@region", "bar@zone"]),
            {"a": Z1, "b": Z1, "c": Z2},
            [pod("foo,bar", node="a")],
            [OK, OK, AFFINITY_NOT_MET],
            id="... and one that does satisfies all topology keys",
        ),
        pytest.param(
            pod(near=["foo@zone", "bar@zone"]),
            {"a": Z1, "b": Z2},
            [pod("foo,bar", node="a")],
            [OK, AFFINITY_NOT_MET],
            id="two terms with one key",
        ),
        pytest.param(
            pod(near=["foo@region", "foo@zone"]),
            {"a": {"region": "r1"}, "b": {"zone": "z1"}, "c": Z1},
            [pod("foo", node="a"), pod("foo", node="b")],
            [AFFINITY_NOT_MET, AFFINITY_NOT_MET, OK],
            id="different pods may satisfy different keys",
        ),
        pytest.param(
            pod(away=["foo@nowhere", "bar@zone"]),
            {"a": Z1, "b": Z2},
            [pod("foo,bar", node="a")],
            [ANTI_AFFINITY_NOT_MET, OK],
            id="anti-affinity by a key that no node has rejects nothing",
        ),
        pytest.param(
            pod("foo,bar"),
            {"a": Z1, "b": Z2},
            [pod(away=["foo@nowhere", "bar@zone"], node="a")],
            [EXISTING_ANTI_AFFINITY, OK],
            id="... also for another pod's term",
        ),
        pytest.param(
            pod("foo", away=["bar@zone"]),
            {"a": Z1},
            [pod("bar", away=["foo@zone"], node="a")],
            [ANTI_AFFINITY_NOT_MET],
            id="if both reject, the pod's own anti-affinity is reported",
        ),
        pytest.param(
            pod("foo", near=["bar@zone"], away=["bar@zone"]),
            {"a": Z1, "b": Z2},
            [pod("bar", node="a")],
            [ANTI_AFFINITY_NOT_MET, AFFINITY_NOT_MET],
            id="... and its affinity before that",
        ),
        pytest.param(
            pod("security", away=["security@zone"]),
            {"a": Z1, "b": Z2},
            [pod("service", away=["service@zone", "security@zone"], node="a")],
            [EXISTING_ANTI_AFFINITY, OK],
            id="any term of another pod rejects",
        ),
        pytest.param(
            pod(away=["foo@region", "service@zone"]),
            {"a": Z1, "b": Z2, "c": FAR},
            [pod("foo,service", node="a")],
            [ANTI_AFFINITY_NOT_MET, ANTI_AFFINITY_NOT_MET, OK],
            id="any term of the pod itself rejects",
        ),
        pytest.param(
            pod(away=["foo@zone"]), {"a": Z1, "bare": {}}, [pod("foo", node="bare")], [OK, OK],
            id="a node without the key is feasible whatever pods it holds",
        ),
        pytest.param(
            pod("foo", away=["foo@zone"]), {"a": Z1}, [], [OK], id="a pod does not reject itself"
        ),
        pytest.param(
            pod(away=["foo@zone"]),
            {"empty": {"zone": ""}, "bare": {}},
            [pod("foo", node="empty")],
            [ANTI_AFFINITY_NOT_MET, OK],
            id="an empty label value is a domain",
        ),
        pytest.param(
            pod("foo", near=["zone"]), {"a": Z1}, [pod("foo", node="a")], [AFFINITY_NOT_MET],
            id="affinity without a selector matches no pod",
        ),
        pytest.param(
            pod(near=["@zone"], away=["zone"]),
            {"a": Z1, "b": Z2},
            [pod("foo", node="a")],
            [OK, AFFINITY_NOT_MET],
            id="an empty selector matches all pods",
        ),
        pytest.param(
            pod("foo", namespace="ns1"),
            {"a": Z1},
            [pod("x", away=["foo@zone"], namespace="ns1", node="a")],
            [EXISTING_ANTI_AFFINITY],
            id="terms match the namespace of their own pod",
        ),
        pytest.param(
            pod(near=[make_term("foo@zone", namespaces=["elsewhere"])]),
            {"a": Z1},
            [pod("foo", node="a")],
            [AFFINITY_NOT_MET],
            id="... unless they name others",
        ),
        pytest.param(
            pod(near=[make_term("foo@zone", namespace_selector="team in (team1)")]),
            {"a": Z1, "b": Z2},
            [
                pod("foo", namespace="subteam1.team1", node="a"),
                pod("foo", namespace="subteam1.team2", node="b"),
            ],
            [OK, AFFINITY_NOT_MET],
            id="... or select them by labels",
        ),
        pytest.param(
            pod(away=[make_term("foo@zone", namespaces=["n"], namespace_selector="team=team1")]),
            {"a": Z1, "b": Z2, "c": FAR},
            [
                pod("foo", namespace="subteam1.team1", node="a"),
                pod("foo", namespace="n", node="b"),
                pod("foo", node="c"),
            ],
            [ANTI_AFFINITY_NOT_MET, ANTI_AFFINITY_NOT_MET, OK],
            id="namespaces by name and by labels add up",
        ),
        pytest.param(
            pod(away=[make_term("foo@zone", namespace_selector="")]),
            {"a": Z1},
            [pod("foo", namespace="unheard-of", node="a")],
            [ANTI_AFFINITY_NOT_MET],
            id="an empty namespace selector means all namespaces",
        ),
        pytest.param(
            pod(away=[make_term("foo@zone", namespace_selector="team notin (team1)")]),
            {"a": Z1},
            [pod("foo", namespace="subteam1.team1", node="a")],
            [ANTI_AFFINITY_NOT_MET],
            id="as in 1.36, a namespace selector that only rules out means all namespaces",
        ),
        pytest.param(
            pod("foo", namespace="subteam1.team2"),
            {"a": Z1},
            [pod("x", away=[make_term("foo@zone", namespace_selector="team=team2")], node="a")],
            [EXISTING_ANTI_AFFINITY],
            id="another pod's namespace selector matches labels of this pod's namespace",
        ),
    ],
)  # fmt: skip
def test_filter(asking, nodes, pods, statuses):
    run = FilterRun(asking, nodes, pods)
    assert run.found == OK
    assert run.statuses() == statuses


@pytest.mark.parametrize(
    ("asking", "others"),
    [
        pytest.param(pod("foo"), [], id="no terms anywhere"),
        pytest.param(
            pod("foo"), [pod(away=["foo@nowhere"], node="a")], id="another pod's key on no node"
        ),
        pytest.param(
            pod("foo", namespace="ns1"),
            [pod(away=["foo@zone"], namespace="ns2", node="a")],
            id="another pod's term matches its own namespace only",
        ),
        pytest.param(
            pod("foo", namespace="subteam1.team1"),
            [pod(away=[make_term("foo@zone", namespace_selector="team!=team1")], node="a")],
            id="another pod's namespace selector excludes the namespace, unlike the pod's own",
        ),
        pytest.param(
            pod("foo", likes=[(1, "foo@zone")], dislikes=[(1, "foo@zone")]),
            [pod("foo", node="a")],
            id="preferred terms filter nothing",
        ),
        pytest.param(
            pod("foo"),
            [pod(away=["foo@zone"], node="unheard-of")],
            id="another pod's node is unknown",
        ),
    ],
)
def test_skips(asking, others):
    assert FilterRun(asking, {"a": Z1}, others).found.is_skip


BAD = PodAffinityTerm(
    label_selector=LabelSelector(match_labels={"service": "{{.bad-value.}}"}), topology_key="zone"
)
WRONG = 'values[0][service]: Invalid value: "{{.bad-value.}}": a valid label must be'


@pytest.mark.parametrize(
    ("wishes", "begins"),
    [
        pytest.param(
            {"near": [BAD]}, f"parsing pod: requiredAffinityTerms: {WRONG}", id="in one list"
        ),
        pytest.param(
            {"dislikes": [(1, BAD)]},
            f"parsing pod: preferredAntiAffinityTerms: {WRONG}",
            id="a preferred term blocks as well",
        ),
        pytest.param(
            {"away": [BAD], "likes": [(1, BAD)]},
            f"parsing pod: [requiredAntiAffinityTerms: {WRONG}",
            id="several lists in brackets",
        ),
    ],
)
def test_terms_that_do_not_parse(wishes, begins):
    found = FilterRun(pod("foo", **wishes), {"a": Z1}).found
    assert found.code is mp.Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert found.message.startswith(begins)
    assert ("preferredAffinityTerms: " in found.message) == ("likes" in wishes)


def test_a_running_pod_with_a_bad_list_keeps_its_other_lists():
    other = pod("x", near=[BAD], away=["foo@zone"], node="a")
    assert FilterRun(pod("foo"), {"a": Z1, "b": Z2}, [other]).statuses() == [
        EXISTING_ANTI_AFFINITY,
        OK,
    ]


def test_filter_without_pre_filter_is_an_error():
    run = FilterRun(pod("foo", away=["foo@zone"]), {"a": Z1})
    fresh = make_state(run.pod, run.cluster)
    with pytest.raises(mp.PluginFailure, match='error reading "PreFilterInterPodAffinity" from'):
        run.plugin.filter(fresh, run.pod, run.info("a"))


def placed(each):
    return mp.Placed(each, Usage.of(each))


def test_add_pod_and_remove_pod_update_a_cloned_state_only():
    asking = pod("foo", near=["foo@region"], away=["bar@zone"])
    nodes = {"a": Z1, "b": Z2, "c": FAR}
    run = FilterRun(asking, nodes, [pod("foo", node="a")])
    before = run.statuses()
    other = pod("foo,bar", away=["foo@zone"], node="c")
    copy = run.state.clone()
    run.plugin.add_pod(copy, asking, placed(other), run.info("c"))
    assert run.statuses(copy) == [OK, OK, ANTI_AFFINITY_NOT_MET]
    assert run.statuses(copy) == FilterRun(asking, nodes, [pod("foo", node="a"), other]).statuses()
    run.plugin.remove_pod(copy, asking, placed(other), run.info("c"))
    assert run.statuses(copy) == before
    assert run.statuses() == before


def test_removing_the_only_matching_pod_makes_the_pod_the_first():
    asking = pod("foo", near=["foo@zone"])
    only = pod("foo", node="a")
    run = FilterRun(asking, {"a": Z1, "b": Z2}, [only])
    assert run.statuses() == [OK, AFFINITY_NOT_MET]
    copy = run.state.clone()
    run.plugin.remove_pod(copy, asking, placed(only), run.info("a"))
    assert run.statuses(copy) == [OK, OK]  # Now it would be the first.


def test_add_pod_with_a_topology_key_that_no_other_term_uses():
    asking = pod("foo", away=["bar@zone"])
    nodes = {"a": {"rack": "r1"}, "b": {"rack": "r2"}}
    run = FilterRun(asking, nodes)
    other = pod("x", away=["foo@rack"], node="a")
    copy = run.state.clone()
    run.plugin.add_pod(copy, asking, placed(other), run.info("a"))
    assert run.statuses(copy) == [EXISTING_ANTI_AFFINITY, OK]


def test_counts_by_pair():
    asking = pod(away=["foo in (bar,buzz)@region", "service notin (bar,baz)@zone"])
    nodes = {"a": {"region": "r1", "zone": "z11"}, "b": {"region": "r2", "zone": "z21"}}
    run = FilterRun(asking, nodes, [pod("foo=bar", node="a"), pod(node="b")])
    run.plugin.add_pod(run.state, asking, placed(pod("foo=bar", node="x")), run.info("a"))
    anti = run.state[COUNTS].anti
    assert (anti.at("region", "r1"), anti.at("zone", "z11"), anti.at("zone", "z21")) == (2, 2, 1)
    assert (anti.at("region", "r2"), anti.at("region", None)) == (0, 0)


@pytest.mark.parametrize(
    ("asking", "feasible"),
    [
        pytest.param(pod("foo"), ["a"], id="a skipped filter does not see it"),
        pytest.param(pod("foo", away=["x@zone"]), [], id="a pod with terms of its own sees it"),
    ],
)
def test_anti_affinity_of_a_pod_with_a_nominated_node(asking, feasible):
    nominated = make_pod("nominated", priority=10, affinity=make_affinity(away=["foo@zone"]))
    nominated = replace(nominated, status=PodStatus(nominated_node_name="a"))
    explanation = moorage.explain([make_node("a", labels=Z1), nominated, asking], "default/pod")
    assert explanation.feasible == feasible


def test_changed_namespace_labels_change_the_result():
    asking = pod("foo", away=[make_term("foo@zone", namespace_selector="team=team1")])
    run = FilterRun(asking, {"a": Z1}, [pod("foo", namespace="subteam1.team2", node="a")])
    assert run.statuses() == [OK]
    meta = ObjectMeta(name="subteam1.team2", labels={"team": "team1"})
    run.cluster.put(mp.Namespace(metadata=meta))
    run.plugin.pre_filter(run.state, asking)
    assert run.statuses() == [ANTI_AFFINITY_NOT_MET]


def test_conforms():
    check_plugin(InterPodAffinity())
