import pytest
from msgspec.structs import replace
from tests.affinity_builders import make_constraint

from moorage import plugin as mp
from moorage.api.meta import LabelSelector, ObjectMeta
from moorage.api.workloads import Service, ServiceSpec
from moorage.errors import PluginFailure
from moorage.framework.cluster import Cluster
from moorage.nodes.usage import Usage
from moorage.plugins.pod_topology_spread import PodTopologySpread
from moorage.plugins.pod_topology_spread.filtering import MISSING_LABEL, SKEWED
from moorage.plugins.pod_topology_spread.plugin import HARD_CONSTRAINTS
from moorage.testing import check_plugin, make_node, make_pod, make_state, make_table

OK = mp.SUCCESS
FOO = {"foo": "x"}
BY_ZONE, BY_NODE = make_constraint("foo@zone"), make_constraint("foo@node")

# name -> labels; a and b are in zone1, x and y in zone2.
FOUR = {
    name: {"zone": zone, "node": name, "disk": "ssd"}
    for name, zone in (("a", "zone1"), ("b", "zone1"), ("x", "zone2"), ("y", "zone2"))
}
ABC = {name: {"node": name} for name in "abc"}


def without(nodes, name, key):
    return {**nodes, name: {k: v for k, v in nodes[name].items() if k != key}}


def crowd(labels=FOO, *, namespace="default", terminating=False, **counts):
    """So many pods with these labels on each node."""
    pods = [
        make_pod(f"{labels}{i}", namespace=namespace, labels=labels, node=node)
        for node, count in counts.items()
        for i in range(count)
    ]
    if terminating:
        stamp = "2030-01-01T00:00:00Z"
        pods = [replace(p, metadata=replace(p.metadata, deletion_timestamp=stamp)) for p in pods]
    return pods


def waiting(*constraints, labels=FOO, **more):
    return make_pod("waiting", labels=labels, topology_spread_constraints=constraints, **more)


class Asked:
    """A pod's way to the filter, among nodes given as name -> labels."""

    def __init__(self, pod, nodes, pods=(), objects=(), taints=(), **settings):
        self.pod = pod
        self.names = list(nodes)
        repelling = [mp.Taint(key="t", effect="NoSchedule")]
        made = [
            make_node(name, labels=labels, taints=repelling if name in taints else ())
            for name, labels in nodes.items()
        ]
        self.cluster = Cluster(make_table(made, pods))
        for each in objects:
            self.cluster.put(each)
        self.plugin = PodTopologySpread(**settings)
        self.state = make_state(pod, self.cluster)
        self.found = self.plugin.pre_filter(self.state, pod)

    def info(self, name):
        return self.cluster.table.info(self.cluster.table.row_of[name])

    def statuses(self):
        one_by_one = [self.plugin.filter(self.state, self.pod, self.info(n)) for n in self.names]
        verdicts = self.plugin.filter_all(self.state, self.pod, self.cluster.table)
        codes = [int(verdicts.codes[self.cluster.table.row_of[n]]) for n in self.names]
        assert one_by_one == [verdicts.status_of(code) if code else OK for code in codes]
        return one_by_one

    def counts(self, *values):
        """Per constraint, the pods in the domains of these values."""
        return [
            [spread.at(value) for value in values]
            for spread in self.state[HARD_CONSTRAINTS].spreads
        ]

    def change(self, method, other, node):
        placed = mp.Placed(other, Usage.of(other))
        getattr(self.plugin, method)(self.state, self.pod, placed, self.info(node))


