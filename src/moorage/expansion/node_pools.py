"""Nodes of a pool: `general-0`, `general-1` and so on."""

from collections.abc import Container

from msgspec.structs import replace

from moorage.api.node import Node, NodePool

HOST_NAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
POOL = "moorage.dev/pool"
# What a kubelet takes unless it is told otherwise.
MOST_PODS = "110"


def nodes_of(pool: NodePool, taken: Container[str] = (), first: int = 0) -> list[Node]:
    """The pool's nodes, but for those that are there already."""
    names = (f"{pool.name}-{number}" for number in range(first, first + pool.spec.count))
    return [
        _node(pool, number, name) for number, name in enumerate(names, first) if name not in taken
    ]


def _node(pool: NodePool, number: int, name: str) -> Node:
    template, zones = pool.spec.template, pool.spec.zones
    labels = {HOST_NAME: name, POOL: pool.name, **template.metadata.labels}
    if zones:
        labels[ZONE] = zones[number % len(zones)]
    status = template.status
    offered = status.allocatable or status.capacity
    if "pods" not in offered:
        status = replace(status, allocatable=offered | {"pods": MOST_PODS})
    return Node(
        api_version="v1",
        kind="Node",
        metadata=replace(template.metadata, name=name, labels=labels),
        spec=template.spec,
        status=status,
    )
