"""Random pods, nodes and tables: from a seeded `random.Random`, or as Hypothesis strategies.

    table = random_table(Random(7))  # always the same one

    @given(strategies.pods(), strategies.tables())
    def test_my_plugin(pod, table): ...

Both draw from the same small vocabulary. Only the strategies need Hypothesis to be installed.
`checks/examples.py` makes of them what `check_plugin` draws from.
"""

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, TypeVar

from moorage.api.meta import LabelSelector, LabelSelectorRequirement, NodeSelector, NodeSelectorTerm
from moorage.api.node import Node, Taint
from moorage.api.pod import (
    Affinity,
    Container,
    ContainerRestartRule,
    ImageVolume,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
    Volume,
    WeightedPodAffinityTerm,
)
from moorage.api.quantity import Quantity
from moorage.nodes.table import NodeTable
from moorage.testing.builders import make_node, make_pod, make_port, make_table

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

T = TypeVar("T")

# Few words, so that pods and nodes have something to do with each other.

LABEL_KEYS = ("zone", "disk", "tier")
LABEL_VALUES = ("", "a", "b", "5", "07")
NODE_NAMES = tuple(f"n{i}" for i in range(8))
GONE, LATE = "node-that-is-gone", "node-that-comes-late"
TAINT_KEYS = ("gpu", "spot", "node.kubernetes.io/unschedulable")
TAINT_VALUES = ("", "a", "950")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
# One size per name: where nodes disagree, the table goes by who came first, which is history.
IMAGES = {
    "nginx:latest": 40_000_001,
    "reg:5000/app:latest": 300 << 20,
    "reg:5000/app:v1": 5_000_000,
    "db@sha256:aa": 3_999_999_999,
    "big:1": 900 << 20,
}
WANTED_IMAGES = ("nginx", "reg:5000/app", *IMAGES, "unheard:1")
HOST_PORTS = (80, 8080)
IPS = ("", "0.0.0.0", "127.0.0.1", "::")
PROTOCOLS = ("", "TCP", "UDP")
FEATURES = (
    "ExtendWebSocketsToKubelet",
    "RestartAllContainersOnContainerExits",
    "Unknown",
    "UserNamespacesHostNetworkSupport",
)
CPUS = ("0", "100m", "0.1005", "1", "3")
MEMORIES = ("0", "1Mi", "200Mi", "8Gi")
GPU = "example.com/gpu"


def random_node(rng: Random, name: str = "node") -> Node:
    """A node with some labels, taints, images and features, and more or less room."""
    features = _some(rng, FEATURES)
    return make_node(
        name,
        labels={**_random_labels(rng), "kubernetes.io/hostname": rng.choice((name, None))},
        allocatable=_random_allocatable(rng),
        taints=[_random_taint(rng) for _ in range(rng.randrange(4))],
        unschedulable=rng.choice((False, False, True)),
        images={image: IMAGES[image] for image in _some(rng, tuple(IMAGES))},
        # Nodes sort their features, but nobody makes them.
        features=features if rng.randrange(4) else features[::-1],
    )


def random_pod(
    rng: Random, name: str = "pod", *, node: str | None = None, valid: bool = True
) -> Pod:
    """A pod that asks for this and that; unless `valid`, also for what an API server refuses."""
    return make_pod(
        name,
        namespace=rng.choice(("default", "other")),
        labels=_random_labels(rng),
        node=node,
        priority=rng.choice((None, 0, 10)),
        tolerations=[_random_toleration(rng) for _ in range(rng.randrange(4))],
        node_selector=rng.choice((None, {}, _random_selector(rng))),
        affinity=rng.choice((None, _random_affinity(rng, valid=valid))),
        topology_spread_constraints=tuple(
            _random_constraint(rng) for _ in range(rng.choice((0, 0, 1, 2)))
        ),
        containers=tuple(_random_container(rng, f"c{i}") for i in range(rng.randrange(1, 4))),
        init_containers=tuple(_random_container(rng, f"i{i}") for i in range(rng.randrange(3))),
        volumes=tuple(
            Volume(name=image, image=ImageVolume(reference=image))
            for image in _few(rng, WANTED_IMAGES)
        ),
        gates=_few(rng, ("quota", "batch")),
        host_network=rng.choice((False, True)),
        host_users=rng.choice((None, False, True)),
    )


