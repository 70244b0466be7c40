"""Protection of claims and volumes in use: finalizers that keep a deleted one while it is used.

    a new claim or volume                        gets its finalizer on admission
    one without it, which is not being deleted   gets it from the controller
    a deleted claim that no scheduled pod uses   loses it, and is gone
    a deleted volume that is not Bound           loses it, and is gone

As in Kubernetes, a pod that has ended uses its claims until it is deleted, because its volumes may
still be mounted; a pod without a node uses none.
"""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from msgspec.structs import replace

from moorage.api import claims
from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim
from moorage.controllers.volume_binder import BOUND, UpdateStorage

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)

FINALIZERS = {
    "PersistentVolumeClaim": "kubernetes.io/pvc-protection",
    "PersistentVolume": "kubernetes.io/pv-protection",
}
"""By kind."""


def with_finalizer(finalizers: tuple[str, ...], kind: str) -> tuple[str, ...]:
    """The finalizers of an object with that of its kind, if it has one."""
    finalizer = FINALIZERS.get(kind)
    if finalizer is None or finalizer in finalizers:
        return finalizers
    return (*finalizers, finalizer)


def for_claim(claim: PersistentVolumeClaim, pods: Iterable[Pod]) -> Iterator[UpdateStorage]:
    """Protect a claim, or release a deleted one; `pods` are all that may use it."""
    is_used = any(_uses(pod, claim) for pod in pods)
    yield from _reconcile(claim, FINALIZERS["PersistentVolumeClaim"], is_used=is_used)


def for_volume(volume: PersistentVolume) -> Iterator[UpdateStorage]:
    """Protect a volume, or release a deleted one."""
    is_used = volume.status.phase == BOUND
    yield from _reconcile(volume, FINALIZERS["PersistentVolume"], is_used=is_used)


def _reconcile(obj: T, finalizer: str, *, is_used: bool) -> Iterator[UpdateStorage]:
    meta: ObjectMeta = obj.metadata
    if meta.deletion_timestamp is None:
        if finalizer not in meta.finalizers:
            finalizers = (*meta.finalizers, finalizer)
            yield UpdateStorage(obj, replace(obj, metadata=replace(meta, finalizers=finalizers)))
    elif finalizer in meta.finalizers and not is_used:
        others = tuple(each for each in meta.finalizers if each != finalizer)
        yield UpdateStorage(obj, replace(obj, metadata=replace(meta, finalizers=others)))


def _uses(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    if not pod.node_name or pod.namespace != claim.namespace:
        return False
    for volume in pod.spec.volumes:
        if claims.name_of(pod, volume) != claim.name:
            continue
        if volume.ephemeral is None:
            return True
        if claims.is_made_for(claim, pod) and not _is_shut_down(pod):
            return True
    return False


def _is_shut_down(pod: Pod) -> bool:
    """Whether the kubelet is done with a pod; only finalizers of its own keep it."""
    return pod.is_terminating and pod.metadata.deletion_grace_period_seconds == 0
