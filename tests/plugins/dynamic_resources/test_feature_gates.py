"""What changes when a feature gate is turned off."""

import pytest
from tests.device_builders import (
    claim,
    device,
    device_class,
    devices,
    first_available,
    node,
    pod,
    request,
    resource_slice,
)

from moorage import explain

NO = "cannot allocate all claims"


def decide(gate, *objects, value=False):
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "featureGates": {gate: value},
    }
    found = explain([node("n1"), *objects], "default/p", config).to_dict()
    if "error" in found:
        return found["error"].removeprefix('running "DynamicResources" filter plugin: ')
    return found["feasible"] or found["rejected"]["n1"]["reasons"][0]


USED = [{"counterSet": "s", "counters": {"c": {"value": "1"}}}]
SETS = [{"name": "s", "counters": {"c": {"value": "1"}}}]
PARTS = [
    resource_slice("a", [], pool="n1", count=2, nodeName="n1", sharedCounters=SETS),
    resource_slice("b", [device("x", consumesCounters=USED)], pool="n1", count=2),
]
TAINTED = [resource_slice("n1", devices(1, taints=[{"key": "k", "effect": "NoSchedule"}]))]
WAITS = [resource_slice("n1", devices(1, bindingConditions=["Ready"]))]
PLAIN = [resource_slice("n1", devices(1, capacity={"memory": "1Gi"}))]
PART = request(capacity={"requests": {"memory": "1Gi"}})
DISABLED = "feature is disabled"


@pytest.mark.parametrize(
    ("gate", "slices", "wanted", "off", "on"),
    [
        pytest.param("DRADeviceTaints", TAINTED, request(), ["n1"], NO, id="taints"),
        pytest.param("DRAPartitionableDevices", PARTS, request(), NO, ["n1"], id="counters"),
        pytest.param("DRADeviceBindingConditions", WAITS, request(), NO, ["n1"], id="conditions"),
        pytest.param("DRAResourceClaimDeviceStatus", WAITS, request(), NO, ["n1"], id="status"),
        pytest.param(
            "DRAPrioritizedList",
            PLAIN,
            first_available("r", request("a")),
            f"claim default/c, request r: has subrequests, but the DRAPrioritizedList {DISABLED}",
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
    objects = [device_class(), *slices, claim("c", wanted), pod("p", "c")]
    assert decide(gate, *objects) == off
    assert decide(gate, *objects, value=True) == on


def test_extended_resources():
    serving = device_class("gpu", extendedResourceName="example.com/gpu")
    subject = pod("p", requests={"example.com/gpu": "1"})
    objects = [serving, resource_slice("n1", devices(1)), subject]
    assert decide("DRAExtendedResource", *objects) == "Insufficient example.com/gpu"
    assert decide("DRAExtendedResource", *objects, value=True) == ["n1"]
