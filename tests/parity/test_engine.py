"""Golden cases through the scheduler: queue, cycle, cached views and preemption, not just explain.

A template that is seen for the second time takes another path than the first: its views are kept
and brought up to date. So every case is decided several times by one scheduler. Between attempts
the effects fail and the pod is deleted, which leaves the cluster as the case describes it.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from moorage import explain
from moorage.api import config, defaults, manifests
from moorage.api.devices import ResourceClaim
from moorage.api.pod import Pod
from moorage.api.server_requests import BindPod, DeleteResourceClaim, ReleaseResourceClaim
from moorage.api.storage import PersistentVolumeClaim
from moorage.core.effects import Done, Effect, Failed, Outcome
from moorage.core.journal import Decided, Erred, Preempting, Queued, Refused
from moorage.core.observations import Added, Deleted, Updated
from moorage.core.scheduler import Scheduler
from moorage.framework.registry import Registry

from .cases import cases, errors, scores, without_cel

ATTEMPTS = 3  # The third is the first that updates views of an earlier one.
REGISTRY = Registry()  # Looking for entry points takes longer than a case.


class Engine:
    """A scheduler that knows the objects of a case, except for the pending pod."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.objects = list(defaults.complete(manifests.from_dicts(case["objects"])))
        key = f"{case['pod']['namespace']}/{case['pod']['name']}"
        self.pod = next(o for o in self.objects if isinstance(o, Pod) and o.key == key)
        self.scheduler = Scheduler(config.load(case.get("config")), registry=REGISTRY)
        self.others = [obj for obj in self.objects if obj is not self.pod]
        self.claims = [
            obj for obj in self.others if isinstance(obj, ResourceClaim | PersistentVolumeClaim)
        ]
        self.nominated = [
            pod
            for pod in self.others
            if isinstance(pod, Pod) and not (pod.node_name or pod.spec.scheduling_gates)
        ]
        # Without nodes these fail, so they are in backoff while the pod of the case is tried.
        # A pod that is being deleted would be dropped instead, so its deletion is observed later.
        for pod in self.nominated:
            remains = replace(pod, metadata=replace(pod.metadata, deletion_timestamp=None))
            self.scheduler.observe(Added(remains), 0.0)
            self.scheduler.schedule_one(0.0)
        for obj in self.others:
            if obj not in self.nominated:
                self.scheduler.observe(Added(obj), 0.0)
        self.nominate()

    def nominate(self) -> None:
        """Restore the nominations that failures and preemptions have cleared."""
        for pod in self.nominated:
            cleared = replace(pod, status=replace(pod.status, nominated_node_name=""))
            self.scheduler.observe(Updated(cleared), 0.0)
            self.scheduler.observe(Updated(pod), 0.0)

    def attempt(self, number: int) -> tuple[Pod, list[Effect]]:
        """Decide where a new pod of the template goes."""
        pod = replace(self.pod, metadata=replace(self.pod.metadata, uid=f"attempt-{number}"))
        for claim in self.claims:
            self.scheduler.observe(Updated(made_for(claim, self.pod.uid, pod.uid)), 0.0)
        self.scheduler.observe(Added(pod), 0.0)
        return pod, self.scheduler.schedule_one(0.0)

    def undo(self, pod: Pod, effects: list[Effect]) -> None:
        """Fail everything that an attempt requested, and delete its pod."""
        while effects:
            effects = [
                caused
                for effect in effects
                for caused in self.scheduler.complete(effect.ticket, undone(effect), 0.0)
            ]
        self.scheduler.observe(Deleted(pod), 0.0)
        self.nominate()

    def is_terminating(self, key: str) -> bool:
        """Whether a pod of the case is being deleted; such a victim is not evicted again."""
        pod = self.scheduler.known_pod(key)
        return pod is not None and pod.is_terminating

    def last(self, fact: type[Any], pod: Pod) -> Any:
        return self.scheduler.journal.last(fact, pod.uid)


