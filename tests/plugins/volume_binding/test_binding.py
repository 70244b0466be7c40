"""Binding of volumes: assume, patch, wait, unreserve; the tests call the scheduler step by step."""

import pickle

import pytest
from msgspec.structs import replace
from tests.storage_builders import (
    HOSTNAME,
    claimed,
    make_class,
    make_free_volume,
    make_waiting_claim,
    reaching,
)

from moorage.api import claims, config
from moorage.api.server_requests import BindPod, EmitEvent, PatchClaim, PatchVolume
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim, TypedReference
from moorage.core.effects import Done, Failed, Unknown
from moorage.core.observations import Added, Deleted, Listed, Updated
from moorage.core.scheduler import Scheduler
from moorage.testing import make_node, make_pod

BY_HAND = make_class(provisioner="kubernetes.io/no-provisioner")
CLAIM, VOLUME = make_waiting_claim(), make_free_volume(on=["n1"])
POD = make_pod("p", volumes=(claimed("data"),))
WRITES = (PatchVolume, PatchClaim)


class Run:
    """A scheduler and the effects it requests."""

    def __init__(self, *objects, timeout_seconds=600):
        args = {"bindTimeoutSeconds": timeout_seconds}
        profile = {"pluginConfig": [{"name": "VolumeBinding", "args": args}]}
        settings = {"apiVersion": config.API_VERSION, "kind": config.KIND, "profiles": [profile]}
        self.scheduler = Scheduler(config.load(settings))
        self.now = 0.0
        self.effects = []
        nodes = [make_node(name, labels={HOSTNAME: name}) for name in ("n1", "n2")]
        self.add(*nodes, *objects)

    def _take(self, effects):
        self.effects += effects
        self.scheduler.check_invariants()

    def add(self, *objects):
        for obj in objects:
            self._take(self.scheduler.observe(Added(obj), self.now))

    def update(self, obj):
        self._take(self.scheduler.observe(Updated(obj), self.now))

    def delete(self, obj):
        self._take(self.scheduler.observe(Deleted(obj), self.now))

    def schedule(self, pod=POD):
        self.add(pod)
        self._take(self.scheduler.schedule_one(self.now))

    def advance(self, seconds):
        self.now += seconds
        self._take(self.scheduler.advance(self.now))

    def complete(self, kind, outcome=None):
        effect = next(effect for effect in self.effects if isinstance(effect.request, kind))
        self.effects.remove(effect)
        self._take(self.scheduler.complete(effect.ticket, outcome or Done(), self.now))
        return effect.request

    @property
    def requests(self):
        kinds = (BindPod, *WRITES)
        return [e.request for e in self.effects if isinstance(e.request, kinds)]

    @property
    def assumed(self):
        return [(a.obj.name, a.holder) for a in self.scheduler.cluster.assumed]

    @property
    def last_message(self):
        """The message of the last Event."""
        notes = [e.request.note for e in self.effects if isinstance(e.request, EmitEvent)]
        return notes[-1] if notes else ""

    def is_retried(self, pod=POD):
        return self.scheduler.queue.where(pod.uid) in ("active", "backoff", "unschedulable")

    def shown(self, obj, version, **changes):
        """The observed object in a newer version."""
        meta = replace(obj.metadata, resource_version=str(version))
        self.update(replace(obj, metadata=meta, **changes))


def given(volume=VOLUME, claim=CLAIM):
    reference = TypedReference(namespace=claim.namespace, name=claim.name, uid=claim.uid)
    return replace(volume.spec, claim_ref=reference)


def marked(claim=CLAIM, version="3", **marks):
    return replace(
        claim, metadata=replace(claim.metadata, resource_version=version, annotations=marks)
    )


def bound(claim=CLAIM, volume="pv", version="9", **marks):
    done = marked(claim, version, **marks, **{claims.BIND_COMPLETED: "yes"})
    return replace(done, spec=replace(done.spec, volume_name=volume))


# An existing volume


def matched(**settings):
    run = Run(BY_HAND, CLAIM, VOLUME, **settings)
    run.schedule()
    return run


def test_a_matching_volume_is_assumed_patched_and_awaited():
    run = matched()
    (request,) = run.requests
    assert (request.name, request.version, request.claim.uid) == ("pv", "1", CLAIM.uid)
    assert request.claim.kind == "PersistentVolumeClaim"
    assert request.annotations == {claims.BOUND_BY_CONTROLLER: "yes"}
    assert run.assumed == [("pv", POD.uid)]
    run.complete(PatchVolume)
    assert (run.requests, run.assumed) == ([], [("pv", "")])
    run.shown(VOLUME, 2, spec=given())
    assert (run.requests, run.assumed) == ([], [])
    run.update(bound())
    (request,) = run.requests
    assert isinstance(request, BindPod)
    assert request.node == "n1"
    run.complete(BindPod)
    assert run.last_message == "Successfully assigned default/p to n1"


