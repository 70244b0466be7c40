"""Lookups of pods whose binding is uncertain: one at a time for each."""

from moorage.core.state import PodLookups
from moorage.framework.status import SUCCESS
from moorage.testing import make_pod


def test_due_when_its_time_has_come():
    lookups = PodLookups()
    lookups.schedule("a", 5.0)
    lookups.schedule("b", 3.0)
    assert lookups.deadline == 3.0
    assert lookups.start_due(2.9) == []
    assert lookups.start_due(4.0) == ["b"]
    assert lookups.deadline == 5.0
    assert lookups.start_due(5.0) == ["a"]
    assert lookups.deadline is None


def test_a_pod_is_not_looked_up_twice_at_a_time():
    lookups = PodLookups()
    lookups.schedule("a", 0.0)
    lookups.start_due(0.0)
    lookups.schedule("a", 1.0)
    assert (lookups.start_due(9.0), "a" in lookups) == ([], True)
    lookups.finish("a")
    assert "a" not in lookups
    lookups.schedule("a", 10.0)
    assert lookups.start_due(10.0) == ["a"]


def test_the_first_scheduled_time_stays():
    lookups = PodLookups()
    lookups.schedule("a", 5.0)
    lookups.schedule("a", 1.0)
    assert lookups.deadline == 5.0


def test_a_cancelled_lookup():
    lookups = PodLookups()
    lookups.schedule("a", 0.0)
    lookups.cancel("a")
    lookups.cancel("unheard")
    assert (lookups.start_due(9.0), "a" in lookups) == ([], False)


def test_plugins_prepare_a_template_when_its_first_pod_arrives(machine):
    prepared = []

    class Prepares:
        name = "Prepares"

        def prepare(self, template):
            prepared.append(template)

        def filter(self, state, pod, node):
            return SUCCESS

    run = machine(Prepares)
    run.add(make_pod("a"), make_pod("b"), make_pod("c", requests={"cpu": "1"}))
    assert len(prepared) == 2
