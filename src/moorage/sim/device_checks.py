"""Invariants of device claims, checked from outside: the cluster is the truth.

    after each reservation   a scheduler has given no device to two claims, and no more of a shared
                             device than there is
    when finished            every user of a claim still needs it and is where the devices are, and
                             every claim that was created for a pod has that pod: none is leaked

Two schedulers can give one device to two claims, because the API server does not check, and neither
knows the requests of the other. That is excused.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from moorage.api import quantity, selectors
from moorage.api.devices import DeviceRequestAllocationResult, ResourceClaim, ResourceSlice
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.server_requests import ReserveResourceClaim
from moorage.controllers import claims
from moorage.core.observations import Added, Deleted, Observation, Updated
from moorage.sim.cluster import MemoryCluster

DeviceKey = tuple[str, str, str]  # driver, pool, device


class DeviceViolation(NamedTuple):
    """What is wrong, and the UID of the pod that it is about."""

    uid: str
    text: str


class DeviceChecks:
    """Knows which claims have which devices, and which scheduler allocated them."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._claims: dict[DeviceKey, dict[str, DeviceRequestAllocationResult]] = {}
        self._devices: dict[str, list[DeviceKey]] = {}
        # UID of an allocated claim -> the scheduler that allocated it.
        self._by: dict[str, int] = {}
        cluster.watch(self._changed)

    def reserved(self, replica: int, request: ReserveResourceClaim) -> DeviceViolation | None:
        """A scheduler wrote an allocation; returns what is wrong with it."""
        claim = self._cluster.get(ResourceClaim, request.key)
        if request.allocation is None or claim is None or claim.status.allocation is None:
            return None
        self._by[claim.uid] = replica
        for key in self._devices.get(claim.uid, ()):
            here = {
                uid: result
                for uid, result in self._claims[key].items()
                if self._by.get(uid) == replica and not result.admin_access
            }
            if problem := self._conflict(key, claim.uid, here):
                return DeviceViolation(request.pod.uid, f"claim {claim.key}: {problem}")
        return None

    def _conflict(
        self, key: DeviceKey, uid: str, here: dict[str, DeviceRequestAllocationResult]
    ) -> str:
        if uid not in here or len(here) == 1:
            return ""
        if any(result.share_id is None for result in here.values()):
            return f"device {'/'.join(key)} is allocated {len(here)} times"
        used: Counter[str] = Counter()
        for result in here.values():
            used.update({n: quantity.nano(a) for n, a in result.consumed_capacity.items()})
        capacity = self._capacity(key)
        over = [name for name, amount in used.items() if amount > capacity.get(name, amount)]
        return f"{over[0]} of shared device {'/'.join(key)} is exceeded" if over else ""

    def _capacity(self, key: DeviceKey) -> dict[str, int]:
        """The capacity of a device; nothing if its slice is gone."""
        for each in self._cluster.all(ResourceSlice):
            if (each.spec.driver, each.spec.pool.name) == key[:2]:
                for device in each.spec.devices:
                    if device.name == key[2]:
                        return {n: quantity.nano(c.value) for n, c in device.capacity.items()}
        return {}

    def when_finished(self) -> Iterator[DeviceViolation]:
        """Nothing is left to do: returns the claims that should have been released."""
        for claim in self._cluster.all(ResourceClaim):
            for user in claim.status.reserved_for:
                pod = self._cluster.get(Pod, f"{claim.namespace}/{user.name}")
                if not claims.needs_claims(pod, user.uid):
                    text = f"claim {claim.key} is reserved for {user.name}, which has ended"
                    yield DeviceViolation(user.uid, text)
                elif pod is not None and not self._is_usable(claim, pod):
                    text = f"{pod.key} is on {pod.node_name}, the devices of {claim.key} are not"
                    yield DeviceViolation(user.uid, text)
            owner = claims.owning_pod(claim)
            if owner is not None:
                pod = self._cluster.get(Pod, f"{claim.namespace}/{owner.name}")
                if not claims.needs_claims(pod, owner.uid):
                    text = f"claim {claim.key} outlives its pod {owner.name}"
                    yield DeviceViolation(owner.uid, text)

    def _is_usable(self, claim: ResourceClaim, pod: Pod) -> bool:
        """Whether the node of a pod can use the devices of its claim."""
        allocation, node = claim.status.allocation, self._cluster.get(Node, pod.node_name)
        if allocation is None or allocation.node_selector is None or node is None:
            return True
        matcher = selectors.compile_node_selector(allocation.node_selector)
        return matcher.matches(node.labels, node.name)

    def _changed(self, observation: Observation) -> None:
        match observation:
            case Added(obj=ResourceClaim() as claim) | Updated(obj=ResourceClaim() as claim):
                self._drop(claim)
                if claim.status.allocation is not None:
                    for result in claim.status.allocation.devices.results:
                        key = (result.driver, result.pool, result.device)
                        self._claims.setdefault(key, {})[claim.uid] = result
                        self._devices.setdefault(claim.uid, []).append(key)
                else:
                    self._by.pop(claim.uid, None)
            case Deleted(obj=ResourceClaim() as claim):
                self._drop(claim)
                self._by.pop(claim.uid, None)

    def _drop(self, claim: ResourceClaim) -> None:
        for key in self._devices.pop(claim.uid, ()):
            self._claims[key].pop(claim.uid, None)