def test_the_watch_event_may_arrive_before_the_response():
    run = matched()
    run.shown(VOLUME, 2, spec=given())
    run.update(bound())
    assert run.assumed == []
    run.complete(PatchVolume)
    assert [type(request) for request in run.requests] == [BindPod]


def test_an_assumed_volume_is_not_available_to_other_pods():
    run = matched()
    other = make_waiting_claim("other")
    run.add(other)
    rival = make_pod("rival", volumes=(claimed("other"),))
    run.schedule(rival)
    assert len(run.requests) == 1
    assert "didn't find available persistent volumes to bind" in run.last_message
    assert run.is_retried(rival)


def test_an_assumed_volume_is_not_available_to_other_profiles():
    profiles = [{"schedulerName": name} for name in ("one", "two")]
    settings = {"apiVersion": config.API_VERSION, "kind": config.KIND, "profiles": profiles}
    run = Run()
    run.scheduler = Scheduler(config.load(settings))
    run.add(make_node("n1", labels={HOSTNAME: "n1"}), BY_HAND, CLAIM, VOLUME)
    run.add(make_waiting_claim("other"))
    run.schedule(make_pod("p", volumes=(claimed("data"),), scheduler_name="one"))
    run.schedule(make_pod("q", volumes=(claimed("other"),), scheduler_name="two"))
    assert len(run.requests) == 1
    assert "didn't find available persistent volumes to bind" in run.last_message


def test_a_prebound_volume_gets_the_claims_uid_without_the_annotation():
    reserved = replace(
        VOLUME,
        spec=replace(VOLUME.spec, claim_ref=TypedReference(namespace="default", name="data")),
    )
    run = Run(BY_HAND, CLAIM, reserved)
    run.schedule()
    (request,) = run.requests
    assert (request.claim.uid, request.annotations) == (CLAIM.uid, {})


def test_a_volume_that_already_has_the_claim_ref_is_not_patched():
    run = Run(BY_HAND, CLAIM, replace(VOLUME, spec=given()))
    run.schedule()
    assert (run.requests, run.assumed) == ([], [])
    run.update(bound())
    assert [type(request) for request in run.requests] == [BindPod]


def test_a_pod_whose_claims_have_volumes_is_bound_at_once():
    run = Run(BY_HAND, bound(), VOLUME)
    run.schedule()
    assert [type(request) for request in run.requests] == [BindPod]


FAILURE = 'running PreBind plugin "VolumeBinding": '


@pytest.mark.parametrize(
    "outcome", [Failed("conflict"), Unknown("conflict")], ids=["refused", "unknown"]
)
def test_a_failed_patch_fails_the_attempt(outcome):
    run = matched()
    run.complete(PatchVolume, outcome)
    assert run.assumed == []
    assert run.last_message == FAILURE + "conflict"
    assert run.is_retried()


def test_16_after_a_failed_patch_only_unpatched_volumes_are_restored():
    run = Run(BY_HAND, make_waiting_claim("a"), make_waiting_claim("b", "2Gi"))
    run.add(make_free_volume("one", "1Gi"), make_free_volume("two", "2Gi"))
    run.schedule(make_pod("p", volumes=(claimed("a"), claimed("b"))))
    assert [name for name, _ in run.assumed] == ["one", "two"]
    run.complete(PatchVolume)
    run.complete(PatchVolume, Failed("no"))
    assert run.assumed == [("one", "")]
    run.shown(make_free_volume("one"), 5, spec=given(make_free_volume("one")))
    assert run.assumed == []


def test_13_only_the_observed_version_can_be_assumed():
    run = Run(BY_HAND, CLAIM, VOLUME)
    cluster = run.scheduler.cluster
    with pytest.raises(Exception, match=r'"pv" is out of sync \(stored: 1, assume: 7\)'):
        cluster.assume(make_free_volume(version="7"), "uid")
    with pytest.raises(Exception, match='persistentvolumes "other" not found'):
        cluster.assume(make_free_volume("other"), "uid")
    with pytest.raises(Exception, match='persistentvolumeclaims "default/x" not found'):
        cluster.assume(make_waiting_claim("x"), "uid")
    assert run.assumed == []


