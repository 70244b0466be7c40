"""ClusterEvent: the kinds of change that may make a pod schedulable, and hints for them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, IntFlag
from functools import cache
from typing import Any, ClassVar

from msgspec import Struct

from moorage.api.kinds import KINDS
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod


class Action(IntFlag):
    """What happened to an object; Kubernetes' bits in its order."""

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_POD_LABEL = 256
    UPDATE_POD_SCALE_DOWN = 512
    UPDATE_POD_TOLERATION = 1024
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 2048
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 4096
    UPDATE = 8188
    ALL = 8191


# Resources as plugins register them; an event of a pod has one of the two narrower names.
POD = "Pod"
ASSIGNED_POD = "AssignedPod"
UNSCHEDULABLE_POD = "UnschedulablePod"
NODE = "Node"
PERSISTENT_VOLUME = "PersistentVolume"
PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
STORAGE_CLASS = "storage.k8s.io/StorageClass"
CSI_NODE = "storage.k8s.io/CSINode"
CSI_DRIVER = "storage.k8s.io/CSIDriver"
CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
DEVICE_CLASS = "resource.k8s.io/DeviceClass"
WILDCARD = "*"


class ClusterEvent(Struct, frozen=True):
    """A change of a resource; some have a label of their own. The usual ones are attributes."""

    NODE_ADD: ClassVar["ClusterEvent"]
    NODE_DELETE: ClassVar["ClusterEvent"]
    UPDATE_NODE_ALLOCATABLE: ClassVar["ClusterEvent"]
    UPDATE_NODE_LABEL: ClassVar["ClusterEvent"]
    UPDATE_NODE_TAINT: ClassVar["ClusterEvent"]
    UPDATE_NODE_DECLARED_FEATURE: ClassVar["ClusterEvent"]
    POD_ADD: ClassVar["ClusterEvent"]
    POD_DELETE: ClassVar["ClusterEvent"]
    POD_UPDATE: ClassVar["ClusterEvent"]
    UPDATE_POD_LABEL: ClassVar["ClusterEvent"]
    UPDATE_POD_SCALE_DOWN: ClassVar["ClusterEvent"]
    UPDATE_POD_TOLERATION: ClassVar["ClusterEvent"]
    POD_GATES_ELIMINATED: ClassVar["ClusterEvent"]
    VOLUME_ADD: ClassVar["ClusterEvent"]
    VOLUME_UPDATE: ClassVar["ClusterEvent"]
    CLAIM_ADD: ClassVar["ClusterEvent"]
    CLAIM_UPDATE: ClassVar["ClusterEvent"]
    STORAGE_CLASS_ADD: ClassVar["ClusterEvent"]
    STORAGE_CLASS_UPDATE: ClassVar["ClusterEvent"]
    CSI_NODE_ADD: ClassVar["ClusterEvent"]
    CSI_NODE_UPDATE: ClassVar["ClusterEvent"]
    CSI_DRIVER_UPDATE: ClassVar["ClusterEvent"]
    CSI_STORAGE_CAPACITY_ADD: ClassVar["ClusterEvent"]
    CSI_STORAGE_CAPACITY_UPDATE: ClassVar["ClusterEvent"]
    VOLUME_ATTACHMENT_DELETE: ClassVar["ClusterEvent"]
    UPDATE_POD_GENERATED_RESOURCE_CLAIM: ClassVar["ClusterEvent"]
    RESOURCE_CLAIM_ADD: ClassVar["ClusterEvent"]
    RESOURCE_CLAIM_UPDATE: ClassVar["ClusterEvent"]
    RESOURCE_CLAIM_DELETE: ClassVar["ClusterEvent"]
    RESOURCE_SLICE_ADD: ClassVar["ClusterEvent"]
    RESOURCE_SLICE_UPDATE: ClassVar["ClusterEvent"]
    DEVICE_CLASS_ADD: ClassVar["ClusterEvent"]
    DEVICE_CLASS_UPDATE: ClassVar["ClusterEvent"]

    resource: str
    action: Action
    custom_label: str = ""

    @property
    def label(self) -> str:
        """The name in metrics and journal."""
        return self.custom_label or self.resource + _action_name(self.action)

    @property
    def is_wildcard(self) -> bool:
        return self.resource == WILDCARD and self.action == Action.ALL

    def covers(self, incoming: "ClusterEvent") -> bool:
        """Whether this registration covers an incoming event.

        A general Update (all bits) is covered only by registrations of all update bits, so that a
        plugin that registered one aspect is not called for unspecified changes.
        """
        if self.is_wildcard:
            return True
        same = self.resource in (WILDCARD, incoming.resource) or (
            self.resource == POD and incoming.resource in (ASSIGNED_POD, UNSCHEDULABLE_POD)
        )
        return same and bool(self.action & incoming.action) and incoming.action <= self.action


