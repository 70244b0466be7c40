"""DeviceUsage: how many devices each node has and how many are allocated, per driver.

They count as resources named `devices/DRIVER`. Partitions of a device, and the device itself, count
by what they consume of its shared counters, as resources `devices/COUNTER.DRIVER`: otherwise a
device with seven partitions would be eight devices. Devices that do not belong to one node, such
as those of a network, are under the name NETWORK.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from moorage.api import quantity
from moorage.api.devices import Counter as DeviceCounter
from moorage.api.devices import Device, ResourceClaim, ResourceSlice, ResourceSliceSpec

PREFIX = "devices/"
# In the place of a node's name.
NETWORK = ""

DeviceKey = tuple[str, str, str]  # driver, pool, device
Amounts = Counter[str]


class DeviceUsage:
    """Devices by node, kept up to date from slices and claims.

    `count` is called with each change of what is allocated: node, resource and difference.
    """

    def __init__(self, count: Callable[[str, str, int], None]) -> None:
        self._report = count
        self.offered: dict[str, Amounts] = {}
        self.allocated: dict[str, Amounts] = {}
        # The node of each device, and what it uses there.
        self._devices: dict[DeviceKey, tuple[str, Amounts]] = {}
        self._in_slice: dict[str, tuple[DeviceKey, ...]] = {}
        self._offered_by: dict[str, list[tuple[str, Amounts]]] = {}
        self._in_claim: dict[str, tuple[DeviceKey, ...]] = {}
        # How many claims have a device: several may share one.
        self._users: Counter[DeviceKey] = Counter()

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
            self._devices[key] = (_node(spec, device), _used(spec.driver, device))
            if self._users[key]:
                self._allocate(key, 1)
        self._in_slice[new.name] = tuple(keys)
        return changed | {node for node, _ in offered}

    def drop_slice(self, old: ResourceSlice) -> set[str]:
        """Forget the devices of a slice; returns the nodes for which something changed."""
        offered = self._offered_by.pop(old.name, [])
        for node, amounts in offered:
            self._offer(node, amounts, -1)
        for key in self._in_slice.pop(old.name, ()):
            if self._users[key]:
                self._allocate(key, -1)
            del self._devices[key]
        return {node for node, _ in offered}

    def put_claim(self, new: ResourceClaim) -> None:
        """Count the devices of a claim."""
        self.drop_claim(new)
        allocation = new.status.allocation
        if allocation is None:
            return
        keys = tuple(
            (result.driver, result.pool, result.device)
            for result in allocation.devices.results
            if not result.admin_access
        )
        self._in_claim[new.uid] = keys
        for key in keys:
            self._users[key] += 1
            if self._users[key] == 1 and key in self._devices:
                self._allocate(key, 1)

    def drop_claim(self, old: ResourceClaim) -> None:
        """Forget the devices of a claim."""
        for key in self._in_claim.pop(old.uid, ()):
            self._users[key] -= 1
            if not self._users[key] and key in self._devices:
                self._allocate(key, -1)

    def _offer(self, node: str, amounts: Amounts, sign: int) -> None:
        offered = self.offered.setdefault(node, Counter())
        for resource, amount in amounts.items():
            offered[resource] += sign * amount

    def _allocate(self, key: DeviceKey, sign: int) -> None:
        node, amounts = self._devices[key]
        allocated = self.allocated.setdefault(node, Counter())
        for resource, amount in amounts.items():
            allocated[resource] += sign * amount
            self._report(node, resource, sign * amount)


def _offered(spec: ResourceSliceSpec) -> Iterable[tuple[str, Amounts]]:
    """What a slice offers, by node."""
    for counter_set in spec.shared_counters:
        yield spec.node_name or NETWORK, _amounts(spec.driver, counter_set.counters)
    for device in spec.devices:
        if not device.consumes_counters:
            yield _node(spec, device), _used(spec.driver, device)


def _node(spec: ResourceSliceSpec, device: Device) -> str:
    return spec.node_name or device.node_name or NETWORK


def _used(driver: str, device: Device) -> Amounts:
    """What a device uses while it is allocated."""
    if not device.consumes_counters:
        return Counter({PREFIX + driver: 1})
    used: Amounts = Counter()
    for each in device.consumes_counters:
        used += _amounts(driver, each.counters)
    return used


def _amounts(driver: str, counters: Mapping[str, DeviceCounter]) -> Amounts:
    return Counter(
        {f"{PREFIX}{name}.{driver}": quantity.value(each.value) for name, each in counters.items()}
    )
