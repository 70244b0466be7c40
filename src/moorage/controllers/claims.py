"""The ResourceClaim controller: creates claims from templates, and releases claims of ended pods.

    a pod with an entry for a template     CreateClaim, owned by the pod; then SetPodClaims
    a pod that was bound without the       UpdateClaim: the claim is reserved for the pod
    scheduler, and uses allocated claims
    a claim of which a pod has ended       UpdateClaim: the pod leaves `reservedFor`; after the last
                                           one the devices are free, and the finalizer goes
    an unused claim that is being deleted  UpdateClaim without devices and finalizer
    an unused claim of an ended pod        DeleteClaim

Every function reads the current state only, so a host may call it again after any change.
"""

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from moorage.api import resource_claims
from moorage.api.devices import (
    MAX_RESERVED_FOR,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimTemplate,
)
from moorage.api.meta import ObjectMeta, OwnerReference
from moorage.api.pod import Pod, PodResourceClaim, PodResourceClaimStatus
from moorage.api.resource_claims import FINALIZER, is_reserved_for

# On a claim from a template: which entry of the pod's `resourceClaims` it was created for.
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
FAILED_CREATION = "FailedResourceClaimCreation"
# Leaves room for a hyphen and five random characters in a name of 63 characters.
MAX_BASE_LENGTH = 57

References = tuple[ResourceClaimConsumerReference, ...]
FindClaim = Callable[[str], ResourceClaim | None]
FindTemplate = Callable[[str], ResourceClaimTemplate | None]
FindPod = Callable[[str], Pod | None]


class CreateClaim(Struct, frozen=True):
    """Create a claim for an entry of a pod; the API completes its `generateName`."""

    pod: Pod
    claim: ResourceClaim


class SetPodClaims(Struct, frozen=True):
    """Write the names of created claims to `status.resourceClaimStatuses` of a pod."""

    pod: Pod
    statuses: tuple[PodResourceClaimStatus, ...]


class UpdateClaim(Struct, frozen=True):
    """Write the users of a claim; with `free`, it also loses its devices and its finalizer."""

    claim: ResourceClaim
    reserved_for: References
    free: bool = False


class DeleteClaim(Struct, frozen=True):
    """Delete a claim that its pod does not need any more."""

    claim: ResourceClaim


class ReportFailure(Struct, frozen=True):
    """Emit an Event: a claim of a pod cannot be created."""

    pod: Pod
    message: str


Decision = CreateClaim | SetPodClaims | UpdateClaim | DeleteClaim | ReportFailure


# Pods ------------------------------------------------------------------------------------------


def for_pod(
    pod: Pod, find: FindClaim, find_template: FindTemplate, owned: Iterable[ResourceClaim]
) -> Iterator[Decision]:
    """What a pod needs: claims from templates, and reservations if it was bound by hand.

    The functions find objects of the pod's namespace by name; `owned` are the claims whose
    controller is the pod.
    """
    if pod.is_terminating or pod.is_terminal or not pod.spec.resource_claims:
        return
    known = {status.name: status for status in pod.status.resource_claim_statuses}
    made = {claim.metadata.annotations.get(POD_CLAIM_NAME): claim for claim in owned}
    statuses = dict(known)
    for entry in pod.spec.resource_claims:
        template_name = entry.resource_claim_template_name
        if template_name is None or _is_settled(known.get(entry.name), find):
            continue
        if (claim := made.get(entry.name)) is not None:
            named = PodResourceClaimStatus(name=entry.name, resource_claim_name=claim.name)
            statuses[entry.name] = named
        elif (template := find_template(template_name)) is not None:
            yield CreateClaim(pod, from_template(pod, entry, template))
        else:
            missing = f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            text = f'resource claim template "{template_name}": {missing}'
            yield ReportFailure(pod, f"PodResourceClaim {entry.name}: {text}")
    if statuses != known:
        yield SetPodClaims(pod, tuple(statuses.values()))
    if pod.node_name:
        yield from _reservations(pod, find)


def _is_settled(status: PodResourceClaimStatus | None, find: FindClaim) -> bool:
    """Whether the pod's status names a claim that exists, or says that none is needed."""
    if status is None:
        return False
    return status.resource_claim_name is None or find(status.resource_claim_name) is not None


def _reservations(pod: Pod, find: FindClaim) -> Iterator[Decision]:
    """Reserve the allocated claims of a pod that was bound without the scheduler."""
    for name in names(pod):
        claim = find(name)
        if claim is None or claim.status.allocation is None or is_reserved_for(claim, pod.uid):
            continue
        users = claim.status.reserved_for
        if len(users) < MAX_RESERVED_FOR:
            yield UpdateClaim(claim, (*users, reference(pod)))


