"""Nodes, as far as a scheduler reads them."""

from moorage.api.meta import Condition, Data, Int64, KubeObject
from moorage.api.quantity import Quantity


class Taint(Data):
    """What keeps pods away that do not tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Data):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class ContainerImage(Data):
    """An image that the node holds, under all of its names."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeStatus(Data):
    allocatable: dict[str, Quantity] = {}
    capacity: dict[str, Quantity] = {}
    conditions: tuple[Condition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(KubeObject):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
