"""SchedulingQueue: active, backoff, unschedulable, gated, in flight; a pod is in one at a time.

    add ──> gated <──> active ──pop──> in flight ──done──> (bound, or gone)
                          ^                │ return_unschedulable
                          │                v
                          ├──────────── backoff   a change came meanwhile, or the attempt erred
                          │                ^
                          └───────── unschedulable   waits for a change that cures the refusal

Identity in the queue is namespace/name, in flight the UID: a pod may be recreated under its name
while its former self is still being tried. Which change cures what is not known here.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec import structs

from moorage.api.pod import Pod
from moorage.core.backoff import Backoff
from moorage.core.in_flight import InFlight, Missed
from moorage.core.journal import Journal, Popped
from moorage.core.nominator import Nominator
from moorage.core.places import Places, QueueProfile
from moorage.core.queued_pod import QueuedPod
from moorage.core.requeueing import Requeueing, Strategy
from moorage.errors import InvariantError
from moorage.framework import events
from moorage.framework.events import ClusterEvent
from moorage.framework.template import PodTemplate

__all__ = ["Missed", "QueueProfile", "QueuedPod", "SchedulingQueue"]

IN_FLIGHT = "in_flight"

POD_ADDED = events.UNSCHEDULABLE_POD_ADD.label
POD_UPDATED = events.UNSCHEDULABLE_POD_UPDATE.label
FORCE_ACTIVATE = events.FORCE_ACTIVATE.label

# Pods that have rested too long are looked for at whole multiples of this.
FLUSH_EVERY_SECONDS = 30


class SchedulingQueue:
    """The pods that wait for a node, and those that are being tried."""

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
        self._backoff = Backoff(initial_backoff_seconds, max_backoff_seconds)
        self._places = Places(profiles, self._backoff, journal)
        self._pool = self._places.pool
        self._in_flight = InFlight()
        self._requeueing = Requeueing({name: p.hints for name, p in profiles.items()})
        self.nominator = Nominator() if nominator is None else nominator
        # How many attempts have begun.
        self.scheduling_cycle = 0

    # What the world tells.

    def add(self, pod: Pod, now: float, template: PodTemplate | None = None) -> None:
        """A pod without a node has come."""
        if pod.uid in self._in_flight:
            # News that came late or twice. A second copy would be tried beside the first; instead
            # the one in flight is tried again in case that it comes back.
            self._in_flight.record(events.FORCE_ACTIVATE, None, pod)
            return
        self._drop_namesake(pod)
        self._begin(pod, POD_ADDED, now, template)

    def update(self, old: Pod, new: Pod, now: float) -> None:
        """A pod without a node has changed."""
        if new.uid in self._in_flight:
            for event in events.pod_update(old, new):
                self._in_flight.record(event, old, new)
            return
        self._drop_namesake(new)
        entry = self._places.find(new.key)
        if entry is None:
            self._begin(new, POD_UPDATED, now)
            return
        entry.become(new)
        self.nominator.update(old, new)
        if entry.key in self._pool:
            if old.spec.scheduler_name != new.spec.scheduler_name:
                self._pool.put(entry)  # Others speak for it now.
            self._reconsider(entry, old, now)
        else:
            self._places.reorder(entry)

    def delete(self, pod: Pod) -> None:
        """A pod is gone, or has got a node; one in flight stays there until it is done."""
        self.nominator.delete(pod)
        # By its UID: a late word about a former pod of a name says nothing about the present one.
        self._places.discard_pod(pod.metadata.uid)

    def move_all(
        self,
        event: ClusterEvent,
        old: Any,
        new: Any,
        now: float,
        only: Callable[[Pod], bool] | None = None,
    ) -> None:
        """Something changed: queue the refused pods that it may help, or `only` some of them."""
        interested = self._requeueing.interested(event)
        if event.is_wildcard:
            waiting = list(self._pool)
        elif interested:
            waiting = self._pool.waiting_for(interested)
        else:
            return
        if only is not None:
            waiting = [entry for entry in waiting if only(entry.pod)]
        self._move(waiting, event, old, new, now)

    def promise_ended(self, pod: Pod, node: str, now: float) -> None:
        """What a pod was promised is free for others, though its status may never have shown it."""
        status = structs.replace(pod.status, nominated_node_name=node)
        promised = structs.replace(pod, status=status)
        self.move_all(
            events.ASSIGNED_POD_DELETE,
            promised,
            None,
            now,
            only=lambda other: other.priority <= pod.priority and other.uid != pod.uid,
        )

    # What the scheduler does.

    def pop(self, now: float) -> QueuedPod | None:
        """The next pod to try, now in flight; None if there is nothing to do."""
        entry = self._places.pop(now)
        if entry is None:
            return None
        entry.attempts += 1
        self.scheduling_cycle += 1
        self._in_flight.add(entry)
        self._journal.add(Popped(at=now, pod=entry.key, uid=entry.uid, attempt=entry.attempts))
        return entry

    def done(self, uid: str) -> None:
        """A pod is not in flight any more: bound, or given up."""
        self._in_flight.done(uid)

    def return_unschedulable(self, entry: QueuedPod, now: float) -> bool:
        """A pod comes back from a failed attempt, its entry saying who refused it.

        False if it was done before, and the world has told of it again or of a new pod under its
        name: what is queued or in flight since then is left as it is.
        """
        flying = self._in_flight.get(entry.uid)
        if flying is not None and flying is not entry:
            return False
        is_free = self._places.find(entry.key) is None
        if is_free:
            entry.failed(now)
            strategy = self._strategy(entry)
            self._place(entry, strategy, events.SCHEDULE_ATTEMPT_FAILURE, now)
        self.done(entry.uid)
        return is_free

    def activate(self, pods: Iterable[Pod], now: float) -> None:
        """Try these pods soon, whatever they wait for; gates still hold."""
        for pod in pods:
            entry = self._places.find(pod.key)
            if entry is None or entry.uid != pod.uid:
                if pod.uid in self._in_flight:
                    self._in_flight.record(events.FORCE_ACTIVATE, None, pod)
            elif entry.key in self._pool:
                self._places.to_active(entry, FORCE_ACTIVATE, now)
            elif entry.key in self._backoff:
                self._places.enter_active(entry, FORCE_ACTIVATE, now)

    # What time does.

    def advance(self, now: float) -> None:
        """Do what is due: back-offs that are over, pods that have rested too long."""
        self.flush_backoff(now)
        tick = now // FLUSH_EVERY_SECONDS * FLUSH_EVERY_SECONDS
        self._flush(self._pool.resting_longer(self._max_unschedulable_seconds, tick), now)

    def deadline(self, now: float) -> float | None:
        """When advance will next have something to do; None if never, as things stand."""
        moments = [] if self._backoff.deadline is None else [self._backoff.deadline]
        oldest = self._pool.oldest
        if oldest is not None:
            rested_at = oldest.resting_since + self._max_unschedulable_seconds
            moments.append((rested_at // FLUSH_EVERY_SECONDS + 1) * FLUSH_EVERY_SECONDS)
        return max(now, min(moments)) if moments else None

    def flush_backoff(self, now: float) -> None:
        """Pods whose back-off is over become active; gates were asked when they entered."""
        while (entry := self._backoff.pop_over(now)) is not None:
            self._places.enter_active(entry, events.BACKOFF_COMPLETE, now)

    def flush_unschedulable(self, now: float) -> None:
        """Pods that have rested too long are tried again, in case that a hint was wrong."""
        self._flush(self._pool.resting_longer(self._max_unschedulable_seconds, now), now)

    # What others may ask.

    @property
    def has_work(self) -> bool:
        """Whether pop would return a pod."""
        return bool(self._places.active) or bool(self._backoff.refused)

    @property
    def hint_errors(self) -> list[str]:
        """The latest complaints about hint functions that raised."""
        return list(self._requeueing.hint_errors)

    def nominated_pods(self, node: str) -> list[Pod]:
        """The pods that a node is promised to.

        One that is not queued, most often because it is in flight, is a mere name: without
        requests and of priority 0, as kube-scheduler has it.
        """
        pods = []
        for promised in self.nominator.on(node):
            entry = self._places.find(promised.key)
            pods.append(promised.stub() if entry is None else entry.pod)
        return pods

    def where(self, uid_or_key: str) -> str | None:
        """Where a pod is; for a name the pod that waits, else the one in flight."""
        place = self._places.where(uid_or_key)
        if place is not None:
            return place
        is_flying = uid_or_key in self._in_flight or any(
            entry.key == uid_or_key for entry in self._in_flight
        )
        return IN_FLIGHT if is_flying else None

    def counts(self) -> dict[str, int]:
        """How many pods are where."""
        return {**self._places.counts(), IN_FLIGHT: len(self._in_flight)}

    def dump(self) -> dict[str, list[QueuedPod]]:
        """All pods, in the order in which they will leave their place, or came."""
        return {**self._places.dump(), IN_FLIGHT: list(self._in_flight)}

    def waiting_by_plugin(self) -> Iterator[tuple[str, Collection[QueuedPod]]]:
        """The pods that wait for a change, under each plugin that refused or holds them."""
        return self._pool.by_plugin()

    def timeline(self) -> list[QueuedPod | Missed]:
        """Pods in flight and the changes kept for them, in order."""
        return self._in_flight.timeline()

    def check(self) -> None:
        """Raise InvariantError if a pod is in two places, or anything here is out of step."""
        self._places.check()
        self._in_flight.check()
        for place, entries in self._places.dump().items():
            for entry in entries:
                if entry.uid in self._in_flight:
                    raise InvariantError(f"{entry.key} is in flight and {place}")

    # How it is done.

    def _begin(self, pod: Pod, label: str, now: float, template: PodTemplate | None = None) -> None:
        if self._places.to_active(QueuedPod(pod, now, template), label, now):
            self.nominator.follow(pod)

    def _drop_namesake(self, pod: Pod) -> None:
        """A pod that came under the name of another is proof that the other is gone."""
        entry = self._places.find(pod.key)
        if entry is not None and entry.uid != pod.uid:
            self.delete(entry.pod)

    def _reconsider(self, entry: QueuedPod, old: Pod, now: float) -> None:
        """A refused or gated pod has itself changed; the first change that helps is enough."""
        for event in events.pod_update(old, entry.pod):
            strategy = self._requeueing.worth(entry, event, old, entry.pod)
            if strategy is not Strategy.SKIP and self._place(entry, strategy, event.label, now):
                break

    def _move(
        self, waiting: Iterable[QueuedPod], event: ClusterEvent, old: Any, new: Any, now: float
    ) -> None:
        """Queue those that a change may help, and keep it for those in flight."""
        for entry in waiting:
            strategy = self._requeueing.worth(entry, event, old, new)
            if strategy is not Strategy.SKIP:
                self._place(entry, strategy, event.label, now)
        self._in_flight.record(event, old, new)

    def _place(self, entry: QueuedPod, strategy: Strategy, label: str, now: float) -> bool:
        """Put a pod where it belongs; whether that is in line to be tried."""
        if strategy is Strategy.SKIP:
            self._places.to_pool(entry, label, now)
            return False
        if strategy is Strategy.AFTER_BACKOFF and self._backoff.is_backing_off(entry, now):
            return self._places.to_backoff(entry, label, now)
        return self._places.to_active(entry, label, now)

    def _strategy(self, entry: QueuedPod) -> Strategy:
        """What to do with a pod that came back, given what it missed."""
        missed = self._in_flight.missed_by(entry.uid)
        if missed is None or not entry.has_rejectors:
            return Strategy.AFTER_BACKOFF
        return self._requeueing.best(entry, missed)

    def _flush(self, rested: list[QueuedPod], now: float) -> None:
        for entry in rested:
            entry.was_flushed = True
            entry.flushed_at = now
        if rested:
            self._move(rested, events.UNSCHEDULABLE_TIMEOUT, None, None, now)