def random_incoming(rng: Random, *, valid: bool = True) -> Pod:
    """A pod that waits for a node; now and then it names the only one that it wants."""
    return random_pod(rng, node=rng.choice((None, None, None, *NODE_NAMES[:2])), valid=valid)


def random_table(rng: Random, nodes: int = 6, pods: int = 6) -> NodeTable:
    """A worn table of random nodes and pods."""
    names = rng.sample(NODE_NAMES, nodes)
    places = (*names, LATE)
    running = [random_pod(rng, f"p{i}", node=rng.choice(places)) for i in range(pods)]
    return worn_table([random_node(rng, name) for name in names], running)


def worn_table(nodes: Sequence[Node], pods: Sequence[Pod]) -> NodeTable:
    """A table with rows that have no node, as it gets them in a long life.

    A node has been deleted before its pod was, and a pod has been seen before its node was.
    """
    lost = [make_pod(where, node=where, host_ports=HOST_PORTS) for where in (GONE, LATE)]
    table = make_table([make_node(GONE, taints=[Taint(key="gone")]), *nodes], [*lost, *pods])
    table.remove_node(GONE)
    return table


def nodes() -> "SearchStrategy[Node]":
    """Nodes, as `random_node` makes them."""
    return _randoms().map(random_node)


def pods(*, valid: bool = True) -> "SearchStrategy[Pod]":
    """Pods that wait for a node, as `random_incoming` makes them."""
    return _randoms().map(partial(random_incoming, valid=valid))


def tables() -> "SearchStrategy[NodeTable]":
    """Tables of up to six nodes and pods, as `random_table` makes them."""
    from hypothesis import strategies as st

    few = st.integers(0, 6)
    return st.builds(lambda nodes, pods, rng: random_table(rng, nodes, pods), few, few, _randoms())


def _randoms() -> "SearchStrategy[Random]":
    # With a Random of Hypothesis' own, objects this large take about eight times as long. The
    # price is that Hypothesis can shrink how many there are, but not what is in them.
    from hypothesis import strategies as st

    return st.integers(0, 2**32 - 1).map(Random)


def _some(rng: Random, things: Sequence[T]) -> list[T]:
    """Some of them, in their order."""
    return [thing for thing in things if rng.choice((True, False))]


def _few(rng: Random, things: Sequence[T]) -> list[T]:
    return [rng.choice(things)] if rng.randrange(4) == 0 else []


def _random_labels(rng: Random) -> dict[str, str | None]:
    return {key: rng.choice((None, *LABEL_VALUES)) for key in LABEL_KEYS}


def _random_selector(rng: Random) -> dict[str, str]:
    return {key: rng.choice(LABEL_VALUES) for key in rng.sample(LABEL_KEYS, rng.randrange(1, 3))}


def _random_allocatable(rng: Random) -> dict[str, Quantity]:
    offered: dict[str, Quantity | None] = {
        "cpu": rng.choice((None, "4", "250m", "0.1005")),
        "memory": rng.choice((None, "32Gi", "1Gi", 1000)),
        "ephemeral-storage": rng.choice((None, "10Gi")),
        "pods": rng.choice(("110", "2", None)),
        GPU: rng.choice((None, 0, 1, 8)),
    }
    return {name: amount for name, amount in offered.items() if amount is not None}


def _random_taint(rng: Random) -> Taint:
    return Taint(
        key=rng.choice(TAINT_KEYS),
        value=rng.choice(TAINT_VALUES),
        effect=rng.choice((*EFFECTS, "Unheard")),
    )


def _random_toleration(rng: Random) -> Toleration:
    return Toleration(
        key=rng.choice(("", *TAINT_KEYS)),
        operator=rng.choice(("", "Equal", "Exists", "Gt")),
        value=rng.choice(TAINT_VALUES),
        effect=rng.choice(("", *EFFECTS)),
    )


