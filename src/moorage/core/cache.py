"""Cache: nodes, and which pod is on which node, confirmed or assumed.

It is the only writer of the NodeTable.

Pods are known by UID. A pod that is observed on another node than assumed is moved there. A pod may
be on a node that is not known yet, or not any more: the table keeps its row. An assumed pod whose
binding was reported done, and which is not observed on its node in time, is in `unconfirmed`.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct, structs

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.core.transitions import TransitionTable
from moorage.errors import MoorageError
from moorage.nodes.table import NodeTable
from moorage.nodes.template import PodTemplate, Templates, have_same_usage

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


class CacheError(MoorageError):
    """One of CACHE_ERRORS."""


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


class Cache:
    """See the module."""

    def __init__(self, table: NodeTable, templates: Templates) -> None:
        self._table = table
        self._templates = templates
        # All pods on nodes, by UID.
        self.pods: dict[str, Cached] = {}
        # When the binding of each pod in state BOUND was reported done, oldest first.
        self._unconfirmed: dict[str, float] = {}
        self.assumed_count = 0

    def get(self, uid: str) -> Cached | None:
        """A pod with its node."""
        return self.pods.get(uid)

    def is_assumed(self, uid: str) -> bool:
        cached = self.pods.get(uid)
        return cached is not None and cached.state != ADDED

    def __contains__(self, uid: str) -> bool:
        return uid in self.pods

    def __len__(self) -> int:
        return len(self.pods)

    def __iter__(self) -> Iterator[Cached]:
        return iter(self.pods.values())

    def assume(self, pod: Pod, node: str, template: PodTemplate) -> Pod:
        """Add a pod to a node before it is observed there; returns the pod with its node name."""
        uid = pod.metadata.uid
        if uid in self.pods:
            raise _error(self.pods[uid].state, ASSUME, pod)
        placed = structs.replace(pod, spec=structs.replace(pod.spec, node_name=node))
        self._table.add_pod(node, placed, template.usage)
        self.pods[uid] = Cached(placed, node, template, CACHE_TRANSITIONS[ABSENT, ASSUME])
        self.assumed_count += 1
        return placed

    def finish_binding(self, uid: str, now: float) -> None:
        """The binding was reported done; from here on the pod has to be observed in time."""
        cached = self.pods.get(uid)
        if cached is not None:
            cached.state = CACHE_TRANSITIONS[cached.state, FINISH_BINDING]
            if cached.state == BOUND:
                cached.bound_at = self._unconfirmed[uid] = now

    def forget(self, uid: str) -> Cached | None:
        """Remove an assumed pod from its node; None if it is not known (any more)."""
        return self._drop(self.pods.get(uid), FORGET)

    def add(self, pod: Pod) -> Pod | None:
        """A pod is observed on a node; returns the pod that was assumed, if it was."""
        cached = self.pods.get(pod.metadata.uid)
        assumed = None if cached is None else cached.pod
        self._place(pod, cached, ADD)
        return assumed

    def add_all(self, pods: Sequence[Pod]) -> None:
        """Pods are observed on nodes, none of which was assumed: all are added, or none."""
        templates, state = self._templates.of_each(pods), CACHE_TRANSITIONS[ABSENT, ADD]
        known, new = self.pods, dict[str, Cached]()
        for pod, template in zip(pods, templates, strict=True):
            uid = pod.metadata.uid
            if uid in known or uid in new:
                raise _error(state, ADD, pod)
            new[uid] = Cached(pod, pod.spec.node_name, template, state)
        self._table.add_pods(pods, [template.usage for template in templates])
        known.update(new)

    def update(self, pod: Pod) -> bool:
        """A pod that is on a node changed; returns whether it is equal in all that templates read.

        It most often is: a condition changed, or the pod is terminating.
        """
        before = self.pods.get(pod.metadata.uid)
        if before is not None and before.state == ADDED and before.node == pod.spec.node_name:
            return self._replace(pod, before)
        return self._place(pod, before, UPDATE)

    def remove(self, uid: str) -> Cached | None:
        """A pod is gone from its node; None if it is not known."""
        return self._drop(self.pods.get(uid), REMOVE)

    def reserve(self, nodes: int) -> None:
        """Make room for so many nodes at once."""
        self._table.reserve(nodes)

    def set_node(self, node: Node) -> None:
        """Add a node, or replace its object."""
        self._table.set_node(node)

    def remove_node(self, name: str) -> None:
        """Remove a node; its pods stay until they are gone."""
        self._table.remove_node(name)

    def unconfirmed(self, now: float, after_seconds: float = 0.0) -> Iterator[Cached]:
        """Assumed pods whose binding was reported done so long ago, oldest first."""
        for uid, bound_at in self._unconfirmed.items():
            # Computed as the deadline is, so that the two agree to the last bit.
            if bound_at + after_seconds > now:
                return
            yield self.pods[uid]

    def _place(self, pod: Pod, before: Cached | None, event: str) -> bool:
        known = ABSENT if before is None else before.state
        state = CACHE_TRANSITIONS.get((known, event))
        if state is None:
            raise _error(known, event, pod)
        if before is None or before.node != pod.spec.node_name:
            if before is not None:
                self._drop(before, REMOVE)
            self._put(pod, state)
            return False
        is_equal = self._replace(pod, before)
        if known != ADDED:
            self._not_assumed(before)
            before.state = state
        return is_equal

    def _put(self, pod: Pod, state: str) -> None:
        """Add a pod to its node."""
        node, template = pod.spec.node_name, self._templates.of(pod)
        self._table.add_pod(node, pod, template.usage)
        self.pods[pod.metadata.uid] = Cached(pod, node, template, state)

    def _replace(self, pod: Pod, before: Cached) -> bool:
        """Replace a pod on its node: when a binding is confirmed, most often nothing changes."""
        was, meta, was_meta = before.pod, pod.metadata, before.pod.metadata
        # Whether all that a template reads is the same, at first apart from the status.
        alike = (
            pod.spec == was.spec
            and meta.labels == was_meta.labels
            and meta.annotations == was_meta.annotations
        )
        before.pod = pod
        if alike and (pod.status is was.status or have_same_usage(pod, was)):
            self._table.replace_pod(before.node, pod, before.template.usage, alike=True)
            return True
        usage, before.template = before.template.usage, self._templates.of(pod)
        # With the same spec and labels, only a resize makes another usage.
        alike = alike and before.template.usage.has_same_requests(usage)
        self._table.replace_pod(before.node, pod, before.template.usage, alike=alike)
        return False

    def _drop(self, cached: Cached | None, event: str) -> Cached | None:
        if cached is None:
            return None
        uid = cached.pod.metadata.uid
        if (cached.state, event) in CACHE_ERRORS:
            raise _error(cached.state, event, cached.pod)
        assert CACHE_TRANSITIONS[cached.state, event] == ABSENT
        self._table.remove_pod(cached.node, uid)
        if cached.state != ADDED:
            self._not_assumed(cached)
        del self.pods[uid]
        return cached

    def _not_assumed(self, cached: Cached) -> None:
        """Stop waiting for the confirmation of an assumed pod."""
        self._unconfirmed.pop(cached.pod.metadata.uid, None)
        self.assumed_count -= 1


def _error(state: str, event: str, pod: Pod) -> CacheError:
    return CacheError(CACHE_ERRORS[state, event].format(f"{pod.uid}({pod.key})"))
