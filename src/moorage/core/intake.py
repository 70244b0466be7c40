"""Intake: what an observation does to the cache and the queue.

    seen                              done
    pod with a node, new              cache it, wake those who wait for such a pod
    pod without a node, new, ours     queue it
    pod that got a node               cache it, wake, take it out of the queue
    pod on a node, changed            cache the new version, wake by what changed
    pod without a node, changed       tell the queue; a promise taken back wakes others
    pod gone, or ended                out of cache and queue, wake those who wait for room
    node new, changed, gone           into the table, wake by what changed
    anything else                     kept for plugins to read, wake by kind and action

Observations may be late, doubled or stale: an older version than the one known is dropped.
"""

from collections.abc import Callable, Mapping
from typing import Any

from moorage.api.kinds import KINDS
from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.core.cache import Cache
from moorage.core.journal import Confirmed, Gone, Journal
from moorage.core.nominator import Nominator
from moorage.core.observations import Added, Deleted, Observation, Updated
from moorage.core.queue import SchedulingQueue
from moorage.framework import events
from moorage.framework.cluster import Cluster
from moorage.framework.events import Action, ClusterEvent
from moorage.framework.template import PodTemplate

# So many deleted pods are remembered, lest a late observation brings one back to life.
MOST_GONE = 10_000
NO_VERSION = -1
SEEN = (Updated, Added)


