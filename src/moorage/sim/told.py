"""Told: what one scheduler has been told so far, kept by the plainest of means.

Checks judge a scheduler by what it could know. So this follows the contract of observations word
by word, a dict per kind, and shares no code with the core that it is compared with.
"""

from collections.abc import Iterator

from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.core.observations import Added, Deleted, Listed, Observation, Updated


class Told:
    """Nodes and pods as a scheduler last heard of them."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self._gone: set[str] = set()

    def hear(self, observation: Observation) -> None:
        """Take in an observation."""
        match observation:
            case Added(obj=obj) | Updated(obj=obj):
                self._see(obj)
            case Deleted(obj=obj):
                self._lose(obj)
            case Listed(kind=kind, objects=objects):
                there = {obj.uid for obj in objects}
                for known in list(self._known(kind).values()):
                    if known.uid not in there:
                        self._lose(known)
                for obj in objects:
                    self._see(obj)

    def on(self, node: str) -> Iterator[Pod]:
        """The pods on a node."""
        return (pod for pod in self.pods.values() if pod.node_name == node)

    def _known(self, kind: type[KubeObject]) -> dict[str, Pod] | dict[str, Node]:
        return self.pods if kind is Pod else self.nodes if kind is Node else {}

    def _see(self, obj: KubeObject) -> None:
        if isinstance(obj, Pod):
            if obj.is_terminal:  # A look-up may show what a watch leaves out.
                self._lose(obj)
            elif obj.uid not in self._gone and not _is_older(obj, self.pods.get(obj.key)):
                self.pods[obj.key] = obj
        elif isinstance(obj, Node) and not _is_older(obj, self.nodes.get(obj.name)):
            self.nodes[obj.name] = obj

    def _lose(self, obj: KubeObject) -> None:
        known = self._known(type(obj))
        found = known.get(obj.key)
        if isinstance(obj, Pod):
            self._gone.add(obj.uid)
        if found is not None and found.uid == obj.uid:
            del known[obj.key]


def _is_older(new: KubeObject, known: KubeObject | None) -> bool:
    if known is None or known.uid != new.uid:
        return False
    return int(new.metadata.resource_version) < int(known.metadata.resource_version)
