"""DeviceUsage: how many devices each node has and how many are allocated, per driver.

They count as resources named `devices/DRIVER`. Devices that do not belong to one node, such as
those of a network, are not counted.
"""

from collections import Counter
from collections.abc import Callable

from moorage.api.devices import ResourceClaim, ResourceSlice

PREFIX = "devices/"

DeviceKey = tuple[str, str, str]  # driver, pool, device


class DeviceUsage:
    """Devices by node, kept up to date from slices and claims.

    `count` is called with each change of allocated devices: node, resource and difference.
    """

    def __init__(self, count: Callable[[str, str, int], None]) -> None:
        self._report = count
        self.offered: dict[str, Counter[str]] = {}
        self.allocated: dict[str, Counter[str]] = {}
        self._node_of: dict[DeviceKey, str] = {}
        self._in_slice: dict[str, tuple[DeviceKey, ...]] = {}
        self._in_claim: dict[str, tuple[DeviceKey, ...]] = {}
        # How many claims have a device: several may share one.
        self._users: Counter[DeviceKey] = Counter()

    def put_slice(self, new: ResourceSlice) -> str:
        """Count the devices of a slice; returns the node that they belong to."""
        self.drop_slice(new)
        node, spec = new.spec.node_name, new.spec
        if not node:
            return ""
        keys = tuple((spec.driver, spec.pool.name, device.name) for device in spec.devices)
        self._in_slice[new.name] = keys
        for key in keys:
            self._node_of[key] = node
            self._offer(key, 1)
            if self._users[key]:
                self._allocate(key, 1)
        return node

    def drop_slice(self, old: ResourceSlice) -> str:
        """Forget the devices of a slice; returns the node that they belonged to."""
        for key in self._in_slice.pop(old.name, ()):
            self._offer(key, -1)
            if self._users[key]:
                self._allocate(key, -1)
            del self._node_of[key]
        return old.spec.node_name or ""

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
            if self._users[key] == 1 and key in self._node_of:
                self._allocate(key, 1)

    def drop_claim(self, old: ResourceClaim) -> None:
        """Forget the devices of a claim."""
        for key in self._in_claim.pop(old.uid, ()):
            self._users[key] -= 1
            if not self._users[key] and key in self._node_of:
                self._allocate(key, -1)

    def _offer(self, key: DeviceKey, sign: int) -> None:
        self.offered.setdefault(self._node_of[key], Counter())[PREFIX + key[0]] += sign

    def _allocate(self, key: DeviceKey, sign: int) -> None:
        node, resource = self._node_of[key], PREFIX + key[0]
        self.allocated.setdefault(node, Counter())[resource] += sign
        self._report(node, resource, sign)
