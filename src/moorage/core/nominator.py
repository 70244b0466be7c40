"""Nominator: pods promised to a node, most often because victims there are making room for them.

A promise made here counts at once; the pod's status shows it later, and only the pod's status
speaks for promises that somebody else made.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod

# namespace/name -> the pod as the world last showed it.
Lookup = Callable[[str], Pod | None]
# Called with the name of a node whose promises change.
Watcher = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Nomination:
    """A pod that a node is promised to, by name only: the pod itself may change."""

    namespace: str
    name: str
    uid: str
    key: str

    def stub(self) -> Pod:
        """A pod of which no more than that is known."""
        meta = ObjectMeta(name=self.name, namespace=self.namespace, uid=self.uid)
        return Pod(metadata=meta)


class Nominator:
    """Which pods are promised to which node, in the order in which they were."""

    def __init__(self, lookup: Lookup | None = None, watcher: Watcher | None = None) -> None:
        self._lookup = lookup
        self._watcher = watcher
        self._node_of: dict[str, str] = {}
        self._on: dict[str, dict[str, Nomination]] = {}

    def nominate(self, pod: Pod, node: str) -> None:
        """Promise a node to a pod, whatever its status says; "" stands for no node at all."""
        self._forget(pod.uid)
        if self._may_have(pod):
            self._node_of[pod.uid] = node
            nomination = Nomination(pod.namespace, pod.name, pod.uid, pod.key)
            self._on.setdefault(node, {})[pod.uid] = nomination
            self._changed(node)

    def follow(self, pod: Pod) -> None:
        """Promise the node that the pod's status names; none if it names none."""
        node = pod.status.nominated_node_name
        if node:
            self.nominate(pod, node)
        else:
            self._forget(pod.uid)

    def update(self, old: Pod, new: Pod) -> None:
        """A pod changed: follow its status, unless the promise has not got there yet."""
        kept = self._node_of.get(new.uid)
        silent = not old.status.nominated_node_name and not new.status.nominated_node_name
        if silent and kept is not None:
            self.nominate(new, kept)
        else:
            self.follow(new)

    def delete(self, pod: Pod) -> None:
        """Take back what a pod was promised, if anything."""
        if self._node_of:
            self._forget(pod.uid)

    def node_of(self, uid: str) -> str | None:
        """The node promised to a pod."""
        return self._node_of.get(uid)

    def on(self, node: str) -> list[Nomination]:
        """The pods that a node is promised to."""
        return list(self._on.get(node, {}).values())

    def is_promised(self, node: str) -> bool:
        """Whether a node is promised to anybody."""
        return bool(node) and node in self._on

    @property
    def nodes(self) -> list[str]:
        """The nodes that are promised to somebody."""
        return [node for node in self._on if node]

    @property
    def node_count(self) -> int:
        """How many nodes are promised to somebody."""
        return len(self._on) - ("" in self._on)

    def _forget(self, uid: str) -> None:
        node = self._node_of.pop(uid, None)
        if node is not None:
            del self._on[node][uid]
            if not self._on[node]:
                del self._on[node]
            self._changed(node)

    def _changed(self, node: str) -> None:
        if self._watcher is not None:
            self._watcher(node)

    def _may_have(self, pod: Pod) -> bool:
        """Pods that are gone, bound or replaced meanwhile get no promises."""
        if self._lookup is None:
            return True
        known = self._lookup(pod.key)
        return known is not None and known.uid == pod.uid and not known.node_name


class Promised(Mapping[str, list[Pod]]):
    """The promised pods by node; who they are is looked up for the nodes that somebody asks for."""

    def __init__(self, nominator: Nominator, pods_on: Callable[[str], list[Pod]]) -> None:
        self._nominator = nominator
        self._pods_on = pods_on

    def __getitem__(self, node: str) -> list[Pod]:
        if node not in self:
            raise KeyError(node)
        return self._pods_on(node)

    def __contains__(self, node: object) -> bool:
        return isinstance(node, str) and self._nominator.is_promised(node)

    def __iter__(self) -> Iterator[str]:
        return iter(self._nominator.nodes)

    def __len__(self) -> int:
        return self._nominator.node_count

    def __bool__(self) -> bool:
        return self._nominator.node_count > 0
