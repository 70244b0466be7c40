"""Shapes: clusters and pods to measure with. A shape is a function from numbers to objects.

Nodes are those of Kubernetes' scheduler_perf: 4 CPUs, 32 GiB, room for 110 pods, over three
zones. So are the pods of `basic`, 100m and 500Mi, all of one template. Each further shape changes
one thing and is named after it. A new one is a function here with `@shape` on top.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moorage.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from moorage.api.node import Node, NodeSpec, NodeStatus, Taint
from moorage.api.pod import (
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from moorage.api.quantity import Quantity

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
ZONES = ("zone-a", "zone-b", "zone-c")

ALLOCATABLE: dict[str, Quantity] = {"cpu": "4", "memory": "32Gi", "pods": "110"}
REQUESTS: dict[str, Quantity] = {"cpu": "100m", "memory": "500Mi"}
GREEN = {"color": "green"}
GREEN_PODS = LabelSelector(match_labels=GREEN)
DEDICATED = Taint(key="dedicated", value="batch", effect="NoSchedule")
HARDLY_LIKED = Taint(key="slow-disk", effect="PreferNoSchedule")


@dataclass(frozen=True, slots=True)
class Workload:
    """What is measured: a cluster, pods that it runs already, and pods that want to run."""

    nodes: list[Node]
    initial: list[Pod]
    pods: list[Pod]
    # How many of the pods fit nowhere; a run has to find exactly these.
    hopeless: int = 0


@dataclass(frozen=True, slots=True)
class Shape:
    """A named way of making workloads, and how many pods of it take about a second or two."""

    name: str
    summary: str
    pods: int
    make: Callable[[int, int, int], Workload] = field(repr=False)


SHAPES: dict[str, Shape] = {}


def shape(pods: int) -> Callable[[Callable[[int, int, int], Workload]], Shape]:
    """Register a function of (nodes, initial, pods) under its name, its docstring as summary."""

    def register(make: Callable[[int, int, int], Workload]) -> Shape:
        name = make.__name__.replace("_", "-")
        summary = (make.__doc__ or "").strip().splitlines()[0]
        SHAPES[name] = Shape(name, summary, pods, make)
        return SHAPES[name]

    return register


# The shapes


@shape(pods=10_000)
def basic(nodes: int, initial: int, pods: int) -> Workload:
    """Pods of one template, 100m and 500Mi."""
    return Workload(_nodes(nodes), _pods("initial", initial), _pods("pod", pods))


@shape(pods=2_000)
def own_template(nodes: int, initial: int, pods: int) -> Workload:
    """Every pod has requests and labels of its own; nothing is shared."""

    def own(i: int) -> Pod:
        requests = {"cpu": f"{50 + i % 97}m", "memory": f"{300 + i % 389}Mi"}
        return pod(f"pod-{i}", labels={"app": f"app-{i}"}, requests=requests)

    return Workload(_nodes(nodes), _pods("initial", initial), [own(i) for i in range(pods)])


@shape(pods=10_000)
def node_affinity(nodes: int, initial: int, pods: int) -> Workload:
    """Pods that require two of the three zones."""
    wanted = LabelSelectorRequirement(key=ZONE, operator="In", values=ZONES[:2])
    term = NodeSelectorTerm(match_expressions=(wanted,))
    required = NodeSelector(node_selector_terms=(term,))
    affinity = Affinity(
        node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required)
    )
    return Workload(_nodes(nodes), _pods("initial", initial), _pods("pod", pods, affinity=affinity))


@shape(pods=10_000)
def taints(nodes: int, initial: int, pods: int) -> Workload:
    """Half of the nodes are tainted; pods tolerate half of those taints."""

    def node_taints(i: int) -> tuple[Taint, ...]:
        return ((), (DEDICATED,), (HARDLY_LIKED,), (Taint(key="gpu", effect="NoSchedule"),))[i % 4]

    tolerations = (Toleration(key=DEDICATED.key, operator="Exists", effect="NoSchedule"),)
    tainted = [node(f"node-{i}", i, taints=node_taints(i)) for i in range(nodes)]
    return Workload(tainted, _pods("initial", initial), _pods("pod", pods, tolerations=tolerations))


@shape(pods=5_000)
def host_ports(nodes: int, initial: int, pods: int) -> Workload:
    """Pods with a host port, of which a node takes one each."""

    def daemon(i: int) -> Pod:
        return pod(f"pod-{i}", host_port=8000 + i * 8 // max(pods, 1))

    return Workload(_nodes(nodes), _pods("initial", initial), [daemon(i) for i in range(pods)])


@shape(pods=5_000)
def unschedulable(nodes: int, initial: int, pods: int) -> Workload:
    """One pod in five asks for more than any node has, and is refused."""

    def maybe_huge(i: int) -> Pod:
        if i % 5:
            return pod(f"pod-{i}")
        return pod(f"pod-{i}", requests={"cpu": "64", "memory": "500Mi"})

    made = [maybe_huge(i) for i in range(pods)]
    hopeless = len(range(0, pods, 5))
    return Workload(_nodes(nodes), _pods("initial", initial), made, hopeless)


@shape(pods=2_000)
def anti_affinity(nodes: int, initial: int, pods: int) -> Workload:
    """Pods that refuse to share a node with their like."""
    term = PodAffinityTerm(label_selector=GREEN_PODS, topology_key=HOSTNAME)
    apart = PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    return _green(nodes, initial, pods, affinity=Affinity(pod_anti_affinity=apart))


@shape(pods=5_000)
def preferred_affinity(nodes: int, initial: int, pods: int) -> Workload:
    """Pods that like to share a node with their like."""
    term = PodAffinityTerm(label_selector=GREEN_PODS, topology_key=HOSTNAME)
    weighted = WeightedPodAffinityTerm(weight=1, pod_affinity_term=term)
    near = PodAffinity(preferred_during_scheduling_ignored_during_execution=(weighted,))
    return _green(nodes, initial, pods, affinity=Affinity(pod_affinity=near))


@shape(pods=5_000)
def zone_spread(nodes: int, initial: int, pods: int) -> Workload:
    """Pods that have to lie evenly over the zones."""
    evenly = TopologySpreadConstraint(
        max_skew=5,
        topology_key=ZONE,
        when_unsatisfiable="DoNotSchedule",
        label_selector=GREEN_PODS,
    )
    return _green(nodes, initial, pods, topology_spread_constraints=(evenly,))


# What they are made of


def node(name: str, i: int, taints: tuple[Taint, ...] = ()) -> Node:
    """A node of scheduler_perf, in one of three zones."""
    labels = {HOSTNAME: name, ZONE: ZONES[i % len(ZONES)]}
    return Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(name=name, uid=name, labels=labels, resource_version="1"),
        spec=NodeSpec(taints=taints),
        status=NodeStatus(allocatable=ALLOCATABLE, capacity=ALLOCATABLE),
    )


def pod(
    name: str,
    *,
    labels: dict[str, str] | None = None,
    requests: Mapping[str, Quantity] | None = None,
    host_port: int = 0,
    **spec: Any,
) -> Pod:
    """A pending pod of scheduler_perf, complete as an API server would hand it out."""
    ports = (ContainerPort(container_port=80, host_port=host_port, protocol="TCP"),)
    container = Container(
        name="pause",
        image="registry.k8s.io/pause:3.10",
        resources=ResourceRequirements(requests=dict(requests or REQUESTS)),
        ports=ports if host_port else (),
    )
    meta = ObjectMeta(
        name=name, namespace="bench", uid=name, labels=labels or {}, resource_version="1"
    )
    return Pod(
        api_version="v1",
        kind="Pod",
        metadata=meta,
        spec=PodSpec(containers=(container,), priority=0, **spec),
    )


def _green(nodes: int, initial: int, pods: int, **spec: Any) -> Workload:
    """A workload whose pods all mind each other, those that run already as well."""

    def green(name: str) -> Pod:
        return pod(name, labels=GREEN, **spec)

    there = [green(f"initial-{i}") for i in range(initial)]
    return Workload(_nodes(nodes), there, [green(f"pod-{i}") for i in range(pods)])


def _nodes(count: int) -> list[Node]:
    return [node(f"node-{i}", i) for i in range(count)]


def _pods(prefix: str, count: int, **spec: Any) -> list[Pod]:
    return [pod(f"{prefix}-{i}", **spec) for i in range(count)]
