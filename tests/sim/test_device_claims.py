"""Device claims, drivers and kubelets of a simulation."""

import pytest

from moorage import Simulation
from moorage.api import resource_claims
from moorage.api.devices import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceSlice,
)

FREE = {"apiVersion": "resource.k8s.io/v1"}
REQUESTS = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
TEMPLATE = FREE | {
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one-gpu"},
    "spec": {"spec": REQUESTS},
}
SHARED = FREE | {"kind": "ResourceClaim", "metadata": {"name": "shared"}, "spec": REQUESTS}
POOL = {
    "apiVersion": "moorage.dev/v1",
    "kind": "NodePool",
    "metadata": {"name": "n"},
    "spec": {
        "count": 2,
        "template": {"status": {"allocatable": {"cpu": "4"}}},
        "devices": [{"driver": "gpu.example.com", "class": "gpu", "count": 2}],
    },
}


def pod(name="p", *, claim="", node="n-0", annotations=None, **fields):
    entry = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": "one-gpu"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations or {}},
        # With a node of its own, so that no scheduler is needed.
        "spec": {
            "containers": [{"name": "c"}],
            "nodeName": node,
            "resourceClaims": [{"name": "gpu", **entry}],
            "terminationGracePeriodSeconds": 1,
            **fields,
        },
    }


def claims(sim):
    return list(sim.cluster.all(ResourceClaim))


def allocate(sim, name, *pods, **fields):
    """Write the allocation as a scheduler does."""
    fields = {"driver": "gpu.example.com", "pool": "n-0", "device": "device-0"} | fields
    result = DeviceRequestAllocationResult(request="gpu", **fields)
    allocation = AllocationResult(devices=DeviceAllocationResult(results=(result,)))
    claim = sim.cluster.get(ResourceClaim, f"default/{name}")
    for each in pods:
        uid = sim.read("Pod", "default", each)["metadata"]["uid"]
        claim = resource_claims.reserved(claim, claim.key, (each, uid), allocation, "")
        allocation = None
    sim.cluster.write(claim)


def phase(sim, name="p"):
    return sim.read("Pod", "default", name)["status"]["phase"]


@pytest.fixture
def sim():
    return Simulation([POOL, TEMPLATE, SHARED])


def test_pod_runs_when_its_own_claim_is_allocated(sim):
    sim.create([pod()])
    sim.run(until=5)
    assert phase(sim) == "Pending"
    shared, own = claims(sim)
    (status,) = sim.read("Pod", "default", "p")["status"]["resourceClaimStatuses"]
    assert status == {"name": "gpu", "resourceClaimName": own.name}
    allocate(sim, own.name, "p")
    sim.run(until=10)
    assert phase(sim) == "Running"
    sim.delete("Pod", "default", "p")
    sim.run(until=20)
    assert claims(sim) == [shared]


def test_late_template(sim):
    sim = Simulation([POOL, pod()])
    sim.run(until=5)
    assert claims(sim) == []
    sim.create([TEMPLATE])
    sim.run(until=10)
    assert [claim.metadata.generate_name for claim in claims(sim)] == ["p-gpu-"]


def test_claim_of_an_ended_pod(sim):
    sim.create([pod(annotations={"moorage.dev/run-seconds": "2"})])
    sim.run(until=1)
    _, own = claims(sim)
    allocate(sim, own.name, "p")
    sim.run(until=20)
    assert phase(sim) == "Succeeded"
    assert len(claims(sim)) == 1


def test_shared_claim(sim):
    sim.create([pod("p", claim="shared"), pod("q", claim="shared")])
    allocate(sim, "shared", "p")
    sim.run(until=5)
    # The controller reserves the claim for a pod that was bound by hand.
    assert [user.name for user in claims(sim)[0].status.reserved_for] == ["p", "q"]
    assert (phase(sim, "p"), phase(sim, "q")) == ("Running", "Running")
    sim.delete("Pod", "default", "p")
    sim.run(until=10)
    assert [user.name for user in claims(sim)[0].status.reserved_for] == ["q"]
    sim.delete("ResourceClaim", "default", "shared")
    sim.run(until=15)
    assert claims(sim)[0].metadata.deletion_timestamp is not None
    sim.delete("Pod", "default", "q")
    sim.run(until=20)
    assert claims(sim) == []


def test_claim_that_is_created_after_its_pod_was_deleted(sim):
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "gone", "uid": "1", "controller": True}
    late = SHARED | {"metadata": {"name": "late", "ownerReferences": [owner]}}
    sim.create([late])
    sim.run(until=5)
    assert [claim.name for claim in claims(sim)] == ["shared"]


def test_slices_go_and_come_with_their_node(sim):
    nodes = lambda: [each.spec.node_name for each in sim.cluster.all(ResourceSlice)]  # noqa: E731
    assert nodes() == ["n-0", "n-1"]
    node = sim.read("Node", "", "n-0")
    sim.delete("Node", "", "n-0")
    assert nodes() == ["n-1"]
    del node["metadata"]["resourceVersion"]
    sim.create([node])
    assert nodes() == ["n-1", "n-0"]


