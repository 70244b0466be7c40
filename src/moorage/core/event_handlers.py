"""EventHandlers: what an observation does to the cache and the queue.

    observed                          cache and queue                requeue pods by
    pod with a node, new              add to cache                   AssignedPodAdd
    pod without a node, new, ours     add to queue
    pod that got a node               add to cache, delete from queue   AssignedPodAdd
    pod on a node, changed            update cache                   what changed
    pod without a node, changed       update queue                   the end of its nomination
    pod gone, or ended                remove from both               AssignedPodDelete
    node new, changed, gone           update table                   what changed
    any other object                  kept for plugins to read       kind and action

Observations may be late, repeated or stale: an older version than the known one is dropped, also
one of an earlier object of the same name.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import TERMINAL_PHASES, Pod
from moorage.api.server_requests import PatchPodStatus, PodRef
from moorage.core import pod_groups, updates
from moorage.core.bindings import Bindings
from moorage.core.cache import ADDED
from moorage.core.journal import Confirmed, Gone
from moorage.core.observations import Added, Deleted, Observation, Updated
from moorage.core.preemption import Preemptions
from moorage.core.state import SchedulerState
from moorage.framework.events import Action, ClusterEvent

# The number of deleted pods that are remembered, so that a late observation does not add one again.
MOST_GONE = 10_000
NO_VERSION = -1
PRESENT = (Updated, Added)


class EventHandlers:
    """See the module."""

    def __init__(self, state: SchedulerState, bindings: Bindings, preemptions: Preemptions) -> None:
        self._state = state
        self._pods = state.pods
        self._cluster = state.cluster
        self._cache = state.cache
        self._queue = state.queue
        self._nominated = state.nominator.by_node  # Empty most of the time.
        self._journal = state.journal
        self._is_ours = state.is_ours
        self._groups = state.cluster.pod_groups
        self._bindings = bindings
        self._preemptions = preemptions
        self._unobserved_victims = preemptions.unobserved
        # The last observed version of deleted pods, by UID.
        self._gone: dict[str, int] = {}

    def observe(self, observation: Observation, now: float) -> None:
        """Handle an observation."""
        if isinstance(observation, PRESENT):
            obj = observation.obj
            if isinstance(obj, Pod):
                self._pod_present(obj, now)
            else:
                self._handler(type(obj))(obj, now)
        elif isinstance(observation, Deleted):
            self._deleted(observation.obj, now)
        else:
            self._listed(observation.kind, observation.objects, now)

    def _listed(self, kind: type[Any], objects: tuple[KubeObject, ...], now: float) -> None:
        """Handle the full list of a kind: objects that are not in it are gone."""
        known: Mapping[str, KubeObject]
        if kind is Pod:
            known = self._pods
        elif kind is Node:
            known = {node.name: node for node in self._cluster.table.nodes if node is not None}
            self._cache.reserve(len(objects))
        else:
            known = {obj.key: obj for obj in self._cluster.all(kind)}
        if known:  # The first list may have a million objects.
            listed = {obj.key for obj in objects}
            for key, obj in list(known.items()):
                if key not in listed:
                    self._deleted(obj, now)
        if kind is Pod:
            self._pods_present(objects, now)  # type: ignore[arg-type]  # of that kind
            return
        present = self._handler(kind)
        for obj in objects:
            present(obj, now)

    def _handler(self, kind: type[Any]) -> Callable[[Any, float], None]:
        """What handles an object of a kind that is present, except pods."""
        return self._node_present if kind is Node else self._object_present

    def _deleted(self, obj: KubeObject, now: float) -> None:
        if isinstance(obj, Pod):
            self._remember_gone(obj)
            known = self._state.current(obj)
            if known is not None:
                self._pod_gone(known, now)
            if version(obj) == NO_VERSION:
                # The storage was restored from a backup: an older version may come back.
                self._gone.pop(obj.uid, None)
        elif isinstance(obj, Node):
            self._node_gone(obj, now)
        else:
            self._object_gone(obj, now)

    # Pods

    def _pods_present(self, pods: Sequence[Pod], now: float) -> None:
        """Handle pods in order; new ones on nodes that follow each other are added together."""
        known, gone, cached = self._pods, self._gone, self._cache.pods
        victims, queue = self._unobserved_victims, self._queue
        new: dict[str, Pod] = {}
        for pod in pods:
            key, uid, spec = pod.key, pod.metadata.uid, pod.spec
            if (
                spec.node_name
                and key not in known
                and key not in new
                and uid not in gone
                and uid not in cached
                and uid not in victims
                and spec.scheduling_group is None
                and pod.status.phase not in TERMINAL_PHASES
                and queue.ignores_events
            ):
                new[key] = pod
                continue
            if new:
                self._assign_all(new, now)
                new = {}
            self._pod_present(pod, now)
        if new:
            self._assign_all(new, now)

    def _assign_all(self, new: dict[str, Pod], now: float) -> None:
        """Pods are observed on nodes for the first time, and no pod is requeued by that."""
        self._cache.add_all(list(new.values()))
        self._pods.update(new)
        forget, note = self._state.nominator.delete, self._journal.add
        for key, pod in new.items():
            forget(pod)
            note(Confirmed(at=now, pod=key, uid=pod.metadata.uid, node=pod.spec.node_name))

    def _pod_present(self, new: Pod, now: float) -> None:
        key, meta, node = new.key, new.metadata, new.spec.node_name
        uid, old = meta.uid, self._pods.get(key)
        if uid in self._gone and version(new) <= self._gone[uid] != NO_VERSION:
            return
        if old is not None and old is not new:
            if is_older(new, old):
                return
            if old.metadata.uid != uid:
                self._pod_gone(old, now)
                old = None
            elif not node and old.spec.node_name:
                return  # A pod never loses its node, so this is an older version.
        if new.status.phase in TERMINAL_PHASES:
            # It uses nothing of its node any more, whatever else happens to the object.
            self._remember_gone(new)
            if old is not None:
                self._pod_gone(old, now)
            return
        self._pods[key] = new
        if uid in self._unobserved_victims and meta.deletion_timestamp is not None:
            self._preemptions.leaves(uid, now)
        if old is None:
            self._pod_new(key, new, now)
        elif old.spec.node_name:
            self._assigned_changed(old, new, now)
        elif node:
            nominated = self._nominated and self._state.nominator.node_of(uid)
            self._assigned(key, new, now)
            self._queue.delete(old)
            if nominated:
                self._queue.placed(old, nominated, node, now)
        elif self._is_ours(new) and old != new:
            self._unassigned_changed(old, new, now)

    def _pod_new(self, key: str, pod: Pod, now: float) -> None:
        in_group = self._groups is not None and pod.spec.scheduling_group is not None
        if pod.spec.node_name:
            self._assigned(key, pod, now)
        elif self._is_ours(pod) and not self._cache.is_assumed(pod.uid):
            if in_group and self._groups is not None:
                self._groups.add(pod)
            template = self._state.prepared_template(pod)
            if not self._bindings.resumes(pod, template):
                self._queue.add(pod, now, template)
        if in_group:
            pod_groups.requeue_siblings(self._cluster, self._queue, pod, now)

    def _assigned(self, key: str, pod: Pod, now: float) -> None:
        """A pod is observed on a node for the first time."""
        assumed = self._cache.add(pod)
        self._state.nominator.delete(pod)
        uid, node = pod.metadata.uid, pod.spec.node_name
        self._journal.add(Confirmed(at=now, pod=key, uid=uid, node=node))
        self._queue.move_all(updates.ASSIGNED_POD_ADD, None, pod, now)
        if assumed is not None and assumed.spec.node_name != node:
            # Another scheduler bound it elsewhere: the node that was assumed is free.
            self._queue.move_all(updates.ASSIGNED_POD_DELETE, assumed, None, now)

    def _assigned_changed(self, old: Pod, new: Pod, now: float) -> None:
        claims, claims_now = old.status.resource_claim_statuses, new.status.resource_claim_statuses
        if self._cache.update(new) and claims == claims_now:
            self._queue.move_all(updates.ASSIGNED_POD_UPDATE, old, new, now)
            return
        for event in updates.pod_update(old, new):
            self._queue.move_all(event, old, new, now)

    def _unassigned_changed(self, old: Pod, new: Pod, now: float) -> None:
        if self._cache.is_assumed(new.metadata.uid):
            if new.is_terminating and not old.is_terminating:
                self._bindings.deleted(new, now)
            return
        self._queue.update(old, new, now)
        nominated = old.status.nominated_node_name
        if nominated and nominated != new.status.nominated_node_name:
            # The capacity kept for the pod is free for pods of no higher priority.
            most = old.priority
            self._queue.move_all(
                updates.ASSIGNED_POD_DELETE, old, None, now, only=lambda pod: pod.priority <= most
            )

    def _pod_gone(self, pod: Pod, now: float) -> None:
        del self._pods[pod.key]
        if self._groups is not None and pod.spec.scheduling_group is not None:
            self._groups.remove(pod)
        self._preemptions.leaves(pod.uid, now)
        self._remember_gone(pod)
        self._journal.add(Gone(at=now, pod=pod.key, uid=pod.uid))
        cached = self._cache.get(pod.uid)
        nominated = self._state.nominator.node_for(pod)
        if self._is_ours(pod):
            self._queue.delete(pod)
        if cached is not None and cached.state != ADDED:
            self._bindings.deleted(pod, now)
        elif cached is not None:
            self._cache.remove(pod.uid)
            self._queue.move_all(updates.ASSIGNED_POD_DELETE, cached.pod, None, now)
        elif nominated:
            self._queue.nomination_ended(pod, nominated, now)
        if self._groups is not None and pod.spec.scheduling_group is not None:
            self._clear_nominations(pod, now)

    def _clear_nominations(self, gone: Pod, now: float) -> None:
        """Reserve no node for members of a gang that has too few, now that one is gone."""
        nominator = self._state.nominator
        for pod in pod_groups.without_quorum(self._cluster, gone):
            if node := nominator.node_of(pod.uid):
                nominator.nominate(pod, "")
                patch = PatchPodStatus(PodRef.of(pod), nominated_node_name="")
                self._state.outbox.add(patch)
                self._queue.nomination_ended(pod, node, now)

    def _remember_gone(self, pod: Pod) -> None:
        self._gone[pod.uid] = max(version(pod), self._gone.get(pod.uid, NO_VERSION))
        if len(self._gone) > MOST_GONE:
            del self._gone[next(iter(self._gone))]

    # Nodes

    def _node_present(self, new: Node, now: float) -> None:
        old = self._cluster.table.node(new.name)
        if old is not None and is_older(new, old):
            return
        if old is not None and old.uid != new.uid:
            self._node_gone(old, now)
            old = None
        self._cache.set_node(new)
        changes = [ClusterEvent.NODE_ADD] if old is None else updates.node_update(old, new)
        for event in changes:
            self._queue.move_all(event, old, new, now)

    def _node_gone(self, node: Node, now: float) -> None:
        old = self._cluster.table.node(node.name)
        if old is not None and old.uid == node.uid:
            self._queue.move_all(ClusterEvent.NODE_DELETE, old, None, now)
            self._cache.remove_node(node.name)

    # Other objects

    def _object_present(self, new: KubeObject, now: float) -> None:
        old = self._cluster.get(type(new), new.key)
        if old is not None and is_older(new, old):
            return
        self._cluster.put(new)
        action = Action.ADD if old is None else Action.UPDATE
        self._queue.move_all(ClusterEvent(updates.resource_of(new), action), old, new, now)

    def _object_gone(self, obj: KubeObject, now: float) -> None:
        old = self._cluster.get(type(obj), obj.key)
        if old is not None and old.uid == obj.uid:
            self._cluster.drop(old)
            self._queue.move_all(
                ClusterEvent(updates.resource_of(old), Action.DELETE), old, None, now
            )


def version(obj: KubeObject) -> int:
    """An object's resource version as a number: those of one API server grow."""
    text = obj.metadata.resource_version
    return int(text) if text.isdecimal() else NO_VERSION


def is_older(new: KubeObject, old: KubeObject) -> bool:
    """Whether an object is older than the known one of its name."""
    version, known = new.metadata.resource_version, old.metadata.resource_version
    # Decimal numbers without leading zeros compare by their length, then as text.
    if (len(version), version) >= (len(known), known):
        return False
    return version.isdecimal() and known.isdecimal()
