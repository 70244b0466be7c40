"""The cheapest mix of new nodes with which the scheduler places everything.

The search visits mixes in the order of what they cost at least, as A* does, and packs the cluster
with every mix that the sums of requests allow. So the first mix with which everything fits is the
cheapest one. The number of packings is limited. If the limit ends the search, the answer is the
best mix that was found otherwise, and the cost up to which all mixes were tried is a lower bound.

What a mix costs at least comes from demands: inequalities that hold in every placement.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.planning import bounds
from moorage.planning.bounds import Amounts

Counts = tuple[int, ...]
Fits = Callable[[Counts], bool]
# What a mix and those that follow it cost at least; its cost, negative; the mix; and the first
# template of which more are added, so that every mix is visited once.
_Visit = tuple[int, int, Counts, int]

# Limits of the search: mixes that are visited for each try, which takes about as long; and distinct
# requests that demands are made of.
VISITED_PER_TRY = 100
MOST_SIZES = 40
# A node costs its price times this, plus one: of mixes that cost the same, fewer nodes win.
SCALE = 1_000_000
# Bounds are computed with floats: they must not be too high, and may be a little too low.
ROUNDED_DOWN = 1 - 1e-12


@dataclass(frozen=True, slots=True)
class MixCost:
    """What new nodes cost per hour, and the cost below which no mix is enough."""

    prices: Mapping[str, Decimal]
    per_hour: Decimal
    lower_bound: Decimal

    @property
    def is_cheapest(self) -> bool:
        """Whether no other mix costs less."""
        return self.per_hour == self.lower_bound

    def to_dict(self) -> dict[str, Any]:
        """The cost as plain data."""
        return {
            "perHour": float(self.per_hour),
            "lowerBound": float(self.lower_bound),
            "cheapest": self.is_cheapest,
            "prices": {name: float(price) for name, price in self.prices.items()},
        }


class Demand(NamedTuple):
    """An amount that new nodes have to provide, and how much of it one node of each template has.

    The amount is of a resource, or a number of pods that request at least so much each.
    """

    amount: int
    room: Counts


class CheapestMix(NamedTuple):
    """The counts, if any are cheaper than those given; and the least cost, in units of a price."""

    counts: Counts | None
    at_least: Decimal


def demands(
    pending: Sequence[Pod], nodes: Iterable[Node], running: Sequence[Pod], rooms: Sequence[Amounts]
) -> list[Demand]:
    """What pods demand, as numbers of pods: a node holds only whole pods.

    Of all pods that request at least some amounts, a node has room for no more than for pods with
    exactly these amounts.
    """
    requested = [bounds.requested([pod]) for pod in pending]
    free = [bounds.free([node], on) for node, on in _by_node(nodes, running)]
    found: dict[Demand, None] = {}
    for size in _sizes(requested):
        pods = sum(all(each[name] >= amount for name, amount in size.items()) for each in requested)
        elsewhere = sum(_copies(each, size) for each in free)
        demand = Demand(pods - elsewhere, tuple(_copies(room, size) for room in rooms))
        if demand.amount > 0:
            found[demand] = None
    return list(found)


def _by_node(nodes: Iterable[Node], running: Sequence[Pod]) -> Iterator[tuple[Node, list[Pod]]]:
    on: dict[str, list[Pod]] = {}
    for pod in running:
        on.setdefault(pod.node_name, []).append(pod)
    for node in nodes:
        yield node, on.get(node.name, [])


def _sizes(requested: Sequence[Amounts]) -> list[Amounts]:
    """The most frequent requests of pods: whole ones, and each resource of them alone."""
    counts: dict[tuple[tuple[str, int], ...], int] = {}
    for each in requested:
        whole = tuple(sorted((name, amount) for name, amount in each.items() if amount))
        for size in {whole, *((item,) for item in whole)}:
            counts[size] = counts.get(size, 0) + 1
    frequent = sorted(counts, key=lambda size: (-counts[size], size))
    return [dict(size) for size in frequent[:MOST_SIZES]]


def _copies(amounts: Amounts, size: Amounts) -> int:
    return min(max(0, amounts.get(name, 0)) // amount for name, amount in size.items())


class MixSearch:
    """Mixes of templates in the order of what they cost at least."""

    def __init__(self, prices: Sequence[Decimal], demanded: Sequence[Demand]) -> None:
        # Prices as integers, so that sums and comparisons are exact.
        self._unit = max((_places(price) for price in prices), default=0)
        self._prices = [int(price.scaleb(self._unit)) * SCALE + 1 for price in prices]
        self._amounts = np.array([demand.amount for demand in demanded], np.int64)
        # A row per template, a column per demand.
        shape = len(demanded), len(prices)
        self._rooms = np.array([demand.room for demand in demanded], np.int64).reshape(shape).T
        # For each demand, the lowest price for a unit of it, of the templates from each index on.
        with np.errstate(divide="ignore"):
            each = np.array(self._prices, float)[:, np.newaxis] / np.maximum(self._rooms, 0)
        self._unit_prices = np.minimum.accumulate(each[::-1], axis=0)[::-1]

    def cost(self, counts: Counts) -> int:
        """The price of a mix, then its number of nodes, as one integer."""
        return sum(p * count for p, count in zip(self._prices, counts, strict=True))

    def price(self, counts: Counts) -> Decimal:
        """The price of a mix per hour."""
        return self._price(self.cost(counts))

    def run(self, fits: Fits, known: Counts, most_tries: int) -> CheapestMix:
        """The cheapest mix, if it costs less than a known one, with at most so many tries."""
        limit = self.cost(known)
        tries = visited = 0
        heap: list[_Visit] = []
        self._visit(heap, (0,) * len(self._prices), 0, 0, limit)
        while heap:
            least, _, counts, first = heap[0]
            missing = self._missing(counts)
            if not (missing > 0).any():
                if tries == most_tries:
                    return CheapestMix(None, self._price(least))
                tries += 1
                if fits(counts):
                    return CheapestMix(counts, self._price(least))
            visited += 1
            if visited > VISITED_PER_TRY * most_tries:
                return CheapestMix(None, self._price(least))
            heappop(heap)
            cost = self.cost(counts)
            for index in range(first, len(counts)):
                more = (*counts[:index], counts[index] + 1, *counts[index + 1 :])
                self._visit(heap, more, index, cost + self._prices[index], limit)
        return CheapestMix(None, self._price(limit))

    def _visit(
        self, heap: list["_Visit"], counts: Counts, first: int, cost: int, limit: int
    ) -> None:
        missing = np.maximum(self._missing(counts), 0)
        with np.errstate(invalid="ignore"):  # Nothing of what no template has: 0 * infinity.
            more = np.nanmax(missing * self._unit_prices[first], initial=0.0)
        if np.isfinite(more):
            least = cost + math.floor(more * ROUNDED_DOWN)
            if least < limit:
                # Of equal bounds the mix that is nearest to its end comes first.
                heappush(heap, (least, -cost, counts, first))

    def _missing(self, counts: Counts) -> NDArray[np.int64]:
        found: NDArray[np.int64] = self._amounts - np.array(counts, np.int64) @ self._rooms
        return found

    def _price(self, cost: int) -> Decimal:
        return Decimal(cost // SCALE).scaleb(-self._unit)


def _places(price: Decimal) -> int:
    exponent = price.normalize().as_tuple().exponent
    assert isinstance(exponent, int)
    return max(0, -exponent)
