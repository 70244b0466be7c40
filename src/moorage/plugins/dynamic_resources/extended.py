"""Extended resources that devices serve: the special claim of a pod, which differs by node.

A container may request `example.com/gpu: 2` without a claim. If a device class serves the resource,
and the node's kubelet does not offer it, the scheduler allocates devices in a claim of its own. It
exists in memory only until the pod is bound.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from moorage import plugin as mp

IN_MEMORY_NAME = "<extended-resources>"
LEFTOVER = mp.unresolvable("cannot schedule extended resource claim")
CANNOT_FIT = mp.unresolvable("cannot fit resource")


class ExtendedRequest(NamedTuple):
    """The requests of a special claim, and which container uses which."""

    requests: tuple[mp.DeviceRequest, ...]
    mappings: tuple[mp.ContainerExtendedResourceRequest, ...]


def requested(pod: mp.Pod) -> tuple[str, ...]:
    """The resources that a pod requests and that devices might serve, sorted."""
    amounts = mp.requests.filter_request(pod)
    return tuple(
        sorted(name for name, n in amounts.items() if n and mp.device_resources.may_be_served(name))
    )


class SpecialClaims:
    """The special claims that exist, by the UID of their pod; follows the changes of claims."""

    def __init__(self, cluster: mp.Cluster) -> None:
        self._cluster = cluster
        self._changes = mp.Cursor(cluster.changes_of(mp.ResourceClaim))
        self._keys: dict[str, str] = {}
        self._owners: dict[str, str] = {}

    def of(self, pod: mp.Pod) -> mp.ResourceClaim | None:
        """The special claim of an earlier attempt, if it still exists."""
        self._refresh()
        key = self._keys.get(pod.uid)
        return None if key is None else self._cluster.get(mp.ResourceClaim, key)

    def _refresh(self) -> None:
        if self._changes.is_current:
            return
        changed = self._changes.changed()
        if changed is None:
            self._keys, self._owners = {}, {}
            changed = [claim.key for claim in self._cluster.all(mp.ResourceClaim)]
        for key in changed:
            if (uid := self._owners.pop(key, None)) is not None:
                self._keys.pop(uid, None)
            claim = self._cluster.get(mp.ResourceClaim, key)
            if claim is not None and mp.resource_claims.is_extended(claim) and claim.controller:
                self._keys[claim.controller.uid] = key
                self._owners[key] = claim.controller.uid
        self._changes.commit()


def in_memory_claim(pod: mp.Pod) -> mp.ResourceClaim:
    """The special claim before it is created: without requests, which depend on the node."""
    owner = mp.OwnerReference(
        api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True
    )
    prefix = f"{pod.name}-extended-resources-"
    # Random in Kubernetes; derived from the pod here, so that a lost response does no harm.
    suffix = hashlib.sha256(pod.uid.encode()).hexdigest()[:5]
    meta = mp.ObjectMeta(
        name=prefix[:248] + suffix,
        generate_name=prefix,
        namespace=pod.namespace,
        uid=f"{IN_MEMORY_NAME}/{pod.uid}",
        owner_references=(owner,),
        annotations={mp.resource_claims.EXTENDED_RESOURCE_CLAIM: "true"},
    )
    version = mp.KINDS["ResourceClaim"].api_version
    return mp.ResourceClaim(api_version=version, kind="ResourceClaim", metadata=meta)


def is_in_memory(claim: mp.ResourceClaim) -> bool:
    """Whether a special claim does not exist yet."""
    return claim.uid.startswith(IN_MEMORY_NAME)


def name_of(claim: mp.ResourceClaim) -> str:
    """The name that texts give a claim; a special claim has none of its own before it exists."""
    return IN_MEMORY_NAME if is_in_memory(claim) else claim.name


def request_devices(pod: mp.Pod, classes: Mapping[str, str]) -> ExtendedRequest:
    """The requests for resources that devices serve on a node, with their classes.

    An init container ends before the next one starts. So it can use devices of later containers,
    and of what init containers need beyond that, only the largest part is requested.
    """
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    short_lived = [i for i, each in enumerate(pod.spec.init_containers) if not each.is_sidecar]
    requests: list[mp.DeviceRequest] = []
    mappings: list[mp.ContainerExtendedResourceRequest] = []
    for resource in sorted(classes):
        device_class = classes[resource]
        lasting: dict[int, mp.DeviceRequest] = {}
        for i, container in enumerate(containers):
            if i not in short_lived and (amount := _amount(container, resource)):
                request = _request(i, container, resource, device_class, amount)
                lasting[i] = request
                mappings.append(_mapping(container, resource, request.name))
        own, extra = _for_init_containers(
            [(i, containers[i]) for i in short_lived], resource, device_class, lasting
        )
        mappings += own
        requests += [*extra, *lasting.values()]
    ordered = sorted(requests, key=lambda request: request.name)
    return ExtendedRequest(tuple(ordered), tuple(mappings))


def _for_init_containers(
    containers: Sequence[tuple[int, mp.Container]],
    resource: str,
    device_class: str,
    lasting: Mapping[int, mp.DeviceRequest],
) -> tuple[list[mp.ContainerExtendedResourceRequest], list[mp.DeviceRequest]]:
    """The mappings of init containers that end, and the one request that is left of theirs."""
    used: list[tuple[mp.Container, str]] = []
    extra: list[mp.DeviceRequest] = []
    for i, container in containers:
        missing = _amount(container, resource)
        for later in sorted(lasting):
            if later >= i and missing > 0:
                used.append((container, lasting[later].name))
                missing -= _count(lasting[later])
        if missing > 0:
            request = _request(i, container, resource, device_class, missing)
            extra.append(request)
            used.append((container, request.name))
    largest = max(extra, key=_count, default=None)  # The first of several.
    names = {request.name for request in extra}
    mappings = [
        _mapping(container, resource, largest.name if largest and name in names else name)
        for container, name in used
    ]
    return mappings, [] if largest is None else [largest]


def _count(request: mp.DeviceRequest) -> int:
    assert request.exactly is not None
    return request.exactly.count


def _amount(container: mp.Container, resource: str) -> int:
    amount = mp.quantity.nano(container.resources.requests.get(resource, 0))
    # Only whole numbers count, as in Kubernetes.
    return 0 if amount % mp.quantity.NANO else amount // mp.quantity.NANO


def _request(
    index: int, container: mp.Container, resource: str, device_class: str, count: int
) -> mp.DeviceRequest:
    position = sorted(container.resources.requests).index(resource)
    exactly = mp.ExactDeviceRequest(
        device_class_name=device_class, allocation_mode=mp.EXACT_COUNT, count=count
    )
    return mp.DeviceRequest(name=f"container-{index}-request-{position}", exactly=exactly)


def _mapping(
    container: mp.Container, resource: str, request: str
) -> mp.ContainerExtendedResourceRequest:
    return mp.ContainerExtendedResourceRequest(
        container_name=container.name, resource_name=resource, request_name=request
    )
