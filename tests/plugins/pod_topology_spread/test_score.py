import math

import numpy as np
import pytest
from msgspec.structs import replace
from tests.affinity_builders import make_constraint

from moorage import plugin as mp
from moorage.api.meta import LabelSelector, ObjectMeta, OwnerReference
from moorage.api.workloads import ReplicaSet, SelectedSpec, Service, ServiceSpec
from moorage.errors import PluginFailure
from moorage.framework.cluster import Cluster
from moorage.plugins.pod_topology_spread import PodTopologySpread
from moorage.plugins.pod_topology_spread.plugin import SCORES
from moorage.plugins.pod_topology_spread.scoring import FewestBest
from moorage.testing import make_node, make_pod, make_state, make_table

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
FOO, BAR = {"foo": "x"}, {"bar": "x"}
SOFT = {"when_unsatisfiable": "ScheduleAnyway"}
SERVICE = Service(
    metadata=ObjectMeta(name="s", namespace="default"), spec=ServiceSpec(selector=FOO)
)


def soft(text, **fields):
    return make_constraint(text, **{**SOFT, **fields})


def hosts(names, **zones):
    """Nodes with a hostname label, and a zone where one is given."""
    return {
        name: {HOST: name, "node": name, ZONE: zones.get(name), "zone": zones.get(name)}
        for name in names
    }


ZONED = hosts("abxy", a="zone1", b="zone1", x="zone2", y="zone2")


def crowd(labels=FOO, *, namespace="default", terminating=False, **counts):
    stamp = "2030-01-01T00:00:00Z" if terminating else None
    pods = [
        make_pod(f"{labels}{i}", namespace=namespace, labels=labels, node=node)
        for node, count in counts.items()
        for i in range(count)
    ]
    return [replace(p, metadata=replace(p.metadata, deletion_timestamp=stamp)) for p in pods]


def waiting(*constraints, labels=FOO, **more):
    return make_pod("waiting", labels=labels, topology_spread_constraints=constraints, **more)


class Asked:
    """A pod's way to the scores of some feasible nodes."""

    def __init__(self, pod, nodes, pods=(), *, feasible=None, objects=(), taints=(), **settings):
        repelling = [mp.Taint(key="t", effect="NoSchedule")]
        made = [
            make_node(name, labels=labels, taints=repelling if name in taints else ())
            for name, labels in nodes.items()
        ]
        cluster = Cluster(make_table(made, pods))
        for each in objects:
            cluster.put(each)
        self.table = cluster.table
        self.plugin, self.pod = PodTopologySpread(**settings), pod
        self.state = make_state(pod, cluster)
        self.rows = [self.table.row_of[name] for name in feasible or nodes]
        mask = np.zeros(self.table.capacity, dtype=np.bool_)
        mask[self.rows] = True
        self.found = self.plugin.pre_score(self.state, pod, mask)

    @property
    def raw(self):
        raw = self.plugin.score_all(self.state, self.pod, self.table)[self.rows]
        infos = [self.table.info(row) for row in self.rows]
        assert raw.tolist() == [self.plugin.score(self.state, self.pod, info) for info in infos]
        return raw

    @property
    def scores(self):
        normalizer = self.plugin.normalizer
        return normalizer.apply(self.raw, normalizer.summarize(self.raw)).tolist()


