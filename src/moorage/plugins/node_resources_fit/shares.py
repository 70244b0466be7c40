"""Shares: which resources of a node are scored, and what the pod adds to each."""

from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Share(NamedTuple):
    """A resource that is scored: what the pod adds to it, and how much it counts."""

    resource: str
    amount: int
    weight: int
    defaulted: bool


class Shares(Struct, frozen=True, eq=False):
    """All of a pod's shares, and the same as lines of arrays, one below the other."""

    each: tuple[Share, ...]
    resources: tuple[str, ...]
    # As `table.counted` wants them.
    counted: tuple[tuple[str, bool], ...]
    amounts: Floats
    # None if all are 1.
    weights: Floats | None
    weight: int

    @classmethod
    def of(cls, each: tuple[Share, ...]) -> "Shares":
        """Shares as a pod has them."""
        weights = [share.weight for share in each]
        equal = weights.count(1) == len(weights)
        return cls(
            each,
            tuple([share.resource for share in each]),
            tuple([(share.resource, share.defaulted) for share in each]),
            np.array([[share.amount] for share in each], dtype=np.float64),
            None if equal else np.array([[weight] for weight in weights], dtype=np.float64),
            sum(weights),
        )
