"""Reserve, pre_bind and unreserve: what is held, written, waited for, and undone."""

import pytest
from msgspec.structs import replace
from tests import device_builders as make
from tests import group_builders

from moorage.api import config, defaults, manifests, resource_claims
from moorage.api.devices import AllocatedDeviceStatus, ResourceClaim
from moorage.api.meta import Condition
from moorage.api.server_requests import (
    BindPod,
    CreateResourceClaim,
    DeallocateResourceClaim,
    DeleteResourceClaim,
    EmitEvent,
    PatchPodStatus,
    ReleaseResourceClaim,
    ReserveResourceClaim,
)
from moorage.core.effects import Done, Failed, Unknown
from moorage.core.journal import Erred, Measured
from moorage.core.observations import Added, Deleted, Updated
from moorage.core.scheduler import Scheduler

WRITES = (
    BindPod,
    CreateResourceClaim,
    DeallocateResourceClaim,
    DeleteResourceClaim,
    ReleaseResourceClaim,
    ReserveResourceClaim,
)


class Run:
    """A scheduler on node n1, and an API server that holds the claims."""

    def __init__(self, *objects, settings=None):
        self.scheduler = Scheduler(config.load(settings))
        self.version = 1
        self.now = 0.0
        self.claims = {}
        self.pending = []
        self.events = []
        made = defaults.complete(
            manifests.from_dicts([make.node("n1"), make.device_class(), *objects])
        )
        for obj in made:
            if isinstance(obj, ResourceClaim):
                obj = self.claims[obj.key] = self.newer(obj)
            self.take(self.scheduler.observe(Added(obj), self.now))

    def newer(self, obj):
        self.version += 1
        return replace(obj, metadata=replace(obj.metadata, resource_version=str(self.version)))

    def take(self, effects):
        for effect in effects:
            if isinstance(effect.request, EmitEvent):
                self.events.append(effect.request.reason)
            elif isinstance(effect.request, WRITES) or self.is_special(effect.request):
                self.pending.append(effect)

    def is_special(self, request):
        is_patch = isinstance(request, PatchPodStatus)
        return is_patch and request.extended_resource_claim_status is not None

    def schedule(self):
        while self.scheduler.has_work:
            self.take(self.scheduler.schedule_one(self.now))
        return self

    @property
    def requests(self):
        return [type(effect.request).__name__ for effect in self.pending]

    def write(self, request):
        """The claim after a request, as the API server has it."""
        if isinstance(request, CreateResourceClaim):
            meta = replace(request.claim.metadata, uid="uid-special")
            return self.newer(replace(request.claim, metadata=meta))
        if isinstance(request, DeleteResourceClaim):
            del self.claims[request.key]
            return None
        known = self.claims[request.key]
        if isinstance(request, ReserveResourceClaim):
            ref = (request.pod.name, request.pod.uid)
            new = resource_claims.reserved(known, request.key, ref, request.allocation, "")
        elif isinstance(request, DeallocateResourceClaim):
            new = resource_claims.deallocated(known)
        else:
            new = resource_claims.released(known, request.pod.uid)
        return self.newer(new)

    def answer(self, outcome=None, *, performed=True, seen=False):
        """End the oldest request: as performed, or with another outcome."""
        effect = self.pending.pop(0)
        written = None
        if performed and not isinstance(effect.request, BindPod | PatchPodStatus):
            written = self.write(effect.request)
            if written is not None:
                self.claims[written.key] = written
        if seen and written is not None:
            self.take(self.scheduler.observe(Updated(written), self.now))
        self.take(self.scheduler.complete(effect.ticket, outcome or Done(claim=written), self.now))
        self.scheduler.check_invariants()

    def advance(self, seconds):
        self.now += seconds
        self.take(self.scheduler.advance(self.now))

    def devices_of(self, key):
        allocation = self.claims[key].status.allocation
        return [each.device for each in allocation.devices.results] if allocation else []

    def latest(self, key):
        return self.scheduler.cluster.latest(ResourceClaim, key)

    def failure(self, uid):
        return self.scheduler.journal.last(Erred, uid).message


ONE = make.resource_slice("n1", make.devices(1))
TWO = make.resource_slice("n1", make.devices(2))


def pair():
    """Two pods with a claim each."""
    return [make.claim("a"), make.claim("b"), make.pod("pa", "a"), make.pod("pb", "b")]


def test_devices_in_flight_are_taken():
    run = Run(TWO, *pair()).schedule()
    assert run.requests == ["ReserveResourceClaim", "ReserveResourceClaim"]
    run.answer()
    run.answer()
    assert (run.devices_of("default/a"), run.devices_of("default/b")) == (["gpu-0"], ["gpu-1"])
    assert run.requests == ["BindPod", "BindPod"]


