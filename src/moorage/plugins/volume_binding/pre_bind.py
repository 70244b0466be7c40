"""PreBind: write what was reserved, one object after the other, then wait for the controllers.

The first write that fails ends the attempt; what was written before it stays written, and a claim
that was pinned to a node keeps later attempts there until its provisioner gives up.
"""

from typing import NamedTuple

from moorage import plugin as mp
from moorage.plugins.volume_binding import migration
from moorage.plugins.volume_binding.assuming import Record
from moorage.plugins.volume_binding.pod_claims import Claim, VolumeError

Volume = mp.PersistentVolume
Answer = mp.Status | mp.Awaiting | tuple[mp.Request, ...]


class Progress(NamedTuple):
    """How many objects have been written, and until when to wait for the rest."""

    written: int = 0
    until: float | None = None


def request(obj: Volume | Claim, pod: mp.Pod) -> mp.Request:
    """The request that writes an object."""
    if isinstance(obj, mp.PersistentVolume):
        return mp.PatchVolume.to(pod, obj)
    return mp.PatchClaim.to(pod, obj)


def await_binding(
    cluster: mp.Cluster, record: Record, node: str, until: float, now: float
) -> mp.Status | mp.Awaiting:
    """SUCCESS once all claims have their volumes; raises when that will not be."""
    try:
        if all(_is_bound(cluster, record, *pair, node) for pair in record.matched) and all(
            _is_provisioned(cluster, record, claim, node) for claim in record.provisioned
        ):
            return mp.SUCCESS
        if now >= until:
            raise VolumeError("context deadline exceeded")
    except VolumeError as cause:
        raise VolumeError(f"binding volumes: {cause}") from cause
    return mp.Awaiting(seconds=until - now, objects=tuple(_awaited(cluster, record, node)))


def _is_bound(cluster: mp.Cluster, record: Record, claim: Claim, volume: Volume, node: str) -> bool:
    there = cluster.get(Volume, volume.name)
    if there is None:
        text = f'persistentvolume "{volume.name}" not found'
        raise VolumeError(f"failed to check binding: {text}")
    its_claim = cluster.get(Claim, claim.key)
    if its_claim is None:
        raise VolumeError(f"failed to check binding: {mp.claims.not_found(claim.name)}")
    if _is_unseen(cluster, record, volume, there):
        return False
    _check_reach(cluster, there, node)
    given = there.spec.claim_ref
    if given is None or not given.uid:
        raise VolumeError(f'ClaimRef got reset for pv "{there.name}"')
    return mp.claims.is_fully_bound(its_claim)


def _is_provisioned(cluster: mp.Cluster, record: Record, claim: Claim, node: str) -> bool:
    there = cluster.get(Claim, claim.key)
    if there is None:
        text = mp.claims.not_found(claim.name)
        raise VolumeError(f"failed to check provisioning pvc: {text}")
    if _is_unseen(cluster, record, claim, there):
        return False
    marks = there.metadata.annotations
    if not marks:
        raise VolumeError(f'selectedNode annotation reset for PVC "{there.name}"')
    if marks.get(mp.claims.SELECTED_NODE, "") != node:
        raise VolumeError(f'provisioning failed for PVC "{there.name}"')
    if there.spec.volume_name:
        volume = cluster.get(Volume, there.spec.volume_name)
        if volume is None:
            return False  # Its news is still on the way.
        _check_reach(cluster, volume, node)
    return mp.claims.is_fully_bound(there)


def _is_unseen(
    cluster: mp.Cluster, record: Record, wanted: Volume | Claim, there: Volume | Claim
) -> bool:
    """Whether the news of a write is still on the way.

    Ours was accepted, so any version but the one that it was made from is no older. A pod that
    shares the claim may be about to write it; that counts for as long as it is assumed.
    """
    if there.metadata.resource_version != wanted.metadata.resource_version:
        return False
    if any(wanted is obj for obj in record.to_write):
        return True
    return there != wanted and cluster.latest(type(wanted), wanted.key) == wanted


def _check_reach(cluster: mp.Cluster, volume: Volume, name: str) -> None:
    node = cluster.table.node(name)
    if node is None:
        raise VolumeError(f'failed to get node "{name}": node "{name}" not found')
    if not migration.reach_from(cluster, volume, name).includes(node.labels):
        text = f'pv "{volume.name}" node affinity doesn\'t match node "{name}"'
        raise VolumeError(f"{text}: no matching NodeSelectorTerms")


def _awaited(
    cluster: mp.Cluster, record: Record, node: str
) -> list[tuple[type[mp.KubeObject], str]]:
    """What has to move before it is worth looking again."""
    objects: list[tuple[type[mp.KubeObject], str]] = [(mp.Node, node)]
    for claim, volume in record.matched:
        objects += [(Volume, volume.name), (Claim, claim.key)]
    for claim in record.provisioned:
        objects.append((Claim, claim.key))
        there = cluster.get(Claim, claim.key)
        if there is not None and there.spec.volume_name:
            objects.append((Volume, there.spec.volume_name))
    return objects
