"""Validation of device claims, templates, classes and slices."""

import pytest

from moorage.cluster.objects import validation
from moorage.cluster.resources import BUILT_IN
from moorage.cluster.status_errors import InvalidError

GPU = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
SLICE = {
    "driver": "gpu.example.com",
    "nodeName": "n0",
    "pool": {"name": "n0", "generation": 1, "resourceSliceCount": 1},
    "devices": [{"name": "gpu-0", "attributes": {"model": {"string": "a"}}}],
}


def errors(kind, spec):
    resource = next(each for each in BUILT_IN if each.kind == kind)
    try:
        validation.validate(resource, {"metadata": {"name": "x"}, "spec": spec})
    except InvalidError as error:
        return str(error)
    return ""


def requests(*entries, **more):
    return {"devices": {"requests": list(entries), **more}}


def exactly(**fields):
    return requests({"name": "gpu", "exactly": {"deviceClassName": "gpu", **fields}})


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        pytest.param(requests(GPU), "", id="valid"),
        pytest.param(requests(), "", id="empty"),
        pytest.param(
            requests({"name": "gpu"}), "requests[0]: Invalid value: \"\": exactly one", id="neither"
        ),
        pytest.param(
            requests(GPU | {"firstAvailable": [{"name": "a", "deviceClassName": "x"}]}),
            "exactly one of",
            id="both",
        ),
        pytest.param(
            exactly(deviceClassName=""),
            "spec.devices.requests[0].exactly.deviceClassName: Required value",
            id="no class",
        ),
        pytest.param(exactly(count=-1), "count: Invalid value: -1", id="negative count"),
        pytest.param(exactly(allocationMode="All", count=2), "allocationMode is 'All'", id="All"),
        pytest.param(exactly(allocationMode="Some"), "supported values", id="mode"),
        pytest.param(
            exactly(selectors=[{"cel": {"expression": "device.driver =="}}]),
            "requests[0].exactly.selectors[0].cel.expression: Invalid value",
            id="selector with a syntax error",
        ),
        pytest.param(exactly(selectors=[{}]), "selectors[0].cel: Required value", id="no cel"),
        pytest.param(requests(GPU, GPU), "requests[1].name", id="name used twice"),
        pytest.param(
            requests(*(GPU | {"name": f"g{i}"} for i in range(33))), "at most 32", id="too many"
        ),
        pytest.param(
            requests(GPU, constraints=[{"requests": ["nic"], "matchAttribute": "x/y"}]),
            "constraints[0].requests[0]: Invalid value: \"nic\": must be the name",
            id="constraint on a missing request",
        ),
    ],
)  # fmt: skip
def test_claims(spec, text):
    found = errors("ResourceClaim", spec)
    assert text in found
    assert bool(found) == bool(text)
    in_template = errors("ResourceClaimTemplate", {"spec": spec})
    assert bool(in_template) == bool(text)


COUNTERS = [{"name": "c", "counters": {"memory": {"value": "1Gi"}}}]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param({}, "", id="valid"),
        pytest.param({"driver": ""}, "spec.driver: Required value", id="no driver"),
        pytest.param({"nodeName": None}, "exactly one of `nodeName`", id="no nodes"),
        pytest.param({"allNodes": True}, "exactly one of `nodeName`", id="two kinds of nodes"),
        pytest.param({"pool": {"name": "n0"}}, "resourceSliceCount", id="no slice count"),
        pytest.param({"devices": [{"name": "a"}] * 2}, "Duplicate", id="device twice"),
        pytest.param(
            {"devices": [{"name": f"d{i}"} for i in range(129)]}, "at most 128", id="too many"
        ),
        pytest.param(
            {"devices": [{"name": "a", "attributes": {"x": {}}}]}, "one value", id="no value"
        ),
        pytest.param({"devices": None, "sharedCounters": COUNTERS}, "", id="counters"),
        pytest.param(
            {"sharedCounters": COUNTERS}, "only one of `sharedCounters`", id="counters and devices"
        ),
        pytest.param(
            {"devices": None, "sharedCounters": COUNTERS, "nodeName": None},
            "exactly one of `nodeName`",
            id="counters without nodes",
        ),
    ],
)
def test_slices(change, text):
    spec = {key: value for key, value in (SLICE | change).items() if value is not None}
    found = errors("ResourceSlice", spec)
    assert text in found
    assert bool(found) == bool(text)


def test_class():
    bad = {"selectors": [{"cel": {"expression": "device.nothing"}}]}
    assert "spec.selectors[0].cel.expression" in errors("DeviceClass", bad)
