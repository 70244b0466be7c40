"""Requests to the API server on behalf of a pod: what the scheduler asks a shell to perform."""

from msgspec import UNSET, Struct, UnsetType

from moorage.api.devices import AllocationResult, ResourceClaim
from moorage.api.meta import Condition, NodeName
from moorage.api.pod import Pod, PodExtendedResourceClaimStatus
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
    """Set a condition of a pod, its nominated node (empty clears it), or its special claim."""

    condition: Condition | None = None
    nominated_node_name: str | UnsetType = UNSET
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class PatchPodGroupStatus(PodRequest, frozen=True):
    """Set a condition of the PodGroup of a pod."""

    name: str
    uid: str
    condition: Condition

    @property
    def key(self) -> str:
        return f"{self.pod.namespace}/{self.name}"


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


class CreateResourceClaim(PodRequest, frozen=True):
    """Create the claim for extended resources of a pod; the outcome has it as created.

    A claim of that name that the pod owns counts as created: the response to an earlier try was
    lost.
    """

    claim: ResourceClaim


class ResourceClaimRequest(PodRequest, frozen=True):
    """A change of an existing claim, made to its newest version.

    `api.resource_claims` has the changes. If the claim is modified in between, the performer reads
    it again, up to `CLAIM_TRIES` times. The outcome has the claim as it is afterwards.
    """

    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class ReserveResourceClaim(ResourceClaimRequest, frozen=True):
    """Reserve a claim for the pod (`resource_claims.reserved`).

    With an allocation: first add the finalizer, if it is missing, then write the status. With
    `claim`, the version that the scheduler knows, a performer reads the claim only if it has
    changed since.
    """

    allocation: AllocationResult | None = None
    claim: ResourceClaim | None = None


class ReleaseResourceClaim(ResourceClaimRequest, frozen=True):
    """Remove the reservation for the pod, if there is one (`resource_claims.released`)."""


class DeallocateResourceClaim(ResourceClaimRequest, frozen=True):
    """Clear the status of a claim, if its version is unchanged (`resource_claims.deallocated`)."""

    version: str


class DeleteResourceClaim(ResourceClaimRequest, frozen=True):
    """Remove the scheduler's finalizer from a claim, and delete it."""


# How often a performer tries to change a claim that others modify meanwhile, and the pause between.
CLAIM_TRIES = 5
CLAIM_RETRY_SECONDS = 0.01

ClaimRequest = (
    CreateResourceClaim
    | ReserveResourceClaim
    | ReleaseResourceClaim
    | DeallocateResourceClaim
    | DeleteResourceClaim
)
Request = (
    BindPod
    | PatchPodStatus
    | PatchPodGroupStatus
    | EmitEvent
    | DeletePod
    | LookUpPod
    | PatchVolume
    | PatchClaim
    | ClaimRequest
)
