"""Consumable capacity: what a request uses of a device, if it may use only a part of it."""

from collections.abc import Mapping

from moorage import plugin as mp
from moorage.plugins.dynamic_resources.pools import DeviceModel
from moorage.plugins.dynamic_resources.usage import Amounts

NANO = mp.quantity.NANO


def consumption(model: DeviceModel, requested: Mapping[str, int]) -> Amounts | None:
    """What a request consumes of each capacity; None if the device cannot serve it.

    Names match literally: a request for `driver/memory` is not served by the capacity `memory`.
    """
    if any(name not in model.capacity for name in requested):
        return None
    found: Amounts = {}
    for name, each in model.device.capacity.items():
        amount = _consumed(model.capacity[name], each.request_policy, requested.get(name))
        if amount is None:
            return None
        found[name] = amount
    return found


def _consumed(
    capacity: int, policy: mp.CapacityRequestPolicy | None, requested: int | None
) -> int | None:
    """The amount of one capacity; None if its policy does not allow the request."""
    default = None if policy is None else _nano(policy.default)
    if requested is None:
        return capacity if default is None else default
    if policy is None:
        return requested
    amount = _rounded(policy, requested)
    return amount if amount == default or _is_allowed(policy, amount) else None


def _rounded(policy: mp.CapacityRequestPolicy, requested: int) -> int:
    limits = policy.valid_range
    if limits is not None and limits.min is not None:
        least = mp.quantity.nano(limits.min)
        if requested < least:
            return least
        if limits.step is not None:
            return _on_step(requested, least, mp.quantity.nano(limits.step))
        return requested
    if policy.valid_values:
        values = sorted(mp.quantity.nano(value) for value in policy.valid_values)
        return next((value for value in values if value >= requested), requested)
    return requested


def _on_step(requested: int, least: int, step: int) -> int:
    """The next multiple of a step above the minimum, in whole units as Kubernetes computes it."""
    whole = mp.quantity.value_of_nano
    units, first, wide = whole(requested), whole(least), whole(step)
    if wide <= 0 or (units - first) % wide == 0:
        return requested
    return (first + -(-(units - first) // wide) * wide) * NANO


def _is_allowed(policy: mp.CapacityRequestPolicy, amount: int) -> bool:
    limits = policy.valid_range
    if limits is not None:
        most = _nano(limits.max)
        if most is not None and amount > most:
            return False
        if limits.step is not None and limits.min is not None:
            whole = mp.quantity.value_of_nano
            wide = whole(mp.quantity.nano(limits.step))
            above = whole(amount) - whole(mp.quantity.nano(limits.min))
            return wide <= 0 or above % wide == 0
        return True
    if policy.valid_values:
        return amount in [mp.quantity.nano(value) for value in policy.valid_values]
    return True


def _nano(quantity: mp.quantity.Quantity | None) -> int | None:
    return None if quantity is None else mp.quantity.nano(quantity)


def fits(model: DeviceModel, amounts: Amounts, used: Mapping[str, int]) -> bool:
    """Whether a device has so much left."""
    return all(
        used.get(name, 0) + amount <= model.capacity[name] for name, amount in amounts.items()
    )
