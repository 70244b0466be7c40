"""SubQueues: the active queue, the backoff queue and the unschedulable pods, gated ones included.

A pod is in one of them at a time, and its `state` says in which. pre_enqueue plugins are called
when a pod enters the first two. Identity is namespace/name. Why a pod moves is not known here, nor
which pods are in flight.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from moorage.api.pod import Pod
from moorage.core import updates
from moorage.core.backoff import BackoffQueue
from moorage.core.heap import Heap, comparable
from moorage.core.journal import Journal, MixedKeys, Queued
from moorage.core.partitions import PartitionedHeap, QueuePaths
from moorage.core.queue_states import (
    ACTIVATE,
    ACTIVE,
    BACK_OFF,
    BACKOFF,
    DELETE,
    GATE,
    GATED,
    POP,
    QUEUE_TRANSITIONS,
    REJECT,
    UNSCHEDULABLE,
)
from moorage.core.queued_pod import QueuedPod
from moorage.core.unschedulable import UnschedulablePods
from moorage.errors import InvariantError, describe
from moorage.framework import points
from moorage.framework.events import Events
from moorage.framework.invoke import PluginMethod
from moorage.framework.status import Status


class QueueProfile(Protocol):
    """What the queue needs of a profile."""

    @property
    def events(self) -> Mapping[str, Events]:
        """Which cluster events may make a pod schedulable that a plugin rejected, by plugin."""

    def run_pre_enqueue(self, pod: Pod) -> Status | None:
        """The rejection by a pre_enqueue plugin, with the plugin's name; None if none rejects."""

    def queue_key(self, pod: Pod, queued_at: float) -> Any:
        """The sort key of a pod in the active queue: the smallest is tried first."""

    def plugins(self) -> list[Any]:
        """All plugins of the profile."""

    def queue_path_methods(self) -> list[PluginMethod]:
        """How the queue_sort plugin partitions the queue; empty if it does not."""


