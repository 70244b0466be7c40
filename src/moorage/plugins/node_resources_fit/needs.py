"""Needs: what a pod must find free on a node, and the words for what is missing.

What a node lacks is an integer, one bit per reason, so that the answer for the whole cluster is
one array and a Status is made only for the combinations that occur.
"""

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp

TOO_MANY_PODS = 1  # bit 0; the resources follow
UNRESOLVABLE = 1 << 62  # the highest bit that leaves an int64 positive
MOST_RESOURCES = 61
# As long as no node offers more, floats tell whether an amount is left as integers do.
EXACT = 1 << 52

Need = tuple[int, str, int]  # bit, resource, amount


@dataclass(frozen=True, slots=True)
class Refusals:
    """The Status for what a node lacks, made when it first occurs."""

    resources: tuple[str, ...]
    _known: dict[int, mp.Status] = field(
        default_factory=lambda: {0: mp.SUCCESS}, compare=False, repr=False
    )

    def __call__(self, lacking: int) -> mp.Status:
        status = self._known.get(lacking)
        if status is None:
            status = self._known[lacking] = self._status(lacking)
        return status

    def _status(self, lacking: int) -> mp.Status:
        reasons = ["Too many pods"] if lacking & TOO_MANY_PODS else []
        reasons += [
            f"Insufficient {resource}"
            for position, resource in enumerate(self.resources, start=1)
            if lacking & (1 << position)
        ]
        return _refusal(tuple(reasons), resolvable=not lacking & UNRESOLVABLE)


@lru_cache(maxsize=4096)
def _refusal(reasons: tuple[str, ...], *, resolvable: bool) -> mp.Status:
    """One object for all templates that are refused in the same words."""
    return mp.unschedulable(*reasons) if resolvable else mp.unresolvable(*reasons)


@dataclass(frozen=True, slots=True, eq=False)
class Needs:
    """A pod's requests as the filter asks for them."""

    each: tuple[Need, ...]
    refusals: Refusals
    resources: tuple[str, ...]
    # As `table.left` wants them, and the amounts, one below the other.
    counted: tuple[tuple[str, bool], ...]
    amounts: NDArray[np.float64]

    @classmethod
    def of(cls, needed: tuple[tuple[str, int], ...]) -> "Needs":
        """The needs of a pod that requests these amounts, reported in this order."""
        if len(needed) > MOST_RESOURCES:
            most = f"a pod may request {MOST_RESOURCES} different resources"
            raise ValueError(f"{most}, this one requests {len(needed)}")
        each = [(1 << i, name, amount) for i, (name, amount) in enumerate(needed, start=1)]
        resources = tuple([name for name, _ in needed])
        counted = tuple([(name, False) for name in resources])
        amounts = np.array([[amount] for _, amount in needed], dtype=np.float64)
        return cls(tuple(each), Refusals(resources), resources, counted, amounts)

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

    def lacking_all(self, table: mp.Rows) -> NDArray[np.int64] | None:
        """The same for many rows; None if the pod fits everywhere."""
        active = table.active
        full = table.pod_count >= table.allocatable("pods")
        full &= active
        short = self._short(table)
        short &= active
        if not (np.count_nonzero(full) or np.count_nonzero(short)):
            return None
        lacking = full * np.int64(TOO_MANY_PODS)
        for line, (bit, resource, amount) in zip(short, self.each, strict=True):
            lacking |= line * bit
            lacking |= (line & (table.allocatable(resource) < amount)) * UNRESOLVABLE
        return lacking

    def _short(self, table: mp.Rows) -> mp.Mask:
        """Which nodes have too little left, a line for each resource."""
        if not self.each:
            return np.zeros((0, len(table)), dtype=np.bool_)
        if table.offers(self.resources).largest <= EXACT:
            return table.left(self.counted) < self.amounts
        left = [table.allocatable(name) - table.requested(name) for name in self.resources]
        return np.stack(
            [line < amount for line, (_, _, amount) in zip(left, self.each, strict=True)]
        )
