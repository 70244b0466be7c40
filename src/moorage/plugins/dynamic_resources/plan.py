"""AllocationPlan: the requests of claims, compiled once for all claims with an equal spec.

A plan names no claim: the claims of a template differ in their names only. What depends on a device
alone (selectors, tolerations, capacity) is computed once per device model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from moorage import plugin as mp
from moorage.plugins.dynamic_resources import capacity, constraints
from moorage.plugins.dynamic_resources.inventory import NodeShape
from moorage.plugins.dynamic_resources.pools import DeviceModel, PoolView
from moorage.plugins.dynamic_resources.usage import Amounts

BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")

Requested = mp.ExactDeviceRequest | mp.DeviceSubRequest
Classes = Mapping[str, mp.DeviceClass]


class Failure(NamedTuple):
    """An error of an allocation; what differs between equal claims and nodes is filled in later."""

    text: str
    # The positions of the claim, the pool and the device that the text names, if any.
    claim: int = -1
    pool: int = -1
    device: int = -1

    def render(self, claims: Sequence[str], pools: Sequence[PoolView]) -> str:
        """The text with names: of claims as `namespace/name`, and of a node's pools."""
        prefix = f"claim {claims[self.claim]}" if self.claim >= 0 else ""
        pool = device = ""
        if self.pool >= 0:
            pool = "/".join(pools[self.pool].key)
        if self.device >= 0:
            where, view = [(each.key, device) for each in pools for device in each.devices][
                self.device
            ]
            device = "/".join((*where, view.name))
        return prefix + self.text.replace("{pool}", pool).replace("{device}", device)


class AllocationFailed(Exception):
    """The allocation for a node ended with an error."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


class Selectable(NamedTuple):
    """The devices of a node shape for a request."""

    # Devices that all selectors accept, and those with an error.
    accepted: int
    failed: Mapping[int, Failure]
    # Devices whose taints are tolerated, and what the request consumes of each device.
    tolerated: int
    consumption: Sequence[Amounts | None]
    # Devices with enough capacity if nothing else uses them.
    large_enough: int


class Features(NamedTuple):
    """Feature gates that are on by default, and may be turned off."""

    counters: bool = True
    taints: bool = True
    capacity: bool = True
    binding_conditions: bool = True

    @classmethod
    def of(cls, cluster: mp.Cluster) -> "Features":
        """The features of a cluster's scheduler."""
        gates = mp.feature_gates
        has = cluster.has_feature
        return cls(
            has(gates.PARTITIONABLE_DEVICES),
            has(gates.DEVICE_TAINTS),
            has(gates.CONSUMABLE_CAPACITY),
            has(gates.BINDING_CONDITIONS) and has(gates.DEVICE_STATUS),
        )

    def excludes(self, model: DeviceModel) -> bool:
        """Whether a device needs a feature that is turned off."""
        return bool(model.device.binding_conditions) and not self.binding_conditions

    def missing_for(self, request: mp.DeviceRequest) -> str:
        """Why a request cannot be allocated without a feature; empty if it can."""
        if self.capacity:
            return ""
        text = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
        if request.exactly is not None and request.exactly.capacity is not None:
            return f", request {request.name}: {text}"
        for each in request.first_available:
            if each.capacity is not None:
                return f", subrequest {each.name}: {text}"
        return ""


ALL_FEATURES = Features()


