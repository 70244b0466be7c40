"""StatefulSet: pods with ordinals and claims of their own, created and deleted in order.

    OrderedReady    one step at a time: create the lowest missing pod once all below are ready,
                    delete surplus pods from the highest ordinal down, then replace old pods
    Parallel        create and delete all at once; replace old pods one by one

Claims are kept when their pod is deleted.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moorage.controllers import objects, ownership, pods, writes
from moorage.controllers.index import ObjectIndex
from moorage.controllers.objects import Object
from moorage.controllers.writes import Create, Delete, Write

KIND = "apps/StatefulSet"
REVISION_LABEL = "controller-revision-hash"
POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"
CLAIM = "PersistentVolumeClaim"


def reconcile(workload: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    """Create pods and claims, delete pods, and set the status."""
    owned, adoptions = ownership.claim(
        workload, "Pod", index, accepts=lambda pod: ordinal(workload, pod) is not None
    )
    yield from adoptions
    claims = {objects.name(claim) for claim in index.all(CLAIM, objects.namespace(workload))}
    by_ordinal = {number: pod for pod in owned if (number := ordinal(workload, pod)) is not None}
    if not objects.is_terminating(workload):
        yield from _steps(workload, by_ordinal, claims, now)
    yield from _status(workload, list(by_ordinal.values()), now)


def _steps(
    workload: Object, by_ordinal: Mapping[int, Object], claims: set[str], now: float
) -> Iterator[Write]:
    desired = ordinals(workload)
    in_order = objects.spec(workload).get("podManagementPolicy") != "Parallel"
    for number in desired:
        pod = by_ordinal.get(number)
        if pod is None:
            yield from _create_pod(workload, number, claims)
        elif pods.is_ended(pod) and not objects.is_terminating(pod):
            yield Delete(pod)  # It is created again once it is gone.
        if in_order and (pod is None or not is_healthy(workload, pod, now)):
            return
    surplus = sorted((number for number in by_ordinal if number not in desired), reverse=True)
    for number in surplus:
        if not objects.is_terminating(by_ordinal[number]):
            yield Delete(by_ordinal[number])
        if in_order:
            return
    if not surplus:
        yield from _replace_old_pod(workload, by_ordinal, now)


def _replace_old_pod(
    workload: Object, by_ordinal: Mapping[int, Object], now: float
) -> Iterator[Write]:
    """Delete the highest pod of an older template, once all pods above it are healthy."""
    strategy = objects.spec(workload).get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return
    partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
    current = revision(workload)
    for number in reversed(ordinals(workload)):
        pod = by_ordinal.get(number)
        if number < partition or pod is None:
            return
        if pod_revision(pod) != current and not objects.is_terminating(pod):
            yield Delete(pod)
            return
        if not is_healthy(workload, pod, now):
            return


def is_healthy(workload: Object, pod: Object, now: float) -> bool:
    """Active, and ready for long enough."""
    min_ready = objects.spec_number(workload, "minReadySeconds")
    return pods.is_active(pod) and pods.is_available(pod, min_ready, now)


def ordinals(workload: Object) -> range:
    start = int((objects.spec(workload).get("ordinals") or {}).get("start") or 0)
    return range(start, start + objects.replicas(workload))


def ordinal(workload: Object, pod: Object) -> int | None:
    """The number in a pod's name, if the name is one of this set's."""
    parent, dash, number = objects.name(pod).rpartition("-")
    return int(number) if dash and parent == objects.name(workload) and number.isdecimal() else None


def revision(workload: Object) -> str:
    """The name of the current template."""
    return f"{objects.name(workload)}-{objects.template_hash(objects.template(workload))}"


def pod_revision(pod: Object) -> str:
    return objects.labels(pod).get(REVISION_LABEL, "")


def _create_pod(workload: Object, number: int, claims: set[str]) -> Iterator[Write]:
    for template in objects.spec(workload).get("volumeClaimTemplates") or ():
        claim = _claim(workload, template, number)
        if objects.name(claim) not in claims:
            yield Create(claim)
    yield Create(pod_of(workload, number))


def pod_of(workload: Object, number: int) -> Object:
    """The pod of an ordinal, with its claims as volumes."""
    name = f"{objects.name(workload)}-{number}"
    labels = {POD_NAME_LABEL: name, INDEX_LABEL: str(number), REVISION_LABEL: revision(workload)}
    pod = pods.from_template(workload, name=name, **labels)
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
    spec = template.get("spec") or {}
    return {"apiVersion": "v1", "kind": CLAIM, "metadata": metadata, "spec": spec}


def _status(workload: Object, owned: Sequence[Object], now: float) -> Iterator[Write]:
    min_ready = objects.spec_number(workload, "minReadySeconds")
    latest = revision(workload)
    current = objects.status(workload).get("currentRevision") or latest
    staying = [pod for pod in owned if not objects.is_terminating(pod)]
    updated = sum(pod_revision(pod) == latest for pod in staying)
    ready = sum(map(pods.is_ready, staying))
    if updated == ready == len(staying) == objects.replicas(workload):
        current = latest
    changed = objects.with_status(
        workload,
        replicas=len(owned),
        readyReplicas=ready,
        availableReplicas=sum(pods.is_available(pod, min_ready, now) for pod in staying),
        currentReplicas=sum(pod_revision(pod) == current for pod in staying),
        updatedReplicas=updated,
        currentRevision=current,
        updateRevision=latest,
        observedGeneration=objects.generation(workload),
        collisionCount=0,
    )
    yield from writes.update_if_changed(workload, changed)
    yield from writes.requeue(pods.next_available_at(staying, min_ready, now))
