"""Schedulers with one bug each violate an invariant; the error has the history and the seed."""

import pytest
from msgspec.structs import replace

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.server_requests import BindPod
from moorage.core.effects import Effect, Failed, Ticket, Unknown
from moorage.core.observations import Added, Deleted, Listed
from moorage.core.scheduler import Scheduler
from moorage.errors import InvariantError
from moorage.sim.faults import Faults
from moorage.sim.run import Simulation
from moorage.testing.builders import make_node, make_pod


class LosesPods(Scheduler):
    def observe(self, observation, now):
        effects = super().observe(observation, now)
        for each in list(self.known_pods()):
            self.queue.delete(each)
        return effects


class AsksTwice(Scheduler):
    def schedule_one(self, now):
        effects = super().schedule_one(now)
        again = [Effect(Ticket(900), e.request) for e in effects if isinstance(e.request, BindPod)]
        return effects + again


class GuessesThatItFailed(Scheduler):
    def complete(self, ticket, outcome, now):
        guess = Failed("so what") if isinstance(outcome, Unknown) else outcome
        return super().complete(ticket, guess, now)


class NeverGivesUpRoom(Scheduler):
    def complete(self, ticket, outcome, now):
        return [] if isinstance(outcome, Failed) else super().complete(ticket, outcome, now)


class OverlooksNewNodes(Scheduler):
    def observe(self, observation, now):
        if isinstance(observation, Added) and isinstance(observation.obj, Node):
            return []
        return super().observe(observation, now)


class OverlooksDeletedPods(Scheduler):
    def observe(self, observation, now):
        if isinstance(observation, Deleted) and isinstance(observation.obj, Pod):
            return []
        return super().observe(observation, now)


class SeesTwiceTheRoom(Scheduler):
    def observe(self, observation, now):
        if isinstance(observation, Listed) and observation.kind is Node:
            twice = tuple(_doubled(each) for each in observation.objects)
            observation = Listed(Node, twice)
        return super().observe(observation, now)


def _doubled(node):
    return replace(node, status=replace(node.status, allocatable={"cpu": "4", "pods": "10"}))


@pytest.mark.parametrize(
    ("bug", "faults", "text"),
    [
        pytest.param(LosesPods, {}, "is nowhere", id="loses pods"),
        pytest.param(AsksTwice, {}, "again before it knows", id="asks twice"),
        pytest.param(
            GuessesThatItFailed,
            {"bind_unknown": 1.0},
            "cpu: 2000 of 2000 are used",
            id="guesses that an unknown bind failed",
        ),
        pytest.param(NeverGivesUpRoom, {"bind_fails": 1.0}, "room is held", id="hoards room"),
        pytest.param(OverlooksNewNodes, {}, "waits, and fits late", id="overlooks new nodes"),
        pytest.param(OverlooksDeletedPods, {}, "is gone", id="overlooks deleted pods"),
        pytest.param(SeesTwiceTheRoom, {}, "cpu: 2000 of 2000 are used", id="overfills nodes"),
    ],
)
def test_a_bug_is_caught(bug, faults, text, monkeypatch):
    monkeypatch.setattr("moorage.sim.run.Scheduler", bug)
    with pytest.raises(InvariantError) as caught:
        live(Faults(until_seconds=30, **faults))
    assert text in str(caught.value)
    assert "seed 7" in str(caught.value)


def test_a_sound_scheduler_passes():
    live(Faults(until_seconds=30, bind_fails=0.5, bind_unknown=0.5))


def live(faults: Faults) -> None:
    """A node fills up, a pod of those that wait is deleted, a node comes."""
    pods = [make_pod(f"p{i}", requests={"cpu": "1"}) for i in range(5)]
    sim = Simulation([small("early"), *pods], seed=7, faults=faults, check=True)
    sim.run(until=20)
    sim.delete("Pod", "default", "p4")
    sim.create([small("late")])
    sim.run()


def small(name: str) -> Node:
    return make_node(name, allocatable={"cpu": "2", "pods": "10"})


def test_the_story_is_told(monkeypatch):
    monkeypatch.setattr("moorage.sim.run.Scheduler", AsksTwice)
    with pytest.raises(InvariantError, match=r"as scheduler 0 tells it:\n +Queued\("):
        live(Faults())