@pytest.mark.parametrize(
    ("pod", "nodes", "pods", "statuses"),
    [
        pytest.param(
            waiting(BY_ZONE, BY_NODE), FOUR, crowd(a=2, b=1, y=4), [SKEWED] * 4,
            id="a zone fits and no node in it does",
        ),
        pytest.param(
            waiting(BY_ZONE, BY_NODE), FOUR, crowd(a=2, b=1, y=3), [SKEWED, SKEWED, OK, SKEWED],
            id="only the empty node",
        ),
        pytest.param(
            waiting(make_constraint("@node")), FOUR, crowd(a=2, b=1, y=3), [OK] * 4,
            id="an empty selector counts no pod",
        ),
        pytest.param(
            waiting(make_constraint("node")), FOUR, crowd(a=2, b=1, y=3), [OK] * 4,
            id="nor does none",
        ),
        pytest.param(
            waiting(BY_NODE, labels={}), FOUR, crowd(a=2, b=1, y=3), [SKEWED, OK, OK, SKEWED],
            id="a pod that does not count itself makes no skew",
        ),
        pytest.param(
            waiting(BY_ZONE), without(FOUR, "b", "zone"), crowd(a=1, b=5, x=1, y=1),
            [OK, MISSING_LABEL, SKEWED, SKEWED],
            id="a node without the label, whose pods do not count",
        ),
        pytest.param(
            waiting(BY_ZONE, BY_NODE), without(FOUR, "x", "node"), crowd(a=1, x=5, y=1),
            [SKEWED, OK, MISSING_LABEL, SKEWED],
            id="a node without one of the labels counts for no constraint",
        ),
        pytest.param(
            waiting(make_constraint("foo@node", max_skew=2, min_domains=4)),
            ABC, crowd(a=2, b=2, c=1), [SKEWED, SKEWED, OK],
            id="with fewer domains than wanted the least is 0",
        ),
        pytest.param(
            waiting(make_constraint("foo@node", max_skew=2, min_domains=2)),
            ABC, crowd(a=2, b=2, c=1), [OK] * 3,
            id="... and with enough it is not",
        ),
        pytest.param(
            waiting(make_constraint("foo@zone", max_skew=2, min_domains=3)),
            FOUR, crowd(a=2, x=1), [SKEWED, SKEWED, OK, OK],
            id="fewer zones than wanted",
        ),
        pytest.param(
            waiting(make_constraint("foo@zone", max_skew=2, min_domains=1)),
            FOUR, crowd(a=2, x=1), [OK] * 4,
            id="as many zones as wanted",
        ),
        pytest.param(
            waiting(BY_NODE, node_selector={"disk": "ssd"}),
            without(FOUR, "y", "disk"), crowd(a=1, b=1, y=1), [SKEWED, SKEWED, OK, OK],
            id="a node that the pod does not select is no domain",
        ),
        pytest.param(
            waiting(
                make_constraint("foo@node", node_affinity_policy="Ignore"),
                node_selector={"disk": "ssd"},
            ),
            without(FOUR, "y", "disk"), crowd(a=1, b=1, y=1), [SKEWED, SKEWED, OK, SKEWED],
            id="... unless node affinity is to be ignored",
        ),
        pytest.param(
            waiting(BY_NODE), FOUR,
            [*crowd(a=1, terminating=True), *crowd(b=1)], [OK, SKEWED, OK, OK],
            id="pods that are being deleted do not count",
        ),
        pytest.param(
            waiting(BY_NODE), FOUR,
            [*crowd(a=1, namespace="other"), *crowd(b=1)], [OK, SKEWED, OK, OK],
            id="nor do those of other namespaces",
        ),
        pytest.param(
            waiting(BY_NODE), FOUR, crowd(a=1, gone=3), [SKEWED, OK, OK, OK],
            id="nor those without a node",
        ),
        pytest.param(
            waiting(make_constraint("foo@node", match_label_keys=("bar", "unheard")),
                    labels={**FOO, "bar": "a"}),
            FOUR, [*crowd(a=2), *crowd({**FOO, "bar": "a"}, b=1)], [OK, SKEWED, OK, OK],
            id="only pods with the same value under matchLabelKeys",
        ),
        pytest.param(
            waiting(make_constraint("foo@node", match_label_keys=("bar",))),
            FOUR, [*crowd(a=1), *crowd({**FOO, "bar": "a"}, b=1)], [SKEWED, SKEWED, OK, OK],
            id="... which ask for nothing that the pod does not have",
        ),
        pytest.param(
            waiting(make_constraint("node", match_label_keys=("foo",))),
            FOUR, crowd(a=1), [OK] * 4,
            id="... and do not mend a missing selector",
        ),
        pytest.param(
            waiting(make_constraint("bar@zone"), BY_ZONE, labels={**FOO, "bar": "x"}),
            FOUR, [*crowd({"bar": "x"}, a=2, x=1), *crowd(b=3, y=3)],
            [SKEWED, SKEWED, OK, OK],
            id="two constraints with one key",
        ),
        pytest.param(
            waiting(BY_ZONE), {"bare": {}}, [], [MISSING_LABEL], id="no domain at all"
        ),
    ],
)  # fmt: skip
def test_filter(pod, nodes, pods, statuses):
    asked = Asked(pod, nodes, pods)
    assert asked.found == OK
    assert asked.statuses() == statuses