class Intake:
    """See the module; `pods`, by namespace/name, are those that were seen and are not gone."""

    def __init__(
        self,
        pods: dict[str, Pod],
        cluster: Cluster,
        cache: Cache,
        queue: SchedulingQueue,
        nominator: Nominator,
        journal: Journal,
        is_ours: Callable[[Pod], bool],
        template_of: Callable[[Pod], PodTemplate],
        assumed_deleted: Callable[[Pod, float], None],
        leaves: Callable[[Pod, float], None],
    ) -> None:
        self.pods = pods
        self._cluster = cluster
        self._cache = cache
        self._queue = queue
        self._nominator = nominator
        self._journal = journal
        self._is_ours = is_ours
        self._template_of = template_of
        self._assumed_deleted = assumed_deleted
        self._leaves = leaves
        self._gone: dict[str, int] = {}  # UID -> version at which it was last seen

    def observe(self, observation: Observation, now: float) -> None:
        """Take in what the world tells."""
        if isinstance(observation, SEEN):
            self._seen(observation.obj, now)
        elif isinstance(observation, Deleted):
            self._vanished(observation.obj, now)
        else:
            self._listed(observation.kind, observation.objects, now)

    def _listed(self, kind: type[Any], objects: tuple[KubeObject, ...], now: float) -> None:
        """The full truth about a kind: what is missing from it is gone."""
        known: Mapping[str, KubeObject]
        if kind is Pod:
            known = self.pods
        elif kind is Node:
            known = {node.name: node for node in self._cluster.table.nodes if node is not None}
        else:
            known = {obj.key: obj for obj in self._cluster.all(kind)}
        there = {obj.key for obj in objects}
        for key, obj in list(known.items()):
            if key not in there:
                self._vanished(obj, now)
        for obj in objects:
            self._seen(obj, now)

    def _seen(self, obj: KubeObject, now: float) -> None:
        if isinstance(obj, Pod):
            self._pod_seen(obj, now)
        elif isinstance(obj, Node):
            self._node_seen(obj, now)
        else:
            self._object_seen(obj, now)

    def _vanished(self, obj: KubeObject, now: float) -> None:
        match obj:
            case Pod():
                known = self.pods.get(obj.key)
                self._remember_gone(obj)
                if known is not None and known.uid == obj.uid:
                    self._pod_gone(known, now)
            case Node():
                self._node_gone(obj, now)
            case _:
                self._object_gone(obj, now)

    # Pods

    def _pod_seen(self, new: Pod, now: float) -> None:
        key, meta = new.key, new.metadata
        old = self.pods.get(key)
        if meta.uid in self._gone and self._is_gone(new):
            return
        if old is not None and old is not new:
            if old.metadata.uid != meta.uid:
                self._pod_gone(old, now)
                old = None
            elif NO_VERSION < version(new) < version(old):
                return
            elif old.spec.node_name and not new.spec.node_name:
                return  # A pod never loses its node, so this is an older version all the same.
        if new.is_terminal:
            # It holds no room any more, whatever else may still become of the object.
            self._remember_gone(new)
            if old is not None:
                self._pod_gone(old, now)
            return
        self.pods[key] = new
        if meta.deletion_timestamp is not None:
            self._leaves(new, now)
        if old is None:
            self._pod_new(new, now)
        elif old.spec.node_name:
            self._assigned_changed(old, new, now)
        elif new.spec.node_name:
            self._assigned(new, now)
            if self._is_ours(new):
                self._queue.delete(old)
        elif self._is_ours(new) and old != new:
            self._unassigned_changed(old, new, now)

    def _pod_new(self, pod: Pod, now: float) -> None:
        if pod.node_name:
            self._assigned(pod, now)
        elif self._is_ours(pod) and not self._cache.is_assumed(pod.uid):
            self._queue.add(pod, now, self._template_of(pod))

    def _assigned(self, pod: Pod, now: float) -> None:
        """A pod shows up on a node."""
        self._cache.add(pod)
        self._nominator.delete(pod)
        uid, node = pod.metadata.uid, pod.spec.node_name
        self._journal.add(Confirmed(at=now, pod=pod.key, uid=uid, node=node))
        self._queue.move_all(events.ASSIGNED_POD_ADD, None, pod, now)

    def _assigned_changed(self, old: Pod, new: Pod, now: float) -> None:
        self._cache.update(new)
        for event in events.pod_update(old, new):
            self._queue.move_all(event, old, new, now)

    def _unassigned_changed(self, old: Pod, new: Pod, now: float) -> None:
        if self._cache.is_assumed(new.uid):
            if new.is_terminating and not old.is_terminating:
                self._assumed_deleted(new, now)
            return
        self._queue.update(old, new, now)
        promised = old.status.nominated_node_name
        if promised and promised != new.status.nominated_node_name:
            self._wake_lower(old, now)

    def _pod_gone(self, pod: Pod, now: float) -> None:
        del self.pods[pod.key]
        self._leaves(pod, now)
        self._remember_gone(pod)
        self._journal.add(Gone(at=now, pod=pod.key, uid=pod.uid))
        cached = self._cache.get(pod.uid)
        promised = self._nominator.node_of(pod.uid) or pod.status.nominated_node_name
        if self._is_ours(pod):
            self._queue.delete(pod)
        if cached is not None and cached.assumed:
            self._assumed_deleted(pod, now)
        elif cached is not None:
            self._cache.remove(pod.uid)
            self._queue.move_all(events.ASSIGNED_POD_DELETE, cached.pod, None, now)
        elif promised:
            self._queue.promise_ended(pod, promised, now)

    def _wake_lower(self, pod: Pod, now: float) -> None:
        """Room that was promised to a pod is free for those of no higher priority."""
        self._queue.move_all(
            events.ASSIGNED_POD_DELETE,
            pod,
            None,
            now,
            only=lambda waiting: waiting.priority <= pod.priority,
        )

    def _is_gone(self, pod: Pod) -> bool:
        gone = self._gone.get(pod.metadata.uid)
        return gone is not None and version(pod) <= gone != NO_VERSION

    def _remember_gone(self, pod: Pod) -> None:
        self._gone[pod.uid] = max(version(pod), self._gone.get(pod.uid, NO_VERSION))
        if len(self._gone) > MOST_GONE:
            del self._gone[next(iter(self._gone))]

    # Nodes

    def _node_seen(self, new: Node, now: float) -> None:
        table = self._cluster.table
        old = table.node(new.name)
        if old is not None and is_older(new, old):
            return
        if old is not None and old.uid != new.uid:
            self._node_gone(old, now)
            old = None
        table.set_node(new)
        changes = [ClusterEvent.NODE_ADD] if old is None else events.node_update(old, new)
        for event in changes:
            self._queue.move_all(event, old, new, now)

    def _node_gone(self, node: Node, now: float) -> None:
        old = self._cluster.table.node(node.name)
        if old is not None and old.uid == node.uid:
            self._queue.move_all(ClusterEvent.NODE_DELETE, old, None, now)
            self._cluster.table.remove_node(node.name)

    # Everything else

    def _object_seen(self, new: KubeObject, now: float) -> None:
        old = self._cluster.get(type(new), new.key)
        if old is not None and is_older(new, old):
            return
        self._cluster.put(new)
        action = Action.ADD if old is None else Action.UPDATE
        self._queue.move_all(ClusterEvent(resource_of(new), action), old, new, now)

    def _object_gone(self, obj: KubeObject, now: float) -> None:
        old = self._cluster.get(type(obj), obj.key)
        if old is not None:
            self._cluster.drop(old)
            self._queue.move_all(ClusterEvent(resource_of(old), Action.DELETE), old, None, now)


def resource_of(obj: KubeObject) -> str:
    """A kind as plugins register for it."""
    kind = KINDS[type(obj).__name__]
    return f"{kind.group}/{kind.name}" if kind.group else kind.name


def version(obj: KubeObject) -> int:
    """An object's resource version; those of one server grow, so they can be compared."""
    text = obj.metadata.resource_version
    return int(text) if text.isdecimal() else NO_VERSION


def is_older(new: KubeObject, old: KubeObject) -> bool:
    """Whether a version is older than the one known."""
    return new.uid == old.uid and NO_VERSION < version(new) < version(old)
