"""The slices and classes that pretended drivers publish, and the conditions that they meet."""

import pytest

from moorage.api import manifests
from moorage.api.devices import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
)
from moorage.api.meta import ObjectMeta
from moorage.api.node import Node
from moorage.controllers import drivers
from moorage.errors import ManifestError
from moorage.expansion import expand

GPU = {"driver": "gpu.example.com", "class": "gpu", "name": "gpu"}
NODE = Node(metadata=ObjectMeta(name="n0"))


def pool(*devices, count=1):
    spec = {"count": count, "template": {}, "devices": list(devices)}
    return {
        "apiVersion": "moorage.dev/v1",
        "kind": "NodePool",
        "metadata": {"name": "p"},
        "spec": spec,
    }


def read(*objects):
    return [manifests.dump(obj) for obj in expand(manifests.read(objects).everything)]


def published(*devices):
    (obj,) = manifests.read([pool(*devices)]).everything
    return [manifests.dump(each) for each in drivers.slices(NODE, obj.spec.devices)]


def test_slices_and_class_of_a_pool():
    attributes = {"model": "a100", "slot": 3, "nvlink": True, "firmware": {"version": "1.2.3"}}
    group = GPU | {"count": 2, "attributes": attributes, "capacity": {"memory": "80Gi"}}
    node, first, second, class_ = sorted(
        (obj for obj in read(pool(group, count=2)) if obj["metadata"]["name"] != "p-1"),
        key=lambda obj: ["Node", "ResourceSlice", "DeviceClass"].index(obj["kind"]),
    )
    assert node["metadata"]["name"] == "p-0"
    assert second["spec"]["nodeName"] == "p-1"
    assert first["metadata"]["name"] == "p-0-gpu.example.com"
    assert first["metadata"]["ownerReferences"][0]["name"] == "p-0"
    pool_ = first["spec"]["pool"]
    assert pool_ == {"name": "p-0", "generation": 1, "resourceSliceCount": 1}
    device = {
        "attributes": {
            "model": {"string": "a100"},
            "slot": {"int": 3},
            "nvlink": {"bool": True},
            "firmware": {"version": "1.2.3"},
        },
        "capacity": {"memory": {"value": "80Gi"}},
    }
    assert first["spec"]["devices"] == [{"name": f"gpu-{i}", **device} for i in range(2)]
    assert class_["metadata"]["name"] == "gpu"
    (selector,) = class_["spec"]["selectors"]
    assert selector["cel"]["expression"] == 'device.driver == "gpu.example.com"'


def test_groups_of_one_driver_share_a_slice():
    (only,) = published(GPU | {"count": 2}, GPU | {"count": 1, "taints": [{"key": "x"}]})
    assert [device["name"] for device in only["spec"]["devices"]] == ["gpu-0", "gpu-1", "gpu-2"]


@pytest.mark.parametrize(("extra", "sizes"), [({}, [128, 72]), ({"taints": [{"key": "x"}]}, [64])])
def test_many_devices_need_several_slices(extra, sizes):
    made = published(GPU | {"count": 200} | extra)
    assert [len(each["spec"]["devices"]) for each in made][: len(sizes)] == sizes
    assert {each["spec"]["pool"]["resourceSliceCount"] for each in made} == {len(made)}
    assert len({each["metadata"]["name"] for each in made}) == len(made)


MIG = GPU | {
    "count": 2,
    "attributes": {"model": "a100", "profile": "whole"},
    "capacity": {"memory": "40Gi"},
    "counters": {"memory": "40Gi", "slices": 7},
    "partitions": [
        {
            "name": "small",
            "count": 7,
            "counters": {"memory": "5Gi", "slices": 1},
            "attributes": {"profile": "1g"},
            "capacity": {"memory": "5Gi"},
        }
    ],
}


def test_partitions_share_the_counters_of_their_device():
    devices, counters = published(MIG)
    assert devices["spec"]["pool"] == counters["spec"]["pool"]
    assert devices["spec"]["pool"]["resourceSliceCount"] == 2
    amounts = {"memory": {"value": "40Gi"}, "slices": {"value": 7}}
    sets = [{"name": name, "counters": amounts} for name in ("gpu-0", "gpu-1")]
    assert counters["spec"]["sharedCounters"] == sets
    assert "devices" not in counters["spec"]
    by_name = {device["name"]: device for device in devices["spec"]["devices"]}
    assert len(by_name) == 16
    assert by_name["gpu-1"]["consumesCounters"] == [{"counterSet": "gpu-1", "counters": amounts}]
    part = by_name["gpu-1-small-6"]
    (used,) = part["consumesCounters"]
    assert used["counterSet"] == "gpu-1"
    assert used["counters"] == {"memory": {"value": "5Gi"}, "slices": {"value": 1}}
    assert part["capacity"] == {"memory": {"value": "5Gi"}}
    assert part["attributes"] == {"model": {"string": "a100"}, "profile": {"string": "1g"}}


def test_a_slice_has_at_most_eight_counter_sets():
    made = published(MIG | {"count": 9})
    sizes = [len(each["spec"].get("sharedCounters", ())) for each in made]
    assert sizes == [0, 0, 8, 1]


def test_given_class_is_kept():
    given = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"extendedResourceName": "example.com/gpu"},
    }
    classes = [obj for obj in read(given, pool(GPU)) if obj["kind"] == "DeviceClass"]
    assert [obj["spec"] for obj in classes] == [given["spec"]]


@pytest.mark.parametrize(
    ("group", "error"),
    [
        pytest.param({"count": 1}, "driver", id="no driver"),
        pytest.param(GPU | {"count": 0}, "count", id="no devices"),
        pytest.param(GPU | {"kind": "x"}, "kind", id="unknown field"),
        pytest.param(GPU | {"capacity": {"memory": "much"}}, "memory", id="not a quantity"),
        pytest.param(
            MIG | {"counters": {"memory": "much"}},
            r"spec.devices\[0\].counters",
            id="not a quantity, of a counter",
        ),
        pytest.param(
            MIG | {"counters": {"memory": "40Gi"}},
            r"partitions\[0\].counters\[slices\]: must be one of",
            id="not a counter of the device",
        ),
    ],
)
def test_errors_name_the_field(group, error):
    with pytest.raises(ManifestError, match=error):
        read(pool(group))


def allocated(*results):
    allocation = AllocationResult(devices=DeviceAllocationResult(results=results))
    return ResourceClaim(status=ResourceClaimStatus(allocation=allocation))


def result(device, **fields):
    return DeviceRequestAllocationResult(driver="d", pool="n0", device=device, **fields)


@pytest.mark.parametrize(("fails", "condition"), [(False, "Ready"), (True, "Broken")])
def test_binding_conditions(fails, condition):
    slow = result("slow", binding_conditions=("Ready",), binding_failure_conditions=("Broken",))
    claim = allocated(result("quick"), slow)
    assert drivers.pending(claim) == (slow,)
    done = drivers.prepared(claim, "2026-01-01T00:00:00Z", fails=fails)
    (status,) = done.status.devices
    assert (status.device, [each.type for each in status.conditions]) == ("slow", [condition])
    assert drivers.pending(done) == ()