def _random_container(rng: Random, name: str) -> Container:
    amounts = {
        "cpu": rng.choice((None, *CPUS)),
        "memory": rng.choice((None, *MEMORIES)),
        GPU: rng.choice((None, None, "1")),
    }
    return Container(
        name=name,
        image=rng.choice(WANTED_IMAGES),
        resources=ResourceRequirements(
            requests={resource: amount for resource, amount in amounts.items() if amount}
        ),
        ports=tuple(make_port(port) for port in _few(rng, HOST_PORTS))
        + tuple(
            make_port((rng.choice(IPS), rng.choice(PROTOCOLS), p)) for p in _few(rng, HOST_PORTS)
        ),
        restart_policy=rng.choice((None, "Always")),
        restart_policy_rules=tuple(
            ContainerRestartRule(action=action)
            for action in _few(rng, ("Restart", "RestartAllContainers"))
        ),
    )


def _random_affinity(rng: Random, *, valid: bool) -> Affinity:
    return Affinity(
        node_affinity=rng.choice((None, _random_node_affinity(rng, valid=valid))),
        pod_affinity=_random_pod_affinity(rng),
        pod_anti_affinity=_random_pod_affinity(rng),
    )


def _random_node_affinity(rng: Random, *, valid: bool) -> NodeAffinity:
    required = NodeSelector(
        node_selector_terms=tuple(_random_term(rng, valid=valid) for _ in range(rng.randrange(3)))
    )
    preferred = tuple(
        PreferredSchedulingTerm(
            weight=rng.choice((0, 1, 5, 100)), preference=_random_term(rng, valid=valid)
        )
        for _ in range(rng.randrange(3))
    )
    return NodeAffinity(
        required_during_scheduling_ignored_during_execution=rng.choice((None, required)),
        preferred_during_scheduling_ignored_during_execution=rng.choice((None, preferred)),
    )


def _random_term(rng: Random, *, valid: bool) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        match_expressions=tuple(
            _random_requirement(rng, valid=valid) for _ in range(rng.randrange(3))
        ),
        match_fields=tuple(
            LabelSelectorRequirement(
                key=rng.choice(("metadata.name", "metadata.name", "spec.unknown")),
                operator=rng.choice(("In", "NotIn")),
                values=tuple(rng.sample(NODE_NAMES, 1 if valid else rng.randrange(3))),
            )
            for _ in range(rng.choice((0, 0, 1, 2)))
        ),
    )


def _random_requirement(rng: Random, *, valid: bool) -> LabelSelectorRequirement:
    if not valid and rng.choice((True, False)):
        return LabelSelectorRequirement(
            key=rng.choice(("not a key", "zone")),
            operator=rng.choice(("In", "Gt", "Exists", "Like")),
            values=rng.choice(((), ("not a value",), ("-1",), ("a", "b"))),
        )
    operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    return LabelSelectorRequirement(
        key=rng.choice(LABEL_KEYS), operator=operator, values=_random_values(rng, operator)
    )


def _random_values(rng: Random, operator: str) -> tuple[str, ...]:
    match operator:
        case "In" | "NotIn":
            return tuple(rng.sample(LABEL_VALUES, rng.randrange(1, 3)))
        case "Gt" | "Lt":
            return (rng.choice(("4", "5", "06")),)
    return ()


def _random_label_selector(rng: Random) -> LabelSelector | None:
    return rng.choice((None, LabelSelector(), LabelSelector(match_labels=_random_selector(rng))))


def _random_pod_affinity(rng: Random) -> PodAffinity | None:
    terms = tuple(
        PodAffinityTerm(
            label_selector=_random_label_selector(rng), topology_key=rng.choice(LABEL_KEYS)
        )
        for _ in range(rng.choice((0, 0, 1)))
    )
    weighted = tuple(
        WeightedPodAffinityTerm(weight=rng.choice((1, 50)), pod_affinity_term=term)
        for term in terms
    )
    return rng.choice(
        (
            None,
            PodAffinity(required_during_scheduling_ignored_during_execution=terms),
            PodAffinity(preferred_during_scheduling_ignored_during_execution=weighted),
        )
    )


def _random_constraint(rng: Random) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        max_skew=rng.choice((1, 2)),
        topology_key=rng.choice(LABEL_KEYS),
        when_unsatisfiable=rng.choice(("DoNotSchedule", "ScheduleAnyway")),
        label_selector=_random_label_selector(rng),
    )