@dataclass(slots=True, eq=False)
class RequestPlan:
    """A request, or an alternative of one."""

    claim: int
    request: str
    subrequest: str
    # How error texts call it.
    label: str
    index: int
    spec: Requested
    device_class: mp.DeviceClass | None
    admin_access: bool
    capacity: capacity.Requests
    features: Features
    _verdicts: dict[DeviceModel, bool | Failure] = field(default_factory=dict)
    _consumed: dict[DeviceModel, dict[str, mp.quantity.Quantity]] = field(default_factory=dict)
    _selectable: dict[NodeShape, Selectable] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name in results."""
        return f"{self.request}/{self.subrequest}" if self.subrequest else self.request

    @property
    def takes_all(self) -> bool:
        return self.spec.allocation_mode == mp.ALL_DEVICES

    def consumed(self, model: DeviceModel) -> dict[str, mp.quantity.Quantity]:
        """What the request consumes of a shared device, as allocations show it."""
        found = self._consumed.get(model)
        if found is None:
            found = self._consumed[model] = {
                name: mp.quantity.canonical(capacity.consumed(each, self.capacity.get(name)))
                for name, each in model.device.capacity.items()
            }
        return found

    def selectable(self, shape: NodeShape) -> Selectable:
        """Which devices of a node shape the request can use."""
        found = self._selectable.get(shape)
        if found is None:
            found = self._selectable[shape] = self._select(shape)
        return found

    def _select(self, shape: NodeShape) -> Selectable:
        accepted = tolerated = large_enough = 0
        failed: dict[int, Failure] = {}
        consumption = []
        for i, device in enumerate(shape.devices):
            model, bit = device.model, 1 << i
            verdict = self._verdict(model)
            if isinstance(verdict, Failure):
                failed[i] = verdict
            elif verdict:
                accepted |= bit
            if not self.features.taints or tolerates(self.spec, model):
                tolerated |= bit
            amounts = capacity.consumption(model, self.capacity) if self.features.capacity else {}
            consumption.append(amounts)
            if amounts is not None and capacity.fits(model, amounts, {}):
                large_enough |= bit
        return Selectable(accepted & shape.here, failed, tolerated, consumption, large_enough)

    def _verdict(self, model: DeviceModel) -> bool | Failure:
        verdict = self._verdicts.get(model)
        if verdict is None and self.features.excludes(model):
            verdict = self._verdicts[model] = False
        if verdict is None:
            verdict = self._verdicts[model] = self._evaluate(model)
        return verdict

    def _evaluate(self, model: DeviceModel) -> bool | Failure:
        """Whether all selectors accept a device, those of the class first."""
        device: mp.cel.DeviceInput | None = None
        for owner, claim, selectors in (
            (self.device_class, -1, self.device_class.spec.selectors if self.device_class else ()),
            (None, self.claim, self.spec.selectors),
        ):
            for i, selector in enumerate(selectors):
                place = f"class {owner.name}" if owner is not None else ""
                prefix = f"{place}: selector #{i}: "
                if selector.cel is None:
                    text = "CEL expression empty (unsupported selector type?)"
                    return Failure(prefix + text, claim)
                try:
                    compiled = mp.cel.compile_selector(selector.cel.expression)
                    device = device or device_input(model)
                    if not compiled.matches(device):
                        return False
                except mp.cel.CelCompileError as error:
                    return Failure(f"{prefix}CEL compile error: {error}", claim)
                except mp.cel.CelRuntimeError as error:
                    return Failure(f"{prefix}CEL runtime error: {error}", claim)
        return True


def device_input(model: DeviceModel) -> mp.cel.DeviceInput:
    """A device as selectors read it; raises CelRuntimeError for a value of an unknown type."""
    attributes: dict[str, bool | int | str | mp.cel.Version] = {}
    for name, attribute in model.device.attributes.items():
        if attribute.value is None:
            raise mp.cel.CelRuntimeError(f"attribute {name}: unsupported attribute value")
        kind, value = attribute.value
        attributes[name] = mp.cel.Version(str(value)) if kind == "version" else value
    quantities = {name: str(each.value) for name, each in model.device.capacity.items()}
    return mp.cel.DeviceInput(model.driver, attributes, quantities, model.is_shared)


def tolerates(request: Requested, model: DeviceModel) -> bool:
    """Whether a request tolerates all taints that keep claims away from a device."""
    return all(
        taint.effect not in BLOCKING_EFFECTS
        or any(_tolerates(toleration, taint) for toleration in request.tolerations)
        for taint in model.device.taints
    )


def _tolerates(toleration: mp.DeviceToleration, taint: mp.DeviceTaint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


@dataclass(slots=True, eq=False)
class ClaimPlan:
    """The requests of one claim, each with its alternatives, and its constraints."""

    spec: mp.DeviceClaim
    requests: list[list[RequestPlan]]

    @property
    def has_alternatives(self) -> bool:
        """Whether a request is for the first available of several."""
        return any(request.first_available for request in self.spec.requests or ())

    def constraints(self) -> list[constraints.ConstraintCheck | None]:
        """The constraints, without any device yet."""
        return [constraints.made_from(each) for each in self.spec.constraints]


@dataclass(slots=True, eq=False)
class AllocationPlan:
    """What has to be allocated for a pod, and what was found for inventories seen before."""

    claims: list[ClaimPlan]
    features: Features
    # By state of the index: the versions of its wide pools, and what the allocator found.
    found: dict[Any, tuple[tuple[int, ...], Any]] = field(default_factory=dict)


def compile_claims(
    specs: Sequence[mp.DeviceClaim], classes: Classes, features: Features = ALL_FEATURES
) -> AllocationPlan:
    """The plan for claims with these specs."""
    plans = [_claim(i, spec, classes, features) for i, spec in enumerate(specs)]
    return AllocationPlan(plans, features)


def _claim(position: int, spec: mp.DeviceClaim, classes: Classes, features: Features) -> ClaimPlan:
    requests = []
    for request in spec.requests or ():
        exactly = request.exactly
        if exactly is not None:
            admin = bool(exactly.admin_access)
            own = _request(position, request.name, "", 0, exactly, classes, features, admin=admin)
            requests.append([own])
        else:
            requests.append(
                [
                    _request(
                        position, request.name, each.name, i, each, classes, features, admin=False
                    )
                    for i, each in enumerate(request.first_available)
                ]
            )
    return ClaimPlan(spec, requests)


def _request(
    claim: int,
    request: str,
    subrequest: str,
    index: int,
    spec: Requested,
    classes: Classes,
    features: Features,
    *,
    admin: bool,
) -> RequestPlan:
    amounts = {} if spec.capacity is None else spec.capacity.requests
    found = classes.get(spec.device_class_name)
    label = subrequest or request
    return RequestPlan(
        claim, request, subrequest, label, index, spec, found, admin, amounts, features
    )
