"""Node pools: their nodes, with the slices and classes of their devices."""

from collections.abc import Container, Iterable

from msgspec.structs import replace

from moorage.api.devices import DeviceClass, ResourceSlice
from moorage.api.meta import KubeObject
from moorage.api.node import Node, NodePool
from moorage.controllers import drivers
from moorage.expansion import node_defaults

ZONE = "topology.kubernetes.io/zone"
POOL = "moorage.dev/pool"


def nodes_of_pools(
    found: Iterable[KubeObject], known: Iterable[KubeObject] = ()
) -> list[KubeObject]:
    """The nodes of all pools among some objects, with their devices; without those that exist."""
    found = list(found)
    everything = [*known, *found]
    names = {obj.name for obj in everything if isinstance(obj, Node)}
    classes = {obj.name for obj in everything if isinstance(obj, DeviceClass)}
    made: list[KubeObject] = []
    for obj in found:
        if isinstance(obj, NodePool):
            made += pool_objects(obj, names)
            new = [each for each in drivers.classes(obj.spec.devices) if each.name not in classes]
            made += new
            classes.update(each.name for each in new)
    return made


def pool_objects(
    pool: NodePool, taken: Container[str] = (), first: int = 0
) -> list[Node | ResourceSlice]:
    """The nodes of a pool, each followed by the slices of its devices."""
    groups = pool.spec.devices
    made: list[Node | ResourceSlice] = []
    for node in pool_nodes(pool, taken, first):
        made += [node, *drivers.slices(node, groups)] if groups else [node]
    return made


def pool_nodes(pool: NodePool, taken: Container[str] = (), first: int = 0) -> list[Node]:
    """The nodes of a pool, `general-0`, `general-1` and so on, without those that exist."""
    names = (f"{pool.name}-{number}" for number in range(first, first + pool.spec.count))
    return [
        _node(pool, number, name) for number, name in enumerate(names, first) if name not in taken
    ]


def _node(pool: NodePool, number: int, name: str) -> Node:
    template, zones = pool.spec.template, pool.spec.zones
    labels = node_defaults.labels(name, {POOL: pool.name, **template.metadata.labels})
    if zones:
        labels[ZONE] = zones[number % len(zones)]
    status = template.status
    offered = status.allocatable or status.capacity
    if node_defaults.PODS not in offered:
        most = {node_defaults.PODS: node_defaults.MAX_PODS}
        status = replace(status, allocatable=offered | most)
    return Node(
        api_version="v1",
        kind="Node",
        metadata=replace(template.metadata, name=name, labels=labels),
        spec=template.spec,
        status=status,
    )
