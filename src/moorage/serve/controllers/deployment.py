"""Deployment: a ReplicaSet per template, and the move from the old ones to the new one.

template not seen before      a new ReplicaSet, named after the template's hash
scaled                        the sets grow and shrink by their shares
Recreate                      the old sets go to zero; the new one starts when their pods ended
RollingUpdate                 a little up, a little down, within maxSurge and maxUnavailable
done                          old sets beyond revisionHistoryLimit are deleted
"""

from collections.abc import Iterator, Sequence

from moorage.serve.controllers import (
    deployment_status,
    objects,
    ownership,
    pods,
    replica_set,
    rollout,
)
from moorage.serve.controllers.objects import Object
from moorage.serve.controllers.rollout import Count, Limits
from moorage.serve.controllers.view import View
from moorage.serve.controllers.writes import Again, Create, Delete, Update, Write

KIND = "apps/Deployment"
HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"
# Notes about the Deployment itself, not about what it asks for.
PRIVATE = (REVISION, DESIRED, MOST, "kubectl.kubernetes.io/last-applied-configuration")


def reconcile(deployment: Object, view: View, now: float) -> Iterator[Write]:
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
        if new is None and old_pods_ended and not _any_wanted(old):
            yield Create(new_set(deployment, old, replica_set.replicas(deployment)))
        elif new is not None and (old_pods_ended or replica_set.replicas(new)):
            sizes[objects.name(new)] = replica_set.replicas(deployment)
    else:
        limit = limits(deployment)
        counts = [count(each) for each in old]
        if new is None:
            size = rollout.new_size(limit, Count(0, 0), counts)
            yield Create(new_set(deployment, old, size))
        else:
            size = rollout.new_size(limit, count(new), counts)
            sizes[objects.name(new)] = size
            # One direction at a time, as in Kubernetes: down when nothing is to go up.
            if size == replica_set.replicas(new):
                after = rollout.old_sizes(limit, count(new), counts)
                sizes |= {objects.name(s): n for s, n in zip(old, after, strict=True)}
    for each in (*old, *([] if new is None else [new])):
        yield from _resized(deployment, each, sizes, is_new=each is new, old=old)
    yield from _tidied(deployment, new, old)
    number = next_revision(old) if new is None else max(revision(new), next_revision(old))
    numbered = objects.with_annotations(deployment, **{REVISION: str(number)})
    fewest = limits(deployment).fewest_available
    changed = deployment_status.updated(numbered, new, old, fewest, now)
    if changed != deployment:
        yield Update(changed)
    if (at := deployment_status.gives_up_at(changed)) is not None and at > now:
        yield Again(at)


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
    own = {k: v for k, v in objects.annotations(deployment).items() if k not in PRIVATE}
    return {
        **own,
        REVISION: str(revision),
        DESIRED: str(replica_set.replicas(deployment)),
        MOST: str(limits(deployment).most),
    }


def revision(obj: Object) -> int:
    text = objects.annotations(obj).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0


def next_revision(old: Sequence[Object]) -> int:
    return max((revision(each) for each in old), default=0) + 1


def _resized(
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
            DESIRED: str(replica_set.replicas(deployment)),
            MOST: str(limits(deployment).most),
        },
    )
    if size != replica_set.replicas(each):
        changed = objects.with_spec(changed, replicas=size)
    # Of the sets at zero only the new one needs to know what it is meant to be.
    if changed != each and (is_new or size or replica_set.replicas(each)):
        yield Update(changed)


def _tidied(deployment: Object, new: Object | None, old: Sequence[Object]) -> Iterator[Write]:
    """Old sets that nobody will want back."""
    kept = objects.spec(deployment).get("revisionHistoryLimit")
    kept = 10 if kept is None else int(kept)
    if new is None or not deployment_status.is_complete(deployment, new, old):
        return
    empty = [each for each in old if not replica_set.replicas(each) and _is_settled(each)]
    for each in sorted(empty, key=revision)[: max(0, len(old) - kept)]:
        yield Delete(each)


def _is_settled(each: Object) -> bool:
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


def _any_wanted(sets: Sequence[Object]) -> bool:
    return any(replica_set.replicas(each) for each in sets)


def _was_scaled(deployment: Object, sets: Sequence[Object]) -> bool:
    """Whether a set with pods was last sized for another number of replicas."""
    wanted = str(replica_set.replicas(deployment))
    return any(
        objects.annotations(each).get(DESIRED, wanted) != wanted
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
    most = [int(objects.annotations(each).get(MOST, "0")) for each in active]
    after = rollout.proportional(limit, sizes, most, deployment_status.total(active, "replicas"))
    return {objects.name(each): size for each, size in zip(active, after, strict=True)}


def _is_saturated(new: Object, limit: Limits) -> bool:
    available = int(objects.status(new).get("availableReplicas") or 0)
    return replica_set.replicas(new) == limit.replicas == available
