"""What the ResourceClaim controller decides for pods and claims."""

import pytest

from moorage.api.devices import (
    AllocationResult,
    DeviceClaim,
    DeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from moorage.api.meta import ObjectMeta, OwnerReference
from moorage.api.pod import (
    Pod,
    PodExtendedResourceClaimStatus,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSpec,
    PodStatus,
)
from moorage.api.resource_claims import FINALIZER
from moorage.controllers import claims
from moorage.controllers.claims import (
    CreateClaim,
    DeleteClaim,
    ReportFailure,
    SetPodClaims,
    UpdateClaim,
)

GPU = PodResourceClaim(name="gpu", resource_claim_template_name="one-gpu")
SHARED = PodResourceClaim(name="shared", resource_claim_name="fabric")
TEMPLATE = ResourceClaimTemplate(
    metadata=ObjectMeta(name="one-gpu", namespace="default"),
    spec=ResourceClaimTemplateSpec(
        metadata=ObjectMeta(labels={"team": "a"}, annotations={"note": "x"}),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=(DeviceRequest(name="gpu"),))),
    ),
)


def make_pod(*entries, phase="Pending", node="", statuses=(), deleted=False, uid="u1", **status):
    meta = ObjectMeta(
        name="p", namespace="default", uid=uid, deletion_timestamp="x" if deleted else None
    )
    made = PodStatus(phase=phase, resource_claim_statuses=tuple(statuses), **status)
    return Pod(
        metadata=meta, spec=PodSpec(resource_claims=tuple(entries), node_name=node), status=made
    )


def make_claim(
    name="p-gpu-x", *, users=(), allocated=True, owner="", deleted=False, protected=True, entry=""
):
    owners = [OwnerReference(api_version="v1", kind="Pod", name="p", uid=owner, controller=True)]
    meta = ObjectMeta(
        name=name,
        namespace="default",
        owner_references=tuple(owners) if owner else (),
        finalizers=(FINALIZER,) if protected else (),
        deletion_timestamp="x" if deleted else None,
        annotations={claims.POD_CLAIM_NAME: entry} if entry else {},
    )
    users = tuple(
        ResourceClaimConsumerReference(resource="pods", name="p", uid=uid) for uid in users
    )
    allocation = AllocationResult() if allocated else None
    return ResourceClaim(
        metadata=meta, status=ResourceClaimStatus(allocation=allocation, reserved_for=users)
    )


def pod_decisions(pod, *there, template=TEMPLATE):
    found = {claim.name: claim for claim in there}
    owned = [claim for claim in there if claim.controller and claim.controller.uid == pod.uid]
    return list(claims.for_pod(pod, found.get, lambda name: template, owned))


def claim_decisions(claim, pod):
    return list(claims.for_claim(claim, lambda name: pod))


def named(name):
    return PodResourceClaimStatus(name="gpu", resource_claim_name=name)


def test_claim_from_template():
    (decision,) = pod_decisions(make_pod(GPU))
    assert isinstance(decision, CreateClaim)
    meta = decision.claim.metadata
    assert meta.generate_name == "p-gpu-"
    assert meta.labels == {"team": "a"}
    assert meta.annotations == {"note": "x", claims.POD_CLAIM_NAME: "gpu"}
    assert decision.claim.controller.uid == "u1"
    assert decision.claim.spec == TEMPLATE.spec.spec


def test_long_names_keep_parts_of_both():
    prefix = claims.generated_prefix("p" * 60, "claim" * 4)
    assert len(prefix) <= 58
    assert prefix.startswith("ppp")
    assert "claim" in prefix


def test_created_claim_is_written_to_the_pod():
    (decision,) = pod_decisions(make_pod(GPU), make_claim(owner="u1", entry="gpu"))
    assert decision == SetPodClaims(make_pod(GPU), (named("p-gpu-x"),))


def test_lost_claim_is_created_again():
    (decision,) = pod_decisions(make_pod(GPU, statuses=[named("p-gpu-lost")]))
    assert isinstance(decision, CreateClaim)


def test_missing_template_is_reported():
    (decision,) = pod_decisions(make_pod(GPU), template=None)
    assert isinstance(decision, ReportFailure)
    assert decision.message == (
        'PodResourceClaim gpu: resource claim template "one-gpu": '
        'resourceclaimtemplate.resource.k8s.io "one-gpu" not found'
    )


