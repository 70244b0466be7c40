import numpy as np
import pytest
from tests.affinity_builders import make_affinity, make_term

from moorage import plugin as mp
from moorage.api.meta import LabelSelector, ObjectMeta
from moorage.api.pod import PodAffinityTerm
from moorage.errors import PluginFailure
from moorage.framework.cluster import Cluster
from moorage.plugins.inter_pod_affinity import InterPodAffinity
from moorage.plugins.inter_pod_affinity.scoring import MinMax
from moorage.testing import make_node, make_pod, make_state, make_table

CHINA, INDIA, AZ = {"region": "China"}, {"region": "India"}, {"az": "az1"}
S1, S2 = {"security": "S1"}, {"security": "S2"}
LIKES_S1 = [(5, "security=S1@region")]
TEAMS = [
    mp.Namespace(metadata=ObjectMeta(name=f"subteam{i}.team{j}", labels={"team": f"team{j}"}))
    for i in (1, 2)
    for j in (1, 2)
]
IN_TEAM_1 = make_term(
    "security=S1@region", namespaces=["subteam2.team2"], namespace_selector="team=team1"
)


def pod(labels=(), *, namespace="default", node=None, **wishes):
    affinity = make_affinity(**wishes) if wishes else None
    uid = f"{namespace} {node} {labels} {wishes}"
    return make_pod(labels=dict(labels), namespace=namespace, node=node, affinity=affinity, uid=uid)


def scores(asking, nodes, pods, **settings):
    """Every node's normalized score; None if the plugin skips the pod."""
    names = [f"n{i}" for i in range(1, len(nodes) + 1)]
    made = [make_node(name, labels=labels) for name, labels in zip(names, nodes, strict=True)]
    cluster = Cluster(make_table(made, pods))
    for each in TEAMS:
        cluster.put(each)
    plugin, table, state = InterPodAffinity(**settings), cluster.table, make_state(asking, cluster)
    if plugin.pre_score(state, asking, table.active_rows).is_skip:
        return None
    rows = [table.row_of[name] for name in names]
    raw = plugin.score_all(state, asking, table)[rows]
    assert raw.tolist() == [plugin.score(state, asking, table.info(row)) for row in rows]
    return plugin.normalizer.apply(raw, plugin.normalizer.summarize(raw)).tolist()


THREE = [CHINA, INDIA, AZ]


