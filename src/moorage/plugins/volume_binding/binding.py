"""Reserve and pre_bind: assume the changes of volumes and claims, write them, and wait.

Changes are assumed at once, so that other pods see the volumes as taken. pre_bind writes one object
after the other, then waits for the volume controllers. The first write that fails ends the attempt.
What was written before stays written: a claim that was annotated with a node keeps later attempts
there until its provisioner gives up.
"""

from typing import NamedTuple

from msgspec import structs

from moorage import plugin as mp
from moorage.plugins.volume_binding import accessible_nodes
from moorage.plugins.volume_binding.accessible_nodes import TranslationError
from moorage.plugins.volume_binding.finding import Found
from moorage.plugins.volume_binding.pod_claims import Claim, VolumeError

Volume = mp.PersistentVolume
PreBindResult = mp.Status | mp.Awaiting | tuple[mp.Request, ...]


class BindingPlan(NamedTuple):
    """The volumes and claims as they will be, and those of them that have to be written.

    An empty plan means that all of the pod's claims have their volumes.
    """

    matched: tuple[tuple[Claim, Volume], ...] = ()
    provisioned: tuple[Claim, ...] = ()
    to_write: tuple[Volume | Claim, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.matched and not self.provisioned


def plan(found: Found, node: str) -> BindingPlan:
    """How volumes and claims must change for a pod to run on a node."""
    volumes = [(claim, given_to(volume, claim)) for claim, volume in found.matched]
    claims = [pinned_to(each.claim, node) for each in found.provisioned]
    known = (*(volume for _, volume in found.matched), *(e.claim for e in found.provisioned))
    changed: list[Volume | Claim] = [*(volume for _, volume in volumes), *claims]
    to_write = [new for old, new in zip(known, changed, strict=True) if new != old]
    return BindingPlan(tuple(volumes), tuple(claims), tuple(to_write))


def given_to(volume: Volume, claim: Claim) -> Volume:
    """A volume with its claimRef set to a claim."""
    given = volume.spec.claim_ref
    planned = (claim.name, claim.namespace, claim.uid)
    if given is not None and (given.name, given.namespace, given.uid) == planned:
        return volume
    meta = volume.metadata
    if given is None or not mp.claims.refers_to(given, claim):
        marks = meta.annotations | {mp.claims.BOUND_BY_CONTROLLER: "yes"}
        meta = structs.replace(meta, annotations=marks)
    spec = structs.replace(volume.spec, claim_ref=mp.claims.reference_to(claim))
    return structs.replace(volume, metadata=meta, spec=spec)


def pinned_to(claim: Claim, node: str) -> Claim:
    """A claim with the annotation that asks for a volume on a node."""
    marks = claim.metadata.annotations | {mp.claims.SELECTED_NODE: node}
    return structs.replace(claim, metadata=structs.replace(claim.metadata, annotations=marks))


def assume(cluster: mp.Cluster, plan: BindingPlan, pod: mp.Pod) -> None:
    """Assume all changes of a plan in the cluster; if one fails, none."""
    for i, obj in enumerate(plan.to_write):
        try:
            cluster.assume(obj, pod.uid)
        except mp.AssumeError:
            restore(cluster, plan.to_write[:i])
            raise


def restore(cluster: mp.Cluster, objects: tuple[Volume | Claim, ...]) -> None:
    """Drop assumed changes that were not written."""
    for obj in objects:
        cluster.restore(obj)


class BindingProgress(NamedTuple):
    """How many objects have been written, and until when to wait for the rest."""

    written: int = 0
    until: float | None = None
    # How many requests were carried out when the next object was to be written.
    done_before: int = 0


def request(obj: Volume | Claim, pod: mp.Pod) -> mp.Request:
    """The request that writes an object."""
    if isinstance(obj, mp.PersistentVolume):
        return mp.PatchVolume.to(pod, obj)
    return mp.PatchClaim.to(pod, obj)


def await_binding(
    cluster: mp.Cluster, plan: BindingPlan, node: str, until: float, now: float
) -> mp.Status | mp.Awaiting:
    """SUCCESS once all claims have their volumes; raises when that will not be."""
    try:
        if all(_is_bound(cluster, plan, *pair, node) for pair in plan.matched) and all(
            _is_provisioned(cluster, plan, claim, node) for claim in plan.provisioned
        ):
            return mp.SUCCESS
        if now >= until:
            raise VolumeError("context deadline exceeded")
    except (VolumeError, TranslationError) as cause:
        raise VolumeError(f"binding volumes: {cause}") from cause
    return mp.Awaiting(seconds=until - now, objects=tuple(_awaited(cluster, plan, node)))


def _is_bound(
    cluster: mp.Cluster, plan: BindingPlan, claim: Claim, volume: Volume, node: str
) -> bool:
    there = cluster.get(Volume, volume.name)
    if there is None:
        text = f'persistentvolume "{volume.name}" not found'
        raise VolumeError(f"failed to check binding: {text}")
    its_claim = cluster.get(Claim, claim.key)
    if its_claim is None:
        raise VolumeError(f"failed to check binding: {mp.claims.not_found(claim.name)}")
    if _is_unseen(cluster, plan, volume, there):
        return False
    try:
        _check_access(cluster, there, node)
    except TranslationError as error:
        raise VolumeError(f"failed to translate pv to csi: {error}") from error
    given = there.spec.claim_ref
    if given is None or not given.uid:
        raise VolumeError(f'ClaimRef got reset for pv "{there.name}"')
    return mp.claims.is_fully_bound(its_claim)


def _is_provisioned(cluster: mp.Cluster, plan: BindingPlan, claim: Claim, node: str) -> bool:
    there = cluster.get(Claim, claim.key)
    if there is None:
        text = mp.claims.not_found(claim.name)
        raise VolumeError(f"failed to check provisioning pvc: {text}")
    if _is_unseen(cluster, plan, claim, there):
        return False
    marks = there.metadata.annotations
    if not marks:
        raise VolumeError(f'selectedNode annotation reset for PVC "{there.name}"')
    if marks.get(mp.claims.SELECTED_NODE, "") != node:
        raise VolumeError(f'provisioning failed for PVC "{there.name}"')
    if there.spec.volume_name:
        volume = cluster.get(Volume, there.spec.volume_name)
        if volume is None:
            return False  # Its watch event has not arrived.
        _check_access(cluster, volume, node)
    return mp.claims.is_fully_bound(there)


def _is_unseen(
    cluster: mp.Cluster, plan: BindingPlan, planned: Volume | Claim, there: Volume | Claim
) -> bool:
    """Whether the watch event of a write has not arrived yet.

    The write was accepted, so any other version than the one it was made from is at least as new.
    A pod that shares the claim may be about to write it; that counts while it is assumed.
    """
    if there.metadata.resource_version != planned.metadata.resource_version:
        return False
    if any(planned is obj for obj in plan.to_write):
        return True
    return there != planned and cluster.latest(type(planned), planned.key) == planned


def _check_access(cluster: mp.Cluster, volume: Volume, name: str) -> None:
    node = cluster.table.node(name)
    if node is None:
        raise VolumeError(f'failed to get node "{name}": node "{name}" not found')
    if not accessible_nodes.of_volume(cluster, volume, name).includes(node.labels):
        text = f'pv "{volume.name}" node affinity doesn\'t match node "{name}"'
        raise VolumeError(f"{text}: no matching NodeSelectorTerms")


def _awaited(
    cluster: mp.Cluster, plan: BindingPlan, node: str
) -> list[tuple[type[mp.KubeObject], str]]:
    """The objects whose change may complete the binding."""
    objects: list[tuple[type[mp.KubeObject], str]] = [(mp.Node, node)]
    for claim, volume in plan.matched:
        objects += [(Volume, volume.name), (Claim, claim.key)]
    for claim in plan.provisioned:
        objects.append((Claim, claim.key))
        there = cluster.get(Claim, claim.key)
        if there is not None and there.spec.volume_name:
            objects.append((Volume, there.spec.volume_name))
    return objects
