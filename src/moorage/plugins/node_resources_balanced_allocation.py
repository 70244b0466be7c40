"""NodeResourcesBalancedAllocation: let resources run out together, not one long before another.

A node is in balance when equal fractions of its resources are requested. The score says whether
the pod brings it nearer to that or further away; 75 is no difference. The fractions are floats,
as in Kubernetes, so every sum is taken in the order in which the resources are configured.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

UNSCALED = ("cpu", "memory", "ephemeral-storage")
UNCHANGED = 75
ADDED = mp.StateKey[tuple[tuple[str, int], ...]]("NodeResourcesBalancedAllocation.added")


class NodeResourcesBalancedAllocation:
    name = "NodeResourcesBalancedAllocation"
    depends = mp.Depends.USAGE

    def __init__(
        self,
        *,
        resources: Iterable[mp.ResourceSpec | Mapping[str, Any]] = (
            mp.ResourceSpec(name="cpu"),
            mp.ResourceSpec(name="memory"),
        ),
    ) -> None:
        specs = msgspec.convert(tuple(resources), tuple[mp.ResourceSpec, ...])
        for index, spec in enumerate(specs):
            if spec.weight != 1:
                raise ValueError(f"resources[{index}].weight: must be 1, is {spec.weight}")
        self._resources = tuple(spec.name for spec in specs)
        self._balances: dict[tuple[str, ...], mp.UsageColumn] = {}

    def reads(self, pod: mp.Pod) -> tuple[tuple[str, int], ...]:
        added = mp.requests.balanced_request(pod)
        return tuple((resource, added.get(resource, 0)) for resource in self._resources)

    def pre_score(self, state: mp.CycleState, pod: mp.Pod, feasible: mp.Mask) -> mp.Status:
        added = self.reads(pod)
        if not any(amount for _, amount in added):
            return mp.SKIP
        state[ADDED] = tuple((name, amount) for name, amount in added if _counts(name, amount))
        return mp.SUCCESS

    def score(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> int:
        before: list[float] = []
        after: list[float] = []
        for resource, amount in state[ADDED]:
            allocatable = node.allocatable(resource)
            if allocatable > 0:
                capacity = float(allocatable)  # An int by an int would be rounded differently.
                requested = node.requested(resource)
                before.append(min(requested / capacity, 1.0))
                after.append(min((requested + amount) / capacity, 1.0))
        return 50 + (50 + _balance(after) - _balance(before)) // 2

    def score_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Scores:
        added = state[ADDED]
        if len(added) < 2:
            return np.full(len(table), UNCHANGED, dtype=np.int64)
        after = _balance_all(table, [resource for resource, _ in added], dict(added))
        after -= table[self._balance(tuple(resource for resource, _ in added))]
        after += 50
        after >>= 1  # Half of it; it is never negative.
        after += 50
        return after

    def _balance(self, resources: tuple[str, ...]) -> mp.UsageColumn:
        """How balanced nodes are without the pod, which is the same for all pods."""
        column = self._balances.get(resources)
        if column is None:
            now = BalanceNow(resources)
            column = mp.UsageColumn("balance", read=now.read, read_all=now.read_all)
            self._balances[resources] = column
        return column


@dataclass(frozen=True, slots=True)
class BalanceNow:
    """The balance of nodes as they are."""

    resources: tuple[str, ...]

    def read(self, node: mp.NodeInfo) -> int:
        """Of one node."""
        offered = [(r, float(a)) for r in self.resources if (a := node.allocatable(r)) > 0]
        return _balance([min(node.requested(r) / capacity, 1.0) for r, capacity in offered])

    def read_all(self, table: mp.Rows) -> Ints:
        """Of many."""
        return _balance_all(table, list(self.resources), {})


def _counts(resource: str, amount: int) -> bool:
    """What only some pods ask for is no matter for the others."""
    return resource in UNSCALED or (mp.requests.is_scalar(resource) and amount != 0)


def _balance(fractions: list[float]) -> int:
    """100 where all fractions are equal, down to 50."""
    return int((1 - _deviation(fractions)) * 100)


def _deviation(fractions: list[float]) -> float:
    """The standard deviation; two fractions get by without squares, and so without rounding."""
    count = len(fractions)
    if count == 2:
        return abs((fractions[0] - fractions[1]) / 2)
    if count < 2:
        return 0.0
    total = squares = 0.0
    for fraction in fractions:  # not sum(), which newer Pythons round better than Kubernetes does
        total += fraction
    mean = total / count
    for fraction in fractions:
        squares += (fraction - mean) * (fraction - mean)
    return math.sqrt(squares / count)


def _balance_all(table: mp.Rows, resources: list[str], added: Mapping[str, int]) -> Ints:
    """As `_balance`, for many nodes at once."""
    fractions = [_fractions(table, resource, added.get(resource, 0)) for resource in resources]
    if len(fractions) == 2:
        deviations = _half_distance(*fractions)
        for resource in resources:
            if not table.all_offer(resource):
                deviations *= table.allocatable(resource) > 0
    else:
        offered = [table.allocatable(resource) > 0 for resource in resources]
        deviations = _deviations(fractions, offered)
    np.subtract(1.0, deviations, out=deviations)
    deviations *= 100.0
    return deviations.astype(np.int64)


def _fractions(table: mp.Rows, resource: str, added: int) -> Floats:
    """How full each node would be of a resource."""
    requested = table.requested(resource)
    fractions: Floats = (requested + added if added else requested).astype(np.float64)
    fractions /= table.divisors(resource)
    return np.minimum(fractions, 1.0, out=fractions)


def _half_distance(one: Floats, other: Floats) -> Floats:
    distance = one - other
    distance /= 2.0
    np.abs(distance, out=distance)
    return distance


def _deviations(fractions: list[Floats], offered: list[mp.Mask]) -> Floats:
    """As `_deviation`, of what each node offers; some offer more kinds of resources than others."""
    count, total, squares = np.zeros((3, *fractions[0].shape))
    for fraction, present in zip(fractions, offered, strict=True):
        fraction *= present  # What is not there adds 0, which leaves the sum exactly as it was.
        count += present
        total += fraction
    several = np.maximum(count, 1.0)
    mean = total / several
    for fraction, present in zip(fractions, offered, strict=True):
        distance = fraction - mean
        distance *= present
        distance *= distance
        squares += distance
    squares /= several
    deviations = np.sqrt(squares, out=squares)
    deviations *= count > 1
    return np.where(count == 2, _half_distance(*_extremes(fractions, offered)), deviations)


def _extremes(fractions: list[Floats], offered: list[mp.Mask]) -> tuple[Floats, Floats]:
    """The largest and the smallest fraction of each node."""
    highest, lowest = np.zeros_like(fractions[0]), np.ones_like(fractions[0])
    for fraction, present in zip(fractions, offered, strict=True):
        np.maximum(highest, fraction, out=highest)
        np.minimum(lowest, np.where(present, fraction, 1.0), out=lowest)
    return highest, lowest
