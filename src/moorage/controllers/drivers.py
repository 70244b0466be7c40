"""Device drivers that only pretend: the slices of a pool's nodes, and conditions that they meet.

A driver publishes the devices of its node as ResourceSlices, which the node owns. Devices of one
driver on one node form a pool with the node's name. A device with partitions has a counter set of
its own name, from which the device and its partitions consume; counter sets are in slices of their
own.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from msgspec.structs import replace

from moorage.api import defaults
from moorage.api.devices import (
    AllocatedDeviceStatus,
    CELSelector,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClass,
    DeviceClassSpec,
    DeviceCounterConsumption,
    DeviceRequestAllocationResult,
    DeviceSelector,
    ResourceClaim,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from moorage.api.meta import Condition, ObjectMeta, OwnerReference
from moorage.api.node import AttributeValue, Node, PoolDevices
from moorage.api.quantity import Quantity

# Marks the slices of a pool's nodes, whose drivers pretend.
POOL_LABEL = "moorage.dev/pool"
PREPARE_SECONDS = 1.0
# The limits of the API.
MAX_SLICE_DEVICES, MAX_SLICE_DEVICES_WITH_TAINTS, MAX_COUNTER_SETS = 128, 64, 8


T = TypeVar("T")

# Publishing ------------------------------------------------------------------------------------


def slices(node: Node, groups: Iterable[PoolDevices]) -> list[ResourceSlice]:
    """The slices of a node's devices, one or more for each driver."""
    by_driver: dict[str, tuple[list[Device], list[CounterSet]]] = {}
    for group in groups:
        devices, counter_sets = by_driver.setdefault(group.driver, ([], []))
        first = sum(device.name.rpartition("-")[0] == group.name for device in devices)
        for number in range(first, first + group.count):
            name = f"{group.name}-{number}"
            devices += _devices(group, name)
            if group.counters:
                counter_sets.append(CounterSet(name=name, counters=_counters(group.counters)))
    return [
        each
        for driver, (devices, counter_sets) in by_driver.items()
        for each in _slices_of_driver(node, driver, devices, counter_sets)
    ]


def _devices(group: PoolDevices, name: str) -> Iterator[Device]:
    """A device and its partitions."""
    device = Device(
        name=name,
        attributes=_attributes(group.attributes),
        capacity=_capacity(group.capacity),
        consumes_counters=_consumption(name, group.counters),
        taints=group.taints,
        allow_multiple_allocations=group.allow_multiple_allocations or None,
        binding_conditions=group.binding_conditions or None,
        binding_failure_conditions=group.binding_failure_conditions,
    )
    yield device
    for partition in group.partitions:
        for number in range(partition.count):
            yield replace(
                device,
                name=f"{name}-{partition.name}-{number}",
                attributes=device.attributes | _attributes(partition.attributes),
                capacity=_capacity(partition.capacity),
                consumes_counters=_consumption(name, partition.counters),
            )


def _capacity(amounts: Mapping[str, Quantity]) -> dict[str, DeviceCapacity]:
    return {name: DeviceCapacity(value=value) for name, value in amounts.items()}


def _counters(amounts: Mapping[str, Quantity]) -> dict[str, Counter]:
    return {name: Counter(value=value) for name, value in amounts.items()}


def _consumption(
    counter_set: str, amounts: Mapping[str, Quantity]
) -> tuple[DeviceCounterConsumption, ...]:
    if not amounts:
        return ()
    return (DeviceCounterConsumption(counter_set=counter_set, counters=_counters(amounts)),)


def _attributes(values: Mapping[str, AttributeValue]) -> dict[str, DeviceAttribute]:
    return {name: _attribute(value) for name, value in values.items()}


def _attribute(value: AttributeValue) -> DeviceAttribute:
    match value:
        case bool():
            return DeviceAttribute(bool_=value)
        case int():
            return DeviceAttribute(int_=value)
        case str():
            return DeviceAttribute(string=value)
    return value


def _slices_of_driver(
    node: Node, driver: str, devices: list[Device], counter_sets: list[CounterSet]
) -> list[ResourceSlice]:
    is_advanced = any(device.taints or device.consumes_counters for device in devices)
    size = MAX_SLICE_DEVICES_WITH_TAINTS if is_advanced else MAX_SLICE_DEVICES
    spec = ResourceSliceSpec(driver=driver, node_name=node.name)
    parts = [replace(spec, devices=part) for part in _parts(devices, size)]
    parts += [
        replace(spec, shared_counters=part) for part in _parts(counter_sets, MAX_COUNTER_SETS)
    ]
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
            spec=replace(part, pool=pool),
        )
        for number, part in enumerate(parts)
    ]


def _parts(items: list[T], size: int) -> Iterator[tuple[T, ...]]:
    return (tuple(items[at : at + size]) for at in range(0, len(items), size))


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
