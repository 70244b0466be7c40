import pickle

import pytest

from moorage.sim.clock import Clock, timestamp


def drain(clock: Clock[str]) -> list[tuple[float, str]]:
    happened = []
    while len(clock):
        what = clock.pop()
        happened.append((clock.now, what))
    return happened


@pytest.mark.parametrize(
    ("scheduled", "happens"),
    [
        pytest.param([], [], id="nothing to come"),
        pytest.param([(2, "b"), (1, "a")], [(1, "a"), (2, "b")], id="by time"),
        pytest.param([(1, "b"), (1, "a")], [(1, "b"), (1, "a")], id="as scheduled, at one moment"),
        pytest.param([(-5, "late")], [(0, "late")], id="what is late happens now"),
    ],
)
def test_order(scheduled, happens):
    clock: Clock[str] = Clock()
    for at, what in scheduled:
        clock.schedule(at, what)
    assert drain(clock) == happens


def test_time_starts_at_zero_and_moves_with_what_happens():
    clock: Clock[str] = Clock()
    assert (clock.now, clock.next_at) == (0.0, None)
    clock.in_(3, "first")
    clock.pop()
    clock.in_(3, "second")
    assert (clock.now, clock.next_at) == (3, 6)


def test_the_present_time():
    """Actions that were scheduled for a time in advance come before those of that time."""
    clock: Clock[str] = Clock()
    for what in ("a", "b"):
        clock.schedule(3, what)
    assert not clock.is_due
    assert clock.pop() == "a"
    clock.in_(0, "c")
    clock.schedule(1, "d")
    clock.in_(1, "e")
    assert (sorted(clock), clock.next_at, clock.is_due) == (["b", "c", "d", "e"], 3, True)
    with pytest.raises(AssertionError, match="is due before"):
        clock.advance(4)
    assert drain(clock) == [(3, "b"), (3, "c"), (3, "d"), (4, "e")]


def test_time_passes_up_to_the_next_thing_and_never_back():
    clock: Clock[str] = Clock()
    clock.schedule(5, "it")
    clock.advance(5)
    assert clock.now == 5
    with pytest.raises(AssertionError, match="go back"):
        clock.advance(4)
    with pytest.raises(AssertionError, match="is due before"):
        clock.advance(6)


def test_pickles():
    clock: Clock[str] = Clock()
    clock.schedule(2, "b")
    clock.schedule(1, "a")
    assert drain(pickle.loads(pickle.dumps(clock))) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(0, "2026-01-01T00:00:00Z", id="the epoch"),
        pytest.param(59.9, "2026-01-01T00:00:59Z", id="whole seconds, cut off"),
        pytest.param(86400, "2026-01-02T00:00:00Z", id="a day later"),
    ],
)
def test_timestamp(seconds, text):
    assert timestamp(seconds) == text
