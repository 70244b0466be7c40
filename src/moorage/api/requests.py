"""What a pod asks of a node: its containers, sidecars, pod level and overhead as one vector.

Sums and maxima are taken on exact quantities and become int64 once, at the very end, as in
Kubernetes. Its components ask for the same pod in slightly different ways; each way has a
function here that says which questions it answers.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, wraps
from typing import TypeVar

from moorage.api import labels, quantity
from moorage.api.node import Node
from moorage.api.pod import Container, ContainerStatus, Pod
from moorage.api.quantity import Quantity

T = TypeVar("T")
Amounts = dict[str, int]
HostPort = tuple[str, str, int]

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"
ANY_IP = "0.0.0.0"

NO_DEFAULTS: Mapping[str, int] = {}
# What a container without requests counts for when nodes are scored.
DEFAULT_REQUESTS: Mapping[str, int] = {
    CPU: quantity.nano("100m"),
    MEMORY: quantity.nano("200Mi"),
}


def is_native(resource: str) -> bool:
    """A resource that Kubernetes itself defines, as `cpu` or `kubernetes.io/batch-cpu`."""
    return "/" not in resource or "kubernetes.io/" in resource


@lru_cache(maxsize=4096)
def is_extended(resource: str) -> bool:
    """A resource that somebody else defines, as `nvidia.com/gpu`."""
    if is_native(resource) or resource.startswith("requests."):
        return False
    return not labels.key_problems(f"requests.{resource}")  # The name a quota would give it.


@lru_cache(maxsize=4096)
def is_scalar(resource: str) -> bool:
    """A resource that is counted in whole pieces under its own name."""
    return (
        resource.startswith(("hugepages-", "attachable-volumes-"))
        or "kubernetes.io/" in resource
        or is_extended(resource)
    )


def has_pod_level_form(resource: str) -> bool:
    """Whether a pod as a whole may ask for it."""
    return resource in (CPU, MEMORY) or resource.startswith("hugepages-")


def _latest(ask: Callable[[Pod], T]) -> Callable[[Pod], T]:
    """Keep the answer for the pod that was asked about last: several plugins ask in a row."""
    latest: Pod | None = None
    answer: T

    @wraps(ask)
    def remembered(pod: Pod) -> T:
        nonlocal latest, answer
        if pod is not latest:
            answer = ask(pod)
            latest = pod
        return answer

    return remembered


def effective(
    pod: Pod,
    *,
    use_status: bool = False,
    pod_level: bool = True,
    pod_level_resize: bool = False,
    defaults: Mapping[str, int] = NO_DEFAULTS,
) -> Amounts:
    """The pod's whole request in exact nano-units.

    `use_status` counts what running containers really hold, `pod_level_resize` the same for the
    pod as a whole, `pod_level` lets `spec.resources` override the sum of the containers, and
    `defaults` stand in for what a container does not mention.
    """
    total = of_containers(pod, defaults, use_status=use_status)
    if pod_level:
        total |= _pod_level(pod, use_status=use_status and pod_level_resize)
    _add(total, _exact(pod.spec.overhead))
    return total


def of_containers(
    pod: Pod, defaults: Mapping[str, int] = NO_DEFAULTS, *, use_status: bool = False
) -> Amounts:
    """What all containers need together at the worst moment, in exact nano-units."""
    spec, status = pod.spec, pod.status
    resizing = use_status and bool(status.container_statuses or status.init_container_statuses)
    total: Amounts = {}
    for container in spec.containers:
        statuses = status.container_statuses if resizing else ()
        _add(total, {**defaults, **_container(pod, container, statuses)})
    if not spec.init_containers:
        return total
    sidecars: Amounts = {}
    peak: Amounts = {}  # the most that is ever needed while init containers run
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


@_latest
def filter_request(pod: Pod) -> Amounts:
    """What must be free on a node: NodeResourcesFit's filter, its hints and signatures."""
    return {name: max(0, amount) for name, amount in _as_int64(_stated(pod)).items()}


@_latest
def requested(pod: Pod) -> Amounts:
    """What the pod takes from the node it is on."""
    return _as_int64(_held(pod))


@_latest
def scoring_request(pod: Pod) -> Amounts:
    """What the incoming pod adds when NodeResourcesFit scores a node.

    Pod-level requests are not looked at. That is a quirk of Kubernetes: once the pod runs, they
    count, and the containers' defaults do not.
    """
    total = effective(pod, pod_level=False, defaults=DEFAULT_REQUESTS)
    return {CPU: 0, MEMORY: 0} | _all_as_int64(total)


