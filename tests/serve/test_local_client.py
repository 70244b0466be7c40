"""Requests of the scheduler that change claims and pod groups, performed on the store."""

import itertools
from random import Random

import pytest

from moorage.api import timestamps
from moorage.api.devices import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from moorage.api.meta import Condition, ObjectMeta
from moorage.api.resource_claims import FINALIZER, ClaimChangedError
from moorage.api.server_requests import (
    CreateResourceClaim,
    DeallocateResourceClaim,
    DeleteResourceClaim,
    PatchPodGroupStatus,
    PodRef,
    ReleaseResourceClaim,
    ReserveResourceClaim,
)
from moorage.cluster.api_server import ApiServer
from moorage.cluster.resources import POD_GROUPS, PODS, RESOURCE_CLAIMS
from moorage.cluster.status_errors import ConflictError, NotFoundError
from moorage.cluster.store import Store
from moorage.serve.local_client import LocalClient

RESULT = DeviceRequestAllocationResult(request="gpu", driver="d", pool="n0", device="gpu-0")
ALLOCATION = AllocationResult(devices=DeviceAllocationResult(results=(RESULT,)))
NOON = 1_800_000_000.0


class Served:
    """A store with one pod and one claim."""

    def __init__(self):
        uids = itertools.count(1)
        clock = lambda: timestamps.to_text(NOON)  # noqa: E731 the shortest form
        self.store = Store(clock=clock, uid=lambda: f"uid-{next(uids)}")
        self.api = ApiServer(self.store, now=lambda: NOON, random=Random(1))
        self.client = LocalClient(self.api)
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
        self.ref = PodRef("default", "p", self.api.create(PODS, pod)["metadata"]["uid"])
        spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "g"}}]}}
        claim = {"metadata": {"name": "c"}, "spec": spec}
        self.uid = self.api.create(RESOURCE_CLAIMS, claim)["metadata"]["uid"]

    @property
    def claim(self):
        return self.store.get(RESOURCE_CLAIMS, "default", "c")

    def perform(self, request, *more, uid=None):
        name = (self.ref, "default", "c", self.uid if uid is None else uid)
        return self.client.perform(request(*name, *more)).claim


@pytest.fixture
def served():
    return Served()


def test_the_condition_of_a_pod_group(served):
    policy = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    group = served.api.create(POD_GROUPS, {"metadata": {"name": "g"}, "spec": policy})
    condition = Condition(type="PodGroupScheduled", status="True", reason="Scheduled")
    uid = group["metadata"]["uid"]
    served.client.perform(PatchPodGroupStatus(served.ref, "g", uid, condition))
    [shown] = served.store.get(POD_GROUPS, "default", "g")["status"]["conditions"]
    assert (shown["status"], shown["reason"]) == ("True", "Scheduled")
    assert shown["lastTransitionTime"] == timestamps.to_text(NOON)
    with pytest.raises(NotFoundError):
        served.client.perform(PatchPodGroupStatus(served.ref, "g", "other", condition))


def test_reserve_with_allocation(served):
    claim = served.perform(ReserveResourceClaim, ALLOCATION)
    stored = served.claim
    assert stored["metadata"]["finalizers"] == [FINALIZER]
    assert stored["status"]["reservedFor"] == [
        {"resource": "pods", "name": "p", "uid": served.ref.uid}
    ]
    results = stored["status"]["allocation"]["devices"]["results"]
    assert results == [{"request": "gpu", "driver": "d", "pool": "n0", "device": "gpu-0"}]
    assert stored["status"]["allocation"]["allocationTimestamp"] == timestamps.to_text(NOON)
    assert claim.metadata.resource_version == stored["metadata"]["resourceVersion"]


def test_reserve_what_is_allocated_elsewhere(served):
    served.perform(ReserveResourceClaim, ALLOCATION)
    other = AllocationResult(devices=DeviceAllocationResult(results=(RESULT, RESULT)))
    with pytest.raises(ClaimChangedError, match="got allocated elsewhere"):
        served.perform(ReserveResourceClaim, other)
    with pytest.raises(ClaimChangedError, match="got deleted"):
        served.perform(ReserveResourceClaim, ALLOCATION, uid="another")


def test_release_keeps_allocation_and_what_drivers_wrote(served):
    served.perform(ReserveResourceClaim, ALLOCATION)
    device = {"driver": "d", "pool": "n0", "device": "gpu-0", "data": {"any": 1}}
    claim = served.claim
    reported = {**claim, "status": {**claim["status"], "devices": [device]}}
    served.api.update(RESOURCE_CLAIMS, reported, subresource="status")
    claim = served.perform(ReleaseResourceClaim)
    assert claim.status.allocation is not None
    assert "reservedFor" not in served.claim["status"]
    assert served.claim["status"]["devices"] == [device]


def test_deallocate_only_this_version(served):
    old = served.claim["metadata"]["resourceVersion"]
    claim = served.perform(ReserveResourceClaim, ALLOCATION)
    with pytest.raises(ConflictError):
        served.perform(DeallocateResourceClaim, old)
    served.perform(DeallocateResourceClaim, claim.metadata.resource_version)
    assert served.claim["status"] == {}
    assert served.claim["metadata"]["finalizers"] == [FINALIZER]


def test_delete_removes_the_finalizer_first(served):
    served.perform(ReserveResourceClaim, ALLOCATION)
    served.perform(DeleteResourceClaim)
    assert served.store.find(RESOURCE_CLAIMS, "default", "c") is None
    with pytest.raises(NotFoundError):
        served.perform(DeleteResourceClaim)


def test_create_for_extended_resources(served):
    new = ResourceClaim(metadata=ObjectMeta(generate_name="p-extended-", namespace="default"))
    claim = served.client.perform(CreateResourceClaim(served.ref, new)).claim
    assert claim.name.startswith("p-extended-")
    assert claim.controller.uid == served.ref.uid
