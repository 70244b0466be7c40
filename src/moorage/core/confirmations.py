"""Confirmations: look up pods when it is uncertain whether they are bound.

    pod                                   lookup shows            then
    outcome of its binding is unknown     it is on its node       the binding cycle is done
                                          it is not               the binding cycle fails
    binding done, but the pod was not     it is on a node         as if it was observed there
    observed on its node in time          it is not               it is forgotten and queued again
    either of them                        nothing (an error)      it is looked up again soon

Until then the pod stays assumed.
"""

from moorage.api.pod import Pod
from moorage.api.server_requests import LookUpPod, PodRef
from moorage.core import updates
from moorage.core.bindings import Bindings
from moorage.core.effects import Done, Failed, Outcome, Purpose
from moorage.core.event_handlers import EventHandlers
from moorage.core.journal import Expired
from moorage.core.observations import Updated
from moorage.core.state import SchedulerState

RETRY_SECONDS = 1.0


class Confirmations:
    """See the module."""

    def __init__(
        self,
        state: SchedulerState,
        bindings: Bindings,
        handlers: EventHandlers,
        confirm_seconds: float,
    ) -> None:
        self._state = state
        self._cache = state.cache
        self._lookups = state.lookups
        self._bindings = bindings
        self._handlers = handlers
        self._confirm_seconds = confirm_seconds

    def advance(self, now: float) -> None:
        """Start the lookups that are due."""
        for cached in self._cache.unconfirmed(now, self._confirm_seconds):
            self._lookups.schedule(cached.pod.uid, now)
        for uid in self._lookups.start_due(now):
            # A binding cycle has to end even if its pod was deleted meanwhile.
            uncertain = self._bindings.get(uid) or self._cache.get(uid)
            if uncertain is None:
                self._lookups.finish(uid)
            else:
                request = LookUpPod(PodRef.of(uncertain.pod))
                self._state.outbox.add(request, Purpose.LOOK_UP, uid)

    @property
    def deadline(self) -> float | None:
        """When the next lookup is due; None if none is, as things stand."""
        moments = [] if self._lookups.deadline is None else [self._lookups.deadline]
        for cached in self._cache.unconfirmed(float("inf")):
            if cached.bound_at is not None and cached.pod.uid not in self._lookups:
                moments.append(cached.bound_at + self._confirm_seconds)
                break  # They come oldest first.
        return min(moments, default=None)

    def completed(self, uid: str, outcome: Outcome, now: float) -> None:
        """Take the outcome of a lookup."""
        self._lookups.finish(uid)
        binding = self._bindings.get(uid)
        if not isinstance(outcome, Done):
            if binding is not None or self._cache.is_assumed(uid):
                self._lookups.schedule(uid, now + RETRY_SECONDS)
            return
        pod = outcome.pod if outcome.pod is not None and outcome.pod.uid == uid else None
        if pod is not None and pod.node_name:
            # First, so that a pod that another scheduler has bound is not queued again.
            self._handlers.observe(Updated(pod), now)
        if binding is not None:
            bound = pod is not None and pod.node_name == binding.node
            self._bindings.completed(uid, Done() if bound else Failed(_not_bound(pod)), now)
        elif self._cache.is_assumed(uid) and not (pod and pod.node_name):
            self._expire(uid, now)

    def _expire(self, uid: str, now: float) -> None:
        """Forget a pod whose binding was reported done but does not exist, and queue it again."""
        cached = self._cache.forget(uid)
        assert cached is not None
        pod, queue = cached.pod, self._state.queue
        self._state.journal.add(Expired(at=now, pod=pod.key, uid=uid, node=cached.node))
        queue.move_all(updates.ASSIGNED_POD_DELETE, pod, None, now)
        current = self._state.current(pod)
        if current is not None and not current.node_name:
            queue.add(current, now)


def _not_bound(pod: Pod | None) -> str:
    if pod is None:
        return "the pod is gone"
    return f"the pod is bound to {pod.node_name}" if pod.node_name else "the pod is not bound"
