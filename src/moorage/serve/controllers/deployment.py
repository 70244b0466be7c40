"""Deployment: one ReplicaSet per template, and the rollout from the old ones to the new one.

new template          create a ReplicaSet, named after the template's hash
scaled                resize all sets in proportion
Recreate              scale the old sets to zero; start the new one when their pods ended
RollingUpdate         scale up and down step by step within maxSurge and maxUnavailable
complete              delete old sets beyond revisionHistoryLimit
"""

from collections.abc import Iterator, Sequence
from typing import Any

from moorage.serve import timestamps
from moorage.serve.controllers import objects, ownership, pods, replica_set, rollout
from moorage.serve.controllers.index import ObjectIndex
from moorage.serve.controllers.objects import Object
from moorage.serve.controllers.rollout import Count, Limits
from moorage.serve.controllers.writes import (
    CreateObject,
    DeleteObject,
    RequeueAt,
    UpdateObject,
    Write,
)

KIND = "apps/Deployment"
HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
# Notes about the Deployment itself, not about what it asks for.
PRIVATE_ANNOTATIONS = (
    REVISION,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "kubectl.kubernetes.io/last-applied-configuration",
)


def reconcile(deployment: Object, view: ObjectIndex, now: float) -> Iterator[Write]:
    """Gather the Deployment's sets, and decide."""
    orphans = view.orphans("apps/ReplicaSet", objects.namespace(deployment))
    owned = view.controlled("apps/ReplicaSet", objects.uid(deployment))
    sets, writes = ownership.claim(deployment, objects.selector(deployment), owned, orphans)
    yield from writes
    if writes:
        return  # Adopted sets come back as changes; then it goes on.
    ended = all(
        pods.is_ended(pod)
        for each in sets
        if not same_template(deployment, each)
        for pod in view.controlled("Pod", objects.uid(each))
    )
    yield from decide(deployment, sets, now, old_pods_ended=ended)


def decide(
    deployment: Object, sets: Sequence[Object], now: float, *, old_pods_ended: bool
) -> Iterator[Write]:
    """The sets to make, scale and delete, and the status."""
    by_age = sorted(sets, key=lambda each: (pods.created_at(each), objects.name(each)))
    new = next((each for each in by_age if same_template(deployment, each)), None)
    old = [each for each in by_age if each is not new]
    if objects.is_terminating(deployment):
        return
    sizes: dict[str, int] = {}
    if _was_scaled(deployment, sets) or is_paused(deployment):
        sizes = _scaled_sizes(deployment, new, old)
    elif _is_recreate(deployment):
        sizes = {objects.name(each): 0 for each in old}
        if new is None and old_pods_ended and not _has_replicas(old):
            yield CreateObject(new_set(deployment, old, replica_set.replicas(deployment)))
        elif new is not None and (old_pods_ended or replica_set.replicas(new)):
            sizes[objects.name(new)] = replica_set.replicas(deployment)
    else:
        limit = limits(deployment)
        counts = [count(each) for each in old]
        if new is None:
            size = rollout.new_size(limit, Count(0, 0), counts)
            yield CreateObject(new_set(deployment, old, size))
        else:
            size = rollout.new_size(limit, count(new), counts)
            sizes[objects.name(new)] = size
            # One direction at a time, as in Kubernetes: down when nothing is to go up.
            if size == replica_set.replicas(new):
                after = rollout.old_sizes(limit, count(new), counts)
                sizes |= {objects.name(s): n for s, n in zip(old, after, strict=True)}
    for each in (*old, *([] if new is None else [new])):
        yield from _resize(deployment, each, sizes, is_new=each is new, old=old)
    yield from _delete_old_sets(deployment, new, old)
    number = next_revision(old) if new is None else max(revision(new), next_revision(old))
    numbered = objects.with_annotations(deployment, **{REVISION: str(number)})
    fewest = limits(deployment).fewest_available
    changed = with_updated_status(numbered, new, old, fewest, now)
    if changed != deployment:
        yield UpdateObject(changed)
    if (at := progress_deadline(changed)) is not None and at > now:
        yield RequeueAt(at)


# The sets --------------------------------------------------------------------------------------


def template_of(obj: Object) -> Object:
    """The template without the label that tells sets apart."""
    template = objects.spec(obj).get("template") or {}
    meta = template.get("metadata") or {}
    labels = {k: v for k, v in (meta.get("labels") or {}).items() if k != HASH_LABEL}
    kept = {k: v for k, v in meta.items() if k not in ("labels", "creationTimestamp")}
    return {**template, "metadata": {**kept, "labels": labels}}


def same_template(deployment: Object, other: Object) -> bool:
    return bool(objects.essence(template_of(deployment)) == objects.essence(template_of(other)))


