"""What a plugin is tried on: a pod and a cluster, with the labels that this plugin looks at."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.nodes.table import NodeTable
from moorage.testing import strategies

Obj = TypeVar("Obj", bound=KubeObject)


@dataclass(slots=True)
class Example:
    """A pod that waits for a node, and a cluster; `other` is a second such pod."""

    pod: Pod
    other: Pod
    nodes: list[Node]
    running: list[Pod]

    def table(self) -> NodeTable:
        """The cluster as a table of its own."""
        return strategies.worn_table(self.nodes, self.running)

    def content(self) -> bytes:
        """Everything in it, to see whether somebody changed something."""
        return msgspec.msgpack.encode((self.pod, self.other, self.nodes, self.running))


class Examples:
    """Examples of pods and nodes that were given, or else of random ones."""

    def __init__(self, pods: Sequence[Pod] | None, nodes: Sequence[Node] | None) -> None:
        self._pods, self._nodes = pods, nodes
        self._keys: tuple[str, ...] = ()

    def learn(self, look: Callable[[Example], object], examples: int = 20) -> None:
        """Find out which labels and annotations somebody looks for, and hand them out as well."""
        # Twice, because some keys are asked for only where others are present.
        for seed in (*range(examples), *range(examples)):
            asked: set[str] = set()
            example = self.draw(Random(seed))
            example.nodes = [_watched(node, asked) for node in example.nodes]
            example.pod = _watched(example.pod, asked)
            look(example)
            self._keys = tuple(sorted(asked.union(self._keys).difference(strategies.LABEL_KEYS)))

    def draw(self, rng: Random) -> Example:
        """An example; the same for the same state of the Random."""
        nodes = self._some_nodes(rng)
        running = [self._running(rng, f"p{i}", rng.choice(nodes)) for i in range(rng.randrange(8))]
        return Example(self._incoming(rng), self._incoming(rng), nodes, running)

    def _some_nodes(self, rng: Random) -> list[Node]:
        if self._nodes is None:
            names = rng.sample(strategies.NODE_NAMES, 6)
            return [self._marked(rng, strategies.random_node(rng, name)) for name in names]
        by_name = {node.name: node for node in self._nodes}
        return rng.sample(list(by_name.values()), min(len(by_name), 6))

    def _incoming(self, rng: Random) -> Pod:
        if self._pods is None:
            return self._marked(rng, strategies.random_incoming(rng))
        return rng.choice(self._pods)

    def _running(self, rng: Random, name: str, node: Node) -> Pod:
        if self._pods is None:
            return self._marked(rng, strategies.random_pod(rng, name, node=node.name))
        pod = rng.choice(self._pods)
        return replace(
            pod,
            metadata=replace(pod.metadata, name=name, uid=name),
            spec=replace(pod.spec, node_name=node.name),
        )

    def _marked(self, rng: Random, obj: Obj) -> Obj:
        pairs: dict[str, dict[str, str]] = {
            "labels": dict(obj.metadata.labels),
            "annotations": dict(obj.metadata.annotations),
        }
        for key in self._keys:
            for values in pairs.values():
                value = rng.choice((None, *strategies.LABEL_VALUES, "150", "1000", "true"))
                if value is not None:
                    values[key] = value
        return replace(obj, metadata=replace(obj.metadata, **pairs))


class _Watched(dict[str, str]):
    """A map that remembers the keys that it was asked for."""

    def __init__(self, content: Mapping[str, str], asked: set[str]) -> None:
        super().__init__(content)
        self.asked = asked

    def __getitem__(self, key: str) -> str:
        self.asked.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.asked.add(str(key))
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)


def _watched(obj: Obj, asked: set[str]) -> Obj:
    meta = obj.metadata
    labels, annotations = _Watched(meta.labels, asked), _Watched(meta.annotations, asked)
    return replace(obj, metadata=replace(meta, labels=labels, annotations=annotations))
