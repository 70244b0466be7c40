"""Which claims a pod uses, and how a scheduler changes them."""

import pytest
from msgspec.structs import replace

from moorage.api import resource_claims
from moorage.api.devices import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
)
from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod, PodResourceClaim, PodResourceClaimStatus, PodSpec, PodStatus
from moorage.api.resource_claims import ClaimChangedError, ClaimLookupError

NOW = "2026-01-01T00:00:00Z"
POD = ("web", "uid-1")
GPU = DeviceRequestAllocationResult(request="a", driver="d", pool="p", device="gpu-0")
ALLOCATION = AllocationResult(devices=DeviceAllocationResult(results=(GPU,)))
CLAIM = ResourceClaim(metadata=ObjectMeta(name="c", namespace="default", uid="c-1"))


def reserve(claim, allocation=ALLOCATION):
    return resource_claims.reserved(claim, "default/c", POD, allocation, NOW)


def test_a_reserved_claim_has_finalizer_allocation_and_pod():
    claim = reserve(CLAIM)
    assert claim.metadata.finalizers == (resource_claims.FINALIZER,)
    assert claim.status.allocation == replace(ALLOCATION, allocation_timestamp=NOW)
    assert resource_claims.is_reserved_for(claim, "uid-1")


def test_reserving_twice_changes_nothing():
    claim = reserve(CLAIM)
    assert reserve(claim) == claim
    assert reserve(claim, None) == claim


@pytest.mark.parametrize(
    ("claim", "allocation", "text"),
    [
        pytest.param(None, ALLOCATION, "got deleted in the meantime", id="gone"),
        pytest.param(
            replace(CLAIM, metadata=replace(CLAIM.metadata, deletion_timestamp=NOW)),
            ALLOCATION,
            "got deleted in the meantime",
            id="being deleted",
        ),
        pytest.param(
            replace(CLAIM, status=ResourceClaimStatus(allocation=AllocationResult())),
            ALLOCATION,
            "got allocated elsewhere in the meantime",
            id="other devices",
        ),
        pytest.param(CLAIM, None, "got deallocated elsewhere in the meantime", id="no devices"),
    ],
)
def test_claims_that_changed(claim, allocation, text):
    with pytest.raises(ClaimChangedError, match=f"claim default/c {text}"):
        reserve(claim, allocation)


def test_a_released_claim_keeps_its_devices():
    claim = resource_claims.released(reserve(CLAIM), "uid-1")
    assert claim.status.reserved_for == ()
    assert claim.status.allocation is not None
    assert resource_claims.deallocated(claim).status == ResourceClaimStatus()


def pod(claims, statuses=()):
    meta = ObjectMeta(name="web", namespace="default")
    status = PodStatus(resource_claim_statuses=statuses)
    return Pod(metadata=meta, spec=PodSpec(resource_claims=claims), status=status)


def test_names_of_claims():
    own = PodResourceClaim(name="a", resource_claim_name="shared")
    made = PodResourceClaim(name="b", resource_claim_template_name="gpu")
    unneeded = PodResourceClaim(name="c", resource_claim_template_name="gpu")
    statuses = (
        PodResourceClaimStatus(name="b", resource_claim_name="web-b-1"),
        PodResourceClaimStatus(name="c"),
    )
    found = resource_claims.names_of(pod((own, made, unneeded), statuses))
    assert list(found) == [("shared", False), ("web-b-1", True)]


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        pytest.param(
            PodResourceClaim(name="a", resource_claim_template_name="gpu"),
            'pod "default/web": ResourceClaim not created yet',
            id="not created yet",
        ),
        pytest.param(
            PodResourceClaim(name="a"),
            'pod "default/web", spec.resourceClaim "a": none of the supported fields are set',
            id="neither name nor template",
        ),
    ],
)
def test_claims_without_a_name(entry, text):
    with pytest.raises(ClaimLookupError) as caught:
        list(resource_claims.names_of(pod((entry,))))
    assert str(caught.value) == text
