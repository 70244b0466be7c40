"""Shares: which resources of a node are scored, and what the pod adds to each."""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp

Floats = NDArray[np.float64]


class Share(NamedTuple):
    """A resource that is scored: what the pod adds to it, and how much it counts."""

    resource: str
    amount: int
    weight: int
    defaulted: bool


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """All of a pod's shares, and the same as lines of arrays, one below the other."""

    each: tuple[Share, ...]
    resources: tuple[str, ...]
    # Resources, each with whether pods that state nothing of it count with a default.
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


@dataclass(frozen=True, slots=True)
class Used:
    """How much of some resources the pods on nodes count for."""

    counted: tuple[tuple[str, bool], ...]

    def read(self, node: mp.NodeInfo) -> list[int]:
        """On one node."""
        return [
            node.nonzero_requested(resource) if defaulted else node.requested(resource)
            for resource, defaulted in self.counted
        ]

    def read_all(self, table: mp.Rows) -> Floats:
        """On many, a line for each resource."""
        lines = [
            table.nonzero_requested(resource) if defaulted else table.requested(resource)
            for resource, defaulted in self.counted
        ]
        return np.stack(lines).astype(np.float64)


@lru_cache(maxsize=256)
def used_column(counted: tuple[tuple[str, bool], ...]) -> mp.UsageColumn:
    """The column of it; the same for all pods for which the same resources count."""
    used = Used(counted)
    return mp.UsageColumn("used", read=used.read, read_all=used.read_all)