@cache
def _action_name(action: Action) -> str:
    if action.name is None or "|" in action.name:
        return "".join(_action_name(bit) for bit in Action if bit & action and bit.bit_count() == 1)
    return action.name.title().replace("_", "")


ClusterEvent.NODE_ADD = ClusterEvent(NODE, Action.ADD)
ClusterEvent.NODE_DELETE = ClusterEvent(NODE, Action.DELETE)
ClusterEvent.UPDATE_NODE_ALLOCATABLE = ClusterEvent(NODE, Action.UPDATE_NODE_ALLOCATABLE)
ClusterEvent.UPDATE_NODE_LABEL = ClusterEvent(NODE, Action.UPDATE_NODE_LABEL)
ClusterEvent.UPDATE_NODE_TAINT = ClusterEvent(NODE, Action.UPDATE_NODE_TAINT)
ClusterEvent.UPDATE_NODE_DECLARED_FEATURE = ClusterEvent(NODE, Action.UPDATE_NODE_DECLARED_FEATURE)
ClusterEvent.POD_ADD = ClusterEvent(POD, Action.ADD)
ClusterEvent.POD_DELETE = ClusterEvent(POD, Action.DELETE)
ClusterEvent.POD_UPDATE = ClusterEvent(POD, Action.UPDATE)
ClusterEvent.UPDATE_POD_LABEL = ClusterEvent(POD, Action.UPDATE_POD_LABEL)
ClusterEvent.UPDATE_POD_SCALE_DOWN = ClusterEvent(POD, Action.UPDATE_POD_SCALE_DOWN)
ClusterEvent.UPDATE_POD_TOLERATION = ClusterEvent(POD, Action.UPDATE_POD_TOLERATION)
ClusterEvent.POD_GATES_ELIMINATED = ClusterEvent(POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
ClusterEvent.VOLUME_ADD = ClusterEvent(PERSISTENT_VOLUME, Action.ADD)
ClusterEvent.VOLUME_UPDATE = ClusterEvent(PERSISTENT_VOLUME, Action.UPDATE)
ClusterEvent.CLAIM_ADD = ClusterEvent(PERSISTENT_VOLUME_CLAIM, Action.ADD)
ClusterEvent.CLAIM_UPDATE = ClusterEvent(PERSISTENT_VOLUME_CLAIM, Action.UPDATE)
ClusterEvent.STORAGE_CLASS_ADD = ClusterEvent(STORAGE_CLASS, Action.ADD)
ClusterEvent.STORAGE_CLASS_UPDATE = ClusterEvent(STORAGE_CLASS, Action.UPDATE)
ClusterEvent.CSI_NODE_ADD = ClusterEvent(CSI_NODE, Action.ADD)
ClusterEvent.CSI_NODE_UPDATE = ClusterEvent(CSI_NODE, Action.UPDATE)
ClusterEvent.CSI_DRIVER_UPDATE = ClusterEvent(CSI_DRIVER, Action.UPDATE)
ClusterEvent.CSI_STORAGE_CAPACITY_ADD = ClusterEvent(CSI_STORAGE_CAPACITY, Action.ADD)
ClusterEvent.CSI_STORAGE_CAPACITY_UPDATE = ClusterEvent(CSI_STORAGE_CAPACITY, Action.UPDATE)
ClusterEvent.VOLUME_ATTACHMENT_DELETE = ClusterEvent(VOLUME_ATTACHMENT, Action.DELETE)
ClusterEvent.UPDATE_POD_GENERATED_RESOURCE_CLAIM = ClusterEvent(
    POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM
)
ClusterEvent.RESOURCE_CLAIM_ADD = ClusterEvent(RESOURCE_CLAIM, Action.ADD)
ClusterEvent.RESOURCE_CLAIM_UPDATE = ClusterEvent(RESOURCE_CLAIM, Action.UPDATE)
ClusterEvent.RESOURCE_CLAIM_DELETE = ClusterEvent(RESOURCE_CLAIM, Action.DELETE)
ClusterEvent.RESOURCE_SLICE_ADD = ClusterEvent(RESOURCE_SLICE, Action.ADD)
ClusterEvent.RESOURCE_SLICE_UPDATE = ClusterEvent(RESOURCE_SLICE, Action.UPDATE)
ClusterEvent.DEVICE_CLASS_ADD = ClusterEvent(DEVICE_CLASS, Action.ADD)
ClusterEvent.DEVICE_CLASS_UPDATE = ClusterEvent(DEVICE_CLASS, Action.UPDATE)

ASSIGNED_POD_ADD = ClusterEvent(ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETE = ClusterEvent(ASSIGNED_POD, Action.DELETE)
UNSCHEDULABLE_POD_ADD = ClusterEvent(UNSCHEDULABLE_POD, Action.ADD)
UNSCHEDULABLE_POD_UPDATE = ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE)

FORCE_ACTIVATE = ClusterEvent(WILDCARD, Action.ALL, "ForceActivate")
UNSCHEDULABLE_TIMEOUT = ClusterEvent(WILDCARD, Action.ALL, "UnschedulableTimeout")

SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF = "PopFromBackoffQ"


def resource_of(obj: KubeObject) -> str:
    """The name of an object's kind in a ClusterEvent."""
    kind = KINDS[type(obj).__name__]
    return f"{kind.group}/{kind.name}" if kind.group else kind.name


# Queueing hints: would this change make that pod schedulable?


class Hint(Enum):
    """Whether a change makes it worth scheduling a pod again."""

    QUEUE = "Queue"
    QUEUE_SKIP = "QueueSkip"


# pod, old object, new object -> hint; old is None for an add, new is None for a delete.
HintFunction = Callable[[Pod, Any, Any], Hint]


@dataclass(frozen=True, slots=True)
class TargetedHint:
    """A hint function for changes that concern a few pods: only those are asked.

    `pods(old, new)` returns the keys of the pods that a change may help; None: it may help any.
    Without it, every change of an object that belongs to one pod would visit all waiting pods.
    """

    hint: HintFunction
    pods: Callable[[Any, Any], tuple[str, ...] | None]

    def __call__(self, pod: Pod, old: Any, new: Any) -> Hint:
        return self.hint(pod, old, new)


# None stands for "always worth it".
Events = Mapping[ClusterEvent, HintFunction | None]


def always(pod: Pod, old: Any, new: Any) -> Hint:
    """The hint of a plugin that registers an event without a function."""
    return Hint.QUEUE


# The events of a plugin without `events_to_register`.
EVERYTHING: dict[ClusterEvent, HintFunction | None] = {
    ClusterEvent(resource, Action.ALL): None
    for resource in (
        *(POD, NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM),
        *(CSI_NODE, CSI_DRIVER, CSI_STORAGE_CAPACITY, STORAGE_CLASS),
        *(RESOURCE_CLAIM, DEVICE_CLASS),
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
        self.registrations: list[Registration] = []
        self._covering: dict[ClusterEvent, list[Registration]] = {}
        for plugin, registered in by_plugin.items():
            self.add(plugin, _with_taints(registered))

    def covering(self, incoming: ClusterEvent) -> list[Registration]:
        """The registrations that cover an event."""
        found = self._covering.get(incoming)
        if found is None:
            found = [r for r in self.registrations if r.event.covers(incoming)]
            self._covering[incoming] = found
        return found

    def add(self, plugin: str, registered: Events) -> None:
        """Register the events of a plugin, or of something else, as an extender."""
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
