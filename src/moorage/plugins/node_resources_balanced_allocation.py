"""NodeResourcesBalancedAllocation: use the resources of a node in equal proportions.

A node is in balance when equal fractions of its resources are requested. The score says whether
the pod brings it nearer to that or further away; 75 is no difference. The fractions are floats,
as in Kubernetes, so every sum is taken in the order in which the resources are configured.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

UNCHANGED = 75
LEAST = 50
ADDED = mp.StateKey["AddedAmounts"]("NodeResourcesBalancedAllocation.added")
# Sums of whole numbers about as large as this are the same in floats.
EXACT = 1 << 52
MOST = (1 << 63) - 1
# As arrays, because an operation with a number takes longer for it to be converted.
TWO, FIFTY = np.array(2.0), np.array(50.0)


class NodeResourcesBalancedAllocation:
    name = "NodeResourcesBalancedAllocation"
    depends = mp.Depends.RESOURCES
    reads_kinds = ()

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
        # Templates are shared by profiles, whose settings may differ.
        self._slot = f"{self.name} {msgspec.json.encode(self._resources).decode()}"

    def reads(self, pod: mp.Pod) -> tuple[tuple[str, int], ...]:
        added = mp.requests.balanced_request(pod)
        return tuple([(resource, added.get(resource, 0)) for resource in self._resources])

    def prepare(self, template: mp.PodTemplate) -> "AddedAmounts":
        added = self.reads(template.exemplar)
        is_some = any(amount for _, amount in added)
        scored = [each for each in added if mp.requests.is_scored(*each)]
        known = AddedAmounts.of(scored, is_some=is_some)
        template.compiled[self._slot] = known
        return known

    def pre_score(self, state: mp.CycleState, pod: mp.Pod, feasible: mp.Mask) -> mp.Status:
        added = self._prepared(state.template)
        if not added.is_some:
            return mp.SKIP
        state[ADDED] = added
        return mp.SUCCESS

    def _prepared(self, template: mp.PodTemplate) -> "AddedAmounts":
        return template.compiled.get(self._slot) or self.prepare(template)

    def _added_in(self, state: mp.CycleState) -> "AddedAmounts":
        """What pre_score stored, or the same if the profile does not call it."""
        found = state.get(ADDED, None)
        return self._prepared(state.template) if found is None else found

    def score(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> int:
        before: list[float] = []
        after: list[float] = []
        adds = self._added_in(state)
        if not adds.is_some:
            return 0
        for resource, amount in adds.each:
            allocatable, requested = node.amounts(resource)
            if allocatable > 0:
                before.append(_fraction(requested, allocatable))
                after.append(_fraction(mp.quantity.wrapped(requested + amount), allocatable))
        change = mp.quantity.wrapped(50 + _balance(after) - _balance(before))
        return 50 + (change // 2 if change >= 0 else -(-change // 2))

    def score_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Scores:
        added = self._added_in(state)
        if not added.is_some:
            return np.zeros(len(table), dtype=np.int64)
        if len(added.amounts) < 2:
            return np.full(len(table), UNCHANGED, dtype=np.int64)
        if not state.table.has_large and added.largest <= EXACT:
            return _scores(table, added)  # type: ignore[return-value]  # Half as wide.
        with np.errstate(invalid="ignore"):
            after = _scores(table, added)
        scores = after.astype(np.int64)
        if not _has_overflown(table, added, after):
            return scores
        rows = table.take(np.arange(state.table.capacity))
        for at in np.flatnonzero(table.active).tolist():
            scores[at] = self.score(state, pod, state.table.info(rows.item(at)))
        return scores


class AddedAmounts(NamedTuple):
    """What a pod adds to some resources of a node, in the order in which they are configured."""

    each: tuple[tuple[str, int], ...]
    resources: tuple[str, ...]
    amounts: tuple[int, ...]
    # The argument for `table.requested_floats`.
    counted: tuple[tuple[str, bool], ...]
    # The amounts one below the other, to add to a line for each resource.
    lines: Floats
    # Whether it adds anything at all.
    is_some: bool
    largest: int

    @classmethod
    def of(cls, each: Iterable[tuple[str, int]], *, is_some: bool) -> "AddedAmounts":
        """Resources with their amounts."""
        each = tuple(each)
        names, amounts = tuple(name for name, _ in each), tuple(n for _, n in each)
        lines = np.array(amounts, dtype=np.float64)[:, None]
        return cls(each, names, amounts, _counted(names), lines, is_some, max(amounts, default=0))


@dataclass(frozen=True, slots=True)
class Base:
    """150 minus the balance of a node without the pod: the constant part of a score."""

    resources: tuple[str, ...]

    def read(self, node: mp.NodeInfo) -> int:
        """Of one node."""
        fractions = []
        for resource in self.resources:
            allocatable, requested = node.amounts(resource)
            if allocatable > 0:
                fractions.append(requested / float(allocatable) if requested < allocatable else 1.0)
        # Where a sum has overflown, rows are scored one by one, without this column.
        return 150 - max(int((1 - _deviation(fractions)) * 100), 0)

    def read_all(self, table: mp.Rows) -> Ints:
        """Of many."""
        added = AddedAmounts.of([(r, 0) for r in self.resources], is_some=False)
        with np.errstate(invalid="ignore"):
            return 150 - np.maximum(_balance_all(table, added), 0)


@lru_cache(maxsize=256)
def base_column(resources: tuple[str, ...]) -> mp.UsageColumn:
    """The column of what scores are counted from."""
    base = Base(resources)
    return mp.UsageColumn("base", read=base.read, read_all=base.read_all)


def _fraction(requested: int, allocatable: int) -> float:
    """How full a node is of a resource."""
    # An int by an int would be rounded differently.
    return requested / float(allocatable) if requested < allocatable else 1.0


def _balance(fractions: list[float]) -> int:
    """100 where all fractions are equal, down to 50; less where a sum has overflown."""
    balance = (1 - _deviation(fractions)) * 100
    return int(balance) if abs(balance) < 1 << 63 else -(1 << 63)


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


def _balance_all(table: mp.Rows, added: AddedAmounts) -> Ints:
    """As `_balance`, for many nodes at once."""
    offers = table.allocatable_floats(added.resources)
    fractions = _fractions(table, added, offers)
    if len(fractions) == 2:
        distances = _distance(fractions[0], fractions[1])
        if not offers.by_all:
            distances *= (offers.amounts > 0).all(axis=0)
    else:
        distances = 2.0 * _deviations(fractions, offers.amounts > 0)
    # Half of it is the deviation; to double the rest and not the points takes one pass less.
    np.subtract(TWO, distances, out=distances)
    distances *= FIFTY
    return distances.astype(np.int32)


def _scores(table: mp.Rows, added: AddedAmounts) -> Ints:
    after = _balance_all(table, added)
    after += table[base_column(added.resources)]
    after >>= 1  # 50 and half of the rest, which is never negative.
    return after


def _has_overflown(table: mp.Rows, added: AddedAmounts, scores: Ints) -> bool:
    """Whether a sum does not fit into 64 bits: it is negative, or would be with the pod."""
    if len(scores) and scores.item(scores.argmin()) < LEAST:
        return True
    sums = [(table.requested(resource), amount) for resource, amount in added.each]
    return any(
        len(sum_) and (sum_.item(sum_.argmin()) < 0 or sum_.item(sum_.argmax()) > MOST - amount)
        for sum_, amount in sums
    )


def _fractions(table: mp.Rows, added: AddedAmounts, offers: mp.Allocatable) -> Floats:
    """How full each node would be, a line for each resource."""
    if offers.largest <= EXACT:
        fractions = table.requested_floats(added.counted) + added.lines
    else:
        sums = [table.requested(resource) + amount for resource, amount in added.each]
        fractions = np.stack(sums).astype(np.float64)
    fractions /= offers.divisors
    # Most often there is nothing to cut off.
    if not table.has_room(added.counted, added.amounts):
        np.minimum(fractions, 1.0, out=fractions)
    return fractions


@lru_cache(maxsize=256)
def _counted(resources: tuple[str, ...]) -> tuple[tuple[str, bool], ...]:
    return tuple((resource, False) for resource in resources)


def _distance(one: Floats, other: Floats) -> Floats:
    """How far apart they are, in place of the first."""
    distance = np.subtract(one, other, out=one)
    return np.abs(distance, out=distance)


def _deviations(fractions: Floats, offered: mp.Mask) -> Floats:
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
    half = 0.5 * _distance(*_extremes(fractions, offered))
    return np.where(count == 2, half, deviations)


def _extremes(fractions: Floats, offered: mp.Mask) -> tuple[Floats, Floats]:
    """The largest and the smallest fraction of each node."""
    highest, lowest = np.zeros_like(fractions[0]), np.ones_like(fractions[0])
    for fraction, present in zip(fractions, offered, strict=True):
        np.maximum(highest, fraction, out=highest)
        np.minimum(lowest, np.where(present, fraction, 1.0), out=lowest)
    return highest, lowest
