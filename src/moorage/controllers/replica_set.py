"""ReplicaSet and ReplicationController: create and delete pods until there are `replicas`."""

from collections.abc import Iterator, Sequence

from moorage.api import timestamps
from moorage.controllers import objects, ownership, pods, writes
from moorage.controllers.index import ObjectIndex
from moorage.controllers.objects import Object
from moorage.controllers.writes import Create, Delete, Write

KINDS = ("apps/ReplicaSet", "ReplicationController")
FAILURE = "ReplicaFailure"


def reconcile(workload: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    """Create missing or delete surplus pods, and set the status."""
    owned, adoptions = ownership.claim(workload, "Pod", index)
    yield from adoptions
    active = [pod for pod in owned if pods.is_active(pod)]
    missing = objects.replicas(workload) - len(active)
    if not objects.is_terminating(workload):
        for _ in range(missing):
            yield Create(pods.from_template(workload))
            if index.failure(workload):  # The next pod would be refused, too.
                break
        if missing < 0:
            surplus = pods.in_deletion_order(active, _related_pods(workload, index))[:-missing]
            yield from map(Delete, surplus)
            deleted = {objects.uid(pod) for pod in surplus}
            active = [pod for pod in active if objects.uid(pod) not in deleted]
    terminating = [pod for pod in owned if objects.is_terminating(pod) and not pods.is_ended(pod)]
    yield from _status(workload, active, len(terminating), index.failure(workload), now)


def _related_pods(workload: Object, index: ObjectIndex) -> Iterator[Object]:
    """The pods of all sets of the same owner: they count when pods share a node."""
    owner = objects.controller_uid(workload)
    for each in index.controlled("apps/ReplicaSet", owner) if owner else [workload]:
        yield from index.controlled("Pod", objects.uid(each))


def _status(
    workload: Object, active: Sequence[Object], terminating: int, failure: str, now: float
) -> Iterator[Write]:
    min_ready = objects.spec_number(workload, "minReadySeconds")
    labels = ((objects.template(workload).get("metadata") or {}).get("labels") or {}).items()
    ready = [pod for pod in active if pods.is_ready(pod)]
    changed = objects.with_status(
        workload,
        replicas=len(active),
        fullyLabeledReplicas=sum(labels <= objects.labels(pod).items() for pod in active) or None,
        readyReplicas=len(ready) or None,
        availableReplicas=sum(pods.is_available(pod, min_ready, now) for pod in ready) or None,
        # A ReplicationController does not count them.
        terminatingReplicas=terminating if objects.kind_of(workload) == KINDS[0] else None,
        observedGeneration=objects.generation(workload),
    )
    changed = _with_failure(changed, failure, timestamps.to_text(now))
    yield from writes.update_if_changed(workload, changed)
    yield from writes.requeue(pods.next_available_at(ready, min_ready, now))


def _with_failure(workload: Object, failure: str, at: str) -> Object:
    """The workload with the condition that its pods cannot be created, if that is so."""
    if failure and objects.is_condition_true(workload, FAILURE):
        return workload  # The message names the pod: a new one would be a change at each attempt.
    if failure:
        state = {"status": "True", "reason": "FailedCreate", "message": failure}
        return objects.with_condition(workload, at, type=FAILURE, **state)
    return without_failure(workload)


def without_failure(workload: Object) -> Object:
    """The workload without the condition that its pods cannot be created."""
    known = objects.status(workload).get("conditions") or []
    kept = [each for each in known if each.get("type") != FAILURE]
    return objects.with_status(workload, conditions=kept or None) if kept != known else workload
