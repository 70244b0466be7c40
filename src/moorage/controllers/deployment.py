"""Deployment: one ReplicaSet per template, and the rollout from the old ones to the new one.

new template          create a ReplicaSet, named after the template's hash
scaled                resize all sets in proportion
Recreate              scale the old sets to zero; start the new one when their pods ended
RollingUpdate         scale up and down step by step within maxSurge and maxUnavailable
complete              delete old sets beyond revisionHistoryLimit
"""

from collections.abc import Iterator, Sequence

from moorage.api import timestamps
from moorage.controllers import objects, ownership, pods, replica_set, rollout, writes
from moorage.controllers.index import ObjectIndex
from moorage.controllers.objects import Object
from moorage.controllers.rollout import ReplicaCount, RolloutLimits
from moorage.controllers.writes import Create, Delete, RequeueAt, Update, Write

KIND = "apps/Deployment"
HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
# Annotations about the Deployment itself; its ReplicaSets do not inherit them.
PRIVATE_ANNOTATIONS = (
    REVISION,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "kubectl.kubernetes.io/last-applied-configuration",
)
TIMED_OUT = "ProgressDeadlineExceeded"
PAUSED = "DeploymentPaused"


def reconcile(deployment: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    """Create, scale and delete the Deployment's sets, and set its status."""
    sets, adoptions = ownership.claim(deployment, "apps/ReplicaSet", index)
    yield from adoptions
    if adoptions:
        return  # The adopted sets come back as changes, which reconcile again.
    if objects.is_terminating(deployment):
        return
    by_age = sorted(sets, key=lambda each: (pods.created_at(each), objects.name(each)))
    matching = [each for each in by_age if has_template_of(deployment, each)]
    new = matching[0] if matching else None
    old = [each for each in by_age if each is not new]
    old_pods_ended = all(
        pods.is_ended(pod)
        for each in old
        if each not in matching
        for pod in index.controlled("Pod", objects.uid(each))
    )
    sizes: dict[str, int] = {}
    if _was_scaled(deployment, sets) or objects.spec(deployment).get("paused"):
        sizes = _scaled_sizes(deployment, new, old)
    elif _is_recreate(deployment):
        sizes = {objects.name(each): 0 for each in old}
        if new is None and old_pods_ended and not any(map(objects.replicas, old)):
            yield Create(new_set(deployment, old, objects.replicas(deployment)))
        elif new is not None and (old_pods_ended or objects.replicas(new)):
            sizes[objects.name(new)] = objects.replicas(deployment)
    else:
        limit = limits(deployment)
        counts = [replica_count(each) for each in old]
        if new is None:
            size = rollout.new_size(limit, ReplicaCount(0, 0), counts)
            yield Create(new_set(deployment, old, size))
        else:
            size = rollout.new_size(limit, replica_count(new), counts)
            sizes[objects.name(new)] = size
            # One direction at a time, as in Kubernetes: down only when nothing is to go up.
            if size == objects.replicas(new):
                after = rollout.old_sizes(limit, replica_count(new), counts)
                sizes |= {objects.name(s): n for s, n in zip(old, after, strict=True)}
    for each in _all_sets(new, old):
        yield from _resize(deployment, each, sizes, is_new=each is new, old=old)
    yield from _delete_old_sets(deployment, new, old)
    number = next_revision(old) if new is None else max(revision(new), next_revision(old))
    numbered = objects.with_annotations(deployment, **{REVISION: str(number)})
    changed = with_updated_status(numbered, new, old, limits(deployment).min_available, now)
    yield from writes.update_if_changed(deployment, changed)
    if (at := progress_deadline(changed)) is not None and at > now:
        yield RequeueAt(at)


def _all_sets(new: Object | None, old: Sequence[Object]) -> list[Object]:
    return [*old, *([] if new is None else [new])]


# ReplicaSets -----------------------------------------------------------------------------------


def template_of(obj: Object) -> Object:
    """The template without the hash label of its set."""
    template = objects.template(obj)
    meta = template.get("metadata") or {}
    labels = {k: v for k, v in (meta.get("labels") or {}).items() if k != HASH_LABEL}
    kept = {k: v for k, v in meta.items() if k not in ("labels", "creationTimestamp")}
    return {**template, "metadata": {**kept, "labels": labels}}


def has_template_of(deployment: Object, other: Object) -> bool:
    return bool(objects.canonical(template_of(deployment)) == objects.canonical(template_of(other)))


def new_set(deployment: Object, old: Sequence[Object], size: int) -> Object:
    """The ReplicaSet for the Deployment's current template."""
    template = template_of(deployment)
    collisions = objects.status(deployment).get("collisionCount") or 0
    hashed = objects.template_hash([template, collisions] if collisions else template)
    labels = {**template["metadata"]["labels"], HASH_LABEL: hashed}
    spec = objects.spec(deployment)
    selected = spec.get("selector") or {}
    match_labels = {**(selected.get("matchLabels") or {}), HASH_LABEL: hashed}
    given = objects.annotations(deployment).items()
    own = {key: value for key, value in given if key not in PRIVATE_ANNOTATIONS}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{objects.name(deployment)}-{hashed}",
            "namespace": objects.namespace(deployment),
            "labels": labels,
            "annotations": {**own, **_set_annotations(deployment, next_revision(old))},
            "ownerReferences": [objects.controller_reference(deployment)],
        },
        "spec": {
            "replicas": size,
            "selector": {**selected, "matchLabels": match_labels},
            "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
            **({"minReadySeconds": spec["minReadySeconds"]} if spec.get("minReadySeconds") else {}),
        },
    }


