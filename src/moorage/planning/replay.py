"""A recorded run again: exactly, to see that nothing has changed; or under another configuration.

Exactly means that every call is made again to a new scheduler, and every effect compared, byte for
byte. Under another configuration the scheduler would ask for other things, so its calls cannot be
repeated: what happened around it is played to a simulation instead, and the outcomes are compared.
"""

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec.structs import replace

from moorage.api import config as configuration
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.core.observations import Deleted, Observation, Updated
from moorage.expansion.names import Names
from moorage.planning import world
from moorage.planning.drain import anew
from moorage.planning.recording import Recording
from moorage.planning.world import Deed, World
from moorage.sim import trace
from moorage.sim.refusals import Refusal
from moorage.sim.run import Simulation

START_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Replay:
    """A run made again, call by call."""

    calls: int
    # The first line that came out otherwise: its number in the file, as it was, as it is now.
    difference: tuple[int, str, str] | None

    @property
    def is_same(self) -> bool:
        return self.difference is None

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data."""
        told: dict[str, Any] = {"calls": self.calls, "same": self.is_same}
        if self.difference is not None:
            line, recorded, replayed = self.difference
            told["difference"] = {"line": line, "recorded": recorded, "replayed": replayed}
        return told


@dataclass(frozen=True, slots=True)
class Rerun:
    """What another configuration makes of a recorded run."""

    pods: int
    # Pods that are elsewhere in the end: where they were, where they are.
    moved: Mapping[str, tuple[str | None, str | None]]
    pending: Mapping[str, str]
    recorded_pending: int
    evictions: int
    recorded_evictions: int

    @property
    def is_same(self) -> bool:
        return not self.moved and self.evictions == self.recorded_evictions

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data."""
        return {
            "pods": self.pods,
            "same": self.is_same,
            "moved": {pod: {"from": a, "to": b} for pod, (a, b) in self.moved.items()},
            "pending": {"recorded": self.recorded_pending, "now": len(self.pending)},
            "evictions": {"recorded": self.recorded_evictions, "now": self.evictions},
            "reasons": dict(self.pending),
        }


def replay(recording: Recording) -> Replay:
    """Make every recorded call again, under the recorded configuration."""
    calls = 0
    again = trace.replay(recording.texts, recording.config)
    for number, (recorded, replayed) in enumerate(zip(recording.texts, again, strict=True), 2):
        calls += 1
        if recorded != replayed:
            return Replay(calls, (number, recorded, replayed))
    return Replay(calls, None)


def rerun(recording: Recording, config: configuration.Source) -> Rerun:
    """Play what happened around the scheduler to one with another configuration."""
    recorded = World(recording.lines)
    simulation = Simulation(
        [_without_template(obj) for obj in recorded.beginning],
        config,
        recording.seed,
        start_seconds=START_SECONDS,
    )
    _Playing(simulation, recorded).run()
    placements, before = simulation.placements, recorded.placements
    moved = {
        pod: (before[pod], placements[pod])
        for pod in before
        if pod in placements and before[pod] != placements[pod]
    }
    pending = simulation.pending
    return Rerun(
        pods=len(placements),
        moved=moved,
        pending=pending,
        recorded_pending=sum(node is None for node in before.values()),
        evictions=len(simulation.evictions),
        recorded_evictions=len(recorded.victims),
    )


class _Playing:
    """Does to a simulation what was done to the recorded cluster."""

    def __init__(self, simulation: Simulation, recorded: World) -> None:
        self._simulation = simulation
        self._recorded = recorded
        self._names = Names()
        # Pods that go because somebody deletes them, not because of the scheduler.
        self._asked_to_go: set[str] = set()
        self._replaced: set[str] = set()
        simulation.cluster.watch(self._notice)

    def run(self) -> None:
        """Everything in its time, then until nothing is left to do."""
        last = 0.0
        for at, deeds in world.deeds_by_time(self._recorded.later):
            last = max(last, at)
            self._simulation.at(at, partial(self._do, deeds))
        if last:
            self._simulation.run(until=last)
        self._simulation.run()

    def _do(self, deeds: Iterable[Deed]) -> None:
        for deed in deeds:
            # What is not there, or is so already, is so because this run took another course.
            with contextlib.suppress(Refusal):
                self._do_one(deed.verb, _without_template(deed.obj))

    def _do_one(self, verb: str, obj: KubeObject) -> None:
        simulation = self._simulation
        match verb:
            case world.CREATE:
                simulation.create([_fresh(obj)])
            case world.UPDATE:
                simulation.update(_fresh(obj))
            case world.DELETE:
                self._expect(obj)
                simulation.delete(type(obj).__name__, obj.namespace, obj.name)
            case _:
                self._expect(obj)
                if (there := simulation.cluster.get(type(obj), obj.key)) is not None:
                    simulation.cluster.remove(there)

    def _expect(self, obj: KubeObject) -> None:
        there = self._simulation.cluster.get(type(obj), obj.key)
        if there is not None:
            self._asked_to_go.add(there.uid)

    def _notice(self, observation: Observation) -> None:
        """Make a pod anew that is sent away or lost, if its controller would."""
        match observation:
            case Updated(obj=Pod(is_terminating=True) as pod) | Deleted(obj=Pod() as pod):
                pass
            case _:
                return
        # A set waits until the name is free; others make the next one at once.
        waits = pod.controller is not None and pod.controller.kind == "StatefulSet"
        is_gone = isinstance(observation, Deleted)
        if pod.is_terminal or pod.uid in self._replaced or (waits and not is_gone):
            return
        if pod.uid in self._asked_to_go or not self._recorded.keeps_up(pod):
            return
        self._replaced.add(pod.uid)
        again = anew(pod, "")
        if not waits:
            name = self._names.fresh(pod.key, f"{pod.name}-")
            again = replace(again, metadata=replace(again.metadata, name=name))
        make = partial(self._simulation.create, [_fresh(again)])
        self._simulation.at(self._simulation.now, make)


def _fresh(obj: KubeObject) -> KubeObject:
    """An object as somebody would hand it in: versions are the server's matter."""
    return replace(obj, metadata=replace(obj.metadata, resource_version=""))


def _without_template(obj: KubeObject) -> KubeObject:
    """A controller that makes no pods: those it made are part of the recording."""
    spec: Any = getattr(obj, "spec", None)
    if getattr(spec, "template", None) is None:
        return obj
    return replace(obj, spec=replace(spec, template=None))