@pytest.mark.parametrize(
    ("constraints", "nodes", "pods", "feasible", "scores"),
    [
        pytest.param(
            [soft(f"foo@{HOST}")], hosts("abcd"), crowd(a=2, b=1, d=3), "abcd", [20, 60, 100, 0],
            id="by hostname",
        ),
        pytest.param(
            [soft(f"foo@{HOST}", max_skew=2)], hosts("abcd"), crowd(a=2, b=1, d=3), "abcd",
            [33, 66, 100, 16], id="a greater skew makes differences smaller",
        ),
        pytest.param(
            [soft(f"foo@{HOST}", max_skew=3)], hosts("abcd"), crowd(a=4, b=3, c=2, d=1), "abcd",
            [44, 66, 77, 100], id="... and smaller",
        ),
        pytest.param(
            [soft(f"foo@{HOST}")], hosts("abcd"), crowd(a=4, b=2, c=1, d=3), "abc", [33, 83, 100],
            id="nodes that are not feasible make no domain",
        ),
        pytest.param(
            [soft(f"foo@{HOST}")], {**hosts("ac"), "b": {}}, crowd(a=4, c=1), "abc", [16, 0, 100],
            id="a node without the label is ignored",
        ),
        pytest.param(
            [soft("foo@zone")], ZONED, crowd(a=4, b=2, x=1, y=3), "abx", [75, 75, 100],
            id="pods on nodes that are not feasible count all the same",
        ),
        pytest.param(
            [soft("foo@zone"), soft(f"foo@{HOST}")], ZONED, crowd(a=2, b=1, x=2, y=4), "ax",
            [100, 63], id="zone and hostname",
        ),
        pytest.param(
            [soft("foo@zone"), soft(f"bar@{HOST}")], ZONED,
            [*crowd(a=1, b=1, x=1), *crowd(BAR, b=1, y=1)], "abxy", [60, 20, 100, 60],
            id="zone and hostname, each with its own selector",
        ),
        pytest.param(
            [soft("foo@zone"), soft(f"bar@{HOST}")], ZONED,
            [*crowd(a=1, b=1, x=1), *crowd(BAR, b=1, y=1)], "abx", [50, 25, 100],
            id="... without the fourth node",
        ),
        pytest.param(
            [soft("foo@zone"), soft(f"bar@{HOST}")], ZONED,
            [*crowd(x=1, y=1), *crowd(BAR, b=1, y=1)], "abxy", [100, 60, 40, 0],
            id="an empty zone is best",
        ),
        pytest.param(
            [soft("foo@zone"), soft("bar@zone")], ZONED,
            [*crowd(a=3, x=3), *crowd(BAR, a=2, x=1)], "ax", [85, 100],
            id="two constraints with one key",
        ),
        pytest.param(
            [soft(f"foo@{HOST}")], hosts("ab"), [], "ab", [100, 100], id="no pods that match"
        ),
        pytest.param(
            [soft("node")], hosts("ab"), crowd(a=3), "ab", [100, 100], id="no selector"
        ),
        pytest.param(
            [soft(f"@{HOST}")], hosts("ab"), crowd(a=3), "ab", [100, 100], id="an empty selector"
        ),
        pytest.param(
            [soft(f"foo@{HOST}")], hosts("ab"), crowd(a=3, b=1), "a", [100], id="one feasible node"
        ),
        pytest.param(
            [soft(f"foo@{HOST}")], hosts("ab"),
            [*crowd(a=1, b=2), *crowd(namespace="other", a=2, b=1)], "ab", [100, 33],
            id="pods of other namespaces do not count",
        ),
        pytest.param(
            [soft(f"foo@{HOST}")], hosts("ab"),
            [*crowd(a=1, terminating=True), *crowd(b=1)], "ab", [100, 0],
            id="nor do those that are being deleted",
        ),
        pytest.param(
            [soft(f"foo@{HOST}")], {"a": {HOST: "same"}, "b": {HOST: "same"}}, crowd(a=1), "ab",
            [0, 100], id="by hostname, nodes that share a value are not pooled",
        ),
        pytest.param(
            [soft("foo@node")], {"a": {"node": "same"}, "b": {"node": "same"}}, crowd(a=1), "ab",
            [100, 100], id="... by any other key they are",
        ),
    ],
)  # fmt: skip
def test_score(constraints, nodes, pods, feasible, scores):
    assert Asked(waiting(*constraints), nodes, pods, feasible=feasible).scores == scores


@pytest.mark.parametrize(
    ("policy", "scores"),
    [
        pytest.param("Honor", [0, 33, 100], id="honoured"),
        pytest.param("Ignore", [66, 100, 100], id="ignored"),
    ],
)
def test_policies(policy, scores):
    pods = crowd(a=2, b=1, c=1)
    by_affinity = waiting(
        soft("foo@node", node_affinity_policy=policy), node_selector={"disk": "ssd"}
    )
    nodes = {name: {"node": name, "disk": None if name == "c" else "ssd"} for name in "abc"}
    assert Asked(by_affinity, nodes, pods).scores == scores
    by_taints = waiting(soft("foo@node", node_taints_policy=policy))
    assert Asked(by_taints, nodes, pods, taints="c").scores == scores


