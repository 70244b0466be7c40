"""Claims: which claim a pod's volume stands for, and what claims and volumes say of each other.

Shared by all that look at storage; where a pod may go is not decided here.
"""

from collections.abc import Iterator

from moorage.api import quantity
from moorage.api.pod import Pod, Volume
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim, TypedReference

CLASS = "volume.beta.kubernetes.io/storage-class"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
# The provisioner of classes whose volumes are made by hand.
NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


def name_of(pod: Pod, volume: Volume) -> str | None:
    """The name of the claim behind a pod's volume; None for a volume without one."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.name}-{volume.name}" if volume.ephemeral is not None else None


def names_of(pod: Pod) -> Iterator[str]:
    """The names of all claims that a pod uses, in the order of its volumes."""
    for volume in pod.spec.volumes:
        name = name_of(pod, volume)
        if name is not None:
            yield name


def uses(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether one of a pod's volumes stands for this claim."""
    return pod.namespace == claim.namespace and claim.name in names_of(pod)


def is_made_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Whether the claim of a generic ephemeral volume is the pod's own."""
    owner = claim.controller
    return claim.namespace == pod.namespace and owner is not None and owner.uid == pod.uid


def not_made_for(claim: PersistentVolumeClaim, pod: Pod) -> str:
    """Kubernetes' complaint about somebody else's claim under the name of the pod's own."""
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def not_found(name: str) -> str:
    """Kubernetes' words for a claim that is not there."""
    return f'persistentvolumeclaim "{name}" not found'


def class_of(obj: PersistentVolumeClaim | PersistentVolume) -> str:
    """The storage class of a claim or a volume; the old annotation counts even if it is empty."""
    annotated = obj.metadata.annotations.get(CLASS)
    return obj.spec.storage_class_name or "" if annotated is None else annotated


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether claim and volume have found each other for good."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def refers_to(reference: TypedReference, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume's `claimRef` means this claim, and not a namesake."""
    same = reference.name == claim.name and reference.namespace == claim.namespace
    return same and reference.uid in ("", claim.uid)


def requested_nano(claim: PersistentVolumeClaim) -> int:
    """How much storage a claim asks for, exactly."""
    return quantity.nano(claim.spec.resources.requests.get("storage", 0))


def capacity_nano(volume: PersistentVolume) -> int:
    """How much storage a volume has, exactly."""
    return quantity.nano(volume.spec.capacity.get("storage", 0))
