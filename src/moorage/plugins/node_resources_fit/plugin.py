"""NodeResourcesFit: is there room for the pod, and how full would the node be?

The filter looks at what pods really request, the score at requests with a default for containers
that state none. So the two read different amounts of one pod, and `reads` names both. Devices
that stand behind an extended resource are not known here.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np

from moorage import plugin as mp
from moorage.plugins.node_resources_fit import advice, hints, strategies
from moorage.plugins.node_resources_fit.needs import Needs
from moorage.plugins.node_resources_fit.shares import Scale, Scored, Shares
from moorage.plugins.node_resources_fit.strategies import Strategy

LEAST_ALLOCATED = mp.ScoringStrategy(type="LeastAllocated")
HEAVIEST = 100
# Pods that state nothing of these count on their node with the containers' defaults.
DEFAULTED = ("cpu", "memory")
# The remaining names that nodes keep count of are the scalars.
UNSCALED = (*DEFAULTED, "ephemeral-storage")

NEEDS = mp.StateKey[Needs]("NodeResourcesFit.needs")
SHARES = mp.StateKey[Shares]("NodeResourcesFit.shares")


# What has to be free, and what is scored.
Reads = tuple[tuple[tuple[str, int], ...], Shares]


class NodeResourcesFit:
    name = "NodeResourcesFit"
    depends = mp.Depends.USAGE
    reads_kinds = ()

    def __init__(
        self,
        *,
        ignored_resources: Iterable[str] = (),
        ignored_resource_groups: Iterable[str] = (),
        scoring_strategy: mp.ScoringStrategy | Mapping[str, Any] = LEAST_ALLOCATED,
    ) -> None:
        settings = msgspec.convert(scoring_strategy, mp.ScoringStrategy)
        self._ignored_resources = frozenset(ignored_resources)
        self._ignored_groups = frozenset(ignored_resource_groups)
        self._strategy: Strategy = strategies.of(settings)
        self._scored = _scored(settings.resources)
        # Templates are shared by profiles, whose settings may differ.
        stated = (sorted(self._ignored_resources), sorted(self._ignored_groups), self._scored)
        self._slot = f"{self.name} {msgspec.json.encode(stated).decode()}"

    def reads(self, pod: mp.Pod) -> Reads:
        needed, added = mp.requests.filter_request(pod), mp.requests.scoring_request(pod)
        return self._needed(needed), self._shares(added)

    def prepare(self, template: mp.PodTemplate) -> tuple[Needs, Shares]:
        needed, shares = self.reads(template.exemplar)
        known = template.compiled[self._slot] = (Needs.of(needed), shares)
        return known

    def _prepared(self, template: mp.PodTemplate) -> tuple[Needs, Shares]:
        return template.compiled.get(self._slot) or self.prepare(template)

    # Filter

    def pre_filter(self, state: mp.CycleState, pod: mp.Pod) -> mp.Status:
        state[NEEDS] = self._prepared(state.template)[0]
        return mp.SUCCESS

    def filter(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> mp.Status:
        needs = state[NEEDS]
        return needs.refusals(needs.lacking(node))

    def filter_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Verdicts:
        needs = state[NEEDS]
        lacking = needs.lacking_all(table)
        if lacking is None:
            return mp.Verdicts(all_fit=len(table), status_of=needs.refusals)
        return mp.Verdicts(codes=lacking, status_of=needs.refusals)

    def _needed(self, wanted: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
        """What has to be free, in the order in which a lack of it is reported."""
        first = [(name, wanted[name]) for name in UNSCALED if wanted.get(name)]
        scalars = [
            (name, amount)
            for name, amount in sorted(wanted.items())
            if amount and name not in UNSCALED and not self._is_ignored(name)
        ]
        return (*first, *scalars)

    def _is_ignored(self, resource: str) -> bool:
        if not mp.requests.is_extended(resource):
            return False
        group, _, _ = resource.partition("/")
        return resource in self._ignored_resources or group in self._ignored_groups

    # Score

    def pre_score(self, state: mp.CycleState, pod: mp.Pod, feasible: mp.Mask) -> mp.Status:
        state[SHARES] = self._prepared(state.template)[1]
        return mp.SUCCESS

    def score(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> int:
        if not self._scored:
            raise mp.PluginFailure("resources not found")
        strategy = self._strategy
        total = weights = 0
        for (resource, weight, defaulted), amount in state[SHARES].each:
            allocatable = node.allocatable(resource)
            if allocatable > 0:
                used = node.nonzero_requested(resource) if defaulted else node.requested(resource)
                rating = strategy.rate(used + amount, allocatable)
                if rating or strategy.counts_zero:
                    total += rating * weight
                    weights += weight
        return strategy.mean(total, weights) if weights else 0

    def score_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Scores:
        if not self._scored:
            raise mp.PluginFailure("resources not found")
        shares = state[SHARES]
        if not shares.amounts:
            return np.zeros(len(table), dtype=np.int64)
        scores = self._score_floats(shares, table)
        return self._score_ints(shares, table) if scores is None else scores

    def _score_floats(self, shares: Shares, table: mp.Rows) -> mp.Scores | None:
        """All resources at once, where every node offers all of them and floats are exact."""
        scale, amounts, strategy = shares.scale, shares.amounts, self._strategy
        offers = table.allocatable_floats(scale.resources)
        if not (strategy.counts_zero and offers.by_all and offers.largest <= strategies.LARGEST):
            return None
        hundredfold = np.array([100.0 * amount for amount in amounts])[:, None]
        left = table.free_floats(scale.counted, 100) - hundredfold
        ratings = strategy.rate_floats(left, offers)
        return None if ratings is None else scale.mean(ratings)  # type: ignore[return-value]

    def _score_ints(self, shares: Shares, table: mp.Rows) -> mp.Scores:
        strategy = self._strategy
        total = np.zeros(len(table), dtype=np.int64)
        weights: Any = 0
        for (resource, weight, defaulted), amount in shares.each:
            allocatable = table.allocatable(resource)
            used = table.nonzero_requested(resource) if defaulted else table.requested(resource)
            ratings = strategy.rate_all(used + amount, allocatable)
            total += ratings * weight
            counted = allocatable > 0 if strategy.counts_zero else ratings > 0
            weights = weights + counted * weight
        return strategy.mean(total, weights)

    def _shares(self, added: Mapping[str, int]) -> Shares:
        amounts = [added.get(scored.resource, 0) for scored in self._scored]
        each = tuple(
            (scored, amount)
            for scored, amount in zip(self._scored, amounts, strict=True)
            if _counts(scored.resource, amount)
        )
        scale = Scale.of(tuple(scored for scored, _ in each))
        return Shares(scale, tuple(amount for _, amount in each), each)

    def explain_rejection(self, rejection: mp.Rejection) -> str:
        return advice.explain(rejection)

    # Requeueing

    def events_to_register(self) -> mp.Events:
        return {
            mp.ClusterEvent.POD_DELETE: hints.after_pod_deleted,
            mp.ClusterEvent.UPDATE_POD_SCALE_DOWN: hints.after_scale_down,
            mp.ClusterEvent.NODE_ADD: hints.after_node_change,
            mp.ClusterEvent.UPDATE_NODE_ALLOCATABLE: hints.after_node_change,
        }


def _counts(resource: str, amount: int) -> bool:
    """What only some pods ask for is no matter for the others."""
    return resource in UNSCALED or (mp.requests.is_scalar(resource) and amount != 0)


def _scored(resources: tuple[mp.ResourceSpec, ...]) -> tuple[Scored, ...]:
    for index, spec in enumerate(resources):
        if not 1 <= spec.weight <= HEAVIEST:
            place = f"scoringStrategy.resources[{index}].weight"
            raise ValueError(f"{place}: must be 1 to {HEAVIEST}, is {spec.weight}")
    return tuple(Scored(spec.name, spec.weight, spec.name in DEFAULTED) for spec in resources)
