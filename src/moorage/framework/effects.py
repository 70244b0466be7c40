"""Requests: what may be asked of the world. The core hands each on under a ticket."""

from msgspec import UNSET, Struct, UnsetType

from moorage.api.meta import Condition, NodeName
from moorage.api.pod import Pod


class PodRef(Struct, frozen=True, gc=False):
    """A pod by name and UID, so that a namesake is never mistaken for it."""

    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @classmethod
    def of(cls, pod: Pod) -> "PodRef":
        return cls(pod.namespace, pod.name, pod.uid)


class BindPod(Struct, frozen=True, gc=False, tag_field="request", tag=True):
    """Bind a pod to a node; if an extender is named, by asking that one to do it."""

    pod: PodRef
    node: NodeName
    extender: str = ""


class PatchPodStatus(Struct, frozen=True, gc=False, tag_field="request", tag=True):
    """Set a condition of a pod, its nominated node (empty clears it), or both."""

    pod: PodRef
    condition: Condition | None = None
    nominated_node_name: str | UnsetType = UNSET


class EmitEvent(Struct, frozen=True, gc=False, tag_field="request", tag=True):
    """Write an Event that operators read; nobody waits for it."""

    pod: PodRef
    type: str
    reason: str
    action: str
    note: str
    reporter: str


class DeletePod(Struct, frozen=True, gc=False, tag_field="request", tag=True):
    """Delete a pod, with its own grace period."""

    pod: PodRef


class LookUpPod(Struct, frozen=True, gc=False, tag_field="request", tag=True):
    """Read a pod as the API server has it now."""

    pod: PodRef


Request = BindPod | PatchPodStatus | EmitEvent | DeletePod | LookUpPod
