"""Requeueing: is a change worth trying a refused pod again, and how soon?

The plugins that refused the pod know; their hint functions are asked about the changes that they
registered for. Where nobody can be asked the answer is yes: a useless attempt costs little, a
forgotten pod a lot.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any

from moorage.core.in_flight import Missed
from moorage.core.queued_pod import QueuedPod
from moorage.errors import PLUGIN_EXCEPTIONS
from moorage.framework.events import ClusterEvent
from moorage.framework.hints import Hint, HintMap, Registration

# As many complaints about hint functions are kept; one bad function can cause thousands.
KEPT_ERRORS = 100


class Strategy(IntEnum):
    """What to do with a pod after a change; the greater wins."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


class Requeueing:
    """The hint maps of all profiles, asked about one pod and one change at a time."""

    def __init__(self, hints: Mapping[str, HintMap]) -> None:
        self._hints = dict(hints)
        self._interested: dict[ClusterEvent, tuple[str, ...]] = {}
        self.hint_errors: deque[str] = deque(maxlen=KEPT_ERRORS)

    def interested(self, event: ClusterEvent) -> tuple[str, ...]:
        """The plugins of any profile that registered for such a change."""
        plugins = self._interested.get(event)
        if plugins is None:
            covering = (r.plugin for hints in self._hints.values() for r in hints.covering(event))
            plugins = self._interested[event] = tuple(sorted(set(covering)))
        return plugins

    def worth(self, entry: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> Strategy:
        """How a change concerns a pod."""
        if not entry.has_rejectors:
            return Strategy.AFTER_BACKOFF
        if event.is_wildcard:
            targets_other = new is not None and new.uid != entry.uid
            return Strategy.SKIP if targets_other else Strategy.AFTER_BACKOFF
        hints = self._hints.get(entry.pod.spec.scheduler_name)
        if hints is None:
            return Strategy.AFTER_BACKOFF
        return self._ask(hints, entry, event, old, new)

    def best(self, entry: QueuedPod, missed: Iterable[Missed]) -> Strategy:
        """The most that any of several changes does for a pod."""
        best = Strategy.SKIP
        for change in missed:
            best = max(best, self.worth(entry, change.event, change.old, change.new))
            if best is _most(entry):
                break
        return best

    def _ask(
        self, hints: HintMap, entry: QueuedPod, event: ClusterEvent, old: Any, new: Any
    ) -> Strategy:
        best = Strategy.SKIP
        for registration in hints.covering(event):
            pending = registration.plugin in entry.pending_plugins
            if not pending and registration.plugin not in entry.unschedulable_plugins:
                continue
            if self._says_queue(registration, entry, event, old, new):
                # What a pod waited for outside has happened: it has done nothing to sit out for.
                best = max(best, Strategy.IMMEDIATELY if pending else Strategy.AFTER_BACKOFF)
                if best is _most(entry):
                    break
        return best

    def _says_queue(
        self, registration: Registration, entry: QueuedPod, event: ClusterEvent, old: Any, new: Any
    ) -> bool:
        try:
            return registration.hint(entry.pod, old, new) is not Hint.QUEUE_SKIP
        except PLUGIN_EXCEPTIONS as trouble:
            # A plugin's mistake must not strand the pod, nor the pods behind it.
            self.hint_errors.append(
                f"{registration.plugin}: hint for {event.label} on {entry.key}: {trouble!r}"
            )
            return True


def _most(entry: QueuedPod) -> Strategy:
    """The most that a pod can hope for, so that asking may end when it is reached."""
    return Strategy.IMMEDIATELY if entry.pending_plugins else Strategy.AFTER_BACKOFF
