"""Nodes and pods of Kubernetes' scheduler_perf: 4 CPUs, 32 GiB, 110 pods; 100m and 500Mi."""

from collections.abc import Mapping
from typing import Any

from moorage.api.meta import ObjectMeta
from moorage.api.node import Node, NodeSpec, NodeStatus, Taint
from moorage.api.pod import Container, ContainerPort, Pod, PodSpec, ResourceRequirements
from moorage.api.quantity import Quantity

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
ZONES = ("zone-a", "zone-b", "zone-c")
NAMESPACE = "bench"

ALLOCATABLE: dict[str, Quantity] = {"cpu": "4", "memory": "32Gi", "pods": "110"}
REQUESTS: dict[str, Quantity] = {"cpu": "100m", "memory": "500Mi"}


def node(
    name: str,
    i: int,
    taints: tuple[Taint, ...] = (),
    more: Mapping[str, Quantity] | None = None,
) -> Node:
    """A node of scheduler_perf, in one of three zones; `more` is what it offers besides."""
    room = {**ALLOCATABLE, **(more or {})}
    labels = {HOSTNAME: name, ZONE: ZONES[i % len(ZONES)]}
    return Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(name=name, uid=name, labels=labels, resource_version="1"),
        spec=NodeSpec(taints=taints),
        status=NodeStatus(allocatable=room, capacity=room),
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
    """A pending pod of scheduler_perf, complete as an API server would hand it out."""
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
    return Pod(
        api_version="v1",
        kind="Pod",
        metadata=meta,
        spec=PodSpec(containers=(container,), **{"priority": 0, **spec}),
    )


def nodes_of(count: int) -> list[Node]:
    """So many nodes, zone by zone."""
    return [node(f"node-{i}", i) for i in range(count)]


def pods_of(prefix: str, count: int, **spec: Any) -> list[Pod]:
    """So many pods of one template."""
    return [pod(f"{prefix}-{i}", **spec) for i in range(count)]