@pytest.mark.parametrize(
    ("asking", "nodes", "pods", "expected"),
    [
        pytest.param(
            pod(
                likes=[
                    (8, "security notin (S1),security in (S2)@region"),
                    (2, "security,!wrongkey@region"),
                ]
            ),
            THREE,
            [pod(S1, node="n1"), pod(S2, node="n2"), pod(S1, node="n3")],
            [20, 100, 0],
            id="weights are summed, and a node without the key scores 0",
        ),
        pytest.param(
            pod(likes=LIKES_S1),
            THREE,
            [pod(S1, node="n1"), pod(S1, node="n3")],
            [100, 0, 0],
            id="a matching pod on a node without the key does not count",
        ),
        pytest.param(
            pod(dislikes=[(5, "security=S1@az")]),
            [AZ, CHINA],
            [pod(S1, node="n1"), pod(S1, node="n2")],
            [0, 100],
            id="preferred anti-affinity lowers the score",
        ),
        pytest.param(
            pod(S1, likes=[(8, "security=S1@region")], dislikes=[(5, "security=S2@az")]),
            [CHINA, AZ, INDIA, {"az": "az2"}],
            [
                pod(S1, node="n1"),
                pod(S2, node="n2"),
                pod(likes=[(8, "security=S1@region")], node="n3"),
                pod(dislikes=[(5, "security=S1@az")], node="n4"),
            ],
            [100, 0, 100, 0],
            id="preferred terms of other pods count like the pod's own",
        ),
        pytest.param(
            pod(S1),
            THREE,
            [pod(near=["security=S1@region"], node=node) for node in ("n1", "n2")],
            [100, 100, 0],
            id="required affinity of other pods counts as a preference",
        ),
        pytest.param(
            pod(S1, namespace="elsewhere"),
            THREE,
            [pod(near=["security=S1@region"], node="n1")],
            None,
            id="... within the namespaces of the term",
        ),
        pytest.param(
            pod(S1, near=["security=S1@region"], away=["security=S1@az"]),
            THREE,
            [pod(S1, node="n1"), pod(away=["security=S1@region"], node="n2")],
            None,
            id="the pod's required terms and other pods' anti-affinity are not scored",
        ),
        pytest.param(
            pod(near=[], likes=[(5, IN_TEAM_1)]),
            [CHINA, INDIA],
            [
                pod(S1, namespace="subteam1.team1", node="n1"),
                pod({**S1, "x": "y"}, namespace="subteam1.team1", node="n1"),
                pod(S1, namespace="subteam2.team2", node="n1"),
                pod(S1, namespace="subteam2.team1", node="n2"),
            ],
            [100, 0],
            id="namespaces by name and by labels",
        ),
        pytest.param(
            pod(dislikes=[(5, IN_TEAM_1)]),
            [CHINA, INDIA],
            [
                pod(S1, namespace="subteam1.team1", node="n1"),
                pod(S1, namespace="subteam2.team2", node="n1"),
                pod(S1, namespace="subteam2.team1", node="n2"),
            ],
            [0, 100],
            id="... for anti-affinity too",
        ),
        pytest.param(
            pod(S1, namespace="subteam1.team1"),
            THREE,
            [pod(dislikes=[(5, IN_TEAM_1)], node="n1")],
            [0, 100, 100],
            id="another pod's namespace selector matches labels of this pod's namespace",
        ),
        pytest.param(
            pod(likes=LIKES_S1), [CHINA, CHINA], [pod(S1, node="n1")], [0, 0], id="all equal"
        ),
        pytest.param(
            pod(likes=[(5, "security=S1@region")], dislikes=[(5, "security=S1@region")]),
            [CHINA, INDIA],
            [pod(S1, node="n1")],
            [0, 0],
            id="preferences that cancel each other",
        ),
        pytest.param(pod(likes=LIKES_S1), THREE, [pod(S2, node="n1")], None, id="no pod matches"),
        pytest.param(
            pod(likes=LIKES_S1), THREE, [pod(S1, node="gone")], None, id="whose node is gone"
        ),
    ],
)
def test_score(asking, nodes, pods, expected):
    assert scores(asking, nodes, pods) == expected


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        pytest.param(0, None, id="none: not even scored"),
        pytest.param(1, [20, 100, 0], id="a fifth of a wish of 5"),
        pytest.param(10, [100, 50, 0], id="twice a wish of 5"),
    ],
)
def test_hard_pod_affinity_weight(weight, expected):
    pods = [pod(near=["security=S1@region"], node="n1")]
    if weight:
        pods.append(pod(likes=LIKES_S1, node="n2"))
    assert scores(pod(S1), THREE, pods, hard_pod_affinity_weight=weight) == expected


@pytest.mark.parametrize(
    ("asking", "ignores", "expected"),
    [
        pytest.param(pod(S1), False, [0, 100], id="off"),
        pytest.param(pod(S1), True, None, id="on, for a pod without preferred terms"),
        pytest.param(pod(S1, likes=[(1, "x@az")]), True, [0, 100], id="on, for one that has some"),
    ],
)
def test_ignore_preferred_terms_of_existing_pods(asking, ignores, expected):
    pods = [pod(likes=LIKES_S1, node="n2"), pod(near=["security=S1@region"], node="n2")]
    got = scores(asking, [CHINA, INDIA], pods, ignore_preferred_terms_of_existing_pods=ignores)
    assert got == expected


def test_a_wish_that_does_not_parse_is_an_error_where_no_filter_refused_it():
    bad = PodAffinityTerm(label_selector=LabelSelector(match_labels={"a": "{{.bad-value.}}"}))
    with pytest.raises(PluginFailure, match=r"failed to parse pod: .*{{.bad-value.}}"):
        scores(pod(likes=[(1, bad)]), THREE, [])


@pytest.mark.parametrize(
    ("most", "raw", "score"),
    [
        pytest.param(100, 29, 28, id="29 of 100"),
        pytest.param(100, 57, 56, id="57 of 100"),
        pytest.param(100, 58, 57, id="58 of 100"),
        pytest.param(50, 29, 57, id="29 of 50"),
        pytest.param(100, 30, 30, id="30 of 100"),
    ],
)
def test_normalizing_divides_first_and_cuts_off(most, raw, score):
    given = np.array([-7, raw - 7, most - 7])
    summary = MinMax().summarize(given)
    assert MinMax().apply(given, summary).tolist() == [0, score, 100]
    assert MinMax().apply(raw - 7, summary) == score
