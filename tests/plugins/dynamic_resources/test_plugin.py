"""Statuses, scores, post_filter and hints; the numbers are those of the specification's cases."""

import pytest
from tests import device_builders as make

from moorage import explain
from moorage.api import defaults, manifests
from moorage.core.observations import Added, Deleted, Updated
from moorage.core.scheduler import Scheduler
from moorage.plugins.dynamic_resources import DynamicResources
from moorage.testing import check_plugin

TEMPLATE = [{"name": "d", "resourceClaimTemplateName": "t"}]
GENERATED = {"resourceClaimStatuses": [{"name": "d", "resourceClaimName": "p-d"}]}
NOT_HERE = "resourceclaim not available on the node"


def decide(*objects, config=None):
    cluster = [make.node("n1"), make.node("n2"), make.device_class(), *objects]
    return explain(cluster, "default/p", config).to_dict()


def owned(name, uid):
    made = make.claim(name)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    return made


def going(name):
    made = make.claim(name)
    made["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return made


@pytest.mark.parametrize(
    ("subject", "claims", "text"),
    [
        pytest.param(
            make.pod("p", resourceClaims=TEMPLATE),
            [],
            'pod "default/p": ResourceClaim not created yet',
            id="36: not generated",
        ),
        pytest.param(
            make.pod("p", "c"), [], 'could not find ResourceClaim "default/c"', id="no such claim"
        ),
        pytest.param(
            make.pod("p", "c"),
            [going("c")],
            'resourceclaim "c" is being deleted',
            id="36: being deleted",
        ),
        pytest.param(
            make.pod("p", resourceClaims=TEMPLATE) | {"status": GENERATED},
            [owned("p-d", "other")],
            "ResourceClaim default/p-d was not created for Pod default/p (Pod is not owner)",
            id="36: of another pod",
        ),
    ],
)
def test_claims_that_keep_a_pod_out_of_the_queue(subject, claims, text):
    gate = decide(subject, *claims)["preEnqueue"]
    assert gate["reasons"] == [text]
    assert gate["code"] == "UnschedulableAndUnresolvable"


def test_37_a_class_that_does_not_exist():
    found = decide(make.pod("p", "c"), make.claim("c", make.request(device_class="nope")))
    text = "request r: device class nope does not exist"
    assert found["message"] == f"0/2 nodes are available: {text}."
    assert found["postFilter"] == "no new claims to deallocate"
    assert found["preemptionMessage"].startswith("preemption: 0/2 nodes are available")


def test_38_an_unused_claim_on_a_node_that_does_not_fit_is_deallocated():
    blocked = make.node("n1") | {"spec": {"unschedulable": True}}
    objects = [blocked, make.node("n2"), make.device_class(), make.pod("p", "c")]
    given = make.allocated("c", make.result("gpu-0"), on="n1")
    found = explain([*objects, given], "default/p").to_dict()
    assert found["rejected"]["n2"]["reasons"] == [NOT_HERE]
    assert (found["postFilter"], found["deallocated"]) == (
        "deallocation of ResourceClaim completed",
        "c",
    )
    used = [{"resource": "pods", "name": "other", "uid": "other"}]
    given["status"]["reservedFor"] = used
    found = explain([*objects, given], "default/p").to_dict()
    assert (found["postFilter"], "deallocated" in found) == ("still not schedulable", False)


def test_40_an_error_on_one_node_fails_the_attempt():
    missing = f'device.attributes["{make.DRIVER}"].missing == "x"'
    slices = [
        make.resource_slice("n1", [make.device("a", attributes={"missing": "x"})]),
        make.resource_slice("n2", [make.device("a")]),
    ]
    found = decide(make.pod("p", "c"), make.claim("c", make.request("r", missing)), *slices)
    assert "claim default/c: selector #0: CEL runtime error: no such key: missing" in found["error"]


READY = {"type": "Ready", "status": "True"}
FAILED = {"type": "Broken", "status": "True"}


@pytest.mark.parametrize(
    ("conditions", "at", "fits"),
    [
        pytest.param([READY], "2020-01-01T00:00:00Z", True, id="ready"),
        pytest.param([], "2199-01-01T00:00:00Z", True, id="not ready yet"),
        pytest.param([], "2020-01-01T00:00:00Z", False, id="42: too late"),
        pytest.param([READY, FAILED], "2199-01-01T00:00:00Z", False, id="42: failed"),
    ],
)
def test_binding_conditions_of_an_allocated_claim(conditions, at, fits):
    bound = make.result("gpu-0", bindingConditions=["Ready"], bindingFailureConditions=["Broken"])
    given = make.allocated("c", bound, on="n1")
    given["status"]["allocation"]["allocationTimestamp"] = at
    reported = {"driver": make.DRIVER, "pool": "n1", "device": "gpu-0", "conditions": conditions}
    given["status"]["devices"] = [reported]
    found = decide(make.pod("p", "c"), given)
    assert found["feasible"] == (["n1"] if fits else [])
    assert found.get("deallocated") == (None if fits else "c")


def test_43_nodes_with_earlier_alternatives_score_higher():
    models = {"n1": "a", "n2": "b"}
    slices = [
        make.resource_slice(name, [make.device("x", attributes={"model": model})])
        for name, model in models.items()
    ]
    either = [
        make.request(model, f'device.attributes["{make.DRIVER}"].model == "{model}"')
        for model in "ab"
    ]
    found = decide(make.pod("p", "c"), make.claim("c", make.first_available("r", *either)), *slices)
    scores = {name: by["DynamicResources"] for name, by in found["scores"].items()}
    assert scores == {"n1": 2 * 100, "n2": 2 * 87}


@pytest.mark.parametrize(
    ("allocatable", "served"),
    [
        pytest.param({}, True, id="46: by devices"),
        pytest.param({"example.com/gpu": "4"}, False, id="46: by a device plugin"),
    ],
)
def test_extended_resources(allocatable, served):
    serving = make.device_class("gpu", extendedResourceName="example.com/gpu")
    objects = [make.node("n1", allocatable), serving, make.resource_slice("n1", make.devices(2))]
    subject = make.pod("p", requests={"example.com/gpu": "2"})
    found = explain([*objects, subject], "default/p").to_dict()
    assert found["feasible"] == ["n1"]
    assert ("allocations" in found) == served
    if served:
        [entry] = found["allocations"]["n1"]
        assert entry["claim"] == "<extended-resources>"
        assert [each["name"] for each in entry["requests"]] == ["container-0-request-1"]
        assert [each["device"] for each in entry["results"]] == ["gpu-0", "gpu-1"]


def test_an_error_names_the_special_claim_as_long_as_it_does_not_exist():
    serving = make.device_class("gpu", extendedResourceName="example.com/gpu")
    subject = make.pod("p", requests={"example.com/gpu": "33"})
    found = explain([make.node("n1"), serving, subject], "default/p").to_dict()
    text = "number of requested devices 33 exceeds the claim limit of 32"
    assert found["error"].endswith(f"claim default/<extended-resources>: {text}")


@pytest.mark.parametrize(
    ("requests", "classes", "added"),
    [
        pytest.param({"example.com/gpu": "1"}, ["other"], True, id="no class serves the resource"),
        pytest.param({"example.com/gpu": "1"}, [], False, id="there are no classes"),
        pytest.param({"cpu": "1000"}, ["other"], False, id="not for devices"),
    ],
)
def test_what_is_added_for_a_pod_without_claims(requests, classes, added):
    objects = [make.node("n1"), *map(make.device_class, classes), make.pod("p", requests=requests)]
    found = explain(objects, "default/p").to_dict()
    assert found.get("postFilter") == ("no new claims to deallocate" if added else None)


def test_47_a_special_claim_of_an_earlier_attempt_is_deleted():
    left = owned("p-extended-resources-abcde", "uid-p")
    left["metadata"]["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
    serving = make.device_class("gpu", extendedResourceName="example.com/gpu")
    objects = [make.node("n1"), serving, left, make.pod("p", requests={"example.com/gpu": "2"})]
    found = explain(objects, "default/p").to_dict()
    assert found["rejected"]["n1"]["reasons"] == ["cannot schedule extended resource claim"]
    assert (found["postFilter"], found["deleted"]) == (
        "deletion of ResourceClaim completed",
        left["metadata"]["name"],
    )


def test_48_init_containers_use_devices_of_later_ones():
    def container(name, amount, **fields):
        return {"name": name, "resources": {"requests": {"example.com/gpu": str(amount)}}, **fields}

    serving = make.device_class("gpu", extendedResourceName="example.com/gpu")
    first = [
        container("i0", 1),
        container("sidecar", 1, restartPolicy="Always"),
        container("i2", 2),
    ]
    subject = make.pod("p", initContainers=first)
    objects = [make.node("n1"), serving, make.resource_slice("n1", make.devices(4)), subject]
    [entry] = explain(objects, "default/p").to_dict()["allocations"]["n1"]
    counts = {each["name"]: each["exactly"]["count"] for each in entry["requests"]}
    assert counts == {"container-1-request-0": 1, "container-2-request-0": 2}
    used = [(each["containerName"], each["requestName"]) for each in entry["mappings"]]
    assert used == [
        ("sidecar", "container-1-request-0"),
        ("i0", "container-1-request-0"),
        ("i2", "container-2-request-0"),
    ]


def test_conforms():
    check_plugin(DynamicResources())


# Queueing hints


class Waiting:
    """A scheduler with one pod that waits for a device."""

    def __init__(self, *objects):
        self.scheduler = Scheduler()
        self.observe(make.node("n1"), make.device_class(), *objects)
        assert not self.scheduler.schedule_one(0.0) or self.queue == "unschedulable"

    def observe(self, *objects, kind=Added):
        for obj in defaults.complete(manifests.from_dicts(objects)):
            self.scheduler.observe(kind(obj), 0.0)

    @property
    def queue(self):
        return str(self.scheduler.queue.where("uid-p"))


def other(name="other", **fields):
    return make.allocated(name, make.result("gpu-0"), on="n1") | fields


def test_44_a_device_that_another_claim_gives_back_wakes_the_pod():
    run = Waiting(
        make.resource_slice("n1", make.devices(1)), other(), make.claim("c"), make.pod("p", "c")
    )
    assert run.queue == "unschedulable"
    finalizer = other()
    finalizer["metadata"]["finalizers"] = ["x"]
    run.observe(finalizer, kind=Updated)
    assert run.queue == "unschedulable"
    run.observe(make.claim("other"), kind=Updated)
    assert run.queue == "backoff"


def test_the_deletion_of_an_allocated_claim_wakes_the_pod():
    run = Waiting(
        make.resource_slice("n1", make.devices(1)), other(), make.claim("c"), make.pod("p", "c")
    )
    run.observe(make.claim("third"))
    run.observe(make.claim("third"), kind=Deleted)
    assert run.queue == "unschedulable"
    run.observe(other(), kind=Deleted)
    assert run.queue == "backoff"


def test_the_claim_of_another_pod_wakes_the_pods_that_name_it():
    of_other = owned("c", "uid-other")
    run = Waiting(of_other, make.pod("p", "c"))
    assert run.queue == "unschedulable"
    allocated = make.allocated("c", make.result("gpu-0"), on="n1")
    allocated["metadata"]["ownerReferences"] = of_other["metadata"]["ownerReferences"]
    allocated["metadata"]["ownerReferences"][0]["name"] = "q"
    run.observe(allocated, kind=Updated)
    assert run.queue == "backoff"


@pytest.mark.parametrize("late", ["claim", "class", "slice"])
def test_objects_that_come_later_wake_the_pod(late):
    objects = {
        "claim": make.claim("c", make.request(device_class="late")),
        "class": make.device_class("late"),
        "slice": make.resource_slice("n1", make.devices(1)),
    }
    run = Waiting(*(each for name, each in objects.items() if name != late), make.pod("p", "c"))
    assert run.queue in ("unschedulable", "gated")
    run.observe(objects[late])
    assert run.queue in ("backoff", "active")