def test_a_written_claim_stays_taken_until_it_is_observed():
    run = Run(ONE, *pair()).schedule()
    run.answer()
    assert run.latest("default/a").status.allocation is not None
    # An older version comes late: it does not free the device.
    older = replace(run.claims["default/a"], status=type(run.claims["default/a"].status)())
    meta = replace(older.metadata, resource_version="2")
    run.scheduler.observe(Updated(replace(older, metadata=meta)), run.now)
    assert run.latest("default/a").status.allocation is not None
    run.scheduler.observe(Updated(run.claims["default/a"]), run.now)
    assert not list(run.scheduler.cluster.assumed)
    run.advance(400)
    assert run.schedule().requests == ["BindPod"]


@pytest.mark.parametrize(
    ("outcome", "performed"),
    [
        pytest.param(Failed("conflict"), False, id="failed"),
        pytest.param(Unknown("lost"), False, id="unknown, and not carried out"),
        pytest.param(Unknown("lost"), True, id="unknown, and carried out"),
    ],
)
def test_a_failed_write_is_released_before_the_device_is_free(outcome, performed):
    run = Run(ONE, *pair()).schedule()
    run.answer(outcome, performed=performed)
    assert run.failure("uid-pa").startswith('running PreBind plugin "DynamicResources": ')
    assert run.requests == ["ReleaseResourceClaim"]
    run.advance(20)
    assert run.schedule().requests == ["ReleaseResourceClaim"], "the device is still held"
    run.answer(Failed("the server is busy"), performed=False)
    run.advance(2)
    assert run.requests == ["ReleaseResourceClaim"], "repeated"
    run.answer()
    run.advance(20)
    run.schedule()
    [effect] = run.pending
    expected = "a" if performed else effect.request.name
    # If it was carried out, the claim keeps its device, and only its own pod can use it.
    assert effect.request.name == expected
    assert not run.claims["default/a"].status.reserved_for


def test_a_written_claim_that_is_not_observed_yet_stays_taken_while_it_is_released():
    run = Run(ONE, *pair()).schedule()
    run.answer()
    assert run.requests == ["BindPod"]
    run.answer(Failed("refused"), performed=False)
    assert run.requests == ["ReleaseResourceClaim"]
    assert run.latest("default/a").status.allocation is not None
    run.advance(400)
    assert run.schedule().requests == ["ReleaseResourceClaim"], "no other pod gets the device"
    run.answer()
    # The claim keeps its allocation, which is not observed yet either.
    assert run.latest("default/a").status.allocation is not None
    run.advance(400)
    [effect] = run.schedule().pending
    assert effect.request.pod.name == "pa"


def test_a_shared_claim_is_reserved_for_both_pods():
    run = Run(ONE, make.claim("c"), make.pod("p1", "c"), make.pod("p2", "c")).schedule()
    run.answer(seen=True)
    run.answer()
    run.advance(20)
    run.schedule()
    run.answer(seen=True)
    users = [each.name for each in run.claims["default/c"].status.reserved_for]
    assert users == ["p1", "p2"]


def test_45_a_claim_that_was_deallocated_meanwhile():
    run = Run(ONE, make.claim("c"), make.pod("p1", "c")).schedule()
    run.answer(seen=True)
    run.answer()
    other = defaults.complete(manifests.from_dicts([make.pod("p2", "c")]))[0]
    run.take(run.scheduler.observe(Added(other), run.now))
    run.schedule()
    [effect] = run.pending
    assert isinstance(effect.request, ReserveResourceClaim)
    assert effect.request.allocation is None
    text = "claim default/c got deallocated elsewhere in the meantime"
    run.answer(Failed(text), performed=False)
    assert run.failure("uid-p2") == f'running PreBind plugin "DynamicResources": {text}'


# Binding conditions

WAITS = make.resource_slice("n1", [make.device("f", bindingConditions=["Ready"])])


def reported(run, **condition):
    status = AllocatedDeviceStatus(
        driver="gpu.example.com", pool="n1", device="f", conditions=(Condition(**condition),)
    )
    known = run.claims["default/c"]
    new = run.newer(replace(known, status=replace(known.status, devices=(status,))))
    run.claims["default/c"] = new
    run.take(run.scheduler.observe(Updated(new), run.now))


def test_the_pod_is_bound_when_the_device_is_ready():
    run = Run(WAITS, make.claim("c"), make.pod("p", "c")).schedule()
    run.answer(seen=True)
    assert (run.requests, run.events) == ([], ["BindingConditionsPending"])
    reported(run, type="Ready", status="False")
    assert run.requests == []
    reported(run, type="Ready", status="True")
    assert run.requests == ["BindPod"]


