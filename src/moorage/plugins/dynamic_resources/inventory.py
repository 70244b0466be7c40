"""Inventory: the devices of a node in the order of the search, and which of them are in use.

Devices are numbered over all pools, and sets of them are integers with a bit per device. So the
result of a search says nothing about names, and holds for every node with an equal inventory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from moorage.plugins.dynamic_resources.pools import INVALID, Counters, DeviceView, PoolView
from moorage.plugins.dynamic_resources.usage import Amounts, PoolState


class NodeShape:
    """The devices of a node without their usage; nodes that differ in names only share one."""

    def __init__(self, pools: Sequence[PoolView]) -> None:
        self.pools = tuple(pools)
        self.devices: tuple[DeviceView, ...] = tuple(d for pool in pools for d in pool.devices)
        sizes = [len(pool.devices) for pool in pools]
        self.offsets = [0, *accumulate(sizes)][: len(sizes)]
        self.pool_of = [i for i, size in enumerate(sizes) for _ in range(size)]
        # Devices of pools from which something can be allocated.
        self.usable = sum(
            ((1 << size) - 1) << offset
            for pool, size, offset in zip(pools, sizes, self.offsets, strict=True)
            if not pool.problem
        )
        self.here = sum(1 << i for i, device in enumerate(self.devices) if device.is_here)
        self.shared = sum(1 << i for i, device in enumerate(self.devices) if device.model.is_shared)
        self.has_invalid_pool = any(pool.problem == INVALID for pool in pools)


@dataclass(slots=True)
class Inventory:
    """A node's devices and their usage, as the search reads them."""

    shape: NodeShape
    # Devices that a claim has for itself.
    taken: int
    # What is consumed of shared devices.
    consumed: dict[int, Amounts]
    # What is left of each pool's counters; less than nothing if they are overdrawn.
    left: list[Counters]

    @classmethod
    def of(cls, shape: NodeShape, states: Sequence[PoolState]) -> "Inventory":
        """The inventory of a node, from the usage of each of its pools."""
        taken = 0
        consumed: dict[int, Amounts] = {}
        left = []
        for pool, offset, state in zip(shape.pools, shape.offsets, states, strict=True):
            taken |= state.taken << offset
            consumed.update((offset + i, dict(amounts)) for i, amounts in state.consumed)
            spent = dict(state.spent)
            left.append({key: total - spent.get(key, 0) for key, total in pool.counters.items()})
        return cls(shape, taken, consumed, left)
