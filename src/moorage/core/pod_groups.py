"""Pod groups in the cache and in the queue: who is a member, and when the others are requeued."""

from moorage.api.pod import Pod
from moorage.api.pod_groups import PodGroup, group_key
from moorage.core import updates
from moorage.core.cache import Cache, Cached
from moorage.core.queue import SchedulingQueue
from moorage.framework.cluster import Cluster
from moorage.nodes.pod_groups import PodGroupMembers
from moorage.nodes.table import NodeTable
from moorage.nodes.template import PodTemplate, Templates


class GroupCache(Cache):
    """A cache that also counts the members of pod groups that are on nodes."""

    def __init__(self, table: NodeTable, templates: Templates, groups: PodGroupMembers) -> None:
        super().__init__(table, templates)
        self._groups = groups

    def assume(self, pod: Pod, node: str, template: PodTemplate) -> Pod:
        """Add a pod to a node before it is observed there; returns the pod with its node name."""
        placed = super().assume(pod, node, template)
        if pod.spec.scheduling_group is not None:
            self._groups.place(placed)
        return placed

    def _put(self, pod: Pod, state: str) -> None:
        super()._put(pod, state)
        if pod.spec.scheduling_group is not None:
            self._groups.place(pod)

    def _replace(self, pod: Pod, before: Cached) -> bool:
        is_equal = super()._replace(pod, before)
        if pod.spec.scheduling_group is not None:
            self._groups.place(pod)
        return is_equal

    def _drop(self, cached: Cached | None, event: str) -> Cached | None:
        dropped = super()._drop(cached, event)
        if dropped is not None:
            self._groups.release(dropped.pod)
        return dropped


def requeue_siblings(cluster: Cluster, queue: SchedulingQueue, pod: Pod, now: float) -> None:
    """A new member was observed: requeue the others that wait for it."""
    key = group_key(pod)
    group = cluster.get(PodGroup, key)
    members = cluster.members(key)
    # As long as there are too few, nothing helps. Each arrival would visit all earlier ones.
    if group is None or members is None or len(members) < (group.min_count or 0):
        return
    others = [other for uid, other in members.unscheduled.items() if uid != pod.uid]
    if others:
        queue.move_some(others, updates.UNSCHEDULABLE_POD_ADD, None, pod, now)


def without_quorum(cluster: Cluster, pod: Pod) -> list[Pod]:
    """The pending members that wait for other pods to be created, after one of them is gone."""
    key = group_key(pod)
    group, members = cluster.get(PodGroup, key), cluster.members(key)
    if group is None or members is None or len(members) >= (group.min_count or 0):
        return []
    return list(members.unscheduled.values())
