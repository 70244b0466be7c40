"""Cell compaction, as Borg does it: on how few of its nodes would the workload still fit?

Nodes are removed at random, so that the rest is a sample of the cluster, and the whole workload is
packed from scratch each time. One order of removal proves little: the answer is the 90th percentile
over several seeds. Pods that belong to a node, as DaemonSet pods do, are removed with it. Cordoned
nodes are left out from the start; pods that do not fit even on all nodes are reported and left out.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from moorage.api import config as configuration
from moorage.api.config import SchedulerConfiguration
from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.errors import InputError
from moorage.framework.registry import Registry
from moorage.planning import bounds
from moorage.planning.input_cluster import (
    InputCluster,
    Objects,
    belongs_to_node,
    daemon_node,
    on_node,
    without_node,
    without_preemption,
)
from moorage.planning.packing import Packing
from moorage.sim.results.result import percentile

SEEDS = range(11)
PERCENTILE = 90


@dataclass(frozen=True, slots=True)
class Compaction:
    """How many nodes are enough, for each seed."""

    nodes: int
    pods: int
    kept: Mapping[int, int]
    lower_bound: int
    # Pods that fit nowhere even before a node is removed.
    left_out: Mapping[str, str]
    # How many of the others may be pending on the compacted nodes.
    allowed_pending: int

    @property
    def needed(self) -> int:
        """The 90th percentile: with so many nodes the workload fits in nine cases of ten."""
        return percentile(list(self.kept.values()), PERCENTILE)

    @property
    def share(self) -> float:
        """The same as a part of all nodes."""
        return self.needed / self.nodes

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data."""
        kept = list(self.kept.values())
        return {
            "nodes": self.nodes,
            "pods": self.pods,
            "needed": self.needed,
            "share": round(self.share, 4),
            "lowerBound": self.lower_bound,
            "best": min(kept),
            "median": percentile(kept, 50),
            "worst": max(kept),
            "seeds": {str(seed): count for seed, count in self.kept.items()},
            "leftOut": dict(self.left_out),
            "allowedPending": self.allowed_pending,
        }


class CompactedCell:
    """A cluster whose workload can be packed from scratch on some of its nodes; pickles."""

    def __init__(self, cluster: InputCluster, allowed_share: float = 0.0) -> None:
        self.nodes = tuple(node for node in cluster.nodes if not node.spec.unschedulable)
        if not self.nodes:
            raise InputError("all nodes are cordoned: there is nothing to compact")
        self._others = cluster.others
        self._config: SchedulerConfiguration = without_preemption(cluster.config)
        self._daemons = _node_pods(cluster.pods)
        pods = [p for p in cluster.pods if not belongs_to_node(p) and not p.spec.scheduling_gates]
        self.pods = tuple(without_node(pod) for pod in pods)
        self.left_out: dict[str, str] = self._pack(self.nodes, 0).left
        self.pods = tuple(pod for pod in self.pods if pod.key not in self.left_out)
        self.allowed_pending = math.floor(allowed_share * len(self.pods))
        self._requested = bounds.requested(self.pods)
        self._sizes = [bounds.free([node], self._daemons.get(node.name, ())) for node in self.nodes]

    @property
    def lower_bound(self) -> int:
        """The fewest nodes by resources alone; 0 if some pods may be pending."""
        return 0 if self.allowed_pending else bounds.fewest_of(self._requested, self._sizes)

    def compacted(self, seed: int) -> int:
        """How many nodes are enough if they are removed in this seed's order."""
        order = list(range(len(self.nodes)))
        Random(seed).shuffle(order)
        nodes = [self.nodes[index] for index in order]
        low = 0 if self.allowed_pending else self._bound([self._sizes[index] for index in order])
        registry = Registry()  # Plugins are loaded once, not for every try.
        found = bounds.smallest(
            lambda count: self._lacking(nodes[:count], seed, registry), low, len(nodes)
        )
        # With another seed even all nodes may be too few; then none can be removed.
        return len(nodes) if found is None else found

    def _bound(self, sizes: Sequence[Mapping[str, int]]) -> int:
        """How many nodes of an order offer enough by resources alone."""
        missing = {name: amount for name, amount in self._requested.items() if amount > 0}
        for count, size in enumerate(sizes):
            if not missing:
                return count
            missing = {n: a - size.get(n, 0) for n, a in missing.items() if a > size.get(n, 0)}
        return len(sizes)

    def _lacking(self, nodes: Sequence[Node], seed: int, registry: Registry) -> int:
        packing = self._pack(nodes, seed, registry)
        left = sum(1 for _ in packing.waiting)
        if left <= self.allowed_pending:
            return 0
        # The estimate: as many more nodes as the pods that are left need at this density.
        return max(1, len(nodes) * left // max(1, len(self.pods) - left))

    def _pack(self, nodes: Iterable[Node], seed: int, registry: Registry | None = None) -> Packing:
        objects: list[KubeObject] = [*self._others]
        for node in nodes:
            objects += (node, *self._daemons.get(node.name, ()))
        packing = Packing([*objects, *self.pods], self._config, seed=seed, registry=registry)
        packing.pack()
        return packing


def compact(
    objects: Objects,
    config: configuration.Source = None,
    *,
    seeds: Iterable[int] = SEEDS,
    allowed_share: float = 0.0,
    each: Callable[[Callable[[int], int], list[int]], Iterable[int]] = map,
) -> Compaction:
    """On how few of its nodes a cluster's workload still fits, for each seed.

    `each` maps a function over the seeds, for example in several processes.
    """
    cell = CompactedCell(InputCluster.of(objects, config), allowed_share)
    chosen = list(seeds)
    if not chosen:
        raise InputError("at least one seed is needed")
    return Compaction(
        nodes=len(cell.nodes),
        pods=len(cell.pods),
        kept=dict(zip(chosen, each(cell.compacted, chosen), strict=True)),
        lower_bound=cell.lower_bound,
        left_out=cell.left_out,
        allowed_pending=cell.allowed_pending,
    )


def _node_pods(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """The mirror and DaemonSet pods of each node."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if belongs_to_node(pod) and (node := daemon_node(pod)):
            found.setdefault(node, []).append(on_node(pod, node))
    return found
