"""Pods, nodes and tables in one line each, for examples; `strategies` has random ones.

    pod = make_pod(requests={"cpu": "500m"}, tolerations=[Toleration(key="gpu", operator="Exists")])
    node = make_node("n1", labels={"disk": "ssd"}, taints=[Taint(key="gpu", effect="NoSchedule")])
    table = make_table([node], pods=[make_pod("other", node="n1")])

What is not said is as a plain pod or node would have it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moorage.api.meta import KubeObject, ObjectMeta
from moorage.api.node import ContainerImage, Node, NodeSpec, NodeStatus, Taint
from moorage.api.pod import (
    Container,
    ContainerPort,
    Pod,
    PodSchedulingGate,
    PodSpec,
    ResourceRequirements,
    Toleration,
)
from moorage.api.quantity import Quantity
from moorage.framework.cluster import Cluster
from moorage.framework.state import CycleState
from moorage.nodes.table import NodeTable
from moorage.nodes.template import Templates
from moorage.nodes.usage import HostPort, Usage

ROOMY: Mapping[str, Quantity] = {"cpu": "4", "memory": "32Gi", "pods": "110"}


def make_pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    labels: Mapping[str, object] | None = None,
    annotations: Mapping[str, str] | None = None,
    requests: Mapping[str, Quantity] | None = None,
    node: str | None = None,
    priority: int | None = None,
    tolerations: Iterable[Toleration] = (),
    node_selector: Mapping[str, str] | None = None,
    host_ports: Iterable[int | HostPort] = (),
    images: Sequence[str] | None = None,
    gates: Iterable[str] = (),
    uid: str | None = None,
    **spec_fields: Any,
) -> Pod:
    """A pod with one container per image, one without an image if none are given.

    `requests` and `host_ports` (a port, or address, protocol and port) belong to the first
    container; `node` is where the pod already runs. A label whose value is None is left out.
    Other fields of the spec go by their names in `moorage.api.pod.PodSpec`, as `affinity=...`.
    """
    if "containers" not in spec_fields:
        spec_fields["containers"] = _containers(requests or {}, host_ports, images or ("",))
    elif requests is not None or host_ports or images is not None:
        raise TypeError("containers say themselves what they request, open and run")
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"{namespace}/{name}" if uid is None else uid,
            labels=_labels(labels),
            annotations=dict(annotations or {}),
        ),
        spec=PodSpec(
            node_name=node or "",
            priority=priority,
            tolerations=tuple(tolerations),
            node_selector=None if node_selector is None else dict(node_selector),
            scheduling_gates=tuple(PodSchedulingGate(name=gate) for gate in gates),
            **spec_fields,
        ),
    )


def make_node(
    name: str = "node",
    *,
    labels: Mapping[str, object] | None = None,
    annotations: Mapping[str, str] | None = None,
    allocatable: Mapping[str, Quantity] | None = None,
    taints: Iterable[Taint] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    features: Iterable[str] = (),
) -> Node:
    """A node, by default with 4 CPUs, 32 GiB and room for 110 pods.

    `images` maps names to sizes in bytes. A label whose value is None is left out.
    """
    return Node(
        metadata=ObjectMeta(name=name, labels=_labels(labels), annotations=dict(annotations or {})),
        spec=NodeSpec(unschedulable=unschedulable, taints=tuple(taints)),
        status=NodeStatus(
            allocatable=dict(ROOMY if allocatable is None else allocatable),
            images=tuple(
                ContainerImage(names=(image,), size_bytes=size)
                for image, size in (images or {}).items()
            ),
            declared_features=tuple(features),
        ),
    )


def make_table(nodes: Iterable[Node], pods: Iterable[Pod] = ()) -> NodeTable:
    """A table of these nodes, with the pods booked where they say that they run."""
    table = NodeTable()
    for node in nodes:
        table.set_node(node)
    for pod in pods:
        assert pod.node_name, f"pod {pod.key} runs nowhere: give it a `node`"
        table.add_pod(pod.node_name, pod, Usage.of(pod))
    return table


def make_cluster(
    nodes: Iterable[Node], pods: Iterable[Pod] = (), objects: Iterable[KubeObject] = ()
) -> Cluster:
    """A cluster of these nodes, with pods that run on them and objects of other kinds."""
    cluster = Cluster(make_table(nodes, pods))
    for obj in objects:
        cluster.put(obj)
    return cluster


def make_state(pod: Pod, cluster: Cluster | NodeTable, now: float = 0.0) -> CycleState:
    """A fresh state for a cycle of this pod."""
    if isinstance(cluster, NodeTable):
        cluster = Cluster(cluster)
    return CycleState.of(cluster, Templates().of(pod), now)


def make_port(wanted: int | HostPort) -> ContainerPort:
    """A port of a container that takes the same port of its node."""
    ip, protocol, port = ("", "", wanted) if isinstance(wanted, int) else wanted
    return ContainerPort(container_port=port, host_port=port, host_ip=ip, protocol=protocol)


def _labels(labels: Mapping[str, object] | None) -> dict[str, str]:
    return {key: str(value) for key, value in (labels or {}).items() if value is not None}


def _containers(
    requests: Mapping[str, Quantity], host_ports: Iterable[int | HostPort], images: Sequence[str]
) -> tuple[Container, ...]:
    first = Container(
        name="c0",
        image=images[0],
        resources=ResourceRequirements(requests=dict(requests)),
        ports=tuple(map(make_port, host_ports)),
    )
    others = (Container(name=f"c{i}", image=image) for i, image in enumerate(images[1:], 1))
    return (first, *others)
