"""The ResourceClaim controller and kubelets of pods with device claims, on virtual time."""

import pytest

from moorage.api import timestamps
from moorage.cluster.resources import RESOURCE_CLAIMS

FINALIZER = "resource.kubernetes.io/delete-protection"
CLAIM, TEMPLATE = "ResourceClaim", "ResourceClaimTemplate"
CONTAINERS = [{"name": "main", "image": "x"}]
DEVICES = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
RESULT = {"request": "gpu", "driver": "gpu.example.com", "pool": "n0", "device": "gpu-0"}


def template(world):
    world.create(TEMPLATE, "one-gpu", spec={"metadata": {"labels": {"a": "b"}}, "spec": DEVICES})


def pod(world, name="p", *, by_name="", node="n0", **fields):
    entry = {"resourceClaimName": by_name} if by_name else {"resourceClaimTemplateName": "one-gpu"}
    spec = {"containers": CONTAINERS, "resourceClaims": [{"name": "gpu", **entry}]}
    # With a node of its own, so that no scheduler is needed.
    return world.create("Pod", name, spec={**spec, "nodeName": node}, **fields)


def allocate(world, name, *pods, **result):
    """Write the allocation as a scheduler does."""
    claim = world.get(CLAIM, name)
    users = [
        {"resource": "pods", "name": each, "uid": world.get("Pod", each)["metadata"]["uid"]}
        for each in pods
    ]
    allocation = {
        "devices": {"results": [RESULT | result]},
        "allocationTimestamp": timestamps.to_text(world.now),
    }
    status = {"allocation": allocation, "reservedFor": users}
    meta = {**claim["metadata"], "finalizers": [FINALIZER]}
    world.api.replace(RESOURCE_CLAIMS, {**claim, "metadata": meta, "status": status})
    world.settle()


def only_claim(world):
    (claim,) = world.all(CLAIM)
    return claim


@pytest.fixture
def world_with_template(world):
    world.nodes(1)
    template(world)
    return world


def test_claim_from_template(world_with_template):
    world = world_with_template
    made = pod(world)
    claim = only_claim(world)
    meta = claim["metadata"]
    assert meta["name"].startswith("p-gpu-")
    assert meta["generateName"] == "p-gpu-"
    assert meta["labels"] == {"a": "b"}
    assert meta["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}
    assert meta["ownerReferences"] == [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p",
            "uid": made["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    exactly = claim["spec"]["devices"]["requests"][0]["exactly"]
    assert exactly == {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    statuses = world.get("Pod", "p")["status"]["resourceClaimStatuses"]
    assert statuses == [{"name": "gpu", "resourceClaimName": meta["name"]}]


def test_template_that_comes_later(world):
    world.nodes(1)
    pod(world)
    assert world.all(CLAIM) == []
    (event,) = world.all("Event")
    assert (event["type"], event["reason"]) == ("Warning", "FailedResourceClaimCreation")
    assert 'resource claim template "one-gpu"' in event["message"]
    template(world)
    assert only_claim(world)["metadata"]["generateName"] == "p-gpu-"


def test_pod_starts_when_its_claim_is_reserved(world_with_template):
    world = world_with_template
    pod(world)
    world.run(5)
    assert world.running() == []
    allocate(world, only_claim(world)["metadata"]["name"], "p")
    world.run(5)
    assert len(world.running()) == 1


def test_claim_goes_with_its_pod(world_with_template):
    world = world_with_template
    pod(world)
    allocate(world, only_claim(world)["metadata"]["name"], "p")
    world.run(5)
    world.delete("Pod", "p")
    world.run(60)
    assert not world.exists("Pod", "p")
    assert world.all(CLAIM) == []


def test_claim_of_an_ended_pod_is_deleted(world_with_template):
    world = world_with_template
    pod(world, metadata={"annotations": {"moorage.dev/run-seconds": "3"}})
    allocate(world, only_claim(world)["metadata"]["name"], "p")
    world.run(10)
    assert world.get("Pod", "p")["status"]["phase"] == "Succeeded"
    assert world.all(CLAIM) == []


def test_shared_claim_is_freed_with_its_last_pod(world):
    world.nodes(1)
    world.create(CLAIM, "shared", spec=DEVICES)
    for name in ("p", "q"):
        pod(world, name, by_name="shared")
    allocate(world, "shared", "p")
    # The second pod was bound without the scheduler: the controller reserves the claim for it.
    users = world.get(CLAIM, "shared")["status"]["reservedFor"]
    assert [user["name"] for user in users] == ["p", "q"]
    world.run(5)
    world.delete("Pod", "p")
    world.run(60)
    status = world.get(CLAIM, "shared")["status"]
    assert [user["name"] for user in status["reservedFor"]] == ["q"]
    assert status["allocation"]["devices"]["results"] == [RESULT]
    world.delete("Pod", "q")
    world.run(60)
    claim = world.get(CLAIM, "shared")
    assert claim["status"] == {}
    assert "finalizers" not in claim["metadata"]


def test_claim_in_use_is_deleted_after_its_pod(world):
    world.nodes(1)
    world.create(CLAIM, "shared", spec=DEVICES)
    pod(world, by_name="shared")
    allocate(world, "shared", "p")
    world.delete(CLAIM, "shared")
    assert "deletionTimestamp" in world.get(CLAIM, "shared")["metadata"]
    world.run(5)
    world.delete("Pod", "p")
    world.run(60)
    assert not world.exists(CLAIM, "shared")


def test_claim_of_a_replaced_pod_is_created_again(world_with_template):
    world = world_with_template
    pod(world)
    first = only_claim(world)["metadata"]["uid"]
    world.delete("Pod", "p")
    world.run(60)
    pod(world)
    assert only_claim(world)["metadata"]["uid"] != first


@pytest.mark.parametrize("labels", [{"moorage.dev/pool": "gpu"}, {}], ids=["pool", "other"])
def test_driver_of_a_pool_meets_binding_conditions(world, labels):
    world.nodes(1)
    pool = {"name": "n0", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": "n0", "pool": pool}
    world.create("ResourceSlice", "n0-gpu", metadata={"labels": labels}, spec=spec)
    world.create(CLAIM, "shared", spec=DEVICES)
    pod(world, by_name="shared")
    allocate(world, "shared", "p", bindingConditions=["Ready"])
    world.run(5)
    devices = world.get(CLAIM, "shared")["status"].get("devices", [])
    conditions = [each["type"] for device in devices for each in device["conditions"]]
    assert conditions == (["Ready"] if labels else [])
