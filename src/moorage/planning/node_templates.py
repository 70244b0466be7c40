"""Node templates: nodes that could be added, created on demand with their DaemonSet pods."""

from collections import Counter
from collections.abc import Iterable
from functools import cached_property

from msgspec.structs import replace

from moorage.api.devices import DeviceClass
from moorage.api.meta import KubeObject
from moorage.api.node import Node, NodePool, NodePoolSpec, NodePoolTemplate
from moorage.api.pod import Pod
from moorage.controllers import drivers
from moorage.errors import InputError
from moorage.expansion.node_defaults import HOST_NAME
from moorage.expansion.pools import POOL, pool_nodes
from moorage.planning import bounds
from moorage.planning.device_bounds import DeviceBounds
from moorage.planning.input_cluster import InputCluster


class NewNodeTemplate:
    """Nodes of one kind, in any number."""

    def __init__(self, pool: NodePool, cluster: InputCluster) -> None:
        self.name = pool.name
        self._cluster = cluster
        self._pool = _renamed(pool, {node.name for node in cluster.nodes})
        self._nodes: list[Node] = []
        self._daemons: list[list[Pod]] = []

    def nodes(self, count: int) -> list[Node]:
        """The first so many nodes."""
        missing = count - len(self._nodes)
        if missing > 0:
            spec = replace(self._pool.spec, count=missing)
            made = pool_nodes(replace(self._pool, spec=spec), first=len(self._nodes))
            new = [node for node in self._cluster.complete(made) if isinstance(node, Node)]
            by_node: dict[str, list[Pod]] = {}
            for pod in self._cluster.daemons(new):
                by_node.setdefault(pod.node_name, []).append(pod)
            self._nodes += new
            self._daemons += [by_node.get(node.name, []) for node in new]
        return self._nodes[:count]

    def objects(self, count: int) -> list[KubeObject]:
        """The first so many nodes, with their devices and their DaemonSet pods."""
        nodes = self.nodes(count)
        groups = self._pool.spec.devices
        known = {obj.name for obj in self._cluster.others if isinstance(obj, DeviceClass)}
        return [
            *(each for each in drivers.classes(groups) if each.name not in known),
            *nodes,
            *(each for node in nodes for each in drivers.slices(node, groups)),
            *(pod for daemons in self._daemons[:count] for pod in daemons),
        ]

    @property
    def sample_size(self) -> int:
        """The number of nodes that covers each zone once."""
        return max(1, len(self._pool.spec.zones))

    @cached_property
    def room(self) -> Counter[str]:
        """The most that one node has for pods other than its DaemonSet pods."""
        most: Counter[str] = Counter()
        groups = self._pool.spec.devices
        devices = DeviceBounds([*self._cluster.others, *drivers.classes(groups)])
        for node, daemons in zip(self.nodes(self.sample_size), self._daemons, strict=False):
            most |= bounds.free([node], daemons)
            most |= devices.free(drivers.slices(node, groups))
        return most


def read(objects: Iterable[KubeObject], cluster: InputCluster) -> list[NewNodeTemplate]:
    """Templates from nodes and node pools; the counts of pools are ignored."""
    pools = [_pool(obj) for obj in objects if isinstance(obj, Node | NodePool)]
    if not pools:
        raise InputError("no template: a Node or a NodePool is expected")
    for pool in pools:
        status = pool.spec.template.status
        if not (status.allocatable or status.capacity):
            raise InputError(
                f"template {pool.name}, status.allocatable: is missing, so nothing fits there"
            )
    return [NewNodeTemplate(pool, cluster) for pool in pools]


def _pool(obj: Node | NodePool) -> NodePool:
    if isinstance(obj, NodePool):
        return obj
    labels = {k: v for k, v in obj.labels.items() if k != HOST_NAME}
    template = NodePoolTemplate(
        metadata=replace(type(obj.metadata)(), labels=labels), spec=obj.spec, status=obj.status
    )
    meta = replace(type(obj.metadata)(), name=obj.name)
    return NodePool(metadata=meta, spec=NodePoolSpec(count=0, template=template))


def _renamed(pool: NodePool, taken: set[str]) -> NodePool:
    """The pool under a name that no existing node's name begins with."""
    template = pool.spec.template
    labels = {POOL: pool.name} | template.metadata.labels
    template = replace(template, metadata=replace(template.metadata, labels=labels))
    name = f"{pool.name}-new"
    while any(node.startswith(f"{name}-") for node in taken):
        name += "-new"
    meta = replace(pool.metadata, name=name)
    return replace(pool, metadata=meta, spec=replace(pool.spec, template=template))
