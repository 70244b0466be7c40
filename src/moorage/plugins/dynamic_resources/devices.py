"""PodDevices: the claims of a pod in one cycle, and which nodes can serve them."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.dynamic_resources import allocator, conditions, extended, pools, results
from moorage.plugins.dynamic_resources.allocator import (
    Chosen,
    InvalidPools,
    SearchTimeout,
    Solution,
)
from moorage.plugins.dynamic_resources.claims import Claim, Plans, is_allocated
from moorage.plugins.dynamic_resources.extended import ExtendedRequest
from moorage.plugins.dynamic_resources.index import DeviceIndex
from moorage.plugins.dynamic_resources.plan import AllocationFailed, AllocationPlan, Failure

MOST_OUTCOMES = 1 << 16
TIMED_OUT = Failure("timed out trying to allocate devices")

_encode = msgspec.msgpack.Encoder().encode


class Verdict(IntEnum):
    """Why a node cannot serve the claims; codes above these are errors."""

    FITS = 0
    NO_SOLUTION = 1
    INVALID_POOLS = 2
    UNAVAILABLE = 3
    LEFTOVER = 4
    CANNOT_FIT = 5


FITS, NO_SOLUTION, INVALID_POOLS, UNAVAILABLE, LEFTOVER, CANNOT_FIT = Verdict
STATUSES = (
    mp.SUCCESS,
    mp.unresolvable("cannot allocate all claims"),
    mp.unresolvable("invalid resource pools were encountered"),
    mp.unresolvable("resourceclaim not available on the node"),
    extended.LEFTOVER,
    extended.CANNOT_FIT,
)


class Outcome(NamedTuple):
    """What the allocator found for an inventory: a solution, a verdict, or an error."""

    verdict: Verdict = FITS
    solution: Solution = ()
    failure: Failure | None = None


@dataclass(slots=True)
class AllocatedClaim:
    """A claim that has its devices: on which nodes, and whether they can be used at all."""

    claim: Claim
    is_unusable: bool
    matcher: mp.selectors.NodeSelectorMatcher | None

    @classmethod
    def of(cls, claim: Claim, timeout_seconds: float, now: float) -> "AllocatedClaim":
        assert claim.status.allocation is not None
        selector = claim.status.allocation.node_selector
        matcher = None if selector is None else pools.compiled(_encode(selector))
        if matcher is not None and matcher.problems:
            raise mp.PluginFailure(", ".join(matcher.problems))
        return cls(claim, conditions.have_failed(claim, timeout_seconds, now), matcher)

    def is_available(self, node: mp.Node) -> bool:
        """Whether a node can use the devices."""
        if self.is_unusable:
            return False
        return self.matcher is None or self.matcher.matches(node.labels, node.name)

    def available_rows(self, table: mp.NodeTable) -> mp.Mask:
        """The same for all rows."""
        if self.is_unusable:
            return np.zeros(len(table), dtype=np.bool_)
        if self.matcher is None:
            return np.ones(len(table), dtype=np.bool_)
        return mp.node_terms.matching_any(self.matcher.terms, table)


@dataclass
class PodDevices:
    """See the module. `claims` are those that the pod names, `special` is for its resources."""

    cluster: mp.Cluster
    pod: mp.Pod
    claims: list[Claim]
    special: Claim | None
    index: DeviceIndex
    plans: Plans
    allocated: list[AllocatedClaim]
    # The extended resources that the pod requests.
    resources: tuple[str, ...]
    most_steps: float
    _requests: dict[tuple[str, ...], ExtendedRequest] = field(default_factory=dict)
    _plans: dict[tuple[str, ...], AllocationPlan] = field(default_factory=dict)
    # The claims that the pod names and that need devices.
    unallocated: list[Claim] = field(init=False)

    def __post_init__(self) -> None:
        self.unallocated = [claim for claim in self.claims if not is_allocated(claim)]

    def signature(self) -> Hashable:
        """Equal while verdicts differ only because of nodes and the usage of devices."""
        plan = self.plan_for(()) if self.unallocated else None
        allocated = tuple(
            (each.is_unusable, None if each.matcher is None else id(each.matcher))
            for each in self.allocated
        )
        if self.special is None:
            return plan, allocated
        classes = self.cluster.version_of(mp.DeviceClass)
        return plan, allocated, classes, self.has_leftover, self.resources

    @property
    def has_leftover(self) -> bool:
        """Whether the special claim of an earlier attempt still exists."""
        return self.special is not None and self.special.spec.devices.requests is not None

    # The special claim

    def served(self, node: mp.Node) -> tuple[str, ...] | None:
        """The resources that devices serve on a node; None if the node lacks one for good."""
        if self.special is None:
            return ()
        table, row = self.cluster.table, self.cluster.table.row_of[node.name]
        amounts = table.info(row)
        found = []
        for resource in self.resources:
            if resource in table.device_resources.classes and not amounts.allocatable(resource):
                found.append(resource)
            elif resource not in node.status.allocatable:
                return None
        return tuple(found)

    def request_for(self, served: tuple[str, ...]) -> ExtendedRequest:
        """The requests of the special claim where devices serve these resources."""
        known = self._requests.get(served)
        if known is None:
            serving = self.cluster.table.device_resources
            classes = {name: serving.class_of(name) or "" for name in served}
            known = self._requests[served] = extended.request_devices(self.pod, classes)
        return known

    def has_special(self, served: tuple[str, ...]) -> bool:
        """Whether the special claim is allocated where devices serve these resources."""
        # As in kube-scheduler, one without requests, if the pod has other claims.
        return self.special is not None and bool(served or self.claims)

    def plan_for(self, served: tuple[str, ...]) -> AllocationPlan:
        """What has to be allocated on nodes where devices serve these resources."""
        known = self._plans.get(served)
        if known is None:
            known = self._plans[served] = self._plan_for(served)
        return known

    def _plan_for(self, served: tuple[str, ...]) -> AllocationPlan:
        specs = [claim.spec.devices for claim in self.unallocated]
        if self.has_special(served):
            specs.append(mp.DeviceClaim(requests=self.request_for(served).requests))
        return self.plans.of(specs)

    def claims_for(self, served: tuple[str, ...]) -> list[Claim]:
        """The claims to allocate, in the order of the plan."""
        if self.special is None or not self.has_special(served):
            return self.unallocated
        requests = self.request_for(served).requests
        spec = mp.ResourceClaimSpec(devices=mp.DeviceClaim(requests=requests))
        return [*self.unallocated, structs.replace(self.special, spec=spec)]

    # Verdicts

    def outcome(self, number: int, served: tuple[str, ...]) -> Outcome:
        """What the allocator finds for a state of the index; computed once."""
        plan, state = self.plan_for(served), self.index.node_state(number)
        version = self.index.version_of(state)
        known = plan.found.get(state)
        if known is None or known[0] != version:
            if len(plan.found) >= MOST_OUTCOMES:
                plan.found.clear()
            known = plan.found[state] = (version, self._allocate(plan, number))
        found: Outcome = known[1]
        return found

    def _allocate(self, plan: AllocationPlan, number: int) -> Outcome:
        state = self.index.node_state(number)
        if state.error:
            return Outcome(failure=Failure(state.error))
        try:
            found = allocator.allocate(plan, self.index.inventory(state), self.most_steps)
        except AllocationFailed as failed:
            return Outcome(failure=failed.failure)
        except SearchTimeout:
            return Outcome(failure=TIMED_OUT)
        except InvalidPools:
            return Outcome(INVALID_POOLS)
        return Outcome(NO_SOLUTION) if found is None else Outcome(solution=found)

    def needs_allocation(self, served: tuple[str, ...]) -> bool:
        """Whether something has to be allocated where devices serve these resources."""
        return bool(self.unallocated) or self.has_special(served)

    def verdict(self, row: int, node: mp.Node) -> Verdict:
        """Whether a node can serve all claims; raises PluginFailure."""
        if self.has_leftover:
            return LEFTOVER
        served = self.served(node)
        if served is None:
            return CANNOT_FIT
        if self.needs_allocation(served):
            outcome = self.outcome(self.index.state(row), served)
            if outcome.failure is not None:
                raise mp.PluginFailure(self.error_text(outcome.failure, row, node.name, served))
            if outcome.verdict is not FITS:
                return outcome.verdict
        if all(each.is_available(node) for each in self.allocated):
            return FITS
        return UNAVAILABLE

    def error_text(self, failure: Failure, row: int, node: str, served: tuple[str, ...]) -> str:
        """An error with the names of claims, pools and devices."""
        claims = self.claims_for(served)
        keys = [f"{each.namespace}/{extended.name_of(each)}" for each in claims]
        text = failure.render(keys, self.index.pools_of(row))
        return f"node {node}: {text}" if failure is TIMED_OUT else text

    def verdicts(self) -> mp.Verdicts:
        """The verdicts on all rows."""
        table = self.cluster.table
        if self.has_leftover:
            codes = np.full(len(table), int(LEFTOVER), dtype=np.int64)
            return mp.Verdicts(codes=codes, status_of=STATUSES.__getitem__)
        codes = np.zeros(len(table), dtype=np.int64)
        errors: dict[int, str] = {}
        for served, rows in self._by_served():
            if served is None:
                codes[rows] = CANNOT_FIT
            elif self.needs_allocation(served):
                self._evaluate(served, rows, codes, errors)
        for each in self.allocated:
            codes[(codes == FITS) & ~each.available_rows(table)] = UNAVAILABLE
        return mp.Verdicts(codes=codes, status_of=STATUSES.__getitem__, errors=errors)

    def _by_served(self) -> list[tuple[tuple[str, ...] | None, NDArray[np.intp]]]:
        """The rows by which resources devices serve there."""
        table = self.cluster.table
        active = np.flatnonzero(table.active_rows)
        if self.special is None:
            return [((), active)]
        groups: dict[tuple[str, ...] | None, list[int]] = {}
        for row in active.tolist():
            node = table.nodes[row]
            assert node is not None
            groups.setdefault(self.served(node), []).append(row)
        return [(served, np.array(rows, dtype=np.intp)) for served, rows in groups.items()]

    def _evaluate(
        self,
        served: tuple[str, ...],
        rows: NDArray[np.intp],
        codes: NDArray[np.int64],
        errors: dict[int, str],
    ) -> None:
        """Run the allocator for each distinct state among the rows."""
        states = self.index.states[rows]
        code_of = np.zeros(int(states.max(initial=0)) + 1, dtype=np.int64)
        for number in np.flatnonzero(np.bincount(states)).tolist():
            outcome = self.outcome(number, served)
            code_of[number] = outcome.verdict
            if outcome.failure is not None:
                code = len(STATUSES) + len(errors)
                row = int(rows[np.argmax(states == number)])
                name = self.cluster.table.name(row)
                errors[code] = self.error_text(outcome.failure, row, name, served)
                code_of[number] = code
        codes[rows] = code_of[states]

    # Results

    def allocations(self, node: mp.Node) -> list[tuple[Claim, mp.AllocationResult]]:
        """The claims to allocate on a node where they fit, with their allocations."""
        row = self.cluster.table.row_of[node.name]
        served = self.served(node)
        if served is None or not self.needs_allocation(served):
            return []
        solution = self.outcome(self.index.state(row), served).solution
        plan, seen = self.plan_for(served), self.index.pools_of(row)
        return [
            (claim, results.allocation(claim, own, chosen, seen, node.name))
            for claim, own, chosen in zip(
                self.claims_for(served), plan.claims, solution, strict=True
            )
        ]

    @cached_property
    def has_alternatives(self) -> bool:
        """Whether a claim has a request for the first available of several."""
        return self.cluster.has_feature(mp.feature_gates.PRIORITIZED_LIST) and any(
            request.first_available
            for claim in self.claims
            for request in claim.spec.devices.requests or ()
        )

    def score(self, row: int, node: mp.Node) -> int:
        """The preference of the alternatives that a node serves; 0 if nothing is allocated."""
        served = self.served(node)
        if served is None or not self.needs_allocation(served):
            return 0
        return self.score_of(self.outcome(self.index.state(row), served))

    def score_of(self, outcome: Outcome) -> int:
        """The same for what the allocator found."""
        chosen = sum(_preference(each) for each in outcome.solution)
        return chosen + self._score_of_allocated

    @cached_property
    def _score_of_allocated(self) -> int:
        total = 0
        for each in self.allocated:
            allocation = each.claim.status.allocation
            assert allocation is not None
            used = {result.request for result in allocation.devices.results}
            for request in each.claim.spec.devices.requests or ():
                for i, alternative in enumerate(request.first_available):
                    if f"{request.name}/{alternative.name}" in used:
                        total += mp.MAX_SUBREQUESTS - i
        return total

    def scores(self) -> mp.Scores:
        """The scores of all rows."""
        table = self.cluster.table
        found = np.zeros(len(table), dtype=np.int64)
        for served, rows in self._by_served():
            if served is None or not self.needs_allocation(served):
                continue
            states = self.index.states[rows]
            score_of = np.zeros(int(states.max(initial=0)) + 1, dtype=np.int64)
            for number in np.flatnonzero(np.bincount(states)).tolist():
                score_of[number] = self.score_of(self.outcome(number, served))
            found[rows] = score_of[states]
        return found


def _preference(chosen: Sequence[Chosen]) -> int:
    """One claim's score: more for alternatives that come earlier."""
    used = {each.request.request: each.request for each in chosen if each.request.subrequest}
    return sum(mp.MAX_SUBREQUESTS - request.index for request in used.values())
