"""StatefulSet: pods with ordinals and claims of their own, created and deleted in order.

    OrderedReady    one step at a time: create the lowest missing pod once all below are ready,
                    delete surplus pods from the highest ordinal down, then replace old pods
    Parallel        create and delete all at once; replace old pods one by one

Pods below the partition keep the template of the current revision. Claims are kept when their pod
is deleted, unless the retention policy wants them deleted.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moorage.controllers import objects, ownership, pods, revisions, writes
from moorage.controllers.index import ObjectIndex
from moorage.controllers.objects import Object
from moorage.controllers.revisions import History
from moorage.controllers.writes import Create, Delete, Update, Write

KIND = "apps/StatefulSet"
REVISION_LABEL = "controller-revision-hash"
HASH_LABEL = "controller.kubernetes.io/hash"
POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"
CLAIM = "PersistentVolumeClaim"


def reconcile(workload: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    """Create pods and claims, delete pods, and set the status."""
    owned, adoptions = ownership.claim(
        workload, "Pod", index, accepts=lambda pod: ordinal(workload, pod) is not None
    )
    yield from adoptions
    history = revisions.history(workload, index, HASH_LABEL)
    by_ordinal = {number: pod for pod in owned if (number := ordinal(workload, pod)) is not None}
    rollout = Rollout(workload, history, now)
    if not objects.is_terminating(workload):
        yield from history.recorded()
        yield from _retain_claims(workload, by_ordinal, index)
        yield from _steps(rollout, by_ordinal, index)
        used = {pod_revision(pod) for pod in owned}
        yield from history.pruned(workload, {*used, rollout.current})
    yield from _status(rollout, list(by_ordinal.values()))


class Rollout:
    """A set, the revisions that its pods have or get, and the time."""

    def __init__(self, workload: Object, history: History, now: float) -> None:
        self.workload = workload
        self.now = now
        self.latest = objects.name(history.latest)
        self.current: str = objects.status(workload).get("currentRevision") or self.latest
        strategy = objects.spec(workload).get("updateStrategy") or {}
        self.on_delete = strategy.get("type") == "OnDelete"
        rolling = strategy.get("rollingUpdate") or {}
        self.partition = int(rolling.get("partition") or 0)
        limit, replicas = rolling.get("maxUnavailable", 1), objects.replicas(workload)
        self.max_unavailable = max(1, objects.int_or_percent(limit, replicas, round_up=True))
        self._before = history.find(self.current)

    def pod(self, number: int) -> Object:
        """The pod of an ordinal; below the partition, with the current revision's template."""
        start = ordinals(self.workload).start
        if number < start + self.partition and self._before is not None:
            old = objects.with_spec(self.workload, template=revisions.template(self._before))
            return pod_of(old, number, self.current)
        return pod_of(self.workload, number, self.latest)


def _steps(
    rollout: Rollout, by_ordinal: Mapping[int, Object], index: ObjectIndex
) -> Iterator[Write]:
    workload, now = rollout.workload, rollout.now
    desired = ordinals(workload)
    in_order = objects.spec(workload).get("podManagementPolicy") != "Parallel"
    claims = {objects.name(claim) for claim in index.all(CLAIM, objects.namespace(workload))}
    for number in desired:
        pod = by_ordinal.get(number)
        if pod is None:
            yield from _create_pod(rollout, number, claims, index)
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
    if not surplus and not rollout.on_delete:
        yield from _replace_old_pods(rollout, by_ordinal)


def _replace_old_pods(rollout: Rollout, by_ordinal: Mapping[int, Object]) -> Iterator[Write]:
    """Delete pods of an older template from the highest down, `maxUnavailable` at a time."""
    desired = ordinals(rollout.workload)
    found = [by_ordinal[number] for number in desired if number in by_ordinal]
    unavailable = len(desired) - sum(
        is_healthy(rollout.workload, pod, rollout.now) for pod in found
    )
    allowed = rollout.max_unavailable - unavailable
    for number in reversed(desired[rollout.partition :]):
        pod = by_ordinal.get(number)
        if allowed <= 0 or pod is None:
            return
        if pod_revision(pod) != rollout.latest and not objects.is_terminating(pod):
            yield Delete(pod)
            allowed -= 1


