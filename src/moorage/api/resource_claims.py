"""ResourceClaims: which claims a pod uses, and how a scheduler changes them.

The changes are pure functions, so that the simulation, `serve` and the live performer write the
same: they read the newest version of a claim, apply one of these, and write the result.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import structs

from moorage.api.devices import (
    ALL,
    AllocationResult,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from moorage.api.pod import Pod
from moorage.errors import MoorageError

# Keeps a claim from disappearing while its devices are allocated.
FINALIZER = "resource.kubernetes.io/delete-protection"
# Marks the claims that a scheduler creates for extended resources.
EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
# The prefix of the extended resource that every device class has.
IMPLICIT_RESOURCE_PREFIX = "deviceclass.resource.kubernetes.io/"


class ClaimChangedError(MoorageError):
    """A claim cannot be changed as planned, because someone else has changed it."""


class ClaimLookupError(MoorageError):
    """A claim of a pod is missing or cannot be used; the text is Kubernetes'."""


def names_of(pod: Pod) -> Iterator[tuple[str, bool]]:
    """The names of a pod's claims in order, and whether each was created from a template.

    Raises ClaimLookupError for a claim that its controller has not created yet.
    """
    generated = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_name is not None:
            yield entry.resource_claim_name, False
        elif entry.resource_claim_template_name is None:
            text = "none of the supported fields are set"
            raise ClaimLookupError(f'pod "{pod.key}", spec.resourceClaim "{entry.name}": {text}')
        elif entry.name not in generated:
            raise ClaimLookupError(f'pod "{pod.key}": ResourceClaim not created yet')
        elif (name := generated[entry.name]) is not None:  # None: the pod needs no claim.
            yield name, True


def keys_of(pod: Pod) -> tuple[str, ...]:
    """`namespace/name` of a pod's claims, without duplicates; none if they do not exist yet."""
    if not pod.spec.resource_claims:
        return ()
    try:
        found = dict.fromkeys(name for name, _ in names_of(pod))
    except ClaimLookupError:
        return ()
    return tuple(f"{pod.metadata.namespace}/{name}" for name in found)


class ClaimDevices(NamedTuple):
    """How many devices a claim has, or will have, by class; without those for administrators."""

    amounts: dict[str, int]
    # Whether this does not change any more: the claim is allocated, or has no alternatives.
    is_final: bool
    # Classes of which it takes all devices of a node: their number is not known in advance.
    all_of: tuple[str, ...] = ()


def devices_of(claim: ResourceClaim) -> ClaimDevices:
    """The devices of a claim; of alternatives that are open, the largest number of each class."""
    wanted = claim.spec.devices.requests or ()
    if claim.status.allocation is not None:
        return ClaimDevices(_allocated(claim), is_final=True)
    total: Counter[str] = Counter()
    all_of: list[str] = []
    for request in wanted:
        most: Counter[str] = Counter()
        exactly = () if request.exactly is None else (request.exactly,)
        for each in (*exactly, *request.first_available):
            if isinstance(each, ExactDeviceRequest) and each.admin_access:
                continue
            if each.allocation_mode == ALL:
                all_of.append(each.device_class_name)
            else:
                most |= Counter({each.device_class_name: max(each.count, 1)})
        total += most
    is_final = not all_of and not any(each.first_available for each in wanted)
    return ClaimDevices(dict(total), is_final, tuple(dict.fromkeys(all_of)))


def _allocated(claim: ResourceClaim) -> dict[str, int]:
    assert claim.status.allocation is not None
    classes: dict[str, str] = {}
    for request in claim.spec.devices.requests or ():
        if request.exactly is not None:
            classes[request.name] = request.exactly.device_class_name
        for each in request.first_available:
            classes[f"{request.name}/{each.name}"] = each.device_class_name
    results = claim.status.allocation.devices.results
    given = (classes.get(each.request) for each in results if not each.admin_access)
    return dict(Counter(name for name in given if name))


def is_made_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a claim was created for this pod."""
    owner = claim.controller
    return owner is not None and owner.uid == pod.uid


def is_reserved_for(claim: ResourceClaim, uid: str) -> bool:
    """Whether a claim is reserved for the pod with that UID."""
    return any(each.uid == uid for each in claim.status.reserved_for)


def is_extended(claim: ResourceClaim) -> bool:
    """Whether a scheduler created the claim for extended resources of a pod."""
    return claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true"


def is_going(claim: ResourceClaim) -> bool:
    """Whether a claim is being deleted, and the scheduler's finalizer does not prevent it."""
    meta = claim.metadata
    return meta.deletion_timestamp is not None and FINALIZER not in meta.finalizers


# Changes


def reserved(
    claim: ResourceClaim | None,
    key: str,
    pod: tuple[str, str],
    allocation: AllocationResult | None,
    now: str,
) -> ResourceClaim:
    """The claim reserved for a pod (name and UID), with its allocation if it has none yet.

    `now` is the timestamp of a new allocation. Raises ClaimChangedError with Kubernetes' texts.
    """
    if claim is None or claim.metadata.deletion_timestamp is not None:
        raise ClaimChangedError(f"claim {key} got deleted in the meantime")
    name, uid = pod
    status, meta = claim.status, claim.metadata
    if allocation is not None:
        if status.allocation is not None:
            if is_reserved_for(claim, uid) and status.allocation.devices == allocation.devices:
                return claim  # An earlier try was carried out, although its response was lost.
            raise ClaimChangedError(f"claim {key} got allocated elsewhere in the meantime")
        if FINALIZER not in meta.finalizers:
            meta = structs.replace(meta, finalizers=(*meta.finalizers, FINALIZER))
        at = allocation.allocation_timestamp or now
        allocation = structs.replace(allocation, allocation_timestamp=at)
        status = structs.replace(status, allocation=allocation)
    elif status.allocation is None:
        raise ClaimChangedError(f"claim {key} got deallocated elsewhere in the meantime")
    if not is_reserved_for(claim, uid):
        user = ResourceClaimConsumerReference(resource="pods", name=name, uid=uid)
        status = structs.replace(status, reserved_for=(*status.reserved_for, user))
    return structs.replace(claim, metadata=meta, status=status)


def released(claim: ResourceClaim, uid: str) -> ResourceClaim:
    """The claim without its reservation for a pod; the allocation stays."""
    others = tuple(each for each in claim.status.reserved_for if each.uid != uid)
    if len(others) == len(claim.status.reserved_for):
        return claim
    return structs.replace(claim, status=structs.replace(claim.status, reserved_for=others))


def deallocated(claim: ResourceClaim) -> ResourceClaim:
    """The claim without devices and users; its controller removes the finalizer."""
    return structs.replace(claim, status=ResourceClaimStatus())


def without_finalizer(claim: ResourceClaim) -> ResourceClaim:
    """The claim without the finalizer of schedulers, so that it can be deleted."""
    others = tuple(each for each in claim.metadata.finalizers if each != FINALIZER)
    if len(others) == len(claim.metadata.finalizers):
        return claim
    return structs.replace(claim, metadata=structs.replace(claim.metadata, finalizers=others))
