"""Nodes: the fields that a scheduler reads; and NodePool, Moorage's own kind for many equal nodes.

apiVersion: moorage.dev/v1
kind: NodePool
metadata: {name: general}
spec:
  count: 200
  zones: [eu-1a, eu-1b, eu-1c]
  template:
    metadata: {labels: {disk: ssd}}
    status: {allocatable: {cpu: "8", memory: 32Gi}}
"""

from typing import Annotated

from msgspec import Meta

from moorage.api.meta import Condition, Data, Int64, KubeObject, ObjectMeta
from moorage.api.quantity import Quantity

MAX_POOL_NODES = 1_000_000


class Taint(Data):
    """Keeps pods away that do not tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Data):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class ContainerImage(Data):
    """An image on the node, with all of its names."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeStatus(Data):
    allocatable: dict[str, Quantity] = {}
    capacity: dict[str, Quantity] = {}
    conditions: tuple[Condition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(KubeObject):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class NodePoolTemplate(Data):
    """The nodes of a pool: a node without a name."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class NodePoolSpec(Data, kw_only=True, forbid_unknown_fields=True):
    """The number of nodes, their template, and the zones that they are spread over in turn."""

    count: Annotated[int, Meta(ge=0, le=MAX_POOL_NODES)]
    template: NodePoolTemplate
    zones: tuple[str, ...] = ()


class NodePool(KubeObject, kw_only=True):
    spec: NodePoolSpec
