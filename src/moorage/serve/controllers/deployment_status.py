"""What a Deployment says of itself: how many pods it has, and whether it gets anywhere."""

from collections.abc import Sequence
from typing import Any

from moorage.serve import times
from moorage.serve.controllers import objects, replica_set
from moorage.serve.controllers.objects import Object

# After so long without any progress a rollout counts as failed, if it does not say otherwise.
PROGRESS_SECONDS = 600
TIMED_OUT = "ProgressDeadlineExceeded"


def updated(
    deployment: Object, new: Object | None, old: Sequence[Object], fewest_available: int, now: float
) -> Object:
    """The Deployment with its present status; `new` and `old` are its ReplicaSets."""
    everybody = [*old, *([] if new is None else [new])]
    counts: dict[str, Any] = {
        "replicas": total(everybody, "replicas"),
        "updatedReplicas": 0 if new is None else total([new], "replicas"),
        "readyReplicas": total(everybody, "readyReplicas"),
        "availableReplicas": total(everybody, "availableReplicas"),
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
        times.text(now),
        type="Available",
        status="True" if enough else "False",
        reason="MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
        message=f"Deployment {'has' if enough else 'does not have'} minimum availability.",
    )
    moved = _counts(changed) != _counts(deployment)
    return _with_progress(changed, new, old, now, moved=moved)


def _with_progress(
    changed: Object, new: Object | None, old: Sequence[Object], now: float, *, moved: bool
) -> Object:
    at, known = times.text(now), objects.condition(changed, "Progressing")
    status, name = "True", objects.name(changed if new is None else new)
    if new is None:
        reason, message = "NewReplicaSetCreated", f'Created new replica set "{name}"'
    elif is_complete(changed, new, old):
        reason = "NewReplicaSetAvailable"
        message = f'ReplicaSet "{name}" has successfully progressed.'
    elif moved or not known or known.get("reason") == "NewReplicaSetAvailable":
        reason, message = "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.'
    elif (gives_up_at(changed) or now + 1) <= now:
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


def gives_up_at(deployment: Object) -> float | None:
    """When a rollout counts as failed if nothing moves; None if it is done, failed or paused."""
    known = objects.condition(deployment, "Progressing")
    done = known.get("reason") in ("NewReplicaSetAvailable", TIMED_OUT)
    if not known or done or objects.spec(deployment).get("paused"):
        return None
    allowed = objects.spec(deployment).get("progressDeadlineSeconds")
    seconds = PROGRESS_SECONDS if allowed is None else int(allowed)
    return times.seconds(known.get("lastUpdateTime")) + seconds


def _counts(deployment: Object) -> list[Any]:
    """What moves while a rollout gets somewhere."""
    status = objects.status(deployment)
    fields = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    return [status.get(field) for field in fields]


def is_complete(deployment: Object, new: Object, old: Sequence[Object]) -> bool:
    """Whether all pods are new, and can be relied upon."""
    wanted = replica_set.replicas(deployment)
    return (
        total([new], "replicas") == wanted
        and total([new], "availableReplicas") == wanted
        and total(old, "replicas") == 0
    )


def total(sets: Sequence[Object], field: str) -> int:
    """The sum of a number in the status of some ReplicaSets."""
    return sum(int(objects.status(each).get(field) or 0) for each in sets)
