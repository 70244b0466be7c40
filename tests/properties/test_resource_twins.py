"""Whole-cluster forms and per-node forms agree, for any cluster, pod and settings."""

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from moorage.api.pod import Container, ResourceRequirements
from moorage.nodes.usage import Usage
from moorage.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from moorage.plugins.node_resources_fit import NodeResourcesFit
from moorage.testing.builders import make_node, make_pod, make_state, make_table
from moorage.testing.checks import check_twins

GPU, HUGE, ODD = "nvidia.com/gpu", "hugepages-2Mi", "kubernetes.io/odd"
COUNTED = ("cpu", "memory", "ephemeral-storage", GPU, HUGE, ODD)
NAMES = (*COUNTED, "storage")

# Large enough for floats to be rounded, small enough for a percentage to be an int64.
LARGEST = 2**55

small, large = st.integers(0, 12), st.integers(0, LARGEST)
milli = st.builds("{}m".format, st.integers(0, 12_000))


def amounts(values):
    """Requests, or what a node offers; any resource may be missing."""
    sized = {name: values for name in NAMES if name != "cpu"}
    return st.fixed_dictionaries({}, optional={"cpu": milli, **sized})


@st.composite
def containers(draw, values):
    return Container(
        name="c",
        resources=ResourceRequirements(requests=draw(amounts(values))),
        restart_policy=draw(st.sampled_from([None, "Always"])),
    )


@st.composite
def pods(draw, values, name="pod", node=None):
    some = partial(st.lists, containers(values))
    level = st.one_of(st.none(), st.builds(ResourceRequirements, requests=amounts(values)))
    return make_pod(
        name,
        node=node,
        containers=tuple(draw(some(max_size=2))),
        init_containers=tuple(draw(some(max_size=1))),
        resources=draw(level),
        overhead=draw(st.one_of(st.just({}), amounts(values))),
    )


@st.composite
def tables(draw, values):
    """Some nodes, pods on them whether they fit or not, and a row without a node."""
    table = make_table([])
    for i in range(draw(st.integers(1, 5))):
        places = draw(st.fixed_dictionaries({}, optional={"pods": st.integers(0, 3)}))
        table.set_node(make_node(f"n{i}", allocatable=draw(amounts(values)) | places))
        for j in range(draw(st.integers(0, 2))):
            pod = draw(pods(values, f"p{i}-{j}", f"n{i}"))
            table.add_pod(f"n{i}", pod, Usage.of(pod))
    if draw(st.booleans()):
        table.remove_node("n0")
    return table


@st.composite
def clusters(draw):
    """A waiting pod and a table."""
    values = draw(st.sampled_from([small, large]))
    return draw(pods(values)), draw(tables(values))


resources = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from((*NAMES, "pods")), "weight": st.integers(1, 100)}
    ),
    min_size=1,
    max_size=4,
)
shapes = st.dictionaries(st.integers(0, 100), st.integers(0, 10), min_size=1, max_size=4).map(
    lambda points: [{"utilization": at, "score": points[at]} for at in sorted(points)]
)
strategies = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]),
        "resources": resources,
        "requestedToCapacityRatio": st.fixed_dictionaries({"shape": shapes}),
    }
)


@given(
    clusters(),
    strategies,
    st.lists(st.sampled_from(NAMES)),
    st.lists(st.sampled_from(["nvidia.com", "kubernetes.io"])),
)
def test_fit(cluster, strategy, ignored, groups):
    pod, table = cluster
    plugin = NodeResourcesFit(
        scoring_strategy=strategy, ignored_resources=ignored, ignored_resource_groups=groups
    )
    check_twins(plugin, pod, table)


@given(clusters(), st.lists(st.sampled_from((*NAMES, "pods")), unique=True, max_size=5))
def test_balanced_allocation(cluster, names):
    pod, table = cluster
    check_twins(
        NodeResourcesBalancedAllocation(resources=[{"name": name} for name in names]), pod, table
    )


@given(clusters())
def test_who_fits_does_not_overcommit(cluster):
    pod, table = cluster
    plugin, state, usage = NodeResourcesFit(), make_state(pod, table), Usage.of(pod)
    plugin.pre_filter(state, pod)
    for name, row in list(table.row_of.items()):
        if table.active_rows[row]:
            fits = plugin.filter(state, pod, table.info(row)).is_success
            table.add_pod(name, pod, usage)
            assert fits == within_bounds(table.info(row), usage)
            table.remove_pod(name, pod.uid)


def within_bounds(node, usage):
    """Whether a node can bear its pods, as far as the last of them is concerned."""
    return node.pod_count <= node.allocatable("pods") and all(
        node.requested(name) <= node.allocatable(name) for name, _ in usage.requested
    )
