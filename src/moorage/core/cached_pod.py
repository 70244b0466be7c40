"""Cached: a pod in the cache, and the states that it can be in."""

from msgspec import Struct

from moorage.api.pod import Pod
from moorage.core.transitions import TransitionTable
from moorage.nodes.template import PodTemplate

ABSENT = "absent"
ASSUMED = "assumed"
BOUND = "bound"
ADDED = "added"

ASSUME = "assume"
FINISH_BINDING = "finish_binding"
ADD = "add"
UPDATE = "update"
FORGET = "forget"
REMOVE = "remove"

CACHE_TRANSITIONS = TransitionTable(
    "cache",
    (
        (ABSENT, ASSUME, ASSUMED, "a node is selected for the pod"),
        (ABSENT, ADD, ADDED, "the pod is observed on a node"),
        (ABSENT, FINISH_BINDING, ABSENT, "the pod was deleted before its binding was done"),
        (ABSENT, FORGET, ABSENT, "the pod was deleted meanwhile"),
        (ABSENT, REMOVE, ABSENT, "the pod was deleted meanwhile"),
        (ASSUMED, FINISH_BINDING, BOUND, "the binding is reported done"),
        (ASSUMED, ADD, ADDED, "the pod is observed on a node before the binding is reported done"),
        (ASSUMED, FORGET, ABSENT, "the binding failed, or the pod is deleted"),
        (ASSUMED, REMOVE, ABSENT, "the pod is deleted"),
        (BOUND, ADD, ADDED, "the pod is observed on a node: confirmed"),
        (BOUND, FORGET, ABSENT, "the pod is not on its node after all: expired; or deleted"),
        (BOUND, REMOVE, ABSENT, "the pod is deleted"),
        (ADDED, FINISH_BINDING, ADDED, "the pod was observed before its binding was reported done"),
        (ADDED, UPDATE, ADDED, "the pod changed, or moved to another node"),
        (ADDED, REMOVE, ABSENT, "the pod is deleted, or has ended"),
    ),
)
# The errors of other events, in kube-scheduler's words.
CACHE_ERRORS = {
    (ASSUMED, ASSUME): "pod {} is in the cache, so can't be assumed",
    (BOUND, ASSUME): "pod {} is in the cache, so can't be assumed",
    (ADDED, ASSUME): "pod {} is in the cache, so can't be assumed",
    (ADDED, ADD): "pod {} was already in added state",
    (ABSENT, UPDATE): "pod {} is not added to scheduler cache, so cannot be updated",
    (ASSUMED, UPDATE): "assumed pod {} should not be updated",
    (BOUND, UPDATE): "assumed pod {} should not be updated",
    (ADDED, FORGET): "pod {} wasn't assumed so cannot be forgotten",
}


class Cached(Struct, gc=False):
    """A pod on a node."""

    pod: Pod
    node: str
    template: PodTemplate
    state: str
    bound_at: float | None = None  # When its binding was reported done; None before that.

    @property
    def assumed(self) -> bool:
        return self.state != ADDED
