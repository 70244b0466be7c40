"""Pods whose binding nobody is sure of: each is asked about once at a time."""

from moorage.core.lookups import Lookups


def test_due_when_its_time_has_come():
    lookups = Lookups()
    lookups.want("a", 5.0)
    lookups.want("b", 3.0)
    assert lookups.deadline == 3.0
    assert lookups.due(2.9) == []
    assert lookups.due(4.0) == ["b"]
    assert lookups.deadline == 5.0
    assert lookups.due(5.0) == ["a"]
    assert lookups.deadline is None


def test_who_is_being_looked_up_is_not_asked_about_again():
    lookups = Lookups()
    lookups.want("a", 0.0)
    lookups.due(0.0)
    lookups.want("a", 1.0)
    assert (lookups.due(9.0), lookups.knows("a")) == ([], True)
    lookups.answered("a")
    assert not lookups.knows("a")
    lookups.want("a", 10.0)
    assert lookups.due(10.0) == ["a"]


def test_the_first_appointment_stays():
    lookups = Lookups()
    lookups.want("a", 5.0)
    lookups.want("a", 1.0)
    assert lookups.deadline == 5.0


def test_nobody_wants_to_know_any_more():
    lookups = Lookups()
    lookups.want("a", 0.0)
    lookups.drop("a")
    lookups.drop("unheard")
    assert (lookups.due(9.0), lookups.knows("a")) == ([], False)
