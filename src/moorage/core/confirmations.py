"""Confirmations: pods of which nobody is sure whether they are bound are looked up.

    the pod                              the world says          then
    its binding's outcome is unknown     it is on its node       the binding goes on as done
                                         it is not               the binding goes on as failed
    reported bound, and the world        it is on a node         it is there, as if seen
    does not show it in time             it is not               its room is given back: start over
    either of them                       nothing, for now        it is asked again soon

Its room is not given away before that is known.
"""

from moorage.api.pod import Pod
from moorage.core.bindings import Bindings
from moorage.core.cache import Cache
from moorage.core.effects import Done, Failed, Outcome
from moorage.core.intake import Intake
from moorage.core.journal import Expired, Journal
from moorage.core.lookups import RETRY_SECONDS, Lookups
from moorage.core.observations import Updated
from moorage.core.outbox import Outbox, Purpose
from moorage.core.queue import SchedulingQueue
from moorage.framework import events
from moorage.framework.effects import LookUpPod, PodRef


class Confirmations:
    """See the module."""

    def __init__(
        self,
        confirm_seconds: float,
        bindings: Bindings,
        lookups: Lookups,
        intake: Intake,
        cache: Cache,
        queue: SchedulingQueue,
        outbox: Outbox,
        journal: Journal,
    ) -> None:
        self._confirm_seconds = confirm_seconds
        self._bindings = bindings
        self._lookups = lookups
        self._intake = intake
        self._cache = cache
        self._queue = queue
        self._outbox = outbox
        self._journal = journal

    def advance(self, now: float) -> None:
        """Ask about those that are to be looked up by now."""
        for cached in self._cache.unconfirmed(now, self._confirm_seconds):
            self._lookups.want(cached.pod.uid, now)
        for uid in self._lookups.due(now):
            # A binding has to come to an end even if its pod was deleted meanwhile.
            unsure = self._bindings.get(uid) or self._cache.get(uid)
            if unsure is None:
                self._lookups.answered(uid)
            else:
                self._outbox.ask(LookUpPod(PodRef.of(unsure.pod)), Purpose.LOOK_UP, uid)

    @property
    def deadline(self) -> float | None:
        """When the next is to be looked up; None if nobody is, as things stand."""
        moments = [] if self._lookups.deadline is None else [self._lookups.deadline]
        for cached in self._cache.unconfirmed(float("inf")):
            if cached.bound_at is not None and not self._lookups.knows(cached.pod.uid):
                moments.append(cached.bound_at + self._confirm_seconds)
                break  # They come oldest first.
        return min(moments, default=None)

    def answered(self, uid: str, outcome: Outcome, now: float) -> None:
        """A look-up came to an end."""
        self._lookups.answered(uid)
        binding = self._bindings.get(uid)
        if not isinstance(outcome, Done):
            if binding is not None or self._cache.is_assumed(uid):
                self._lookups.want(uid, now + RETRY_SECONDS)
            return
        pod = outcome.pod if outcome.pod is not None and outcome.pod.uid == uid else None
        if pod is not None and pod.node_name:
            # First of all, lest a pod that another has bound is put back into the queue.
            self._intake.observe(Updated(pod), now)
        if binding is not None:
            bound = pod is not None and pod.node_name == binding.node
            self._bindings.answered(uid, Done() if bound else Failed(_not_bound(pod)), now)
        elif self._cache.is_assumed(uid) and not (pod and pod.node_name):
            self._expire(uid, now)

    def _expire(self, uid: str, now: float) -> None:
        """A binding was reported done, yet the world does not have it: start over."""
        cached = self._cache.forget(uid)
        assert cached is not None
        pod = cached.pod
        self._journal.add(Expired(at=now, pod=pod.key, uid=uid, node=cached.node))
        self._queue.move_all(events.ASSIGNED_POD_DELETE, pod, None, now)
        known = self._intake.pods.get(pod.key)
        if known is not None and known.uid == uid and not known.node_name:
            self._queue.add(known, now)


def _not_bound(pod: Pod | None) -> str:
    if pod is None:
        return "the pod is gone"
    return f"the pod is bound to {pod.node_name}" if pod.node_name else "the pod is not bound"
