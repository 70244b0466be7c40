"""Queueing hints: would this change make that pod schedulable? And the map from events to hints."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from moorage.api.pod import Pod
from moorage.framework.events import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    STORAGE_CLASS,
    Action,
    ClusterEvent,
)


class Hint(Enum):
    """Whether a change makes it worth scheduling a pod again."""

    QUEUE = "Queue"
    QUEUE_SKIP = "QueueSkip"


# pod, old object, new object -> hint; old is None for an add, new is None for a delete.
HintFunction = Callable[[Pod, Any, Any], Hint]
# None stands for "always worth it".
Events = Mapping[ClusterEvent, HintFunction | None]


def always(pod: Pod, old: Any, new: Any) -> Hint:
    """The hint of a plugin that registers an event without a function."""
    return Hint.QUEUE


# The events of a plugin without `events_to_register`.
EVERYTHING: dict[ClusterEvent, HintFunction | None] = {
    ClusterEvent(resource, Action.ALL): None
    for resource in (
        POD,
        NODE,
        PERSISTENT_VOLUME,
        PERSISTENT_VOLUME_CLAIM,
        CSI_NODE,
        CSI_DRIVER,
        CSI_STORAGE_CAPACITY,
        STORAGE_CLASS,
        "resource.k8s.io/ResourceClaim",
        "resource.k8s.io/DeviceClass",
    )
}


@dataclass(frozen=True, slots=True)
class Registration:
    """One plugin's hint for one kind of change."""

    event: ClusterEvent
    plugin: str
    hint: HintFunction


class HintMap:
    """All registrations of a profile, looked up by incoming event."""

    def __init__(self, by_plugin: Mapping[str, Events]) -> None:
        self.registrations = [
            Registration(event, plugin, hint or always)
            for plugin, registered in by_plugin.items()
            for event, hint in _with_taints(registered).items()
        ]
        self._covering: dict[ClusterEvent, list[Registration]] = {}

    def covering(self, incoming: ClusterEvent) -> list[Registration]:
        """The registrations that cover an event."""
        found = self._covering.get(incoming)
        if found is None:
            found = [r for r in self.registrations if r.event.covers(incoming)]
            self._covering[incoming] = found
        return found

    def add(self, plugin: str, registered: Events) -> None:
        """Register events of something that is no plugin, as an extender."""
        self.registrations += [
            Registration(event, plugin, hint or always) for event, hint in registered.items()
        ]
        self._covering.clear()

    def events_of(self, plugin: str) -> list[ClusterEvent]:
        """The events that a plugin registered."""
        return [r.event for r in self.registrations if r.plugin == plugin]


def _with_taints(registered: Events) -> Events:
    """Add updates of taints to a registration of new nodes, as Kubernetes does.

    A new node is often tainted and becomes usable only when the taint is removed; a plugin that
    registered Node Add without taints would miss that event.
    """
    nodes = [event for event in registered if event.resource in (NODE, "*")]
    adds = any(event.action & Action.ADD for event in nodes)
    taints = any(event.action & Action.UPDATE_NODE_TAINT for event in nodes)
    if not adds or taints:
        return registered
    return {**registered, ClusterEvent(NODE, Action.UPDATE_NODE_TAINT): None}
