"""Device drivers that only pretend: the slices of a pool's nodes, and conditions that they meet.

A driver publishes the devices of its node as ResourceSlices, which the node owns. Devices of one
driver on one node form a pool with the node's name.
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from moorage.api import defaults
from moorage.api.devices import (
    AllocatedDeviceStatus,
    CELSelector,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClass,
    DeviceClassSpec,
    DeviceRequestAllocationResult,
    DeviceSelector,
    ResourceClaim,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from moorage.api.meta import Condition, ObjectMeta, OwnerReference
from moorage.api.node import AttributeValue, Node, PoolDevices

# Marks the slices of a pool's nodes, whose drivers pretend.
POOL_LABEL = "moorage.dev/pool"
PREPARE_SECONDS = 1.0
# The limits of the API.
MAX_SLICE_DEVICES, MAX_SLICE_DEVICES_WITH_TAINTS = 128, 64


# Publishing ------------------------------------------------------------------------------------


def slices(node: Node, groups: Iterable[PoolDevices]) -> list[ResourceSlice]:
    """The slices of a node's devices, one or more for each driver."""
    by_driver: dict[str, list[Device]] = {}
    for group in groups:
        devices = by_driver.setdefault(group.driver, [])
        taken = sum(device.name.rpartition("-")[0] == group.name for device in devices)
        devices += _devices(group, first=taken)
    return [
        each
        for driver, devices in by_driver.items()
        for each in _slices_of_driver(node, driver, devices)
    ]


def _devices(group: PoolDevices, first: int) -> Iterator[Device]:
    attributes = {name: _attribute(value) for name, value in group.attributes.items()}
    device = Device(
        attributes=attributes,
        capacity={name: DeviceCapacity(value=value) for name, value in group.capacity.items()},
        taints=group.taints,
        allow_multiple_allocations=group.allow_multiple_allocations or None,
        binding_conditions=group.binding_conditions or None,
        binding_failure_conditions=group.binding_failure_conditions,
    )
    for number in range(first, first + group.count):
        yield replace(device, name=f"{group.name}-{number}")


def _attribute(value: AttributeValue) -> DeviceAttribute:
    match value:
        case bool():
            return DeviceAttribute(bool_=value)
        case int():
            return DeviceAttribute(int_=value)
        case str():
            return DeviceAttribute(string=value)
    return value


def _slices_of_driver(node: Node, driver: str, devices: list[Device]) -> list[ResourceSlice]:
    tainted = any(device.taints for device in devices)
    size = MAX_SLICE_DEVICES_WITH_TAINTS if tainted else MAX_SLICE_DEVICES
    parts = [devices[at : at + size] for at in range(0, len(devices), size)]
    pool = ResourcePool(name=node.name, generation=1, resource_slice_count=len(parts))
    owner = OwnerReference(
        api_version="v1", kind="Node", name=node.name, uid=defaults.identity(node).uid
    )
    return [
        ResourceSlice(
            api_version="resource.k8s.io/v1",
            kind="ResourceSlice",
            metadata=ObjectMeta(
                name=f"{node.name}-{driver}" + (f"-{number}" if number else ""),
                labels={POOL_LABEL: node.labels.get(POOL_LABEL, "")},
                owner_references=(owner,),
            ),
            spec=ResourceSliceSpec(
                driver=driver, pool=pool, node_name=node.name, devices=tuple(part)
            ),
        )
        for number, part in enumerate(parts)
    ]


def classes(groups: Iterable[PoolDevices]) -> list[DeviceClass]:
    """The classes that groups name, each with all devices of the group's driver."""
    drivers = {group.class_: group.driver for group in groups if group.class_}
    return [
        DeviceClass(
            api_version="resource.k8s.io/v1",
            kind="DeviceClass",
            metadata=ObjectMeta(name=name),
            spec=DeviceClassSpec(selectors=(_by_driver(driver),)),
        )
        for name, driver in drivers.items()
    ]


def _by_driver(driver: str) -> DeviceSelector:
    return DeviceSelector(cel=CELSelector(expression=f'device.driver == "{driver}"'))


def is_published_by(each: ResourceSlice, node: str) -> bool:
    """Whether a slice belongs to a node, so that it disappears with it."""
    owners = each.metadata.owner_references
    return any(owner.kind == "Node" and owner.name == node for owner in owners)


# Binding conditions ----------------------------------------------------------------------------


def pending(claim: ResourceClaim) -> tuple[DeviceRequestAllocationResult, ...]:
    """The allocated devices whose binding conditions no driver has reported on."""
    if claim.status.allocation is None:
        return ()
    reported = {(each.driver, each.pool, each.device) for each in claim.status.devices}
    return tuple(
        result
        for result in claim.status.allocation.devices.results
        if result.binding_conditions and (result.driver, result.pool, result.device) not in reported
    )


def prepared(claim: ResourceClaim, at: str, *, fails: bool = False) -> ResourceClaim:
    """The claim after its drivers have met the binding conditions, or failed to."""
    new = tuple(
        AllocatedDeviceStatus(
            driver=result.driver,
            pool=result.pool,
            device=result.device,
            share_id=result.share_id,
            conditions=tuple(
                Condition(type=type_, status="True", reason="Prepared", last_transition_time=at)
                for type_ in (
                    result.binding_failure_conditions[:1] if fails else result.binding_conditions
                )
            ),
        )
        for result in pending(claim)
    )
    return replace(claim, status=replace(claim.status, devices=(*claim.status.devices, *new)))
