"""What changes when a feature gate is turned off."""

import pytest
from tests import device_builders as make

from moorage import explain

NO = "cannot allocate all claims"
INVALID = "invalid resource pools were encountered"


def decide(gate, *objects, value=False):
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "featureGates": {gate: value},
    }
    found = explain([make.node("n1"), *objects], "default/p", config).to_dict()
    if "error" in found:
        return found["error"].removeprefix('running "DynamicResources" filter plugin: ')
    return found["feasible"] or found["rejected"]["n1"]["reasons"][0]


USED = [{"counterSet": "s", "counters": {"c": {"value": "1"}}}]
OTHER_SETS = [{"name": "other", "counters": {"c": {"value": "1"}}}]
SETS = [{"name": "s", "counters": {"c": {"value": "1"}}}]
PARTS = [
    make.resource_slice("a", [], pool="n1", count=2, nodeName="n1", sharedCounters=SETS),
    make.resource_slice("b", [make.device("x", consumesCounters=USED)], pool="n1", count=2),
]
BROKEN = [
    make.resource_slice("n1", [make.device("x", consumesCounters=USED), make.device("y")], count=2),
    # Counts for the pool, even if it is not read.
    make.resource_slice("a", [], pool="n1", count=2, nodeName="n1", sharedCounters=OTHER_SETS),
]
SHARE = make.result("gpu-0", shareID="00000000-0000-4000-8000-000000000001")
SHARED = [
    make.resource_slice("n1", make.devices(1, allowMultipleAllocations=True)),
    make.allocated("other", SHARE),
]
TAINTED = [
    make.resource_slice("n1", make.devices(1, taints=[{"key": "k", "effect": "NoSchedule"}]))
]
WAITS = [make.resource_slice("n1", make.devices(1, bindingConditions=["Ready"]))]
PLAIN = [make.resource_slice("n1", make.devices(1, capacity={"memory": "1Gi"}))]
PART = make.request(capacity={"requests": {"memory": "1Gi"}})
DISABLED = "feature is disabled"


@pytest.mark.parametrize(
    ("gate", "slices", "wanted", "off", "on"),
    [
        pytest.param("DRADeviceTaints", TAINTED, make.request(), ["n1"], NO, id="taints"),
        pytest.param("DRAPartitionableDevices", PARTS, make.request(), NO, ["n1"], id="counters"),
        pytest.param(
            "DRAPartitionableDevices", BROKEN, make.request(), ["n1"], INVALID, id="no such counter"
        ),
        pytest.param("DRAConsumableCapacity", SHARED, make.request(), NO, ["n1"], id="shares"),
        pytest.param(
            "DRADeviceBindingConditions", WAITS, make.request(), NO, ["n1"], id="conditions"
        ),
        pytest.param(
            "DRAResourceClaimDeviceStatus", WAITS, make.request(), NO, ["n1"], id="status"
        ),
        pytest.param(
            "DRAPrioritizedList",
            PLAIN,
            make.first_available("r", make.request("a")),
            "resource claim default/c, request r: has subrequests, but the DRAPrioritizedList "
            + DISABLED,
            ["n1"],
            id="alternatives",
        ),
        pytest.param(
            "DRAConsumableCapacity",
            PLAIN,
            PART,
            "claim default/c, request r: has capacity requests, but the DRAConsumableCapacity "
            + DISABLED,
            ["n1"],
            id="capacity",
        ),
    ],
)
def test_gates(gate, slices, wanted, off, on):
    objects = [make.device_class(), *slices, make.claim("c", wanted), make.pod("p", "c")]
    assert decide(gate, *objects) == off
    assert decide(gate, *objects, value=True) == on


def test_extended_resources():
    serving = make.device_class("gpu", extendedResourceName="example.com/gpu")
    subject = make.pod("p", requests={"example.com/gpu": "1"})
    objects = [serving, make.resource_slice("n1", make.devices(1)), subject]
    assert decide("DRAExtendedResource", *objects) == "Insufficient example.com/gpu"
    assert decide("DRAExtendedResource", *objects, value=True) == ["n1"]
