"""Workloads: nodes and pods as in Kubernetes' scheduler_perf, and the registry of shapes.

A node has 4 CPUs, 32 GiB and room for 110 pods; a pod requests 100m and 500Mi.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moorage.api.meta import KubeObject, ObjectMeta
from moorage.api.node import Node, NodeSpec, NodeStatus, Taint
from moorage.api.pod import Container, ContainerPort, Pod, PodSpec, ResourceRequirements
from moorage.api.quantity import Quantity
from moorage.core.observations import Observation

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
ZONES = ("zone-a", "zone-b", "zone-c")
NAMESPACE = "bench"

ALLOCATABLE: dict[str, Quantity] = {"cpu": "4", "memory": "32Gi", "pods": "110"}
REQUESTS: dict[str, Quantity] = {"cpu": "100m", "memory": "500Mi"}


@dataclass(frozen=True, slots=True)
class BenchLoad:
    """A cluster, the pods that run at the start, and the pods to schedule."""

    nodes: list[Node]
    initial: list[Pod]
    pods: list[Pod]
    # Namespaces, Services and the like.
    others: list[KubeObject] = field(default_factory=list)
    # How many of the pods are unschedulable; a run has to find exactly these.
    unschedulable: int = 0
    # How many pods these evict.
    victims: int = 0
    # Other changes: one of these after every `churn_every` decisions.
    churn: list[Observation] = field(default_factory=list)
    churn_every: int = 1
    # Feature gates that the scheduler needs.
    gates: Mapping[str, bool] = field(default_factory=dict)


# Of (nodes, initial, pods).
Make = Callable[[int, int, int], BenchLoad]


@dataclass(frozen=True, slots=True)
class Shape:
    """A named kind of workload; `pods` take about a second or two on 5,000 nodes."""

    name: str
    summary: str
    pods: int
    make: Make = field(repr=False)
    # The baseline without what the shape adds, for a shape that is compared with it.
    without: Make | None = field(default=None, repr=False)


SHAPES: dict[str, Shape] = {}


def shape(pods: int, without: Make | None = None) -> Callable[[Make], Shape]:
    """Register a function of (nodes, initial, pods) under its name, its docstring as summary."""

    def register(make: Make) -> Shape:
        name = make.__name__.replace("_", "-")
        summary = (make.__doc__ or "").strip().splitlines()[0]
        SHAPES[name] = Shape(name, summary, pods, make, without)
        return SHAPES[name]

    return register


def node(
    name: str, i: int, taints: tuple[Taint, ...] = (), more: Mapping[str, Quantity] | None = None
) -> Node:
    """A node in one of three zones; `more` is added to its allocatable resources."""
    allocatable = {**ALLOCATABLE, **(more or {})}
    labels = {HOSTNAME: name, ZONE: ZONES[i % len(ZONES)]}
    return Node(
        metadata=ObjectMeta(name=name, uid=name, labels=labels, resource_version="1"),
        spec=NodeSpec(taints=taints),
        status=NodeStatus(allocatable=allocatable, capacity=allocatable),
    )


def pod(
    name: str,
    *,
    labels: dict[str, str] | None = None,
    requests: Mapping[str, Quantity] | None = None,
    host_port: int = 0,
    namespace: str = NAMESPACE,
    **spec: Any,
) -> Pod:
    """A pending pod with the defaults of an API server."""
    ports = (ContainerPort(container_port=80, host_port=host_port, protocol="TCP"),)
    container = Container(
        name="pause",
        image="registry.k8s.io/pause:3.10",
        resources=ResourceRequirements(requests=dict(requests or REQUESTS)),
        ports=ports if host_port else (),
    )
    meta = ObjectMeta(
        name=name, namespace=namespace, uid=name, labels=labels or {}, resource_version="1"
    )
    pod_spec = PodSpec(containers=(container,), **{"priority": 0, **spec})
    return Pod(metadata=meta, spec=pod_spec)


def nodes_of(count: int) -> list[Node]:
    """Nodes in three zones by turns."""
    return [node(f"node-{i}", i) for i in range(count)]


def pods_of(prefix: str, count: int, **spec: Any) -> list[Pod]:
    """Pods of one template."""
    return [pod(f"{prefix}-{i}", **spec) for i in range(count)]
