"""Nominator: which pods have a nominated node, most often because victims there make room.

A nomination made here counts at once. The pod's status shows it later; nominations by others are
only known from the pod's status.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod
from moorage.framework.cluster import Cluster


class Nominator:
    """The nominated pods of each node, in the order of their nomination.

    `pods` are the known pods by namespace/name. Changes are logged in `cluster.nomination_changes`.
    """

    def __init__(
        self, pods: Mapping[str, Pod] | None = None, cluster: Cluster | None = None
    ) -> None:
        self._pods = pods
        self._cluster = cluster
        self._node_of: dict[str, str] = {}
        # Node -> UID -> a pod with nothing but its name and UID: the pod itself may change.
        self.by_node: dict[str, dict[str, Pod]] = {}

    def nominate(self, pod: Pod, node: str) -> None:
        """Nominate a node for a pod, whatever the pod's status names; "" stands for no node."""
        meta = pod.metadata
        uid = meta.uid
        is_pending = self._is_pending(pod)
        if node and is_pending and self._node_of.get(uid) == node:
            here = self.by_node[node]
            here[uid] = here.pop(uid)  # The newest nomination comes last.
            self._changed(node)
            return
        self._forget(uid)
        if is_pending:
            self._node_of[uid] = node
            if node:
                named = ObjectMeta(name=meta.name, namespace=meta.namespace, uid=uid)
                self.by_node.setdefault(node, {})[uid] = Pod(metadata=named)
                self._changed(node)

    def follow(self, pod: Pod) -> None:
        """Nominate the node that the pod's status names; none if it names none."""
        node = pod.status.nominated_node_name
        if node:
            self.nominate(pod, node)
        else:
            self._forget(pod.uid)

    def update(self, old: Pod, new: Pod) -> None:
        """Follow the status of a changed pod, unless it does not show the nomination yet."""
        current = self._node_of.get(new.metadata.uid)
        unnamed = not old.status.nominated_node_name and not new.status.nominated_node_name
        if unnamed and current is not None:
            self.nominate(new, current)
        else:
            self.follow(new)

    def delete(self, pod: Pod) -> None:
        """Remove a pod's nomination, if it has one."""
        if self._node_of:
            self._forget(pod.uid)

    def reread(self, pod: Pod) -> None:
        """Read a nominated pod again: it has left the queue, and counts as a name only."""
        node = self._node_of.get(pod.uid)
        if node:
            self._changed(node)

    def node_of(self, uid: str) -> str | None:
        """The node nominated here for a pod."""
        return self._node_of.get(uid)

    def node_for(self, pod: Pod) -> str:
        """A pod's nominated node, as nominated here or else by the pod's status; "" for none."""
        return self._node_of.get(pod.metadata.uid) or pod.status.nominated_node_name

    def on(self, node: str) -> list[Pod]:
        """The names of the nominated pods of a node."""
        return list(self.by_node.get(node, {}).values())

    def _forget(self, uid: str) -> None:
        node = self._node_of.pop(uid, None)
        if node:
            del self.by_node[node][uid]
            if not self.by_node[node]:
                del self.by_node[node]
            self._changed(node)

    def _changed(self, node: str) -> None:
        if self._cluster is not None:
            row = self._cluster.table.row_of.get(node)
            if row is not None:
                self._cluster.nomination_changes.add(row)

    def _is_pending(self, pod: Pod) -> bool:
        """Whether a pod still has no node; one that is gone or replaced does not count either."""
        if self._pods is None:
            return True
        known = self._pods.get(pod.key)
        if known is None or known.spec.node_name:
            return False
        return known is pod or known.metadata.uid == pod.metadata.uid


class NominatedPodsByNode(Mapping[str, list[Pod]]):
    """Nodes with their nominated pods; a node's pods are looked up when they are read."""

    def __init__(self, nominator: Nominator, pods_on: Callable[[str], list[Pod]]) -> None:
        self._by_node = nominator.by_node
        self._pods_on = pods_on

    def __getitem__(self, node: str) -> list[Pod]:
        if node not in self._by_node:
            raise KeyError(node)
        return self._pods_on(node)

    def get(self, node: str, default: Any = None) -> Any:
        """As `__getitem__`, with fewer calls than that of a Mapping."""
        return self._pods_on(node) if node in self._by_node else default

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_node)

    def __len__(self) -> int:
        return len(self._by_node)