@pytest.mark.parametrize(
    ("pod", "there"),
    [
        pytest.param(make_pod(), [], id="no claims"),
        pytest.param(make_pod(SHARED), [], id="a claim by name is the user's"),
        pytest.param(make_pod(GPU, deleted=True), [], id="being deleted"),
        pytest.param(make_pod(GPU, phase="Failed"), [], id="ended"),
        pytest.param(make_pod(GPU, statuses=[named(None)]), [], id="no claim needed"),
        pytest.param(
            make_pod(GPU, statuses=[named("p-gpu-x")]), [make_claim(owner="u1")], id="created"
        ),
        pytest.param(
            make_pod(SHARED, node="n1"), [make_claim("fabric", allocated=False)], id="no devices"
        ),
        pytest.param(
            make_pod(SHARED, node="n1"), [make_claim("fabric", users=["u1"])], id="reserved"
        ),
    ],
)
def test_nothing_to_do_for_pod(pod, there):
    assert pod_decisions(pod, *there) == []


def test_pod_bound_by_hand_gets_its_reservation():
    pod, claim = make_pod(SHARED, node="n1"), make_claim("fabric", users=["other"])
    (decision,) = pod_decisions(pod, claim)
    assert [user.uid for user in decision.reserved_for] == ["other", "u1"]


FREED = "freed"
RUNNING = make_pod(node="n1", phase="Running")
ENDED = make_pod(node="n1", phase="Succeeded")


@pytest.mark.parametrize(
    ("claim", "pod", "expected"),
    [
        pytest.param(make_claim(users=["u1"]), RUNNING, [], id="in use"),
        pytest.param(make_claim(users=["u1"]), ENDED, [FREED], id="the last user ended"),
        pytest.param(make_claim(users=["u1"]), None, [FREED], id="the last user is gone"),
        pytest.param(
            make_claim(users=["u0", "u1"]), RUNNING, [["u1"]], id="one of two users is replaced"
        ),
        pytest.param(
            make_claim(users=["u1"]), make_pod(deleted=True), [FREED], id="deleted while pending"
        ),
        pytest.param(
            make_claim(users=["u1"]), make_pod(node="n1", deleted=True), [], id="terminating"
        ),
        pytest.param(make_claim(), None, [], id="allocated and never used"),
        pytest.param(make_claim(deleted=True), None, [FREED], id="deleted, unused"),
        pytest.param(make_claim(deleted=True, users=["u1"]), RUNNING, [], id="deleted, in use"),
        pytest.param(
            make_claim(deleted=True, protected=False), None, [], id="another finalizer keeps it"
        ),
        pytest.param(
            make_claim(owner="u1", users=["u1"]), ENDED, [FREED, "deleted"], id="of an ended pod"
        ),
        pytest.param(
            make_claim(owner="u0", allocated=False, protected=False),
            RUNNING,
            ["deleted"],
            id="of a replaced pod",
        ),
        pytest.param(make_claim(owner="u1"), None, [], id="its pod is gone: garbage collection"),
    ],
)
def test_decisions_for_claim(claim, pod, expected):
    found = []
    for decision in claim_decisions(claim, pod):
        if isinstance(decision, DeleteClaim):
            found.append("deleted")
        else:
            found.append(FREED if decision.free else [u.uid for u in decision.reserved_for])
    assert found == expected


def test_other_users_are_left_alone():
    user = ResourceClaimConsumerReference(api_group="x", resource="groups", name="g", uid="u9")
    status = ResourceClaimStatus(reserved_for=(user,))
    claim = ResourceClaim(metadata=make_claim().metadata, status=status)
    assert claim_decisions(claim, None) == []


def test_freed_claim():
    claim = claims.updated(UpdateClaim(make_claim(users=["u1"]), (), free=True))
    assert claim.status == ResourceClaimStatus()
    assert claim.metadata.finalizers == ()


def test_names_of_claims():
    extended = PodExtendedResourceClaimStatus(resource_claim_name="p-extended")
    statuses = [named("p-gpu-x")]
    pod = make_pod(GPU, SHARED, statuses=statuses, extended_resource_claim_status=extended)
    assert claims.names(pod) == ["p-gpu-x", "fabric", "p-extended"]


@pytest.mark.parametrize(
    ("pod", "claim", "ready"),
    [
        pytest.param(make_pod(SHARED), make_claim("fabric", users=["u1"]), True, id="reserved"),
        pytest.param(make_pod(SHARED), make_claim("fabric", users=["u2"]), False, id="for another"),
        pytest.param(
            make_pod(SHARED), make_claim("fabric", allocated=False), False, id="no devices"
        ),
        pytest.param(make_pod(SHARED), make_claim("other"), False, id="missing"),
        pytest.param(make_pod(GPU), make_claim("other"), False, id="not created"),
        pytest.param(make_pod(GPU, statuses=[named(None)]), make_claim(), True, id="not needed"),
    ],
)
def test_pod_may_start(pod, claim, ready):
    assert claims.are_ready(pod, {claim.name: claim}.get) is ready
