"""How many more of this pod fit, and what runs out first.

First everybody who waits already gets his turn. Then one pod after the other is placed like the
one in question, until one is refused: nothing has changed for the next, so it would be refused as
well. Nobody has to make room. A node that took none from the start is told apart from one that
filled up. If the pods have claims made from templates, each copy gets claims of its own.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moorage.api import config as configuration
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.errors import InputError
from moorage.framework.status import Status
from moorage.planning.copies import Copies
from moorage.planning.packing import PODS_PER_PROGRESS, Packing, Progress
from moorage.planning.pools import Pools
from moorage.planning.situation import Objects, Situation, asked_pod, without_preemption

# Pods without requests fit for as long as nodes take pods at all; plugins may lift even that.
MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class PoolCapacity:
    """What a pool takes of the pod: how many, on how many of its nodes, and what stops it."""

    name: str
    nodes: int
    usable: int
    fits: int
    # Reasons of nodes that filled up, and of nodes that took none from the start.
    runs_out: Mapping[str, int]
    unusable: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """The pool as plain data."""
        return {
            "nodes": self.nodes,
            "usable": self.usable,
            "fits": self.fits,
            "runsOut": dict(self.runs_out),
            "unusable": dict(self.unusable),
        }


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many more of a pod fit."""

    pod: str
    fits: int
    # Whether the search ended at the given limit: then at least so many fit.
    is_limited: bool
    # Why the next one is refused, in the scheduler's words.
    message: str
    runs_out: Mapping[str, int]
    unusable: Mapping[str, int]
    pools: tuple[PoolCapacity, ...]
    nodes: Mapping[str, int]
    # How many pods of the cluster had to be placed first, and how many of them found no node.
    placed_before: int
    pending_before: int

    @property
    def first(self) -> str:
        """What runs out first: the reason that stops the most nodes; empty if nothing does."""
        return next(iter(self.runs_out), "")

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data."""
        return {
            "pod": self.pod,
            "fits": self.fits,
            "limited": self.is_limited,
            "runsOutFirst": self.first,
            "runsOut": dict(self.runs_out),
            "unusable": dict(self.unusable),
            "message": self.message,
            "pools": {pool.name: pool.to_dict() for pool in self.pools},
            "nodes": dict(self.nodes),
            "placedBefore": self.placed_before,
            "pendingBefore": self.pending_before,
        }


def capacity(
    objects: Objects,
    pod: Mapping[str, Any] | KubeObject,
    config: configuration.Source = None,
    *,
    seed: int = 0,
    pool_label: str | None = None,
    most: int = MOST,
    on_progress: Progress | None = None,
) -> Capacity:
    """How many more of `pod`, or of the pods of a workload, fit beside everything in `objects`."""
    situation = Situation.of(objects, config)
    pools = Pools(situation.nodes, pool_label)
    asked = asked_pod([pod], situation)
    if asked.pod.spec.scheduling_gates:
        raise InputError(
            f"Pod {asked.pod.key}: is held back by a scheduling gate, so it fits nowhere"
        )
    packing = Packing(situation.objects, without_preemption(situation.config), seed=seed)
    packing.pack(on_progress=on_progress)
    left, before = len(packing.left), len(packing.placed)
    copies = Copies.of(asked, situation)
    first = packing.ask(copies.add(packing, 1))
    placed, refused_one = _fill(packing, copies, most, on_progress)
    last = packing.ask(refused_one)
    # A node may refuse the pod at first only because somebody has to come before it.
    usable = set(first.feasible) | placed.keys()
    refused = last.rejected
    return Capacity(
        pod=asked.pod.key,
        fits=placed.total(),
        is_limited=bool(last.picked),
        message=last.message,
        runs_out=_reasons({node: s for node, s in refused.items() if node in usable}),
        unusable=_reasons({node: s for node, s in refused.items() if node not in usable}),
        pools=tuple(
            _pool(name, nodes, usable, placed, refused) for name, nodes in pools.members().items()
        ),
        nodes={node.name: placed[node.name] for node in situation.nodes if placed[node.name]},
        placed_before=before,
        pending_before=left,
    )


def _fill(
    packing: Packing, copies: Copies, most: int, on_progress: Progress | None
) -> tuple[Counter[str], Pod]:
    """Place copies until one is refused; how many each node got, and the one that got none."""
    placed: Counter[str] = Counter()
    for number in range(1, most + 1):
        copy = copies.add(packing, number)
        # One that waits for permission may be followed by one that sets it free.
        if not packing.take(copy) and copy.uid not in packing.scheduler.cluster.waiting:
            break
        if on_progress is not None and number % PODS_PER_PROGRESS == 0:
            on_progress(number, number)
    else:
        copy = copies.add(packing, most + 1)
    for key, node in packing.placed.items():
        if key.startswith(copies.prefix):
            placed[node] += 1
    return placed, copy


def _pool(
    name: str,
    nodes: list[str],
    usable: set[str],
    placed: Counter[str],
    refused: Mapping[str, Status],
) -> PoolCapacity:
    mine = {node: refused[node] for node in nodes if node in refused}
    return PoolCapacity(
        name=name,
        nodes=len(nodes),
        usable=sum(node in usable for node in nodes),
        fits=sum(placed[node] for node in nodes),
        runs_out=_reasons({node: s for node, s in mine.items() if node in usable}),
        unusable=_reasons({node: s for node, s in mine.items() if node not in usable}),
    )


def _reasons(refused: Mapping[str, Status]) -> dict[str, int]:
    """On how many nodes each reason holds, the most frequent first."""
    counts = Counter(reason for status in refused.values() for reason in status.reasons)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
