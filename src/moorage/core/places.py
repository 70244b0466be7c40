"""Places: where a pod may wait, and how it gets in: past the gates, into one place at a time.

Identity is namespace/name. Why a pod is put somewhere is not known here, nor who is in flight.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from moorage.api.pod import Pod
from moorage.core.backoff import Backoff
from moorage.core.heap import Heap
from moorage.core.journal import Journal, MixedKeys, Queued
from moorage.core.mixed_keys import comparable
from moorage.core.pool import UnschedulablePool
from moorage.core.queued_pod import QueuedPod
from moorage.errors import InvariantError
from moorage.framework import events, invoke, points
from moorage.framework.hints import HintMap
from moorage.framework.status import Status

ACTIVE = "active"
BACKOFF = "backoff"
UNSCHEDULABLE = "unschedulable"
GATED = "gated"


class QueueProfile(Protocol):
    """What the queue asks of a profile."""

    @property
    def hints(self) -> HintMap:
        """Which changes could cure which plugin's refusals."""

    def run_pre_enqueue(self, pod: Pod) -> Status | None:
        """Who holds the pod back, with the plugin's name in it; None if nobody does."""

    def queue_key(self, pod: Pod, queued_at: float) -> Any:
        """The pod's place in the active queue: the smallest is tried first."""

    def plugins(self) -> list[Any]:
        """Everybody who takes part in something."""


