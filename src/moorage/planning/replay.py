"""Replay of a recorded run: exactly, or under another configuration.

Exactly means that every call is repeated with a new scheduler, and every effect compared byte for
byte. Under another configuration the effects differ, so the calls cannot be repeated: instead the
recorded changes are applied to a simulation, and the outcomes are compared.
"""

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

from msgspec.structs import replace

from moorage.api import config as configuration
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod, PodStatus
from moorage.cluster.status_errors import StatusError
from moorage.core.observations import Deleted, Observation, Updated
from moorage.expansion.templates import NameGenerator
from moorage.planning import recorded_changes
from moorage.planning.compare import Moves, plain_moves
from moorage.planning.drain import recreated
from moorage.planning.recorded_changes import RecordedChange, RecordedChanges
from moorage.planning.recording import Recording
from moorage.sim import trace
from moorage.sim.results.result import WaitTimes
from moorage.sim.run import Simulation


@dataclass(frozen=True, slots=True)
class Replay:
    """A run repeated call by call."""

    calls: int
    # The first line that differs: its number in the file, as recorded, as replayed.
    difference: tuple[int, str, str] | None

    @property
    def is_same(self) -> bool:
        return self.difference is None

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data."""
        plain: dict[str, Any] = {"calls": self.calls, "same": self.is_same}
        if self.difference is not None:
            line, recorded, replayed = self.difference
            plain["difference"] = {"line": line, "recorded": recorded, "replayed": replayed}
        return plain


@dataclass(frozen=True, slots=True)
class Rerun:
    """The outcome of a recorded run under another configuration."""

    pods: int
    # Pods on another node at the end: the recorded node, the node now.
    moved: Moves
    pending: Mapping[str, str]
    recorded_pending: int
    evictions: int
    recorded_evictions: int
    # Every pod that was bound, also if it is gone at the end: the recorded node, the node now.
    placements: Moves
    waits: WaitTimes
    recorded_waits: WaitTimes

    @property
    def is_same(self) -> bool:
        return not self.moved and self.evictions == self.recorded_evictions

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data."""
        return {
            "pods": self.pods,
            "same": self.is_same,
            "moved": plain_moves(self.moved),
            "pending": {"recorded": self.recorded_pending, "now": len(self.pending)},
            "evictions": {"recorded": self.recorded_evictions, "now": self.evictions},
            "reasons": dict(self.pending),
            "waits": {"recorded": self.recorded_waits.to_dict(), "now": self.waits.to_dict()},
            "placements": plain_moves(self.placements),
        }


def replay(recording: Recording) -> Replay:
    """Repeat every recorded call, under the recorded configuration."""
    calls = 0
    again = trace.replay(recording.texts, recording.config)
    for number, (recorded, replayed) in enumerate(zip(recording.texts, again, strict=True), 2):
        calls += 1
        if recorded != replayed:
            return Replay(calls, (number, recorded, replayed))
    return Replay(calls, None)


def rerun(recording: Recording, config: configuration.Source = None) -> Rerun:
    """Apply the recorded changes to a simulation with another configuration."""
    recorded = RecordedChanges(recording.lines)
    simulation = Simulation(
        [without_template(obj) for obj in recorded.beginning],
        config,
        recording.seed,
        start_seconds=recorded_changes.START_SECONDS,
    )
    _ChangePlayer(simulation, recorded).run()
    placements, before = simulation.placements, recorded.placements
    result = simulation.result
    bound = [each for each in result.history if each.bound_at is not None]
    nodes = {each.pod: each.node for each in bound}
    return Rerun(
        pods=len(placements),
        moved={
            pod: (node, placements[pod])
            for pod, node in before.items()
            if pod in placements and node != placements[pod]
        },
        pending=simulation.pending,
        recorded_pending=sum(node is None for node in before.values()),
        evictions=len(simulation.evictions),
        recorded_evictions=len(recorded.victims),
        placements={
            pod: (recorded.nodes.get(pod), nodes.get(pod))
            for pod in sorted({*recorded.nodes, *nodes})
        },
        waits=result.waits,
        recorded_waits=WaitTimes.of(recorded.waits),
    )


class _ChangePlayer:
    """Applies recorded changes to a simulation."""

    def __init__(self, simulation: Simulation, recorded: RecordedChanges) -> None:
        self._simulation = simulation
        self._recorded = recorded
        self._names = NameGenerator()
        # Pods that a recorded change deletes, so that they are not recreated.
        self._deleted: set[str] = set()
        self._replaced: set[str] = set()
        simulation.cluster.watch(self._on_change)

    def run(self) -> None:
        """Apply every change at its time, then run until nothing is left to do."""
        last = 0.0
        for at, changes in groupby(self._recorded.later, key=lambda change: change.at):
            last = max(last, at)
            self._simulation.at(at, partial(self._apply, list(changes)))
        if last:
            self._simulation.run(until=last)
        self._simulation.run()

    def _apply(self, changes: Iterable[RecordedChange]) -> None:
        for change in changes:
            # A change that is refused does not apply, because this run took another course.
            with contextlib.suppress(StatusError):
                self._apply_one(change.verb, without_template(change.obj))

    def _apply_one(self, verb: str, obj: KubeObject) -> None:
        simulation = self._simulation
        match verb:
            case recorded_changes.CREATE:
                simulation.create([_fresh(obj)])
            case recorded_changes.UPDATE:
                simulation.update(_undecided(_fresh(obj)))
            case recorded_changes.DELETE:
                self._expect(obj)
                simulation.delete(type(obj).__name__, obj.namespace, obj.name)
            case _:
                self._expect(obj)
                if (found := simulation.cluster.get(type(obj), obj.key)) is not None:
                    simulation.cluster.remove(found)

    def _expect(self, obj: KubeObject) -> None:
        found = self._simulation.cluster.get(type(obj), obj.key)
        if found is not None:
            self._deleted.add(found.uid)

    def _on_change(self, observation: Observation) -> None:
        """Recreate a pod that is evicted or lost, if it has a controller."""
        match observation:
            case Updated(obj=Pod(is_terminating=True) as pod) | Deleted(obj=Pod() as pod):
                pass
            case _:
                return
        # A StatefulSet waits until the name is free; other controllers replace at once.
        waits = pod.controller is not None and pod.controller.kind == "StatefulSet"
        is_gone = isinstance(observation, Deleted)
        if pod.is_terminal or pod.uid in self._replaced or (waits and not is_gone):
            return
        if pod.uid in self._deleted or not self._recorded.has_controller(pod):
            return
        self._replaced.add(pod.uid)
        again = recreated(pod, "")
        if not waits:
            name = self._names.fresh(pod.key, f"{pod.name}-")
            again = replace(again, metadata=replace(again.metadata, name=name))
        make = partial(self._simulation.create, [_fresh(again)])
        self._simulation.at(self._simulation.now, make)


def _fresh(obj: KubeObject) -> KubeObject:
    """An object without the resource version, which the simulated API server sets."""
    return replace(obj, metadata=replace(obj.metadata, resource_version=""))


def _undecided(obj: KubeObject) -> KubeObject:
    """A pod without its recorded node and status, which this run may decide otherwise."""
    if not isinstance(obj, Pod):
        return obj
    return replace(obj, spec=replace(obj.spec, node_name=""), status=PodStatus())


def without_template(obj: KubeObject) -> KubeObject:
    """A workload that creates no pods: the recording has its pods."""
    spec: Any = getattr(obj, "spec", None)
    if getattr(spec, "template", None) is None:
        return obj
    return replace(obj, spec=replace(spec, template=None))