def new_set(deployment: Object, old: Sequence[Object], size: int) -> Object:
    """The ReplicaSet for the Deployment's present template."""
    template = template_of(deployment)
    collisions = objects.status(deployment).get("collisionCount") or 0
    hashed = objects.fingerprint([template, collisions] if collisions else template)
    labelled = {**template["metadata"]["labels"], HASH_LABEL: hashed}
    wanted = objects.spec(deployment).get("selector") or {}
    selector = {**wanted, "matchLabels": {**(wanted.get("matchLabels") or {}), HASH_LABEL: hashed}}
    spec = objects.spec(deployment)
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{objects.name(deployment)}-{hashed}",
            "namespace": objects.namespace(deployment),
            "labels": labelled,
            "annotations": _annotations(deployment, next_revision(old)),
            "ownerReferences": [ownership.reference(deployment)],
        },
        "spec": {
            "replicas": size,
            "selector": selector,
            "template": {**template, "metadata": {**template["metadata"], "labels": labelled}},
            **({"minReadySeconds": spec["minReadySeconds"]} if spec.get("minReadySeconds") else {}),
        },
    }


def _annotations(deployment: Object, revision: int) -> dict[str, str]:
    own = {k: v for k, v in objects.annotations(deployment).items() if k not in PRIVATE_ANNOTATIONS}
    return {
        **own,
        REVISION: str(revision),
        DESIRED_REPLICAS: str(replica_set.replicas(deployment)),
        MAX_REPLICAS: str(limits(deployment).most),
    }


def revision(obj: Object) -> int:
    text = objects.annotations(obj).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0


def next_revision(old: Sequence[Object]) -> int:
    return max((revision(each) for each in old), default=0) + 1


def _resize(
    deployment: Object, each: Object, sizes: dict[str, int], *, is_new: bool, old: Sequence[Object]
) -> Iterator[Write]:
    size = sizes.get(objects.name(each), replica_set.replicas(each))
    number = revision(each)
    if is_new and number < next_revision(old):
        number = next_revision(old)  # An older template is wanted again.
    changed = objects.with_annotations(
        each,
        **{
            REVISION: str(number),
            DESIRED_REPLICAS: str(replica_set.replicas(deployment)),
            MAX_REPLICAS: str(limits(deployment).most),
        },
    )
    if size != replica_set.replicas(each):
        changed = objects.with_spec(changed, replicas=size)
    # Of the sets at zero only the new one needs to know what it is meant to be.
    if changed != each and (is_new or size or replica_set.replicas(each)):
        yield UpdateObject(changed)


def _delete_old_sets(
    deployment: Object, new: Object | None, old: Sequence[Object]
) -> Iterator[Write]:
    """Old sets that nobody will want back."""
    kept = objects.spec(deployment).get("revisionHistoryLimit")
    kept = 10 if kept is None else int(kept)
    if new is None or not is_complete(deployment, new, old):
        return
    empty = [each for each in old if not replica_set.replicas(each) and _is_scaled_down(each)]
    for each in sorted(empty, key=revision)[: max(0, len(old) - kept)]:
        yield DeleteObject(each)


def _is_scaled_down(each: Object) -> bool:
    seen = int(objects.status(each).get("observedGeneration") or 0)
    current = seen >= int(each["metadata"].get("generation") or 0)
    return current and not objects.status(each).get("replicas") and not objects.is_terminating(each)


# How many --------------------------------------------------------------------------------------


def limits(deployment: Object) -> Limits:
    """How far this Deployment may stray from its number of replicas."""
    replicas = replica_set.replicas(deployment)
    if _is_recreate(deployment):
        return Limits(replicas, 0, 0)
    rolling = (objects.spec(deployment).get("strategy") or {}).get("rollingUpdate") or {}
    return rollout.limits(replicas, rolling.get("maxSurge"), rolling.get("maxUnavailable"))


def count(each: Object) -> Count:
    available = int(objects.status(each).get("availableReplicas") or 0)
    return Count(replica_set.replicas(each), min(available, replica_set.replicas(each)))


def is_paused(deployment: Object) -> bool:
    return bool(objects.spec(deployment).get("paused"))


def _is_recreate(deployment: Object) -> bool:
    return (objects.spec(deployment).get("strategy") or {}).get("type") == "Recreate"


def _has_replicas(sets: Sequence[Object]) -> bool:
    return any(replica_set.replicas(each) for each in sets)


def _was_scaled(deployment: Object, sets: Sequence[Object]) -> bool:
    """Whether a set with pods was last sized for another number of replicas."""
    wanted = str(replica_set.replicas(deployment))
    return any(
        objects.annotations(each).get(DESIRED_REPLICAS, wanted) != wanted
        for each in sets
        if replica_set.replicas(each)
    )