def _set_annotations(deployment: Object, revision: int) -> dict[str, str]:
    return {
        REVISION: str(revision),
        DESIRED_REPLICAS: str(objects.replicas(deployment)),
        MAX_REPLICAS: str(limits(deployment).max_replicas),
    }


def revision(obj: Object) -> int:
    text = objects.annotations(obj).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0


def next_revision(old: Sequence[Object]) -> int:
    return max(map(revision, old), default=0) + 1


def _resize(
    deployment: Object, each: Object, sizes: dict[str, int], *, is_new: bool, old: Sequence[Object]
) -> Iterator[Write]:
    size = sizes.get(objects.name(each), objects.replicas(each))
    # The new set gets the highest revision, also if its template is an older one again.
    number = max(revision(each), next_revision(old)) if is_new else revision(each)
    changed = objects.with_annotations(each, **_set_annotations(deployment, number))
    if size != objects.replicas(each):
        changed = objects.with_spec(changed, replicas=size)
    # The annotations of old sets without replicas are not read.
    if changed != each and (is_new or size or objects.replicas(each)):
        yield Update(changed)


def _delete_old_sets(
    deployment: Object, new: Object | None, old: Sequence[Object]
) -> Iterator[Write]:
    """Delete old sets beyond the history limit, once the rollout is complete."""
    kept = objects.spec_number(deployment, "revisionHistoryLimit", 10)
    if new is None or not is_complete(deployment, new, old):
        return
    empty = [
        each
        for each in old
        if not objects.replicas(each)
        and not objects.status(each).get("replicas")
        and not objects.is_terminating(each)
        and objects.status_number(each, "observedGeneration") >= objects.generation(each)
    ]
    yield from map(Delete, sorted(empty, key=revision)[: max(0, len(old) - kept)])


# Sizes -----------------------------------------------------------------------------------------


def limits(deployment: Object) -> RolloutLimits:
    """The largest and smallest number of pods during a rollout."""
    replicas = objects.replicas(deployment)
    if _is_recreate(deployment):
        return RolloutLimits(replicas, 0, 0)
    rolling = (objects.spec(deployment).get("strategy") or {}).get("rollingUpdate") or {}
    return rollout.limits(replicas, rolling.get("maxSurge"), rolling.get("maxUnavailable"))


def replica_count(each: Object) -> ReplicaCount:
    replicas = objects.replicas(each)
    return ReplicaCount(replicas, min(objects.status_number(each, "availableReplicas"), replicas))


def _is_recreate(deployment: Object) -> bool:
    return (objects.spec(deployment).get("strategy") or {}).get("type") == "Recreate"


def _was_scaled(deployment: Object, sets: Sequence[Object]) -> bool:
    """Whether a set with pods was last sized for another number of replicas."""
    replicas = str(objects.replicas(deployment))
    return any(
        objects.annotations(each).get(DESIRED_REPLICAS, replicas) != replicas
        for each in sets
        if objects.replicas(each)
    )


def _scaled_sizes(deployment: Object, new: Object | None, old: Sequence[Object]) -> dict[str, int]:
    limit = limits(deployment)
    active = [each for each in _all_sets(new, old) if objects.replicas(each)]
    if len(active) <= 1:
        only = active[0] if active else new
        return {} if only is None else {objects.name(only): limit.replicas}
    if new is not None:
        available = objects.status_number(new, "availableReplicas")
        if objects.replicas(new) == limit.replicas == available:
            return {objects.name(each): 0 for each in old}
    if _is_recreate(deployment):
        return {}
    active.sort(key=lambda each: (-objects.replicas(each), -pods.created_at(each)))
    sizes = [objects.replicas(each) for each in active]
    annotated = [int(objects.annotations(each).get(MAX_REPLICAS, "0")) for each in active]
    after = rollout.proportional(limit, sizes, annotated, status_total(active, "replicas"))
    return {objects.name(each): size for each, size in zip(active, after, strict=True)}


# Status ----------------------------------------------------------------------------------------


