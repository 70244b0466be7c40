"""What nodes cost over virtual time."""

from decimal import Decimal

from tests.planning.conftest import node

from moorage import Simulation
from moorage.planning.cost_meter import CostMeter
from moorage.planning.prices import PriceList
from moorage.scenarios import reading
from moorage.scenarios.play import Play


def test_nodes_that_come_and_go():
    simulation = Simulation([node("a"), node("free")])
    meter = CostMeter(simulation, PriceList.of({"a": "0.30", "b": 2}))
    simulation.at(1800, lambda: simulation.create([node("b")]))
    simulation.at(5400, lambda: simulation.delete("Node", "", "a"))
    simulation.run(until=7200)
    # An hour and a half of a, an hour and a half of b.
    assert meter.total == Decimal("0.45") + 3


def test_a_price_label_that_changes():
    simulation = Simulation([node("a", labels={"price": "1"})])
    meter = CostMeter(simulation, PriceList.of(label="price"))
    simulation.at(3600, lambda: simulation.update(node("a", labels={"price": "3"})))
    simulation.run(until=7200)
    assert meter.total == 4


def test_a_scenario_with_a_failure_and_a_larger_pool():
    pool = {
        "apiVersion": "moorage.dev/v1",
        "kind": "NodePool",
        "metadata": {"name": "n"},
        "spec": {"count": 2, "template": {"status": {"allocatable": {"cpu": "4"}}}},
    }
    spec = {
        "duration": "4h",
        "events": [
            {"at": "1h", "addNodes": {"pool": "n", "count": 1}},
            {"at": "2h", "fail": {"nodes": ["n-0"], "for": "30m"}},
        ],
    }
    scenario = {"apiVersion": "moorage.dev/v1", "kind": "Scenario", "metadata": {"name": "s"}}
    playing = Play(reading.plan(scenario | {"spec": spec}, [pool]))
    meter = CostMeter(playing.simulation, PriceList.of({"n": "0.1"}))
    playing.run()
    # Two nodes for four hours, one for three, and half an hour less.
    assert meter.total == Decimal("0.1") * (8 + 3) - Decimal("0.05")
