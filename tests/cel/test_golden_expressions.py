"""Every selector of the golden family `dra`, and what the reference says of devices like theirs."""

import gzip
import json
from pathlib import Path

import pytest

from moorage.cel import CelRuntimeError, DeviceInput, Version, compile_selector

GOLDEN = Path(__file__).parents[1] / "parity" / "golden" / "dra.jsonl.gz"


def expressions(value):
    if isinstance(value, dict):
        if "cel" in value:
            yield value["cel"]["expression"]
        for item in value.values():
            yield from expressions(item)
    elif isinstance(value, list):
        for item in value:
            yield from expressions(item)


def cases():
    with gzip.open(GOLDEN, "rt") as lines:
        return [json.loads(line) for line in lines]


def device(driver, spec):
    kinds = {"string": str, "int": int, "bool": bool, "version": Version}
    return DeviceInput(
        driver=driver,
        attributes={
            name: kinds[kind](value)
            for name, attribute in spec.get("attributes", {}).items()
            for kind, value in attribute.items()
        },
        capacity={name: c["value"] for name, c in spec.get("capacity", {}).items()},
        allow_multiple_allocations=spec.get("allowMultipleAllocations", False),
    )


def devices(case):
    """The devices of a case by driver, pool and name; the highest generation of a pool counts."""
    slices = [o["spec"] for o in case["objects"] if o["kind"] == "ResourceSlice"]
    slices.sort(key=lambda spec: spec["pool"].get("generation", 0))
    return {
        (spec["driver"], spec["pool"]["name"], each["name"]): device(spec["driver"], each)
        for spec in slices
        for each in spec.get("devices", [])
    }


def selectors_of(case, claim_name, request_name):
    """The expressions of a request and its class."""
    pod = case["pod"]
    claim = next(
        o
        for o in case["objects"]
        if o["kind"] == "ResourceClaim"
        and (o["metadata"]["namespace"], o["metadata"]["name"]) == (pod["namespace"], claim_name)
    )
    parent, _, sub = request_name.partition("/")
    requests = claim["spec"]["devices"]["requests"]
    request = next(r for r in requests if r["name"] == parent)
    alternatives = {r["name"]: r for r in request.get("firstAvailable", [])}
    exact = alternatives[sub] if sub else request["exactly"]
    classes = {o["metadata"]["name"]: o for o in case["objects"] if o["kind"] == "DeviceClass"}
    yield from expressions(classes[exact["deviceClassName"]])
    yield from expressions(exact.get("selectors", []))


def test_devices_that_the_reference_allocates_match_their_selectors():
    checked = 0
    for line in cases():
        known = devices(line["case"])
        for claims in line["want"].get("allocations", {}).values():
            for claim in claims:
                for result in claim["results"]:
                    if "requests" in claim:  # an extended resource, which has no claim yet
                        continue
                    each = known[result["driver"], result["pool"], result["device"]]
                    for text in selectors_of(line["case"], claim["claim"], result["request"]):
                        assert compile_selector(text).matches(each), (line["case"]["id"], text)
                        checked += 1
    assert checked > 250


def test_runtime_errors_of_the_reference_occur_here_too():
    found = 0
    for line in cases():
        error = line["want"].get("error", "")
        if "CEL runtime error: " not in error:
            continue
        expected = error.partition("CEL runtime error: ")[2]
        texts = set()
        for text in set(expressions(line["case"])):
            for each in devices(line["case"]).values():
                try:
                    compile_selector(text).matches(each)
                except CelRuntimeError as problem:
                    texts.add(str(problem))
        assert expected in texts, line["case"]["id"]
        found += 1
    assert found >= 4


def test_every_golden_expression_compiles_and_ends():
    results = {True: 0, False: 0, "error": 0}
    for line in cases():
        for expression in sorted(set(expressions(line["case"]))):
            selector = compile_selector(expression)
            for each in devices(line["case"]).values():
                try:
                    results[selector.matches(each)] += 1
                except CelRuntimeError:
                    results["error"] += 1
    assert min(results.values()) > 100, results


GPU = DeviceInput(
    driver="gpu.example.com",
    attributes={
        "model": "a100",
        "index": 3,
        "healthy": True,
        "numa": 0,
        "driverVersion": Version("2.0.0"),
        "resource.kubernetes.io/pcieRoot": "pci0000:01",
        "acme.io/rack": "rack-1",
    },
    capacity={"memory": "40Gi", "cores": "7"},
)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('device.driver == "gpu.example.com"', True),
        ('device.driver in ["gpu.example.com", "fabric.acme.io"]', True),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0', True),
        ('device.attributes["gpu.example.com"].transformList(k, v, k).size() >= 4', True),
        ('!("acme.io" in device.attributes) || device.attributes["acme.io"].rack == "r"', False),
        ('device.attributes["gpu.example.com"].all(k, k.size() > 3)', True),
        ('device.attributes["gpu.example.com"].missing == "x"', "no such key: missing"),
        ('device.attributes["gpu.example.com"].model > 3', "no such overload"),
        ('device.attributes["gpu.example.com"].model', "CEL result of type string could not be"),
        ('device.attributes["gpu.example.com"].missing == 1 || device.driver != ""', True),
        ('device.capacity["gpu.example.com"].nosuch.isGreaterThan(quantity("1"))', "no such key"),
        ('sign(device.capacity["gpu.example.com"].memory.sub(quantity("24Gi"))) > 0', True),
        (
            'device.attributes["resource.kubernetes.io"].?pcieRoot.orValue("").endsWith("1")',
            True,
        ),
    ],
)
def test_golden_expressions_on_one_device(expression, expected):
    selector = compile_selector(expression)
    if isinstance(expected, bool):
        assert selector.matches(GPU) is expected
    else:
        with pytest.raises(CelRuntimeError, match=expected):
            selector.matches(GPU)
