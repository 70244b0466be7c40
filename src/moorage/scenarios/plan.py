"""ScenarioPlan: pods that arrive and events, with times in seconds; from a file or a trace."""

import heapq
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct

from moorage.api.manifests.unread_workloads import UnreadWorkload
from moorage.api.meta import KubeObject
from moorage.api.node import NodePool
from moorage.api.pod import Pod
from moorage.api.selectors import Selector
from moorage.scenarios.wire import DeleteAction, ScaleAction

SAMPLES = 288  # a day in steps of five minutes


# How long pods run after they have started; without a lifetime they run forever.


class Fixed(Struct, frozen=True):
    """The same for every pod."""

    seconds: float

    def draw(self, random: Random) -> float:
        return self.seconds


class Exponential(Struct, frozen=True):
    """Exponentially distributed; `seconds` is the mean."""

    seconds: float

    def draw(self, random: Random) -> float:
        return random.expovariate(1 / self.seconds) if self.seconds else 0.0


class Uniform(Struct, frozen=True):
    """Uniformly distributed between two bounds."""

    least: float
    most: float

    def draw(self, random: Random) -> float:
        return random.uniform(self.least, self.most)


Lifetime = Fixed | Exponential | Uniform


# Events: what happens to the cluster. `play` performs them.


class NodeAction(Struct, frozen=True):
    """Nodes by name or by selector; with a count, so many of them at random. None: forever."""

    names: tuple[str, ...] | None
    selector: Selector | None
    count: int | None
    seconds: float | None


class DrainNodes(NodeAction, frozen=True):
    """Cordon nodes and evict their pods; uncordon after `seconds`."""


class FailNodes(NodeAction, frozen=True):
    """Delete nodes with all their pods; create them again, empty, after `seconds`."""


class AddNodes(Struct, frozen=True):
    """Add nodes to a pool."""

    pool: NodePool


class CreateObjects(Struct, frozen=True):
    """Create objects."""

    objects: tuple[dict[str, Any], ...]


class ApplyObjects(Struct, frozen=True):
    """Replace objects by newer versions; create those that do not exist."""

    objects: tuple[dict[str, Any], ...]


Action = (
    ScaleAction | DrainNodes | FailNodes | AddNodes | CreateObjects | ApplyObjects | DeleteAction
)


class PlannedEvent(Struct, frozen=True):
    """An action at a time; `path` is its field in the file, for errors."""

    at: float
    path: str
    action: Action


# Arrivals of pods


class Arrival(Struct, frozen=True):
    """A pod that is created at a time and runs for `seconds`; None: forever."""

    at: float
    pod: Pod
    seconds: float | None
    replace: bool
    # The name in a trace; without one the pod is named after its stream.
    name: str = ""
    # The gang that it belongs to, and how many pods that has; "" for none.
    gang: str = ""
    gang_size: int = 0


@dataclass(frozen=True, slots=True)
class ArrivalStream:
    """Pods of one template that arrive at random, evenly or at given times."""

    name: str
    pod: Pod
    start: float
    end: float
    count: int
    replace: bool
    lifetime: Lifetime | None
    # Given times, or the number of arrivals per hour.
    times: tuple[float, ...] = ()
    per_hour: float = 0.0
    poisson: bool = True
    # Whether the pods of one time are a gang; they run equally long then.
    gang: bool = False

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        """The pods by time; they depend on the seed and this stream only."""
        random = Random(f"{seed}/{self.name}")
        for number, at in enumerate(self._times(random)):
            seconds = None
            gang, size = (f"{self.name}-{number}", self.count) if self.gang else ("", 0)
            for i in range(self.count):
                if self.lifetime is not None and not (self.gang and i):
                    seconds = self.lifetime.draw(random)
                yield Arrival(at, self.pod, seconds, self.replace, gang=gang, gang_size=size)

    def _times(self, random: Random) -> Iterator[float]:
        yield from self.times
        at, mean = self.start, 3600 / self.per_hour if self.per_hour else math.inf
        if math.isinf(mean):
            return
        for number in count(1):
            at = at + random.expovariate(1 / mean) if self.poisson else self.start + number * mean
            if at > self.end:
                return
            yield round(at, 3)  # Milliseconds, for readable output.


@dataclass(frozen=True, slots=True)
class TraceArrivals:
    """Pods with their times, from a trace."""

    name: str
    pods: tuple[Arrival, ...]

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        return iter(self.pods)


@dataclass(frozen=True, slots=True)
class ScenarioPlan:
    """A cluster, and what happens to it."""

    name: str
    duration: float
    seed: int
    streams: tuple[ArrivalStream | TraceArrivals, ...] = ()
    events: tuple[PlannedEvent, ...] = ()
    objects: tuple[KubeObject, ...] = ()
    sample_seconds: float | None = None
    # About the file: what is suspicious and was accepted, and what was assumed.
    warnings: tuple[str, ...] = ()
    # Objects of other kinds that make pods, which are missing.
    unread_workloads: tuple[UnreadWorkload, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of_trace(
        cls, file: str | Path, arrivals: TraceArrivals, objects: Iterable[KubeObject], seed: int
    ) -> "ScenarioPlan":
        """The plan of a file of pods; it ends when the last pod with a lifetime has ended."""
        ends = [each.at + (each.seconds or 0.0) for each in arrivals.pods]
        return cls(
            name=Path(file).stem,
            duration=max(1.0, *ends) + 1,
            seed=seed,
            streams=(arrivals,),
            objects=tuple(objects),
        )

    @property
    def interval(self) -> float:
        """Seconds between samples."""
        return self.sample_seconds or self.duration / SAMPLES

    def arrivals(self, seed: int) -> Iterator[tuple[str, Arrival]]:
        """All pods of all streams by time, each with its stream's name."""
        streams = [_named(stream, number, seed) for number, stream in enumerate(self.streams)]
        merged = heapq.merge(*streams, key=lambda item: (item[0], item[1]))
        return ((name, arrival) for _, _, name, arrival in merged)


def _named(
    stream: ArrivalStream | TraceArrivals, number: int, seed: int
) -> Iterator[tuple[float, int, str, Arrival]]:
    for each in stream.arrivals(seed):
        yield each.at, number, stream.name, each
