"""Sampling: with percentageOfNodesToScore set, a cycle finds only so many feasible nodes.

The walk visits nodes in zone order and continues, in the next cycle, where it stopped. Without the
setting all nodes are considered and nothing here is used.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.framework.status import Mask

FEWEST_NODES = 100
LOWEST_PERCENTAGE = 5


def enough(nodes: int, percentage: int) -> int:
    """How many feasible nodes are enough; 0 percent means by the size of the cluster."""
    if nodes < FEWEST_NODES:
        return nodes
    if percentage == 0:
        percentage = max(50 - nodes // 125, LOWEST_PERCENTAGE)
    return max(nodes * percentage // 100, FEWEST_NODES)


@dataclass(slots=True)
class Walk:
    """Where the next walk starts."""

    start: int = 0

    def sample(
        self, order: NDArray[np.intp], fits: Mask, wanted: int, nodes: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The first `wanted` feasible rows and the rejected rows visited, in order of the walk."""
        count = len(order)
        at = self.start % count if count else 0
        walk = np.concatenate([order[at:], order[:at]])
        ok = fits[walk]
        found = np.cumsum(ok)
        # The walk ends at the first feasible node beyond the wanted number.
        end = int(np.searchsorted(found, wanted + 1)) if count and found[-1] > wanted else count
        walk, ok = walk[:end], ok[:end]
        self.start = (self.start + end) % nodes if nodes else 0
        return walk[ok], walk[~ok]
