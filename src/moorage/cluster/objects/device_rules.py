"""The rules of device claims, templates, classes and slices: (field, value, rule) per violation."""

from collections.abc import Iterable, Iterator
from typing import Any

from moorage.api import labels
from moorage.api.devices import (
    ALL,
    EXACT_COUNT,
    MAX_SUBREQUESTS,
    Device,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    ResourceSliceSpec,
)
from moorage.api.meta import KubeObject
from moorage.cel import CelCompileError, compile_selector

FieldErrors = Iterator[tuple[str, Any, str]]

MAX_REQUESTS = MAX_CONSTRAINTS = MAX_SELECTORS = 32
MAX_SLICE_DEVICES, MAX_SLICE_DEVICES_WITH_TAINTS = 128, 64
_ONE_KIND_OF_REQUEST = "exactly one of `exactly` or `firstAvailable` is required"
_ONE_OF_NODES = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)
_REQUEST_NAME = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)


def validate_claim(typed: KubeObject) -> FieldErrors:
    """A ResourceClaim."""
    assert isinstance(typed, ResourceClaim)
    return _claim(typed.spec.devices, "spec.devices")


def validate_template(typed: KubeObject) -> FieldErrors:
    """A ResourceClaimTemplate."""
    assert isinstance(typed, ResourceClaimTemplate)
    return _claim(typed.spec.spec.devices, "spec.spec.devices")


def validate_class(typed: KubeObject) -> FieldErrors:
    """A DeviceClass."""
    assert isinstance(typed, DeviceClass)
    return _selectors(typed.spec.selectors, "spec.selectors")


def validate_slice(typed: KubeObject) -> FieldErrors:
    """A ResourceSlice."""
    assert isinstance(typed, ResourceSlice)
    spec = typed.spec
    yield from _subdomain("spec.driver", spec.driver)
    yield from _subdomain("spec.pool.name", spec.pool.name)
    if spec.pool.resource_slice_count <= 0:
        count = spec.pool.resource_slice_count
        yield "spec.pool.resourceSliceCount", count, "must be greater than zero"
    yield from _nodes(spec)
    tainted = any(device.taints or device.consumes_counters for device in spec.devices)
    most = MAX_SLICE_DEVICES_WITH_TAINTS if tainted else MAX_SLICE_DEVICES
    yield from _at_most("spec.devices", len(spec.devices), most)
    yield from _unique("spec.devices", (device.name for device in spec.devices))
    for i, device in enumerate(spec.devices):
        yield from _device(f"spec.devices[{i}]", device)


def _nodes(spec: ResourceSliceSpec) -> FieldErrors:
    ways = (spec.node_name, spec.node_selector, spec.all_nodes, spec.per_device_node_selection)
    if sum(bool(way) for way in ways) != 1:
        yield "spec", "", _ONE_OF_NODES
    if spec.shared_counters and spec.devices:
        yield "spec", "", "only one of `sharedCounters` or `devices` is allowed"


def _device(path: str, device: Device) -> FieldErrors:
    for name, attribute in device.attributes.items():
        if attribute.value is None:
            yield f"{path}.attributes[{name}]", "", "exactly one value must be specified"


def _claim(devices: DeviceClaim, path: str) -> FieldErrors:
    requests = devices.requests or ()
    yield from _at_most(f"{path}.requests", len(requests), MAX_REQUESTS)
    yield from _at_most(f"{path}.constraints", len(devices.constraints), MAX_CONSTRAINTS)
    yield from _unique(f"{path}.requests", (request.name for request in requests))
    for i, request in enumerate(requests):
        yield from _request(f"{path}.requests[{i}]", request)
    known = {request.name for request in requests}
    known |= {f"{each.name}/{sub.name}" for each in requests for sub in each.first_available}
    users = {
        "constraints": [each.requests for each in devices.constraints],
        "config": [each.requests for each in devices.config],
    }
    for field, entries in users.items():
        for i, entry in enumerate(entries):
            for k, name in enumerate(entry):
                if name not in known:
                    yield f"{path}.{field}[{i}].requests[{k}]", name, _REQUEST_NAME


def _request(path: str, request: DeviceRequest) -> FieldErrors:
    if (request.exactly is None) == (not request.first_available):
        yield path, "", _ONE_KIND_OF_REQUEST
    if request.exactly is not None:
        yield from _requested(f"{path}.exactly", request.exactly)
    yield from _at_most(f"{path}.firstAvailable", len(request.first_available), MAX_SUBREQUESTS)
    yield from _unique(f"{path}.firstAvailable", (each.name for each in request.first_available))
    for i, each in enumerate(request.first_available):
        yield from _requested(f"{path}.firstAvailable[{i}]", each)


def _requested(path: str, request: ExactDeviceRequest | DeviceSubRequest) -> FieldErrors:
    yield from _subdomain(f"{path}.deviceClassName", request.device_class_name)
    yield from _selectors(request.selectors, f"{path}.selectors")
    match request.allocation_mode:
        case "" | "ExactCount" if request.count < 0:  # 0 stands for the default, 1.
            yield f"{path}.count", request.count, "must be greater than zero"
        case "All" if request.count:
            rule = "must not be specified when allocationMode is 'All'"
            yield f"{path}.count", request.count, rule
        case mode if mode not in ("", EXACT_COUNT, ALL):
            yield f"{path}.allocationMode", mode, f'supported values: "{ALL}", "{EXACT_COUNT}"'


def _selectors(selectors: tuple[DeviceSelector, ...], path: str) -> FieldErrors:
    yield from _at_most(path, len(selectors), MAX_SELECTORS)
    for i, selector in enumerate(selectors):
        if selector.cel is None:
            yield f"{path}[{i}].cel", "", ""
            continue
        expression = selector.cel.expression
        try:
            compile_selector(expression)
        except CelCompileError as error:
            yield f"{path}[{i}].cel.expression", expression, f"compilation failed: {error}"


def _subdomain(path: str, name: str) -> FieldErrors:
    for rule in labels.subdomain_problems(name) if name else ("",):
        yield path, name, rule


def _at_most(path: str, count: int, most: int) -> FieldErrors:
    if count > most:
        yield path, count, f"must have at most {most} items"


def _unique(path: str, names: Iterable[str]) -> FieldErrors:
    seen: set[str] = set()
    for i, name in enumerate(names):
        for rule in labels.subdomain_problems(name) if name else ("",):
            yield f"{path}[{i}].name", name, rule
        if name in seen:
            yield f"{path}[{i}].name", name, "Duplicate value"
        seen.add(name)
