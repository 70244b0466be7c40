"""Prices of nodes per hour, from a file or from a node label, and what a cluster costs.

The file maps names to prices: `m5.large: 0.096`. A name is that of a node, of its pool, or of its
instance type; the first of these that the file has counts. Where the file has none of them, the
label counts. Prices are exact decimal numbers without a currency.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from moorage.api.config import sources
from moorage.api.node import Node
from moorage.errors import ConfigError, InputError
from moorage.planning.capacity import NO_POOL, POOL_LABELS

INSTANCE_TYPES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
# More digits than any price list has; they keep the integers of the search small.
MOST_DIGITS = 9
HIGHEST = Decimal(1_000_000_000)


@dataclass(frozen=True, slots=True)
class PriceList:
    """Prices per hour by the name of a node, pool or instance type, and a label with a price."""

    prices: Mapping[str, Decimal] = field(default_factory=dict)
    label: str = ""

    @classmethod
    def of(cls, prices: Mapping[str, Any] | None = None, label: str = "") -> "PriceList":
        """A price list of plain numbers or texts."""
        checked = {name: _price(value, f'"{name}"') for name, value in (prices or {}).items()}
        return cls(checked, label)

    def price(self, node: Node) -> Decimal | None:
        """The price of a node per hour, if it is known."""
        for name in (node.name, *_pools(node), *_labels(node, INSTANCE_TYPES)):
            if name in self.prices:
                return self.prices[name]
        if self.label and self.label in node.labels:
            return _price(node.labels[self.label], f"Node {node.name}, label {self.label}")
        return None


def load(file: str | Path | None, label: str | None) -> PriceList:
    """The prices of a file, of a label, or of both."""
    if file is None:
        return PriceList.of(label=label or "")
    try:
        found = sources.read(Path(file))
        if not isinstance(found, dict) or not found:
            raise InputError("must map names of instance types, pools or nodes to prices per hour")
        return PriceList.of(found, label or "")
    except ConfigError as error:
        raise InputError(f"{file}: {error.problems[0]}") from None
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def _price(value: Any, where: str) -> Decimal:
    try:
        price = Decimal(str(value)) if not isinstance(value, bool) else Decimal("NaN")
    except InvalidOperation:
        price = Decimal("NaN")
    if not price.is_finite() or not 0 <= price <= HIGHEST:
        raise InputError(f"{where}: a price per hour must be a number from 0 on, is {value!r}")
    exponent = price.normalize().as_tuple().exponent
    if isinstance(exponent, int) and exponent < -MOST_DIGITS:
        raise InputError(f"{where}: a price has at most {MOST_DIGITS} decimal places, is {value!r}")
    return price


def _pools(node: Node) -> list[str]:
    return _labels(node, [key for key in POOL_LABELS if key not in INSTANCE_TYPES])


def _labels(node: Node, keys: Iterable[str]) -> list[str]:
    return [node.labels[key] for key in keys if key in node.labels]


@dataclass(frozen=True, slots=True)
class PoolCost:
    """The nodes of a pool that have a price, and their price together."""

    nodes: int
    per_hour: Decimal


@dataclass(frozen=True, slots=True)
class ClusterCost:
    """The price of all nodes per hour, by pool."""

    pools: Mapping[str, PoolCost]
    # Nodes without a price; they are not counted.
    unpriced: tuple[str, ...]
    # What all nodes cost during a run, those that are gone included; None if it was not measured.
    of_run: Decimal | None = None

    @classmethod
    def of(
        cls, nodes: Iterable[Node], prices: PriceList, of_run: Decimal | None = None
    ) -> "ClusterCost":
        """The cost of nodes; refuses prices of which none applies to any node."""
        pools: dict[str, PoolCost] = {}
        unpriced = []
        for node in nodes:
            price = prices.price(node)
            if price is None:
                unpriced.append(node.name)
                continue
            pool = next(iter((*_pools(node), *_labels(node, INSTANCE_TYPES))), NO_POOL)
            before = pools.get(pool, PoolCost(0, Decimal(0)))
            pools[pool] = PoolCost(before.nodes + 1, before.per_hour + price)
        if unpriced and not pools:
            raise InputError(f"no node has a price: {unpriced[0]} has none, nor has any other node")
        return cls(pools, tuple(unpriced), of_run)

    @property
    def per_hour(self) -> Decimal:
        return sum((pool.per_hour for pool in self.pools.values()), Decimal(0))

    def to_dict(self) -> dict[str, Any]:
        """The cost as plain data."""
        return {
            "perHour": float(self.per_hour),
            "pools": {
                name: {"nodes": pool.nodes, "perHour": float(pool.per_hour)}
                for name, pool in self.pools.items()
            },
            "unpriced": list(self.unpriced),
            **({} if self.of_run is None else {"ofRun": float(self.of_run)}),
        }


def text(price: Decimal) -> str:
    """A price for people: at least two decimal places, no needless zeros after them."""
    plain = f"{price.normalize():,f}"
    whole, _, digits = plain.partition(".")
    return f"{whole}.{digits:0<2}"
