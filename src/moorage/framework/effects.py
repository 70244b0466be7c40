"""Requests to the API server, which the core emits under a ticket; `Awaiting`, `Permission`."""

from typing import NamedTuple

from msgspec import UNSET, Struct, UnsetType

from moorage.api.meta import Condition, KubeObject, NodeName
from moorage.api.pod import Pod
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim, TypedReference


class PodRef(Struct, frozen=True, gc=False):
    """A pod by name and UID, so that a new pod of the same name is never mistaken for it."""

    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @classmethod
    def of(cls, pod: Pod) -> "PodRef":
        meta = pod.metadata
        return cls(meta.namespace, meta.name, meta.uid)


class PodRequest(Struct, frozen=True, gc=False, tag_field="request", tag=True):
    """A request on behalf of a pod."""

    pod: PodRef


class BindPod(PodRequest, frozen=True):
    """Bind a pod to a node; by way of an extender, if one is named."""

    node: NodeName
    extender: str = ""


class PatchPodStatus(PodRequest, frozen=True):
    """Set a condition of a pod, its nominated node (empty clears it), or both."""

    condition: Condition | None = None
    nominated_node_name: str | UnsetType = UNSET


class EmitEvent(PodRequest, frozen=True):
    """Write an Event; its outcome is ignored."""

    type: str
    reason: str
    action: str
    note: str
    reporter: str


class DeletePod(PodRequest, frozen=True):
    """Delete a pod, with its own grace period."""


class LookUpPod(PodRequest, frozen=True):
    """Get the pod from the API server."""


class PatchVolume(PodRequest, frozen=True):
    """Bind a persistent volume to a claim of a pod, if its version is unchanged."""

    name: str
    uid: str
    version: str
    claim: TypedReference
    annotations: dict[str, str] = {}  # a Struct copies it for every instance

    @classmethod
    def to(cls, pod: Pod, volume: PersistentVolume) -> "PatchVolume":
        """The patch that turns the API server's volume into this one."""
        meta, claim = volume.metadata, volume.spec.claim_ref
        assert claim is not None, f"volume {meta.name} is bound to no claim"
        version = meta.resource_version
        return cls(PodRef.of(pod), meta.name, meta.uid, version, claim, meta.annotations)


class PatchClaim(PodRequest, frozen=True):
    """Set annotations of a claim of a pod, if its version is unchanged."""

    namespace: str
    name: str
    uid: str
    version: str
    annotations: dict[str, str] = {}  # as above

    @classmethod
    def to(cls, pod: Pod, claim: PersistentVolumeClaim) -> "PatchClaim":
        """The patch that turns the API server's claim into this one."""
        meta = claim.metadata
        ref, version = PodRef.of(pod), meta.resource_version
        return cls(ref, meta.namespace, meta.name, meta.uid, version, meta.annotations)

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


Request = BindPod | PatchPodStatus | EmitEvent | DeletePod | LookUpPod | PatchVolume | PatchClaim


class Awaiting(Struct, frozen=True, kw_only=True):
    """Call pre_bind_next when one of these objects changes, or after so many seconds.

    Objects are kinds with keys: `namespace/name`, or a bare name for a cluster-scoped one.
    """

    seconds: float
    objects: tuple[tuple[type[KubeObject], str], ...] = ()


class Permission(NamedTuple):
    """API access that requests of a plugin need: verbs on a resource, for all or some names."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
