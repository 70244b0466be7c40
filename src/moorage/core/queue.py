"""SchedulingQueue: the pods that wait for a node, and those that are being tried.

    add ──> gated <──> active ──pop──> in flight ──done──> (bound, or gone)
                          ^                │ return_unschedulable
                          │                v
                          ├──────────── backoff   an error, or an event meanwhile may help
                          │                ^
                          └───────── unschedulable   waits for an event that may help

`queue_states.py` has all states and transitions. Identity in the queue is namespace/name, in flight
the UID: a pod may be recreated under its name while the former pod is still being tried.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec import structs

from moorage.api.pod import Pod
from moorage.core import updates
from moorage.core.backoff import BackoffQueue
from moorage.core.in_flight import InFlightEvent, InFlightPods
from moorage.core.journal import Journal, Popped
from moorage.core.nominator import Nominator
from moorage.core.queue_states import (
    ACTIVE,
    BACKOFF,
    FINISH,
    GATED,
    IN_FLIGHT,
    QUEUE_TRANSITIONS,
    UNSCHEDULABLE,
)
from moorage.core.queued_pod import QueuedPod
from moorage.core.requeueing import AFTER_BACKOFF, SKIP, QueueingStrategy, Requeueing
from moorage.core.sub_queues import QueueProfile, SubQueues
from moorage.errors import InvariantError
from moorage.framework.events import WILDCARD, ClusterEvent
from moorage.nodes.template import PodTemplate

POD_ADDED = updates.UNSCHEDULABLE_POD_ADD.label
POD_UPDATED = updates.UNSCHEDULABLE_POD_UPDATE.label
FORCE_ACTIVATE = updates.FORCE_ACTIVATE.label

# Pods that have waited too long are flushed at whole multiples of this.
FLUSH_EVERY_SECONDS = 30


class SchedulingQueue:
    """See the module."""

    def __init__(
        self,
        profiles: Mapping[str, QueueProfile],
        *,
        journal: Journal,
        nominator: Nominator | None = None,
        initial_backoff_seconds: float = 1,
        max_backoff_seconds: float = 10,
        max_unschedulable_seconds: float = 300,
    ) -> None:
        self._journal = journal
        self._max_unschedulable_seconds = max_unschedulable_seconds
        self._backoff = BackoffQueue(initial_backoff_seconds, max_backoff_seconds)
        self._requeueing = Requeueing({name: p.events for name, p in profiles.items()})
        self._queues = SubQueues(profiles, self._backoff, journal, self._requeueing.aliases)
        self._unschedulable = self._queues.unschedulable
        self._in_flight = InFlightPods()
        self.nominator = Nominator() if nominator is None else nominator
        # The number of attempts so far.
        self.scheduling_cycle = 0

    # Observations

    def add(self, pod: Pod, now: float, template: PodTemplate | None = None) -> None:
        """Add a pod without a node."""
        if pod.uid in self._in_flight:
            # A late or repeated event. A second entry would be tried in parallel with the first;
            # instead the pod in flight is tried again if its attempt fails.
            self._in_flight.record(updates.FORCE_ACTIVATE, None, pod)
            return
        self._drop_namesake(pod)
        self._begin(pod, POD_ADDED, now, template)

    def update(self, old: Pod, new: Pod, now: float) -> None:
        """Update a pod without a node."""
        uid = new.metadata.uid
        if uid in self._in_flight.entries:
            for event in updates.pod_update(old, new):
                self._in_flight.record(event, old, new)
            return
        entry = self._queues.find(new.key)
        if entry is not None and entry.uid != uid:
            self.delete(entry.pod)  # The new pod of that name proves that it is gone.
            entry = None
        if entry is None:
            self._begin(new, POD_UPDATED, now)
            return
        scheduler_name = entry.pod.spec.scheduler_name
        entry.update(new)
        self.nominator.update(old, new)
        if entry.state in (UNSCHEDULABLE, GATED):
            if scheduler_name != new.spec.scheduler_name:
                self._unschedulable.put(entry)  # Other plugins decide about it now.
            self._reconsider(entry, old, now)
        else:
            self._queues.reorder(entry)

    def delete(self, pod: Pod) -> None:
        """Remove a pod that is gone or has a node; one in flight stays there until it is done."""
        self.nominator.delete(pod)
        # By UID: a late event about a former pod must not remove the present pod of that name.
        self._queues.delete(pod.metadata.uid)

    def move_all(
        self,
        event: ClusterEvent,
        old: Any,
        new: Any,
        now: float,
        only: Callable[[Pod], bool] | None = None,
    ) -> None:
        """Requeue the unschedulable pods that an event may help, or `only` some of them."""
        unschedulable, in_flight = self._unschedulable, self._in_flight
        if not (unschedulable.entries or in_flight.entries):  # As `ignores_events`.
            return
        waiting: list[QueuedPod] = []
        if event.resource == WILDCARD and event.is_wildcard:
            waiting = list(unschedulable)
        else:
            interested = self._requeueing.interested(event)
            if not interested:
                return
            if unschedulable.has_any(interested):
                concerned = self._requeueing.concerned(event, old, new)
                waiting = unschedulable.waiting_for(interested, concerned)
            elif not in_flight.entries:
                return  # The usual case: no plugin that rejected a pod registered for the event.
        if only is not None:
            waiting = [entry for entry in waiting if only(entry.pod)]
        self._move(waiting, event, old, new, now)

    @property
    def ignores_events(self) -> bool:
        """Whether `move_all` does nothing: there is no pod that waits, or is tried."""
        return not (self._unschedulable.entries or self._in_flight.entries)

    def move_some(
        self, pods: Iterable[Pod], event: ClusterEvent, old: Any, new: Any, now: float
    ) -> None:
        """The same as move_all for an event that concerns these pods only."""
        found = self._unschedulable.entries
        waiting = [entry for pod in pods if (entry := found.get(pod.key)) is not None]
        if waiting or self._in_flight.entries:
            self._move(waiting, event, old, new, now)

    def nomination_ended(self, pod: Pod, node: str, now: float) -> None:
        """Requeue pods that may use a node which is not nominated for a pod any more."""
        # The pod's own status may never have shown the nomination.
        status = structs.replace(pod.status, nominated_node_name=node)
        nominated = structs.replace(pod, status=status)
        self.move_all(
            updates.ASSIGNED_POD_DELETE,
            nominated,
            None,
            now,
            only=lambda other: other.priority <= pod.priority and other.uid != pod.uid,
        )

    def placed(self, pod: Pod, nominated: str, node: str, now: float) -> None:
        """A pod has a node: another one, nominated for it before, is free for other pods."""
        if nominated and nominated != node:
            self.nomination_ended(pod, nominated, now)

    # Attempts

    def pop(self, now: float) -> QueuedPod | None:
        """Take the next pod to try, which is in flight then; None if there is none."""
        entry = self._queues.pop(now)
        if entry is not None:
            self._fly(entry, now)
        return entry

    def pop_pod(self, pod: Pod, now: float) -> QueuedPod | None:
        """Take a pod, whatever it waits for; None if it is not queued, or gated."""
        self.activate([pod], now)
        entry = self._queues.find(pod.key)
        if entry is None or entry.uid != pod.uid or entry.state != ACTIVE:
            return None
        self._queues.take(entry)
        self._fly(entry, now)
        return entry

    def _fly(self, entry: QueuedPod, now: float) -> None:
        entry.attempts += 1
        self.scheduling_cycle += 1
        self._in_flight.add(entry)
        self._journal.add(Popped(at=now, pod=entry.key, uid=entry.uid, attempt=entry.attempts))

    def done(self, uid: str) -> None:
        """A pod is not in flight any more: permitted on its node, returned, or gone."""
        entry = self._in_flight.done(uid)
        if entry is not None and entry.state == IN_FLIGHT:
            entry.state = QUEUE_TRANSITIONS[IN_FLIGHT, FINISH]

    def return_unschedulable(self, entry: QueuedPod, now: float) -> bool:
        """Return a pod after a failed attempt; its entry names the plugins that rejected it.

        False if it was done before, and since then the pod, or a new one under its name, was queued
        again: that entry stays as it is.
        """
        flying = self._in_flight.get(entry.uid)
        if flying is not None and flying is not entry:
            return False
        is_free = self._queues.find(entry.key) is None
        if is_free:
            entry.failed(now)
            strategy = self._strategy(entry)
            self._requeue(entry, strategy, updates.SCHEDULE_ATTEMPT_FAILURE, now)
        self.done(entry.uid)
        return is_free

    def activate(self, pods: Iterable[Pod], now: float) -> None:
        """Make pods active, whatever they wait for; pre_enqueue plugins may still gate them."""
        for pod in pods:
            entry = self._queues.find(pod.key)
            if entry is None or entry.uid != pod.uid:
                if pod.uid in self._in_flight:
                    self._in_flight.record(updates.FORCE_ACTIVATE, None, pod)
            elif entry.state in (UNSCHEDULABLE, GATED):
                self._queues.to_active(entry, FORCE_ACTIVATE, now)
            elif entry.state == BACKOFF:
                self._queues.enter_active(entry, FORCE_ACTIVATE, now)

    # Time

    def advance(self, now: float) -> None:
        """Do what is due: backoffs that are over, pods that have waited too long."""
        while (entry := self._backoff.pop_over(now)) is not None:
            # pre_enqueue plugins were called when the backoff began.
            self._queues.enter_active(entry, updates.BACKOFF_COMPLETE, now)
        tick = now // FLUSH_EVERY_SECONDS * FLUSH_EVERY_SECONDS
        self.flush_unschedulable(tick, now)

    def deadline(self, now: float) -> float | None:
        """When advance will next have something to do; None if never, as things stand."""
        moments = [] if self._backoff.deadline is None else [self._backoff.deadline]
        oldest = self._unschedulable.oldest
        if oldest is not None:
            flush_at = oldest.unschedulable_since + self._max_unschedulable_seconds
            moments.append((flush_at // FLUSH_EVERY_SECONDS + 1) * FLUSH_EVERY_SECONDS)
        return max(now, min(moments)) if moments else None

    def flush_unschedulable(self, until: float, now: float) -> None:
        """Requeue pods that have waited too long at a time, in case that a hint was wrong."""
        overdue = self._unschedulable.waiting_longer(self._max_unschedulable_seconds, until)
        for entry in overdue:
            entry.was_flushed = True
            entry.flushed_at = now
        if overdue:
            self._move(overdue, updates.UNSCHEDULABLE_TIMEOUT, None, None, now)

    # Reading

    @property
    def has_work(self) -> bool:
        """Whether pop would return a pod."""
        return bool(self._queues.active.live or self._backoff.rejected.live)

    @property
    def hint_errors(self) -> list[str]:
        """The latest errors of hint functions."""
        return list(self._requeueing.hint_errors)

    def nominated_pods(self, node: str) -> list[Pod]:
        """The nominated pods of a node.

        A pod that is not queued, most often because it is in flight, is only a name here, without
        requests and of priority 0, as in kube-scheduler.
        """
        find = self._queues.find
        return [
            pod if (entry := find(pod.key)) is None else entry.pod
            for pod in self.nominator.on(node)
        ]

    def find(self, key: str) -> QueuedPod | None:
        """The entry of a pod that waits."""
        return self._queues.find(key)

    def where(self, uid_or_key: str) -> str | None:
        """The state of a pod; for a name, of the pod that waits, else of the one in flight."""
        state = self._queues.where(uid_or_key)
        if state is not None:
            return state
        is_flying = uid_or_key in self._in_flight or any(
            entry.key == uid_or_key for entry in self._in_flight
        )
        return IN_FLIGHT if is_flying else None

    def counts(self) -> dict[str, int]:
        """How many pods are in each state."""
        return {**self._queues.counts(), IN_FLIGHT: len(self._in_flight)}

    def dump(self) -> dict[str, list[QueuedPod]]:
        """The pods in each state, in the order in which they will leave, or came."""
        return {**self._queues.dump(), IN_FLIGHT: list(self._in_flight)}

    def waiting_by_plugin(self) -> Iterator[tuple[str, Collection[QueuedPod]]]:
        """The unschedulable pods, under each plugin that rejected or gates them."""
        return self._unschedulable.by_plugin()

    def timeline(self) -> list[QueuedPod | InFlightEvent]:
        """Pods in flight and the events kept for them, in order."""
        return self._in_flight.timeline()

    def check(self) -> None:
        """Raise InvariantError if a pod is in two queues, or an index is wrong."""
        self._queues.check()
        self._in_flight.check()
        for entry in self._in_flight:
            state = self._queues.where(entry.uid)
            if state is not None or entry.state != IN_FLIGHT:
                raise InvariantError(f"{entry.key} is in flight and {state or entry.state}")

    def _begin(self, pod: Pod, label: str, now: float, template: PodTemplate | None = None) -> None:
        if self._queues.to_active(QueuedPod(pod, now, template), label, now):
            self.nominator.follow(pod)

    def _drop_namesake(self, pod: Pod) -> None:
        """Remove another pod of that name: the new one proves that it is gone."""
        entry = self._queues.find(pod.key)
        if entry is not None and entry.uid != pod.uid:
            self.delete(entry.pod)

    def _reconsider(self, entry: QueuedPod, old: Pod, now: float) -> None:
        """Requeue an unschedulable or gated pod if one of its own changes may help."""
        for event in updates.pod_update(old, entry.pod):
            strategy = self._requeueing.strategy(entry, event, old, entry.pod)
            if strategy is not SKIP and self._requeue(entry, strategy, event.label, now):
                break

    def _move(
        self, waiting: Iterable[QueuedPod], event: ClusterEvent, old: Any, new: Any, now: float
    ) -> None:
        """Requeue the pods that an event may help, and keep it for the pods in flight."""
        for entry in waiting:
            strategy = self._requeueing.strategy(entry, event, old, new)
            if strategy is not SKIP:
                self._requeue(entry, strategy, event.label, now)
        self._in_flight.record(event, old, new)

    def _requeue(
        self, entry: QueuedPod, strategy: QueueingStrategy, label: str, now: float
    ) -> bool:
        """Move a pod as the strategy says; returns whether it is active or backs off."""
        if strategy is SKIP:
            self._queues.to_unschedulable(entry, label, now)
            return False
        if strategy is AFTER_BACKOFF and self._backoff.is_backing_off(entry, now):
            return self._queues.to_backoff(entry, label, now)
        return self._queues.to_active(entry, label, now)

    def _strategy(self, entry: QueuedPod) -> QueueingStrategy:
        """What to do with a returned pod, given the events during its attempt."""
        missed = self._in_flight.events_since_pop(entry.uid)
        if missed is None or not entry.has_rejectors:
            return AFTER_BACKOFF
        return self._requeueing.best(entry, missed)