def test_a_device_that_does_not_become_ready_in_time():
    run = Run(WAITS, make.claim("c"), make.pod("p", "c")).schedule()
    run.answer(seen=True)
    run.advance(600)
    assert "device binding timeout: context deadline exceeded" in run.failure("uid-p")
    assert run.requests == ["ReleaseResourceClaim"]


def test_a_device_that_failed():
    failing = make.device("f", bindingConditions=["Ready"], bindingFailureConditions=["Broken"])
    run = Run(make.resource_slice("n1", [failing]), make.claim("c"), make.pod("p", "c")).schedule()
    run.answer(seen=True)
    reported(run, type="Broken", status="True", reason="Fire", message="it burns")
    assert run.failure("uid-p").endswith(
        'device binding failed: claim=default/c, reason=Fire, message="it burns"'
    )


def test_a_claim_that_is_deleted_while_its_device_is_not_ready():
    run = Run(WAITS, make.claim("c"), make.pod("p", "c")).schedule()
    run.answer(seen=True)
    run.take(run.scheduler.observe(Deleted(run.claims["default/c"]), run.now))
    assert run.failure("uid-p").endswith('resourceclaim.resource.k8s.io "c" not found')


# Extended resources

SERVING = make.device_class("gpu", extendedResourceName="example.com/gpu")


def special():
    wanted = [make.pod(name, requests={"example.com/gpu": "1"}) for name in ("pa", "pb")]
    return Run(ONE, SERVING | {"metadata": {"name": "served"}}, *wanted).schedule()


def test_a_special_claim_is_created_reserved_and_shown_in_the_pod():
    run = special()
    assert run.requests == ["CreateResourceClaim"], "the second pod finds no device"
    run.answer()
    assert run.requests == ["ReserveResourceClaim"]
    assert run.pending[0].request.uid == "uid-special"
    run.answer()
    [effect] = run.pending
    status = effect.request.extended_resource_claim_status
    assert status.resource_claim_name.startswith("pa-extended-resources-")
    assert [each.container_name for each in status.request_mappings] == ["c"]
    run.answer()
    assert run.requests == ["BindPod"]


def test_a_special_claim_is_deleted_if_the_pod_cannot_be_bound():
    run = special()
    run.answer()
    run.answer(Failed("conflict"), performed=False)
    assert run.requests == ["DeleteResourceClaim"]
    run.answer()
    assert not list(run.scheduler.cluster.assumed)
    run.advance(20)
    assert run.schedule().requests == ["CreateResourceClaim"]


