"""StatefulSet: pods with ordinals and claims of their own, made and ended in order.

    OrderedReady    one step at a time: the lowest missing pod is made once all below are ready,
                    surplus pods end from the highest ordinal down, then old ones are replaced
    Parallel        missing and surplus pods all at once; replacement still goes one by one

Claims outlive the pods; that is what they are for.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moorage.serve.controllers import objects, ownership, pods, replica_set
from moorage.serve.controllers.index import ObjectIndex
from moorage.serve.controllers.objects import Object
from moorage.serve.controllers.writes import (
    CreateObject,
    DeleteObject,
    RequeueAt,
    UpdateObject,
    Write,
)

KIND = "apps/StatefulSet"
REVISION_LABEL = "controller-revision-hash"
POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"
CLAIM = "PersistentVolumeClaim"


def reconcile(workload: Object, view: ObjectIndex, now: float) -> Iterator[Write]:
    """Gather the set's pods and claims, and decide."""
    namespace = objects.namespace(workload)
    orphans = [pod for pod in view.orphans("Pod", namespace) if ordinal(workload, pod) is not None]
    owned = view.controlled("Pod", objects.uid(workload))
    mine, writes = ownership.claim(workload, objects.selector(workload), owned, orphans)
    yield from writes
    claims = {objects.name(claim) for claim in view.all(CLAIM, namespace)}
    yield from decide(workload, mine, claims, now)


def decide(
    workload: Object, mine: Sequence[Object], claims: set[str], now: float
) -> Iterator[Write]:
    """The pods and claims to make, the pods to delete, and the status."""
    there = {number: pod for pod in mine if (number := ordinal(workload, pod)) is not None}
    if not objects.is_terminating(workload):
        yield from _steps(workload, there, claims, now)
    yield from _status(workload, list(there.values()), now)


def _steps(
    workload: Object, there: Mapping[int, Object], claims: set[str], now: float
) -> Iterator[Write]:
    wanted = ordinals(workload)
    in_order = objects.spec(workload).get("podManagementPolicy") != "Parallel"
    for number in wanted:
        pod = there.get(number)
        if pod is None:
            yield from _made(workload, number, claims)
        elif pods.is_ended(pod) and not objects.is_terminating(pod):
            yield DeleteObject(pod)  # Made anew when it is gone.
        if in_order and (pod is None or not is_healthy(workload, pod, now)):
            return
    surplus = sorted((number for number in there if number not in wanted), reverse=True)
    for number in surplus:
        if not objects.is_terminating(there[number]):
            yield DeleteObject(there[number])
        if in_order:
            return
    if not surplus:
        yield from _replaced(workload, there, now)


def _replaced(workload: Object, there: Mapping[int, Object], now: float) -> Iterator[Write]:
    """The highest pod of an older template goes, once all above it are well."""
    strategy = objects.spec(workload).get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return
    partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
    current = revision(workload)
    for number in reversed(ordinals(workload)):
        pod = there.get(number)
        if number < partition or pod is None:
            return
        if revision_of(pod) != current and not objects.is_terminating(pod):
            yield DeleteObject(pod)
            return
        if not is_healthy(workload, pod, now):
            return


def is_healthy(workload: Object, pod: Object, now: float) -> bool:
    """Running, ready for long enough, and staying."""
    min_ready = int(objects.spec(workload).get("minReadySeconds") or 0)
    return pods.is_active(pod) and pods.is_available(pod, min_ready, now)


# Names and shapes ------------------------------------------------------------------------------


def ordinals(workload: Object) -> range:
    start = int((objects.spec(workload).get("ordinals") or {}).get("start") or 0)
    return range(start, start + replica_set.replicas(workload))


def ordinal(workload: Object, pod: Object) -> int | None:
    """The number in a pod's name, if the name is one of this set's."""
    parent, dash, number = objects.name(pod).rpartition("-")
    return int(number) if dash and parent == objects.name(workload) and number.isdecimal() else None


def revision(workload: Object) -> str:
    """A name for the present template."""
    template = objects.spec(workload).get("template") or {}
    return f"{objects.name(workload)}-{objects.fingerprint(template)}"


def revision_of(pod: Object) -> str:
    return objects.labels(pod).get(REVISION_LABEL, "")


def _made(workload: Object, number: int, claims: set[str]) -> Iterator[Write]:
    templates = objects.spec(workload).get("volumeClaimTemplates") or []
    for template in templates:
        claim = _claim(workload, template, number)
        if objects.name(claim) not in claims:
            yield CreateObject(claim)
    yield CreateObject(pod_of(workload, number))


def pod_of(workload: Object, number: int) -> Object:
    """The pod of an ordinal, with its claims as volumes."""
    name = f"{objects.name(workload)}-{number}"
    labels = {POD_NAME_LABEL: name, INDEX_LABEL: str(number), REVISION_LABEL: revision(workload)}
    pod = pods.from_template(workload, objects.spec(workload).get("template"), name=name, **labels)
    templates = objects.spec(workload).get("volumeClaimTemplates") or []
    own = {each["metadata"]["name"]: _claim_name(workload, each, number) for each in templates}
    kept = [v for v in objects.spec(pod).get("volumes") or () if v.get("name") not in own]
    claimed = [
        {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
        for volume, claim in own.items()
    ]
    extra: dict[str, Any] = {"hostname": name}
    if service := objects.spec(workload).get("serviceName"):
        extra["subdomain"] = service
    if volumes := [*claimed, *kept]:
        extra["volumes"] = volumes
    return objects.with_spec(pod, **extra)


def _claim_name(workload: Object, template: Object, number: int) -> str:
    return f"{template['metadata']['name']}-{objects.name(workload)}-{number}"


def _claim(workload: Object, template: Object, number: int) -> Object:
    selected = (objects.spec(workload).get("selector") or {}).get("matchLabels") or {}
    metadata = {
        **template["metadata"],
        "name": _claim_name(workload, template, number),
        "namespace": objects.namespace(workload),
        "labels": {**(template["metadata"].get("labels") or {}), **selected},
    }
    return {
        "apiVersion": "v1",
        "kind": CLAIM,
        "metadata": metadata,
        "spec": template.get("spec") or {},
    }


# The status ------------------------------------------------------------------------------------


def _status(workload: Object, mine: Sequence[Object], now: float) -> Iterator[Write]:
    min_ready = int(objects.spec(workload).get("minReadySeconds") or 0)
    latest = revision(workload)
    current = objects.status(workload).get("currentRevision") or latest
    staying = [pod for pod in mine if not objects.is_terminating(pod)]
    updated = sum(revision_of(pod) == latest for pod in staying)
    ready = sum(map(pods.is_ready, staying))
    if updated == ready == len(staying) == replica_set.replicas(workload):
        current = latest
    changed = objects.with_status(
        workload,
        replicas=len(mine),
        readyReplicas=ready,
        availableReplicas=sum(pods.is_available(pod, min_ready, now) for pod in staying),
        currentReplicas=sum(revision_of(pod) == current for pod in staying),
        updatedReplicas=updated,
        currentRevision=current,
        updateRevision=latest,
        observedGeneration=workload["metadata"].get("generation", 0),
        collisionCount=0,
    )
    if changed != workload:
        yield UpdateObject(changed)
    at = pods.available_next_at(staying, min_ready, now)
    if at is not None:
        yield RequeueAt(at)
