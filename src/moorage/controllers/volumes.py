"""The controllers of volumes on the store: `moorage.controllers.volume_binder` decides.

Decisions are made on structs; their changes are written into the stored objects, so that fields
which Moorage does not read are kept.
"""

from collections.abc import Iterable, Iterator
from typing import assert_never

from moorage.api import timestamps
from moorage.api.pod import Pod
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim
from moorage.controllers import objects, pods, storage_protection, volume_binder
from moorage.controllers.index import KIND_OF, ObjectIndex, StoredStructs
from moorage.controllers.objects import Object
from moorage.controllers.volume_binder import Decision
from moorage.controllers.writes import Create, Delete, RequeueAt, Update, Write

CLAIM, VOLUME, CLASS = "PersistentVolumeClaim", "PersistentVolume", "storage.k8s.io/StorageClass"
# How long it takes to provision a volume.
PROVISION_SECONDS = 0.5


def reconcile(obj: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    """Bind an unbound claim, reclaim a volume, or let a deleted one go that is not in use."""
    cluster = StoredStructs(index)
    decisions: list[Decision]
    if objects.kind_of(obj) == VOLUME:
        volume = index.struct(PersistentVolume, obj)
        decisions = [*volume_binder.for_volume(volume, cluster)]
        # A change of both would be made from the same version.
        decisions = decisions or [*storage_protection.for_volume(volume)]
    else:
        claim = index.struct(PersistentVolumeClaim, obj)
        decisions = [*volume_binder.for_claim(claim, cluster)]
        users = bound_users(obj, index) if objects.is_terminating(obj) else ()
        typed = (index.struct(Pod, pod) for pod in users)
        decisions = decisions or [*storage_protection.for_claim(claim, typed)]
    yield from _writes(decisions, index, now)


def reconcile_ephemeral_claims(pod: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    """Create the claims of a pod's generic ephemeral volumes; the pod owns them."""
    specs = {
        f"{objects.name(pod)}-{volume.get('name', '')}": objects.value_at(
            volume, "ephemeral", "volumeClaimTemplate", "spec"
        )
        for volume in ephemeral_volumes(pod)
    }
    for (claim,) in volume_binder.for_pod(index.struct(Pod, pod), StoredStructs(index)):
        new = objects.plain(claim)
        new["metadata"]["ownerReferences"] = [objects.controller_reference(pod)]
        yield Create({**new, "spec": specs[claim.name] or {}})


def _writes(decisions: Iterable[Decision], index: ObjectIndex, now: float) -> Iterator[Write]:
    for decision in decisions:
        match decision:
            case volume_binder.CreateStorage(obj=obj):
                yield Create(objects.plain(obj))
            case volume_binder.UpdateStorage(old=old, new=new):
                stored = index.get(KIND_OF[type(old)], old.namespace, old.name)
                assert stored is not None, "a decision is about an object of the index"
                yield Update(objects.patched(stored, objects.plain(old), objects.plain(new)))
            case volume_binder.DeleteVolume(volume=volume):
                yield Delete(objects.plain(volume))
            case volume_binder.BeginProvisioning(claim=claim, node=node):
                created_at = timestamps.to_seconds(claim.metadata.creation_timestamp, now)
                if (ready_at := created_at + PROVISION_SECONDS) > now:
                    yield RequeueAt(ready_at)
                else:
                    ended = volume_binder.provisioned(claim, node, StoredStructs(index))
                    yield from _writes(ended, index, now)
            case _:
                assert_never(decision)


def is_bound(claim: Object) -> bool:
    return objects.status(claim).get("phase") == "Bound"


def bound_users(claim: Object, index: ObjectIndex) -> Iterator[Object]:
    """The pods that use a claim and have a node."""
    for pod in index.all("Pod", objects.namespace(claim)):
        if pods.node_name(pod) and objects.name(claim) in claims_of(pod):
            yield pod


def claims_of(pod: Object) -> list[str]:
    """The names of the claims that a pod uses, those of ephemeral volumes included."""
    found = []
    for volume in objects.spec(pod).get("volumes") or ():
        if claim := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
            found.append(claim)
        elif volume.get("ephemeral"):
            found.append(f"{objects.name(pod)}-{volume.get('name', '')}")
    return found


def ephemeral_volumes(pod: Object) -> list[Object]:
    return [each for each in objects.spec(pod).get("volumes") or () if each.get("ephemeral")]
