"""Constraints of a claim: attributes that its devices must share, or must not.

A constraint follows the search: `add` is called for every device that the search tries and says
whether the device is possible, `remove` when the search takes it back.
"""

from typing import Protocol

from moorage import plugin as mp
from moorage.plugins.dynamic_resources.pools import DeviceModel

AttributeValue = tuple[str, int | bool | str]


class ConstraintCheck(Protocol):
    """What the search asks of a constraint."""

    def add(self, request: str, subrequest: str, model: DeviceModel) -> bool:
        """Whether a device can be added for a request."""

    def remove(self, request: str, subrequest: str) -> None:
        """A device that was added is taken back."""


def made_from(constraint: mp.DeviceConstraint) -> ConstraintCheck | None:
    """The constraint of a claim; None if it has no known attribute."""
    requests = frozenset(constraint.requests)
    if constraint.match_attribute is not None:
        return MatchAttribute(constraint.match_attribute, requests)
    if constraint.distinct_attribute is not None:
        return DistinctAttribute(constraint.distinct_attribute, requests)
    return None


def attribute(model: DeviceModel, name: str) -> AttributeValue | None:
    """The value of `domain/name`; an attribute without a domain has the driver's name as one."""
    attributes = model.device.attributes
    found = attributes.get(name)
    if found is None:
        domain, _, bare = name.partition("/")
        found = attributes.get(bare) if domain == model.driver else None
    return None if found is None else found.value


def _concerns(requests: frozenset[str], request: str, subrequest: str) -> bool:
    if not requests or request in requests:
        return True
    return bool(subrequest) and f"{request}/{subrequest}" in requests


class MatchAttribute:
    """All devices have the same value."""

    def __init__(self, name: str, requests: frozenset[str]) -> None:
        self._name = name
        self._requests = requests
        self._value: AttributeValue | None = None
        self._devices = 0

    def add(self, request: str, subrequest: str, model: DeviceModel) -> bool:
        if not _concerns(self._requests, request, subrequest):
            return True
        value = attribute(model, self._name)
        if value is None or (self._devices and value != self._value):
            return False
        self._value = value
        self._devices += 1
        return True

    def remove(self, request: str, subrequest: str) -> None:
        if _concerns(self._requests, request, subrequest):
            self._devices -= 1


class DistinctAttribute:
    """Devices have different values.

    As in Kubernetes, only the latest value of each request is remembered. So within one request a
    device is compared with the one before it: A, B, A passes.
    """

    def __init__(self, name: str, requests: frozenset[str]) -> None:
        self._name = name
        self._requests = requests
        self._latest: dict[str, AttributeValue] = {}

    def add(self, request: str, subrequest: str, model: DeviceModel) -> bool:
        if not _concerns(self._requests, request, subrequest):
            return True
        value = attribute(model, self._name)
        if value is None or value in self._latest.values():
            return False
        self._latest[request] = value
        return True

    def remove(self, request: str, subrequest: str) -> None:
        if _concerns(self._requests, request, subrequest):
            self._latest.pop(request, None)
