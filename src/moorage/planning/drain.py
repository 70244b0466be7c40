"""What moves where if these nodes are drained, what is without a node, and what holds it up.

As `kubectl drain --ignore-daemonsets --force` does it: the nodes are cordoned, then their pods are
evicted as far as disruption budgets allow. A pod with a controller is recreated under the same
name; once the replacement has a node it counts as healthy for the budget, and the next round
begins. Pods that are preempted for a replacement are recreated as well.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import asdict, replace

from moorage.api import config as configuration
from moorage.api import selectors, texts
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.controllers import cordon
from moorage.errors import InputError
from moorage.planning import budgets
from moorage.planning.input_cluster import (
    MIRROR,
    InputCluster,
    Objects,
    belongs_to_node,
    without_node,
)
from moorage.planning.packing import OnProgress, Packing
from moorage.sim.outcomes import PodEviction

MIRROR_POD = "mirror pod: its kubelet runs it from a file"
DAEMON = "DaemonSet pod: comes and goes with its node"
SEVERAL = "is selected by more than one budget, which the eviction API refuses: {}"
SPENT = "budget {} is spent: {}, {} of {} healthy"


@dataclass(frozen=True, slots=True)
class PodMove:
    """An evicted pod; without `to`, `message` says why its replacement is pending."""

    pod: str
    source: str
    to: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class RemainingPod:
    """A pod that stays, or is not recreated, with the reason."""

    pod: str
    node: str
    reason: str
    budgets: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {"node": self.node, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class DrainResult:
    """The outcome of draining nodes."""

    nodes: tuple[str, ...]
    moves: tuple[PodMove, ...]
    # Blocked by disruption budgets; and not evicted at all.
    blocked: tuple[RemainingPod, ...]
    stays: tuple[RemainingPod, ...]
    # Pods without a controller, which are not recreated.
    lost: tuple[RemainingPod, ...]
    # Preempted pods on other nodes, and those of them that are pending now.
    evictions: tuple[PodEviction, ...]
    displaced: dict[str, str]
    rounds: int
    pending_before: int

    @property
    def pending(self) -> tuple[PodMove, ...]:
        """The evicted pods whose replacements are pending."""
        return tuple(move for move in self.moves if not move.to)

    @property
    def is_clean(self) -> bool:
        """Whether every pod has a node again and none is blocked or lost."""
        return not (self.pending or self.blocked or self.lost or self.displaced)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data."""
        return {
            "nodes": list(self.nodes),
            "clean": self.is_clean,
            "moves": {
                move.pod: {"from": move.source, "to": move.to or None}
                | ({"message": move.message} if move.message else {})
                for move in self.moves
            },
            "pending": {move.pod: move.message for move in self.pending} | self.displaced,
            "blocked": {
                each.pod: each.to_dict() | {"budgets": list(each.budgets)} for each in self.blocked
            },
            "stays": {each.pod: each.to_dict() for each in self.stays},
            "lost": {each.pod: each.to_dict() for each in self.lost},
            "evictions": [asdict(each) for each in self.evictions],
            "rounds": self.rounds,
            "pendingBefore": self.pending_before,
        }


