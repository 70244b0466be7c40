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
    # A place for the pod, and the amounts, one below the other.
    amounts: NDArray[np.int64]

    @classmethod
    def of(cls, needed: tuple[tuple[str, int], ...]) -> "Needs":
        """The needs of a pod that requests these amounts, reported in this order."""
        if len(needed) > MOST_RESOURCES:
            most = f"a pod may request {MOST_RESOURCES} different resources"
            raise ValueError(f"{most}, this one requests {len(needed)}")
        each = [(1 << i, name, amount) for i, (name, amount) in enumerate(needed, start=1)]
        resources = tuple([name for name, _ in needed])
        amounts = np.array([[1], *([amount] for _, amount in needed)], dtype=np.int64)
        return cls(tuple(each), Refusals(resources), resources, amounts)

    def lacking(self, node: mp.NodeInfo) -> int:
        """What one node lacks, as bits; 0 if the pod fits.

        A node that could not hold the pod even if it were empty is marked UNRESOLVABLE. How full
        it is of a resource that the pod does not request does not matter.
        """
        lacking = TOO_MANY_PODS if node.pod_count >= node.allocatable("pods") else 0
        for bit, resource, amount in self.each:
            allocatable = node.allocatable(resource)
            if amount > allocatable - node.requested(resource):
                lacking |= bit
                if amount > allocatable:
                    lacking |= UNRESOLVABLE
        return lacking

    def lacking_all(self, table: mp.Rows) -> NDArray[np.int64]:
        """The same for many rows."""
        lacking = np.zeros(len(table), dtype=np.int64)
        short = table[room(self.resources)] < self.amounts
        if not short.any():
            return lacking
        short &= table.active
        lacking |= short[0] * TOO_MANY_PODS
        for line, (bit, resource, amount) in zip(short[1:], self.each, strict=True):
            lacking |= line * bit
            lacking |= (line & (table.allocatable(resource) < amount)) * UNRESOLVABLE
        return lacking


# More than any pod asks for: rows without a node shall not look as if they were full.
PLENTY = 1 << 62


@dataclass(frozen=True, slots=True)
class Room:
    """What is left on nodes: places for pods, then some resources."""

    resources: tuple[str, ...]

    def read(self, node: mp.NodeInfo) -> list[int]:
        """Of one node."""
        left = [node.allocatable(name) - node.requested(name) for name in self.resources]
        return [node.allocatable("pods") - node.pod_count, *left]

    def read_all(self, table: mp.Rows) -> NDArray[np.int64]:
        """Of many, a line for each resource."""
        left = [table.allocatable(name) - table.requested(name) for name in self.resources]
        every = np.stack([table.allocatable("pods") - table.pod_count, *left])
        return np.where(table.active, every, PLENTY)


@lru_cache(maxsize=256)
def room(resources: tuple[str, ...]) -> mp.UsageColumn:
    """The column of what is left; the same for all pods that ask for the same resources."""
    of_nodes = Room(resources)
    return mp.UsageColumn("room", read=of_nodes.read, read_all=of_nodes.read_all)
