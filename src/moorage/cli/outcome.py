"""What came of a simulation: who went where, who waits, and how full the nodes are."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from moorage.api import quantity, requests
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.sim.evictions import Eviction
from moorage.sim.run import Simulation

PODS = "pods"


@dataclass(slots=True)
class NodeUse:
    """A node with the pods on it; `new` are those that this simulation placed."""

    name: str
    allocatable: dict[str, int]
    requested: Counter[str] = field(default_factory=Counter)
    new: list[str] = field(default_factory=list)

    @property
    def pods(self) -> int:
        return self.requested[PODS]

    def add(self, pod: Pod, *, is_new: bool) -> None:
        """Count a pod in."""
        self.requested.update(requests.requested(pod))
        self.requested[PODS] += 1
        if is_new:
            self.new.append(pod.key)

    def to_dict(self) -> dict[str, Any]:
        """The node as plain data; amounts are Kubernetes' quantities."""
        requested = {name: self.requested[name] for name in self.allocatable}
        return {
            "pods": self.pods,
            "requested": _quantities({**requested, **self.requested}),
            "allocatable": _quantities(self.allocatable),
        }


def _quantities(amounts: dict[str, int]) -> dict[str, str]:
    return {name: quantity.format_value(amount, name) for name, amount in amounts.items()}


@dataclass(slots=True)
class Outcome:
    """What came of a simulation."""

    placements: dict[str, str | None]
    pending: dict[str, str]
    nodes: dict[str, NodeUse]
    # Keys of pods: placed by this simulation, with a node from the start, done, gated.
    placed: list[str]
    running: list[str]
    ended: list[str]
    evictions: list[Eviction]
    gated: list[str]
    # Stateful sets: the pod that has to run first, and how many are made after it.
    held_back: dict[str, tuple[str, int]]
    seconds: float

    @classmethod
    def of(cls, simulation: Simulation, before: dict[str, str | None]) -> "Outcome":
        """Compare what is there with the placements before the first step."""
        pods = list(simulation.cluster.all(Pod))
        had_node = {key for key, node in before.items() if node}
        on_node = [pod for pod in pods if pod.node_name]
        nodes = {
            node.name: NodeUse(node.name, dict(requests.allocatable(node)))
            for node in simulation.cluster.all(Node)
        }
        for pod in on_node:
            if pod.node_name in nodes and not pod.is_terminal:
                nodes[pod.node_name].add(pod, is_new=pod.key not in had_node)
        return cls(
            placements=simulation.placements,
            pending=simulation.pending,
            nodes=nodes,
            placed=[pod.key for pod in on_node if pod.key not in had_node],
            running=[pod.key for pod in on_node if pod.key in had_node and not pod.is_terminal],
            ended=[pod.key for pod in pods if pod.is_terminal],
            evictions=simulation.evictions,
            gated=[pod.key for pod in pods if pod.spec.scheduling_gates and not pod.node_name],
            held_back=simulation.held_back,
            seconds=simulation.now,
        )

    def to_dict(self) -> dict[str, Any]:
        """The outcome as plain data."""
        return {
            "placements": self.placements,
            "pending": self.pending,
            "heldBack": {
                name: {"waitsFor": pod, "pods": count}
                for name, (pod, count) in self.held_back.items()
            },
            "evictions": [structs.asdict(each) for each in self.evictions],
            "nodes": {name: node.to_dict() for name, node in self.nodes.items()},
            "summary": {
                "pods": len(self.placements),
                "nodes": len(self.nodes),
                "placed": len(self.placed),
                "running": len(self.running),
                "ended": len(self.ended),
                "evicted": len(self.evictions),
                "pending": len(self.pending),
                "gated": len(self.gated),
                "seconds": self.seconds,
            },
        }

    def reasons(self) -> list[tuple[str, list[str]]]:
        """Pending pods by message, the most frequent first."""
        by_message: dict[str, list[str]] = {}
        for key, message in self.pending.items():
            by_message.setdefault(message, []).append(key)
        return sorted(by_message.items(), key=lambda item: (-len(item[1]), item[0]))
