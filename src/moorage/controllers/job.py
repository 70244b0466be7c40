"""Job: create pods until enough have succeeded or too many have failed.

Each finished pod is counted once, even if it is deleted or the server stops in between. Its
finalizer stays until its UID is in `uncountedTerminatedPods`; then the finalizer is removed and
the count increases. This is Kubernetes' own protocol.

    decided     FailureTarget or SuccessCriteriaMet: active pods are deleted
    finished    Failed or Complete, once no pod is left that has not ended
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from moorage.api import timestamps
from moorage.controllers import job_policies, objects, ownership, pods, writes
from moorage.controllers.index import ObjectIndex
from moorage.controllers.job_policies import COUNT, FAIL_INDEX, FAIL_JOB, FAILURE_COUNT, INDEX
from moorage.controllers.objects import Object
from moorage.controllers.writes import FOREGROUND, Create, Delete, RequeueAt, Update, Write

KIND = "batch/Job"
FINALIZER = "batch.kubernetes.io/job-tracking"
CONTROLLER = "kubernetes.io/job-controller"
BACKOFF_SECONDS = 10.0
MAX_BACKOFF_SECONDS = 600.0
FAILURE_TARGET = "FailureTarget"
# The condition of a decision, and the one that ends the Job.
TERMINAL = {FAILURE_TARGET: "Failed", "SuccessCriteriaMet": "Complete"}


def reconcile(job: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    """Count ended pods, create and delete pods, and set the status."""
    if objects.spec(job).get("managedBy") not in (None, CONTROLLER):
        return
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
    at = timestamps.to_text(now)
    job, counting = _count(job, owned, at)
    yield from counting
    active = [pod for pod in owned if pods.is_active(pod)]
    if not decision(job) and (result := _result(job, active, now)):
        job = _with_condition(job, at, **result)
    created = deleted = 0
    if decision(job):
        if decision(job) != FAILURE_TARGET:  # What a successful Job stops does not count as failed.
            yield from _remove_finalizers(_tracked(active))
        yield from map(Delete, active)
        deleted = len(active)
    else:
        job = _with_suspension(job, at)
        new, doomed, requeue_at = _pod_changes(job, owned, active, now)
        for pod in new:
            yield Create(pod)
            if index.failure(job):  # The next pod would be refused, too.
                break
            created += 1
        yield from writes.requeue(requeue_at)
        for pod in doomed:  # Without its finalizer first: such a pod does not count as failed.
            yield from _remove_finalizers(_tracked([pod]))
            yield Delete(pod)
        deleted = len(doomed)
    yield from _status(job, owned, active, created - deleted, now)


def decision(job: Object) -> str:
    """The condition that decided how the Job ends; empty if it is not decided."""
    return next((each for each in TERMINAL if objects.is_condition_true(job, each)), "")


def _with_condition(job: Object, at: str, **fields: str) -> Object:
    return objects.with_condition(job, at, status="True", lastProbeTime=at, **fields)


def _with_suspension(job: Object, at: str) -> Object:
    """The Job with the condition that it is suspended, or no longer is."""
    suspended = bool(objects.spec(job).get("suspend"))
    if suspended == objects.is_condition_true(job, "Suspended"):
        return job
    what = "Suspended" if suspended else "Resumed"
    if suspended:
        job = objects.with_status(job, startTime=None)
    return objects.with_condition(
        job,
        at,
        type="Suspended",
        status=str(suspended),
        lastProbeTime=at,
        reason=f"Job{what}",
        message=f"Job {what.lower()}",
    )


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


def _to_count(job: Object, owned: Sequence[Object]) -> list[Object]:
    """Pods that ended; unless only those are replaced, pods that are being deleted as well.

    Once the Job has failed, every pod counts, also one that still ends.
    """
    if decision(job) == FAILURE_TARGET:
        return _tracked(owned)
    only_ended = _replaces_ended_only(job)
    return [
        pod
        for pod in _tracked(owned)
        if pods.is_ended(pod)
        or (objects.is_terminating(pod) and (not only_ended or not pods.node_name(pod)))
    ]


def _replaces_ended_only(job: Object) -> bool:
    spec = objects.spec(job)
    default = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    return (spec.get("podReplacementPolicy") or default) == "Failed"


class _Ended(NamedTuple):
    """What the pods that ended since the last time add to the status."""

    succeeded: list[str]
    failed: list[str]
    failed_indexes: set[int]
    job_failure: str


def _newly_ended(job: Object, ended: Sequence[Object], known: set[str]) -> _Ended:
    found = _Ended([], [], set(), "")
    limit = objects.spec(job).get("backoffLimitPerIndex")
    for pod in ended:
        if objects.uid(pod) in known:
            continue
        if pods.phase(pod) == "Succeeded":
            found.succeeded.append(objects.uid(pod))
            continue
        action, message = job_policies.failure_action(job, pod)
        if action in (COUNT, FAIL_INDEX, FAIL_JOB):
            found.failed.append(objects.uid(pod))
        if action == FAIL_JOB and not found.job_failure:
            found = found._replace(job_failure=message)
        spent = limit is not None and job_policies.failure_count(pod) >= int(limit)
        if action == FAIL_INDEX or (action == COUNT and spent):
            found.failed_indexes.add(job_policies.completion_index(pod))
    return found


def _count(job: Object, owned: Sequence[Object], at: str) -> tuple[Object, list[Write]]:
    """The Job with finished pods counted, and the writes that have to precede it."""
    recorded: dict[str, list[str]] = objects.status(job).get("uncountedTerminatedPods") or {}
    uncounted = {result: list(recorded.get(result) or ()) for result in ("succeeded", "failed")}
    ended = _to_count(job, owned)
    new = _newly_ended(job, ended, {*uncounted["succeeded"], *uncounted["failed"]})
    uncounted["succeeded"] += new.succeeded
    uncounted["failed"] += new.failed
    if new.job_failure and not decision(job):
        reason = {"reason": "PodFailurePolicy", "message": new.job_failure}
        job = _with_condition(job, at, type=FAILURE_TARGET, **reason)
    completed, lost = _indexes(job, "completedIndexes"), _indexes(job, "failedIndexes")
    completed |= {
        job_policies.completion_index(pod) for pod in owned if pods.phase(pod) == "Succeeded"
    }
    lost |= new.failed_indexes
    if job_policies.is_indexed(job):
        job = objects.with_status(
            job,
            completedIndexes=job_policies.format_indexes(completed - {-1}) or None,
            failedIndexes=job_policies.format_indexes(lost - {-1} - completed) or None,
        )
    before: list[Write] = []
    if ended:
        before.append(Update(objects.with_status(job, uncountedTerminatedPods=uncounted)))
        before += _remove_finalizers(ended)
    if not any(uncounted.values()):
        return job, before
    total = succeeded(job) + len(uncounted["succeeded"])
    if job_policies.is_indexed(job):
        total = len(completed - {-1})
    return objects.with_status(
        job,
        succeeded=total or None,
        failed=failed(job) + len(uncounted["failed"]) or None,
        uncountedTerminatedPods={},
    ), before


def _indexes(job: Object, field: str) -> set[int]:
    return job_policies.parse_indexes(objects.status(job).get(field) or "")


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
    done = _indexes(job, "completedIndexes") | _indexes(job, "failedIndexes")
    if job_policies.is_indexed(job):
        desired = min(parallelism, max(0, int(completions or 0) - len(done)))
    elif completions is not None:
        desired = min(parallelism, max(0, int(completions) - succeeded(job)))
    else:  # A work queue: once one pod has succeeded, no new ones are created.
        desired = min(parallelism, len(active)) if succeeded(job) else parallelism
    if len(active) > desired:
        return [], pods.in_deletion_order(active, active)[: len(active) - desired], None
    ending = [pod for pod in owned if objects.is_terminating(pod) and not pods.is_ended(pod)]
    blocking = ending if _replaces_ended_only(job) else []
    missing = max(0, desired - len(active) - len(blocking))
    if not job_policies.is_indexed(job):
        ready_at = _back_off_until(owned, failed(job))
        if missing and ready_at > now:
            return [], [], ready_at
        return [_pod(job) for _ in range(missing)], [], None
    return _indexed_pods(job, owned, [*active, *blocking], missing, now)


def _indexed_pods(
    job: Object, owned: Sequence[Object], present: Sequence[Object], missing: int, now: float
) -> tuple[list[Object], list[Object], float | None]:
    """Pods for the lowest free indexes; each index has its own back-off with a limit per index."""
    taken = {job_policies.completion_index(pod) for pod in present}
    taken |= _indexes(job, "completedIndexes") | _indexes(job, "failedIndexes")
    completions = objects.spec_number(job, "completions")
    per_index = objects.spec(job).get("backoffLimitPerIndex") is not None
    new: list[Object] = []
    waits: list[float] = []
    for number in (each for each in range(completions) if each not in taken):
        if len(new) + len(waits) >= missing:
            break
        before = [pod for pod in owned if job_policies.completion_index(pod) == number]
        count = _index_failures(job, before) if per_index else failed(job)
        ready_at = _back_off_until(before if per_index else owned, count)
        if ready_at > now:
            waits.append(ready_at)
        else:
            new.append(_pod(job, number, count if per_index else None))
    return new, [], min(waits, default=None)


def _index_failures(job: Object, before: Sequence[Object]) -> int:
    """How often pods of an index failed, without failures that the policy ignores."""
    counts = [0]
    for pod in before:
        if pods.phase(pod) == "Failed" or objects.is_terminating(pod):
            ignored = job_policies.failure_action(job, pod).action == job_policies.IGNORE
            counts.append(job_policies.failure_count(pod) + (not ignored))
    return max(counts)


def _back_off_until(owned: Sequence[Object], failures: int) -> float:
    """When the next pod may be created after a failure; the delay doubles with each failure."""
    ends = [_ended_at(pod) for pod in owned if pods.phase(pod) == "Failed"]
    if not failures or not ends:
        return float("-inf")
    delay: float = min(BACKOFF_SECONDS * 2.0 ** min(failures - 1, 10), MAX_BACKOFF_SECONDS)
    return max(ends) + delay


def _ended_at(pod: Object) -> float:
    for each in objects.status(pod).get("containerStatuses") or ():
        finished = ((each.get("state") or {}).get("terminated") or {}).get("finishedAt")
        if finished:
            return timestamps.to_seconds(finished)
    return pods.ready_at(pod)


def _pod(job: Object, number: int | None = None, failures: int | None = None) -> Object:
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
        counted = {} if failures is None else {FAILURE_COUNT: str(failures)}
        pod = objects.with_annotations(pod, **{INDEX: str(number)}, **counted)
        pod = objects.with_metadata(pod, generateName=f"{objects.name(job)}-{number}-")
        pod = objects.with_spec(pod, **_indexed_spec(job, number))
    return objects.with_metadata(pod, finalizers=[*objects.finalizers(pod), FINALIZER])


_INDEX_VARIABLE = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}},
}


def _indexed_spec(job: Object, number: int) -> dict[str, Any]:
    """What the pod of an index has in its spec: a hostname, and the index as a variable."""
    spec = objects.template(job).get("spec") or {}
    fields: dict[str, Any] = {"hostname": f"{objects.name(job)}-{number}"}
    for field in ("initContainers", "containers"):
        if containers := spec.get(field):
            fields[field] = [_with_index_variable(each) for each in containers]
    return fields


def _with_index_variable(container: Object) -> Object:
    known = container.get("env") or []
    if any(each.get("name") == _INDEX_VARIABLE["name"] for each in known):
        return container
    return {**container, "env": [*known, _INDEX_VARIABLE]}


# Results ---------------------------------------------------------------------------------------


def is_finished(job: Object) -> bool:
    return any(objects.is_condition_true(job, type_) for type_ in TERMINAL.values())


def _result(job: Object, active: Sequence[Object], now: float) -> dict[str, str]:
    """The condition that decides how the Job ends; empty if it goes on."""
    spec, completions = objects.spec(job), objects.spec(job).get("completions")
    started = timestamps.to_seconds(objects.status(job).get("startTime"), now)
    deadline, suspended = spec.get("activeDeadlineSeconds"), spec.get("suspend")
    completed, lost = _indexes(job, "completedIndexes"), _indexes(job, "failedIndexes")
    if completions is None:  # A work queue is done when its last pod has ended.
        done = succeeded(job) > 0 and not active
    else:
        done = succeeded(job) >= int(completions)
    max_lost = spec.get("maxFailedIndexes")
    matched = job_policies.success_message(job, completed)
    type_ = FAILURE_TARGET
    if failed(job) > _backoff_limit(job):
        reason, text = "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    elif deadline is not None and now >= started + int(deadline) and not suspended:
        reason, text = "DeadlineExceeded", "Job was active longer than specified deadline"
    elif max_lost is not None and len(lost) > int(max_lost):
        reason = "MaxFailedIndexesExceeded"
        text = "Job has exceeded the specified maximal number of failed indexes"
    elif matched:
        type_, reason, text = "SuccessCriteriaMet", "SuccessPolicy", matched
    elif lost and len(completed | lost) >= int(completions or 0):
        reason, text = "FailedIndexes", "Job has failed indexes"
    elif done:
        type_, reason = "SuccessCriteriaMet", "CompletionsReached"
        text = "Reached expected number of succeeded pods"
    else:
        return {}
    return {"type": type_, "reason": reason, "message": text}


def _backoff_limit(job: Object) -> float:
    limit = objects.spec(job).get("backoffLimit")
    if limit is None:
        return float("inf") if objects.spec(job).get("backoffLimitPerIndex") is not None else 6
    return int(limit)


def _clean_up(job: Object, owned: Sequence[Object], now: float) -> Iterator[Write]:
    """A finished Job keeps its ended pods until its time to live is over."""
    yield from _remove_finalizers(_tracked(owned))
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


def _status(
    job: Object, owned: Sequence[Object], active: Sequence[Object], change: int, now: float
) -> Iterator[Write]:
    at, decided = timestamps.to_text(now), decision(job)
    ending = [pod for pod in owned if objects.is_terminating(pod) and not pods.is_ended(pod)]
    terminating = len(ending)
    if decided and not active and not ending:
        known = objects.condition(job, decided)
        reason = {"reason": known.get("reason", ""), "message": known.get("message", "")}
        type_ = TERMINAL[decided]
        job = _with_condition(job, at, type=type_, **reason)
        if type_ == "Complete":
            job = objects.with_status(job, completionTime=at)
    started = objects.status(job).get("startTime")
    if not started and not objects.spec(job).get("suspend"):
        started = at
    deadline = objects.spec(job).get("activeDeadlineSeconds")
    if deadline is not None and not decided and started:
        yield RequeueAt(timestamps.to_seconds(started) + int(deadline))
    status = {
        "active": len(active) + change or None,
        "ready": 0 if decided else sum(map(pods.is_ready, active)),
        "terminating": terminating,
        "startTime": started or None,
        "uncountedTerminatedPods": objects.status(job).get("uncountedTerminatedPods") or {},
    }
    yield Update(objects.with_status(job, **status))