# The system's own defaults


def test_system_defaults_with_a_service():
    asked = Asked(waiting(), hosts("abcd"), crowd(a=4, b=3, c=2, d=1), objects=[SERVICE])
    assert asked.scores == [44, 66, 77, 100]


def test_system_defaults_leave_no_node_out():
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="r", controller=True)
    pod = waiting()
    pod = replace(pod, metadata=replace(pod.metadata, owner_references=(owner,)))
    controller = ReplicaSet(
        metadata=ObjectMeta(name="r", namespace="default"),
        spec=SelectedSpec(selector=LabelSelector(match_labels=FOO)),
    )
    asked = Asked(pod, hosts("abcd", a="mars", b="mars"), objects=[controller])
    assert asked.found == mp.SUCCESS
    # Four nodes; two zones, of which one is that of nodes without the label.
    weights = [spread.weight for spread in asked.state[SCORES].spreads]
    assert weights == [math.log(4 + 2), math.log(2 + 2)]


def test_system_defaults_prefer_nodes_without_a_zone():
    asked = Asked(waiting(), hosts("abc", a="z", b="z"), objects=[SERVICE])
    assert asked.raw.tolist() == [6, 6, 2]
    assert asked.scores == [33, 33, 100]


def test_system_defaults_give_no_points_for_a_label_that_a_node_lacks():
    nodes = {**hosts("ab", a="z", b="z"), "c": {ZONE: "z"}}
    asked = Asked(waiting(), nodes, crowd(c=2), objects=[SERVICE])
    # By zone 2 ln(1 + 2) + 4 each; by hostname 2, but not for c.
    assert asked.raw.tolist() == [8, 8, 6]


def test_an_empty_zone_is_that_of_nodes_without_the_label():
    nodes = hosts("abc", a="", c="z")
    asked = Asked(waiting(), nodes, crowd(b=3), objects=[SERVICE])
    zone = asked.state[SCORES].spreads[1]
    assert zone.weight == math.log(2 + 2)
    # b's pods count for a, which is in the zone of the empty name; b itself has no zone to score.
    assert asked.raw.tolist() == [2 + 4 + 4, 5 + 2, 2 + 4]


@pytest.mark.parametrize(
    ("pod", "objects"),
    [
        pytest.param(waiting(), [], id="neither service nor owner"),
        pytest.param(waiting(make_constraint("foo@zone")), [SERVICE], id="hard constraints only"),
    ],
)
def test_skips(pod, objects):
    assert Asked(pod, ZONED, crowd(a=1), objects=objects).found.is_skip


def test_a_list_of_defaults_leaves_nodes_out():
    settings = {"defaulting_type": "List", "default_constraints": [soft("zone")]}
    asked = Asked(waiting(), hosts("ab", a="z"), crowd(a=1), objects=[SERVICE], **settings)
    assert asked.scores == [100, 0]


def test_a_selector_that_does_not_parse():
    bad = LabelSelector(match_labels={"foo": "{{.bad-value.}}"})
    pod = waiting(replace(soft("foo@zone"), label_selector=bad))
    text = "calculating preScoreState: obtaining pod's soft topology spread constraints: values"
    with pytest.raises(PluginFailure, match=text):
        Asked(pod, ZONED)


@pytest.mark.parametrize(
    ("raw", "scores"),
    [
        pytest.param([3, 2, 0], [0, 33, 100], id="in proportion to the most"),
        pytest.param([6, 3, 2], [33, 83, 100], id="the worst is not always worth nothing"),
        pytest.param([0, 0], [100, 100], id="nothing anywhere"),
        pytest.param([0, -1], [100, 0], id="nothing anywhere, and one ignored"),
        pytest.param([4, -1, 2], [50, 0, 100], id="one ignored"),
        pytest.param([-1, -1], [0, 0], id="all ignored"),
    ],
)
def test_normalizing(raw, scores):
    summary = FewestBest().summarize(np.array(raw))
    assert FewestBest().apply(np.array(raw), summary).tolist() == scores
    assert [FewestBest().apply(each, summary) for each in raw] == scores
