"""The advice for device claims names the request, and what each node lacks for it."""

import pytest

from moorage import explain

API = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"


def node(name):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    }


def devices(name, *models, **fields):
    spec = {
        "driver": DRIVER,
        "nodeName": name,
        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
        "devices": [
            {"name": f"gpu-{i}", "attributes": {"model": {"string": model}}, **fields}
            for i, model in enumerate(models)
        ],
    }
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def device_class(**spec):
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    spec = {"selectors": [selector], **spec}
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": spec}


def claim(name="mine", *, on="", user="", **exactly):
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", **exactly}}
    found = {"apiVersion": API, "kind": "ResourceClaim", "metadata": {"name": name}}
    found["spec"] = {"devices": {"requests": [request]}}
    if on:
        pool, device = on.split("/")
        result = {"request": "gpu", "driver": DRIVER, "pool": pool, "device": device}
        field = {"key": "metadata.name", "operator": "In", "values": [pool]}
        where = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        users = [{"resource": "pods", "name": user, "uid": user}] if user else []
        allocation = {"devices": {"results": [result]}, "nodeSelector": where}
        found["status"] = {"allocation": allocation, "reservedFor": users}
    return found


def pod(**spec):
    containers = [{"name": "c", "image": "i"}]
    claims = [{"name": "gpu", "resourceClaimName": "mine"}]
    spec = {"containers": containers, "resourceClaims": claims, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}


def advice(*objects):
    return explain([device_class(), *objects], "default/web").advice


FAST = {"selectors": [{"cel": {"expression": f'device.attributes["{DRIVER}"].model == "fast"'}}]}
TAINTED = {"taints": [{"key": "worn", "effect": "NoSchedule"}]}
NEEDS = "cannot allocate all claims: claim mine, request gpu needs"


@pytest.mark.parametrize(
    ("objects", "line"),
    [
        pytest.param([claim()], f"{NEEDS} 1 of class gpu: on a, b there is none.", id="none"),
        pytest.param(
            [claim(**FAST), devices("a", "slow", "slow")],
            f"{NEEDS} 1 of class gpu: on a the selector {FAST['selectors'][0]['cel']['expression']}"
            " is false for model slow; on b there is none.",
            id="selector is false",
        ),
        pytest.param(
            [claim(count=3), devices("a", "x", "x"), devices("b", "x")],
            f"{NEEDS} 3 of class gpu: on a there are only 2; on b there is only 1.",
            id="too few",
        ),
        pytest.param(
            [claim(), devices("a", "x", **TAINTED)],
            f"{NEEDS} 1 of class gpu: on a 1 of 1 device has a taint that is not tolerated; "
            "on b there is none.",
            id="taint",
        ),
        pytest.param(
            [
                claim(count=2),
                devices("a", "x", "x", "x"),
                claim("one", on="a/gpu-0", user="train"),
                claim("two", on="a/gpu-2"),
            ],
            f"{NEEDS} 2 of class gpu: on a 2 of 3 devices are taken, by default/train, "
            "claim default/two; on b there is none.",
            id="taken",
        ),
    ],
)
def test_shortage(objects, line):
    assert line in advice(node("a"), node("b"), *objects, pod())


def test_claim_that_is_allocated_elsewhere():
    mine = claim(on="gone/gpu-0", user="train")
    (line,) = [
        line for line in advice(node("a"), mine, pod()) if line.startswith("resourceclaim not")
    ]
    assert line == (
        "resourceclaim not available on the node: claim mine has devices where metadata.name In "
        "[gone] and is reserved for default/train."
    )


def test_extended_resource():
    limits = {"example.com/gpu": "1"}
    container = {"name": "c", "image": "i", "resources": {"requests": limits, "limits": limits}}
    mapped = device_class(extendedResourceName="example.com/gpu")
    web = pod(containers=[container], resourceClaims=[])
    lines = explain([mapped, node("a"), web], "default/web").advice
    text = "resource example.com/gpu needs devices of class gpu: on a there is none."
    assert f"cannot allocate all claims: {text}" in lines


def test_template():
    """The claim of a template is created, as its controller would."""
    template = {
        "apiVersion": API,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one"},
        "spec": {"spec": claim()["spec"]},
    }
    web = pod(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one"}])
    found = explain([device_class(), node("a"), devices("a", "x"), template, web], "default/web")
    assert found.picked == "a"