def drain(
    objects: Objects,
    nodes: Sequence[str] = (),
    selector: str = "",
    config: configuration.Source = None,
    *,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> DrainResult:
    """Drain nodes by name, or all that a label selector matches."""
    cluster = InputCluster.of(objects, config)
    chosen = choose(cluster.nodes, nodes, selector)
    packing = Packing(cluster.objects, cluster.config, seed=seed)
    place_pending(packing, on_progress)
    return drain_packing(cluster, packing, chosen, on_progress)


def drain_packing(
    cluster: InputCluster,
    packing: Packing,
    chosen: Sequence[Node],
    on_progress: OnProgress | None = None,
) -> DrainResult:
    """Drain nodes of a cluster whose pending pods have been placed."""
    pending_before = len(packing.left)
    for node in chosen:
        packing.update(cordon.cordoned(node))
    return _Draining(cluster, packing, chosen, pending_before).run(on_progress)


def place_pending(packing: Packing, on_progress: OnProgress | None = None) -> None:
    """Place the pending pods; pods that are preempted for them are recreated."""
    number = 0
    packing.pack(on_progress=on_progress)
    while victims := [pod for pod in packing.victims if pod.controller is not None]:
        packing.victims.clear()
        for pod in victims:
            number += 1
            packing.add(recreated(pod, f"{pod.uid}.before.{number}"))
        packing.pack()
    packing.victims.clear()
    packing.evictions.clear()


def recreated(pod: Pod, uid: str) -> Pod:
    """A pod as its controller recreates it, under the same name."""
    meta = replace(pod.metadata, uid=uid, deletion_timestamp=None)
    return replace(without_node(pod), metadata=meta)


def choose(there: Sequence[Node], names: Sequence[str], selector: str) -> list[Node]:
    """The nodes of these names, or those that a selector matches; refuses an empty choice."""
    by_name = {node.name: node for node in there}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise InputError(f'no node "{unknown[0]}" among the {len(by_name)} given')
    if not selector:
        if not names:
            raise InputError("no node is named: give names, or a selector with -l")
        return [by_name[name] for name in dict.fromkeys(names)]
    if names:
        raise InputError("give names of nodes or a selector, not both")
    try:
        matcher = selectors.parse_label_selector(selector)
    except selectors.SelectorError as error:
        raise InputError(f'selector "{selector}": {error}') from None
    found = [node for node in there if matcher.matches(node.labels)]
    if not found:
        raise InputError(
            f'selector "{selector}": matches none of {texts.count(len(by_name), "node")}'
        )
    return found


class _Draining:
    """The rounds of one drain."""

    def __init__(
        self, cluster: InputCluster, packing: Packing, nodes: Iterable[Node], pending_before: int
    ) -> None:
        self._packing = packing
        self._nodes = tuple(node.name for node in nodes)
        self._budgets = budgets.read(cluster.others)
        self._pending_before = pending_before
        # Pods of the input without a node, which exist after the drain, also without a controller.
        self._pending = {pod.key for pod in cluster.pods if not pod.node_name}
        self._source: dict[str, str] = {}
        self._lost: list[RemainingPod] = []
        self._displaced: list[str] = []
        self._recreated = 0
        order = {name: index for index, name in enumerate(self._nodes)}
        on_nodes = [pod for pod in packing.running if pod.node_name in order]
        on_nodes.sort(key=lambda pod: order[pod.node_name])
        self._stays = [_staying(pod) for pod in on_nodes if belongs_to_node(pod)]
        self._remaining = [pod for pod in on_nodes if not belongs_to_node(pod)]

    def run(self, on_progress: OnProgress | None) -> DrainResult:
        """Evict in rounds until no more pods can be evicted."""
        rounds, total = 0, len(self._remaining)
        while self._evict_round():
            rounds += 1
            self._place_replacements()
            if on_progress is not None:
                on_progress(total - len(self._remaining), total)
        self._count()
        left = self._packing.left
        return DrainResult(
            nodes=self._nodes,
            moves=tuple(
                PodMove(key, source, self._packing.placed.get(key, ""), left.get(key, ""))
                for key, source in self._source.items()
            ),
            blocked=tuple(self._blocked(pod) for pod in self._remaining),
            stays=tuple(self._stays),
            lost=tuple(self._lost),
            evictions=tuple(self._packing.evictions),
            displaced={key: left[key] for key in self._displaced if key in left},
            rounds=rounds,
            pending_before=self._pending_before,
        )

    def _evict_round(self) -> bool:
        """Evict the pods that the budgets allow now; whether there were any."""
        self._count()
        gone: list[Pod] = []
        kept: list[Pod] = []
        for pod in self._remaining:
            matching = budgets.of(pod, self._budgets)
            is_blocked = len(matching) > 1 or (matching and not matching[0].charge(pod))
            (kept if is_blocked else gone).append(pod)
        self._remaining = kept
        for pod in gone:
            self._evict(pod)
        return bool(gone)

    def _is_lost(self, pod: Pod) -> bool:
        """Whether a pod is not created again."""
        return pod.controller is None and pod.key not in self._pending

    def _count(self) -> None:
        """Update the budgets; pending replacements are expected pods, but not healthy."""
        by_namespace: dict[str, list[Pod]] = {each.budget.namespace: [] for each in self._budgets}
        for pod in (*self._packing.running, *self._packing.waiting):
            if pod.namespace in by_namespace:
                by_namespace[pod.namespace].append(pod)
        for budget in self._budgets:
            budget.count(by_namespace[budget.budget.namespace])

    def _evict(self, pod: Pod) -> None:
        self._packing.remove(pod)
        if self._is_lost(pod):
            reason = "has no controller: kubectl drain needs --force, and it is not created again"
            self._lost.append(RemainingPod(pod.key, pod.node_name, reason))
        else:
            self._source[pod.key] = pod.node_name
            self._recreate(pod)

    def _recreate(self, pod: Pod) -> None:
        self._recreated += 1
        self._packing.add(recreated(pod, f"{pod.uid}.{self._recreated}"))

    def _place_replacements(self) -> None:
        """Place the replacements, and recreate the pods that were preempted for them."""
        while True:
            self._packing.pack()
            victims, self._packing.victims = self._packing.victims, []
            if not victims:
                return
            gone = {pod.uid for pod in victims}
            self._remaining = [pod for pod in self._remaining if pod.uid not in gone]
            for pod in victims:
                if self._is_lost(pod):
                    reason = "preempted, has no controller: it is not created again"
                    self._lost.append(RemainingPod(pod.key, pod.node_name, reason))
                else:
                    self._displaced.append(pod.key)
                    self._recreate(pod)

    def _blocked(self, pod: Pod) -> RemainingPod:
        matching = budgets.of(pod, self._budgets)
        names = tuple(each.budget.key for each in matching)
        first = matching[0]
        selected = texts.count(first.selected, "pod")
        reason = SPENT.format(names[0], first.spec_text, first.healthy, selected)
        if len(matching) > 1:
            reason = SEVERAL.format(", ".join(names))
        return RemainingPod(pod.key, pod.node_name, reason, names)


def _staying(pod: Pod) -> RemainingPod:
    reason = MIRROR_POD if MIRROR in pod.metadata.annotations else DAEMON
    return RemainingPod(pod.key, pod.node_name, reason)
