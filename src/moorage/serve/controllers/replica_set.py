"""ReplicaSet and ReplicationController: as many pods of a template as asked for."""

from collections.abc import Iterable, Iterator, Sequence

from moorage.serve.controllers import objects, ownership, pods
from moorage.serve.controllers.index import ObjectIndex
from moorage.serve.controllers.objects import Object
from moorage.serve.controllers.writes import (
    CreateObject,
    DeleteObject,
    RequeueAt,
    UpdateObject,
    Write,
)

KINDS = ("apps/ReplicaSet", "ReplicationController")


def reconcile(workload: Object, view: ObjectIndex, now: float) -> Iterator[Write]:
    """Gather the set's pods, and decide."""
    orphans = view.orphans("Pod", objects.namespace(workload))
    owned = view.controlled("Pod", objects.uid(workload))
    mine, writes = ownership.claim(workload, objects.selector(workload), owned, orphans)
    yield from writes
    yield from decide(workload, mine, kin(workload, view), now)


def kin(workload: Object, view: ObjectIndex) -> Iterator[Object]:
    """The pods of all sets of the same owner: they crowd nodes for each other."""
    owner = ownership.controller_uid(workload)
    siblings = view.controlled("apps/ReplicaSet", owner) if owner else [workload]
    for each in siblings:
        yield from view.controlled("Pod", objects.uid(each))


def decide(
    workload: Object, mine: Sequence[Object], related: Iterable[Object], now: float
) -> Iterator[Write]:
    """The pods to make and to delete, and the status."""
    active = [pod for pod in mine if pods.is_active(pod)]
    wanted = replicas(workload)
    if not objects.is_terminating(workload):
        template = objects.spec(workload).get("template")
        for _ in range(wanted - len(active)):
            yield CreateObject(pods.from_template(workload, template))
        if len(active) > wanted:
            surplus = pods.dispensable_first(active, related)[: len(active) - wanted]
            for pod in surplus:
                yield DeleteObject(pod)
            gone = {objects.uid(pod) for pod in surplus}
            active = [pod for pod in active if objects.uid(pod) not in gone]
    yield from _status(workload, active, now)


def _status(workload: Object, active: Sequence[Object], now: float) -> Iterator[Write]:
    min_ready = int(objects.spec(workload).get("minReadySeconds") or 0)
    template = objects.spec(workload).get("template") or {}
    wanted = ((template.get("metadata") or {}).get("labels") or {}).items()
    ready = [pod for pod in active if pods.is_ready(pod)]
    changed = objects.with_status(
        workload,
        replicas=len(active),
        fullyLabeledReplicas=sum(wanted <= objects.labels(pod).items() for pod in active),
        readyReplicas=len(ready),
        availableReplicas=sum(pods.is_available(pod, min_ready, now) for pod in ready)
        if min_ready
        else len(ready),
        observedGeneration=workload["metadata"].get("generation", 0),
    )
    if changed["status"] != objects.status(workload):
        yield UpdateObject(changed)
    at = pods.available_next_at(ready, min_ready, now)
    if at is not None:
        yield RequeueAt(at)


def replicas(workload: Object) -> int:
    """How many pods are wanted."""
    wanted = objects.spec(workload).get("replicas")
    return 1 if wanted is None else int(wanted)
