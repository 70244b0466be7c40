"""ApiPerformer: effects of the core -> API calls, many at a time -> outcomes.

    request         call                                    tries   without a response
    BindPod         POST pods/NAME/binding                  one     Unknown: the core looks it up
    PatchPodStatus  PATCH pods/NAME/status                  eight   Unknown
    PatchPodGroup.. PATCH podgroups/NAME/status             eight   Unknown
    DeletePod       DELETE pods/NAME, only this UID         eight   Unknown
    PatchVolume     PATCH persistentvolumes/NAME            one     Unknown: the attempt fails
    PatchClaim      PATCH persistentvolumeclaims/NAME       one     Unknown: the attempt fails
    LookUpPod       GET pods/NAME                           eight   Failed: the core asks again
    device claims   see `claim_writer`                      five    Unknown: the attempt fails

The requests for one pod are performed in order, those for different pods concurrently, in the order
of their priority (`token_bucket.Priority`). Conditions of pods that do not fit have few workers of
their own, which pause while the scheduler is busy, so that any number of them does not delay a
binding. A request that waits raises the requests of its pod before it to its own priority.

A status patch that waits is merged with a later one, and dropped if the pod is bound meanwhile: the
API server sets PodScheduled itself. A binding is repeated after a 429 only, because
otherwise the first may have been carried out. The same holds for volumes and claims, which are
patched at one resourceVersion: a repeated patch would be refused because of the first. Events are
written by `event_recorder`.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import UNSET, structs

from moorage.api.kinds import KINDS
from moorage.api.meta import Condition
from moorage.api.resource_claims import ClaimChangedError
from moorage.api.server_requests import (
    BindPod,
    ClaimRequest,
    DeletePod,
    DeleteResourceClaim,
    EmitEvent,
    LookUpPod,
    PatchClaim,
    PatchPodGroupStatus,
    PatchPodStatus,
    PatchVolume,
    PodRef,
    ReleaseResourceClaim,
    Request,
)
from moorage.core.effects import Done, Effect, Failed, Outcome, Ticket, Unknown
from moorage.live import api_errors, claim_writer, logs, paths, wire
from moorage.live.api_errors import ApiError, ApiStatusError, NoResponseError
from moorage.live.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Client, Fence
from moorage.live.clock import Clock
from moorage.live.event_recorder import EventRecorder
from moorage.live.extenders import HttpExtenders
from moorage.live.token_bucket import Priority

# Each uses a connection of its own, and a TLS handshake costs as much as five bindings. At 20 ms
# per request this is 1,600 per second, more than an API server allows one client.
CONCURRENCY = 32
REPORT_CONCURRENCY = 8
# The pause of each of them before a request while pods wait to be scheduled: a request takes as
# much CPU time as a decision or two.
REPORT_PAUSE_SECONDS = 0.1
BIND_SECONDS = 10
REPEATED_TRIES = 8

POD_SCHEDULED = "PodScheduled"
# The core repeats these every second until they succeed. A failure is logged once per reason, for
# so many claims.
REPEATED = (ReleaseResourceClaim, DeleteResourceClaim)
MOST_REPEATED = 1000

CONDITIONS = "conditions"
_OUTSTANDING: dict[type[Request], str] = {
    BindPod: "bindings",
    PatchPodStatus: CONDITIONS,
    PatchPodGroupStatus: CONDITIONS,
    LookUpPod: "lookups",  # Of pods that may be bound.
}

Finished = Callable[[Ticket, Outcome], None]

_log = logs.named("calls")


@dataclass(slots=True)
class _PodRequests:
    """The requests for one pod that are not sent yet, in order."""

    effects: deque[Effect] = field(default_factory=deque)
    in_progress: Request | None = None
    queued: Priority | None = None  # The queue in which the pod waits for a worker.


class ApiPerformer:
    """See the module; `finished` is called with each outcome, `failed` with a bug of ours."""

    def __init__(
        self,
        client: Client,
        events: EventRecorder,
        fence: Fence,
        finished: Finished,
        failed: Callable[[BaseException], None],
        *,
        concurrency: int = CONCURRENCY,
        extenders: HttpExtenders | None = None,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self.bindings = 0  # In progress or waiting.
        self.lost_conditions = 0  # Of pods that exist: refused, or the server did not answer.
        self._client = client
        self._events = events
        self._fence = fence
        self._finished = finished
        self._failed = failed
        self._concurrency = concurrency
        self._extenders = extenders
        self._is_busy = is_busy
        self._log = logs.named("performer")
        # The reason of the last failure that was logged, by kind of request and claim.
        self._logged: dict[tuple[str, str], str] = {}
        self._pods: dict[str, _PodRequests] = {}
        # Pods with a request to send. One whose priority was raised is in two queues; only the
        # entry in `queued` counts.
        self._ready: dict[Priority, deque[_PodRequests]] = {p: deque() for p in Priority}
        self._workers: set[asyncio.Task[None]] = set()
        self._reporters: set[asyncio.Task[None]] = set()

    def perform(self, effects: Iterable[Effect]) -> None:
        """Start to perform effects."""
        for effect in effects:
            request = effect.request
            if isinstance(request, EmitEvent):
                self._events.emit(request)  # It has no outcome.
                continue
            if isinstance(request, BindPod):
                self.bindings += 1
            self._enqueue(effect, request)

    def outstanding(self) -> dict[str, int]:
        """How many requests wait or are in progress, by kind."""
        found: Counter[str] = Counter()
        for pod in self._pods.values():
            for request in (pod.in_progress, *(effect.request for effect in pod.effects)):
                if request is not None:
                    found[_OUTSTANDING.get(type(request), "others")] += 1
        return dict(found)

    async def drained(self) -> None:
        """Wait until nothing is in progress."""
        while tasks := self._workers | self._reporters:
            await asyncio.wait(tasks)

    async def close(self) -> None:
        """Drop what has not been sent."""
        for queue in self._ready.values():
            queue.clear()
        tasks = self._workers | self._reporters
        for worker in tasks:
            worker.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _enqueue(self, effect: Effect, request: Request) -> None:
        pod = self._pods.get(request.pod.uid)
        if pod is None:
            pod = self._pods[request.pod.uid] = _PodRequests()
        effects = pod.effects
        while effects and _is_superseded(effects[-1].request, request):
            self._finished(effects.pop().ticket, Done())
        if merged := _merged(effects[-1], effect) if effects else None:
            self._finished(effects.pop().ticket, Done())
            effect = merged
        effects.append(effect)
        self._make_ready(pod)

    def _make_ready(self, pod: _PodRequests) -> None:
        """Queue a pod at the highest priority of its requests, unless one is in progress."""
        if pod.in_progress is not None:
            return
        priority = min(_priority(effect.request) for effect in pod.effects)
        if pod.queued is not None and pod.queued <= priority:
            return
        pod.queued = priority
        self._ready[priority].append(pod)
        is_report = priority is Priority.REPORT
        workers = self._reporters if is_report else self._workers
        if len(workers) < (REPORT_CONCURRENCY if is_report else self._concurrency):
            worker = asyncio.create_task(self._work(workers))
            workers.add(worker)
            worker.add_done_callback(self._ended)

    def _ended(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        self._reporters.discard(worker)
        error = None if worker.cancelled() else worker.exception()
        if error is not None:
            self._failed(error)

    def _take(self, workers: set[asyncio.Task[None]]) -> tuple[_PodRequests, Priority] | None:
        """The pod whose request a worker sends next."""
        for priority, queue in self._ready.items():
            if (priority is Priority.REPORT) != (workers is self._reporters):
                continue
            while queue:
                pod = queue.popleft()
                if pod.queued is priority:
                    return pod, priority
        return None

    async def _work(self, workers: set[asyncio.Task[None]]) -> None:
        while True:
            if workers is self._reporters and self._is_busy():
                await asyncio.sleep(REPORT_PAUSE_SECONDS)
            taken = self._take(workers)
            if taken is None:
                return
            pod, priority = taken
            effect = pod.effects.popleft()
            request = effect.request
            pod.queued, pod.in_progress = None, request
            outcome = await self._carry_out(request, priority)
            if isinstance(outcome, Done):
                if self._logged and isinstance(request, REPEATED):
                    self._logged.pop(_log_key(request), None)
            elif not self._is_logged(request, outcome.reason):
                self._log_failure(request, outcome)
            if isinstance(request, BindPod):
                self.bindings -= 1
            self._finished(effect.ticket, outcome)
            pod.in_progress = None
            if pod.effects:
                self._make_ready(pod)
            else:
                del self._pods[request.pod.uid]

    def _carry_out(self, request: Request, priority: Priority) -> Awaitable[Outcome]:
        if isinstance(request, BindPod) and request.extender and self._extenders is not None:
            return self._bind_by_extender(request, self._extenders)
        return carry_out(self._client, request, self._fence, priority)

    async def _bind_by_extender(self, request: BindPod, extenders: HttpExtenders) -> Outcome:
        if not self._fence():
            return Failed(api_errors.NOT_LEADER)
        return await extenders.bind(request)

    def _is_logged(self, request: Request, reason: str) -> bool:
        """Whether the last failure of a repeated request was the same."""
        if not isinstance(request, REPEATED):
            return False
        if len(self._logged) >= MOST_REPEATED:
            self._logged.clear()
        key = _log_key(request)
        last, self._logged[key] = self._logged.get(key), reason
        return last == reason

    def _log_failure(self, request: Request, outcome: Failed | Unknown) -> None:
        is_missing = isinstance(outcome, Failed) and outcome.missing
        if _OUTSTANDING.get(type(request)) == CONDITIONS and not is_missing:
            self.lost_conditions += 1
        self._log.warning(
            "not done" if isinstance(outcome, Failed) else "nobody knows whether it was done",
            request=type(request).__name__,
            pod=request.pod.key,
            why=outcome.reason,
        )


def _log_key(request: ReleaseResourceClaim | DeleteResourceClaim) -> tuple[str, str]:
    return type(request).__name__, request.uid


def _priority(request: Request) -> Priority:
    if isinstance(request, PatchPodGroupStatus):
        return Priority.REPORT
    if not isinstance(request, PatchPodStatus):
        return Priority.URGENT
    if request.condition is not None and request.condition.type != POD_SCHEDULED:
        return Priority.URGENT  # DisruptionTarget of a victim, which is deleted next.
    return Priority.REPORT if request.nominated_node_name is UNSET else Priority.NOMINATION


def _is_superseded(waiting: Request, newer: Request) -> bool:
    """Whether a request that waits is pointless because of a newer one: the pod is bound."""
    return (
        isinstance(newer, BindPod)
        and isinstance(waiting, PatchPodStatus)
        and (waiting.condition is None or waiting.condition.type == POD_SCHEDULED)
    )


def _merged(waiting: Effect, newer: Effect) -> Effect | None:
    """Two status patches as one; None if they are something else, or set two conditions."""
    old, new = waiting.request, newer.request
    if not (isinstance(old, PatchPodStatus) and isinstance(new, PatchPodStatus)):
        return None
    if old.condition and new.condition and old.condition.type != new.condition.type:
        return None
    nominated = new.nominated_node_name
    special = new.extended_resource_claim_status or old.extended_resource_claim_status
    both = structs.replace(
        new,
        condition=new.condition or old.condition,
        extended_resource_claim_status=special,
        nominated_node_name=old.nominated_node_name if nominated is UNSET else nominated,
    )
    return Effect(newer.ticket, both)


async def carry_out(
    client: Client, request: Request, fence: Fence, priority: Priority = Priority.URGENT
) -> Outcome:
    """Make the API call for a request; every call that changes something checks the fence."""
    if isinstance(request, LookUpPod):
        return await _look_up(client, request.pod)
    if isinstance(request, ClaimRequest):
        return await _write_claim(client, request, fence)
    method, path, body, options = _call(request, client.clock)
    content = msgspec.json.encode(body)
    try:
        await client.request(method, path, content, fence=fence, priority=priority, **options)
    except ApiError as error:
        return _outcome(error)
    return Done()


async def _write_claim(client: Client, request: ClaimRequest, fence: Fence) -> Outcome:
    try:
        return Done(claim=await claim_writer.write(client, request, fence))
    except ClaimChangedError as error:
        return Failed(str(error))
    except ApiError as error:
        return _outcome(error)


def _call(request: Request, clock: Clock) -> tuple[str, str, dict[str, Any], dict[str, Any]]:
    """The method, path, body and options of the API call for a request that changes something."""
    ref = request.pod
    path = paths.pod(ref.namespace, ref.name)
    repeated = {"tries": REPEATED_TRIES, "repeatable": True}
    match request:
        case BindPod():
            body = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": ref.name, "namespace": ref.namespace, "uid": ref.uid},
                "target": {"kind": "Node", "name": request.node},
            }
            # The server gives up when we do: it must not bind the pod after it was looked up.
            path = f"{path}/binding?timeout={BIND_SECONDS}s"
            return "POST", path, body, {"seconds": BIND_SECONDS}
        case PatchPodStatus():
            # With the UID, the server refuses to patch another pod of the same name.
            body = {"metadata": {"uid": ref.uid}, "status": _status(request, clock)}
            options = {**repeated, "content_type": STRATEGIC_MERGE_PATCH}
            return "PATCH", f"{path}/status", body, options
        case PatchPodGroupStatus(condition=condition):
            path = paths.pod_group(ref.namespace, request.name)
            shown = {k: v for k, v in _condition(condition, clock).items() if k != "lastProbeTime"}
            body = {"metadata": {"uid": request.uid}, "status": {"conditions": [shown]}}
            options = {**repeated, "content_type": STRATEGIC_MERGE_PATCH}
            return "PATCH", f"{path}/status", body, options
        case DeletePod():
            body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": ref.uid}}
            return "DELETE", path, body, repeated
        case PatchVolume():
            spec = {"claimRef": msgspec.to_builtins(request.claim)}
            body = {"metadata": _unchanged(request), "spec": spec}
            return "PATCH", paths.volume(request.name), body, {"content_type": MERGE_PATCH}
        case PatchClaim():
            path = paths.claim(request.namespace, request.name)
            body = {"metadata": _unchanged(request)}
            return "PATCH", path, body, {"content_type": MERGE_PATCH}
        case _:
            raise AssertionError(f"{type(request).__name__} is no API call that changes something")


def _status(request: PatchPodStatus, clock: Clock) -> dict[str, Any]:
    status: dict[str, Any] = {}
    if request.condition is not None:
        status["conditions"] = [_condition(request.condition, clock)]
    if request.nominated_node_name is not UNSET:
        status["nominatedNodeName"] = request.nominated_node_name or None
    if (special := request.extended_resource_claim_status) is not None:
        status["extendedResourceClaimStatus"] = msgspec.to_builtins(special)
    return status


def _unchanged(request: PatchVolume | PatchClaim) -> dict[str, Any]:
    """Metadata of a patch that is refused if the UID or the resourceVersion has changed."""
    version = request.version
    return {"uid": request.uid, "resourceVersion": version, "annotations": request.annotations}


async def _look_up(client: Client, ref: PodRef) -> Outcome:
    try:
        body = await client.get(paths.pod(ref.namespace, ref.name), tries=REPEATED_TRIES)
        pod = wire.decode_object(body, KINDS["Pod"], _log)
    except (ApiError, wire.UnreadableError) as error:
        if isinstance(error, ApiStatusError) and error.code == api_errors.NOT_FOUND:
            return Done(None)
        return Failed(str(error))
    return Done(pod if pod is not None and pod.uid == ref.uid else None)


def _outcome(error: ApiError) -> Outcome:
    match error:
        case ApiStatusError() if error.is_final:
            # A conflict is another pod of the same name, or one that is bound: the watch tells.
            return Failed(str(error), missing=error.code == api_errors.NOT_FOUND)
        case ApiStatusError() | NoResponseError():
            return Unknown(str(error))
        case _:
            return Failed(str(error))


def _condition(condition: Condition, clock: Clock) -> dict[str, Any]:
    return {
        "type": condition.type,
        "status": condition.status,
        "lastProbeTime": None,
        "lastTransitionTime": condition.last_transition_time or clock.second(),
        "reason": condition.reason,
        "message": condition.message,
        "observedGeneration": condition.observed_generation,
    }
