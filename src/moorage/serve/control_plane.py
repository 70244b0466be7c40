"""The control plane: controllers, kubelets and the scheduler on the event loop, next to HTTP.

Each takes a turn of a few milliseconds, and HTTP requests are handled between turns. Without
work the loop sleeps until a change or the next deadline.
"""

import asyncio
import contextlib
import time
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
from moorage.serve.api_server import ApiServer
from moorage.serve.controllers.loop import ControllerLoop
from moorage.serve.local_client import LocalClient
from moorage.serve.resources import BUILT_IN, Resource
from moorage.serve.status_errors import StatusError
from moorage.serve.store import ADDED, DELETED, Change, Store


class SchedulerLoop:
    """A scheduler on a store."""

    def __init__(
        self,
        scheduler: Scheduler,
        store: Store,
        performer: LocalClient,
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
                if (obj := decode(kind.struct, stored.body)) is not None
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
                observation = observation_of(self._news.popleft())
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
            except StatusError as refusal:
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


def decode(struct: type[KubeObject], body: bytes) -> KubeObject | None:
    """An object as the scheduler reads it; None for one that it cannot read."""
    try:
        obj: KubeObject = _decoder(struct).decode(body)
    except msgspec.ValidationError:
        return None  # The API lets none in, but a data folder may be older.
    return obj


def observation_of(change: Change) -> Observation | None:
    """A change as the scheduler is told of it."""
    kind, _ = _kinds_read()[change.resource.storage_key]
    obj = decode(kind.struct, change.stored.body)
    if obj is None:
        return None
    if change.type == DELETED:
        return Deleted(obj)
    return Added(obj) if change.type == ADDED else Updated(obj)


# How long controllers and scheduler may work before HTTP has its turn.
TURN_SECONDS = 0.008
LONGEST_SLEEP_SECONDS = 60.0


def steady_clock() -> Callable[[], float]:
    """The time of day, which never goes back: the machine's clock is looked at once."""
    began, at = time.monotonic(), time.time()  # noqa: TID251 a shell may know the time
    return lambda: at + (time.monotonic() - began)


class ControlPlane:
    """Controllers, kubelets and, if there is one, the scheduler of one API server."""

    def __init__(
        self, api: ApiServer, scheduler: Scheduler | None, *, stopwatch: Callable[[], float]
    ) -> None:
        now = api.now
        self._now = now
        performer = LocalClient(api, now)
        self._events = performer.events
        self.loop = ControllerLoop(performer, now=now, stopwatch=stopwatch)
        self.scheduling = (
            None
            if scheduler is None
            else SchedulerLoop(scheduler, api.store, performer, now=now, stopwatch=stopwatch)
        )
        self._wake = asyncio.Event()
        for resource in api.registry:
            for obj in list(api.store.each(resource)):
                self.loop.notice(None, obj)
        if self.scheduling is not None:
            self.scheduling.start()
        api.store.subscribe(self._notice)

    def _notice(self, change: Change) -> None:
        if change.type == DELETED:
            self.loop.notice(change.object, None)
        else:
            self.loop.notice(change.before, change.object)
        if self.scheduling is not None:
            self.scheduling.notice(change)
        self._wake.set()

    async def run(self) -> None:
        """Go on until cancelled."""
        while True:
            self._wake.clear()
            self.turn()
            if self.has_work:
                await asyncio.sleep(0)
            else:
                await self._sleep()

    def turn(self) -> None:
        """Do some of what there is to do, for a few milliseconds."""
        self._events.expire(self._now())
        self.loop.turn(TURN_SECONDS / 2)
        if self.scheduling is not None:
            self.scheduling.turn(TURN_SECONDS / 2)

    @property
    def has_work(self) -> bool:
        return self.loop.has_work or (self.scheduling is not None and self.scheduling.has_work)

    @property
    def deadline(self) -> float | None:
        """When something happens by the mere passing of time."""
        deadlines = [self.loop.deadline]
        if self.scheduling is not None:
            deadlines.append(self.scheduling.deadline)
        return min((each for each in deadlines if each is not None), default=None)

    async def _sleep(self) -> None:
        deadline, now = self.deadline, self._now()
        wait = LONGEST_SLEEP_SECONDS if deadline is None else deadline - now
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.001, min(wait, LONGEST_SLEEP_SECONDS))):
                await self._wake.wait()
