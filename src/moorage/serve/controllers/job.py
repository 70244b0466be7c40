"""Job: pods until enough of them have succeeded, or too many have failed.

A finished pod is counted once, even if it is deleted or we stop halfway: it carries a finalizer
until its UID is written down among the uncounted, and only then the finalizer goes and the count
rises. That is Kubernetes' own protocol.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from moorage.serve import timestamps
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

KIND = "batch/Job"
FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
BACKOFF_SECONDS = 10.0
LONGEST_BACKOFF_SECONDS = 600.0


def reconcile(job: Object, view: ObjectIndex, now: float) -> Iterator[Write]:
    """Gather the Job's pods, and decide."""
    orphans = view.orphans("Pod", objects.namespace(job))
    owned = view.controlled("Pod", objects.uid(job))
    mine, writes = ownership.claim(job, objects.selector(job), owned, orphans)
    yield from writes
    if not writes:
        yield from decide(job, mine, now)


def decide(job: Object, mine: Sequence[Object], now: float) -> Iterator[Write]:
    """The pods to make and to delete, what to count, and the status."""
    if objects.is_terminating(job):
        yield from (UpdateObject(objects.without_finalizer(pod, FINALIZER)) for pod in _held(mine))
        return
    if is_finished(job):
        yield from _after_the_end(job, mine, now)
        return
    job, writes = _counted(job, mine)
    yield from writes
    active = [pod for pod in mine if pods.is_active(pod)]
    verdict = _verdict(job, mine, now)
    if verdict is not None:
        type_, reason, message = verdict
        doomed = active
        status = _finished(job, type_, reason, message, now)
    else:
        new, doomed, again = _wanted(job, mine, active, now)
        yield from map(CreateObject, new)
        if again is not None:
            yield RequeueAt(again)
        status = job
    for pod in doomed:
        yield DeleteObject(pod)
    yield from _status(status, len(active) - len(doomed), active, now)


def release(pod: Object, view: ObjectIndex, now: float) -> Iterator[Write]:
    """Let a pod go whose Job is no longer there to count it."""
    del now  # Nothing here depends on time.
    owner = view.by_uid(ownership.controller_uid(pod))
    if FINALIZER in objects.finalizers(pod) and owner is None:
        yield UpdateObject(objects.without_finalizer(pod, FINALIZER))


# Counting --------------------------------------------------------------------------------------


def _held(mine: Sequence[Object]) -> list[Object]:
    return [pod for pod in mine if FINALIZER in objects.finalizers(pod)]


def _over(mine: Sequence[Object]) -> list[Object]:
    """Pods to be counted: ended, or deleted before they had a node where they could end."""
    return [pod for pod in _held(mine) if pods.is_ended(pod) or _never_began(pod)]


def _never_began(pod: Object) -> bool:
    return objects.is_terminating(pod) and not pods.node_name(pod)


def _counted(job: Object, mine: Sequence[Object]) -> tuple[Object, list[Write]]:
    """The Job with finished pods counted, and the writes that make it safe to do so."""
    uncounted: dict[str, list[str]] = objects.status(job).get("uncountedTerminatedPods") or {}
    noted = {kind: list(uncounted.get(kind) or ()) for kind in ("succeeded", "failed")}
    known = {*noted["succeeded"], *noted["failed"]}
    ended = _over(mine)
    for pod in ended:
        if objects.uid(pod) not in known:
            kind = "succeeded" if pods.phase(pod) == "Succeeded" else "failed"
            noted[kind].append(objects.uid(pod))
    writes: list[Write] = []
    if ended:
        note = objects.with_status(job, uncountedTerminatedPods=noted)
        writes.append(UpdateObject(note))
        writes += [UpdateObject(objects.without_finalizer(pod, FINALIZER)) for pod in ended]
    if not any(noted.values()):
        return job, writes
    done = objects.status(job)
    indexes = _indexes(done.get("completedIndexes", ""))
    indexes |= {completion_index(pod) for pod in mine if pods.phase(pod) == "Succeeded"} - {-1}
    return objects.with_status(
        job,
        succeeded=int(done.get("succeeded") or 0) + len(noted["succeeded"]) or None,
        failed=int(done.get("failed") or 0) + len(noted["failed"]) or None,
        uncountedTerminatedPods={},
        completedIndexes=_ranges(indexes) if _is_indexed(job) else None,
    ), writes


def succeeded(job: Object) -> int:
    return int(objects.status(job).get("succeeded") or 0)


def failed(job: Object) -> int:
    return int(objects.status(job).get("failed") or 0)


# How many pods ---------------------------------------------------------------------------------


def _wanted(
    job: Object, mine: Sequence[Object], active: Sequence[Object], now: float
) -> tuple[list[Object], list[Object], float | None]:
    """Pods to make, pods to delete, and when to look again if it is too early to make some."""
    spec = objects.spec(job)
    if spec.get("suspend"):
        return [], list(active), None
    parallelism = 1 if spec.get("parallelism") is None else int(spec["parallelism"])
    completions = spec.get("completions")
    if completions is not None:
        wanted = min(parallelism, max(0, int(completions) - succeeded(job)))
    else:  # A work queue: once one has succeeded, no new ones are made.
        wanted = min(parallelism, len(active)) if succeeded(job) else parallelism
    if len(active) > wanted:
        return [], pods.dispensable_first(active, active)[: len(active) - wanted], None
    missing = wanted - len(active)
    ready_at = _back_off_until(job, mine)
    if missing and ready_at > now:
        return [], [], ready_at
    if not _is_indexed(job):
        return [_pod(job) for _ in range(missing)], [], None
    taken = {completion_index(pod) for pod in active} | _indexes(
        objects.status(job).get("completedIndexes", "")
    )
    free = [number for number in range(int(completions or 0)) if number not in taken]
    return [_pod(job, number) for number in free[:missing]], [], None


