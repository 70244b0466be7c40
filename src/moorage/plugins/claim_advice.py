"""What the storage plugins share: which pods they skip, and details about a pod's claims.

The details are for explanations: Kubernetes' reasons are counted across nodes, so they name no
claim or volume; these texts do.
"""

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from moorage import plugin as mp

ZONES = (
    mp.csi_migration.ZONE,
    mp.csi_migration.REGION,
    mp.csi_migration.BETA_ZONE,
    mp.csi_migration.BETA_REGION,
)
CLAIM_MISSING = ('persistentvolumeclaim "', "waiting for ephemeral volume controller")


class VolumePlugin:
    """A plugin about volumes, which depend on pods and storage objects anywhere."""

    depends = mp.Depends.PLACEMENTS

    def skip_key(self, state: mp.CycleState, pod: mp.Pod) -> Hashable:
        """A pod without volumes that matter is skipped for good."""
        return None if state.template.usage.has_volumes else mp.ALWAYS


def named_claims(pod: mp.Pod) -> list[str]:
    """The claims that a pod names; not those of its ephemeral volumes, which are its own."""
    return [
        claim.claim_name
        for volume in pod.spec.volumes
        if (claim := volume.persistent_volume_claim) is not None
    ]


def names_claim(
    pod: mp.Pod, old: mp.PersistentVolumeClaim | None, new: mp.PersistentVolumeClaim
) -> mp.Hint:
    """A hint: only a claim that the pod names helps it."""
    names = new.namespace == pod.namespace and new.name in named_claims(pod)
    return mp.Hint.QUEUE if names else mp.Hint.QUEUE_SKIP


class UsedClaim(NamedTuple):
    """A claim that a pod uses, and its volume; either may be missing."""

    name: str
    claim: mp.PersistentVolumeClaim | None
    volume: mp.PersistentVolume | None

    @property
    def unbound(self) -> mp.PersistentVolumeClaim | None:
        """The claim, if it exists and has no volume yet."""
        claim = self.claim
        return None if claim is None or mp.claims.is_fully_bound(claim) else claim


def used(rejection: mp.Rejection) -> Iterator[UsedClaim]:
    """The claims of the pod, in the order of its volumes."""
    pod, cluster = rejection.pod, rejection.cluster
    for name in dict.fromkeys(mp.claims.names_of(pod)):
        claim = cluster.get(mp.PersistentVolumeClaim, f"{pod.namespace}/{name}")
        bound_to = "" if claim is None else claim.spec.volume_name
        yield UsedClaim(name, claim, cluster.get(mp.PersistentVolume, bound_to))


def sentence(parts: list[str]) -> str:
    """Parts as one sentence; empty if there are none."""
    return f"{'; '.join(parts)}." if parts else ""


def missing(rejection: mp.Rejection) -> str:
    """The claims that do not exist, if that is the reason."""
    if not rejection.reason.startswith(CLAIM_MISSING):
        return ""
    names = [each.name for each in used(rejection) if each.claim is None]
    which = "claim" if len(names) == 1 else "claims"
    where = f"in namespace {rejection.pod.namespace}"
    return f"the pod uses {which} {', '.join(names)}, not there {where}." if names else ""


def volume_lost(rejection: mp.Rejection) -> str:
    """The claims that are bound to a volume that does not exist."""
    return sentence(
        [
            f"claim {name} is bound to {claim.spec.volume_name}, which does not exist"
            for name, claim, volume in used(rejection)
            if claim is not None and mp.claims.is_fully_bound(claim) and volume is None
        ]
    )


def zones(volume: mp.PersistentVolume) -> str:
    """The zone and region labels of a volume."""
    labels = [f"{key}={volume.labels[key]}" for key in ZONES if key in volume.labels]
    return f", which is in {' and '.join(labels)}" if labels else ""
