"""DeviceUsage: how many devices each node has and how many are allocated, per driver.

They count as resources named `devices/DRIVER`. Partitions of a device, and the device itself, count
by what they consume of its shared counters, as resources `devices/COUNTER.DRIVER`: otherwise a
device with seven partitions would be eight devices. Devices that several claims can share count by
their capacity, as `devices/CAPACITY.DRIVER`: one with a single small share is hardly in use.
Devices that do not belong to one node, such as those of a network, are under the name NETWORK.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from moorage.api import quantity
from moorage.api.devices import Counter as DeviceCounter
from moorage.api.devices import Device, ResourceClaim, ResourceSlice, ResourceSliceSpec

PREFIX = "devices/"
# In the place of a node's name.
NETWORK = ""

DeviceKey = tuple[str, str, str]  # driver, pool, device
Amounts = Counter[str]


class Known(NamedTuple):
    """A device of a slice: its node, what all of it is, and whether shares count by themselves."""

    node: str
    amounts: Amounts
    by_capacity: bool


@dataclass(slots=True)
class Uses:
    """How many claims use all of a device or a share of it, and what the shares consume."""

    whole: int = 0
    shares: int = 0
    consumed: Amounts = field(default_factory=Counter)

    def add(self, share: Amounts | None, sign: int) -> None:
        """Count a use; `share` is None for all of the device."""
        if share is None:
            self.whole += sign
            return
        self.shares += sign
        for name, amount in share.items():
            self.consumed[name] += sign * amount

    def of(self, device: Known) -> Amounts:
        """What is used of a device."""
        if self.whole or (self.shares and not device.by_capacity):
            return device.amounts
        return self.consumed if self.shares else Counter()


class DeviceUsage:
    """Devices by node, kept up to date from slices and claims.

    `count` is called with each change of what is allocated: node, resource and difference.
    """

    def __init__(self, count: Callable[[str, str, int], None]) -> None:
        self._report = count
        self.offered: dict[str, Amounts] = {}
        self.allocated: dict[str, Amounts] = {}
        self._devices: dict[DeviceKey, Known] = {}
        self._in_slice: dict[str, tuple[DeviceKey, ...]] = {}
        self._offered_by: dict[str, list[tuple[str, Amounts]]] = {}
        self._in_claim: dict[str, list[tuple[DeviceKey, Amounts | None]]] = {}
        self._uses: dict[DeviceKey, Uses] = {}

    def with_offered(self, node: str, amounts: dict[str, int]) -> dict[str, int]:
        """What a node offers, together with its devices."""
        devices = self.offered.get(node)
        return {**amounts, **devices} if devices else amounts

    def put_slice(self, new: ResourceSlice) -> set[str]:
        """Count the devices of a slice; returns the nodes for which something changed."""
        changed, spec = self.drop_slice(new), new.spec
        offered = self._offered_by[new.name] = list(_offered(spec))
        for node, amounts in offered:
            self._offer(node, amounts, 1)
        keys = []
        for device in spec.devices:
            key = (spec.driver, spec.pool.name, device.name)
            keys.append(key)
            self._devices[key] = Known(
                _node(spec, device), _amounts_of(spec.driver, device), _by_capacity(device)
            )
            self._allocate(key, 1)
        self._in_slice[new.name] = tuple(keys)
        return changed | {node for node, _ in offered}

    def drop_slice(self, old: ResourceSlice) -> set[str]:
        """Forget the devices of a slice; returns the nodes for which something changed."""
        offered = self._offered_by.pop(old.name, [])
        for node, amounts in offered:
            self._offer(node, amounts, -1)
        for key in self._in_slice.pop(old.name, ()):
            self._allocate(key, -1)
            del self._devices[key]
        return {node for node, _ in offered}

    def put_claim(self, new: ResourceClaim) -> None:
        """Count the devices of a claim."""
        self.drop_claim(new)
        allocation = new.status.allocation
        if allocation is None:
            return
        used = self._in_claim[new.uid] = []
        for result in allocation.devices.results:
            if result.admin_access:
                continue
            share: Amounts | None = None
            if result.share_id is not None:
                share = _named(result.driver, result.consumed_capacity)
            used.append(((result.driver, result.pool, result.device), share))
        self._count(used, 1)

    def drop_claim(self, old: ResourceClaim) -> None:
        """Forget the devices of a claim."""
        self._count(self._in_claim.pop(old.uid, []), -1)

    def _count(self, used: list[tuple[DeviceKey, Amounts | None]], sign: int) -> None:
        for key, share in used:
            self._allocate(key, -1)
            self._uses.setdefault(key, Uses()).add(share, sign)
            self._allocate(key, 1)

    def _offer(self, node: str, amounts: Amounts, sign: int) -> None:
        offered = self.offered.setdefault(node, Counter())
        for resource, amount in amounts.items():
            offered[resource] += sign * amount

    def _allocate(self, key: DeviceKey, sign: int) -> None:
        """Add what is used of a device now, if it is known, or take it back."""
        uses, device = self._uses.get(key), self._devices.get(key)
        if uses is None or device is None:
            return
        allocated = self.allocated.setdefault(device.node, Counter())
        for resource, amount in uses.of(device).items():
            allocated[resource] += sign * amount
            self._report(device.node, resource, sign * amount)


def _offered(spec: ResourceSliceSpec) -> Iterable[tuple[str, Amounts]]:
    """What a slice offers, by node."""
    for counter_set in spec.shared_counters:
        yield spec.node_name or NETWORK, _counted(spec.driver, counter_set.counters)
    for device in spec.devices:
        if not device.consumes_counters:
            yield _node(spec, device), _amounts_of(spec.driver, device)


def _node(spec: ResourceSliceSpec, device: Device) -> str:
    return spec.node_name or device.node_name or NETWORK


def _by_capacity(device: Device) -> bool:
    shares = device.allow_multiple_allocations and device.capacity
    return bool(shares) and not device.consumes_counters


def _amounts_of(driver: str, device: Device) -> Amounts:
    """What a device uses while all of it is allocated."""
    if _by_capacity(device):
        return _named(driver, {name: each.value for name, each in device.capacity.items()})
    if not device.consumes_counters:
        return Counter({PREFIX + driver: 1})
    used: Amounts = Counter()
    for each in device.consumes_counters:
        used += _counted(driver, each.counters)
    return used


def _counted(driver: str, counters: Mapping[str, DeviceCounter]) -> Amounts:
    return _named(driver, {name: each.value for name, each in counters.items()})


def _named(driver: str, amounts: Mapping[str, quantity.Quantity]) -> Amounts:
    """The resources of a driver: those of its domain are named without it."""
    named: Amounts = Counter()
    for name, amount in amounts.items():
        named[f"{PREFIX}{name.removeprefix(f'{driver}/')}.{driver}"] += quantity.value(amount)
    return named
