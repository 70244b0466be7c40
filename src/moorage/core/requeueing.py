"""Requeueing: whether a cluster event requeues a rejected pod, and how soon.

The plugins that rejected the pod decide, by the hint functions that they registered for the event.
Without a hint function the pod is requeued: a useless attempt costs little, a forgotten pod a lot.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from moorage.api.pod import Pod
from moorage.core.in_flight import InFlightEvent
from moorage.core.queued_pod import QueuedPod
from moorage.errors import PluginError, shown
from moorage.framework import invoke
from moorage.framework.events import (
    NODE,
    WILDCARD,
    Action,
    ClusterEvent,
    Events,
    Hint,
    HintFunction,
    TargetedHint,
)

# The number of kept errors of hint functions; one bad function can cause thousands.
KEPT_ERRORS = 100


class QueueingStrategy(IntEnum):
    """What to do with a pod after an event; the greater wins."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


SKIP, AFTER_BACKOFF, IMMEDIATELY = QueueingStrategy


def always(pod: Pod, old: Any, new: Any) -> Hint:
    """The hint of a plugin that registers an event without a function."""
    return Hint.QUEUE


@dataclass(frozen=True, slots=True)
class Registration:
    """One plugin's hint for one kind of change."""

    event: ClusterEvent
    plugin: str
    hint: HintFunction


class HintMap:
    """All registrations of plugins, or of extenders, looked up by incoming event."""

    def __init__(self, by_plugin: Mapping[str, Events]) -> None:
        self.registrations: list[Registration] = []
        self._covering: dict[ClusterEvent, list[Registration]] = {}
        for plugin, registered in by_plugin.items():
            self.registrations += [
                Registration(event, plugin, hint or always)
                for event, hint in _with_taints(registered).items()
            ]
        # How plugins name pods; most often it is the same function for several events.
        self.aliases = {
            each.hint.aliases: each
            for each in self.registrations
            if isinstance(each.hint, TargetedHint) and each.hint.aliases is not None
        }

    def covering(self, incoming: ClusterEvent) -> list[Registration]:
        """The registrations that cover an event."""
        found = self._covering.get(incoming)
        if found is None:
            found = [r for r in self.registrations if r.event.covers(incoming)]
            self._covering[incoming] = found
        return found


def _with_taints(registered: Events) -> Events:
    """Add updates of taints to a registration of new nodes, as Kubernetes does.

    A new node is often tainted and becomes usable only when the taint is removed; a plugin that
    registered Node Add without taints would miss that event.
    """
    nodes = [event for event in registered if event.resource in (NODE, WILDCARD)]
    adds = any(event.action & Action.ADD for event in nodes)
    taints = any(event.action & Action.UPDATE_NODE_TAINT for event in nodes)
    if not adds or taints:
        return registered
    return {**registered, ClusterEvent(NODE, Action.UPDATE_NODE_TAINT): None}