def test_14_an_update_ends_an_assumption_and_an_older_restore_is_ignored():
    run = matched()
    run.shown(VOLUME, 2)
    assert run.assumed == []
    cluster = run.scheduler.cluster
    newer = make_free_volume(version="2", on=["n1"])
    cluster.assume(newer, POD.uid)
    cluster.restore(VOLUME)
    assert cluster.latest(PersistentVolume, "pv") is newer
    cluster.restore(newer)
    assert run.assumed == []


def test_an_update_with_the_same_version_is_ignored():
    run = matched()
    run.update(VOLUME)
    assert run.assumed == [("pv", POD.uid)]


WAITING = FAILURE + "binding volumes: "


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param(
            lambda run: run.shown(VOLUME, 5, spec=replace(VOLUME.spec, claim_ref=None)),
            'ClaimRef got reset for pv "pv"',
            id="15: the volume has no claimRef",
        ),
        pytest.param(
            lambda run: run.shown(
                VOLUME, 5, spec=replace(given(), claim_ref=TypedReference(name="data"))
            ),
            'ClaimRef got reset for pv "pv"',
            id="15: without the claim's UID",
        ),
        pytest.param(
            lambda run: run.shown(
                VOLUME, 5, spec=replace(given(), node_affinity=reaching(HOSTNAME, "n2"))
            ),
            'pv "pv" node affinity doesn\'t match node "n1": no matching NodeSelectorTerms',
            id="15: the volume's node affinity does not match",
        ),
        pytest.param(
            lambda run: run.delete(VOLUME),
            'failed to check binding: persistentvolume "pv" not found',
            id="the volume is deleted",
        ),
        pytest.param(
            lambda run: run.delete(CLAIM),
            'failed to check binding: persistentvolumeclaim "data" not found',
            id="15: the claim is deleted",
        ),
        pytest.param(
            lambda run: run._take(run.scheduler.observe(Listed(PersistentVolumeClaim, ()), 0.0)),
            'failed to check binding: persistentvolumeclaim "data" not found',
            id="the claim is missing from a list",
        ),
        pytest.param(lambda run: run.advance(600.0), "context deadline exceeded", id="timeout"),
    ],
)
def test_what_ends_the_wait_for_an_existing_volume(change, why):
    run = matched()
    run.complete(PatchVolume)
    change(run)
    assert run.last_message == WAITING + why
    assert (run.requests, [holder for _, holder in run.assumed if holder]) == ([], [])
    assert run.is_retried()


def test_the_wait_ends_at_the_deadline():
    run = matched(timeout_seconds=7)
    run.complete(PatchVolume)
    assert run.scheduler.deadline == 7.0
    run.advance(6.9)
    assert run.last_message == ""
    run.advance(0.1)
    assert run.last_message == WAITING + "context deadline exceeded"


def test_with_a_timeout_of_zero_the_wait_ends_after_the_patches():
    run = matched(timeout_seconds=0)
    run.complete(PatchVolume)
    assert run.last_message == WAITING + "context deadline exceeded"


def test_deletion_of_the_node_ends_the_wait():
    run = matched()
    run.complete(PatchVolume)
    run.shown(VOLUME, 2, spec=given())
    run.delete(run.scheduler.cluster.table.node("n1"))
    assert run.last_message == WAITING + 'failed to get node "n1": node "n1" not found'


def test_deletion_of_the_pod_ends_the_wait():
    run = matched()
    run.complete(PatchVolume)
    run.delete(POD)
    assert run.scheduler.deadline is None
    assert [holder for _, holder in run.assumed] == [""]
    run.shown(VOLUME, 2, spec=given())
    assert run.assumed == []


@pytest.mark.parametrize(
    ("outcome", "assumed"),
    [
        pytest.param(Done(), [(VOLUME.name, "")], id="written"),
        pytest.param(Failed("conflict"), [], id="not written"),
    ],
)
def test_a_patch_that_ends_after_its_pod_was_preempted(outcome, assumed):
    """Else the pod's next attempt takes a second volume for the claim, if no watch is quicker."""
    run = matched()
    assert run.scheduler.bindings.preempt(POD, "DefaultPreemption")
    run.complete(PatchVolume, outcome)
    assert run.is_retried()
    assert run.assumed == assumed


# Provisioning


def ordered(**settings):
    run = Run(make_class(), CLAIM, **settings)
    run.schedule(make_pod("p", volumes=(claimed("data"),), node_selector={HOSTNAME: "n2"}))
    return run


PINNED = {claims.SELECTED_NODE: "n2"}


