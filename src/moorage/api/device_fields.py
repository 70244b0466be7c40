"""Fields of device claims, slices and pools that `validation` checks: quantities and such."""

from collections.abc import Iterable, Iterator, Mapping

from moorage.api.devices import (
    ALL,
    EXACT_COUNT,
    DeviceCapacity,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceSlice,
)
from moorage.api.node import NodePool
from moorage.api.quantity import Quantity

MODES = (EXACT_COUNT, ALL)
OPERATORS = ("Equal", "Exists")
TAINT_EFFECTS = ("NoSchedule", "NoExecute", "None")

DeviceObject = ResourceSlice | ResourceClaim | ResourceClaimTemplate
Requested = ExactDeviceRequest | DeviceSubRequest


def amounts(obj: DeviceObject) -> Iterator[tuple[str, int, Mapping[str, Quantity]]]:
    """All quantities: a path with {} for the index, the index, and quantities by name."""
    if isinstance(obj, ResourceSlice):
        yield from _slice_amounts(obj)
        return
    for path, request in _requests(obj):
        if request.capacity is not None:
            yield f"{path}.capacity.requests", 0, request.capacity.requests
    allocation = obj.status.allocation if isinstance(obj, ResourceClaim) else None
    for i, result in enumerate(allocation.devices.results if allocation is not None else ()):
        path = "status.allocation.devices.results[{}].consumedCapacity"
        yield path, i, result.consumed_capacity


def _slice_amounts(obj: ResourceSlice) -> Iterator[tuple[str, int, Mapping[str, Quantity]]]:
    for i, device in enumerate(obj.spec.devices):
        yield "spec.devices[{}].capacity", i, _capacities(device.capacity)
        for used in device.consumes_counters:
            counters = {name: counter.value for name, counter in used.counters.items()}
            yield "spec.devices[{}].consumesCounters", i, counters
    for i, counter_set in enumerate(obj.spec.shared_counters):
        counters = {name: counter.value for name, counter in counter_set.counters.items()}
        yield "spec.sharedCounters[{}].counters", i, counters


def pool_amounts(pool: NodePool) -> Iterator[tuple[str, int, Mapping[str, Quantity]]]:
    """All quantities of the devices of a node pool."""
    for i, group in enumerate(pool.spec.devices):
        yield "spec.devices[{}].capacity", i, group.capacity
        yield "spec.devices[{}].counters", i, group.counters
        for k, partition in enumerate(group.partitions):
            path = f"spec.devices[{i}].partitions[{{}}]"
            yield f"{path}.capacity", k, partition.capacity
            yield f"{path}.counters", k, partition.counters


def unknown_counter(pool: NodePool) -> tuple[str, str] | None:
    """The first counter of a partition that its device does not have."""
    for i, group in enumerate(pool.spec.devices):
        for k, partition in enumerate(group.partitions):
            for name in partition.counters:
                if name not in group.counters:
                    path = f"spec.devices[{i}].partitions[{k}].counters[{name}]"
                    return path, f"must be one of spec.devices[{i}].counters"
    return None


def _capacities(capacity: Mapping[str, DeviceCapacity]) -> dict[str, Quantity]:
    found: dict[str, Quantity] = {}
    for name, each in capacity.items():
        found[name] = each.value
        policy = each.request_policy
        if policy is None:
            continue
        others = {"default": policy.default}
        others |= {f"validValues[{i}]": value for i, value in enumerate(policy.valid_values)}
        if (limits := policy.valid_range) is not None:
            others |= {"min": limits.min, "max": limits.max, "step": limits.step}
        found |= {f"{name} {key}": value for key, value in others.items() if value is not None}
    return found


def enumerated(obj: DeviceObject) -> Iterable[tuple[str, str, tuple[str, ...]]]:
    """Fields with few allowed values: path, value, allowed values."""
    if isinstance(obj, ResourceSlice):
        for i, device in enumerate(obj.spec.devices):
            for k, taint in enumerate(device.taints):
                yield f"spec.devices[{i}].taints[{k}].effect", taint.effect, TAINT_EFFECTS
        return
    for path, request in _requests(obj):
        yield f"{path}.allocationMode", request.allocation_mode, MODES
        for i, toleration in enumerate(request.tolerations):
            yield f"{path}.tolerations[{i}].operator", toleration.operator, OPERATORS
            yield f"{path}.tolerations[{i}].effect", toleration.effect, TAINT_EFFECTS


def _requests(obj: ResourceClaim | ResourceClaimTemplate) -> Iterator[tuple[str, Requested]]:
    """The requests and subrequests with their paths."""
    spec: ResourceClaimSpec = obj.spec if isinstance(obj, ResourceClaim) else obj.spec.spec
    prefix = "spec.devices" if isinstance(obj, ResourceClaim) else "spec.spec.devices"
    for i, request in enumerate(spec.devices.requests or ()):
        if request.exactly is not None:
            yield f"{prefix}.requests[{i}].exactly", request.exactly
        for k, alternative in enumerate(request.first_available):
            yield f"{prefix}.requests[{i}].firstAvailable[{k}]", alternative