def made_for(
    claim: ResourceClaim | PersistentVolumeClaim, before: str, uid: str
) -> ResourceClaim | PersistentVolumeClaim:
    """A claim of the pending pod as it would be if the pod had another UID."""
    owners = tuple(
        replace(owner, uid=uid) if owner.uid == before else owner
        for owner in claim.metadata.owner_references
    )
    if isinstance(claim, PersistentVolumeClaim):
        return replace(claim, metadata=replace(claim.metadata, owner_references=owners))
    users = tuple(
        replace(user, uid=uid) if user.uid == before else user for user in claim.status.reserved_for
    )
    return replace(
        claim,
        metadata=replace(claim.metadata, owner_references=owners),
        status=replace(claim.status, reserved_for=users),
    )


def undone(effect: Effect) -> Outcome:
    """Everything fails, except what releases claims again."""
    if isinstance(effect.request, ReleaseResourceClaim | DeleteResourceClaim):
        return Done()
    return Failed("undone")


@pytest.mark.usefixtures("best_nodes")
@pytest.mark.parametrize(("case", "want"), cases())
def test_each_attempt_agrees(case: dict[str, Any], want: dict[str, Any]) -> None:
    engine = Engine(case)
    for number in range(ATTEMPTS):
        pod, effects = engine.attempt(number)
        if "preEnqueue" in want:
            assert engine.last(Queued, pod).queue == "gated"
        elif "errorAnyOf" in want:
            assert without_cel(engine.last(Erred, pod).message) in errors(want)
        elif want.get("best"):
            check_decided(engine, pod, want)
        else:
            check_rejected(engine, pod, want)
        engine.undo(pod, effects)


def check_decided(engine: Engine, pod: Pod, want: dict[str, Any]) -> None:
    decided = engine.last(Decided, pod)
    assert decided.node in want["best"]
    if not want.get("nominatedOnly"):
        assert decided.feasible == len(want["feasible"])
    for considered in decided.best if "scores" in want else ():
        assert considered.total == want["totals"][considered.node]
        assert scores(considered.scores) == scores(want["scores"][considered.node])


def check_rejected(engine: Engine, pod: Pod, want: dict[str, Any]) -> None:
    assert engine.last(Decided, pod) is None
    refused = engine.last(Refused, pod)
    preempting = engine.last(Preempting, pod)
    added = ", ".join(filter(None, (want.get("postFilter"), want.get("preemptionMessage"))))
    message = " ".join(filter(None, (want["message"], added)))
    assert refused.message == message
    assert (refused.nominated == "") == ("nominatedAnyOf" not in want)
    if refused.nominated:
        assert refused.nominated in want["nominatedAnyOf"]
        victims = want["candidates"][refused.nominated]["victims"]
        evicted = [key for key in victims if not engine.is_terminating(key)]
        assert list(preempting.victims if preempting else ()) == evicted


@pytest.mark.usefixtures("best_nodes")
@pytest.mark.parametrize(("case", "want"), [case for case in cases() if case.values[1].get("best")])
def test_second_pod_while_the_first_runs(case: dict[str, Any], want: dict[str, Any]) -> None:
    """Updated views give the second pod what `explain` computes from the objects."""
    engine = Engine(case)
    first, effects = engine.attempt(1)
    binds = [effect.request for effect in effects if isinstance(effect.request, BindPod)]
    if not binds:
        return  # Volumes are bound first; the objects would change more than the pod.
    for effect in effects:
        engine.scheduler.complete(effect.ticket, Done(), 0.0)
    meta = replace(first.metadata, name="first", resource_version="2")
    bound = replace(first, metadata=meta, spec=replace(first.spec, node_name=binds[0].node))
    engine.scheduler.observe(Deleted(first), 0.0)
    engine.scheduler.observe(Added(replace(bound, metadata=replace(meta, uid="first"))), 0.0)
    second, _ = engine.attempt(2)
    expected = explain([*engine.others, bound, second], second.key, case.get("config")).to_dict()
    expected["nominatedOnly"] = bool(second.status.nominated_node_name)
    if expected.get("best"):
        check_decided(engine, second, expected)
    else:
        assert engine.last(Refused, second).message.startswith(expected["message"])
