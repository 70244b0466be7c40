"""Cache: which pod is on which node, for certain or assumed; the only writer of the NodeTable.

    state      assume    finish_binding   add (confirm)   update   forget    remove
    unknown    assumed   -                added           error    -         -
    assumed    error     assumed, dated   added           error    unknown   unknown
    added      error     -                error           added    error     unknown

Pods are known by UID. A pod that turns up on another node than assumed is moved there. A pod may
be on a node that is not known yet, or not any more: the table keeps its row. An assumed pod whose
binding was reported done, and which the world does not show in time, comes up in `unconfirmed`.
"""

from collections.abc import Iterator

from msgspec import Struct, structs

from moorage.api.pod import Pod
from moorage.errors import MoorageError
from moorage.framework.template import RESIZE_PENDING, PodTemplate, Templates
from moorage.nodes.table import NodeTable


class CacheError(MoorageError):
    """A step that the table above does not have."""


class Cached(Struct, gc=False):
    """A pod that has a place."""

    pod: Pod
    node: str
    template: PodTemplate
    assumed: bool
    bound_at: float | None = None  # When its binding was reported done; None before that.


class Cache:
    """See the module."""

    def __init__(self, table: NodeTable, templates: Templates) -> None:
        self._table = table
        self._templates = templates
        self._pods: dict[str, Cached] = {}
        # Reported bound and not confirmed yet, in the order in which they were reported.
        self._unconfirmed: dict[str, float] = {}
        self.assumed_count = 0

    def get(self, uid: str) -> Cached | None:
        """What is known of a pod."""
        return self._pods.get(uid)

    def is_assumed(self, uid: str) -> bool:
        cached = self._pods.get(uid)
        return cached is not None and cached.assumed

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[Cached]:
        return iter(self._pods.values())

    def assume(self, pod: Pod, node: str, template: PodTemplate) -> Pod:
        """Book a pod on a node before the world knows; returns the pod as it is there."""
        uid = pod.metadata.uid
        if uid in self._pods:
            raise CacheError(f"pod {uid}({pod.key}) is in the cache, so can't be assumed")
        placed = structs.replace(pod, spec=structs.replace(pod.spec, node_name=node))
        self._table.add_pod(node, placed, template.usage)
        self._pods[uid] = Cached(placed, node, template, assumed=True)
        self.assumed_count += 1
        return placed

    def finish_binding(self, uid: str, now: float) -> None:
        """The binding was reported done; from here on the world has to show it in time."""
        cached = self._pods.get(uid)
        if cached is not None and cached.assumed:
            cached.bound_at = now
            self._unconfirmed[uid] = now

    def forget(self, uid: str) -> Cached | None:
        """Give an assumed pod's room back; None if it was not known (any more)."""
        cached = self._pods.get(uid)
        if cached is None:
            return None
        if not cached.assumed:
            who = f"pod {uid}({cached.pod.key})"
            raise CacheError(f"{who} wasn't assumed so cannot be forgotten")
        self._drop(cached)
        return cached

    def add(self, pod: Pod) -> bool:
        """The world shows a pod on a node; True if that confirms what was assumed."""
        cached = self._pods.get(pod.metadata.uid)
        if cached is not None and not cached.assumed:
            raise CacheError(f"pod {pod.uid}({pod.key}) was already in added state")
        self._place(pod, cached)
        return cached is not None and cached.node == pod.spec.node_name

    def update(self, pod: Pod) -> None:
        """A pod that is on a node changed."""
        cached = self._pods.get(pod.uid)
        if cached is None:
            who = f"pod {pod.uid}({pod.key})"
            raise CacheError(f"{who} is not added to scheduler cache, so cannot be updated")
        if cached.assumed:
            raise CacheError(f"assumed pod {pod.uid}({pod.key}) should not be updated")
        self._place(pod, cached)

    def remove(self, uid: str) -> Cached | None:
        """A pod is gone from its node; None if it was not known."""
        cached = self._pods.get(uid)
        if cached is not None:
            self._drop(cached)
        return cached

    def unconfirmed(self, now: float, after_seconds: float = 0.0) -> Iterator[Cached]:
        """Assumed pods whose binding was reported done so long ago, oldest first."""
        for uid, bound_at in self._unconfirmed.items():
            # Added up as the deadline is, so that the two agree to the last bit.
            if bound_at + after_seconds > now:
                return
            yield self._pods[uid]

    def _place(self, pod: Pod, before: Cached | None) -> None:
        node = pod.spec.node_name
        if before is None or before.node != node:
            if before is not None:
                self._drop(before)
            template = self._templates.of(pod)
            self._table.add_pod(node, pod, template.usage)
            self._pods[pod.metadata.uid] = Cached(pod, node, template, assumed=False)
            return
        # In place: in the usual case of a binding confirmed, nothing else changes.
        says_the_same, template = _says_the_same(pod, before.pod), before.template
        if not (says_the_same and _takes_the_same(pod, before.pod)):
            template = self._templates.of(pod)
        usage = template.usage
        alike = says_the_same and usage == before.template.usage
        self._table.replace_pod(node, pod, usage, alike=alike)
        self._settle(before)
        before.pod, before.template, before.assumed = pod, template, False

    def _drop(self, cached: Cached) -> None:
        uid = cached.pod.uid
        self._table.remove_pod(cached.node, uid)
        self._settle(cached)
        del self._pods[uid]

    def _settle(self, cached: Cached) -> None:
        """Nobody waits any more to see whether an assumed pod is where we think."""
        if cached.assumed:
            self._unconfirmed.pop(cached.pod.metadata.uid, None)
            self.assumed_count -= 1


def _says_the_same(pod: Pod, other: Pod) -> bool:
    """Whether a pod's own words are the same."""
    meta, was = pod.metadata, other.metadata
    return (
        pod.spec == other.spec and meta.labels == was.labels and meta.annotations == was.annotations
    )


def _takes_the_same(pod: Pod, other: Pod) -> bool:
    """Whether its status tells nothing new of what a template is made of; quicker than making one.

    Together with the pod's own words, that is.
    """
    status, was = pod.status, other.status
    return status is was or (
        status.container_statuses == was.container_statuses
        and status.init_container_statuses == was.init_container_statuses
        and status.resources == was.resources
        and status.allocated_resources == was.allocated_resources
        and (
            status.conditions == was.conditions
            or pod.condition(RESIZE_PENDING) == other.condition(RESIZE_PENDING)
        )
    )
