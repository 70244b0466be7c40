"""Needs: what a pod must find free on a node, and the words for what is missing.

What a node lacks is an integer, one bit per reason, so that the answer for the whole cluster is
one array and a Status is made only for the combinations that occur.
"""

from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from moorage import plugin as mp

PODS = mp.requests.PODS
TOO_MANY_PODS = 1  # bit 0; the resources follow
UNRESOLVABLE = 1 << 62  # the highest bit that leaves an int64 positive
MOST_RESOURCES = 61
# As long as no node offers more, floats tell whether an amount is left as integers do.
EXACT = 1 << 52


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


class Asked(Struct, frozen=True, eq=False):
    """What all pods have in common that request the same resources."""

    resources: tuple[str, ...]
    # As `table.left` and `table.has_room` want them; the latter is asked for one more pod, too.
    counted: tuple[tuple[str, bool], ...]
    with_pod: tuple[tuple[str, bool], ...]
    bits: tuple[int, ...]
    refusals: Refusals


@lru_cache(maxsize=4096)
def _asked(resources: tuple[str, ...]) -> Asked:
    if len(resources) > MOST_RESOURCES:
        most = f"a pod may request {MOST_RESOURCES} different resources"
        raise mp.PluginFailure(f"{most}, this one requests {len(resources)}")
    counted = tuple((name, False) for name in resources)
    bits = tuple(1 << position for position in range(1, len(resources) + 1))
    refusals = Refusals((PODS, *resources))
    return Asked(resources, counted, ((PODS, False), *counted), bits, refusals)


class Needs(Struct, frozen=True, eq=False):
    """A pod's requests as the filter asks for them."""

    asked: Asked
    amounts: tuple[int, ...]
    # One by one: bit, resource, amount.
    each: tuple[tuple[int, str, int], ...]

    @classmethod
    def of(cls, needed: tuple[tuple[str, int], ...]) -> "Needs":
        """The needs of a pod that requests these amounts, reported in this order."""
        asked = _asked(tuple(name for name, _ in needed))
        amounts = tuple(amount for _, amount in needed)
        each = tuple(zip(asked.bits, asked.resources, amounts, strict=True))
        return cls(asked, amounts, each)

    @property
    def refusals(self) -> Refusals:
        return self.asked.refusals

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
        asked, amounts = self.asked, self.amounts
        if table.has_room(asked.with_pod, (1, *amounts)):
            return None
        active = table.active
        full = table.pod_count >= table.allocatable(PODS)
        full &= active
        short = self._short(table)
        short &= active
        if not (np.count_nonzero(full) or np.count_nonzero(short)):
            return None
        lacking: NDArray[np.int64] = full * np.int64(TOO_MANY_PODS)
        for line, (bit, resource, amount) in zip(short, self.each, strict=True):
            lacking |= line * bit
            lacking |= (line & (table.allocatable(resource) < amount)) * UNRESOLVABLE
        return lacking

    def _short(self, table: mp.Rows) -> mp.Mask:
        """Which nodes have too little left, a line for each resource."""
        resources, amounts = self.asked.resources, self.amounts
        if not resources:
            return np.zeros((0, len(table)), dtype=np.bool_)
        if table.allocatable_floats(resources).largest <= EXACT:
            wanted = np.array(amounts, dtype=np.float64)[:, None]
            return table.free_floats(self.asked.counted) < wanted
        left = [table.allocatable(name) - table.requested(name) for name in resources]
        return np.stack([line < amount for line, amount in zip(left, amounts, strict=True)])