class SubQueues:
    """See the module."""

    def __init__(
        self,
        profiles: Mapping[str, QueueProfile],
        backoff: BackoffQueue,
        journal: Journal,
        aliases: Callable[[Pod], frozenset[str]],
    ) -> None:
        self._profiles = dict(profiles)
        # There is one active queue, so the first profile's queue_sort plugin orders all pods.
        self._order = next(iter(self._profiles.values()))
        self._journal = journal
        self.active: Heap[QueuedPod] | PartitionedHeap = Heap(self._rekey)
        # With partitions: the pods of `backoff.rejected` in the order of the active queue.
        self._early: PartitionedHeap | None = None
        if methods := self._order.queue_path_methods():
            self._paths = QueuePaths(*methods)
            self.active = PartitionedHeap(self._paths, self._rekey)
            self._early = PartitionedHeap(self._paths, self._rekey)
        self.backoff = backoff
        self.backoff.rejected.on_incomparable = self._rekey
        self.unschedulable = UnschedulablePods(self._profiles, aliases)
        self._has_mixed_keys = False
        self._now = 0.0
        self._by_key: dict[str, QueuedPod] = {}
        self._by_uid: dict[str, QueuedPod] = {}

    def find(self, key: str) -> QueuedPod | None:
        """The waiting pod of that name."""
        return self._by_key.get(key)

    def where(self, uid_or_key: str) -> str | None:
        """The state of a waiting pod."""
        entry = self._by_uid.get(uid_or_key) or self._by_key.get(uid_or_key)
        return None if entry is None else entry.state

    def pop(self, now: float) -> QueuedPod | None:
        """Remove and return the next pod to try; None if there is none."""
        self._now, early = now, self._early
        if early is not None:
            self._follow_paths(early)
        if self.active.live and (early is None or not self._is_first(early)):
            entry = self.active.pop()
        elif self.backoff.rejected:
            # An early attempt is better than an idle scheduler.
            if early is None:
                entry = self.backoff.rejected.pop()
            else:
                entry = early.pop()
                self.backoff.discard(entry.key)
            self._record(entry, ACTIVE, updates.POP_FROM_BACKOFF, now)
        else:
            return None
        del self._by_key[entry.key], self._by_uid[entry.uid]
        entry.state = QUEUE_TRANSITIONS[entry.state, POP]
        return entry

    def _follow_paths(self, early: PartitionedHeap) -> None:
        """Take in how the plugin orders partitions at present."""
        changed = self._paths.changed()
        assert isinstance(self.active, PartitionedHeap)
        if changed is None:
            self.active.rebuild(self._queue_key)
            early.rebuild(self._queue_key)
        else:
            self.active.changed(changed)
            early.changed(changed)

    def _is_first(self, early: PartitionedHeap) -> bool:
        """Whether a pod that backs off is tried because its partition is before all active ones.

        Else a partition would lose its turn to others whose pods were rejected less recently.
        """
        assert isinstance(self.active, PartitionedHeap)
        return bool(early) and early.rank() < self.active.rank()

    def take(self, entry: QueuedPod) -> None:
        """Remove an active pod that is tried out of turn."""
        self._remove(entry)
        entry.state = QUEUE_TRANSITIONS[entry.state, POP]

    def delete(self, uid: str) -> None:
        """Remove the pod with that UID, if it waits."""
        entry = self._by_uid.get(uid)
        if entry is not None:
            self._remove(entry)
            entry.state = QUEUE_TRANSITIONS[entry.state, DELETE]

    def _remove(self, entry: QueuedPod) -> None:
        """Remove a pod from its queue, whichever it is; its state stays."""
        key, state = entry.key, entry.state
        del self._by_key[key], self._by_uid[entry.uid]
        if state == ACTIVE:
            self.active.remove(key)
        elif state == BACKOFF:
            self.backoff.discard(key)
            if self._early is not None and key in self._early:
                self._early.remove(key)
        else:
            self.unschedulable.discard(key)

    def to_active(self, entry: QueuedPod, label: str, now: float) -> bool:
        """Make a pod active, unless a pre_enqueue plugin rejects it: then it is gated."""
        if self._gate(entry, label, now):
            return False
        self.enter_active(entry, label, now)
        return True

    def to_backoff(self, entry: QueuedPod, label: str, now: float) -> bool:
        """Let a pod back off, unless a pre_enqueue plugin rejects it: then it is gated."""
        if self._gate(entry, label, now):
            return False
        self._now = now
        self._remove_namesake(entry)
        self.backoff.put(entry, self._queue_key(entry))
        if self._early is not None and entry.has_rejectors:
            self._early.push(entry.key, entry, self._queue_key(entry))
        self._entered(entry, BACK_OFF, label, now)
        return True

    def to_unschedulable(self, entry: QueuedPod, label: str, now: float) -> None:
        """Let a pod wait for a cluster event."""
        event = GATE if entry.is_gated else REJECT
        entry.state = QUEUE_TRANSITIONS[entry.state, event]
        self._by_key[entry.key] = self._by_uid[entry.uid] = entry
        if self.unschedulable.put(entry):
            self._record(entry, entry.state, label, now)

    def enter_active(self, entry: QueuedPod, label: str, now: float) -> None:
        """Make a pod active without calling pre_enqueue plugins."""
        if entry.first_tried_at is None:
            entry.first_tried_at = now
        self._now = now
        self._remove_namesake(entry)
        self.active.push(entry.key, entry, self._queue_key(entry))
        self._entered(entry, ACTIVATE, label, now)

    def _remove_namesake(self, entry: QueuedPod) -> None:
        """Remove a pod from the queue that it leaves; after a second Added event, its old entry."""
        waiting = self._by_key.get(entry.key)
        if waiting is not None:
            self._remove(waiting)

    def _entered(self, entry: QueuedPod, event: str, label: str, now: float) -> None:
        entry.state = QUEUE_TRANSITIONS[entry.state, event]
        self._by_key[entry.key] = self._by_uid[entry.uid] = entry
        self._record(entry, entry.state, label, now)

    def reorder(self, entry: QueuedPod) -> None:
        """Sort a changed pod again, in the active or the backoff queue."""
        if entry.state == ACTIVE:
            self.active.update(entry.key, entry, self._queue_key(entry))
        else:
            self.backoff.put(entry, self._queue_key(entry))
            if self._early is not None and entry.has_rejectors:
                self._early.update(entry.key, entry, self._queue_key(entry))

    def counts(self) -> dict[str, int]:
        """How many pods are in each state."""
        gated = self.unschedulable.gated_count
        return {
            ACTIVE: len(self.active),
            BACKOFF: len(self.backoff),
            UNSCHEDULABLE: len(self.unschedulable) - gated,
            GATED: gated,
        }

    def dump(self) -> dict[str, list[QueuedPod]]:
        """The pods in each state, in the order in which they will leave, or came."""
        return {
            ACTIVE: list(self.active),
            BACKOFF: list(self.backoff),
            UNSCHEDULABLE: [entry for entry in self.unschedulable if not entry.is_gated],
            GATED: [entry for entry in self.unschedulable if entry.is_gated],
        }

    def _record(self, entry: QueuedPod, state: str, label: str, now: float) -> None:
        self._journal.add(Queued(at=now, pod=entry.key, uid=entry.uid, queue=state, event=label))

    def _queue_key(self, entry: QueuedPod) -> Any:
        key = self._order.queue_key(entry.pod, entry.queued_at)
        return comparable(key) if self._has_mixed_keys else key

    def _rekey(self, raised: Exception) -> None:
        """Two keys cannot be compared: make all keys comparable, from now on too."""
        self._has_mixed_keys = True
        self.active.rekey(self._queue_key)
        self.backoff.rekey(self._queue_key)
        if self._early is not None:
            self._early.rekey(self._queue_key)
        sorters = (p.name for p in self._order.plugins() if points.implements(p, "queue_sort"))
        plugin = next(sorters, "")
        message = (
            f'queue_sort of plugin "{plugin}" gave keys that cannot be compared with each other: '
            f"{describe(raised)}; numbers go first, then text, and None last"
        )
        self._journal.add(MixedKeys(at=self._now, plugin=plugin, message=message))

    def _gate(self, entry: QueuedPod, label: str, now: float) -> bool:
        """Whether a pre_enqueue plugin rejects a pod; if so, it is gated afterwards."""
        profile = self._profiles.get(entry.pod.spec.scheduler_name)
        rejection = None if profile is None else profile.run_pre_enqueue(entry.pod)
        if rejection is None:
            entry.gating_plugin = ""
            return False
        assert rejection.plugin, f"a plugin without a name rejects {entry.key} in pre_enqueue"
        entry.unschedulable_plugins.add(rejection.plugin)
        entry.gating_plugin = rejection.plugin
        waiting = self._by_key.get(entry.key)
        # An Added event for a gated pod does not remove the pod from the active or backoff queue.
        if waiting is None or waiting.state not in (ACTIVE, BACKOFF):
            entry.was_flushed = False
            self.to_unschedulable(entry, label, now)
        return True

    def check(self) -> None:
        """Raise InvariantError if a pod is in two queues, in the wrong one, or out of order."""
        seen: dict[str, str] = {}
        for state, entries in self.dump().items():
            for entry in entries:
                if entry.key in seen:
                    raise InvariantError(f"{entry.key} is both {seen[entry.key]} and {state}")
                if (entry.key, entry.uid) != (entry.pod.key, entry.pod.uid):
                    raise InvariantError(f"{entry.key} {entry.uid} holds {entry.pod.key}")
                if entry.is_gated != (state == GATED):
                    raise InvariantError(f"{entry.key} is {state}, gate: {entry.gating_plugin!r}")
                seen[entry.key] = state
        for index in (self._by_key, self._by_uid):
            if {entry.key: entry.state for entry in index.values()} != seen:
                raise InvariantError("pods are indexed wrongly, or in the wrong state")
        for heap in self.active.heaps():
            order = [self._queue_key(entry) for entry in heap]
            if order != sorted(order):
                raise InvariantError("the active queue is out of order")
        if self._early is not None:
            rejected = {entry.key for entry in self.backoff.rejected}
            if rejected != {entry.key for entry in self._early}:
                raise InvariantError("pods that back off are partitioned wrongly")
        self.backoff.check()
        self.unschedulable.check()
