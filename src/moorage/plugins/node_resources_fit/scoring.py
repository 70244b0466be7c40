"""The score: how good is a node that would be this full of a resource?

A scorer rates one resource from 0 to 100 and combines the ratings of several into one score. This
is the integer arithmetic of Go: in 64 bits, with overflow, and divided toward zero.

For many nodes it may be done in floats, multiplied by reciprocals, which is several times faster.
Half a unit is added to a hundred times the amount. So a percentage is never closer to a whole one
than half a unit is of the whole, which up to LARGEST is more than any rounding error.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins import utilization_shape

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Ratings = NDArray[np.int32]
IntOrInts = TypeVar("IntOrInts", int, Ints)

# 2^44: half a unit is 2^-45 of it, and a hundred rounded twice is off by 100 * 2^-52.
LARGEST = 1 << 44
HALF = 0.5
# What nodes have requested in smaller amounts fits into 64 bits together with less than that.
OVERFLOWS = 1 << 62


class ResourceScorer:
    """One way to score; the forms for many nodes may overwrite their first array."""

    # Whether a rating of 0 takes part in the mean, or is left out as if there were no resource.
    counts_zero: ClassVar[bool] = True

    def rate(self, requested: int, allocatable: int) -> int:
        """The rating of one node, which offers some of the resource."""
        raise NotImplementedError

    def rate_all(self, requested: Ints, allocatable: Ints) -> Ints:
        """The ratings of many; 0 where a node offers nothing."""
        raise NotImplementedError

    def rate_floats(self, left: Floats, offers: mp.Allocatable) -> Ratings | None:
        """The same by what is left, a hundred times as much and HALF, where every node offers some.

        None if there is no such form.
        """
        return None

    def mean(self, total: IntOrInts, weights: IntOrInts | int) -> IntOrInts:
        """The score for a weighted sum of ratings."""
        return _whole(total, weights)


class LeastAllocated(ResourceScorer):
    """The emptier the better: spreads pods."""

    def rate(self, requested: int, allocatable: int) -> int:
        if requested > allocatable:
            return 0
        return percent_of(mp.quantity.wrapped(allocatable - requested), allocatable)

    def rate_all(self, requested: Ints, allocatable: Ints) -> Ints:
        used = np.minimum(requested, allocatable, out=requested)
        return _percent(np.subtract(allocatable, used, out=used), allocatable)

    def rate_floats(self, left: Floats, offers: mp.Allocatable) -> Ratings:
        left *= offers.reciprocals
        if left.size and left.item(left.argmin()) < 0:
            np.maximum(left, 0.0, out=left)  # To look is quicker than to cut off.
        return left.astype(np.int32)  # Half as wide is half the work.


class MostAllocated(ResourceScorer):
    """The fuller the better: packs pods."""

    def rate(self, requested: int, allocatable: int) -> int:
        return percent_of(min(requested, allocatable), allocatable)

    def rate_all(self, requested: Ints, allocatable: Ints) -> Ints:
        return _percent(np.minimum(requested, allocatable, out=requested), allocatable)

    def rate_floats(self, left: Floats, offers: mp.Allocatable) -> Ratings:
        offered = 100.0 * offers.amounts + 2 * HALF
        requested = np.subtract(offered, np.maximum(left, HALF, out=left), out=offered)
        requested *= offers.reciprocals
        return requested.astype(np.int32)


class RequestedToCapacityRatio(ResourceScorer):
    """The score of a configured shape for that utilization."""

    counts_zero = False

    def __init__(self, points: tuple[mp.UtilizationShapePoint, ...]) -> None:
        if not points:
            raise ValueError("requestedToCapacityRatio.shape: must have at least one point")
        self._ratings = [utilization_shape.rating(points, percent) for percent in range(101)]
        self._ratings_array = np.array(self._ratings, dtype=np.int64)

    def rate(self, requested: int, allocatable: int) -> int:
        full = requested > allocatable
        percent = 100 if full else percent_of(requested, allocatable)
        return self._ratings[min(max(percent, 0), 100)]

    def rate_all(self, requested: Ints, allocatable: Ints) -> Ints:
        full = requested > allocatable
        utilization = _percent(requested, allocatable)
        utilization[full] = 100
        ratings = self._ratings_array.take(utilization, mode="clip")  # "clip" is the fast mode
        ratings *= allocatable > 0
        return ratings

    def mean(self, total: IntOrInts, weights: IntOrInts | int) -> IntOrInts:
        return _whole(2 * total + weights, 2 * weights)  # to the nearest, halves up


def of(settings: mp.ScoringStrategy) -> ResourceScorer:
    """The scorer of a configured strategy."""
    match settings.type:
        case "LeastAllocated":
            return LeastAllocated()
        case "MostAllocated":
            return MostAllocated()
        case "RequestedToCapacityRatio":
            ratio = settings.requested_to_capacity_ratio
            return RequestedToCapacityRatio(() if ratio is None else ratio.shape)
        case other:
            raise ValueError(f'scoringStrategy.type: "{other}" is not supported')


def percent_of(part: int, whole: int) -> int:
    """The percentage that a part is of a whole; from 2^63 / 100 on, it overflows."""
    return _whole(mp.quantity.wrapped(part * 100), whole)


def _percent(part: Ints, whole: Ints) -> Ints:
    part *= 100
    return _whole(part, whole)


def _whole(part: IntOrInts, whole: IntOrInts | int) -> IntOrInts:
    """Integer division, toward zero, in which n / 0 is 0: what is not there earns nothing."""
    if isinstance(part, int):
        return part // whole if part >= 0 else -(-part // whole)
    with np.errstate(divide="ignore"):
        quotient = part // whole
        if len(part) and part.item(part.argmin()) < 0:
            # Rounded down, and by one too far if there is a remainder.
            quotient += (part < 0) & (whole > 0) & (quotient * whole != part)
    return quotient


class ScoredResource(NamedTuple):
    """A resource that is scored, and how much it counts.

    If `defaulted`, pods on a node that state nothing of it count with a default.
    """

    resource: str
    weight: int
    defaulted: bool


class ScoringWeights(Struct, frozen=True, eq=False):
    """The same for all pods for which the same resources are scored."""

    resources: tuple[str, ...]
    # The argument for `table.free_floats`.
    counted: tuple[tuple[str, bool], ...]
    # One below the other; None if all are 1.
    weights: Ratings | None
    weight: int

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, each: tuple[ScoredResource, ...]) -> "ScoringWeights":
        """The weights of some resources."""
        weights = [scored.weight for scored in each]
        equal = weights.count(1) == len(weights)
        return cls(
            tuple([scored.resource for scored in each]),
            tuple([(scored.resource, scored.defaulted) for scored in each]),
            None if equal else np.array([[weight] for weight in weights], dtype=np.int32),
            sum(weights),
        )

    def mean(self, ratings: Ratings) -> Ratings:
        """The mean of many nodes' ratings, a line for each resource, rounded down."""
        if self.weights is not None:
            ratings *= self.weights
        total: Ratings = ratings[0]
        for line in range(1, len(ratings)):
            total += ratings[line]
        if self.weight == 2:
            total >>= 1  # To shift is quicker than to divide.
        elif self.weight != 1:
            total //= self.weight
        return total


@dataclass(frozen=True, slots=True)
class ScoredRequest:
    """What a pod adds to each of the resources that are scored."""

    weights: ScoringWeights
    # One by one, with each resource.
    each: tuple[tuple[ScoredResource, int], ...]
    # A hundred times as much, one below the other, less the HALF that is to be added.
    hundredfold: Floats = field(compare=False)
    # Whether a sum with an amount may not fit into 64 bits.
    may_overflow: bool

    @classmethod
    def of(cls, each: tuple[tuple[ScoredResource, int], ...]) -> "ScoredRequest":
        """Resources with their amounts."""
        weights = ScoringWeights.of(tuple([scored for scored, _ in each]))
        hundredfold = np.array([100.0 * amount - HALF for _, amount in each])[:, None]
        return cls(weights, each, hundredfold, any(amount >= OVERFLOWS for _, amount in each))
