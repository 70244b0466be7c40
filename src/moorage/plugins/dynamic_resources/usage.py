"""Usage: which devices of a pool are allocated, and how much of those that are shared."""

from dataclasses import dataclass, field
from typing import NamedTuple

from moorage import plugin as mp
from moorage.plugins.dynamic_resources.pools import Counters, PoolKey, PoolView

Amounts = dict[str, int]


class Allocated(NamedTuple):
    """One allocated device of a claim; `consumed` is None unless it is shared."""

    pool: PoolKey
    device: str
    consumed: Amounts | None


def of_claim(claim: mp.ResourceClaim | None, *, are_shared: bool) -> tuple[Allocated, ...]:
    """The devices that a claim occupies; devices with admin access are not occupied.

    Without `are_shared` a share of a device counts as the device.
    """
    if claim is None or claim.status.allocation is None:
        return ()
    return tuple(
        Allocated(
            (result.driver, result.pool), result.device, _consumed(result) if are_shared else None
        )
        for result in claim.status.allocation.devices.results
        if not result.admin_access
    )


def _consumed(result: mp.DeviceRequestAllocationResult) -> Amounts | None:
    if result.share_id is None:
        return None
    return {name: mp.quantity.nano(each) for name, each in result.consumed_capacity.items()}


@dataclass(slots=True)
class PoolUsage:
    """The allocated devices of one pool, each with the number of its allocations."""

    dedicated: dict[str, int] = field(default_factory=dict)
    shared: dict[str, int] = field(default_factory=dict)
    # How many allocations of shared devices say what they consume, and what that is together.
    known: dict[str, int] = field(default_factory=dict)
    consumed: dict[str, Amounts] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not self.dedicated and not self.shared

    def add(self, each: Allocated, sign: int = 1) -> None:
        """Count an allocation, or with sign -1 take it back."""
        if each.consumed is None:
            _count(self.dedicated, each.device, sign)
            return
        _count(self.shared, each.device, sign)
        if each.consumed:
            _count(self.known, each.device, sign)
            amounts = self.consumed.setdefault(each.device, {})
            for name, amount in each.consumed.items():
                amounts[name] = amounts.get(name, 0) + sign * amount
            if each.device not in self.known:
                del self.consumed[each.device]

    def state(self, pool: PoolView) -> "PoolState":
        """The usage from the view of a node, without names."""
        if self.is_empty:
            return UNUSED
        taken = 0
        consumed = []
        for i, device in enumerate(pool.devices):
            if device.name in self.dedicated:
                taken |= 1 << i
            if device.name in self.consumed:
                consumed.append((i, tuple(sorted(self.consumed[device.name].items()))))
        spent: Counters = {}
        if pool.counters:
            for name in sorted({*self.dedicated, *self.shared}):
                for key, amount in pool.consumption.get(name, {}).items():
                    spent[key] = spent.get(key, 0) + amount
        return PoolState(taken, tuple(consumed), tuple(sorted(spent.items())))


class PoolState(NamedTuple):
    """The usage of a pool by positions of devices: equal for equally used pools of equal nodes."""

    taken: int = 0
    consumed: tuple[tuple[int, tuple[tuple[str, int], ...]], ...] = ()
    spent: tuple[tuple[tuple[str, str], int], ...] = ()


UNUSED = PoolState()


def _count(counts: dict[str, int], name: str, amount: int) -> None:
    counts[name] = counts.get(name, 0) + amount
    if not counts[name]:
        del counts[name]