@pytest.mark.parametrize(
    ("policy", "tolerations", "statuses"),
    [
        pytest.param("Honor", (), [SKEWED, OK], id="an untolerated taint keeps a node out"),
        pytest.param(None, (), [OK, OK], id="by default taints are ignored"),
        pytest.param(
            "Honor", [mp.Toleration(key="t", operator="Exists")], [OK, OK], id="a tolerated one"
        ),
    ],
)
def test_node_taints_policy(policy, tolerations, statuses):
    # Without b, the least is 1 and not 0.
    constraint = make_constraint("foo@node", node_taints_policy=policy, min_domains=2)
    pod = waiting(constraint, tolerations=tolerations)
    nodes = {name: {"node": name} for name in ("a", "b")}
    assert Asked(pod, nodes, crowd(a=1, b=1), taints="b").statuses() == statuses


def test_policies_are_each_constraints_own():
    constraint = make_constraint("foo@node", node_affinity_policy="Ignore")
    pod = waiting(BY_ZONE, constraint, node_selector={"disk": "ssd"})
    asked = Asked(pod, without(FOUR, "b", "disk"), crowd(b=2, x=1))
    assert asked.counts("zone1", "zone2") == [[0, 1], [0, 0]]
    assert asked.counts("a", "b", "x") == [[0, 0, 0], [0, 2, 1]]


def test_pods_that_change_are_counted_where_they_are():
    asked = Asked(waiting(BY_NODE), FOUR, crowd(a=1, b=1))
    gone = crowd(a=1, terminating=True)[0]
    asked.cluster.table.replace_pod("a", gone, Usage.of(gone))
    asked.plugin.pre_filter(asked.state, asked.pod)
    assert asked.counts("a", "b") == [[0, 1]]


# Default constraints

LIST = {
    "defaulting_type": "List",
    "default_constraints": [
        make_constraint("node", max_skew=3),
        make_constraint("node", when_unsatisfiable="ScheduleAnyway"),
        make_constraint("rack", max_skew=5),
    ],
}
SERVICE = Service(
    metadata=ObjectMeta(name="s", namespace="default"), spec=ServiceSpec(selector=FOO)
)


def test_default_constraints_take_the_selector_of_the_service():
    asked = Asked(waiting(), {"a": {"node": "a", "rack": "r"}}, crowd(a=2), [SERVICE], **LIST)
    hard = [spread.counted.constraint for spread in asked.state[HARD_CONSTRAINTS].spreads]
    assert [(each.topology_key, each.max_skew) for each in hard] == [("node", 3), ("rack", 5)]
    assert all(each.selector == mp.selectors.selector_from_map(FOO) for each in hard)
    assert asked.counts("a", "r") == [[2, 0], [0, 2]]


@pytest.mark.parametrize(
    ("pod", "objects", "settings"),
    [
        pytest.param(waiting(), [], LIST, id="no service"),
        pytest.param(waiting(labels={}), [SERVICE], LIST, id="a service of other pods"),
        pytest.param(
            waiting(make_constraint("foo@zone", when_unsatisfiable="ScheduleAnyway")),
            [SERVICE],
            LIST,
            id="a constraint of the pod's own, whatever it is for",
        ),
        pytest.param(waiting(), [SERVICE], {}, id="the system's defaults are soft"),
        pytest.param(waiting(), [SERVICE], {"defaulting_type": "List"}, id="an empty list"),
    ],
)
def test_skips(pod, objects, settings):
    assert Asked(pod, FOUR, crowd(a=1), objects, **settings).found.is_skip


