"""The defaults that an API server sets, for objects from manifests.

A manifest from a git repository and the same object from a cluster must behave alike. An object is
returned unchanged if nothing is missing, else as a copy. What controllers add later (taints,
tolerations, host name labels) is not added here, with one exception: the phase of a volume, because
only an Available volume can be claimed.
"""

import hashlib
import uuid
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeVar

from msgspec import Struct, structs

from moorage.api import admission, claims, quantity, requests
from moorage.api.admission import PriorityClasses
from moorage.api.devices import (
    ALL,
    EXACT_COUNT,
    DeviceClaim,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from moorage.api.kinds import READ
from moorage.api.meta import KubeObject, LabelSelector, LabelSelectorRequirement, ObjectMeta
from moorage.api.node import Node
from moorage.api.pod import (
    DEFAULT_SCHEDULER,
    Affinity,
    Container,
    ContainerPort,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    Resources,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from moorage.api.pod_admission import PodAdmission
from moorage.api.pod_groups import DISRUPT_POD, PodGroup
from moorage.api.policy import Namespace, PriorityClass
from moorage.api.quantity import Quantity
from moorage.api.storage import CSIDriver, PersistentVolume, PersistentVolumeClaim, StorageClass
from moorage.errors import AdmissionError

S = TypeVar("S", bound=Struct)
K = TypeVar("K", bound=KubeObject)
Requested = TypeVar("Requested", ExactDeviceRequest, DeviceSubRequest)

IS_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
GRACE_PERIOD_SECONDS = 30

UIDS = uuid.UUID("6d6f6f72-6167-5e00-8000-000000000000")


def complete(
    objects: Iterable[KubeObject],
    *,
    known: Iterable[KubeObject] = (),
    refuse: Callable[[KubeObject, str], None] | None = None,
) -> list[KubeObject]:
    """The objects with all defaults; `known` objects exist already and are only read.

    Objects that admission refuses are left out and passed to `refuse`, with the reason; without it
    the first of them raises AdmissionError.
    """
    objects = list(objects)
    complete_one = completer((*known, *objects))
    found = []
    for each in objects:
        try:
            found.append(complete_one(each))
        except AdmissionError as error:
            if refuse is None:
                raise
            refuse(each, error.why)
    return found


def completer(known: Iterable[KubeObject]) -> Callable[[KubeObject], KubeObject]:
    """A function that completes an object, or raises AdmissionError; it reads `known` once."""
    known = [each for each in known if not isinstance(each, Pod)]  # Most objects are pods.
    classes = PriorityClasses(each for each in known if isinstance(each, PriorityClass))
    storage_class = default_storage_class(known)
    pods = PodAdmission(known)

    def complete_one(obj: KubeObject) -> KubeObject:
        obj = pods.admit(obj)
        return pod(obj, classes) if isinstance(obj, Pod) else _complete(obj, classes, storage_class)

    return complete_one


def _complete(obj: KubeObject, classes: PriorityClasses, storage_class: str | None) -> KubeObject:
    match obj:
        case Node():
            return node(obj)
        case Namespace():
            return namespace(obj)
        case PriorityClass():
            return priority_class(obj)
        case PodGroup():
            return pod_group(obj, classes)
        case PersistentVolumeClaim():
            return claim(obj, storage_class)
        case PersistentVolume():
            return volume(obj)
        case StorageClass():
            return _with(identity(obj), volume_binding_mode=obj.volume_binding_mode or "Immediate")
        case CSIDriver(spec=spec):
            # Volumes are attached and capacity is not checked by default.
            attach = True if spec.attach_required is None else spec.attach_required
            capacity = bool(spec.storage_capacity)
            spec = _with(spec, attach_required=attach, storage_capacity=capacity)
            return _with(identity(obj), spec=spec)
        case ResourceClaim():
            return _with(identity(obj), spec=_device_claim(obj.spec))
        case ResourceClaimTemplate(spec=template):
            return _with(identity(obj), spec=_with(template, spec=_device_claim(template.spec)))
    return identity(obj)


def identity(obj: K) -> K:
    """Set kind, version, namespace and UID; the UID is derived from the name, so it is stable."""
    kind, meta = READ[type(obj).__name__], obj.metadata
    stated = obj.kind == kind.name and obj.api_version == kind.api_version
    if stated and meta.uid and bool(meta.namespace) == kind.namespaced:
        return obj  # Most objects of an API server.
    namespace = (meta.namespace or "default") if kind.namespaced else ""
    uid = meta.uid or uid_of(f"{kind.name}/{namespace}/{meta.name}")
    return _with(
        obj,
        api_version=kind.api_version,
        kind=kind.name,
        metadata=_with(meta, namespace=namespace, uid=uid),
    )


def uid_of(name: str) -> str:
    """The UUID of a name, version 5, as `uuid.uuid5` makes it, in a quarter of the time."""
    digest = hashlib.sha1(UIDS.bytes + name.encode(), usedforsecurity=False).hexdigest()
    variant = "89ab"[int(digest[16], 16) & 3]
    return f"{digest[:8]}-{digest[8:12]}-5{digest[13:16]}-{variant}{digest[17:20]}-{digest[20:32]}"


def from_server(meta: ObjectMeta) -> bool:
    """Whether an object comes from an API server."""
    return bool(meta.uid and meta.resource_version and meta.creation_timestamp)


def pod(obj: Pod, classes: PriorityClasses) -> Pod:
    """A pod as it is after creation."""
    meta, spec = obj.metadata, obj.spec
    if not (meta.uid and meta.namespace and obj.kind == "Pod" and obj.api_version == "v1"):
        obj = identity(obj)
    if changes := _spec_changes(obj, classes):
        spec = structs.replace(spec, **changes)
    if not from_server(meta):
        spec = _merge_label_keys(spec, meta.labels)
    return obj if spec is obj.spec else structs.replace(obj, spec=spec)


_MAX_CACHED = 4096
_DEFAULTED = (
    "scheduler_name",
    "priority_class_name",
    "priority",
    "preemption_policy",
    "containers",
    "init_containers",
    "overhead",
    "resources",
    "termination_grace_period_seconds",
)
_defaulted_fields = attrgetter(*_DEFAULTED, "host_network")
_Admitted = tuple[str, int, str]
# By containers: what the changes follow from, the classes that were there, and the changes.
_known_changes: dict[int, tuple[Any, PriorityClasses, _Admitted, dict[str, Any]]] = {}


def _spec_changes(obj: Pod, classes: PriorityClasses) -> dict[str, Any]:
    """The fields that defaults change; pods that share their containers share the result."""
    spec = obj.spec
    fields, key = _defaulted_fields(spec), id(spec.containers)  # Not reused: they are kept.
    known = _known_changes.get(key)
    if known is not None and known[1] is classes and known[0] == fields:
        return known[3]
    admitted = admission.priority(obj, classes)
    if known is None or known[0] != fields or known[2] != admitted:
        if len(_known_changes) >= _MAX_CACHED:
            _known_changes.clear()
        new = _completed_spec(spec, *admitted)
        pairs = ((name, getattr(new, name)) for name in _DEFAULTED)
        changes = {name: value for name, value in pairs if value is not getattr(spec, name)}
    else:
        changes = known[3]
    _known_changes[key] = (fields, classes, admitted, changes)
    return changes


def _completed_spec(spec: PodSpec, class_name: str, priority: int, policy: str) -> PodSpec:
    def container(each: Container) -> Container:
        return _container(each, host_network=spec.host_network)

    grace = spec.termination_grace_period_seconds
    new = _with(
        spec,
        scheduler_name=spec.scheduler_name or DEFAULT_SCHEDULER,
        priority_class_name=class_name,
        priority=priority,
        preemption_policy=policy,
        containers=_each(spec.containers, container),
        init_containers=_each(spec.init_containers, container),
        overhead=_whole_millis(spec.overhead),
        termination_grace_period_seconds=GRACE_PERIOD_SECONDS if grace is None else grace,
    )
    if new.resources is not None:
        new = _with(new, resources=_pod_level(new, new.resources))
    return new


def node(obj: Node) -> Node:
    """A node; its allocatable is its capacity by default."""
    status = obj.status
    allocatable = _whole_millis(status.allocatable or status.capacity)
    status = _with(status, allocatable=allocatable, capacity=_whole_millis(status.capacity))
    return _with(identity(obj), status=status)


def namespace(obj: Namespace) -> Namespace:
    """A namespace, which has its own name as a label."""
    labels = obj.labels | {"kubernetes.io/metadata.name": obj.name}
    return identity(_with(obj, metadata=_with(obj.metadata, labels=labels)))


def priority_class(obj: PriorityClass) -> PriorityClass:
    """A priority class; raises ManifestError for one that an API server would refuse."""
    admission.check_priority_class(obj)
    policy = obj.preemption_policy or admission.PREEMPT_LOWER_PRIORITY
    return _with(identity(obj), preemption_policy=policy)


def pod_group(obj: PodGroup, classes: PriorityClasses) -> PodGroup:
    """A pod group; its priority comes from its class, as that of a pod."""
    obj = identity(obj)
    name, priority = admission.group_priority(obj, classes)
    mode = obj.spec.disruption_mode or DISRUPT_POD
    spec = _with(obj.spec, disruption_mode=mode, priority_class_name=name, priority=priority)
    return _with(obj, spec=spec)


def claim(obj: PersistentVolumeClaim, storage_class: str | None) -> PersistentVolumeClaim:
    """A claim; a new one without a class gets the default class, if there is one."""
    spec, status = obj.spec, obj.status
    name = spec.storage_class_name
    if name is None and claims.CLASS not in obj.metadata.annotations:
        name = None if from_server(obj.metadata) else storage_class
    resources = _with(spec.resources, requests=_whole_millis(spec.resources.requests))
    return _with(
        identity(obj),
        spec=_with(
            spec,
            volume_mode=spec.volume_mode or "Filesystem",
            storage_class_name=name,
            resources=resources,
        ),
        status=_with(status, phase=status.phase or "Pending"),
    )


def volume(obj: PersistentVolume) -> PersistentVolume:
    """A volume, Available unless it is bound to a claim."""
    spec, status = obj.spec, obj.status
    phase = "Bound" if spec.claim_ref and spec.claim_ref.uid else "Available"
    return _with(
        identity(obj),
        spec=_with(
            spec,
            volume_mode=spec.volume_mode or "Filesystem",
            persistent_volume_reclaim_policy=spec.persistent_volume_reclaim_policy or "Retain",
            capacity=_whole_millis(spec.capacity),
        ),
        status=_with(status, phase=status.phase or phase),
    )


def _device_claim(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    """The spec of a device claim: one device per request, unless it says otherwise."""

    def request(each: DeviceRequest) -> DeviceRequest:
        return _with(
            each,
            exactly=each.exactly and _requested_devices(each.exactly),
            first_available=_each(each.first_available, _requested_devices),
        )

    devices: DeviceClaim = spec.devices
    requested = None if devices.requests is None else _each(devices.requests, request)
    return _with(spec, devices=_with(devices, requests=requested))


def _requested_devices(request: Requested) -> Requested:
    def toleration(each: DeviceToleration) -> DeviceToleration:
        return _with(each, operator=each.operator or "Equal")

    mode = request.allocation_mode or EXACT_COUNT
    return _with(
        request,
        allocation_mode=mode,
        count=request.count or (0 if mode == ALL else 1),
        tolerations=_each(request.tolerations, toleration),
    )


def default_storage_class(objects: Iterable[KubeObject]) -> str | None:
    """The name of the default storage class: the newest default, then the first by name."""
    defaults = [
        each
        for each in objects
        if isinstance(each, StorageClass)
        and any(each.metadata.annotations.get(name) == "true" for name in IS_DEFAULT_CLASS)
    ]
    if not defaults:
        return None
    newest = max(each.metadata.creation_timestamp or "" for each in defaults)
    return min(each.name for each in defaults if (each.metadata.creation_timestamp or "") == newest)


def _container(container: Container, *, host_network: bool) -> Container:
    resources = container.resources
    limits = _whole_millis(resources.limits)
    requested = _whole_millis(resources.requests)
    missing = {name: limit for name, limit in limits.items() if name not in requested}
    if missing:
        requested = requested | missing
    return _with(
        container,
        resources=_with(resources, limits=limits, requests=requested),
        ports=_each(container.ports, lambda port: _port(port, host_network=host_network)),
    )


def _port(port: ContainerPort, *, host_network: bool) -> ContainerPort:
    host_port = port.host_port or (port.container_port if host_network else 0)
    return _with(port, protocol=port.protocol or "TCP", host_port=host_port)


def _pod_level(spec: PodSpec, resources: ResourceRequirements) -> ResourceRequirements:
    """Pod-level requests: by default the sum of its containers' requests, else its limits."""
    limits, requested = _whole_millis(resources.limits), _whole_millis(resources.requests)
    if limits or requested:
        limits = _huge_page_limits(spec, requested) | limits
    if limits:
        sums = requests.of_containers(Pod(spec=spec))
        summed = {
            name: quantity.from_nano(sums[name])
            for name in (requests.CPU, requests.MEMORY)  # Huge pages cannot be overcommitted.
            if name in sums
        }
        limited = {name: q for name, q in limits.items() if requests.has_pod_level_form(name)}
        requested = limited | summed | requested
    return _with(resources, limits=limits, requests=requested)


def _huge_page_limits(spec: PodSpec, requested: Resources) -> Resources:
    def only_limits(container: Container) -> Container:
        limits = container.resources.limits
        return _with(container, resources=ResourceRequirements(requests=limits))

    limited = _with(
        spec,
        containers=_each(spec.containers, only_limits),
        init_containers=_each(spec.init_containers, only_limits),
    )
    return {
        name: quantity.from_nano(count)
        for name, count in requests.of_containers(Pod(spec=limited)).items()
        if name.startswith("hugepages-") and name not in requested
    }


def _merge_label_keys(spec: PodSpec, labels: Mapping[str, str]) -> PodSpec:
    """Turn matchLabelKeys and mismatchLabelKeys into requirements on the pod's present labels."""

    def constraint(each: TopologySpreadConstraint) -> TopologySpreadConstraint:
        selector = _with_requirements(each.label_selector, labels, each.match_label_keys)
        return _with(each, label_selector=selector)

    return _with(
        spec,
        affinity=spec.affinity and _affinity(spec.affinity, labels),
        topology_spread_constraints=_each(spec.topology_spread_constraints, constraint),
    )


def _affinity(affinity: Affinity, labels: Mapping[str, str]) -> Affinity:
    return _with(
        affinity,
        pod_affinity=affinity.pod_affinity and _pod_affinity(affinity.pod_affinity, labels),
        pod_anti_affinity=(
            affinity.pod_anti_affinity and _pod_affinity(affinity.pod_anti_affinity, labels)
        ),
    )


def _pod_affinity(affinity: PodAffinity, labels: Mapping[str, str]) -> PodAffinity:
    def term(each: PodAffinityTerm) -> PodAffinityTerm:
        selector = _with_requirements(
            each.label_selector, labels, each.match_label_keys, each.mismatch_label_keys
        )
        return _with(each, label_selector=selector)

    def weighted(each: WeightedPodAffinityTerm) -> WeightedPodAffinityTerm:
        return _with(each, pod_affinity_term=term(each.pod_affinity_term))

    return _with(
        affinity,
        required_during_scheduling_ignored_during_execution=_each(affinity.required, term),
        preferred_during_scheduling_ignored_during_execution=_each(affinity.preferred, weighted),
    )


def _with_requirements(
    selector: LabelSelector | None,
    labels: Mapping[str, str],
    match: tuple[str, ...],
    mismatch: tuple[str, ...] = (),
) -> LabelSelector | None:
    if selector is None:  # It matches nothing.
        return None
    requirements = [
        LabelSelectorRequirement(key=key, operator=operator, values=(labels[key],))
        for operator, keys in (("In", match), ("NotIn", mismatch))
        for key in keys
        if key in labels
    ]
    # The manifest may contain them already.
    new = tuple(each for each in requirements if each not in selector.match_expressions)
    return _with(selector, match_expressions=selector.match_expressions + new) if new else selector


def _whole_millis(resources: Resources) -> Resources:
    """Round amounts up to thousandths, as an API server does when it stores them."""
    fine = _finer_than_millis(tuple(resources.items())) if resources else ()
    if not fine:
        return resources
    return resources | {name: f"{quantity.milli(resources[name])}m" for name in fine}


@lru_cache(maxsize=_MAX_CACHED)
def _finer_than_millis(amounts: tuple[tuple[str, Quantity], ...]) -> tuple[str, ...]:
    return tuple([name for name, each in amounts if quantity.nano(each) % quantity.MICRO])


def _with(struct: S, **fields: Any) -> S:
    """The struct with these fields; the same object if nothing changes."""
    changes = {}
    for name, value in fields.items():
        old = getattr(struct, name)
        if old is not value and old != value:
            changes[name] = value
    return structs.replace(struct, **changes) if changes else struct


def _each(items: tuple[S, ...], change: Callable[[S], S]) -> tuple[S, ...]:
    changed = tuple([change(item) for item in items])
    for new, old in zip(changed, items, strict=True):
        if new is not old:
            return changed
    return items
