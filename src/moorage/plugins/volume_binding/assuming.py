"""Reserve: everybody sees a pod's volumes as taken before the world knows."""

from typing import NamedTuple

from msgspec import structs

from moorage import plugin as mp
from moorage.plugins.volume_binding.finding import Found
from moorage.plugins.volume_binding.pod_claims import Claim

Volume = mp.PersistentVolume


class Record(NamedTuple):
    """What a pod's claims get on its node, as it will be; what is so already need not be written.

    With nothing in it, all of the pod's claims have their volumes.
    """

    matched: tuple[tuple[Claim, Volume], ...] = ()
    provisioned: tuple[Claim, ...] = ()
    to_write: tuple[Volume | Claim, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.matched and not self.provisioned


def record(found: Found, node: str) -> Record:
    """What has to become of volumes and claims for a pod to run on a node."""
    volumes = [(claim, given_to(volume, claim)) for claim, volume in found.matched]
    claims = [pinned_to(each.claim, node) for each in found.provisioned]
    known: list[Volume | Claim] = [volume for _, volume in found.matched]
    known += [each.claim for each in found.provisioned]
    wanted: list[Volume | Claim] = [volume for _, volume in volumes]
    wanted += claims
    changed = [new for old, new in zip(known, wanted, strict=True) if new != old]
    return Record(tuple(volumes), tuple(claims), tuple(changed))


def given_to(volume: Volume, claim: Claim) -> Volume:
    """A volume as it is once it belongs to a claim."""
    given = volume.spec.claim_ref
    wanted = (claim.name, claim.namespace, claim.uid)
    if given is not None and (given.name, given.namespace, given.uid) == wanted:
        return volume
    reference = mp.TypedReference(
        kind="PersistentVolumeClaim",
        api_version="v1",
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        resource_version=claim.metadata.resource_version,
    )
    meta = volume.metadata
    if given is None or not mp.claims.refers_to(given, claim):
        marks = meta.annotations | {mp.claims.BOUND_BY_CONTROLLER: "yes"}
        meta = structs.replace(meta, annotations=marks)
    spec = structs.replace(volume.spec, claim_ref=reference)
    return structs.replace(volume, metadata=meta, spec=spec)


def pinned_to(claim: Claim, node: str) -> Claim:
    """A claim as it is once a volume is to be made for a node."""
    marks = claim.metadata.annotations | {mp.claims.SELECTED_NODE: node}
    return structs.replace(claim, metadata=structs.replace(claim.metadata, annotations=marks))


def assume(cluster: mp.Cluster, wanted: Record, pod: mp.Pod) -> None:
    """Let everybody see it; if that is not possible for one, then for none."""
    for i, obj in enumerate(wanted.to_write):
        try:
            cluster.assume(obj, pod.uid)
        except mp.AssumeError:
            restore(cluster, wanted.to_write[:i])
            raise


def restore(cluster: mp.Cluster, objects: tuple[Volume | Claim, ...]) -> None:
    """Give up what was assumed and not carried out."""
    for obj in objects:
        cluster.restore(obj)
