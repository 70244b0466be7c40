"""Device classes: which devices belong to a class, and how many there are of each.

A device belongs to every class whose selectors it matches.
"""

from collections import Counter
from collections.abc import Iterable

from moorage.api.devices import Device, DeviceClass, ResourceSlice
from moorage.cel import CelCompileError, CelRuntimeError, DeviceInput, Version, compile_selector


class DeviceCounts:
    """How many devices of each class the slices of a cluster have; unchanged slices are kept."""

    def __init__(self) -> None:
        self._classes: tuple[DeviceClass, ...] = ()
        self._slices: dict[str, tuple[ResourceSlice, Counter[str]]] = {}

    def update(
        self, classes: Iterable[DeviceClass], slices: Iterable[ResourceSlice]
    ) -> dict[str, int]:
        """Count the devices."""
        new = tuple(classes)
        if new != self._classes:
            self._classes, self._slices = new, {}
        before, self._slices = self._slices, {}
        total: Counter[str] = Counter()
        for each in slices:
            known = before.get(each.name)
            counts = known[1] if known is not None and known[0] is each else self._count(each)
            self._slices[each.name] = each, counts
            total.update(counts)
        return dict(total)

    def _count(self, each: ResourceSlice) -> Counter[str]:
        driver = each.spec.driver
        return Counter(
            name for device in each.spec.devices for name in names_of(self._classes, driver, device)
        )


def names_of(classes: Iterable[DeviceClass], driver: str, device: Device) -> list[str]:
    """The classes that a device belongs to; one whose selector fails counts as well."""
    given = _input(driver, device)
    return [each.name for each in classes if _selects(each, given)]


def _selects(class_: DeviceClass, device: DeviceInput) -> bool:
    try:
        return all(
            compile_selector(selector.cel.expression).matches(device)
            for selector in class_.spec.selectors
            if selector.cel is not None
        )
    except (CelCompileError, CelRuntimeError):
        return True


def _input(driver: str, device: Device) -> DeviceInput:
    attributes = {
        name: Version(str(value[1])) if value[0] == "version" else value[1]
        for name, attribute in device.attributes.items()
        if (value := attribute.value) is not None
    }
    capacity = {name: str(each.value) for name, each in device.capacity.items()}
    return DeviceInput(driver, attributes, capacity, bool(device.allow_multiple_allocations))