def test_a_service_that_comes_and_goes():
    asked = Asked(waiting(), {"a": {"node": "a", "rack": "r"}}, crowd(a=2), **LIST)
    assert asked.found.is_skip
    asked.cluster.put(SERVICE)
    assert asked.plugin.pre_filter(asked.state, asked.pod) == OK
    asked.cluster.drop(SERVICE)
    assert asked.plugin.pre_filter(asked.state, asked.pod).is_skip


# What if


def test_removing_and_adding_pods():
    asked = Asked(waiting(BY_ZONE, BY_NODE), FOUR, crowd(a=2, b=1, x=2))
    asked.change("remove_pod", crowd(x=1)[0], "x")
    assert asked.counts("zone1", "zone2") == [[3, 1], [0, 0]]
    assert asked.counts("a", "b", "x") == [[0, 0, 0], [2, 1, 1]]
    asked.change("add_pod", crowd(y=1)[0], "y")
    assert asked.counts("zone2", "y") == [[2, 0], [0, 1]]
    assert asked.statuses() == [SKEWED, SKEWED, OK, OK]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(crowd(y=1, namespace="other")[0], id="of another namespace"),
        pytest.param(crowd({}, y=1)[0], id="that does not match"),
    ],
)
def test_adding_a_pod_that_does_not_count(other):
    asked = Asked(waiting(BY_NODE), FOUR)
    asked.change("add_pod", other, "y")
    assert asked.counts("y") == [[0]]


def test_adding_a_pod_to_a_node_that_does_not_count():
    asked = Asked(waiting(BY_NODE, node_selector={"disk": "ssd"}), without(FOUR, "y", "disk"))
    asked.change("add_pod", crowd(y=1)[0], "y")
    assert asked.counts("y") == [[0]]


def test_a_pod_under_an_empty_selector_is_counted_when_it_is_added():
    asked = Asked(waiting(make_constraint("@node")), FOUR)
    asked.change("add_pod", crowd(y=1)[0], "y")
    assert asked.statuses() == [OK, OK, OK, SKEWED]


def test_a_pod_that_is_being_deleted_is_taken_off_though_it_was_not_counted():
    gone = crowd(y=1, terminating=True)[0]
    asked = Asked(waiting(BY_NODE), FOUR, [gone])
    asked.change("remove_pod", gone, "y")
    assert asked.counts("y") == [[-1]]
    assert asked.statuses() == [SKEWED, SKEWED, SKEWED, OK]


def test_a_copy_leaves_the_original_alone():
    asked = Asked(waiting(BY_NODE), FOUR)
    before, asked.state = asked.state, asked.state.clone()
    asked.change("add_pod", crowd(y=1)[0], "y")
    assert asked.counts("y") == [[1]]
    asked.state = before
    assert asked.counts("y") == [[0]]


# Trouble


def test_a_selector_that_does_not_parse():
    bad = LabelSelector(match_labels={"foo": "{{.bad-value.}}"})
    pod = waiting(replace(BY_ZONE, label_selector=bad))
    text = (
        "get constraints from pod: obtaining pod's hard topology spread constraints: "
        "values[0][foo]: Invalid value: "
    )
    with pytest.raises(PluginFailure, match=text.replace("[", r"\[").replace("]", r"\]")):
        Asked(pod, FOUR)


def test_filter_without_pre_filter_is_an_error():
    asked = Asked(waiting(BY_ZONE), FOUR)
    fresh = make_state(asked.pod, asked.cluster)
    with pytest.raises(mp.PluginFailure, match='reading "PreFilterPodTopologySpread" from'):
        asked.plugin.filter(fresh, asked.pod, asked.info("a"))


def test_conforms():
    check_plugin(PodTopologySpread())
