"""Which devices are allocated; the numbers are those of the cases in the specification."""

import pytest
from tests import device_builders as make

from moorage import explain

NO = "cannot allocate all claims"


def decide(*objects, claims=("c",)):
    """What the scheduler says about a pod with claims on node n1."""
    cluster = [make.node("n1"), make.device_class(), make.pod("p", *claims), *objects]
    return explain(cluster, "default/p").to_dict()


def chosen(*objects, claims=("c",)):
    """Request and device of all allocated devices; the reasons if there are none."""
    found = decide(*objects, claims=claims)
    if "error" in found:
        return found["error"].removeprefix('running "DynamicResources" filter plugin: ')
    if not found["feasible"]:
        return found["rejected"]["n1"]["reasons"][0]
    entries = found.get("allocations", {}).get("n1", [])
    return [(r["request"], f"{r['pool']}/{r['device']}") for e in entries for r in e["results"]]


def test_49_pools_by_name_and_those_with_binding_conditions_last():
    slices = [
        make.resource_slice(name, make.devices(1, **extra), pool=name, nodeName="n1")
        for name, extra in (
            ("pool-3", {}),
            ("pool-2", {}),
            ("pool-1", {"bindingConditions": []}),
        )
    ]
    assert chosen(*slices, make.claim("c", make.request(count=3))) == [
        ("r", "pool-2/gpu-0"),
        ("r", "pool-3/gpu-0"),
        ("r", "pool-1/gpu-0"),
    ]


def test_slices_by_name_and_devices_in_their_order():
    b = make.resource_slice("b", [make.device("x")], pool="n1", count=2)
    a = make.resource_slice("a", [make.device("z"), make.device("y")], pool="n1", count=2)
    found = chosen(b, a, make.claim("c", make.request(count=3)))
    assert [each for _, each in found] == ["n1/z", "n1/y", "n1/x"]


SIZES = [make.device("large", {"memory": "80Gi"}), make.device("small", {"memory": "40Gi"})]
LARGE = f'device.capacity["{make.DRIVER}"].memory.isGreaterThan(quantity("40Gi"))'


@pytest.mark.parametrize("claims", [("c",), ("first", "second")])
def test_50_backtracks_across_requests_and_claims(claims):
    slices = make.resource_slice("n1", SIZES)
    both = [make.request("any"), make.request("large", LARGE)]
    objects = [make.claim(name, each) for name, each in zip(("first", "second"), both, strict=True)]
    found = chosen(slices, make.claim("c", *both), *objects, claims=claims)
    assert found == [("any", "n1/small"), ("large", "n1/large")]


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        pytest.param({}, NO, id="51: one of them is in use"),
        pytest.param(
            {"adminAccess": True},
            [("r", "n1/gpu-0"), ("r", "n1/gpu-1")],
            id="51: admin access does not care",
        ),
    ],
)
def test_all_devices(fields, found):
    other = make.allocated("other", make.result("gpu-1"))
    wanted = make.claim("c", make.request(allocationMode="All", **fields))
    assert chosen(make.resource_slice("n1", make.devices(2)), other, wanted) == found


def test_52_admin_access_to_a_device_that_another_claim_of_the_pod_has():
    slices = make.resource_slice("n1", make.devices(2))
    admin = make.claim(
        "admin", make.request("a", adminAccess=True), make.request("b", adminAccess=True)
    )
    found = chosen(slices, make.claim("c"), admin, claims=("c", "admin"))
    assert [each for _, each in found] == ["n1/gpu-0", "n1/gpu-0", "n1/gpu-1"]


def test_an_admin_claim_blocks_a_later_normal_one():
    admin = make.claim("admin", make.request(adminAccess=True))
    found = chosen(
        make.resource_slice("n1", make.devices(1)), make.claim("c"), admin, claims=("admin", "c")
    )
    assert found == NO


ALL = make.request(allocationMode="All")