def _retain_claims(
    workload: Object, by_ordinal: Mapping[int, Object], index: ObjectIndex
) -> Iterator[Write]:
    """Make claims dependents of the set or of a surplus pod, as their retention policy wants."""
    policy = objects.spec(workload).get("persistentVolumeClaimRetentionPolicy") or {}
    with_set, with_pod = (policy.get(when) == "Delete" for when in ("whenDeleted", "whenScaled"))
    namespace, desired = objects.namespace(workload), ordinals(workload)
    for number, pod in by_ordinal.items():
        surplus = number not in desired
        owner = pod if with_pod and surplus else workload if with_set else None
        for template in objects.spec(workload).get("volumeClaimTemplates") or ():
            claim = index.get(CLAIM, namespace, _claim_name(workload, template, number))
            if claim is None or objects.is_terminating(claim):
                continue
            mine = {objects.uid(pod), objects.uid(workload)}
            kept = [each for each in objects.owners(claim) if each.get("uid") not in mine]
            # A claim with another controller stays with that one.
            has_other = any(each.get("controller") for each in kept)
            added = [objects.controller_reference(owner)] if owner and not has_other else []
            if objects.owners(claim) != kept + added:
                yield Update(objects.with_metadata(claim, ownerReferences=kept + added))


def is_healthy(workload: Object, pod: Object, now: float) -> bool:
    """Active, and ready for long enough."""
    min_ready = objects.spec_number(workload, "minReadySeconds")
    return pods.is_active(pod) and pods.is_available(pod, min_ready, now)


def held_back(workload: Object, index: ObjectIndex, now: float) -> tuple[str, int] | None:
    """The pod that more pods wait for, and how many these are; None if there are none."""
    in_order = objects.spec(workload).get("podManagementPolicy") != "Parallel"
    if not in_order or not objects.template(workload):
        return None
    own = {objects.name(pod): pod for pod in index.controlled("Pod", objects.uid(workload))}
    names = [f"{objects.name(workload)}-{number}" for number in ordinals(workload)]
    waiting = (name for name in names if not _is_healthy(workload, own.get(name), now))
    first = next(waiting, "")
    missing = sum(name not in own and name != first for name in names)
    return (first, missing) if missing else None


def _is_healthy(workload: Object, pod: Object | None, now: float) -> bool:
    return pod is not None and is_healthy(workload, pod, now)


def ordinals(workload: Object) -> range:
    start = int((objects.spec(workload).get("ordinals") or {}).get("start") or 0)
    return range(start, start + objects.replicas(workload))


def ordinal(workload: Object, pod: Object) -> int | None:
    """The number in a pod's name, if the name is one of this set's."""
    parent, dash, number = objects.name(pod).rpartition("-")
    return int(number) if dash and parent == objects.name(workload) and number.isdecimal() else None


def pod_revision(pod: Object) -> str:
    return objects.labels(pod).get(REVISION_LABEL, "")


def _create_pod(
    rollout: Rollout, number: int, claims: set[str], index: ObjectIndex
) -> Iterator[Write]:
    """Create a pod after its claims; a refused claim keeps the pod from being created."""
    workload = rollout.workload
    for template in objects.spec(workload).get("volumeClaimTemplates") or ():
        claim = _claim(workload, template, number)
        if objects.name(claim) not in claims:
            yield Create(claim)
            if index.failure(workload):
                return
    yield Create(rollout.pod(number))


def pod_of(workload: Object, number: int, revision: str) -> Object:
    """The pod of an ordinal, with its claims as volumes."""
    name = f"{objects.name(workload)}-{number}"
    labels = {POD_NAME_LABEL: name, INDEX_LABEL: str(number), REVISION_LABEL: revision}
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


def _status(rollout: Rollout, owned: Sequence[Object]) -> Iterator[Write]:
    workload, now = rollout.workload, rollout.now
    min_ready = objects.spec_number(workload, "minReadySeconds")
    latest, current = rollout.latest, rollout.current
    staying = [pod for pod in owned if not objects.is_terminating(pod)]
    updated = sum(pod_revision(pod) == latest for pod in staying)
    ready = sum(map(pods.is_ready, staying))
    if not rollout.on_delete and updated == ready == len(owned) == objects.replicas(workload):
        current = latest
    changed = objects.with_status(
        workload,
        replicas=len(owned),
        readyReplicas=ready or None,
        availableReplicas=sum(pods.is_available(pod, min_ready, now) for pod in staying),
        currentReplicas=sum(pod_revision(pod) == current for pod in staying) or None,
        updatedReplicas=updated or None,
        currentRevision=current,
        updateRevision=latest,
        observedGeneration=objects.generation(workload),
        collisionCount=0,
    )
    yield from writes.update_if_changed(workload, changed)
    yield from writes.requeue(pods.next_available_at(staying, min_ready, now))
