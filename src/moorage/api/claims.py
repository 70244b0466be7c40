"""Claims: which claim a pod's volume uses, and how claims and volumes refer to each other.

Shared by everything that reads storage; knows nothing of scheduling.
"""

from collections.abc import Iterator

from moorage.api import quantity
from moorage.api.pod import Pod, Volume
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim, TypedReference

CLASS = "volume.beta.kubernetes.io/storage-class"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
# The provisioner of classes whose volumes are created by administrators.
NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


def name_of(pod: Pod, volume: Volume) -> str | None:
    """The name of the claim of a pod's volume; None for a volume without one."""
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
    """Whether one of a pod's volumes uses this claim."""
    return pod.namespace == claim.namespace and claim.name in names_of(pod)


def is_made_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Whether the claim of a generic ephemeral volume was created for this pod."""
    owner = claim.controller
    return claim.namespace == pod.namespace and owner is not None and owner.uid == pod.uid


def not_made_for(claim: PersistentVolumeClaim, pod: Pod) -> str:
    """Kubernetes' text for a claim that has the name of the pod's own, but another owner."""
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def not_found(name: str) -> str:
    """Kubernetes' text for a claim that does not exist."""
    return f'persistentvolumeclaim "{name}" not found'


def class_of(obj: PersistentVolumeClaim | PersistentVolume) -> str:
    """The storage class of a claim or a volume; the old annotation has precedence, even empty."""
    annotated = obj.metadata.annotations.get(CLASS)
    return obj.spec.storage_class_name or "" if annotated is None else annotated


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the binding of claim and volume is complete."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def reference_to(claim: PersistentVolumeClaim) -> TypedReference:
    """What a volume's claimRef has for a claim."""
    return TypedReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        resource_version=claim.metadata.resource_version,
    )


def refers_to(reference: TypedReference, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume's `claimRef` is this claim, and not another of the same name."""
    same = reference.name == claim.name and reference.namespace == claim.namespace
    return same and reference.uid in ("", claim.uid)


def requested_nano(claim: PersistentVolumeClaim) -> int:
    """The storage that a claim requests, in exact nano-units."""
    return quantity.nano(claim.spec.resources.requests.get("storage", 0))


def capacity_nano(volume: PersistentVolume) -> int:
    """The capacity of a volume, in exact nano-units."""
    return quantity.nano(volume.spec.capacity.get("storage", 0))
