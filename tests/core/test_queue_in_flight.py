"""Pods in flight and the changes kept for them (rows 3 and 4)."""

import pickle

import pytest

from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod
from moorage.core.in_flight import InFlightEvent, InFlightPods
from moorage.core.queued_pod import QueuedPod
from moorage.errors import InvariantError
from moorage.framework.events import ClusterEvent

CHANGES = {
    "X": ClusterEvent.NODE_ADD,
    "Y": ClusterEvent.NODE_DELETE,
    "Z": ClusterEvent.POD_ADD,
}
NAMES = {event: name for name, event in CHANGES.items()}


def make_entry(name):
    return QueuedPod(Pod(metadata=ObjectMeta(name=name, namespace="ns", uid=name)), 0.0)


def play(script):
    """A word per step: a pod takes off, a change happens, `name.` is done."""
    flights = InFlightPods()
    for step in script.split():
        if step in CHANGES:
            flights.record(CHANGES[step], None, None)
        elif step.endswith("."):
            flights.done(step[:-1])
        else:
            flights.add(make_entry(step))
    flights.check()
    return flights


def words(line):
    return " ".join(NAMES[e.event] if isinstance(e, InFlightEvent) else e.uid for e in line)


@pytest.mark.parametrize(
    ("script", "line"),
    [
        pytest.param("p1 X p2 Y p1.", "p2 Y", id="3: the oldest is done"),
        pytest.param("p1 X p2 Y p3 Z p2.", "p1 X Y p3 Z", id="4: one in the middle is done"),
        pytest.param("X p1 Y", "p1 Y", id="2: changes before the first pod are not kept"),
        pytest.param("p1 X p1. Y", "", id="events without pods in flight are not kept"),
        pytest.param("p1 p2 X p1. p2.", "", id="all done"),
        pytest.param("p1 X p2 p2. Y p1. p3 Z", "p3 Z", id="starting over"),
        pytest.param("p1 X p9.", "p1 X", id="done of a stranger"),
    ],
)
def test_timeline(script, line):
    assert words(play(script).timeline()) == line


@pytest.mark.parametrize(
    ("script", "pod", "missed"),
    [
        pytest.param("p1 X p2 Y", "p1", "X Y", id="all since its pop"),
        pytest.param("p1 X p2 Y", "p2", "Y", id="nothing from before its pop"),
        pytest.param("p1 X p2 Y Z p1.", "p2", "Y Z", id="the same after others are done"),
        pytest.param("p1 X p2", "p2", "", id="nothing happened"),
    ],
)
def test_missed(script, pod, missed):
    assert words(play(script).events_since_pop(pod)) == missed


def test_a_pod_not_in_flight_has_missed_nothing_that_is_known():
    assert play("p1 X").events_since_pop("p2") is None


def test_events_before_all_pods_in_flight_are_dropped():
    flights = play("p0")
    for i in range(1000):
        flights.add(make_entry(f"q{i}"))
        flights.record(CHANGES["X"], None, None)
        flights.done("p0" if i == 0 else f"q{i - 1}")
    assert len(flights._events) <= 2
    flights.check()


def test_pickles():
    flights = pickle.loads(pickle.dumps(play("p1 X p2 Y")))
    flights.done("p1")
    assert words(flights.timeline()) == "p2 Y"


def test_a_marker_without_its_pod_is_noticed():
    flights = play("p1")
    [entry] = flights
    entry.uid = "another"
    with pytest.raises(InvariantError, match="in flight under p1"):
        flights.check()
