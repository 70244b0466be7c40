"""The fewest nodes of given templates until everything fits.

Each try packs the whole cluster with some numbers of new nodes. It begins at a lower bound that no
placement can do better than, and what is left after a try says how far to go for the next one.
First each template is tried by itself; then as many of each, from which is taken away what is not
needed, template by template, in a few orders. With one template the answer is the scheduler's own
optimum; with several it is a good one, and the bound says how good.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from moorage.api import config as configuration
from moorage.api import manifests
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.framework.registry import Registry
from moorage.planning import bounds, node_templates, search
from moorage.planning.node_templates import NodeTemplate
from moorage.planning.packing import Packing
from moorage.planning.situation import Objects, Situation, without_preemption

Counts = tuple[int, ...]
Tried = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class AddedNodes:
    """How many nodes of which template let everything fit."""

    counts: Mapping[str, int]
    lower_bound: int
    # Pods that had no node before, and those that no number of these nodes helps.
    pending_before: int
    impossible: Mapping[str, str]
    # Where the pods go that had no node before.
    placements: Mapping[str, str]
    tries: int

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def is_optimal(self) -> bool:
        """Whether no other placement could do with fewer; False if that is not known."""
        return self.total == self.lower_bound

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data."""
        return {
            "nodes": dict(self.counts),
            "total": self.total,
            "lowerBound": self.lower_bound,
            "optimal": self.is_optimal,
            "pendingBefore": self.pending_before,
            "impossible": dict(self.impossible),
            "placements": dict(self.placements),
            "tries": self.tries,
        }


def add_nodes(
    objects: Objects,
    templates: Objects,
    config: configuration.Source = None,
    *,
    seed: int = 0,
    on_try: Tried | None = None,
) -> AddedNodes:
    """The fewest nodes of `templates` (Nodes or NodePools) until every pod has a node."""
    situation = Situation.of(objects, config)
    sorts = node_templates.read(manifests.read(templates).everything, situation)
    trials = _Trials(situation, sorts, seed, on_try)
    none = (0,) * len(sorts)
    before = trials.pack(none).left
    if not before:
        return AddedNodes(_named(sorts, none), 0, 0, {}, {}, trials.tries)
    trials.leave_out(_impossible(situation, sorts, before, seed))
    counts = _fewest(trials)
    final = trials.pack(counts)
    hopeless = trials.impossible | final.left
    return AddedNodes(
        counts=_named(sorts, counts),
        lower_bound=trials.lower_bound,
        pending_before=len(before),
        impossible={key: hopeless[key] for key in before if key in hopeless},
        placements={key: final.placed[key] for key in before if key in final.placed},
        tries=trials.tries,
    )


class _Trials:
    """Packs the cluster with more and more, or fewer and fewer, new nodes."""

    def __init__(
        self,
        situation: Situation,
        templates: Sequence[NodeTemplate],
        seed: int,
        on_try: Tried | None,
    ) -> None:
        self.templates = templates
        self.tries = 0
        # Pods that are not asked for any more.
        self.impossible: dict[str, str] = {}
        self._situation = situation
        self._config = without_preemption(situation.config)
        self._registry = Registry()  # Plugins are looked for once, not for every try.
        self._seed = seed
        self._on_try = on_try
        self._pending = situation.pending
        self._known: dict[Counts, int] = {}
        self._lacking = self._sum_up()

    def leave_out(self, impossible: Mapping[str, str]) -> None:
        """Do not ask for these pods any more."""
        self.impossible |= impossible
        self._pending = tuple(pod for pod in self._pending if pod.key not in self.impossible)
        self._lacking = self._sum_up()
        self._known.clear()

    @property
    def pending(self) -> tuple[Pod, ...]:
        """The pods that are asked for."""
        return self._pending

    @property
    def lower_bound(self) -> int:
        """No fewer nodes can do, of whichever template."""
        return bounds.fewest(self._lacking, self._largest()) or 0

    def bound_of(self, place: int) -> int:
        """The same for one template alone."""
        return bounds.fewest(self._lacking, self._largest([place])) or 0

    def lacking(self, counts: Counts) -> int:
        """About how many more nodes it takes; 0 if everything fits with so many of each."""
        if counts not in self._known:
            self._known[counts] = self._short(counts) or self._try(counts)
        return self._known[counts]

    def fewest(self, counts: Callable[[int], Counts], low: int, high: int) -> Counts | None:
        """The smallest number from low to high with whose counts everything fits, as counts."""
        found = search.smallest(lambda number: self.lacking(counts(number)), low, high)
        return None if found is None else counts(found)

    def pack(self, counts: Counts) -> Packing:
        """The cluster with so many nodes of each template, packed."""
        packing = self._packing(counts)
        packing.pack()
        return packing

    def _try(self, counts: Counts) -> int:
        self.tries += 1
        if self._on_try is not None:
            self._on_try(sum(counts))
        packing = self._packing(counts)
        packing.pack()
        left = tuple(packing.waiting)
        return max(1, bounds.fewest(bounds.asked_for(left), self._largest()) or 1) if left else 0

    def _packing(self, counts: Counts) -> Packing:
        situation = self._situation
        new: list[KubeObject] = []
        for template, count in zip(self.templates, counts, strict=True):
            new += template.objects(count)
        objects = (*situation.others, *situation.nodes, *new, *situation.running, *self._pending)
        return Packing(objects, self._config, seed=self._seed, registry=self._registry)

    def _sum_up(self) -> dict[str, int]:
        """What is asked for beyond what is free."""
        situation = self._situation
        wanted = bounds.asked_for(self._pending)
        room = bounds.free(situation.nodes, situation.running)
        return {name: amount - room[name] for name, amount in wanted.items()}

    def _short(self, counts: Counts) -> int:
        """How many more nodes plain arithmetic asks for."""
        both = list(zip(self.templates, counts, strict=True))
        still = {
            name: amount - sum(template.room[name] * count for template, count in both)
            for name, amount in self._lacking.items()
        }
        return bounds.fewest(still, self._largest()) or 0

    def _largest(self, which: Sequence[int] | None = None) -> dict[str, int]:
        """The most of each resource that a node has, of some templates or of all."""
        largest: dict[str, int] = {}
        for place in range(len(self.templates)) if which is None else which:
            for name, amount in self.templates[place].room.items():
                largest[name] = max(largest.get(name, 0), amount)
        return largest