def from_template(
    pod: Pod, entry: PodResourceClaim, template: ResourceClaimTemplate
) -> ResourceClaim:
    """The claim of a pod's entry."""
    meta = template.spec.metadata
    owner = OwnerReference(
        api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True
    )
    return ResourceClaim(
        api_version="resource.k8s.io/v1",
        kind="ResourceClaim",
        metadata=ObjectMeta(
            generate_name=generated_prefix(pod.name, entry.name),
            namespace=pod.namespace,
            labels=meta.labels,
            annotations=meta.annotations | {POD_CLAIM_NAME: entry.name},
            owner_references=(owner,),
        ),
        spec=template.spec.spec,
    )


def generated_prefix(pod: str, entry: str) -> str:
    """The `generateName`; of long names, parts in proportion to their lengths are kept."""
    base = f"{pod}-{entry}"
    if len(base) > MAX_BASE_LENGTH:
        share = MAX_BASE_LENGTH / len(base)
        base = f"{pod[: int(len(pod) * share)]}-{entry[: int(len(entry) * share)]}"
    return f"{base}-"


def names(pod: Pod) -> list[str]:
    """The claims of a pod that exist as far as its status says, without duplicates."""
    generated = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses}
    found = [
        entry.resource_claim_name or generated.get(entry.name) for entry in pod.spec.resource_claims
    ]
    if (extended := pod.status.extended_resource_claim_status) is not None:
        found.append(extended.resource_claim_name)
    return [name for name in dict.fromkeys(found) if name]


def are_ready(pod: Pod, find: FindClaim) -> bool:
    """Whether a kubelet may start a pod: all its claims are allocated and reserved for it."""
    generated = {status.name for status in pod.status.resource_claim_statuses}
    created = all(
        entry.resource_claim_template_name is None or entry.name in generated
        for entry in pod.spec.resource_claims
    )
    found = (find(name) for name in names(pod))
    return created and all(
        claim is not None
        and claim.status.allocation is not None
        and is_reserved_for(claim, pod.uid)
        for claim in found
    )


# Claims ----------------------------------------------------------------------------------------


def for_claim(claim: ResourceClaim, find_pod: FindPod) -> Iterator[Decision]:
    """What a claim needs after one of its pods ended, or after it was deleted itself."""
    users = claim.status.reserved_for
    if any(user.api_group or user.resource != "pods" for user in users):
        return  # Kubernetes' controller leaves such a claim alone as well.
    kept = tuple(user for user in users if needs_claims(find_pod(user.name), user.uid))
    is_protected = FINALIZER in claim.metadata.finalizers
    is_terminating = claim.metadata.deletion_timestamp is not None
    if len(kept) < len(users):
        yield UpdateClaim(claim, kept, free=is_protected and not kept)
    elif not kept and is_protected and is_terminating:
        yield UpdateClaim(claim, (), free=True)
    owner = owning_pod(claim)
    if kept or owner is None or is_terminating:
        return
    pod = find_pod(owner.name)
    # If the pod is gone, the garbage collector deletes the claim.
    if pod is not None and not needs_claims(pod, owner.uid):
        yield DeleteClaim(claim)


def updated(decision: UpdateClaim) -> ResourceClaim:
    """The claim after an update."""
    claim = decision.claim
    if decision.free:
        return resource_claims.without_finalizer(resource_claims.deallocated(claim))
    return replace(claim, status=replace(claim.status, reserved_for=decision.reserved_for))


def needs_claims(pod: Pod | None, uid: str) -> bool:
    """Whether the pod of this UID runs or may run; `pod` is the one that has its name now."""
    if pod is None or pod.metadata.uid != uid or pod.is_terminal:
        return False
    return bool(pod.spec.node_name) or not pod.is_terminating


def owning_pod(claim: ResourceClaim) -> OwnerReference | None:
    """The pod that a claim was created for, by the controller or by the scheduler."""
    owner = claim.controller
    is_pod = owner is not None and (owner.api_version, owner.kind) == ("v1", "Pod")
    return owner if is_pod else None


def reference(pod: Pod) -> ResourceClaimConsumerReference:
    """The entry of a pod in `reservedFor`."""
    return ResourceClaimConsumerReference(resource="pods", name=pod.name, uid=pod.uid)
