"""Job: create pods until enough have succeeded or too many have failed.

Each finished pod is counted once, even if it is deleted or the server stops in between. Its
finalizer stays until its UID is in `uncountedTerminatedPods`; then the finalizer is removed and
the count increases. This is Kubernetes' own protocol.
"""

from collections.abc import Iterator, Sequence

from moorage.api import timestamps
from moorage.controllers import objects, ownership, pods, writes
from moorage.controllers.index import ObjectIndex
from moorage.controllers.objects import Object
from moorage.controllers.writes import FOREGROUND, Create, Delete, RequeueAt, Update, Write

KIND = "batch/Job"
FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
BACKOFF_SECONDS = 10.0
MAX_BACKOFF_SECONDS = 600.0


def reconcile(job: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    """Count ended pods, create and delete pods, and set the status."""
    owned, adoptions = ownership.claim(job, "Pod", index)
    if adoptions:
        yield from adoptions
        return  # The adopted pods come back as changes, which reconcile again.
    if objects.is_terminating(job):
        yield from _remove_finalizers(_tracked(owned))
        return
    if is_finished(job):
        yield from _clean_up(job, owned, now)
        return
    job, counting = _count(job, owned)
    yield from counting
    active = [pod for pod in owned if pods.is_active(pod)]
    if result := _result(job, active, now):
        doomed, at = active, timestamps.to_text(now)
        job = objects.with_condition(job, at, **result)
        if result["type"] == "Complete":
            job = objects.with_status(job, completionTime=at)
    else:
        new, doomed, requeue_at = _pod_changes(job, owned, active, now)
        yield from map(Create, new)
        yield from writes.requeue(requeue_at)
    yield from map(Delete, doomed)
    yield from _status(job, len(active) - len(doomed), active, now)


def release(pod: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    """Remove the finalizer of a pod whose Job no longer exists to count it."""
    owner = index.by_uid(objects.controller_uid(pod))
    if FINALIZER in objects.finalizers(pod) and owner is None:
        yield from _remove_finalizers([pod])


def _remove_finalizers(finished: Sequence[Object]) -> Iterator[Write]:
    for pod in finished:
        yield Update(objects.without_finalizer(pod, FINALIZER))


# Counting --------------------------------------------------------------------------------------


def _tracked(owned: Sequence[Object]) -> list[Object]:
    """Pods with the Job's finalizer: they are not counted yet."""
    return [pod for pod in owned if FINALIZER in objects.finalizers(pod)]


def _to_count(owned: Sequence[Object]) -> list[Object]:
    """Pods that ended, or that were deleted before they had a node."""
    return [
        pod
        for pod in _tracked(owned)
        if pods.is_ended(pod) or (objects.is_terminating(pod) and not pods.node_name(pod))
    ]


def _count(job: Object, owned: Sequence[Object]) -> tuple[Object, list[Write]]:
    """The Job with finished pods counted, and the writes that have to precede it."""
    recorded: dict[str, list[str]] = objects.status(job).get("uncountedTerminatedPods") or {}
    uncounted = {result: list(recorded.get(result) or ()) for result in ("succeeded", "failed")}
    known = {*uncounted["succeeded"], *uncounted["failed"]}
    ended = _to_count(owned)
    for pod in ended:
        if objects.uid(pod) not in known:
            result = "succeeded" if pods.phase(pod) == "Succeeded" else "failed"
            uncounted[result].append(objects.uid(pod))
    before: list[Write] = []
    if ended:
        before.append(Update(objects.with_status(job, uncountedTerminatedPods=uncounted)))
        before += _remove_finalizers(ended)
    if not any(uncounted.values()):
        return job, before
    indexes = _completed_indexes(job)
    indexes |= {completion_index(pod) for pod in owned if pods.phase(pod) == "Succeeded"} - {-1}
    return objects.with_status(
        job,
        succeeded=succeeded(job) + len(uncounted["succeeded"]) or None,
        failed=failed(job) + len(uncounted["failed"]) or None,
        uncountedTerminatedPods={},
        completedIndexes=_format_ranges(indexes) if _is_indexed(job) else None,
    ), before


def succeeded(job: Object) -> int:
    return objects.status_number(job, "succeeded")


def failed(job: Object) -> int:
    return objects.status_number(job, "failed")


# Pods ------------------------------------------------------------------------------------------


def _pod_changes(
    job: Object, owned: Sequence[Object], active: Sequence[Object], now: float
) -> tuple[list[Object], list[Object], float | None]:
    """Pods to create, pods to delete, and when to look again if a back-off delays pods."""
    spec = objects.spec(job)
    if spec.get("suspend"):
        return [], list(active), None
    parallelism = objects.spec_number(job, "parallelism", 1)
    completions = spec.get("completions")
    if completions is not None:
        desired = min(parallelism, max(0, int(completions) - succeeded(job)))
    else:  # A work queue: once one pod has succeeded, no new ones are created.
        desired = min(parallelism, len(active)) if succeeded(job) else parallelism
    if len(active) > desired:
        return [], pods.in_deletion_order(active, active)[: len(active) - desired], None
    missing = desired - len(active)
    ready_at = _back_off_until(job, owned)
    if missing and ready_at > now:
        return [], [], ready_at
    if not _is_indexed(job):
        return [_pod(job) for _ in range(missing)], [], None
    taken = {completion_index(pod) for pod in active} | _completed_indexes(job)
    free = [number for number in range(int(completions or 0)) if number not in taken]
    return [_pod(job, number) for number in free[:missing]], [], None


def _back_off_until(job: Object, owned: Sequence[Object]) -> float:
    """When the next pod may be created after a failure; the delay doubles with each failure."""
    ends = [_ended_at(pod) for pod in owned if pods.phase(pod) == "Failed"]
    if not failed(job) or not ends:
        return float("-inf")
    delay: float = min(BACKOFF_SECONDS * 2.0 ** min(failed(job) - 1, 10), MAX_BACKOFF_SECONDS)
    return max(ends) + delay


def _ended_at(pod: Object) -> float:
    for each in objects.status(pod).get("containerStatuses") or ():
        finished = ((each.get("state") or {}).get("terminated") or {}).get("finishedAt")
        if finished:
            return timestamps.to_seconds(finished)
    return pods.ready_at(pod)


def _pod(job: Object, number: int | None = None) -> Object:
    own = (objects.template(job).get("metadata") or {}).get("labels") or {}
    labels = {
        "batch.kubernetes.io/job-name": objects.name(job),
        "job-name": objects.name(job),
        "batch.kubernetes.io/controller-uid": objects.uid(job),
        "controller-uid": objects.uid(job),
        **own,  # They include the generated labels that the Job's selector matches.
    }
    if number is not None:
        labels[INDEX] = str(number)
    pod = pods.from_template(job, **labels)
    if number is not None:
        pod = objects.with_annotations(pod, **{INDEX: str(number)})
        pod = objects.with_metadata(pod, generateName=f"{objects.name(job)}-{number}-")
    return objects.with_metadata(pod, finalizers=[*objects.finalizers(pod), FINALIZER])


def _is_indexed(job: Object) -> bool:
    return objects.spec(job).get("completionMode") == "Indexed"


def completion_index(pod: Object) -> int:
    text = objects.annotations(pod).get(INDEX, "")
    return int(text) if text.isdecimal() else -1


def _completed_indexes(job: Object) -> set[int]:
    """`completedIndexes` of the status, such as `1,3-5`, as numbers."""
    found: set[int] = set()
    for part in filter(None, objects.status(job).get("completedIndexes", "").split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def _format_ranges(numbers: set[int]) -> str:
    """Numbers as `1,3-5`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


# Results ---------------------------------------------------------------------------------------


def is_finished(job: Object) -> bool:
    return any(objects.is_condition_true(job, type_) for type_ in ("Complete", "Failed"))


def _result(job: Object, active: Sequence[Object], now: float) -> dict[str, str]:
    """The condition that ends the Job; empty if it goes on."""
    spec, completions = objects.spec(job), objects.spec(job).get("completions")
    started = timestamps.to_seconds(objects.status(job).get("startTime"), now)
    deadline = spec.get("activeDeadlineSeconds")
    if completions is None:  # A work queue is done when its last pod has ended.
        done = succeeded(job) > 0 and not active
    else:
        done = succeeded(job) >= int(completions)
    if failed(job) > objects.spec_number(job, "backoffLimit", 6):
        type_, reason = "Failed", "BackoffLimitExceeded"
        text = "Job has reached the specified backoff limit"
    elif deadline is not None and now >= started + int(deadline):
        type_, reason = "Failed", "DeadlineExceeded"
        text = "Job was active longer than specified deadline"
    elif done:
        type_, reason = "Complete", "CompletionsReached"
        text = "Reached expected number of succeeded pods"
    else:
        return {}
    return {"type": type_, "status": "True", "reason": reason, "message": text}


def _clean_up(job: Object, owned: Sequence[Object], now: float) -> Iterator[Write]:
    """A finished Job keeps its ended pods until its time to live is over."""
    yield from _remove_finalizers(_to_count(owned))
    for pod in owned:
        if pods.is_active(pod):
            yield Delete(pod)
    ttl_seconds = objects.spec(job).get("ttlSecondsAfterFinished")
    if ttl_seconds is None:
        return
    ended = [objects.condition(job, type_) for type_ in ("Complete", "Failed")]
    ended_at = max(timestamps.to_seconds(each.get("lastTransitionTime")) for each in ended)
    at = ended_at + int(ttl_seconds)
    yield Delete(job, propagation=FOREGROUND) if at <= now else RequeueAt(at)


def _status(job: Object, count: int, active: Sequence[Object], now: float) -> Iterator[Write]:
    finished, started = is_finished(job), objects.status(job).get("startTime")
    if not started and not objects.spec(job).get("suspend"):
        started = timestamps.to_text(now)
    deadline = objects.spec(job).get("activeDeadlineSeconds")
    if deadline is not None and not finished and started:
        yield RequeueAt(timestamps.to_seconds(started) + int(deadline))
    ready = 0 if finished else sum(map(pods.is_ready, active))
    status = {"active": count or None, "ready": ready, "startTime": started or None}
    yield Update(objects.with_status(job, terminating=None, **status))
