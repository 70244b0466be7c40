"""CostMeter: what the nodes of a simulation cost over virtual time, as they come and go."""

from decimal import Decimal

from moorage.api.node import Node
from moorage.core.observations import Added, Deleted, Observation, Updated
from moorage.planning.prices import PriceList
from moorage.sim.run import Simulation

HOUR = 3600
EXACT_TO = Decimal("0.0001")


class CostMeter:
    """Counts from the moment it is made; a node without a price costs nothing."""

    def __init__(self, simulation: Simulation, prices: PriceList) -> None:
        self._simulation = simulation
        self._prices = prices
        self._spent = Decimal(0)
        # The price of each node, and since when it is there at that price.
        self._running: dict[str, tuple[Decimal, float]] = {}
        for node in simulation.cluster.all(Node):
            self._start(node)
        simulation.cluster.watch(self._on_change, Node)

    @property
    def total(self) -> Decimal:
        """The cost until now."""
        running = (self._cost(price, since) for price, since in self._running.values())
        return (self._spent + sum(running, Decimal(0))).quantize(EXACT_TO).normalize()

    def _on_change(self, observation: Observation) -> None:
        match observation:
            case Added(obj=Node() as node) | Updated(obj=Node() as node):
                # The price of a label may change.
                self._stop(node)
                self._start(node)
            case Deleted(obj=Node() as node):
                self._stop(node)

    def _start(self, node: Node) -> None:
        price = self._prices.price(node)
        if price is not None:
            self._running[node.name] = price, self._simulation.now

    def _stop(self, node: Node) -> None:
        if (found := self._running.pop(node.name, None)) is not None:
            self._spent += self._cost(*found)

    def _cost(self, price: Decimal, since: float) -> Decimal:
        return price * Decimal(self._simulation.now - since) / HOUR