def _impossible(
    situation: Situation, templates: Sequence[NodeTemplate], left: Mapping[str, str], seed: int
) -> dict[str, str]:
    """Pods that fit no template, for reasons that more nodes and pods do not change."""
    new = [obj for template in templates for obj in template.objects(template.sample_size)]
    names = {n.name for template in templates for n in template.nodes(template.sample_size)}
    config = without_preemption(situation.config)
    packing = Packing(
        (*situation.others, *situation.nodes, *new, *situation.running), config, seed=seed
    )
    answers: dict[int, str] = {}
    found: dict[str, str] = {}
    for pod in situation.pending:
        if pod.key not in left:
            continue
        if pod.spec.scheduler_name not in packing.scheduler.profiles:
            found[pod.key] = left[pod.key]
            continue
        serial = packing.scheduler.templates.of(pod).serial
        if serial not in answers:
            answers[serial] = packing.refusal(pod, names)
        if answers[serial]:
            found[pod.key] = answers[serial]
    return found


def _fewest(trials: _Trials) -> Counts:
    """The best numbers that are found; leaves out pods that no number helps."""
    every = len(trials.templates)
    while True:
        if not trials.pending:
            return (0,) * every
        # A node for each pod, and one more for each that has to be somewhere else.
        high = trials.lower_bound + len(trials.pending)
        best = _alone(trials, high)
        if every > 1 and (best is None or sum(best) > trials.lower_bound):
            best = _mixed(trials, best, high)
        if best is not None:
            return best
        trials.leave_out(trials.pack((high,) * every).left)


def _alone(trials: _Trials, high: int) -> Counts | None:
    """The best that one template can do by itself."""
    none = (0,) * len(trials.templates)
    best: Counts | None = None
    for place in range(len(none)):
        most = high if best is None else sum(best) - 1
        best = trials.fewest(partial(_with, none, place), trials.bound_of(place), most) or best
    return best


def _mixed(trials: _Trials, best: Counts | None, high: int) -> Counts | None:
    """The best that several templates can do together, if it is better than what is known."""
    every = len(trials.templates)
    most = high if best is None else sum(best)
    low = -(-trials.lower_bound // every)
    even = trials.fewest(lambda number: (number,) * every, low, most)
    if even is None:
        return best
    for order in _orders(trials.templates):
        best = _reduced(trials, even, order, None if best is None else sum(best)) or best
    return best


def _reduced(
    trials: _Trials, counts: Counts, order: Sequence[int], beat: int | None
) -> Counts | None:
    """Take away what is not needed, template by template; None if that does not beat a total."""
    for place in order:
        most = counts[place]
        if place == order[-1] and beat is not None:
            most = min(most, beat - 1 - (sum(counts) - counts[place]))
        fewer = trials.fewest(partial(_with, counts, place), 0, most)
        if fewer is None:
            return None
        counts = fewer
    return counts


def _with(counts: Counts, place: int, number: int) -> Counts:
    return (*counts[:place], number, *counts[place + 1 :])


def _orders(templates: Sequence[NodeTemplate]) -> list[list[int]]:
    """Smallest first, so that large ones remain; and the other way round."""
    by_size = sorted(range(len(templates)), key=lambda i: sorted(templates[i].room.items()))
    return [by_size, by_size[::-1]]


def _named(templates: Sequence[NodeTemplate], counts: Counts) -> dict[str, int]:
    return {t.name: count for t, count in zip(templates, counts, strict=True)}
