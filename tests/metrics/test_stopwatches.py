"""Stopwatches: every second is counted for one part."""

from itertools import count

from moorage import Simulation
from moorage.framework.invoke import PluginMethod, measured
from moorage.metrics.stopwatches import Stopwatches
from moorage.testing.builders import make_node, make_pod


class Inner:
    name = "Inner"

    def filter(self):
        return "done"


class Outer:
    def __init__(self, meter):
        self.meter = meter
        self.inner = PluginMethod(Inner(), "filter")
        self.inner.meter = meter

    @measured("Filter")
    def run_filters(self):
        return self.inner.call() + self.reserve() + self.inner.call()

    @measured("Reserve")
    def reserve(self):
        return self.inner.call()


def test_nested_calls_have_their_own_time():
    watches = Stopwatches(count().__next__)  # Every reading of the clock takes a second.
    assert Outer(watches).run_filters() == "donedonedone"
    inner, outer = watches.plugins["Inner", "filter"], watches.stages["which nodes fit"]
    assert (inner.calls, inner.seconds) == (3, 3)
    # A point that is no stage of its own counts as part of the stage around it.
    assert (outer.calls, outer.seconds) == (1, 5)


def test_a_simulation_is_measured_and_not_changed():
    objects = [make_node(f"n{i}") for i in range(3)]
    objects += [make_pod(f"p{i}", requests={"cpu": "1"}) for i in range(5)]
    plain, watched = Simulation(objects), Simulation(objects)
    watches = Stopwatches(count().__next__)
    watched.measure(watches)
    plain.run()
    watched.run()
    assert watched.placements == plain.placements
    assert watches.stages["decision"].calls == 5
    assert watches.stages["which nodes fit"].calls == 5
    assert watches.plugins["DefaultBinder", "bind"].calls == 5
    # Its results are cached: it is called for all nodes once, then for those that changed.
    kept = watches.plugins["NodeUnschedulable", "filter_all"]
    assert kept.calls == 1
    assert all(spent.seconds >= spent.calls for spent in watches.plugins.values())
