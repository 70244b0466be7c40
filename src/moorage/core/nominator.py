"""Nominator: which pods have a nominated node, most often because victims there make room.

A nomination made here counts at once. The pod's status shows it later; nominations by others are
only known from the pod's status.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod
from moorage.framework.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Nomination:
    """A nominated pod, by name only: the pod itself may change."""

    namespace: str
    name: str
    uid: str
    key: str

    def stub(self) -> Pod:
        """A pod with nothing but its name and UID."""
        meta = ObjectMeta(name=self.name, namespace=self.namespace, uid=self.uid)
        return Pod(metadata=meta)


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
        self._on: dict[str, dict[str, Nomination]] = {}

    def nominate(self, pod: Pod, node: str) -> None:
        """Nominate a node for a pod, whatever the pod's status names; "" stands for no node."""
        self._forget(pod.uid)
        if self._is_pending(pod):
            self._node_of[pod.uid] = node
            nomination = Nomination(pod.namespace, pod.name, pod.uid, pod.key)
            self._on.setdefault(node, {})[pod.uid] = nomination
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
        current = self._node_of.get(new.uid)
        unnamed = not old.status.nominated_node_name and not new.status.nominated_node_name
        if unnamed and current is not None:
            self.nominate(new, current)
        else:
            self.follow(new)

    def delete(self, pod: Pod) -> None:
        """Remove a pod's nomination, if it has one."""
        if self._node_of:
            self._forget(pod.uid)

    def node_of(self, uid: str) -> str | None:
        """The node nominated here for a pod."""
        return self._node_of.get(uid)

    def node_for(self, pod: Pod) -> str:
        """A pod's nominated node, as nominated here or else by the pod's status; "" for none."""
        return self._node_of.get(pod.uid) or pod.status.nominated_node_name

    def on(self, node: str) -> list[Nomination]:
        """The nominated pods of a node."""
        return list(self._on.get(node, {}).values())

    def has_pods(self, node: str) -> bool:
        """Whether a node has nominated pods."""
        return bool(node) and node in self._on

    @property
    def nodes(self) -> list[str]:
        """The nodes with nominated pods."""
        return [node for node in self._on if node]

    @property
    def node_count(self) -> int:
        """How many nodes have nominated pods."""
        return len(self._on) - ("" in self._on)

    def _forget(self, uid: str) -> None:
        node = self._node_of.pop(uid, None)
        if node is not None:
            del self._on[node][uid]
            if not self._on[node]:
                del self._on[node]
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
        return known is not None and known.uid == pod.uid and not known.node_name


class NominatedPodsByNode(Mapping[str, list[Pod]]):
    """Nodes with their nominated pods; a node's pods are looked up when they are read."""

    def __init__(self, nominator: Nominator, pods_on: Callable[[str], list[Pod]]) -> None:
        self._nominator = nominator
        self._pods_on = pods_on

    def __getitem__(self, node: str) -> list[Pod]:
        if node not in self:
            raise KeyError(node)
        return self._pods_on(node)

    def __contains__(self, node: object) -> bool:
        return isinstance(node, str) and self._nominator.has_pods(node)

    def __iter__(self) -> Iterator[str]:
        return iter(self._nominator.nodes)

    def __len__(self) -> int:
        return self._nominator.node_count

    def __bool__(self) -> bool:
        return self._nominator.node_count > 0
