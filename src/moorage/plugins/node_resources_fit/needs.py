"""Needs: what a pod must find free on a node, and the words for what is missing.

What a node lacks is an integer, one bit per reason, so that the answer for the whole cluster is
one array and a Status is made only for the combinations that occur.
"""

from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from moorage import plugin as mp

PODS = "pods"
TOO_MANY_PODS = 1  # bit 0; the resources follow
UNRESOLVABLE = 1 << 62  # the highest bit that leaves an int64 positive
MOST_RESOURCES = 61
# As long as no node offers more, floats tell whether an amount is left as integers do.
EXACT = 1 << 52

Need = tuple[int, str, int]  # bit, resource, amount


class Refusals(Struct, frozen=True):
    """The Status for what a node lacks: bits, in the order of the resources."""

    resources: tuple[str, ...]

    def __call__(self, lacking: int) -> mp.Status:
        return _status(self.resources, lacking) if lacking else mp.SUCCESS


@lru_cache(maxsize=4096)
def _status(resources: tuple[str, ...], lacking: int) -> mp.Status:
    reasons = [
        "Too many pods" if name == PODS else f"Insufficient {name}"
        for position, name in enumerate(resources)
        if lacking & (1 << position)
    ]
    return _worded(tuple(reasons), resolvable=not lacking & UNRESOLVABLE)


@lru_cache(maxsize=4096)
def _worded(reasons: tuple[str, ...], *, resolvable: bool) -> mp.Status:
    """One object for all templates that are refused in the same words."""
    return mp.unschedulable(*reasons) if resolvable else mp.unresolvable(*reasons)


class Needs(Struct, frozen=True, eq=False):
    """A pod's requests as the filter asks for them."""

    each: tuple[Need, ...]
    refusals: Refusals
    # Room for one more pod, and so much of each resource; and the same as `table.left` wants them.
    resources: tuple[str, ...]
    amounts: tuple[int, ...]
    counted: tuple[tuple[str, bool], ...]

    @classmethod
    def of(cls, needed: tuple[tuple[str, int], ...]) -> "Needs":
        """The needs of a pod that requests these amounts, reported in this order."""
        if len(needed) > MOST_RESOURCES:
            most = f"a pod may request {MOST_RESOURCES} different resources"
            raise ValueError(f"{most}, this one requests {len(needed)}")
        each = [(1 << i, name, amount) for i, (name, amount) in enumerate(needed, start=1)]
        resources = (PODS, *[name for name, _ in needed])
        amounts = (1, *[amount for _, amount in needed])
        counted = tuple([(name, False) for name in resources])
        return cls(tuple(each), Refusals(resources), resources, amounts, counted)

    def lacking(self, node: mp.NodeInfo) -> int:
        """What one node lacks, as bits; 0 if the pod fits.

        A node that could not hold the pod even if it were empty is marked UNRESOLVABLE. How full
        it is of a resource that the pod does not request does not matter.
        """
        lacking = TOO_MANY_PODS if node.pod_count >= node.allocatable("pods") else 0
        for bit, resource, amount in self.each:
            allocatable, requested = node.amounts(resource)
            if amount > allocatable - requested:
                lacking |= bit
                if amount > allocatable:
                    lacking |= UNRESOLVABLE
        return lacking

    def lacking_all(self, table: mp.Amounts) -> NDArray[np.int64] | None:
        """The same for many rows; None if the pod fits everywhere."""
        if table.has_room(self.counted, self.amounts):
            return None
        short = self._short(table)
        short &= table.active
        if not np.count_nonzero(short):
            return None
        lacking: NDArray[np.int64] = short[0] * np.int64(TOO_MANY_PODS)
        for line, (bit, resource, amount) in zip(short[1:], self.each, strict=True):
            lacking |= line * bit
            lacking |= (line & (table.allocatable(resource) < amount)) * UNRESOLVABLE
        return lacking

    def _short(self, table: mp.Amounts) -> mp.Mask:
        """Which nodes have too little left, a line for each resource."""
        if table.offers(self.resources).largest <= EXACT:
            return table.left(self.counted) < np.array(self.amounts, dtype=np.float64)[:, None]
        lines = [table.pod_count >= table.allocatable(PODS)]
        for _, resource, amount in self.each:
            lines.append(table.allocatable(resource) - table.requested(resource) < amount)
        return np.stack(lines)