def _scaled_sizes(deployment: Object, new: Object | None, old: Sequence[Object]) -> dict[str, int]:
    limit = limits(deployment)
    everybody = [*old, *([] if new is None else [new])]
    active = [each for each in everybody if replica_set.replicas(each)]
    if len(active) <= 1:
        only = active[0] if active else new
        return {} if only is None else {objects.name(only): limit.replicas}
    if new is not None and _is_saturated(new, limit):
        return {objects.name(each): 0 for each in old}
    if _is_recreate(deployment):
        return {}
    active.sort(key=lambda each: (-replica_set.replicas(each), -pods.created_at(each)))
    sizes = [replica_set.replicas(each) for each in active]
    most = [int(objects.annotations(each).get(MAX_REPLICAS, "0")) for each in active]
    after = rollout.proportional(limit, sizes, most, status_total(active, "replicas"))
    return {objects.name(each): size for each, size in zip(active, after, strict=True)}


def _is_saturated(new: Object, limit: Limits) -> bool:
    available = int(objects.status(new).get("availableReplicas") or 0)
    return replica_set.replicas(new) == limit.replicas == available


# After so long without any progress a rollout counts as failed, if it does not say otherwise.
PROGRESS_SECONDS = 600
TIMED_OUT = "ProgressDeadlineExceeded"


def with_updated_status(
    deployment: Object, new: Object | None, old: Sequence[Object], fewest_available: int, now: float
) -> Object:
    """The Deployment with its present status; `new` and `old` are its ReplicaSets."""
    everybody = [*old, *([] if new is None else [new])]
    counts: dict[str, Any] = {
        "replicas": status_total(everybody, "replicas"),
        "updatedReplicas": 0 if new is None else status_total([new], "replicas"),
        "readyReplicas": status_total(everybody, "readyReplicas"),
        "availableReplicas": status_total(everybody, "availableReplicas"),
    }
    wanted = sum(replica_set.replicas(each) for each in everybody)
    counts["unavailableReplicas"] = max(0, wanted - counts["availableReplicas"])
    changed = objects.with_status(
        deployment,
        observedGeneration=deployment["metadata"].get("generation", 0),
        **{key: value or None for key, value in counts.items()},
    )
    enough = counts["availableReplicas"] >= fewest_available
    changed = objects.with_condition(
        changed,
        timestamps.to_text(now),
        type="Available",
        status="True" if enough else "False",
        reason="MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
        message=f"Deployment {'has' if enough else 'does not have'} minimum availability.",
    )
    moved = _replica_counts(changed) != _replica_counts(deployment)
    return _with_progress(changed, new, old, now, moved=moved)


def _with_progress(
    changed: Object, new: Object | None, old: Sequence[Object], now: float, *, moved: bool
) -> Object:
    at, known = timestamps.to_text(now), objects.condition(changed, "Progressing")
    status, name = "True", objects.name(changed if new is None else new)
    if new is None:
        reason, message = "NewReplicaSetCreated", f'Created new replica set "{name}"'
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
    return objects.with_condition(
        changed,
        at,
        type="Progressing",
        status=status,
        reason=reason,
        message=message,
        lastUpdateTime=since,
    )


def progress_deadline(deployment: Object) -> float | None:
    """When a rollout counts as failed if nothing moves; None if it is done, failed or paused."""
    known = objects.condition(deployment, "Progressing")
    done = known.get("reason") in ("NewReplicaSetAvailable", TIMED_OUT)
    if not known or done or objects.spec(deployment).get("paused"):
        return None
    allowed = objects.spec(deployment).get("progressDeadlineSeconds")
    seconds = PROGRESS_SECONDS if allowed is None else int(allowed)
    return timestamps.to_seconds(known.get("lastUpdateTime")) + seconds


def _replica_counts(deployment: Object) -> list[Any]:
    """What moves while a rollout gets somewhere."""
    status = objects.status(deployment)
    fields = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    return [status.get(field) for field in fields]


def is_complete(deployment: Object, new: Object, old: Sequence[Object]) -> bool:
    """Whether all pods are new, and can be relied upon."""
    wanted = replica_set.replicas(deployment)
    return (
        status_total([new], "replicas") == wanted
        and status_total([new], "availableReplicas") == wanted
        and status_total(old, "replicas") == 0
    )


def status_total(sets: Sequence[Object], field: str) -> int:
    """The sum of a number in the status of some ReplicaSets."""
    return sum(int(objects.status(each).get(field) or 0) for each in sets)