@pytest.mark.parametrize(
    ("slices", "wanted", "found"),
    [
        pytest.param([("n1", {"count": 2})], make.request(), NO, id="53: a slice is missing"),
        pytest.param(
            [("n1", {"count": 2})],
            ALL,
            f"claim default/c, request r: asks for all devices, but resource pool {make.DRIVER}/n1 "
            "is currently being updated",
            id="53: all of an incomplete pool",
        ),
        pytest.param(
            [("a", {"pool": "n1", "count": 2}), ("b", {"pool": "n1", "count": 2})],
            make.request(),
            "invalid resource pools were encountered",
            id="54: a device name twice",
        ),
        pytest.param(
            [
                ("a", {"pool": "n1", "count": 2}),
                ("b", {"pool": "n1", "count": 2}),
                ("c", {"pool": "other", "nodeName": "n1"}),
            ],
            make.request(),
            [("r", "other/gpu-0")],
            id="54: another pool is valid",
        ),
        pytest.param(
            [
                ("a", {"pool": "x", "count": 2, "nodeName": "n1"}),
                ("b", {"pool": "x", "generation": 2, "nodeName": "n2"}),
            ],
            make.request(),
            NO,
            id="55: an incomplete old generation",
        ),
        pytest.param(
            [
                ("a", {"pool": "x", "nodeName": "n1"}),
                ("b", {"pool": "x", "generation": 2, "nodeName": "n2"}),
            ],
            make.request(),
            [("r", "x/gpu-0")],
            id="55: a complete old generation",
        ),
    ],
)
def test_pools(slices, wanted, found):
    made = [make.resource_slice(name, make.devices(1), **fields) for name, fields in slices]
    assert chosen(*made, make.claim("c", wanted)) == found


def test_56_no_more_devices_than_a_claim_can_hold():
    found = chosen(
        make.resource_slice("n1", make.devices(40)), make.claim("c", make.request(count=33))
    )
    assert found == "claim default/c: number of requested devices 33 exceeds the claim limit of 32"


def test_56_alternatives_that_together_are_few_enough():
    either = [
        make.first_available(name, make.request("many", count=32), make.request("few", count=16))
        for name in ("a", "b")
    ]
    found = chosen(make.resource_slice("n1", make.devices(48)), make.claim("c", *either))
    assert [name for name, _ in found] == ["a/few"] * 16 + ["b/few"] * 16


NUMA = [make.device(f"gpu-{i}", attributes={"numa": numa}) for i, numa in enumerate((0, 1, 1))]
MATCH = f"{make.DRIVER}/numa"


def test_matching_attributes():
    both = make.claim("c", make.request(count=2), constraints=[{"matchAttribute": MATCH}])
    found = chosen(make.resource_slice("n1", NUMA), both)
    assert [each for _, each in found] == ["n1/gpu-1", "n1/gpu-2"]


def test_57_a_constraint_on_one_alternative():
    either = make.first_available("either", make.request("a", count=3), make.request("b", count=2))
    constraint = {"matchAttribute": MATCH, "requests": ["either/a"]}
    found = chosen(
        make.resource_slice("n1", NUMA), make.claim("c", either, constraints=[constraint])
    )
    assert found == [("either/b", "n1/gpu-0"), ("either/b", "n1/gpu-1")]


def test_58_all_devices_with_a_constraint_that_they_violate():
    found = chosen(
        make.resource_slice("n1", NUMA),
        make.claim("c", ALL, constraints=[{"matchAttribute": MATCH}]),
    )
    assert found == (
        f"claim default/c, request r: cannot add device {make.DRIVER}/n1/gpu-1 because a claim "
        "constraint would not be satisfied"
    )


def test_distinct_attributes_compare_with_the_device_before():
    values = [make.device(f"gpu-{i}", attributes={"numa": n}) for i, n in enumerate((0, 0, 1, 0))]
    three = make.claim("c", make.request(count=3), constraints=[{"distinctAttribute": MATCH}])
    found = chosen(make.resource_slice("n1", values), three)
    assert [each for _, each in found] == ["n1/gpu-0", "n1/gpu-2", "n1/gpu-3"]


