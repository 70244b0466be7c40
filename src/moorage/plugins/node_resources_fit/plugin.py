"""NodeResourcesFit: does the node have the requested resources, and how full would it be?

The filter uses the requests as stated, the score uses requests with a default for containers that
state none. So the two read different amounts of one pod, and `reads` returns both. Where devices
serve an extended resource, DynamicResources looks for them and the filter ignores it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.node_resources_fit import filtering, scoring
from moorage.plugins.node_resources_fit.filtering import FilterRequest
from moorage.plugins.node_resources_fit.scoring import (
    ResourceScorer,
    ScoredRequest,
    ScoredResource,
)

LEAST_ALLOCATED = mp.ScoringStrategy(type="LeastAllocated")
HEAVIEST = 100
# Pods that state nothing of these count on their node with the containers' defaults.
DEFAULTED = (mp.requests.CPU, mp.requests.MEMORY)
UNSCALED = mp.requests.UNSCALED

FILTER_REQUEST = mp.StateKey[FilterRequest](
    "NodeResourcesFit.filter_request",
    missing='error reading "PreFilterNodeResourcesFit" from cycleState: not found',
)
SCORED_REQUEST = mp.StateKey[ScoredRequest]("NodeResourcesFit.scored_request")
# What has to be free, and what is scored.
Reads = tuple[tuple[tuple[str, int], ...], ScoredRequest]


class NodeResourcesFit:
    name = "NodeResourcesFit"
    depends = mp.Depends.RESOURCES
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
        self._scorer: ResourceScorer = scoring.of(settings)
        self._scored = _scored(settings.resources)
        # Templates are shared by profiles, whose settings may differ.
        stated = (sorted(self._ignored_resources), sorted(self._ignored_groups), self._scored)
        self._slot = f"{self.name} {msgspec.json.encode(stated).decode()}"

    def reads(self, pod: mp.Pod) -> Reads:
        needed, added = mp.requests.filter_request(pod), mp.requests.scoring_request(pod)
        return self._needed(needed), self._scored_request(added)

    def prepare(self, template: mp.PodTemplate) -> tuple[FilterRequest, ScoredRequest]:
        needed, scored = self.reads(template.exemplar)
        known = template.compiled[self._slot] = (FilterRequest.of(needed), scored)
        return known

    def _prepared(self, template: mp.PodTemplate) -> tuple[FilterRequest, ScoredRequest]:
        return template.compiled.get(self._slot) or self.prepare(template)

    # Filter

    def pre_filter(self, state: mp.CycleState, pod: mp.Pod) -> mp.Status:
        state[FILTER_REQUEST] = self._prepared(state.template)[0]
        return mp.SUCCESS

    def filter(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> mp.Status:
        request = state[FILTER_REQUEST]
        return request.resources.statuses(request.lacking(node))

    def filter_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Verdicts:
        request = state[FILTER_REQUEST]
        lacking = request.lacking_all(table)
        if lacking is None:
            return filtering.all_fit(len(table))
        return mp.Verdicts(codes=lacking, status_of=request.resources.statuses)

    def filter_copies(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> NDArray[np.int64]:
        return state[FILTER_REQUEST].copies_all(table)

    def _needed(self, wanted: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
        """What has to be free, in the order in which shortages are reported."""
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
        state[SCORED_REQUEST] = self._prepared(state.template)[1]
        return mp.SUCCESS

    def _scored_in(self, state: mp.CycleState) -> ScoredRequest:
        """What pre_score stored, or the same if the profile does not call it."""
        found = state.get(SCORED_REQUEST, None)
        return self._prepared(state.template)[1] if found is None else found

    def placement_score(
        self,
        cluster: mp.Cluster,
        group: mp.PodGroup,
        placement: mp.GroupPlacement,
        pods: Sequence[mp.Pod],
    ) -> int:
        """How full the nodes of a placement would be together; the fullest is the best."""
        table, requests = cluster.table, [mp.requests.scoring_request(pod) for pod in pods]
        rows = placement.rows & table.active_rows
        total = weights = 0
        for resource, weight, defaulted in self._scored:
            added = sum(request.get(resource, 0) for request in requests)
            if not added and not defaulted:
                continue
            offering = rows & (table.allocatable(resource) > 0)
            offered = int(table.allocatable(resource)[offering].sum())
            if offered:
                used = table.nonzero_requested if defaulted else table.requested
                needed = min(int(used(resource)[offering].sum()) + added, offered)
                total += 100 * needed // offered * weight
                weights += weight
        return total // weights if weights else 0

    def score(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> int:
        if not self._scored:
            raise mp.PluginFailure("resources not found")
        scorer = self._scorer
        total = weights = 0
        for (resource, weight, defaulted), amount in self._scored_in(state).each:
            allocatable = node.allocatable(resource)
            if allocatable > 0:
                used = node.nonzero_requested(resource) if defaulted else node.requested(resource)
                total_used = used + amount
                if total_used > mp.quantity.INT64_MAX:
                    total_used = mp.quantity.wrapped(total_used)
                rating = scorer.rate(total_used, allocatable)
                if rating or scorer.counts_zero:
                    total += rating * weight
                    weights += weight
        return scorer.mean(total, weights) if weights else 0

    def score_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Scores:
        if not self._scored:
            raise mp.PluginFailure("resources not found")
        request = self._scored_in(state)
        if not request.each:
            return np.zeros(len(table), dtype=np.int64)
        scores = self._score_floats(request, table)
        return self._score_ints(request, table) if scores is None else scores

    def _score_floats(self, request: ScoredRequest, table: mp.Rows) -> mp.Scores | None:
        """All resources at once, where every node offers all of them and floats are exact."""
        weights, scorer = request.weights, self._scorer
        if request.may_overflow:
            return None
        offers = table.allocatable_floats(weights.resources)
        if not (scorer.counts_zero and offers.by_all and offers.largest <= scoring.LARGEST):
            return None
        left = table.free_floats(weights.counted, 100) - request.hundredfold
        ratings = scorer.rate_floats(left, offers)
        return None if ratings is None else weights.mean(ratings)  # type: ignore[return-value]

    def _score_ints(self, request: ScoredRequest, table: mp.Rows) -> mp.Scores:
        scorer = self._scorer
        total = np.zeros(len(table), dtype=np.int64)
        weights: Any = 0
        for (resource, weight, defaulted), amount in request.each:
            allocatable = table.allocatable(resource)
            used = table.nonzero_requested(resource) if defaulted else table.requested(resource)
            ratings = scorer.rate_all(used + amount, allocatable)
            total += ratings * weight
            counted = allocatable > 0 if scorer.counts_zero else ratings > 0
            weights = weights + counted * weight
        return scorer.mean(total, weights)

    def _scored_request(self, added: Mapping[str, int]) -> ScoredRequest:
        amounts = [added.get(scored.resource, 0) for scored in self._scored]
        each = tuple(
            (scored, amount)
            for scored, amount in zip(self._scored, amounts, strict=True)
            if mp.requests.is_scored(scored.resource, amount)
        )
        return ScoredRequest.of(each)

    def explain_rejection(self, rejection: mp.Rejection) -> str:
        return filtering.explain_shortage(rejection)

    # Requeueing

    def events_to_register(self) -> mp.Events:
        return {
            mp.ClusterEvent.POD_DELETE: after_pod_deleted,
            mp.ClusterEvent.UPDATE_POD_SCALE_DOWN: after_scale_down,
            mp.ClusterEvent.NODE_ADD: after_node_change,
            mp.ClusterEvent.UPDATE_NODE_ALLOCATABLE: after_node_change,
        }


def _scored(resources: tuple[mp.ResourceSpec, ...]) -> tuple[ScoredResource, ...]:
    for index, spec in enumerate(resources):
        if not 1 <= spec.weight <= HEAVIEST:
            place = f"scoringStrategy.resources[{index}].weight"
            raise ValueError(f"{place}: must be 1 to {HEAVIEST}, is {spec.weight}")
    return tuple(
        ScoredResource(spec.name, spec.weight, spec.name in DEFAULTED) for spec in resources
    )


# Hints: could the node hold the pod if it were empty? Ignored resources count here, as in
# kube-scheduler; such a pod may wait for another change.


def after_pod_deleted(pod: mp.Pod, old: mp.Pod, new: None) -> mp.Hint:
    """A pod that was on a node, or nominated to one, frees its resources."""
    return _queue_if(bool(old.node_name or old.status.nominated_node_name))


def after_scale_down(pod: mp.Pod, old: mp.Pod, new: mp.Pod) -> mp.Hint:
    """The pod itself requests less, or another pod frees some of what it requests."""
    if new.uid == pod.uid:
        return mp.Hint.QUEUE
    return _queue_if(bool(new.node_name) and _frees_some(pod, old, new))


def after_node_change(pod: mp.Pod, old: mp.Node | None, new: mp.Node) -> mp.Hint:
    """The node is large enough and, if it existed before, offers more of what is requested."""
    wanted = {name: amount for name, amount in mp.requests.filter_request(pod).items() if amount}
    offered = mp.requests.allocatable(new)
    if offered.get("pods", 0) < 1 or any(wanted[name] > offered.get(name, 0) for name in wanted):
        return mp.Hint.QUEUE_SKIP
    if old is None:
        return mp.Hint.QUEUE
    before = mp.requests.allocatable(old)
    return _queue_if(any(offered.get(name, 0) > before.get(name, 0) for name in ("pods", *wanted)))


def _frees_some(pod: mp.Pod, old: mp.Pod, new: mp.Pod) -> bool:
    before, after = mp.requests.requested(old), mp.requests.requested(new)
    return any(
        before.get(name, 0) > after.get(name, 0)
        for name, amount in mp.requests.requested(pod).items()
        if amount
    )


def _queue_if(helps: bool) -> mp.Hint:  # noqa: FBT001 - the answer itself, not an option
    return mp.Hint.QUEUE if helps else mp.Hint.QUEUE_SKIP