def test_a_volume_is_provisioned_and_awaited():
    run = ordered()
    (request,) = run.requests
    assert (request.key, request.version) == ("default/data", "1")
    assert request.annotations == PINNED
    assert run.assumed == [("data", POD.uid)]
    run.complete(PatchClaim)
    run.update(marked(**PINNED))
    assert run.assumed == []
    run.update(bound(volume="made", **PINNED))
    assert run.requests == []  # The volume itself has not been observed yet.
    run.add(make_free_volume("made"))
    assert [type(request) for request in run.requests] == [BindPod]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param(
            lambda run: run.update(marked()),
            'selectedNode annotation reset for PVC "data"',
            id="15: no annotations left",
        ),
        pytest.param(
            lambda run: run.update(marked(other="mark")),
            'provisioning failed for PVC "data"',
            id="the provisioner gave up",
        ),
        pytest.param(
            lambda run: run.update(marked(**{claims.SELECTED_NODE: "n1"})),
            'provisioning failed for PVC "data"',
            id="another node is selected",
        ),
        pytest.param(
            lambda run: run.delete(CLAIM),
            'failed to check provisioning pvc: persistentvolumeclaim "data" not found',
            id="the claim is deleted",
        ),
        pytest.param(lambda run: run.advance(600.0), "context deadline exceeded", id="timeout"),
        pytest.param(
            lambda run: (
                run.add(make_free_volume("made", on=["n1"])),
                run.update(bound(volume="made", **PINNED)),
            ),
            'pv "made" node affinity doesn\'t match node "n2": no matching NodeSelectorTerms',
            id="the new volume's node affinity does not match",
        ),
    ],
)
def test_what_ends_the_wait_for_a_new_volume(change, why):
    run = ordered()
    run.complete(PatchClaim)
    change(run)
    assert run.last_message == WAITING + why
    assert [holder for _, holder in run.assumed if holder] == []
    assert run.is_retried()


def test_a_claim_with_a_selected_node_is_not_patched_again():
    run = Run(make_class(), marked(version="1", **PINNED))
    run.schedule()
    assert (run.requests, run.assumed) == ([], [])
    assert run.scheduler.cache.get(POD.uid).node == "n2"
    run.update(bound(volume="made", **PINNED))
    run.add(make_free_volume("made"))
    assert [type(request) for request in run.requests] == [BindPod]


# Claims shared by pods

SHARER = make_pod("q", volumes=(claimed("data"),))


def test_a_pod_that_shares_a_claim_waits_for_the_other_pods_patch():
    run = matched()
    run.schedule(SHARER)
    assert len(run.requests) == 1
    assert run.scheduler.cache.get(SHARER.uid).node == "n1"
    run.complete(PatchVolume)
    run.shown(VOLUME, 2, spec=given())
    run.update(bound())
    assert sorted(r.pod.name for r in run.requests if isinstance(r, BindPod)) == ["p", "q"]


def test_a_pod_that_shares_a_claim_goes_to_the_selected_node():
    run = ordered()
    run.schedule(SHARER)
    assert len(run.requests) == 1
    assert run.scheduler.cache.get(SHARER.uid).node == "n2"
    run.complete(PatchClaim)
    run.update(marked(**PINNED))
    run.add(make_free_volume("made"))
    run.update(bound(volume="made", **PINNED))
    assert sorted(r.pod.name for r in run.requests if isinstance(r, BindPod)) == ["p", "q"]


def test_a_pod_does_not_wait_for_another_pods_failed_patch():
    run = matched()
    run.schedule(SHARER)
    run.complete(PatchVolume, Failed("no"))
    assert run.assumed == []
    assert run.last_message == WAITING + 'ClaimRef got reset for pv "pv"'
    assert run.is_retried(SHARER)


def test_a_pod_gets_the_volume_of_a_binding_that_failed():
    run = matched()
    other = make_pod("q", volumes=(claimed("other"),))
    run.add(make_waiting_claim("other"))
    run.schedule(other)
    assert run.scheduler.queue.where(other.uid) == "unschedulable"
    run.complete(PatchVolume, Failed("no"))
    assert run.scheduler.queue.where(other.uid) == "backoff"


def test_a_scheduler_that_waits_for_volumes_can_be_copied():
    run = pickle.loads(pickle.dumps(matched()))
    assert run.assumed == [("pv", POD.uid)]
    run.complete(PatchVolume)
    run.shown(VOLUME, 2, spec=given())
    run.update(bound())
    assert [type(request) for request in run.requests] == [BindPod]
