"""Device claims, their templates, device classes and slices (`resource.k8s.io/v1`)."""

from typing import Any

from msgspec import field

from moorage.api.meta import Condition, Data, Int64, KubeObject, NodeSelector, ObjectMeta
from moorage.api.quantity import Quantity

EXACT_COUNT = "ExactCount"
ALL = "All"
# The limits of the API: devices in one claim, and pods that may share it.
MAX_DEVICES = 32
MAX_RESERVED_FOR = 256
MAX_SUBREQUESTS = 8


class CELSelector(Data):
    """An expression that is true for the devices that it selects."""

    expression: str = ""


class DeviceSelector(Data):
    cel: CELSelector | None = None


class DeviceToleration(Data):
    """Device taints that a request tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class CapacityRequirements(Data):
    """The part of a device's capacity that a request needs, by capacity name."""

    requests: dict[str, Quantity] = {}


class DeviceSubRequest(Data):
    """One alternative of a request with `firstAvailable`."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class ExactDeviceRequest(Data):
    """Devices of one class: a number of them, or all."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(Data):
    """A request of a claim: exactly one kind of device, or the first available of several."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Data):
    """What the devices of several requests must have in common, or must not."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class OpaqueDeviceConfiguration(Data):
    """Parameters for a driver, which Kubernetes does not read."""

    driver: str = ""
    parameters: dict[str, Any] = {}


class DeviceClassConfiguration(Data):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaimConfiguration(Data):
    """Configuration for all requests of a claim, or for some."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Data):
    """The devices that a claim needs; `requests` is None in a claim that has no such field."""

    requests: tuple[DeviceRequest, ...] | None = None
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Data):
    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(Data):
    """A device that was allocated for a request."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = field(name="shareID", default=None)
    consumed_capacity: dict[str, Quantity] = {}


class DeviceAllocationConfiguration(Data):
    """Configuration that applies to allocated devices: from their class, or from the claim."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Data):
    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(Data):
    """The devices of a claim, and the nodes where they are; None: everywhere."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(Data):
    """A user of a claim, usually a pod."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Data):
    """What a driver reports about an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = field(name="shareID", default=None)
    conditions: tuple[Condition, ...] = ()


class ResourceClaimStatus(Data):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(KubeObject):
    """A claim for devices."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(Data):
    """Metadata and spec of the claims that are created from a template."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(KubeObject):
    """What the claims look like that a controller creates for pods, one per pod."""

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceClassSpec(Data):
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(KubeObject):
    """A kind of device that requests can name."""

    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceAttribute(Data):
    """One value of a device; exactly one field is set."""

    int_: Int64 | None = field(name="int", default=None)
    bool_: bool | None = field(name="bool", default=None)
    string: str | None = None
    version: str | None = None

    @property
    def value(self) -> tuple[str, int | bool | str] | None:
        """Type and value; None if no known field is set."""
        for kind, value in (
            ("int", self.int_),
            ("bool", self.bool_),
            ("string", self.string),
            ("version", self.version),
        ):
            if value is not None:
                return kind, value
        return None


class CapacityRequestPolicyRange(Data):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Data):
    """Which parts of a capacity may be requested."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Data):
    value: Quantity = 0
    request_policy: CapacityRequestPolicy | None = None


class DeviceTaint(Data):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class Counter(Data):
    value: Quantity = 0


class CounterSet(Data):
    """Amounts that the devices of a pool share."""

    name: str = ""
    counters: dict[str, Counter] = {}


class DeviceCounterConsumption(Data):
    """What a device uses of a counter set while it is allocated."""

    counter_set: str = ""
    counters: dict[str, Counter] = {}


class Device(Data):
    """One device of a slice."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    # None and empty differ: a pool with any device that has this field comes after the others.
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None


class ResourcePool(Data):
    """The pool of a slice: its newest generation consists of so many slices."""

    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(Data):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(KubeObject):
    """Devices that a driver publishes for a node, some nodes, or all."""

    spec: ResourceSliceSpec = ResourceSliceSpec()