A, B = ({"key": key, "effect": "NoSchedule"} for key in "ab")


@pytest.mark.parametrize(
    ("taints", "tolerated", "fits"),
    [
        pytest.param([{"key": "a", "effect": "None"}], "", True, id="59: no effect"),
        pytest.param([A], "", False, id="59: untolerated"),
        pytest.param([A, B], "a", False, id="59: one of two tolerated"),
        pytest.param([A, B], "ab", True, id="59: both tolerated"),
    ],
)
def test_taints(taints, tolerated, fits):
    tolerations = [{"key": key, "operator": "Exists"} for key in tolerated]
    wanted = make.claim("c", make.request(tolerations=tolerations))
    found = decide(make.resource_slice("n1", make.devices(1, taints=taints)), wanted)
    assert (found["feasible"] == ["n1"]) == fits
    if fits and tolerated:
        [entry] = found["allocations"]["n1"]
        assert entry["results"][0]["tolerations"] == tolerations


def partition(name, gib):
    used = [{"counterSet": "gpu", "counters": {"memory": {"value": f"{gib}Gi"}}}]
    return make.device(name, attributes={"size": gib}, consumesCounters=used)


def counters(gib, **fields):
    sets = [{"name": "gpu", "counters": {"memory": {"value": f"{gib}Gi"}}}]
    return make.resource_slice(
        "counters", [], pool="n1", count=2, nodeName="n1", sharedCounters=sets
    )


@pytest.mark.parametrize(
    ("taken", "found"),
    [
        pytest.param("big", NO, id="60: 16 of 18 Gi are in use"),
        pytest.param("small", [("r", "n1/other")], id="60: 4 of 18 Gi are in use"),
    ],
)
def test_counters(taken, found):
    parts = [partition("big", 16), partition("small", 4), partition("other", 4)]
    slices = [counters(18), make.resource_slice("devices", parts, pool="n1", count=2)]
    four = f'device.attributes["{make.DRIVER}"].size == 4'
    other = make.allocated("other", make.result(taken))
    assert chosen(*slices, other, make.claim("c", make.request("r", four))) == found


KIND = f"{make.DRIVER}/kind"
USES_ONE = [{"counterSet": "gpu", "counters": {"memory": {"value": "1Gi"}}}]


def of_kind(name, kind="a", **fields):
    return make.device(name, attributes={"kind": kind}, **fields)


def one(name, kind="a", **fields):
    """A device that uses 1 Gi of the pool's counter."""
    return of_kind(name, kind, consumesCounters=USES_ONE, **fields)


def is_of_kind(kind):
    return f'device.attributes["{make.DRIVER}"].kind == "{kind}"'


SHARED = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "4Gi"}}}
SMALL_PART, LARGE_PART = ({"capacity": {"requests": {"memory": n}}} for n in ("1Gi", "3Gi"))


