"""Every call of a scheduler and every effect it caused, as JSON lines; replay is reading them back.

    {"at":0.0,"call":"start","replica":0,"seed":7}
    {"at":0.0,"call":"observe","replica":0,"news":"Added","kind":"Pod","objects":[{...}]}
    {"at":0.0,"call":"schedule_one","replica":0,"effects":[{"ticket":1,"request":{...}}]}
    {"at":0.2,"call":"complete","replica":0,"ticket":1,"outcome":{"type":"Done"}}
    {"at":1.0,"call":"advance","replica":0}

Two runs that are the same have the same lines, byte for byte.
"""

from collections.abc import Iterable, Iterator
from typing import Any, assert_never

import msgspec
from msgspec import Raw, Struct

from moorage.api.config import SchedulerConfiguration
from moorage.api.kinds import KINDS
from moorage.core.effects import Effect, Outcome, Ticket
from moorage.core.observations import Added, Deleted, Listed, Observation, Updated
from moorage.core.scheduler import Scheduler


class Line(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of a scheduler, and the effects it returned."""

    at: float
    call: str
    replica: int
    seed: int | None = None
    news: str = ""
    kind: str = ""
    objects: tuple[Raw, ...] = ()
    ticket: Ticket | None = None
    outcome: Outcome | None = None
    effects: tuple[Effect, ...] = ()


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


class Trace:
    """Lines in order of the calls."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def __len__(self) -> int:
        return len(self._lines)

    def lines(self) -> Iterator[str]:
        """The lines so far."""
        return (line.decode() for line in self._lines)

    def note(self, line: Line) -> None:
        """Append a call."""
        self._lines.append(_encode(line))


def observed(observation: Observation) -> dict[str, Any]:
    """The fields of a line for an observation."""
    match observation:
        case Listed(kind=kind, objects=objects):
            name = kind.__name__
        case Added(obj=obj) | Updated(obj=obj) | Deleted(obj=obj):
            name, objects = type(obj).__name__, (obj,)
        case _:
            assert_never(observation)
    return {
        "news": type(observation).__name__,
        "kind": name,
        "objects": tuple(Raw(_encode(obj)) for obj in objects),
    }


def replay(lines: Iterable[str], config: SchedulerConfiguration | None = None) -> Iterator[str]:
    """Make the same calls to new schedulers; yields the lines that this makes."""
    schedulers: dict[int, Scheduler] = {}
    for text in lines:
        line = _decode(text)
        if line.seed is not None:
            schedulers[line.replica] = Scheduler(config, seed=line.seed)
        effects = tuple(call(schedulers[line.replica], line))
        yield _encode(msgspec.structs.replace(line, effects=effects)).decode()


def call(scheduler: Scheduler, line: Line) -> list[Effect]:
    """Make a recorded call again."""
    match line.call:
        case "observe":
            return scheduler.observe(_observation(line), line.at)
        case "schedule_one":
            return scheduler.schedule_one(line.at)
        case "complete":
            assert line.ticket is not None
            assert line.outcome is not None
            return scheduler.complete(line.ticket, line.outcome, line.at)
        case "advance":
            return scheduler.advance(line.at)
    return []


def _observation(line: Line) -> Observation:
    struct = KINDS[line.kind].struct
    objects = tuple(msgspec.json.decode(raw, type=struct) for raw in line.objects)
    match line.news:
        case "Listed":
            return Listed(struct, objects)
        case "Added":
            return Added(*objects)
        case "Updated":
            return Updated(*objects)
    return Deleted(*objects)
