"""Binding conditions: devices that are ready only some time after their allocation.

A fabric attaches a device to the node after the scheduler has allocated it. Until its driver
reports the conditions that the device names, the pod is not bound.
"""

from typing import NamedTuple

from moorage import plugin as mp

Result = mp.DeviceRequestAllocationResult


class Pending(NamedTuple):
    """The first device of a claim that is not ready; `failed` is why it never will be."""

    failed: mp.Condition | None = None


def pending(claim: mp.ResourceClaim) -> Pending | None:
    """What a claim waits for; None if all its devices are ready."""
    for result in _with_conditions(claim):
        conditions = _conditions(claim, result)
        if conditions is None:
            return Pending()
        for condition in conditions:
            if condition.type in result.binding_failure_conditions and condition.status == "True":
                return Pending(condition)
        ready = {each.type for each in conditions if each.status == "True"}
        if not ready.issuperset(result.binding_conditions):
            return Pending()
    return None


def have_failed(claim: mp.ResourceClaim, timeout_seconds: float, now: float) -> bool:
    """Whether devices of a claim will not become ready, or not in time."""
    waits = pending(claim)
    if waits is None:
        return False
    return waits.failed is not None or _is_late(claim, timeout_seconds, now)


def _is_late(claim: mp.ResourceClaim, timeout_seconds: float, now: float) -> bool:
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    began = mp.timestamps.seconds(allocation.allocation_timestamp, now)
    return began is not None and began + timeout_seconds < now


def has_conditions(claim: mp.ResourceClaim) -> bool:
    """Whether any device of a claim has binding conditions."""
    allocation = claim.status.allocation
    if allocation is not None:
        for each in allocation.devices.results:
            if each.binding_conditions:
                return True
    return False


def _with_conditions(claim: mp.ResourceClaim) -> list[Result]:
    allocation = claim.status.allocation
    if allocation is None:
        return []
    return [each for each in allocation.devices.results if each.binding_conditions]


def _conditions(claim: mp.ResourceClaim, result: Result) -> tuple[mp.Condition, ...] | None:
    """What the driver reports about a device; None if nothing."""
    wanted = (result.driver, result.pool, result.device)
    for each in claim.status.devices:
        if (each.driver, each.pool, each.device) == wanted:
            return each.conditions
    return None
