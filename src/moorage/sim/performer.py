"""Performer: applies a request to the cluster in memory, and returns the outcome."""

from typing import TypeVar, assert_never

from msgspec.structs import replace

from moorage.api import resource_claims, server_requests
from moorage.api.devices import ResourceClaim
from moorage.api.pod import Pod
from moorage.api.pod_groups import PodGroup
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim
from moorage.cluster import status_errors
from moorage.cluster.status_errors import (
    AlreadyExistsError,
    NotFoundError,
    StatusError,
    WrongUidError,
)
from moorage.core.effects import Done, Failed, Outcome, Unknown
from moorage.sim.clock import timestamp
from moorage.sim.cluster import RESOURCE_OF, MemoryCluster
from moorage.sim.faults import FaultDecision
from moorage.sim.pod_states import with_condition

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)


def perform(
    cluster: MemoryCluster,
    request: server_requests.Request,
    fault: FaultDecision,
    now: float,
    events: list[server_requests.EmitEvent],
) -> Outcome:
    """Perform a request as far as its fault allows; returns what the scheduler learns."""
    outcome: Outcome = Failed(fault.failed)
    if fault.performed:
        try:
            if isinstance(request, server_requests.ClaimRequest):
                outcome = Done(claim=_change_claim(cluster, request, now))
            else:
                outcome = Done(_apply(cluster, request, now, events))
        except resource_claims.ClaimChangedError as changed:
            outcome = Failed(str(changed))
        except StatusError as error:
            # Another UID is another object: the one that was meant does not exist.
            outcome = Failed(str(error), missing=isinstance(error, NotFoundError | WrongUidError))
    return Unknown(fault.unknown) if fault.unknown else outcome


ApiRequest = (
    server_requests.BindPod
    | server_requests.PatchPodStatus
    | server_requests.PatchPodGroupStatus
    | server_requests.EmitEvent
    | server_requests.DeletePod
    | server_requests.LookUpPod
    | server_requests.PatchVolume
    | server_requests.PatchClaim
)


def _apply(
    cluster: MemoryCluster, request: ApiRequest, now: float, events: list[server_requests.EmitEvent]
) -> Pod | None:
    match request:
        case server_requests.EmitEvent():
            events.append(request)
        case server_requests.BindPod(pod=ref, node=node):
            cluster.bind(ref.key, ref.uid, node, now)
        case server_requests.PatchPodStatus(
            pod=ref, condition=condition, nominated_node_name=nominated
        ):
            patched = cluster.patch_status(ref.key, ref.uid, now, condition, nominated)
            if (special := request.extended_resource_claim_status) is not None:
                status = replace(patched.status, extended_resource_claim_status=special)
                cluster.write_status(patched, status)
        case server_requests.PatchPodGroupStatus(condition=condition):
            group = cluster.existing(PodGroup, request.key, request.uid)
            conditions = with_condition(group.status.conditions, condition, now)
            cluster.write(replace(group, status=replace(group.status, conditions=conditions)))
        case server_requests.DeletePod(pod=ref):
            cluster.existing(Pod, ref.key, ref.uid)  # Refused if it is another pod with that name.
            cluster.delete(Pod, ref.key, now)
        case server_requests.LookUpPod(pod=ref):
            pod = cluster.get(Pod, ref.key)
            return pod if pod is not None and pod.uid == ref.uid else None
        case server_requests.PatchVolume():
            volume = cluster.existing(PersistentVolume, request.name, request.uid)
            spec = replace(volume.spec, claim_ref=request.claim)
            cluster.update(replace(_annotated(volume, request), spec=spec))
        case server_requests.PatchClaim():
            claim = cluster.existing(PersistentVolumeClaim, request.key, request.uid)
            cluster.update(_annotated(claim, request))
        case _:
            assert_never(request)
    return None


def _change_claim(
    cluster: MemoryCluster, request: server_requests.ClaimRequest, now: float
) -> ResourceClaim | None:
    """Create or change a device claim; returns it as it is afterwards, None if it was deleted."""
    ref = request.pod
    if isinstance(request, server_requests.CreateResourceClaim):
        try:
            return cluster.create(request.claim, now)
        except AlreadyExistsError:
            known = cluster.get(ResourceClaim, request.claim.key)
            if known is None or (known.controller or ref).uid != ref.uid:
                raise
            return known
    if isinstance(request, server_requests.ReserveResourceClaim):
        known = cluster.get(ResourceClaim, request.key)
        if known is not None and known.uid != request.uid:
            known = None
        pod, at = (ref.name, ref.uid), timestamp(now)
        claim = resource_claims.reserved(known, request.key, pod, request.allocation, at)
    else:
        claim = cluster.existing(ResourceClaim, request.key, request.uid)
    match request:
        case server_requests.ReleaseResourceClaim():
            claim = resource_claims.released(claim, ref.uid)
        case server_requests.DeallocateResourceClaim(version=version):
            if claim.metadata.resource_version != version:
                raise status_errors.modified(RESOURCE_OF[ResourceClaim], claim.name)
            claim = resource_claims.deallocated(claim)
        case server_requests.DeleteResourceClaim():
            cluster.write(resource_claims.without_finalizer(claim))
            if cluster.get(ResourceClaim, request.key) is not None:
                cluster.delete(ResourceClaim, request.key, now)
            return None
    return cluster.write(claim)


def _annotated(obj: T, request: server_requests.PatchVolume | server_requests.PatchClaim) -> T:
    """With the version of the request: the cluster refuses one that is not the latest."""
    annotations = obj.metadata.annotations | request.annotations
    meta = replace(obj.metadata, annotations=annotations, resource_version=request.version)
    return replace(obj, metadata=meta)