def with_updated_status(
    deployment: Object, new: Object | None, old: Sequence[Object], min_available: int, now: float
) -> Object:
    """The Deployment with its current status; `new` and `old` are its ReplicaSets."""
    sets = _all_sets(new, old)
    available = status_total(sets, "availableReplicas")
    changed = objects.with_status(
        deployment,
        observedGeneration=objects.generation(deployment),
        replicas=status_total(sets, "replicas") or None,
        updatedReplicas=None if new is None else status_total([new], "replicas") or None,
        readyReplicas=status_total(sets, "readyReplicas") or None,
        availableReplicas=available or None,
        unavailableReplicas=max(0, sum(map(objects.replicas, sets)) - available) or None,
        terminatingReplicas=status_total(sets, "terminatingReplicas"),
    )
    changed = _with_availability(
        changed, timestamps.to_text(now), enough=available >= min_available
    )
    changed = _with_failure(changed, [*([] if new is None else [new]), *old])
    if objects.spec(deployment).get("paused"):
        return _with_pause(changed, timestamps.to_text(now))
    progress = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    before, after = objects.status(deployment), changed["status"]
    moved = any(before.get(field) != after.get(field) for field in progress)
    return _with_progress(changed, new, old, now, moved=moved)


def _with_availability(deployment: Object, at: str, *, enough: bool) -> Object:
    known, status = objects.condition(deployment, "Available"), str(enough)
    return objects.with_condition(
        deployment,
        at,
        type="Available",
        status=status,
        reason="MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
        message=f"Deployment {'has' if enough else 'does not have'} minimum availability.",
        lastUpdateTime=objects.transition_time(
            known.get("status"), known.get("lastUpdateTime"), status, at
        ),
    )


def _with_pause(deployment: Object, at: str) -> Object:
    """The Deployment with the condition that it is paused; one that timed out keeps its own."""
    if objects.condition(deployment, "Progressing").get("reason") in (PAUSED, TIMED_OUT):
        return deployment
    fields = {"status": "Unknown", "reason": PAUSED, "message": "Deployment is paused"}
    return objects.with_condition(deployment, at, type="Progressing", lastUpdateTime=at, **fields)


def _with_failure(changed: Object, sets: Sequence[Object]) -> Object:
    """The Deployment with the condition of a set that cannot create its pods."""
    for each in sets:
        if failure := objects.condition(each, replica_set.FAILURE):
            at = failure["lastTransitionTime"]
            return objects.with_condition(changed, at, **failure, lastUpdateTime=at)
    return replica_set.without_failure(changed)


def _with_progress(
    changed: Object, new: Object | None, old: Sequence[Object], now: float, *, moved: bool
) -> Object:
    at, known = timestamps.to_text(now), objects.condition(changed, "Progressing")
    status, name = "True", objects.name(changed if new is None else new)
    counts = objects.status(changed)
    only_new = counts.get("replicas") == counts.get("updatedReplicas")
    if known.get("reason") == PAUSED:
        status, reason, message = "Unknown", "DeploymentResumed", "Deployment is resumed"
    elif new is None:
        reason, message = "NewReplicaSetCreated", f'Created new replica set "{name}"'
    elif known.get("reason") == "NewReplicaSetAvailable" and only_new:
        return changed  # A complete rollout stays complete when it is scaled, or loses pods.
    elif is_complete(changed, new, old):
        reason = "NewReplicaSetAvailable"
        message = f'ReplicaSet "{name}" has successfully progressed.'
    elif moved or not known or known.get("reason") == "NewReplicaSetAvailable":
        reason, message = "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.'
    elif (progress_deadline(changed) or now + 1) <= now:
        status, reason = "False", TIMED_OUT
        message = f'ReplicaSet "{name}" has timed out progressing.'
    else:
        return changed
    same = (known.get("reason"), known.get("status")) == (reason, status)
    since = known.get("lastUpdateTime", at) if same and not moved else at
    fields = {"status": status, "reason": reason, "message": message, "lastUpdateTime": since}
    return objects.with_condition(changed, at, type="Progressing", **fields)


def progress_deadline(deployment: Object) -> float | None:
    """When a rollout without progress fails; None if it is complete, failed or paused."""
    known = objects.condition(deployment, "Progressing")
    done = known.get("reason") in ("NewReplicaSetAvailable", TIMED_OUT)
    if not known or done or objects.spec(deployment).get("paused"):
        return None
    seconds = objects.spec_number(deployment, "progressDeadlineSeconds", 600)
    return timestamps.to_seconds(known.get("lastUpdateTime")) + seconds


def is_complete(deployment: Object, new: Object, old: Sequence[Object]) -> bool:
    """Whether all pods are of the new set, and available."""
    replicas = objects.replicas(deployment)
    return (
        status_total([new], "replicas") == replicas
        and status_total([new], "availableReplicas") == replicas
        and status_total(old, "replicas") == 0
    )


def status_total(sets: Sequence[Object], field: str) -> int:
    """The sum of a field in the status of some ReplicaSets."""
    return sum(objects.status_number(each, field) for each in sets)
