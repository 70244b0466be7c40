"""The scheduler in the same process: changes of the store in, bindings and Events out.

The engine is turned by hand here as everywhere: a change becomes an observation, an effect a write,
and what became of the write goes back as its outcome. A turn has a time budget, so that whoever
else lives on the event loop gets to breathe.
"""

from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from moorage.api.kinds import KINDS, Kind
from moorage.api.meta import KubeObject
from moorage.core.effects import Effect, Failed, Outcome, Ticket
from moorage.core.observations import Added, Deleted, Listed, Observation, Updated
from moorage.core.scheduler import Scheduler
from moorage.serve.change_log import ADDED, DELETED, Change
from moorage.serve.performer import Performer
from moorage.serve.refusals import Refusal
from moorage.serve.resources import BUILT_IN, Resource
from moorage.serve.store import Store


class Scheduling:
    """A scheduler on a store."""

    def __init__(
        self,
        scheduler: Scheduler,
        store: Store,
        performer: Performer,
        *,
        now: Callable[[], float],
        stopwatch: Callable[[], float],
    ) -> None:
        self.scheduler = scheduler
        self._store = store
        self._performer = performer
        self._now = now
        self._stopwatch = stopwatch
        self._news: deque[Change] = deque()
        self._answers: deque[tuple[Ticket, Outcome]] = deque()

    def start(self) -> None:
        """Tell the scheduler what is there already."""
        for kind, resource in _kinds_read().values():
            listed = tuple(
                obj
                for _, stored in self._store.snapshot(resource)
                if (obj := decoded(kind.struct, stored.body)) is not None
            )
            if listed:
                self._perform(self.scheduler.observe(Listed(kind.struct, listed), self._now()))

    def notice(self, change: Change) -> None:
        """Something changed; the scheduler hears of it in the next turn."""
        if change.resource.storage_key in _kinds_read():
            self._news.append(change)

    @property
    def has_work(self) -> bool:
        return bool(self._news or self._answers or self.scheduler.has_work)

    @property
    def deadline(self) -> float | None:
        return self.scheduler.deadline

    def turn(self, budget_seconds: float) -> None:
        """Work for so long, or until nothing is left to do now."""
        end = self._stopwatch() + budget_seconds
        self._perform(self.scheduler.advance(self._now()))
        while self.has_work and self._stopwatch() < end:
            if self._news:
                observation = observed(self._news.popleft())
                if observation is not None:
                    self._perform(self.scheduler.observe(observation, self._now()))
            elif self._answers:
                ticket, outcome = self._answers.popleft()
                self._perform(self.scheduler.complete(ticket, outcome, self._now()))
            else:
                self._perform(self.scheduler.schedule_one(self._now()))

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            try:
                outcome: Outcome = self._performer.perform(effect.request)
            except Refusal as refusal:
                outcome = Failed(str(refusal), missing=refusal.code == 404)
            self._answers.append((effect.ticket, outcome))


@cache
def _kinds_read() -> dict[str, tuple[Kind, Resource]]:
    """The kinds that a scheduler reads, in the order in which it is best told, by shelf."""
    found = {}
    for kind in KINDS.values():
        for resource in BUILT_IN:
            if (resource.api_version, resource.kind) == (kind.api_version, kind.name):
                found[resource.storage_key] = (kind, resource)
    return found


@cache
def _decoder(struct: type[KubeObject]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(struct)


def decoded(struct: type[KubeObject], body: bytes) -> KubeObject | None:
    """An object as the scheduler reads it; None for one that it cannot read."""
    try:
        obj: KubeObject = _decoder(struct).decode(body)
    except msgspec.ValidationError:
        return None  # The API lets none in, but a data folder may be older.
    return obj


def observed(change: Change) -> Observation | None:
    """A change as the scheduler is told of it."""
    kind, _ = _kinds_read()[change.resource.storage_key]
    obj = decoded(kind.struct, change.stored.body)
    if obj is None:
        return None
    if change.type == DELETED:
        return Deleted(obj)
    return Added(obj) if change.type == ADDED else Updated(obj)