def test_more_pools_of_one_class(sim):
    sim.create([POOL | {"metadata": {"name": "more"}}])
    assert len(list(sim.cluster.all(ResourceSlice))) == 4


def test_driver_meets_binding_conditions(sim):
    sim.create([pod(claim="shared")])
    allocate(sim, "shared", "p", binding_conditions=("Ready",))
    sim.run(until=5)
    (device,) = claims(sim)[0].status.devices
    assert [(each.type, each.status) for each in device.conditions] == [("Ready", "True")]


def test_result_counts_devices(sim):
    sim.create([pod(claim="shared")])
    sim.run(until=10)
    allocate(sim, "shared", "p")
    sim.run(until=20)
    result, name = sim.result, "devices/gpu.example.com"
    assert result.samples[-1].offered[name] == 4
    used = result.utilisation()[name]
    assert (used.peak, used.last) == (0.25, 0.25)
    assert 0.12 < used.mean < 0.13
    node = result.to_dict()["nodes"]["n-0"]
    assert (node["allocatable"][name], node["requested"][name]) == ("2", "1")
    assert result.to_dict()["devices"] == {
        "default/p": [
            {
                "claim": "shared",
                "request": "gpu",
                "driver": "gpu.example.com",
                "pool": "n-0",
                "device": "device-0",
            }
        ]
    }
    sim.delete("Pod", "default", "p")
    sim.run(until=30)
    assert sim.result.utilisation()[name].last == 0.0
    assert sim.result.devices == {}


def test_devices_of_a_node_that_is_gone_are_not_counted(sim):
    sim.create([pod(claim="shared")])
    allocate(sim, "shared", "p")
    sim.run(until=5)
    sim.delete("Node", "", "n-0")
    sample = sim.result.samples[-1]
    name = "devices/gpu.example.com"
    assert (sample.offered[name], sample.requested[name]) == (2, 0)
    sim.run(until=100)
    assert sim.result.samples[-1].requested[name] == 0


def scheduled(*names):
    """Pods without a node, each with a claim of its own."""
    return [pod(name, node="") for name in names]


def test_partitions_count_by_what_they_consume():
    part = {"name": "half", "count": 2, "counters": {"memory": "20Gi"}, "attributes": {"parts": 2}}
    group = {
        "driver": "gpu.example.com",
        "class": "gpu",
        "attributes": {"parts": 1},
        "counters": {"memory": "40Gi"},
        "partitions": [part],
    }
    pool = POOL | {"spec": POOL["spec"] | {"count": 1, "devices": [group]}}
    expression = 'device.attributes["gpu.example.com"].parts == 2'
    exactly = {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": expression}}]}
    halves = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    sim = Simulation([pool, TEMPLATE | {"spec": {"spec": halves}}, SHARED, *scheduled("a")])
    sim.run(until=10)
    name = "devices/memory.gpu.example.com"
    result = sim.result
    assert "devices/gpu.example.com" not in result.utilisation()
    assert result.utilisation()[name].last == 0.5
    node = result.to_dict()["nodes"]["n-0"]
    assert (node["allocatable"][name], node["requested"][name]) == ("40Gi", "20Gi")
    # Beside both halves there is no room for the whole device.
    sim.create(scheduled("b"))
    sim.run(until=20)
    sim.create([pod("any", claim="shared", node="")])
    sim.run(until=30)
    assert list(sim.pending) == ["default/any"]
    assert sim.result.utilisation()[name].last == 1.0


def test_devices_of_a_network_are_counted():
    pool = {"name": "fabric", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"link-{i}"} for i in range(4)]
    spec = {"driver": "net.example.com", "pool": pool, "allNodes": True, "devices": devices}
    fabric = FREE | {"kind": "ResourceSlice", "metadata": {"name": "fabric"}, "spec": spec}
    expression = 'device.driver == "net.example.com"'
    any_link = {"selectors": [{"cel": {"expression": expression}}]}
    gpu = FREE | {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": any_link}
    nodes = POOL | {"spec": POOL["spec"] | {"devices": []}}
    sim = Simulation([nodes, TEMPLATE, gpu, fabric, *scheduled("a", "b", "c")])
    sim.run(until=10)
    name = "devices/net.example.com"
    sample = sim.result.samples[-1]
    assert (sample.offered[name], sample.requested[name]) == (4, 3)
    assert sim.result.utilisation()[name].last == 0.75
    assert name not in sim.result.to_dict()["nodes"]["n-0"]["allocatable"]
    sim.delete("Pod", "default", "a")
    sim.run(until=20)
    assert sim.result.utilisation()[name].last == 0.5
    sim.delete("ResourceSlice", "", "fabric")
    sim.run(until=30)
    assert sim.result.samples[-1].offered.get(name, 0) == 0
