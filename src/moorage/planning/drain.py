"""What moves where if these nodes are drained, what is left without a node, and what holds it up.

As `kubectl drain --ignore-daemonsets --force` does it: the nodes are cordoned, then their pods are
evicted as far as disruption budgets allow. Each eviction is followed by its replacement, under the
same name, if the pod has a controller; once that has a node it counts for the budget again, and
the next round begins. Who has to make room for a replacement is made anew as well.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from moorage.api import config as configuration
from moorage.api import selectors
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.errors import InputError
from moorage.planning import budgets
from moorage.planning.budgets import Budget
from moorage.planning.drained import Drain, Move, Stay
from moorage.planning.packing import Packing, Progress
from moorage.planning.situation import MIRROR, Objects, Situation, is_tied, unplaced

MIRROR_POD = "mirror pod: its kubelet runs it from a file"
DAEMON = "DaemonSet pod: comes and goes with its node"
SEVERAL = "is selected by more than one budget, which the eviction API refuses: {}"
SPENT = "budget {} is spent: {}, {} of {} pods healthy"


def drain(
    objects: Objects,
    nodes: Sequence[str] = (),
    selector: str = "",
    config: configuration.Source = None,
    *,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> Drain:
    """Drain nodes by name, or all that a label selector matches, and see what happens."""
    situation = Situation.of(objects, config)
    chosen = choose(situation.nodes, nodes, selector)
    packing = Packing(situation.objects, situation.config, seed=seed)
    _settle_before(packing, on_progress)
    pending_before = len(packing.left)
    for node in chosen:
        packing.update(replace(node, spec=replace(node.spec, unschedulable=True)))
    return _Draining(situation, packing, chosen, pending_before).run(on_progress)


def _settle_before(packing: Packing, on_progress: Progress | None) -> None:
    """Let everybody who waits find a node; whoever has to make room for that is made anew."""
    made = 0
    packing.pack(on_progress=on_progress)
    while victims := [pod for pod in packing.victims if pod.controller is not None]:
        packing.victims.clear()
        for pod in victims:
            made += 1
            packing.add(anew(pod, f"{pod.uid}.before.{made}"))
        packing.pack()
    packing.victims.clear()
    packing.evictions.clear()


def anew(pod: Pod, uid: str) -> Pod:
    """A pod as its controller makes it again, under the same name."""
    fresh = unplaced(pod)
    meta = replace(fresh.metadata, uid=uid, deletion_timestamp=None)
    return replace(fresh, metadata=meta)


def choose(there: Sequence[Node], names: Sequence[str], selector: str) -> list[Node]:
    """The nodes that are meant; complains about names and selectors that mean nobody."""
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
        wanted = selectors.parse_label_selector(selector)
    except selectors.SelectorError as error:
        raise InputError(f'selector "{selector}": {error}') from None
    found = [node for node in there if wanted.matches(node.labels)]
    if not found:
        raise InputError(f'selector "{selector}": matches none of the {len(by_name)} nodes')
    return found


class _Draining:
    """The rounds of one drain."""

    def __init__(
        self, situation: Situation, packing: Packing, nodes: Iterable[Node], pending_before: int
    ) -> None:
        self._packing = packing
        self._nodes = tuple(node.name for node in nodes)
        self._budgets = budgets.read(situation.others)
        self._pending_before = pending_before
        self._source: dict[str, str] = {}
        self._lost: list[Stay] = []
        self._displaced: list[str] = []
        self._made = 0
        order = {name: place for place, name in enumerate(self._nodes)}
        on_them = [pod for pod in packing.running if pod.node_name in order]
        on_them.sort(key=lambda pod: order[pod.node_name])
        self._stays = [_tied(pod) for pod in on_them if is_tied(pod)]
        self._remaining = [pod for pod in on_them if not is_tied(pod)]

    def run(self, on_progress: Progress | None) -> Drain:
        """Evict in rounds until nothing more can go."""
        rounds, total = 0, len(self._remaining)
        while self._evict_round():
            rounds += 1
            self._settle()
            if on_progress is not None:
                on_progress(total - len(self._remaining), total)
        self._count()
        left = self._packing.left
        return Drain(
            nodes=self._nodes,
            moves=tuple(self._moves(left)),
            blocked=tuple(self._blocked(pod) for pod in self._remaining),
            stays=tuple(self._stays),
            lost=tuple(self._lost),
            evictions=tuple(self._packing.evictions),
            displaced={key: left[key] for key in self._displaced if key in left},
            rounds=rounds,
            pending_before=self._pending_before,
        )

    def _evict_round(self) -> bool:
        """Evict whom the budgets let go now; whether anybody was."""
        self._count()
        gone = []
        for pod in self._remaining:
            mine = [] if budgets.is_exempt(pod) else budgets.of(pod, self._budgets)
            if len(mine) > 1 or (mine and not _take(mine[0], pod)):
                continue
            gone.append(pod)
        uids = {pod.uid for pod in gone}
        self._remaining = [pod for pod in self._remaining if pod.uid not in uids]
        for pod in gone:
            self._evict(pod)
        return bool(gone)

    def _count(self) -> None:
        """Replacements that wait are expected, but not healthy."""
        if not self._budgets:
            return
        by_namespace: dict[str, list[Pod]] = {budget.namespace: [] for budget in self._budgets}
        for pod in (*self._packing.running, *self._packing.waiting):
            if pod.namespace in by_namespace:
                by_namespace[pod.namespace].append(pod)
        for budget in self._budgets:
            budget.count(by_namespace[budget.namespace])

    def _evict(self, pod: Pod) -> None:
        self._packing.remove(pod)
        if pod.controller is None:
            reason = "has no controller: kubectl drain needs --force, and nobody makes it again"
            self._lost.append(Stay(pod.key, pod.node_name, reason))
            return
        self._source[pod.key] = pod.node_name
        self._replace(pod)

    def _replace(self, pod: Pod) -> None:
        self._made += 1
        self._packing.add(anew(pod, f"{pod.uid}.{self._made}"))

    def _settle(self) -> None:
        """Let everybody find a node, and make those anew who had to make room for others."""
        while True:
            self._packing.pack()
            victims, self._packing.victims = self._packing.victims, []
            if not victims:
                return
            gone = {pod.uid for pod in victims}
            self._remaining = [pod for pod in self._remaining if pod.uid not in gone]
            for pod in victims:
                if pod.controller is None:
                    reason = "had to make room, has no controller: nobody makes it again"
                    self._lost.append(Stay(pod.key, pod.node_name, reason))
                else:
                    self._displaced.append(pod.key)
                    self._replace(pod)

    def _moves(self, left: dict[str, str]) -> Iterable[Move]:
        for key, source in self._source.items():
            yield Move(key, source, self._packing.placed.get(key, ""), left.get(key, ""))

    def _blocked(self, pod: Pod) -> Stay:
        mine = budgets.of(pod, self._budgets)
        names = tuple(budget.key for budget in mine)
        if len(mine) > 1:
            return Stay(pod.key, pod.node_name, SEVERAL.format(", ".join(names)), names)
        (budget,) = mine
        reason = SPENT.format(budget.key, budget.spec_text, budget.healthy, budget.selected)
        return Stay(pod.key, pod.node_name, reason, names)


def _tied(pod: Pod) -> Stay:
    reason = MIRROR_POD if MIRROR in pod.metadata.annotations else DAEMON
    return Stay(pod.key, pod.node_name, reason)


def _take(budget: Budget, pod: Pod) -> bool:
    """Charge a pod to a budget; False if that is spent.

    An unready pod costs nothing while the budget holds: it is not there for it anyway.
    """
    if not budgets.is_healthy(pod):
        return budget.healthy >= budget.desired > 0 or budget.allowed > 0
    if not budget.allowed:
        return False
    budget.healthy -= 1
    return True
