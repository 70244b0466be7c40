"""Requests that write device claims: their calls, conflicts, and lost responses."""

import asyncio
import json

import pytest
from msgspec import convert
from scripted import HANG_UP, serving

from moorage.api.devices import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from moorage.api.meta import ObjectMeta
from moorage.api.resource_claims import FINALIZER
from moorage.api.server_requests import (
    CLAIM_TRIES,
    CreateResourceClaim,
    DeallocateResourceClaim,
    DeleteResourceClaim,
    PodRef,
    ReleaseResourceClaim,
    ReserveResourceClaim,
)
from moorage.core.effects import Done, Failed, Unknown
from moorage.live.performer import carry_out

REF = PodRef("ns", "web", "uid-1")
NAMED = (REF, "ns", "gpu", "claim-1")
RESULT = DeviceRequestAllocationResult(request="r", driver="d", pool="n0", device="gpu-0")
ALLOCATION = AllocationResult(
    devices=DeviceAllocationResult(results=(RESULT,)), allocation_timestamp="2026-01-01T00:00:00Z"
)
USER = {"resource": "pods", "name": "web", "uid": "uid-1"}
ALLOCATED = {
    "devices": {
        "results": [{"request": "r", "driver": "d", "pool": "n0", "device": "gpu-0"}],
    },
    "allocationTimestamp": "2026-01-01T00:00:00Z",
}
PATH = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims"
GET, PATCH, STATUS = f"GET {PATH}/gpu", f"PATCH {PATH}/gpu", f"PATCH {PATH}/gpu/status"
DELETE = f"DELETE {PATH}/gpu"


def claim(version="1", *, uid="claim-1", finalizers=(), owner="", **status):
    meta = {"name": "gpu", "namespace": "ns", "uid": uid, "resourceVersion": version}
    meta["finalizers"] = list(finalizers)
    if owner:
        ref = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": owner, "controller": True}
        meta["ownerReferences"] = [ref]
    return 200, {"metadata": meta, "spec": {}, "status": status}


def no(code, message="no"):
    return code, {"code": code, "message": message}


PROTECTED = claim("2", finalizers=[FINALIZER])
RESERVED = claim("3", finalizers=[FINALIZER], allocation=ALLOCATED, reservedFor=[USER])


def written(request, *answers, leads=True):
    """The outcome of a request, the calls, and their bodies."""

    async def perform():
        async with serving(*answers) as (scripted, client):
            outcome = await carry_out(client, request, lambda: leads)
            bodies = [json.loads(body) if body else None for body in scripted.bodies]
            return outcome, scripted.requests, bodies

    return asyncio.run(perform())


RESERVE = ReserveResourceClaim(*NAMED, ALLOCATION)


def test_reserve():
    outcome, calls, bodies = written(RESERVE, claim(), PROTECTED, RESERVED)
    assert calls == [GET, PATCH, STATUS]
    assert bodies[1]["metadata"] == {
        "uid": "claim-1",
        "resourceVersion": "1",
        "finalizers": [FINALIZER],
    }
    assert bodies[2]["metadata"] == {"uid": "claim-1", "resourceVersion": "2"}
    assert bodies[2]["status"] == {"allocation": ALLOCATED, "reservedFor": [USER]}
    assert outcome.claim.metadata.resource_version == "3"


@pytest.mark.parametrize(
    ("request_", "answers", "outcome"),
    [
        pytest.param(
            RESERVE,
            [claim(uid="other")],
            Failed("claim ns/gpu got deleted in the meantime"),
            id="another claim of that name",
        ),
        pytest.param(
            RESERVE, [no(404)], Failed("claim ns/gpu got deleted in the meantime"), id="deleted"
        ),
        pytest.param(
            RESERVE,
            [claim(allocation={"devices": {}})],
            Failed("claim ns/gpu got allocated elsewhere in the meantime"),
            id="allocated for another pod",
        ),
        pytest.param(
            ReserveResourceClaim(*NAMED),
            [claim()],
            Failed("claim ns/gpu got deallocated elsewhere in the meantime"),
            id="a shared claim was deallocated",
        ),
        pytest.param(RESERVE, [claim(), no(403)], Failed("no"), id="forbidden"),
        pytest.param(
            ReleaseResourceClaim(*NAMED), [no(404)], Failed(
                'resourceclaims.resource.k8s.io "gpu" not found', missing=True
            ), id="nothing to release",
        ),
        pytest.param(
            DeallocateResourceClaim(*NAMED, "7"), [no(409)], Failed("no"), id="a newer version"
        ),
    ],
)  # fmt: skip
def test_failures(request_, answers, outcome):
    assert written(request_, *answers)[0] == outcome


def observed(answer):
    """A reservation of the claim that the scheduler has observed."""
    known = convert(answer[1], ResourceClaim)
    return ReserveResourceClaim(*NAMED, ALLOCATION, known)


def test_an_observed_claim_is_not_read():
    outcome, calls, bodies = written(observed(claim("1")), PROTECTED, RESERVED)
    assert calls == [PATCH, STATUS]
    assert bodies[0]["metadata"]["resourceVersion"] == "1"
    assert bodies[1]["metadata"] == {"uid": "claim-1", "resourceVersion": "2"}
    assert outcome.claim.metadata.resource_version == "3"


