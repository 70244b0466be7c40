"""Shares: which resources of a node are scored, and what the pod adds to each."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Ints = NDArray[np.int32]


class Scored(NamedTuple):
    """A resource that is scored, and how much it counts.

    If `defaulted`, pods on a node that state nothing of it count with a default.
    """

    resource: str
    weight: int
    defaulted: bool


class Scale(Struct, frozen=True, eq=False):
    """What all pods have in common for whom the same resources are scored."""

    each: tuple[Scored, ...]
    resources: tuple[str, ...]
    # As `table.left` wants them.
    counted: tuple[tuple[str, bool], ...]
    # One below the other; None if all are 1.
    weights: Ints | None
    weight: int

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, each: tuple[Scored, ...]) -> "Scale":
        """The scale of some resources."""
        weights = [scored.weight for scored in each]
        equal = weights.count(1) == len(weights)
        return cls(
            each,
            tuple([scored.resource for scored in each]),
            tuple([(scored.resource, scored.defaulted) for scored in each]),
            None if equal else np.array([[weight] for weight in weights], dtype=np.int32),
            sum(weights),
        )

    def mean(self, ratings: Ints) -> Ints:
        """The mean of many nodes' ratings, a line for each resource, rounded down."""
        if self.weights is not None:
            ratings *= self.weights
        total: Ints = ratings[0] if len(ratings) == 1 else ratings[0] + ratings[1]
        for line in ratings[2:]:
            total += line
        if self.weight == 2:
            total >>= 1  # To shift is quicker than to divide.
        elif self.weight != 1:
            total //= self.weight
        return total


class Shares(NamedTuple):
    """What a pod adds to each of the resources that are scored."""

    scale: Scale
    amounts: tuple[int, ...]
    # One by one, with each resource.
    each: tuple[tuple[Scored, int], ...]