class Places:
    """The active queue, the back-off and the unschedulable pool, which has the gated pods too."""

    def __init__(
        self, profiles: Mapping[str, QueueProfile], backoff: Backoff, journal: Journal
    ) -> None:
        self._profiles = dict(profiles)
        # There is one active queue, so the first profile speaks for all.
        self._order = next(iter(self._profiles.values()))
        self._journal = journal
        self.active: Heap[QueuedPod] = Heap(self._mend)
        self.backoff = backoff
        self.backoff.refused.mend = self._mend
        self._has_mixed_keys = False
        self._now = 0.0
        self.pool = UnschedulablePool(self._profiles)
        self._key_of: dict[str, str] = {}

    def find(self, key: str) -> QueuedPod | None:
        """The pod of that name, wherever it waits."""
        return self.active.get(key) or self.pool.get(key) or self.backoff.get(key)

    def where(self, uid_or_key: str) -> str | None:
        """The place where a pod waits."""
        key = self._key_of.get(uid_or_key, uid_or_key)
        if key in self.active:
            return ACTIVE
        if key in self.backoff:
            return BACKOFF
        resting = self.pool.get(key)
        if resting is None:
            return None
        return GATED if resting.is_gated else UNSCHEDULABLE

    def pop(self, now: float) -> QueuedPod | None:
        """Take out the next pod to try; None if there is none."""
        self._now = now
        if self.active:
            entry = self.active.pop()
        elif self.backoff.refused:
            # Better early than idle.
            entry = self.backoff.refused.pop()
            self._note(entry, ACTIVE, events.POP_FROM_BACKOFF, now)
        else:
            return None
        del self._key_of[entry.uid]
        return entry

    def discard(self, key: str) -> None:
        """Take a pod out, wherever it waits."""
        entry = self.find(key)
        if entry is None:
            return
        del self._key_of[entry.uid]
        if key in self.active:
            self.active.remove(key)
        else:
            self.pool.discard(key)
            self.backoff.discard(key)

    def discard_pod(self, uid: str) -> None:
        """The same for the pod with that UID."""
        key = self._key_of.get(uid)
        if key is not None:
            self.discard(key)

    def to_active(self, entry: QueuedPod, label: str, now: float) -> bool:
        """Put a pod into the active queue if the gates let it; else it waits in the pool."""
        if self._is_held(entry, label, now):
            return False
        self.enter_active(entry, label, now)
        return True

    def to_backoff(self, entry: QueuedPod, label: str, now: float) -> bool:
        """Let a pod sit out its back-off if the gates let it; else it waits in the pool."""
        if self._is_held(entry, label, now):
            return False
        self._now = now
        self.discard(entry.key)
        self.backoff.put(entry, self._queue_key(entry))
        self._enter(entry, BACKOFF, label, now)
        return True

    def to_pool(self, entry: QueuedPod, label: str, now: float) -> None:
        """Let a pod wait for a change."""
        if self.pool.put(entry):
            self._enter(entry, GATED if entry.is_gated else UNSCHEDULABLE, label, now)

    def enter_active(self, entry: QueuedPod, label: str, now: float) -> None:
        """Put a pod into the active queue without asking at the gates."""
        if entry.first_tried_at is None:
            entry.first_tried_at = now
        self._now = now
        self.discard(entry.key)
        self.active.push(entry.key, entry, self._queue_key(entry))
        self._enter(entry, ACTIVE, label, now)

    def reorder(self, entry: QueuedPod) -> None:
        """A pod that waits for its turn has changed, and with it perhaps its place in line."""
        if entry.key in self.active:
            self.active.update(entry.key, entry, self._queue_key(entry))
        else:
            self.backoff.put(entry, self._queue_key(entry))

    def counts(self) -> dict[str, int]:
        """How many pods wait where."""
        gated = self.pool.gated_count
        return {
            ACTIVE: len(self.active),
            BACKOFF: len(self.backoff),
            UNSCHEDULABLE: len(self.pool) - gated,
            GATED: gated,
        }

    def dump(self) -> dict[str, list[QueuedPod]]:
        """Who waits where, in the order in which they will leave, or came."""
        return {
            ACTIVE: list(self.active),
            BACKOFF: list(self.backoff),
            UNSCHEDULABLE: [entry for entry in self.pool if not entry.is_gated],
            GATED: [entry for entry in self.pool if entry.is_gated],
        }

    def _enter(self, entry: QueuedPod, place: str, label: str, now: float) -> None:
        self._key_of[entry.uid] = entry.key
        self._note(entry, place, label, now)

    def _note(self, entry: QueuedPod, place: str, label: str, now: float) -> None:
        self._journal.add(Queued(at=now, pod=entry.key, uid=entry.uid, queue=place, event=label))

    def _queue_key(self, entry: QueuedPod) -> Any:
        key = self._order.queue_key(entry.pod, entry.queued_at)
        return comparable(key) if self._has_mixed_keys else key

    def _mend(self, raised: Exception) -> None:
        """Two keys cannot be compared: from now on they are made so that they can be."""
        self._has_mixed_keys = True
        self.active.rekey(self._queue_key)
        self.backoff.rekey(self._queue_key)
        sorters = (p.name for p in self._order.plugins() if points.implements(p, "queue_sort"))
        plugin = next(sorters, "")
        message = (
            f'queue_sort of plugin "{plugin}" gave keys that cannot be compared with each other: '
            f"{invoke.describe(raised)}; numbers go first, then text, and None last"
        )
        self._journal.add(MixedKeys(at=self._now, plugin=plugin, message=message))

    def _is_held(self, entry: QueuedPod, label: str, now: float) -> bool:
        """Whether the gates hold a pod back; if so, it is in the pool afterwards."""
        if not self._is_gated(entry):
            return False
        # News of a gate that come as an addition do not recall a pod that is on its way.
        if entry.key not in self.active and entry.key not in self.backoff:
            entry.was_flushed = False
            self.to_pool(entry, label, now)
        return True

    def _is_gated(self, entry: QueuedPod) -> bool:
        profile = self._profiles.get(entry.pod.spec.scheduler_name)
        refusal = None if profile is None else profile.run_pre_enqueue(entry.pod)
        if refusal is None:
            entry.gating_plugin = ""
            return False
        assert refusal.plugin, f"a gate without a name holds {entry.key}"
        entry.unschedulable_plugins.add(refusal.plugin)
        entry.gating_plugin = refusal.plugin
        return True

    def check(self) -> None:
        """Raise InvariantError if a pod waits in two places, in the wrong one, or out of order."""
        seen: dict[str, str] = {}
        for place, entries in self.dump().items():
            for entry in entries:
                if entry.key in seen:
                    raise InvariantError(f"{entry.key} is both {seen[entry.key]} and {place}")
                if (entry.key, entry.uid) != (entry.pod.key, entry.pod.uid):
                    raise InvariantError(f"{entry.key} {entry.uid} holds {entry.pod.key}")
                if entry.is_gated != (place == GATED):
                    raise InvariantError(f"{entry.key} is {place}, gate: {entry.gating_plugin!r}")
                seen[entry.key] = place
        if seen.keys() != set(self._key_of.values()) or len(seen) != len(self._key_of):
            raise InvariantError("pods are known by the wrong UIDs")
        order = [self._queue_key(entry) for entry in self.active]
        if order != sorted(order):
            raise InvariantError("the active queue has lost its order")
        self.backoff.check()
        self.pool.check()
