"""Strategies: how good is a node that would be this full of a resource?

Each rates one resource from 0 to 100 and says how the ratings of several become one score. All of
it is integer arithmetic on amounts that are never negative, where `//` rounds as Kubernetes does.

For many nodes at once it is done in floats, which divide several times faster, and are exact here:
up to LARGEST a percentage that is no whole number is further from the next one than any rounding.
"""

from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.node_resources_fit import shape

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Numbers = NDArray[Any]
IntOrNumbers = TypeVar("IntOrNumbers", int, Numbers)

# 2^46: the quotient of two numbers with a hundredth of that is a float to within 2^-47.
LARGEST = 1 << 46


class Strategy(Protocol):
    """One way to score; `rate_all` may use `requested` as scratch space for its answer."""

    # Whether a rating of 0 takes part in the mean, or is left out as if there were no resource.
    counts_zero: ClassVar[bool]

    def rate(self, requested: int, allocatable: int) -> int:
        """The rating of one node, which offers some of the resource."""

    def rate_all(self, requested: Ints, allocatable: Ints, divisors: Floats | None) -> Numbers:
        """The ratings of many; 0 where a node offers nothing.

        `divisors` are the allocatable amounts as floats, if these are exact.
        """

    def mean(self, total: IntOrNumbers, weights: IntOrNumbers | int) -> IntOrNumbers:
        """The score for a weighted sum of ratings."""


class LeastAllocated:
    """The emptier the better: spreads pods."""

    counts_zero: ClassVar[bool] = True

    def rate(self, requested: int, allocatable: int) -> int:
        return 0 if requested > allocatable else (allocatable - requested) * 100 // allocatable

    def rate_all(self, requested: Ints, allocatable: Ints, divisors: Floats | None) -> Numbers:
        free = np.subtract(allocatable, requested, out=requested)
        return _percent(np.maximum(free, 0, out=free), allocatable, divisors)

    def mean(self, total: IntOrNumbers, weights: IntOrNumbers | int) -> IntOrNumbers:
        return _quotient(total, weights)


class MostAllocated:
    """The fuller the better: packs pods."""

    counts_zero: ClassVar[bool] = True

    def rate(self, requested: int, allocatable: int) -> int:
        return 100 if requested > allocatable else requested * 100 // allocatable

    def rate_all(self, requested: Ints, allocatable: Ints, divisors: Floats | None) -> Numbers:
        used = np.minimum(requested, allocatable, out=requested)
        return _percent(used, allocatable, divisors)

    def mean(self, total: IntOrNumbers, weights: IntOrNumbers | int) -> IntOrNumbers:
        return _quotient(total, weights)


class RequestedToCapacityRatio:
    """As good as a given shape says for that utilization."""

    counts_zero: ClassVar[bool] = False

    def __init__(self, points: tuple[mp.UtilizationShapePoint, ...]) -> None:
        self._ratings = shape.ratings(points)
        self._ratings_array = np.array(self._ratings, dtype=np.int64)

    def rate(self, requested: int, allocatable: int) -> int:
        full = requested > allocatable
        return self._ratings[100 if full else requested * 100 // allocatable]

    def rate_all(self, requested: Ints, allocatable: Ints, divisors: Floats | None) -> Numbers:
        used = np.minimum(requested, allocatable, out=requested)
        utilization = _percent(used, allocatable, divisors).astype(np.intp, copy=False)
        ratings = self._ratings_array.take(utilization, mode="clip")  # "clip" is the fast mode
        ratings *= allocatable > 0
        return ratings

    def mean(self, total: IntOrNumbers, weights: IntOrNumbers | int) -> IntOrNumbers:
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


def _percent(part: Ints, whole: Ints, divisors: Floats | None) -> Numbers:
    part *= 100
    if divisors is None:
        return _whole(part, whole)
    percentages = part.astype(np.float64)
    percentages /= divisors
    return np.floor(percentages, out=percentages)


def _quotient(total: IntOrNumbers, weights: IntOrNumbers | int) -> IntOrNumbers:
    if not isinstance(total, np.ndarray) or total.dtype == np.int64:
        return _whole(total, weights)
    if isinstance(weights, np.ndarray):
        return _whole(total.astype(np.int64), weights)
    total /= weights
    return np.floor(total, out=total)


def _whole(part: IntOrNumbers, whole: IntOrNumbers | int) -> IntOrNumbers:
    """Integer division, in which NumPy's n // 0 is 0: what is not there earns nothing."""
    if not isinstance(whole, np.ndarray):
        return part // whole
    with np.errstate(divide="ignore"):
        return part // whole