class Requeueing:
    """The hint maps of all profiles, from the events that their plugins registered."""

    def __init__(self, registered: Mapping[str, Mapping[str, Events]]) -> None:
        self._hints = {profile: HintMap(events) for profile, events in registered.items()}
        self._interested: dict[ClusterEvent, tuple[str, ...]] = {}
        self._targeted: dict[ClusterEvent, list[Registration] | None] = {}
        self.hint_errors: deque[str] = deque(maxlen=KEPT_ERRORS)

    def interested(self, event: ClusterEvent) -> tuple[str, ...]:
        """The plugins of any profile that registered for an event."""
        plugins = self._interested.get(event)
        if plugins is None:
            covering = (r.plugin for hints in self._hints.values() for r in hints.covering(event))
            plugins = self._interested[event] = tuple(sorted(set(covering)))
        return plugins

    def concerned(self, event: ClusterEvent, old: Any, new: Any) -> set[str] | None:
        """The keys and aliases of the pods that an event may help; None: it may help any pod."""
        if event not in self._targeted:
            self._targeted[event] = self._find_targeted(event)
        targeted = self._targeted[event]
        if targeted is None:
            return None
        found: set[str] = set()
        for registration in targeted:
            assert isinstance(registration.hint, TargetedHint)
            try:
                pods = _guarded(registration, _names, registration.hint.pods, old, new)
            except PluginError as error:
                self._report(registration, event, "its pods", error)
                return None
            if pods is None:
                return None
            found.update(pods)
        return found

    def _find_targeted(self, event: ClusterEvent) -> list[Registration] | None:
        """The registrations that cover an event, if all of them have a TargetedHint."""
        covering = [each for hints in self._hints.values() for each in hints.covering(event)]
        return covering if all(isinstance(each.hint, TargetedHint) for each in covering) else None

    def aliases(self, pod: Pod) -> frozenset[str]:
        """The names besides its key under which plugins may ask for a pod."""
        hints = self._hints.get(pod.spec.scheduler_name)
        found: set[str] = set()
        if hints is not None:
            for aliases, registration in hints.aliases.items():
                try:
                    found.update(_guarded(registration, _names, aliases, pod) or ())
                except PluginError as error:
                    self._report(registration, registration.event, pod.key, error)
        return frozenset(found)

    def strategy(
        self, entry: QueuedPod, event: ClusterEvent, old: Any, new: Any
    ) -> QueueingStrategy:
        """What an event does for a pod."""
        if not entry.has_rejectors:
            return AFTER_BACKOFF
        if event.is_wildcard:
            targets_other = new is not None and new.uid != entry.uid
            return SKIP if targets_other else AFTER_BACKOFF
        hints = self._hints.get(entry.pod.spec.scheduler_name)
        if hints is None:
            return AFTER_BACKOFF
        return self._by_hints(hints, entry, event, old, new)

    def best(self, entry: QueuedPod, missed: Iterable[InFlightEvent]) -> QueueingStrategy:
        """The best strategy of several events."""
        best = SKIP
        for each in missed:
            best = max(best, self.strategy(entry, each.event, each.old, each.new))
            if best is _most(entry):
                break
        return best

    def _by_hints(
        self, hints: HintMap, entry: QueuedPod, event: ClusterEvent, old: Any, new: Any
    ) -> QueueingStrategy:
        best = SKIP
        for registration in hints.covering(event):
            pending = registration.plugin in entry.pending_plugins
            if not pending and registration.plugin not in entry.unschedulable_plugins:
                continue
            if self._queues(registration, entry, event, old, new):
                # What the pod waited for outside has happened, so it does not back off.
                best = max(best, IMMEDIATELY if pending else AFTER_BACKOFF)
                if best is _most(entry):
                    break
        return best

    def _queues(
        self, registration: Registration, entry: QueuedPod, event: ClusterEvent, old: Any, new: Any
    ) -> bool:
        try:
            hint = _guarded(registration, registration.hint, entry.pod, old, new)
            return hint is not Hint.QUEUE_SKIP
        except PluginError as error:
            # An error in a plugin must not leave the pod unschedulable, nor the pods after it.
            self._report(registration, event, entry.key, error)
            return True

    def _report(
        self, registration: Registration, event: ClusterEvent, on: str, error: PluginError
    ) -> None:
        self.hint_errors.append(
            f"{registration.plugin}: hint for {event.label} on {on}: {error.__cause__!r}"
        )


def _guarded(registration: Registration, call: Callable[..., Any], *args: Any) -> Any:
    return invoke.guard(registration.plugin, "", call, *args)


def _names(call: Callable[..., Any], *args: Any) -> frozenset[str] | None:
    """The names that a function of a TargetedHint returns; raises if they are none."""
    found = call(*args)
    names = None if found is None else frozenset(found)
    if isinstance(found, str) or not all(isinstance(name, str) for name in names or ()):
        raise TypeError(f"returned {shown(found)}, which is not a tuple of names of pods")
    return names


def _most(entry: QueuedPod) -> QueueingStrategy:
    """The best strategy that a pod can get; no further hint is needed then."""
    return IMMEDIATELY if entry.pending_plugins else AFTER_BACKOFF