@pytest.mark.parametrize(
    ("devices", "gib", "requests", "fields", "found"),
    [
        pytest.param(
            [one("tainted", taints=[A]), one("free")],
            1,
            [make.request()],
            {},
            ["free"],
            id="its counters, if a taint keeps it away",
        ),
        pytest.param(
            [one("x"), one("y", "b"), one("z")],
            2,
            [make.request(count=2)],
            {"constraints": [{"matchAttribute": KIND}]},
            ["x", "z"],
            id="its counters, if a constraint does",
        ),
        pytest.param(
            [one("shared", **SHARED), one("b", "b"), of_kind("plain")],
            1,
            [make.request("any"), make.request("b", is_of_kind("b"))],
            {},
            ["plain", "b"],
            id="its counters, if it is shared and the next request fails",
        ),
        pytest.param(
            [one("shared", **SHARED), of_kind("b", "b"), one("c", "c")],
            1,
            [
                make.request("first", is_of_kind("a"), **SMALL_PART),
                make.first_available(
                    "second",
                    make.request("two", is_of_kind("a"), **LARGE_PART),
                    make.request("b", is_of_kind("b")),
                ),
                make.first_available(
                    "third",
                    make.request("c", is_of_kind("c")),
                    make.request("again", is_of_kind("a"), **SMALL_PART),
                ),
            ],
            {},
            ["shared", "b", "shared"],
            id="not the counters of a share that is still there",
        ),
        pytest.param(
            [of_kind("shared", **SHARED), of_kind("b", "b")],
            1,
            [
                make.request("part", is_of_kind("a"), **LARGE_PART),
                make.first_available(
                    "more",
                    make.request("all", is_of_kind("a"), allocationMode="All", **LARGE_PART),
                    make.request("b", is_of_kind("b")),
                ),
            ],
            {"constraints": [{"matchAttribute": KIND, "requests": ["more"]}]},
            ["shared", "b"],
            id="its part in a constraint, if all are asked for and not enough is left",
        ),
    ],
)
def test_a_device_that_is_not_taken_gives_everything_back(devices, gib, requests, fields, found):
    slices = [counters(gib), make.resource_slice("devices", devices, pool="n1", count=2)]
    taken = chosen(*slices, make.claim("c", *requests, **fields))
    assert [each.removeprefix("n1/") for _, each in taken] == found


def test_counters_of_pools_of_different_drivers_with_one_name():
    slices = [counters(1), make.resource_slice("devices", [one("a")], pool="n1", count=2)]
    others = [
        each | {"metadata": {"name": f"other-{i}"}, "spec": each["spec"] | {"driver": "other"}}
        for i, each in enumerate(slices)
    ]
    found = chosen(*slices, *others, make.claim("c", make.request(count=2)))
    assert [each for _, each in found] == ["n1/a", "n1/a"]


def consumed(*objects, claims):
    entries = decide(*objects, claims=claims).get("allocations", {}).get("n1", [])
    return [each["consumedCapacity"] for entry in entries for each in entry["results"]]


def shared_device(**policy):
    memory = {"value": "8Gi", **({"requestPolicy": policy} if policy else {})}
    return make.resource_slice(
        "n1", [make.device("v", {"memory": memory}, allowMultipleAllocations=True)]
    )


def part(name, amount=None):
    return make.claim(
        name, make.request(capacity={"requests": {"memory": amount}} if amount else None)
    )


@pytest.mark.parametrize(
    ("amounts", "found"),
    [
        pytest.param(("4Gi", "4096Mi"), ["4Gi", "4Gi"], id="61: two halves"),
        pytest.param(("4Gi", "5Gi"), [], id="61: too much together"),
        pytest.param((None, "1Gi"), [], id="61: without a request it takes all"),
    ],
)
def test_shared_devices(amounts, found):
    a, b = (part(name, amount) for name, amount in zip("ab", amounts, strict=True))
    taken = consumed(shared_device(), a, b, claims=("a", "b"))
    assert taken == [{"memory": each} for each in found]


@pytest.mark.parametrize(
    ("policy", "amount", "taken"),
    [
        pytest.param({"default": "2Gi", "validRange": {"min": "2Gi"}}, "1Gi", "2Gi", id="62: min"),
        pytest.param({"default": "3Gi", "validRange": {"min": "2Gi"}}, None, "3Gi", id="default"),
        pytest.param(
            {"default": "2Gi", "validRange": {"min": "2Gi", "step": "2Gi"}}, "3Gi", "4Gi", id="step"
        ),
        pytest.param(
            {"default": "2Gi", "validValues": ["2Gi", "6Gi"]}, "3Gi", "6Gi", id="next valid value"
        ),
        pytest.param(
            {"default": "2Gi", "validRange": {"min": "2Gi", "max": "4Gi"}},
            "5Gi",
            None,
            id="above max",
        ),
        pytest.param({"default": "2Gi", "validValues": ["2Gi"]}, "3Gi", None, id="no valid value"),
    ],
)
def test_capacity_policies(policy, amount, taken):
    found = consumed(shared_device(**policy), part("c", amount), claims=("c",))
    assert found == ([{"memory": taken}] if taken else [])


