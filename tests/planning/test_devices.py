"""Capacity, drains and new nodes of a cluster whose devices are what is scarce."""

import pytest

from moorage.planning.add_nodes import add_nodes
from moorage.planning.capacity import capacity
from moorage.planning.drain import drain

API = "resource.k8s.io/v1"


def pool(name, nodes, gpus, *, model="a", **group):
    devices = {"driver": "gpu.example.com", "class": "gpu", "count": gpus, **group}
    return {
        "apiVersion": "moorage.dev/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "count": nodes,
            "template": {"status": {"allocatable": {"cpu": "64", "memory": "64Gi"}}},
            "devices": [devices | {"attributes": {"model": model}}],
        },
    }


def template(name="gpus", count=1, **exactly):
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": count, **exactly}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    return {
        "apiVersion": API,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": spec,
    }


def pod_spec(claims="gpus"):
    return {
        "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": claims}],
    }


def deployment(replicas, name="train"):
    labels = {"app": name}
    spec = {"metadata": {"labels": labels}, "spec": pod_spec()}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": spec},
    }


POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "more"}, "spec": pod_spec()}
ONLY_B = {"selectors": [{"cel": {"expression": 'device.attributes["gpu.example.com"].model=="b"'}}]}


@pytest.mark.parametrize(
    ("objects", "fits"),
    [
        pytest.param([pool("n", 2, 4), template(), deployment(3)], 5, id="one each"),
        pytest.param([pool("n", 2, 5), template(count=2)], 4, id="two each, of one node"),
        pytest.param(
            [pool("n", 2, 4), pool("m", 1, 3, model="b"), template(**ONLY_B)], 3, id="selector"
        ),
        pytest.param([pool("n", 1, 4, taints=[{"key": "x", "effect": "NoSchedule"}]), template()],
                     0, id="taint"),
    ],
)  # fmt: skip
def test_capacity(objects, fits):
    found = capacity(objects, POD)
    assert found.fits == fits
    assert "cannot allocate all claims" in found.message


def test_drain_moves_pods_to_free_devices():
    result = drain([pool("n", 3, 2), template(), deployment(4)], ["n-0"])
    assert result.is_clean == (not result.pending)
    placed = [move for move in result.moves if move.to]
    assert all(move.to != "n-0" for move in placed)
    # Two of six devices are free, and those of the drained node are lost.
    assert len(result.pending) == 0
    crowded = drain([pool("n", 3, 2), template(), deployment(6)], ["n-0"])
    assert len(crowded.pending) == 2


def test_add_nodes_counts_devices():
    objects = [pool("n", 1, 4), template(), deployment(21)]
    found = add_nodes(objects, [pool("more", 0, 8)])
    assert dict(found.counts) == {"more": 3}
    assert found.is_optimal
    assert not found.impossible


def test_add_nodes_for_devices_that_no_template_has():
    objects = [pool("n", 1, 1), template(**ONLY_B), deployment(2)]
    found = add_nodes(objects, [pool("more", 0, 8)])
    assert len(found.impossible) == 2


def test_shared_claim_counts_once():
    claim = {"apiVersion": API, "kind": "ResourceClaim", "metadata": {"name": "shared"}}
    claim["spec"] = template()["spec"]["spec"]
    spec = pod_spec() | {"resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}]}
    pods = [POD | {"metadata": {"name": f"p{i}"}, "spec": spec} for i in range(5)]
    found = add_nodes([claim, *pods], [pool("more", 0, 1)])
    assert (found.total, found.lower_bound) == (1, 1)


def test_a_shared_device_in_use_has_room_for_more_claims():
    device = {
        "name": "gpu-0",
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "8Gi"}},
        "attributes": {"model": {"string": "a"}},
    }
    slice_ = {
        "apiVersion": API,
        "kind": "ResourceSlice",
        "metadata": {"name": "n"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "n",
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
            "devices": [device],
        },
    }
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}},
    }
    a_gib = template(capacity={"requests": {"memory": "1Gi"}})
    share = {
        "request": "gpu",
        "driver": "gpu.example.com",
        "pool": "n",
        "device": "gpu-0",
        "shareID": "6c8b2d7e-0f0a-4a7c-9d46-1d2f3a4b5c6d",
        "consumedCapacity": {"memory": "1Gi"},
    }
    used = {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": "used"},
        "spec": a_gib["spec"]["spec"],
        "status": {"allocation": {"devices": {"results": [share]}}},
    }
    wide = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "60"}}}]}
    pods = [POD | {"metadata": {"name": f"p{i}"}} for i in range(4)]
    pods.append(POD | {"metadata": {"name": "wide"}, "spec": wide})
    found = add_nodes([node, slice_, a_gib, used, *pods], [pool("more", 0, 1)])
    assert (found.total, found.lower_bound) == (1, 1)
