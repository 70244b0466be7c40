"""A pod's claims: those that have a volume, and those that get one when the pod has a node."""

from typing import NamedTuple

from moorage import plugin as mp

Claim = mp.PersistentVolumeClaim

UNBOUND = mp.unresolvable("pod has unbound immediate PersistentVolumeClaims")


class VolumeError(mp.PluginFailure):
    """An error with a volume; the text is Kubernetes'."""


class Delayed(NamedTuple):
    """A claim that gets its volume when its pod has a node, and its class."""

    claim: Claim
    storage_class: mp.StorageClass

    @property
    def selected_node(self) -> str | None:
        """The node for which an earlier attempt requested a volume."""
        return self.claim.metadata.annotations.get(mp.claims.SELECTED_NODE)


class PodClaims(NamedTuple):
    """The claims of a pod, in the order of its volumes."""

    bound: tuple[Claim, ...] = ()
    delayed: tuple[Delayed, ...] = ()


def read_claims(cluster: mp.Cluster, pod: mp.Pod) -> PodClaims | mp.Status:
    """The claims of a pod, SKIP if it has none, or a rejection for all nodes."""
    keys: list[str] = []
    for volume in pod.spec.volumes:
        name = mp.claims.name_of(pod, volume)
        if name is not None:
            key = f"{pod.namespace}/{name}"
            why = _problem(cluster.get(Claim, key), pod, volume, name)
            if why:
                return mp.unresolvable(why)
            keys.append(key)
    if not keys:
        return mp.SKIP
    bound: list[Claim] = []
    delayed: list[Delayed] = []
    immediate = False
    for key in keys:
        claim = cluster.latest(Claim, key)
        assert claim is not None, f"claim {key} was found just before"
        if mp.claims.is_fully_bound(claim):
            bound.append(claim)
            continue
        waits_with = _delaying_class(cluster, claim)
        if waits_with is None or claim.spec.volume_name:
            immediate = True
        else:
            delayed.append(Delayed(claim, waits_with))
    return UNBOUND if immediate else PodClaims(tuple(bound), tuple(delayed))


def _problem(claim: Claim | None, pod: mp.Pod, volume: mp.Volume, name: str) -> str:
    """Why a claim cannot be used; empty if it can."""
    if claim is None and volume.ephemeral is not None:
        return (
            f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        )
    if claim is None:
        return mp.claims.not_found(name)
    if claim.status.phase == "Lost":
        lost = claim.spec.volume_name
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{lost}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    if volume.ephemeral is not None and not mp.claims.is_made_for(claim, pod):
        return mp.claims.not_made_for(claim, pod)
    return ""


def _delaying_class(cluster: mp.Cluster, claim: Claim) -> mp.StorageClass | None:
    """The class of a claim, if it makes the claim wait for a pod."""
    name = mp.claims.class_of(claim)
    storage_class = cluster.get(mp.StorageClass, name) if name else None
    if storage_class is None:
        return None
    mode = storage_class.volume_binding_mode
    if mode is None:
        raise VolumeError(f'VolumeBindingMode not set for StorageClass "{name}"')
    return storage_class if mode == mp.claims.WAIT_FOR_FIRST_CONSUMER else None
