"""Cell compaction, as Borg does it: on how few of its nodes would the workload still fit?

Nodes are removed at random, so that what remains is a sample of what is there, and the whole
workload is packed from scratch each time, so that no unlucky beginning is carried along. One order
of removal proves little: it is done for several seeds, and the 90th percentile is what counts. Pods
that belong to a node, as daemons do, go with it. Cordoned nodes hold nothing, so they are left out
from the start; pods that do not fit even on all nodes are named and left out as well.
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
from moorage.expansion import daemon_sets
from moorage.framework.registry import Registry
from moorage.planning import bounds, search
from moorage.planning.packing import Packing
from moorage.planning.situation import (
    Objects,
    Situation,
    is_tied,
    placed,
    unplaced,
    without_preemption,
)

SEEDS = range(11)
PERCENTILE = 90


@dataclass(frozen=True, slots=True)
class Compaction:
    """How many nodes are enough, seed by seed."""

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


class Cell:
    """A cluster whose workload can be packed anew on some of its nodes; pickles."""

    def __init__(self, situation: Situation, allowed_share: float = 0.0) -> None:
        self.nodes = tuple(node for node in situation.nodes if not node.spec.unschedulable)
        if not self.nodes:
            raise InputError("all nodes are cordoned: there is nothing to compact")
        self._others = situation.others
        self._config: SchedulerConfiguration = without_preemption(situation.config)
        self._tied = _tied(situation.pods)
        pods = [p for p in situation.pods if not is_tied(p) and not p.spec.scheduling_gates]
        self.pods = tuple(unplaced(pod) for pod in pods)
        self.left_out: dict[str, str] = self._pack(self.nodes, 0).left
        self.pods = tuple(pod for pod in self.pods if pod.key not in self.left_out)
        self.allowed_pending = math.floor(allowed_share * len(self.pods))
        self._wanted = bounds.asked_for(self.pods)
        self._sizes = [bounds.free([node], self._tied.get(node.name, ())) for node in self.nodes]

    @property
    def lower_bound(self) -> int:
        """The fewest nodes by sums alone, the largest first; 0 if some pods may be pending."""
        return 0 if self.allowed_pending else bounds.fewest_of(self._wanted, self._sizes)

    def compacted(self, seed: int) -> int:
        """How many nodes are enough if they are removed in this seed's order."""
        order = list(range(len(self.nodes)))
        Random(seed).shuffle(order)
        nodes = [self.nodes[place] for place in order]
        low = 0 if self.allowed_pending else self._bound([self._sizes[place] for place in order])
        registry = Registry()  # Plugins are looked for once, not for every try.
        found = search.smallest(
            lambda count: self._lacking(nodes[:count], seed, registry), low, len(nodes)
        )
        # By another seed all nodes together may be one too few; then none can be spared.
        return len(nodes) if found is None else found

    def _bound(self, sizes: Sequence[Mapping[str, int]]) -> int:
        """How many nodes of an order it takes until the sums are enough."""
        missing = {name: amount for name, amount in self._wanted.items() if amount > 0}
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
        # As many more as the pods that are left would take of nodes filled like these.
        return max(1, len(nodes) * left // max(1, len(self.pods) - left))

    def _pack(self, nodes: Iterable[Node], seed: int, registry: Registry | None = None) -> Packing:
        objects: list[KubeObject] = [*self._others]
        for node in nodes:
            objects += (node, *self._tied.get(node.name, ()))
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

    `each` maps a function over the seeds; one that does so in several processes makes it faster.
    """
    cell = Cell(Situation.of(objects, config), allowed_share)
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


def percentile(values: Sequence[int], percent: int) -> int:
    """The smallest value that so many percent of all values do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def _tied(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """The pods that belong to nodes, by node."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if is_tied(pod) and (node := daemon_sets.node_of(pod)):
            found.setdefault(node, []).append(placed(pod, node))
    return found
