"""Strategies: how good is a node that would be this full of a resource?

Each rates one resource from 0 to 100 and says how the ratings of several become one score. All of
it is integer arithmetic on amounts that are never negative, where `//` rounds as Kubernetes does.

For many nodes at once it may be done in floats, which divide several times faster. They are exact
up to LARGEST: a percentage that is no whole number is further from the next one than any rounding.
"""

from typing import ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.node_resources_fit import shape

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Ratings = NDArray[np.int32]
IntOrInts = TypeVar("IntOrInts", int, Ints)

# 2^46: the quotient of a hundred times as much by it is a float to within 2^-47.
LARGEST = 1 << 46


class Strategy(Protocol):
    """One way to score; forms for many may use their first array as scratch space."""

    # Whether a rating of 0 takes part in the mean, or is left out as if there were no resource.
    counts_zero: ClassVar[bool]

    def rate(self, requested: int, allocatable: int) -> int:
        """The rating of one node, which offers some of the resource."""

    def rate_all(self, requested: Ints, allocatable: Ints) -> Ints:
        """The ratings of many; 0 where a node offers nothing."""

    def rate_floats(self, left: Floats, offers: mp.Allocatable) -> Ratings | None:
        """The same by what is left, a hundred times as much, where every node offers some.

        None if there is no such form.
        """

    def mean(self, total: IntOrInts, weights: IntOrInts | int) -> IntOrInts:
        """The score for a weighted sum of ratings."""


class LeastAllocated:
    """The emptier the better: spreads pods."""

    counts_zero: ClassVar[bool] = True

    def rate(self, requested: int, allocatable: int) -> int:
        return 0 if requested > allocatable else (allocatable - requested) * 100 // allocatable

    def rate_all(self, requested: Ints, allocatable: Ints) -> Ints:
        used = np.minimum(requested, allocatable, out=requested)
        return _percent(np.subtract(allocatable, used, out=used), allocatable)

    def rate_floats(self, left: Floats, offers: mp.Allocatable) -> Ratings:
        left /= offers.divisors
        if left.size and left.item(left.argmin()) < 0:
            np.maximum(left, 0.0, out=left)  # To look is quicker than to cut off.
        return left.astype(np.int32)  # Half as wide is half the work.

    def mean(self, total: IntOrInts, weights: IntOrInts | int) -> IntOrInts:
        return _whole(total, weights)


class MostAllocated:
    """The fuller the better: packs pods."""

    counts_zero: ClassVar[bool] = True

    def rate(self, requested: int, allocatable: int) -> int:
        return 100 if requested > allocatable else requested * 100 // allocatable

    def rate_all(self, requested: Ints, allocatable: Ints) -> Ints:
        return _percent(np.minimum(requested, allocatable, out=requested), allocatable)

    def rate_floats(self, left: Floats, offers: mp.Allocatable) -> Ratings:
        offered = 100.0 * offers.amounts
        requested = np.subtract(offered, np.maximum(left, 0.0, out=left), out=offered)
        requested /= offers.divisors
        return requested.astype(np.int32)

    def mean(self, total: IntOrInts, weights: IntOrInts | int) -> IntOrInts:
        return _whole(total, weights)


class RequestedToCapacityRatio:
    """As good as a given shape says for that utilization."""

    counts_zero: ClassVar[bool] = False

    def __init__(self, points: tuple[mp.UtilizationShapePoint, ...]) -> None:
        self._ratings = shape.ratings(points)
        self._ratings_array = np.array(self._ratings, dtype=np.int64)

    def rate(self, requested: int, allocatable: int) -> int:
        full = requested > allocatable
        return self._ratings[100 if full else requested * 100 // allocatable]

    def rate_all(self, requested: Ints, allocatable: Ints) -> Ints:
        used = np.minimum(requested, allocatable, out=requested)
        utilization = _percent(used, allocatable)
        ratings = self._ratings_array.take(utilization, mode="clip")  # "clip" is the fast mode
        ratings *= allocatable > 0
        return ratings

    def rate_floats(self, left: Floats, offers: mp.Allocatable) -> None:
        return None

    def mean(self, total: IntOrInts, weights: IntOrInts | int) -> IntOrInts:
        return _whole(2 * total + weights, 2 * weights)  # to the nearest, halves up


def of(settings: mp.ScoringStrategy) -> Strategy:
    """The strategy that a configuration asks for."""
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


def _percent(part: Ints, whole: Ints) -> Ints:
    part *= 100
    return _whole(part, whole)


def _whole(part: IntOrInts, whole: IntOrInts | int) -> IntOrInts:
    """Integer division, in which NumPy's n // 0 is 0: what is not there earns nothing."""
    if isinstance(whole, int):
        return part // whole
    with np.errstate(divide="ignore"):
        return part // whole