@_latest
def balanced_request(pod: Pod) -> Amounts:
    """What the incoming pod adds when NodeResourcesBalancedAllocation scores a node."""
    return _all_as_int64(_held(pod))


@_latest
def nonzero_requested(pod: Pod) -> tuple[int, int]:
    """Milli-CPU and bytes of a pod on a node, with something for containers that ask nothing."""
    defaults = DEFAULT_REQUESTS
    if _has_pod_level(pod):
        held = _held(pod)
        defaults = {name: default for name, default in defaults.items() if name not in held}
    total = _all_as_int64(_held(pod, defaults))
    return total.get(CPU, 0), total.get(MEMORY, 0)


def decreased(old: Pod, new: Pod) -> tuple[str, ...]:
    """The resources of which the pod now holds less, or nothing any more."""
    before, after = _held(old), _held(new)
    return tuple(
        name
        for name, amount in sorted(before.items())
        if name not in after or quantity.milli_of_nano(after[name]) < quantity.milli_of_nano(amount)
    )


def allocatable(node: Node) -> Amounts:
    """What a node has to give, in the same units as the requests, and how many pods it takes."""
    offered = _exact(node.status.allocatable)
    amounts = _as_int64(offered)
    if PODS in offered:
        amounts[PODS] = quantity.value_of_nano(offered[PODS])
    return amounts


@_latest
def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The ports that the pod takes of its node; init containers are over too soon to count."""
    sidecars = (container for container in pod.spec.init_containers if container.is_sidecar)
    return tuple(
        (port.host_ip or ANY_IP, port.protocol or "TCP", port.host_port)
        for container in (*sidecars, *pod.spec.containers)
        for port in container.ports
        if port.host_port > 0
    )


@_latest
def _stated(pod: Pod) -> Amounts:
    """What the pod's spec says; not to be changed."""
    return effective(pod)


def _held(pod: Pod, defaults: Mapping[str, int] = NO_DEFAULTS) -> Amounts:
    """What the pod holds, by its status; before it has one, what its spec says."""
    status = pod.status
    tells = status.container_statuses or status.init_container_statuses or status.resources
    if not tells and not defaults:
        return _stated(pod)
    return effective(pod, use_status=True, pod_level_resize=True, defaults=defaults)


def _container(pod: Pod, container: Container, statuses: Iterable[ContainerStatus]) -> Amounts:
    wanted = _exact(container.resources.requests)
    for status in statuses:
        if status.name == container.name:
            if status.resources is None:
                break
            given = (_exact(status.resources.requests), _exact(status.allocated_resources))
            return _while_resized(pod, wanted, *given)
    return wanted


def _pod_level(pod: Pod, *, use_status: bool) -> Amounts:
    if pod.spec.resources is None:
        return {}
    requests = pod.spec.resources.requests
    wanted = {name: quantity.nano(q) for name, q in requests.items() if has_pod_level_form(name)}
    status = pod.status
    if not use_status or status.resources is None:
        return wanted
    given = _while_resized(
        pod, wanted, _exact(status.resources.requests), _exact(status.allocated_resources)
    )
    return {name: given.get(name, 0) for name in wanted}


def _while_resized(pod: Pod, wanted: Amounts, actual: Amounts, allocated: Amounts) -> Amounts:
    """The most of what is wanted, given and promised; what the node refused is not wanted."""
    highest = {} if _is_infeasible(pod) else dict(wanted)
    _raise(highest, actual)
    _raise(highest, allocated)
    return highest


def _is_infeasible(pod: Pod) -> bool:
    condition = pod.condition("PodResizePending")
    return condition is not None and condition.reason == "Infeasible"


def _has_pod_level(pod: Pod) -> bool:
    resources = pod.spec.resources
    return resources is not None and any(map(has_pod_level_form, resources.requests))


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
    """Only the resources that nodes keep count of; all other names are dropped in silence."""
    return {name: _int64(name, n) for name, n in amounts.items() if _is_counted(name)}


def _all_as_int64(amounts: Amounts) -> Amounts:
    return {name: _int64(name, n) for name, n in amounts.items()}


def _int64(resource: str, count: int) -> int:
    return quantity.rounded_up(count, quantity.MICRO if resource == CPU else quantity.NANO)


def _is_counted(resource: str) -> bool:
    return resource in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(resource)
