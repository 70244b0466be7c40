"""Performer: applies a request to the cluster in memory, and returns the outcome."""

from typing import assert_never

from msgspec.structs import replace

from moorage.api.meta import KubeObject, ObjectMeta
from moorage.api.pod import Pod
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim
from moorage.core.effects import Done, Failed, Outcome, Unknown
from moorage.framework.effects import (
    BindPod,
    DeletePod,
    EmitEvent,
    LookUpPod,
    PatchClaim,
    PatchPodStatus,
    PatchVolume,
    Request,
)
from moorage.sim import refusals
from moorage.sim.cluster import MemoryCluster
from moorage.sim.faults import FaultDecision
from moorage.sim.refusals import RequestRefused


def perform(
    cluster: MemoryCluster,
    request: Request,
    fault: FaultDecision,
    now: float,
    events: list[EmitEvent],
) -> Outcome:
    """Perform a request as far as its fault allows; returns what the scheduler learns."""
    outcome: Outcome = Failed(fault.failed)
    if fault.performed:
        try:
            outcome = Done(_apply(cluster, request, now, events))
        except RequestRefused as refusal:
            outcome = Failed(str(refusal), missing=_is_missing(cluster, request))
    return Unknown(fault.unknown) if fault.unknown else outcome


def _is_missing(cluster: MemoryCluster, request: Request) -> bool:
    """Whether the object of a request does not exist; another UID is another object."""
    found: KubeObject | None
    match request:
        case PatchVolume(name=name, uid=uid):
            found = cluster.get(PersistentVolume, name)
        case PatchClaim(uid=uid):
            found = cluster.get(PersistentVolumeClaim, request.key)
        case _:
            uid, found = request.pod.uid, cluster.get(Pod, request.pod.key)
    return found is None or found.uid != uid


def _apply(
    cluster: MemoryCluster, request: Request, now: float, events: list[EmitEvent]
) -> Pod | None:
    match request:
        case EmitEvent():
            events.append(request)
        case BindPod(pod=ref, node=node):
            cluster.bind(ref.key, ref.uid, node, now)
        case PatchPodStatus(pod=ref, condition=condition, nominated_node_name=nominated):
            cluster.patch_status(ref.key, ref.uid, now, condition, nominated)
        case DeletePod(pod=ref):
            cluster.pod(ref.key, ref.uid)  # Refused if it is another pod with that name.
            cluster.delete(Pod, ref.key, now)
        case LookUpPod(pod=ref):
            pod = cluster.get(Pod, ref.key)
            return pod if pod is not None and pod.uid == ref.uid else None
        case PatchVolume():
            _patch_volume(cluster, request)
        case PatchClaim():
            _patch_claim(cluster, request)
        case _:
            assert_never(request)
    return None


def _patch_volume(cluster: MemoryCluster, request: PatchVolume) -> None:
    volume = cluster.get(PersistentVolume, request.name)
    if volume is None:
        raise refusals.not_found("persistentvolumes", request.name)
    refusals.check_uid("persistentvolumes", volume, request.uid)
    meta = _annotated(volume.metadata, request.annotations, request.version)
    spec = replace(volume.spec, claim_ref=request.claim)
    cluster.update(replace(volume, metadata=meta, spec=spec))


def _patch_claim(cluster: MemoryCluster, request: PatchClaim) -> None:
    claim = cluster.get(PersistentVolumeClaim, request.key)
    if claim is None:
        raise refusals.not_found("persistentvolumeclaims", request.name)
    refusals.check_uid("persistentvolumeclaims", claim, request.uid)
    meta = _annotated(claim.metadata, request.annotations, request.version)
    cluster.update(replace(claim, metadata=meta))


def _annotated(meta: ObjectMeta, annotations: dict[str, str], version: str) -> ObjectMeta:
    """With the version of the request: the cluster refuses one that is not the latest."""
    return replace(meta, annotations=meta.annotations | annotations, resource_version=version)
