"""Offers: what nodes offer of several resources, as arrays to calculate with in floats."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from moorage.nodes.interning import Mask
from moorage.nodes.resources import Floats, ResourceColumns


@dataclass(frozen=True, slots=True, eq=False)
class Offers:
    """A line for each resource."""

    amounts: Floats
    # The same to divide by: 1 where a node has nothing, infinite where there is no node.
    divisors: Floats
    # The most that any node of the cluster offers of any of them.
    largest: int
    # Whether every node of the cluster has some of each.
    by_all: bool

    @classmethod
    def of(cls, columns: ResourceColumns, resources: tuple[str, ...], active: Mask) -> "Offers":
        """What the nodes of a table offer."""
        amounts = np.stack([columns[resource] for resource in resources])
        return cls(
            amounts.astype(np.float64),
            np.where(active, np.maximum(amounts, 1), np.inf),
            int(amounts.max(initial=1)),
            not (active & (amounts <= 0)).any(),
        )

    def at(self, index: Any) -> "Offers":
        """The same for some rows only."""
        return Offers(self.amounts[:, index], self.divisors[:, index], self.largest, self.by_all)
