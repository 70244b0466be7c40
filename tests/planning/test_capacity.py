"""How many more fit, checked by counting by hand and by brute force."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.planning.conftest import HOST, ZONE, node, pod

from moorage.errors import InputError
from moorage.planning.capacity import capacity, pools_of
from moorage.testing import make_node

SPREAD = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
ALONE = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}


@st.composite
def clusters(draw):
    """Nodes as (cpu, memory, pods, usable), pods on them, and the requests of the new pod."""
    nodes = draw(
        st.lists(
            st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 6), st.booleans()),
            min_size=1,
            max_size=5,
        )
    )
    running = draw(
        st.lists(
            st.tuples(st.integers(0, len(nodes) - 1), st.integers(0, 4), st.integers(0, 4)),
            max_size=6,
        )
    )
    return nodes, running, draw(st.integers(0, 3)), draw(st.integers(0, 3))


def by_brute_force(nodes, running, cpu, memory):
    """Put one more on a node for as long as it holds; nodes do not mind each other here."""
    total = 0
    for number, (node_cpu, node_memory, most, usable) in enumerate(nodes):
        mine = [(c, m) for at, c, m in running if at == number]
        used_cpu, used_memory = sum(c for c, _ in mine), sum(m for _, m in mine)
        count = len(mine)
        while (
            usable
            and count + 1 <= most
            # Resources that are not requested are ignored, even on a node that is overcommitted.
            and (not cpu or used_cpu + cpu <= node_cpu)
            and (not memory or used_memory + memory <= node_memory)
        ):
            total, count = total + 1, count + 1
            used_cpu, used_memory = used_cpu + cpu, used_memory + memory
    return total


@given(clusters())
def test_as_many_as_brute_force_finds(cluster):
    nodes, running, cpu, memory = cluster
    objects = [
        node(f"n{i}", c * 100, m * 64, p, unschedulable=not usable)
        for i, (c, m, p, usable) in enumerate(nodes)
    ]
    objects += [
        pod(f"r{i}", c * 100, m * 64, nodeName=f"n{at}") for i, (at, c, m) in enumerate(running)
    ]
    got = capacity(objects, pod("web", cpu * 100, memory * 64))
    expected = by_brute_force(nodes, running, cpu, memory)
    assert got.fits == expected == sum(got.nodes.values()) == sum(p.fits for p in got.pools)


@pytest.mark.parametrize(
    ("web", "expected"),
    [
        pytest.param(pod("web", 1000), 4 + 4 + 2, id="by CPU"),
        pytest.param(pod("web", labels={"app": "web"}, affinity=ALONE), 3, id="one for each node"),
        pytest.param(
            pod("web", 1000, labels={"app": "web"}, topologySpreadConstraints=[SPREAD]),
            # Zone b has room for two, so zone a gets no more than three of its eight.
            2 + 3,
            id="zones within one of each other",
        ),
        pytest.param(pod("web", nodeSelector={ZONE: "b"}), 110, id="only the nodes it selects"),
        pytest.param(pod("web", 100_000), 0, id="more than any node has"),
    ],
)
def test_counted_by_hand(web, expected):
    objects = [node("a1", zone="a"), node("a2", zone="a"), node("b1", 2000, zone="b")]
    got = capacity(objects, web)
    assert got.fits == expected
    assert not got.is_limited


def test_says_what_runs_out_first(make_node, make_pod):
    nodes = [make_node(f"n{i}", memory=1024) for i in range(3)] + [make_node("small", 500)]
    got = capacity([*nodes, make_node("away", unschedulable=True)], make_pod("web", 100, 512))
    assert got.first == "Insufficient memory"
    assert got.runs_out == {"Insufficient memory": 3, "Insufficient cpu": 1}
    assert got.unusable == {"node(s) were unschedulable": 1}
    assert got.fits == 3 * 2 + 5


def test_pools_by_label(make_node, make_pod):
    nodes = [
        make_node("a", 1000, labels={"team": "x"}),
        make_node("b", 2000, labels={"team": "x"}),
        make_node("c", 4000),
    ]
    got = capacity(nodes, make_pod("web", 1000), pool_label="team")
    assert {pool.name: (pool.nodes, pool.fits) for pool in got.pools} == {
        "x": (2, 3),
        "(no pool)": (1, 4),
    }


def test_pods_that_wait_already_come_first(make_node, make_pod):
    objects = [make_node("n"), make_pod("waits", 3000), make_pod("hopeless", 9000)]
    got = capacity(objects, make_pod("web", 1000))
    assert (got.fits, got.placed_before, got.pending_before) == (1, 1, 1)


def test_no_preemption(make_node, make_pod):
    objects = [make_node("n"), make_pod("low", 3000, nodeName="n", priority=0)]
    assert capacity(objects, make_pod("web", 1000, priority=1000)).fits == 1


def test_the_pods_of_a_workload(make_node, make_pod):
    web = make_pod("x", 1500)
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 7, "template": {"metadata": {}, "spec": web["spec"]}},
    }
    assert capacity([make_node("n")], deployment).fits == 2


def test_a_namesake_in_the_cluster(make_node, make_pod):
    objects = [make_node("n"), make_pod("web.1", 1000, nodeName="n"), make_pod("web", 1000)]
    assert capacity(objects, make_pod("web", 1000)).fits == 2


def test_stops_at_the_limit(make_node, make_pod):
    got = capacity([make_node("n")], make_pod("web"), most=7)
    assert (got.fits, got.is_limited) == (7, True)


@pytest.mark.parametrize(
    ("objects", "web", "message"),
    [
        pytest.param([], pod("web"), "the cluster is empty", id="no nodes"),
        pytest.param(
            [node("n")], pod("web", schedulingGates=[{"name": "g"}]), "scheduling gate", id="gated"
        ),
        pytest.param(
            [node("n")],
            pod("web", schedulerName="mine"),
            'no profile for scheduler "mine"',
            id="other",
        ),
        pytest.param([node("n")], node("m"), "one pod is expected", id="not a pod"),
    ],
)
def test_bad_input_is_one_line(objects, web, message):
    with pytest.raises(InputError, match=message) as caught:
        capacity(objects, web)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("labels", "pool"),
    [
        pytest.param({"moorage.dev/pool": "p", "karpenter.sh/nodepool": "k"}, "p", id="ours"),
        pytest.param({"cloud.google.com/gke-nodepool": "g"}, "g", id="a platform's"),
        pytest.param({"node.kubernetes.io/instance-type": "m5"}, "m5", id="the instance type"),
        pytest.param({"x": "y"}, "4 cpu, 32Gi memory", id="the size"),
    ],
)
def test_the_first_known_label_names_the_pool(labels, pool):
    assert pools_of([make_node("n", labels=labels)]) == {pool: ["n"]}


def test_nodes_without_the_label_are_one_pool():
    nodes = [make_node("a", labels={"team": "x"}), make_node("b"), make_node("c")]
    assert pools_of(nodes, "team") == {"x": ["a"], "(no pool)": ["b", "c"]}


def test_the_size_of_a_node_includes_extended_resources():
    gpu = make_node("n", allocatable={"cpu": "4", "memory": "8Gi", "example.com/gpu": "2"})
    assert pools_of([gpu]) == {"4 cpu, 8Gi memory, 2 example.com/gpu": ["n"]}


def test_a_pool_label_that_no_node_has():
    with pytest.raises(InputError, match='no node has the label "team"'):
        pools_of([make_node("n")], "team")
