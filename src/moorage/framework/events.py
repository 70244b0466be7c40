"""ClusterEvent: the kinds of change that may make a pod schedulable, and hints for them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, IntFlag
from functools import cache
from typing import Any

from msgspec import Struct

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
POD_GROUP = "scheduling.k8s.io/PodGroup"
QUEUE = "scheduling.moorage.dev/Queue"
ELASTIC_QUOTA = "scheduling.x-k8s.io/ElasticQuota"
WILDCARD = "*"


@dataclass(frozen=True, slots=True)
class Usual:
    """Stands for a ClusterEvent in the body of that class, until the class is complete."""

    resource: str
    action: Action

    def __get__(self, instance: object, owner: type["ClusterEvent"]) -> "ClusterEvent":
        return owner(self.resource, self.action)


class ClusterEvent(Struct, frozen=True):
    """A change of a resource; some have a label of their own. The usual ones are attributes."""

    NODE_ADD = Usual(NODE, Action.ADD)
    NODE_DELETE = Usual(NODE, Action.DELETE)
    UPDATE_NODE_ALLOCATABLE = Usual(NODE, Action.UPDATE_NODE_ALLOCATABLE)
    UPDATE_NODE_LABEL = Usual(NODE, Action.UPDATE_NODE_LABEL)
    UPDATE_NODE_TAINT = Usual(NODE, Action.UPDATE_NODE_TAINT)
    UPDATE_NODE_DECLARED_FEATURE = Usual(NODE, Action.UPDATE_NODE_DECLARED_FEATURE)
    POD_ADD = Usual(POD, Action.ADD)
    POD_DELETE = Usual(POD, Action.DELETE)
    POD_UPDATE = Usual(POD, Action.UPDATE)
    UPDATE_POD_LABEL = Usual(POD, Action.UPDATE_POD_LABEL)
    UPDATE_POD_SCALE_DOWN = Usual(POD, Action.UPDATE_POD_SCALE_DOWN)
    UPDATE_POD_TOLERATION = Usual(POD, Action.UPDATE_POD_TOLERATION)
    POD_GATES_ELIMINATED = Usual(POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    VOLUME_ADD = Usual(PERSISTENT_VOLUME, Action.ADD)
    VOLUME_UPDATE = Usual(PERSISTENT_VOLUME, Action.UPDATE)
    CLAIM_ADD = Usual(PERSISTENT_VOLUME_CLAIM, Action.ADD)
    CLAIM_UPDATE = Usual(PERSISTENT_VOLUME_CLAIM, Action.UPDATE)
    STORAGE_CLASS_ADD = Usual(STORAGE_CLASS, Action.ADD)
    STORAGE_CLASS_UPDATE = Usual(STORAGE_CLASS, Action.UPDATE)
    CSI_NODE_ADD = Usual(CSI_NODE, Action.ADD)
    CSI_NODE_UPDATE = Usual(CSI_NODE, Action.UPDATE)
    CSI_DRIVER_UPDATE = Usual(CSI_DRIVER, Action.UPDATE)
    CSI_STORAGE_CAPACITY_ADD = Usual(CSI_STORAGE_CAPACITY, Action.ADD)
    CSI_STORAGE_CAPACITY_UPDATE = Usual(CSI_STORAGE_CAPACITY, Action.UPDATE)
    VOLUME_ATTACHMENT_DELETE = Usual(VOLUME_ATTACHMENT, Action.DELETE)
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = Usual(POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    RESOURCE_CLAIM_ADD = Usual(RESOURCE_CLAIM, Action.ADD)
    RESOURCE_CLAIM_UPDATE = Usual(RESOURCE_CLAIM, Action.UPDATE)
    RESOURCE_CLAIM_DELETE = Usual(RESOURCE_CLAIM, Action.DELETE)
    RESOURCE_SLICE_ADD = Usual(RESOURCE_SLICE, Action.ADD)
    RESOURCE_SLICE_UPDATE = Usual(RESOURCE_SLICE, Action.UPDATE)
    DEVICE_CLASS_ADD = Usual(DEVICE_CLASS, Action.ADD)
    DEVICE_CLASS_UPDATE = Usual(DEVICE_CLASS, Action.UPDATE)
    POD_GROUP_ADD = Usual(POD_GROUP, Action.ADD)
    QUEUE_CHANGE = Usual(QUEUE, Action.ALL)
    ELASTIC_QUOTA_CHANGE = Usual(ELASTIC_QUOTA, Action.ALL)
    UNSCHEDULABLE_POD_ADD = Usual(UNSCHEDULABLE_POD, Action.ADD)

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


# Each is made once.
for _name in [name for name, value in vars(ClusterEvent).items() if isinstance(value, Usual)]:
    setattr(ClusterEvent, _name, getattr(ClusterEvent, _name))


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
    `aliases(pod)` returns other names under which `pods` may ask for a pod, such as those of
    objects that it uses.
    """

    hint: HintFunction
    pods: Callable[[Any, Any], tuple[str, ...] | None]
    aliases: Callable[[Pod], tuple[str, ...]] | None = None

    def __call__(self, pod: Pod, old: Any, new: Any) -> Hint:
        return self.hint(pod, old, new)


# None stands for "always worth it".
Events = Mapping[ClusterEvent, HintFunction | None]


# The events of a plugin without `events_to_register`.
EVERYTHING: dict[ClusterEvent, HintFunction | None] = {
    ClusterEvent(resource, Action.ALL): None
    for resource in (
        *(POD, NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM),
        *(CSI_NODE, CSI_DRIVER, CSI_STORAGE_CAPACITY, STORAGE_CLASS),
        *(RESOURCE_CLAIM, DEVICE_CLASS, POD_GROUP),
    )
}
