"""`--prices` and `--price-label`: what nodes cost per hour."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from moorage.cli.options import bundled

if TYPE_CHECKING:
    from moorage.planning.cost_meter import CostMeter
    from moorage.planning.prices import ClusterCost, PriceList
    from moorage.sim.run import Simulation

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class PriceOptions:
    """Where prices come from."""

    price_file: str | None
    price_label: str | None

    def load(self) -> "PriceList | None":
        """The prices; None if no option is given."""
        if self.price_file is None and self.price_label is None:
            return None
        from moorage.planning import prices

        return prices.load(self.price_file, self.price_label)

    @property
    def given(self) -> dict[str, object]:
        """The values by option."""
        return {"prices": self.price_file, "price-label": self.price_label}


def cost(
    prices: "PriceList | None", simulation: "Simulation", meter: "CostMeter | None" = None
) -> "ClusterCost | None":
    """What the nodes at the end of a simulation cost per hour, and what a measured run cost."""
    if prices is None:
        return None
    from moorage.api.node import Node
    from moorage.planning.prices import ClusterCost

    of_run = None if meter is None else meter.total
    return ClusterCost.of(simulation.cluster.all(Node), prices, of_run)


options: Callable[[F], F] = bundled(
    PriceOptions,
    "prices",
    click.option(
        "--prices",
        "price_file",
        metavar="FILE",
        help="A YAML or JSON file with prices per hour, by name of node, pool or instance type, "
        "such as `m5.large: 0.096`.",
    ),
    click.option(
        "--price-label",
        metavar="KEY",
        help="The node label with the price per hour, for nodes that --prices does not have.",
    ),
)
