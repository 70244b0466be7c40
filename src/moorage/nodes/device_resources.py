"""DeviceResources: extended resources that devices serve, and the device class of each.

A class serves the resource that it names, and one under its own name. If two classes name the same
resource, the newer one serves it. The result depends on the order of events, as in kube-scheduler.
"""

from moorage.api.devices import DeviceClass
from moorage.api.requests import is_extended
from moorage.api.resource_claims import IMPLICIT_RESOURCE_PREFIX


class DeviceResources:
    """Names of resources, each with the name of its device class."""

    def __init__(self) -> None:
        # The class that serves each resource. Read as a plain dict by filters: it is most often
        # empty, and they look for every pod.
        self.classes: dict[str, DeviceClass] = {}

    def class_of(self, resource: str) -> str | None:
        """The device class that serves a resource, if one does."""
        found = self.classes.get(resource)
        return None if found is None else found.name

    def put(self, old: DeviceClass | None, new: DeviceClass) -> bool:
        """A class came or changed; whether the resources changed."""
        before = self._names()
        explicit = new.spec.extended_resource_name
        if old is not None and old.spec.extended_resource_name not in (None, "", explicit):
            self.classes.pop(old.spec.extended_resource_name, None)
        if explicit:
            owner = self.classes.get(explicit)
            if owner is not None and owner.name != new.name and not _precedes(new, owner):
                return before != self._names()  # Not even under its own name.
            self.classes[explicit] = new
        self.classes[IMPLICIT_RESOURCE_PREFIX + new.name] = new
        return before != self._names()

    def drop(self, old: DeviceClass) -> bool:
        """A class is gone; whether the resources changed."""
        before = self._names()
        # As in kube-scheduler, even if another class serves the resource by now.
        self.classes.pop(old.spec.extended_resource_name or "", None)
        self.classes.pop(IMPLICIT_RESOURCE_PREFIX + old.name, None)
        return before != self._names()

    def _names(self) -> dict[str, str]:
        return {resource: each.name for resource, each in self.classes.items()}


def may_be_served(resource: str) -> bool:
    """Whether a resource is one that a device class could serve."""
    return is_extended(resource) or resource.startswith(IMPLICIT_RESOURCE_PREFIX)


def _precedes(new: DeviceClass, owner: DeviceClass) -> bool:
    """The newest class wins, then the first by name."""
    ours, theirs = (each.metadata.creation_timestamp or "" for each in (new, owner))
    return ours > theirs if ours != theirs else new.name < owner.name
