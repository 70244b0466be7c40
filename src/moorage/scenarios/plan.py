"""Plan: what is to happen, in seconds; however it was written down."""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from msgspec import Struct

from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.scenarios.actions import Action
from moorage.scenarios.lifetimes import Lifetime

SAMPLES = 288  # a day in steps of five minutes


class Arrival(Struct, frozen=True):
    """A pod that comes at a time; None as seconds: it stays."""

    at: float
    pod: Pod
    seconds: float | None
    replace: bool
    # As a trace calls it; without one it is named after its stream.
    name: str = ""


class Event(Struct, frozen=True):
    """Something is done to the cluster at a time; `path` says where that stands."""

    at: float
    path: str
    action: Action


@dataclass(frozen=True, slots=True)
class Stream:
    """Pods of one template, by chance or by the clock."""

    name: str
    pod: Pod
    start: float
    end: float
    count: int
    replace: bool
    lifetime: Lifetime | None
    # Given times, or how many arrive in an hour.
    times: tuple[float, ...] = ()
    per_hour: float = 0.0
    poisson: bool = True

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        """The pods in the order of their times; the same for the same seed, whoever else comes."""
        random = Random(f"{seed}/{self.name}")
        for at in self._times(random):
            for _ in range(self.count):
                seconds = None if self.lifetime is None else self.lifetime.draw(random)
                yield Arrival(at, self.pod, seconds, self.replace)

    def _times(self, random: Random) -> Iterator[float]:
        yield from self.times
        if not self.per_hour:
            return
        at, mean = self.start, 3600 / self.per_hour
        number = 0
        while True:
            number += 1
            at = at + random.expovariate(1 / mean) if self.poisson else self.start + number * mean
            if at > self.end:
                return
            yield round(at, 3)  # Milliseconds are fine enough, and plain to read.


@dataclass(frozen=True, slots=True)
class Listed:
    """Pods with their times, as a trace has them."""

    name: str
    pods: tuple[Arrival, ...]

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        return iter(self.pods)


@dataclass(frozen=True, slots=True)
class Plan:
    """A cluster, and what happens to it."""

    name: str
    duration: float
    seed: int
    streams: tuple[Stream | Listed, ...] = ()
    events: tuple[Event, ...] = ()
    objects: tuple[KubeObject, ...] = ()
    sample_seconds: float | None = None

    @classmethod
    def of_trace(
        cls, file: str | Path, arrivals: Listed, objects: Iterable[KubeObject], seed: int
    ) -> "Plan":
        """The plan of a file of pods; it lasts until the last of those that end has ended."""
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
        """How far samples lie apart."""
        return self.sample_seconds or self.duration / SAMPLES

    def arrivals(self, seed: int) -> Iterator[tuple[str, Arrival]]:
        """All pods of all streams by time, each with its stream's name."""
        streams = [_named(stream, number, seed) for number, stream in enumerate(self.streams)]
        merged = heapq.merge(*streams, key=lambda item: (item[0], item[1]))
        return ((name, arrival) for _, _, name, arrival in merged)


def _named(
    stream: Stream | Listed, number: int, seed: int
) -> Iterator[tuple[float, int, str, Arrival]]:
    for each in stream.arrivals(seed):
        yield each.at, number, stream.name, each
