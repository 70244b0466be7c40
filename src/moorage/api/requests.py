"""The resource requests of a pod: containers, sidecars, pod level and overhead as one vector.

Sums and maxima are computed on exact quantities and become int64 once, at the end, as in
Kubernetes. Its plugins compute the request of a pod in slightly different ways; each way has a
function here that names its uses.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, wraps
from operator import attrgetter
from typing import Any, TypeVar

from moorage.api import labels, quantity
from moorage.api.meta import Condition
from moorage.api.node import Node
from moorage.api.pod import Container, ContainerStatus, Pod, PodStatus
from moorage.api.quantity import Quantity

T = TypeVar("T")
Amounts = dict[str, int]
HostPort = tuple[str, str, int]

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"
# All other resources are scalars.
UNSCALED = (CPU, MEMORY, EPHEMERAL_STORAGE)
ANY_IP = "0.0.0.0"
RESIZE_PENDING = "PodResizePending"

NO_DEFAULTS: Mapping[str, int] = {}
# The requests of a container without requests, when nodes are scored.
DEFAULT_REQUESTS: Mapping[str, int] = {CPU: quantity.nano("100m"), MEMORY: quantity.nano("200Mi")}


def is_native(resource: str) -> bool:
    """Whether Kubernetes defines a resource, as `cpu` or `kubernetes.io/batch-cpu`."""
    return "/" not in resource or "kubernetes.io/" in resource


@lru_cache(maxsize=4096)
def is_extended(resource: str) -> bool:
    """Whether a resource is an extended one, as `nvidia.com/gpu`."""
    if is_native(resource) or resource.startswith("requests."):
        return False
    return not labels.key_problems(f"requests.{resource}")  # Its name in a quota.


@lru_cache(maxsize=4096)
def is_scalar(resource: str) -> bool:
    """Whether a resource is counted in whole pieces under its own name."""
    return (
        resource.startswith(("hugepages-", "attachable-volumes-"))
        or "kubernetes.io/" in resource
        or is_extended(resource)
    )


def is_scored(resource: str, amount: int) -> bool:
    """Whether a resource is scored: one that only some pods request counts for these pods."""
    return resource in UNSCALED or (is_scalar(resource) and amount != 0)


def has_pod_level_form(resource: str) -> bool:
    """Whether a resource can be requested at pod level."""
    return resource in (CPU, MEMORY) or resource.startswith("hugepages-")


_MAX_CACHED = 4096


def _cache_by_parts(compute: Callable[[Pod], T]) -> Callable[[Pod], T]:
    """Cache the result for pods that share their containers, as the pods of a workload do.

    Callers must not change it. Parts and result are one object, so that threads can call the
    function at the same time.
    """
    known: dict[int, tuple[Any, Any, Condition | None, T]] = {}

    @wraps(compute)
    def cached(pod: Pod) -> T:
        # Equal parts of pods are most often the same object, which makes comparing them quick.
        spec, status = _spec_parts(pod.spec), _status_parts(pod.status)
        key = id(pod.spec.containers)  # Not reused: they are kept.
        found = known.get(key)
        if (
            found is None
            or found[0] != spec
            or found[1] != status
            or (status != NO_ACTUAL and found[2] != pod.condition(RESIZE_PENDING))
        ):
            if len(known) >= _MAX_CACHED:
                known.clear()
            # An infeasible resize does not count, and a condition states it.
            known[key] = found = (spec, status, pod.condition(RESIZE_PENDING), compute(pod))
        return found[3]

    return cached


_spec_parts = attrgetter("containers", "init_containers", "resources", "overhead")
# Resources in a status count instead of the requested ones.
_status_parts = attrgetter(
    "container_statuses", "init_container_statuses", "resources", "allocated_resources"
)
NO_ACTUAL = _status_parts(PodStatus())


def effective(
    pod: Pod,
    *,
    use_status: bool = False,
    pod_level: bool = True,
    pod_level_resize: bool = False,
    defaults: Mapping[str, int] = NO_DEFAULTS,
) -> Amounts:
    """The pod's whole request in exact nano-units.

    `use_status` counts the actual resources of running containers, `pod_level_resize` those of the
    pod as a whole. With `pod_level`, `spec.resources` overrides the sum of the containers.
    `defaults` are the requests of a container that has none.
    """
    total = of_containers(pod, defaults, use_status=use_status)
    if pod_level:
        total |= _pod_level(pod, use_status=use_status and pod_level_resize)
    _add(total, _exact(pod.spec.overhead))
    return total


def of_containers(
    pod: Pod, defaults: Mapping[str, int] = NO_DEFAULTS, *, use_status: bool = False
) -> Amounts:
    """The maximum that all containers need at the same time, in exact nano-units."""
    spec, status = pod.spec, pod.status
    resizing = use_status and bool(status.container_statuses or status.init_container_statuses)
    total: Amounts = {}
    for container in spec.containers:
        statuses = status.container_statuses if resizing else ()
        _add(total, {**defaults, **_container(pod, container, statuses)})
    if not spec.init_containers:
        return total
    sidecars: Amounts = {}
    peak: Amounts = {}  # The maximum while init containers run.
    for container in spec.init_containers:
        statuses = status.init_container_statuses if resizing and container.is_sidecar else ()
        own = {**defaults, **_container(pod, container, statuses)}
        if container.is_sidecar:
            _add(total, own)
            _add(sidecars, own)
            _raise(peak, sidecars)
        else:
            _add(own, sidecars)
            _raise(peak, own)
    _raise(total, peak)
    return total


@_cache_by_parts
def filter_request(pod: Pod) -> Amounts:
    """What must be free on a node: NodeResourcesFit's filter and hints."""
    return {name: max(0, amount) for name, amount in _as_int64(_stated(pod)).items()}


