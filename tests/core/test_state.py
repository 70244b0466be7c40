"""Pods whose binding nobody is sure of: each is asked about once at a time."""

from moorage.core.state import PodLookups


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


def test_who_is_being_looked_up_is_not_asked_about_again():
    lookups = PodLookups()
    lookups.schedule("a", 0.0)
    lookups.start_due(0.0)
    lookups.schedule("a", 1.0)
    assert (lookups.start_due(9.0), "a" in lookups) == ([], True)
    lookups.finish("a")
    assert "a" not in lookups
    lookups.schedule("a", 10.0)
    assert lookups.start_due(10.0) == ["a"]


def test_the_first_appointment_stays():
    lookups = PodLookups()
    lookups.schedule("a", 5.0)
    lookups.schedule("a", 1.0)
    assert lookups.deadline == 5.0


def test_nobody_wants_to_know_any_more():
    lookups = PodLookups()
    lookups.schedule("a", 0.0)
    lookups.cancel("a")
    lookups.cancel("unheard")
    assert (lookups.start_due(9.0), "a" in lookups) == ([], False)
