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
  devices:
    - {driver: gpu.example.com, class: gpu, count: 8, attributes: {model: a100}}
"""

from typing import Annotated

from msgspec import Meta, field

from moorage.api.devices import DeviceAttribute, DeviceTaint
from moorage.api.meta import Condition, Data, Int64, KubeObject, ObjectMeta
from moorage.api.quantity import Quantity

MAX_POOL_NODES = 1_000_000
MAX_NODE_DEVICES = 10_000


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


AttributeValue = str | int | bool | DeviceAttribute


class DevicePartition(Data, kw_only=True, forbid_unknown_fields=True):
    """Equal parts of a device, which can be allocated instead of the whole."""

    name: str
    count: Annotated[int, Meta(ge=1, le=MAX_NODE_DEVICES)] = 1
    # What one part uses of the counters of the device.
    counters: dict[str, Quantity]
    # In addition to the attributes of the device.
    attributes: dict[str, AttributeValue] = {}
    capacity: dict[str, Quantity] = {}


class PoolDevices(Data, kw_only=True, forbid_unknown_fields=True):
    """Equal devices on every node of a pool, as the driver on that node publishes them."""

    driver: str
    count: Annotated[int, Meta(ge=1, le=MAX_NODE_DEVICES)] = 1
    # The devices are called NAME-0, NAME-1 and so on.
    name: str = "device"
    # A DeviceClass of all devices of the driver, which is created if there is none of that name.
    class_: str = field(name="class", default="")
    # Plain values, or as in a ResourceSlice: {version: 1.2.3}.
    attributes: dict[str, AttributeValue] = {}
    capacity: dict[str, Quantity] = {}
    taints: tuple[DeviceTaint, ...] = ()
    # Whether several claims may share a device, each with a part of its capacity.
    allow_multiple_allocations: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    # The amounts of each device that its partitions share; the whole device uses all of them.
    counters: dict[str, Quantity] = {}
    # The parts are called NAME-0-PARTITION-0 and so on.
    partitions: tuple[DevicePartition, ...] = ()


class NodePoolSpec(Data, kw_only=True, forbid_unknown_fields=True):
    """The number of nodes, their template and devices, and the zones that they alternate over."""

    count: Annotated[int, Meta(ge=0, le=MAX_POOL_NODES)]
    template: NodePoolTemplate
    zones: tuple[str, ...] = ()
    devices: tuple[PoolDevices, ...] = ()


class NodePool(KubeObject, kw_only=True):
    spec: NodePoolSpec