def _back_off_until(job: Object, mine: Sequence[Object]) -> float:
    """After a failure the next pod waits, twice as long each time."""
    latest = max(
        (_ended_at(pod) for pod in mine if pods.phase(pod) == "Failed"), default=float("-inf")
    )
    if not failed(job):
        return float("-inf")
    wait: float = min(BACKOFF_SECONDS * 2.0 ** min(failed(job) - 1, 10), LONGEST_BACKOFF_SECONDS)
    return latest + wait


def _ended_at(pod: Object) -> float:
    for each in objects.status(pod).get("containerStatuses") or ():
        finished = ((each.get("state") or {}).get("terminated") or {}).get("finishedAt")
        if finished:
            return timestamps.to_seconds(finished)
    return pods.ready_at(pod)


def _pod(job: Object, number: int | None = None) -> Object:
    template = objects.spec(job).get("template") or {}
    own = (template.get("metadata") or {}).get("labels") or {}
    labels = {
        "batch.kubernetes.io/job-name": objects.name(job),
        "job-name": objects.name(job),
        "batch.kubernetes.io/controller-uid": objects.uid(job),
        "controller-uid": objects.uid(job),
        **own,  # The API has filled in those by which the Job finds its pods.
    }
    if number is not None:
        labels[INDEX] = str(number)
    pod = pods.from_template(job, template, **labels)
    if number is not None:
        pod = objects.with_annotations(pod, **{INDEX: str(number)})
        pod = objects.with_metadata(pod, generateName=f"{objects.name(job)}-{number}-")
    return objects.with_metadata(pod, finalizers=[*objects.finalizers(pod), FINALIZER])


def _is_indexed(job: Object) -> bool:
    return objects.spec(job).get("completionMode") == "Indexed"


def completion_index(pod: Object) -> int:
    text = objects.annotations(pod).get(INDEX, "")
    return int(text) if text.isdecimal() else -1


def _indexes(text: str) -> set[int]:
    """`1,3-5` as numbers."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def _ranges(numbers: set[int]) -> str:
    """Numbers as `1,3-5`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


# The end ---------------------------------------------------------------------------------------


def is_finished(job: Object) -> bool:
    return any(
        objects.condition(job, type_).get("status") == "True" for type_ in ("Complete", "Failed")
    )


def _verdict(job: Object, mine: Sequence[Object], now: float) -> tuple[str, str, str] | None:
    """How the Job has ended, if it has."""
    spec = objects.spec(job)
    limit = 6 if spec.get("backoffLimit") is None else int(spec["backoffLimit"])
    if failed(job) > limit:
        text = "Job has reached the specified backoff limit"
        return "Failed", "BackoffLimitExceeded", text
    deadline = spec.get("activeDeadlineSeconds")
    started = timestamps.to_seconds(objects.status(job).get("startTime"), now)
    if deadline is not None and now >= started + int(deadline):
        text = "Job was active longer than specified deadline"
        return "Failed", "DeadlineExceeded", text
    completions = spec.get("completions")
    if completions is None:
        done = succeeded(job) > 0 and not any(pods.is_active(pod) for pod in mine)
    else:
        done = succeeded(job) >= int(completions)
    if done:
        return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
    return None


def _finished(job: Object, type_: str, reason: str, message: str, now: float) -> Object:
    at = timestamps.to_text(now)
    job = objects.with_condition(job, at, type=type_, status="True", reason=reason, message=message)
    return objects.with_status(job, completionTime=at) if type_ == "Complete" else job


def _after_the_end(job: Object, mine: Sequence[Object], now: float) -> Iterator[Write]:
    """A finished Job keeps its pods to be looked at, until its time to live is over."""
    yield from (UpdateObject(objects.without_finalizer(pod, FINALIZER)) for pod in _over(mine))
    for pod in mine:
        if pods.is_active(pod):
            yield DeleteObject(pod)
    kept = objects.spec(job).get("ttlSecondsAfterFinished")
    if kept is None:
        return
    ended = [objects.condition(job, type_) for type_ in ("Complete", "Failed")]
    at = max(timestamps.to_seconds(each.get("lastTransitionTime")) for each in ended) + int(kept)
    if at <= now:
        yield DeleteObject(job)
    else:
        yield RequeueAt(at)


def _status(
    job: Object, active_count: int, active: Sequence[Object], now: float
) -> Iterator[Write]:
    finished = is_finished(job)
    fields: dict[str, Any] = {
        "active": active_count or None,
        "ready": 0 if finished else sum(map(pods.is_ready, active)),
        "terminating": None,
        "startTime": objects.status(job).get("startTime")
        or (None if objects.spec(job).get("suspend") else timestamps.to_text(now)),
    }
    changed = objects.with_status(job, **fields)
    deadline = objects.spec(job).get("activeDeadlineSeconds")
    if deadline is not None and not finished and fields["startTime"]:
        yield RequeueAt(timestamps.to_seconds(fields["startTime"]) + int(deadline))
    yield UpdateObject(changed)
