"""Lower bounds from devices: how many devices of each class pods still need, and nodes have.

A class counts as a resource `devices/CLASS`. What the bound ignores (selectors of requests,
constraints, taints, alternatives) can only make it too low.
"""

from collections import Counter
from collections.abc import Iterable

from moorage.api.devices import (
    ALL,
    Device,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
)
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.controllers import claims
from moorage.nodes import device_classes

PREFIX = "devices/"


class DeviceBounds:
    """Counts devices of the classes of a cluster."""

    def __init__(self, objects: Iterable[KubeObject]) -> None:
        objects = list(objects)
        self._classes = [obj for obj in objects if isinstance(obj, DeviceClass)]
        self._claims = {obj.key: obj for obj in objects if isinstance(obj, ResourceClaim)}
        self._taken = {
            (result.driver, result.pool, result.device)
            for claim in self._claims.values()
            if claim.status.allocation is not None
            for result in claim.status.allocation.devices.results
            if not result.admin_access
        }

    def requested(self, pods: Iterable[Pod]) -> Counter[str]:
        """The devices that the claims of pods need and do not have; a shared claim counts once."""
        keys = {f"{pod.namespace}/{name}" for pod in pods for name in claims.names(pod)}
        total: Counter[str] = Counter()
        for claim in (self._claims[key] for key in sorted(keys) if key in self._claims):
            if claim.status.allocation is None:
                total += _requests(claim)
        return total

    def free(self, slices: Iterable[ResourceSlice]) -> Counter[str]:
        """The devices of each class that are not allocated, or may be shared by more claims."""
        total: Counter[str] = Counter()
        for each in slices:
            spec = each.spec
            for device in spec.devices:
                key = (spec.driver, spec.pool.name, device.name)
                # How much of a shared device is left, the bound ignores as well.
                if device.allow_multiple_allocations or key not in self._taken:
                    total.update(self._classes_of(spec.driver, device))
        return total

    def _classes_of(self, driver: str, device: Device) -> dict[str, int]:
        # Any number of claims may share a device.
        count = 10**6 if device.allow_multiple_allocations else 1
        # A class whose selector fails counts: the bound must not rely on it.
        names = device_classes.names_of(self._classes, driver, device)
        return {PREFIX + name: count for name in names}


def _requests(claim: ResourceClaim) -> Counter[str]:
    total: Counter[str] = Counter()
    for request in claim.spec.devices.requests or ():
        exactly = request.exactly
        if exactly is not None and not exactly.admin_access and exactly.allocation_mode != ALL:
            total[PREFIX + exactly.device_class_name] += exactly.count
    return total
