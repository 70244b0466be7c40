"""The fewest nodes of given templates until everything fits.

Each try packs the whole cluster with some numbers of new nodes. It begins at a lower bound that no
placement can do better than, and what is left after a try says how far to go for the next one.
First each template is tried by itself; then as many of each, from which is taken away what is not
needed, template by template, in a few orders. With one template the answer is the scheduler's own
optimum; with several it is a good one, and the bound says how good.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from moorage.api import config as configuration
from moorage.api import manifests
from moorage.planning import node_templates
from moorage.planning.node_templates import NodeTemplate
from moorage.planning.packing import Packing
from moorage.planning.situation import Objects, Situation, without_preemption
from moorage.planning.trials import Counts, Trials, Tried


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
    """The fewest nodes of `templates` (Nodes or NodePools) until every pod has a node.

    There may be no node yet: then it is the size of a new cluster.
    """
    situation = Situation.of(objects, config, nodes_follow=True)
    sorts = node_templates.read(manifests.read(templates).everything, situation)
    trials = Trials(situation, sorts, seed, on_try)
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


def _fewest(trials: Trials) -> Counts:
    """The best numbers that are found; leaves out pods that no number helps."""
    every = len(trials.templates)
    while True:
        if not trials.pending:
            return (0,) * every
        # A node for each pod, and one more for each that has to be somewhere else.
        high = trials.lower_bound + len(trials.pending)
        best = _alone(trials, high)
        if best is None or not (sum(best) == trials.lower_bound or _is_largest(trials, best)):
            best = _mixed(trials, best, high) if every > 1 else best
        if best is not None:
            return best
        trials.leave_out(trials.pack((high,) * every).left)


def _alone(trials: Trials, high: int) -> Counts | None:
    """The best that one template can do by itself."""
    none = (0,) * len(trials.templates)
    best: Counts | None = None
    for place in range(len(none)):
        most = high if best is None else sum(best) - 1
        best = trials.fewest(partial(_with, none, place), trials.bound_of(place), most) or best
    return best


def _is_largest(trials: Trials, best: Counts) -> bool:
    """Whether the one template that is used has the most of everything: others would not help."""
    chosen = next(t for t, count in zip(trials.templates, best, strict=True) if count)
    return all(
        amount <= chosen.room[name]
        for template in trials.templates
        for name, amount in template.room.items()
    )


def _mixed(trials: Trials, best: Counts | None, high: int) -> Counts | None:
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
    trials: Trials, counts: Counts, order: Sequence[int], beat: int | None
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