def left_over(**meta):
    """A special claim of a pod whose scheduler was killed."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "pa", "uid": "uid-pa", "controller": True}
    made = make.claim("old")
    made["metadata"] |= {
        "annotations": {resource_claims.EXTENDED_RESOURCE_CLAIM: "true"},
        "ownerReferences": [owner],
        **meta,
    }
    wanted = make.pod("pa", requests={"example.com/gpu": "1"})
    return Run(ONE, SERVING | {"metadata": {"name": "served"}}, made, wanted).schedule()


@pytest.mark.parametrize(
    ("meta", "requests"),
    [
        pytest.param({}, ["DeleteResourceClaim"], id="it is deleted"),
        pytest.param(
            {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["other.example.com/x"]},
            [],
            id="it waits for another finalizer",
        ),
        pytest.param(
            {
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "finalizers": [resource_claims.FINALIZER],
            },
            ["DeleteResourceClaim"],
            id="it waits for our finalizer",
        ),
    ],
)
def test_a_special_claim_that_is_left_over(meta, requests):
    assert left_over(**meta).requests == requests


def test_a_claim_named_twice_is_written_once():
    run = Run(TWO, make.claim("c"), make.pod("p", "c", "c")).schedule()
    run.answer()
    assert (run.devices_of("default/c"), run.requests) == (["gpu-0"], ["BindPod"])


def test_a_claim_in_flight_rejects_another_pod():
    run = Run(
        TWO, make.claim("c", make.request(count=2)), make.pod("p1", "c"), make.pod("p2", "c")
    ).schedule()
    last = run.scheduler.journal.story("uid-p2")
    assert any("is in the process of being allocated" in str(fact) for fact in last)


@pytest.mark.parametrize("watch_first", [True, False])
def test_a_pod_that_shares_a_claim_is_woken_when_its_allocation_is_written(watch_first):
    run = Run(
        TWO, make.claim("c", make.request(count=2)), make.pod("p1", "c"), make.pod("p2", "c")
    ).schedule()
    [effect] = run.pending
    written = run.claims["default/c"] = run.write(effect.request)
    response = Done(claim=written)
    if watch_first:
        run.take(run.scheduler.observe(Updated(written), run.now))
        # The claim is still held, so this attempt fails, and no other watch event will follow.
        run.advance(2)
        run.schedule()
        run.take(run.scheduler.complete(effect.ticket, response, run.now))
    else:
        run.take(run.scheduler.complete(effect.ticket, response, run.now))
        run.take(run.scheduler.observe(Updated(written), run.now))
    run.advance(10)
    reserved = [each.request.pod.name for each in run.schedule().pending[1:]]
    assert reserved == ["p1", "p2"], "p1 is bound, and the claim reserved for p2"


# Metrics


def measured(run):
    """Name without prefix, labels and value of what was measured."""
    facts = [fact for fact in run.scheduler.journal if isinstance(fact, Measured)]
    return [(fact.metric.removeprefix("scheduler_"), *fact.labels, fact.value) for fact in facts]


@pytest.mark.parametrize(
    ("end", "status"),
    [
        pytest.param({"type": "Ready", "status": "True"}, "success", id="ready"),
        pytest.param({"type": "Broken", "status": "True"}, "failure", id="failed"),
        pytest.param(None, "timeout", id="not ready in time"),
        pytest.param("deleted", "error", id="the pod is deleted"),
    ],
)
def test_a_wait_for_binding_conditions_is_measured(end, status):
    waits = make.device("f", bindingConditions=["Ready"], bindingFailureConditions=["Broken"])
    run = Run(make.resource_slice("n1", [waits]), make.claim("c"), make.pod("p", "c")).schedule()
    run.answer(seen=True)
    run.advance(600 if end is None else 3)
    if end == "deleted":
        known = run.scheduler.known_pod("default/p")
        run.take(run.scheduler.observe(Deleted(known), run.now))
    elif end is not None:
        reported(run, **end)
    seconds = 600.0 if end is None else 3.0
    labels = ("default-scheduler", "gpu.example.com", status)
    assert measured(run) == [
        ("dra_bindingconditions_wait_duration_seconds", *labels, seconds),
        ("dra_bindingconditions_allocations_total", *labels, 1.0),
    ]


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        pytest.param(None, "success", id="created"),
        pytest.param(Failed("forbidden"), "failure", id="refused"),
        pytest.param(Unknown("no response"), "failure", id="no response"),
    ],
)
def test_creations_of_special_claims_are_counted(outcome, status):
    run = special()
    run.answer(outcome, performed=outcome is None)
    assert measured(run) == [("resourceclaim_creates_total", status, 1.0)]


def test_a_special_claim_created_for_a_pod_that_was_preempted_is_deleted():
    run = special()
    victim = run.scheduler.known_pod("default/pa")
    run.scheduler.bindings.preempt(victim, "DefaultPreemption")
    run.answer()
    assert measured(run) == [("resourceclaim_creates_total", "success", 1.0)]
    assert run.requests == ["DeleteResourceClaim"]


def test_a_claim_that_is_being_released_is_not_used():
    """The pod is tried again first; with the reservation that it sees it would be bound."""
    run = Run(ONE, make.claim("c"), make.pod("p", "c")).schedule()
    run.answer(seen=True)
    run.answer(Failed("the node is gone"))
    assert run.requests == ["ReleaseResourceClaim"]
    run.advance(20)
    assert run.schedule().requests == ["ReleaseResourceClaim"]
    run.answer(seen=True)
    run.advance(20)
    assert run.schedule().requests == ["ReserveResourceClaim"]


@pytest.mark.parametrize("outcome", [Failed("conflict"), None], ids=["refused", "carried out"])
@pytest.mark.parametrize("in_gang", [False, True], ids=["alone", "in a gang"])
def test_a_claim_that_is_being_deallocated_is_not_used(outcome, in_gang):
    pod = make.pod("p", "c")
    if in_gang:
        pod["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    gang = group_builders.group("g", 1)
    run = Run(ONE, make.claim("c"), gang, pod, settings=group_builders.settings()).schedule()
    run.answer(seen=True)
    run.answer(Failed("the node is gone"))
    run.answer(seen=True)
    run.advance(20)
    node = run.scheduler.cluster.table.node("n1")
    others = manifests.from_dicts([make.node("n2"), make.resource_slice("n2", make.devices(1))])
    cordoned = replace(node, spec=replace(node.spec, unschedulable=True))
    for obj in (cordoned, *defaults.complete(others)):
        run.take(run.scheduler.observe(Added(obj), run.now))
    assert run.schedule().requests == ["DeallocateResourceClaim"]
    run.take(run.scheduler.observe(Updated(node), run.now))
    run.advance(20)
    assert run.schedule().requests == ["DeallocateResourceClaim"]
    run.answer(outcome, performed=outcome is None, seen=True)
    run.advance(20)
    assert run.schedule().requests == ["ReserveResourceClaim"]