@_cache_by_parts
def requested(pod: Pod) -> Amounts:
    """What the pod uses on its node."""
    return _as_int64(_held(pod))


@_cache_by_parts
def counted(pod: Pod) -> Amounts:
    """The same, and one of the pods that the node can have."""
    return {**requested(pod), PODS: 1}


@_cache_by_parts
def scoring_request(pod: Pod) -> Amounts:
    """What the incoming pod adds when NodeResourcesFit scores a node.

    Pod-level requests do not count here. That is a quirk of Kubernetes: once the pod runs, they
    count, and the containers' defaults do not.
    """
    total = effective(pod, pod_level=False, defaults=DEFAULT_REQUESTS)
    return {CPU: 0, MEMORY: 0} | _all_as_int64(total)


@_cache_by_parts
def balanced_request(pod: Pod) -> Amounts:
    """What the incoming pod adds when NodeResourcesBalancedAllocation scores a node."""
    return _all_as_int64(_held(pod))


@_cache_by_parts
def nonzero_requested(pod: Pod) -> tuple[int, int]:
    """Milli-CPU and bytes of a pod on a node, with defaults for containers without requests."""
    defaults = DEFAULT_REQUESTS
    level = pod.spec.resources
    if level is not None and any(map(has_pod_level_form, level.requests)):
        held = _held(pod)
        defaults = {name: default for name, default in defaults.items() if name not in held}
    total = _all_as_int64(_held(pod, defaults))
    return total.get(CPU, 0), total.get(MEMORY, 0)


def decreased(old: Pod, new: Pod) -> tuple[str, ...]:
    """The resources of which the pod now uses less, or none."""
    before, after = _held(old), _held(new)
    return tuple(
        name
        for name, amount in sorted(before.items())
        if name not in after or quantity.milli_of_nano(after[name]) < quantity.milli_of_nano(amount)
    )


def allocatable(node: Node) -> Amounts:
    """The allocatable of a node, in the same units as requests, and its maximum number of pods.

    Nodes of one size share the result; callers must not change it.
    """
    return _allocatable(tuple(node.status.allocatable.items()))


@lru_cache(maxsize=_MAX_CACHED)
def _allocatable(offered: tuple[tuple[str, Quantity], ...]) -> Amounts:
    exact = _exact(dict(offered))
    amounts = _as_int64(exact)
    if PODS in exact:
        amounts[PODS] = quantity.value_of_nano(exact[PODS])
    return amounts


def units(amounts: Mapping[str, Quantity]) -> Amounts:
    """Quantities in the same units as requests: thousandths of cpu, whole units of others."""
    return _all_as_int64(_exact(amounts))


@_cache_by_parts
def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The host ports that the pod uses; those of init containers do not count, except sidecars."""
    sidecars = (container for container in pod.spec.init_containers if container.is_sidecar)
    return tuple(
        (port.host_ip or ANY_IP, port.protocol or "TCP", port.host_port)
        for container in (*sidecars, *pod.spec.containers)
        for port in container.ports
        if port.host_port > 0
    )


@_cache_by_parts
def _stated(pod: Pod) -> Amounts:
    """The request by the pod's spec; callers must not change it."""
    return effective(pod)


def _held(pod: Pod, defaults: Mapping[str, int] = NO_DEFAULTS) -> Amounts:
    """The actual resources by the pod's status; without one, the request by its spec."""
    status = pod.status
    has_status = status.container_statuses or status.init_container_statuses or status.resources
    if not has_status and not defaults:
        return _stated(pod)
    return effective(pod, use_status=True, pod_level_resize=True, defaults=defaults)


def _container(pod: Pod, container: Container, statuses: Iterable[ContainerStatus]) -> Amounts:
    desired = _exact(container.resources.requests)
    for status in statuses:
        if status.name == container.name:
            if status.resources is None:
                break
            actual, allocated = status.resources.requests, status.allocated_resources
            return _while_resized(pod, desired, _exact(actual), _exact(allocated))
    return desired


def _pod_level(pod: Pod, *, use_status: bool) -> Amounts:
    if pod.spec.resources is None:
        return {}
    requests = pod.spec.resources.requests
    desired = {name: quantity.nano(q) for name, q in requests.items() if has_pod_level_form(name)}
    status = pod.status
    if not use_status or status.resources is None:
        return desired
    highest = _while_resized(
        pod, desired, _exact(status.resources.requests), _exact(status.allocated_resources)
    )
    return {name: highest.get(name, 0) for name in desired}


def _while_resized(pod: Pod, desired: Amounts, actual: Amounts, allocated: Amounts) -> Amounts:
    """The maximum of desired, actual and allocated; an infeasible resize is not desired."""
    condition = pod.condition(RESIZE_PENDING)
    is_infeasible = condition is not None and condition.reason == "Infeasible"
    highest = {} if is_infeasible else dict(desired)
    _raise(highest, actual)
    _raise(highest, allocated)
    return highest


def _exact(resources: Mapping[str, Quantity]) -> Amounts:
    return {name: quantity.nano(amount) for name, amount in resources.items()}


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: Amounts, other: Mapping[str, int]) -> None:
    for name, amount in other.items():
        if name not in total or total[name] < amount:
            total[name] = amount


def _as_int64(amounts: Amounts) -> Amounts:
    """The resources that nodes count: native ones and scalars; other names are dropped."""
    native = (CPU, MEMORY, EPHEMERAL_STORAGE)
    counted = {name: n for name, n in amounts.items() if name in native or is_scalar(name)}
    return _all_as_int64(counted)


def _all_as_int64(amounts: Amounts) -> Amounts:
    return {
        name: quantity.rounded_up(n, quantity.MICRO if name == CPU else quantity.NANO)
        for name, n in amounts.items()
    }
