"""The device claims of a pod: looking them up, and what has to be allocated."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from moorage import plugin as mp
from moorage.plugins.dynamic_resources import plan
from moorage.plugins.dynamic_resources.plan import AllocationPlan, Features

Claim = mp.ResourceClaim
ClaimLookupError = mp.resource_claims.ClaimLookupError

MOST_PLANS = 256

_encode = msgspec.msgpack.Encoder().encode


def look_up(cluster: mp.Cluster, pod: mp.Pod) -> list[Claim]:
    """The claims of a pod in order, as they will be; raises ClaimLookupError."""
    found = []
    for name, from_template in mp.resource_claims.names_of(pod):
        key = f"{pod.namespace}/{name}"
        claim = cluster.latest(Claim, key)
        if claim is None:
            raise ClaimLookupError(f'could not find ResourceClaim "{key}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimLookupError(f'resourceclaim "{name}" is being deleted')
        if from_template and not mp.resource_claims.is_made_for(claim, pod):
            text = f"was not created for Pod {pod.key} (Pod is not owner)"
            raise ClaimLookupError(f"ResourceClaim {key} {text}")
        found.append(claim)
    return found


def is_allocated(claim: Claim) -> bool:
    """Whether a claim has its devices."""
    return claim.status.allocation is not None


def is_in_flight(cluster: mp.Cluster, claim: Claim) -> bool:
    """Whether another pod's binding cycle is about to write the claim's allocation."""
    return cluster.is_held(Claim, claim.key)


def unusable_request(cluster: mp.Cluster, claim: Claim) -> mp.Status | None:
    """Why a claim cannot be allocated on any node; None if nothing is known against it."""
    for request in claim.spec.devices.requests or ():
        if request.exactly is not None:
            wanted = [(request.name, request.exactly.device_class_name)]
        elif request.first_available:
            if not cluster.has_feature(mp.feature_gates.PRIORITIZED_LIST):
                where = f"resource claim {claim.key}, request {request.name}"
                text = "has subrequests, but the DRAPrioritizedList feature is disabled"
                return mp.unresolvable(f"{where}: {text}")
            wanted = [
                (f"{request.name}/{each.name}", each.device_class_name)
                for each in request.first_available
            ]
        else:
            text = f"resource claim {claim.key}, request {request.name}: unknown request type"
            return mp.unresolvable(text)
        for name, device_class in wanted:
            if not device_class:
                raise mp.PluginFailure(f"request {name}: unsupported request type")
            if cluster.get(mp.DeviceClass, device_class) is None:
                text = f"request {name}: device class {device_class} does not exist"
                return mp.unresolvable(text)
    return None


@dataclass(slots=True)
class Plans:
    """Compiled claims by content, for the device classes as they are now."""

    cluster: mp.Cluster
    _version: int = -1
    _by_content: dict[bytes, AllocationPlan] = field(default_factory=dict)

    def of(self, specs: Sequence[mp.DeviceClaim]) -> AllocationPlan:
        """The plan for claims with these specs."""
        version = self.cluster.version_of(mp.DeviceClass)
        if version != self._version or len(self._by_content) >= MOST_PLANS:
            self._by_content.clear()
            self._version = version
        content = _encode(tuple(specs))
        found = self._by_content.get(content)
        if found is None:
            classes = {each.name: each for each in self.cluster.all(mp.DeviceClass)}
            found = self._by_content[content] = plan.compile_claims(
                specs, classes, Features.of(self.cluster)
            )
        return found
