"""Stopwatches: every moment belongs to one part."""

from itertools import count

from moorage import Simulation
from moorage.metrics.stopwatches import Spent, Stopwatches
from moorage.testing.builders import make_node, make_pod


class Inner:
    def work(self):
        return "done"


class Outer:
    def __init__(self, inner):
        self.inner = inner

    def work(self):
        return self.inner.work() + self.inner.work()


def test_nested_calls_have_their_own_time():
    watches = Stopwatches(count().__next__)  # Every look at the clock takes a second.
    outer = Outer(Inner())
    seen = {"inner": Spent(), "outer": Spent()}
    watches._wrap(outer.inner, "work", seen["inner"])
    watches._wrap(outer, "work", seen["outer"])
    assert outer.work() == "donedone"
    assert (seen["inner"].calls, seen["inner"].seconds) == (2, 2)
    assert (seen["outer"].calls, seen["outer"].seconds) == (1, 3)


def test_a_simulation_is_measured_and_not_changed():
    objects = [make_node(f"n{i}") for i in range(3)]
    objects += [make_pod(f"p{i}", requests={"cpu": "1"}) for i in range(5)]
    plain, watched = Simulation(objects), Simulation(objects)
    watches = Stopwatches(count().__next__)
    watches.attach(watched.scheduler)
    plain.run()
    watched.run()
    assert watched.placements == plain.placements
    assert watches.stages["decision"].calls == 5
    assert watches.stages["which nodes fit"].calls == 5
    assert watches.plugins["DefaultBinder", "bind"].calls == 5
    # Its answers are kept: it is asked about all nodes once, and then about those that changed.
    kept = watches.plugins["NodeUnschedulable", "filter_all"]
    assert kept.calls == 1
    assert all(spent.seconds >= spent.calls for spent in watches.plugins.values())
