"""Consumable capacity: what a request uses of a device, if it may use only a part of it."""

from collections.abc import Mapping

from moorage import plugin as mp
from moorage.plugins.dynamic_resources.pools import DeviceModel
from moorage.plugins.dynamic_resources.usage import Amounts

Quantity = mp.quantity.Quantity
Requests = Mapping[str, Quantity]


def consumption(model: DeviceModel, requested: Requests) -> Amounts | None:
    """What a request consumes of each capacity; None if the device cannot serve it.

    Names match literally: a request for `driver/memory` is not served by the capacity `memory`.
    """
    if any(name not in model.capacity for name in requested):
        return None
    found: Amounts = {}
    for name, capacity in model.device.capacity.items():
        amount = mp.quantity.nano(consumed(capacity, requested.get(name)))
        if not _is_allowed(capacity.request_policy, amount):
            return None
        found[name] = amount
    return found


def consumed(capacity: mp.DeviceCapacity, requested: Quantity | None) -> Quantity:
    """What a request consumes of a capacity: rounded up to what its policy allows."""
    policy = capacity.request_policy
    if requested is None:
        default = None if policy is None else policy.default
        return capacity.value if default is None else default
    if policy is None:
        return requested
    nano = mp.quantity.nano
    limits = policy.valid_range
    if limits is not None and limits.min is not None:
        if nano(requested) < nano(limits.min):
            return limits.min
        return requested if limits.step is None else _on_step(requested, limits.min, limits.step)
    larger = (each for each in policy.valid_values if nano(each) >= nano(requested))
    return next(larger, requested)


def _on_step(requested: Quantity, least: Quantity, step: Quantity) -> str:
    """The next multiple of a step above the minimum, in whole units as Kubernetes computes it."""
    first, wide = mp.quantity.value(least), mp.quantity.value(step)
    steps = -(-(mp.quantity.value(requested) - first) // wide) if wide > 0 else 0
    return mp.quantity.binary_form(first + steps * wide)


def _is_allowed(policy: mp.CapacityRequestPolicy | None, amount: int) -> bool:
    if policy is None:
        return True
    nano, whole = mp.quantity.nano, mp.quantity.value_of_nano
    if policy.default is not None and amount == nano(policy.default):
        return True
    limits = policy.valid_range
    if limits is not None:
        if limits.max is not None and amount > nano(limits.max):
            return False
        wide = 0 if limits.step is None else mp.quantity.value(limits.step)
        return wide <= 0 or (whole(amount) - mp.quantity.value(limits.min or 0)) % wide == 0
    return not policy.valid_values or amount in map(nano, policy.valid_values)


def fits(model: DeviceModel, amounts: Amounts, used: Mapping[str, int]) -> bool:
    """Whether a device has so much left."""
    return all(
        used.get(name, 0) + amount <= model.capacity[name] for name, amount in amounts.items()
    )


def plus(used: Amounts | None, amounts: Amounts) -> Amounts:
    """What is used of a device, with what is consumed besides."""
    return {name: (used or {}).get(name, 0) + amount for name, amount in amounts.items()}