def test_a_capacity_that_the_device_lacks():
    wanted = make.claim("c", make.request(capacity={"requests": {f"{make.DRIVER}/memory": "1Gi"}}))
    assert chosen(shared_device(), wanted) == NO


ZONE = {"key": "zone", "operator": "In", "values": ["x"]}
FABRIC = {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}]}


@pytest.mark.parametrize("local", [True, False])
def test_63_where_the_claim_can_be_used(local):
    fabric = make.resource_slice(
        "fabric", make.devices(1), driver="net", pool="f", nodeSelector=FABRIC
    )
    here = make.resource_slice("n1", make.devices(1))
    requests = [make.request("net", 'device.driver == "net"')]
    if local:
        requests.append(make.request("gpu", f'device.driver == "{make.DRIVER}"'))
    cluster = [make.node("n1", zone="x"), make.device_class(), make.pod("p", "c"), fabric, here]
    found = explain([*cluster, make.claim("c", *requests)], "default/p").to_dict()
    [entry] = found["allocations"]["n1"]
    [term] = entry["nodeSelector"]["nodeSelectorTerms"]
    name = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    assert term == ({"matchFields": [name]} if local else {"matchExpressions": [ZONE]})


def test_requirements_of_several_pools_are_added_once():
    pools = [
        make.resource_slice(name, make.devices(1), driver="net", pool=name, nodeSelector=selector)
        for name, values in (("a", ["x", "y"]), ("b", ["y", "x"]), ("c", ["x"]))
        for selector in [{"nodeSelectorTerms": [{"matchExpressions": [ZONE | {"values": values}]}]}]
    ]
    cluster = [make.node("n1", zone="x"), make.device_class(), make.pod("p", "c"), *pools]
    found = explain([*cluster, make.claim("c", make.request(count=3))], "default/p").to_dict()
    [entry] = found["allocations"]["n1"]
    [term] = entry["nodeSelector"]["nodeSelectorTerms"]
    assert [each["values"] for each in term["matchExpressions"]] == [["x", "y"], ["x"]]


def test_an_attribute_of_an_unknown_type_is_an_error_of_every_selector():
    future = make.device("x") | {"attributes": {"future": {"strings": ["a"]}}}
    found = chosen(make.resource_slice("n1", [future]), make.claim("c", make.request("r", "true")))
    text = "CEL runtime error: attribute future: unsupported attribute value"
    assert found == f"claim default/c: selector #0: {text}"


def test_configuration_of_classes_comes_before_that_of_the_claim():
    def opaque(mode):
        return {"opaque": {"driver": make.DRIVER, "parameters": {"mode": mode}}}

    classes = make.device_class("fast", config=[opaque("class")])
    wanted = make.claim(
        "c",
        make.request("a", device_class="fast"),
        make.request("b"),
        config=[{"requests": ["b"], **opaque("one")}, opaque("all")],
    )
    [entry] = decide(classes, make.resource_slice("n1", make.devices(2)), wanted)["allocations"][
        "n1"
    ]
    found = [
        (each["source"], each.get("requests"), each["opaque"]["parameters"]["mode"])
        for each in entry["config"]
    ]
    assert found == [
        ("FromClass", ["a"], "class"),
        ("FromClaim", ["b"], "one"),
        ("FromClaim", None, "all"),
    ]


def test_a_search_without_end_is_an_error():
    different = [make.device(f"gpu-{i}", attributes={"numa": i}) for i in range(24)]
    wanted = make.claim("c", make.request(count=12), constraints=[{"matchAttribute": MATCH}])
    tight = {"name": "DynamicResources", "args": {"filterTimeout": "1ms"}}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "pluginConfig": [tight]}],
    }
    objects = [
        make.node("n1"),
        make.device_class(),
        make.pod("p", "c"),
        wanted,
        make.resource_slice("n1", different),
    ]
    found = explain(objects, "default/p", config).to_dict()
    assert found["error"].endswith("node n1: timed out trying to allocate devices")