@pytest.mark.parametrize(
    ("answers", "calls", "outcome"),
    [
        pytest.param(
            [no(409), claim("5", finalizers=[FINALIZER]), RESERVED],
            [STATUS, GET, STATUS],
            Done,
            id="it changed",
        ),
        pytest.param([HANG_UP, RESERVED], [STATUS, GET], Done, id="the response was lost"),
        pytest.param([no(409), no(404)], [STATUS, GET], Failed, id="it was deleted"),
        pytest.param(
            [no(409), claim(allocation={"devices": {}})], [STATUS, GET], Failed, id="allocated"
        ),
        pytest.param([no(403)], [STATUS], Failed, id="forbidden"),
    ],
)
def test_an_observed_claim_is_read_after_a_failure_only(answers, calls, outcome):
    got, sent, _ = written(observed(PROTECTED), *answers)
    assert sent == calls
    assert isinstance(got, outcome)


def test_an_observed_claim_that_is_out_of_date_is_read():
    terminating = claim("1")
    terminating[1]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    _, calls, _ = written(observed(terminating), PROTECTED, RESERVED)
    assert calls == [GET, STATUS]


def test_conflict_is_retried_with_the_newest_version():
    answers = [PROTECTED, no(409), claim("5", finalizers=[FINALIZER]), RESERVED]
    outcome, calls, bodies = written(RESERVE, *answers)
    assert calls == [GET, STATUS, GET, STATUS]
    assert bodies[3]["metadata"]["resourceVersion"] == "5"
    assert isinstance(outcome, Done)


def test_conflicts_do_not_go_on_for_ever():
    outcome, calls, _ = written(RESERVE, *[PROTECTED, no(409)] * CLAIM_TRIES)
    assert outcome == Failed("no")
    assert len(calls) == 2 * CLAIM_TRIES


def test_lost_response_of_a_write_that_was_done():
    outcome, calls, _ = written(RESERVE, PROTECTED, HANG_UP, RESERVED)
    assert calls == [GET, STATUS, GET]
    assert outcome.claim.metadata.resource_version == "3"


def test_no_response_at_all():
    outcome, _, _ = written(RESERVE, PROTECTED, *[HANG_UP, PROTECTED] * CLAIM_TRIES)
    assert isinstance(outcome, Unknown)


def test_standby_writes_nothing():
    outcome, calls, _ = written(RESERVE, PROTECTED, RESERVED, leads=False)
    assert isinstance(outcome, Failed)
    assert calls == [GET]


def test_release():
    other = {"resource": "pods", "name": "o", "uid": "uid-2"}
    reserved = claim(allocation=ALLOCATED, reservedFor=[USER, other])
    outcome, calls, bodies = written(ReleaseResourceClaim(*NAMED), reserved, RESERVED)
    assert calls == [GET, STATUS]
    assert bodies[1]["status"] == {"reservedFor": [other]}
    assert isinstance(outcome, Done)


def test_release_what_is_not_reserved():
    _, calls, _ = written(ReleaseResourceClaim(*NAMED), claim(allocation=ALLOCATED))
    assert calls == [GET]


def test_deallocate():
    outcome, calls, bodies = written(DeallocateResourceClaim(*NAMED, "7"), claim("8"))
    assert calls == [STATUS]
    assert bodies[0] == {
        "metadata": {"uid": "claim-1", "resourceVersion": "7"},
        "status": {"allocation": None, "reservedFor": None, "devices": None},
    }
    assert outcome.claim.metadata.resource_version == "8"


@pytest.mark.parametrize("answer", [(200, {}), no(404)], ids=["deleted", "went by itself"])
def test_delete(answer):
    outcome, calls, bodies = written(DeleteResourceClaim(*NAMED), PROTECTED, claim("3"), answer)
    assert calls == [GET, PATCH, DELETE]
    assert bodies[1]["metadata"]["finalizers"] == []
    assert bodies[2]["preconditions"] == {"uid": "claim-1"}
    assert outcome == Done()


def test_delete_what_is_gone():
    outcome, calls, _ = written(DeleteResourceClaim(*NAMED), no(404))
    assert (outcome, calls) == (Done(), [GET])


NEW = ResourceClaim(metadata=ObjectMeta(name="gpu", namespace="ns"))


@pytest.mark.parametrize(
    ("answers", "calls"),
    [
        pytest.param([claim(owner="uid-1")], 1, id="created"),
        pytest.param([no(409), claim(owner="uid-1")], 2, id="created by an earlier try"),
        pytest.param([HANG_UP, no(409), claim(owner="uid-1")], 3, id="the response was lost"),
    ],
)
def test_create(answers, calls):
    outcome, sent, bodies = written(CreateResourceClaim(REF, NEW), *answers)
    assert isinstance(outcome, Done)
    assert outcome.claim.controller.uid == "uid-1"
    assert len(sent) == calls
    assert bodies[0]["kind"] == "ResourceClaim"


def test_name_is_taken_by_another_pods_claim():
    outcome, _, _ = written(CreateResourceClaim(REF, NEW), no(409), claim(owner="uid-2"))
    assert outcome == Failed("no")
