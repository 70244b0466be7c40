"""The control plane: controllers, kubelets and the scheduler on the event loop, next to HTTP.

Each takes a turn of a few milliseconds, and HTTP requests are handled between turns. Without
work the loop sleeps until a change or the next deadline.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from moorage.api.kinds import ADMISSION, KINDS, Kind
from moorage.api.meta import KubeObject
from moorage.api.resource_claims import ClaimChangedError
from moorage.cluster.api_server import ApiServer
from moorage.cluster.controller_loop import ControllerLoop
from moorage.cluster.resources import BUILT_IN, Resource
from moorage.cluster.status_errors import StatusError
from moorage.cluster.store import ADDED, DELETED, Change
from moorage.controllers import tasks
from moorage.controllers.index import Task
from moorage.core.effects import Effect, Failed, Outcome, Ticket
from moorage.core.observations import Added, Deleted, Listed, Observation, Updated
from moorage.core.scheduler import Scheduler
from moorage.serve.local_client import LocalClient
from moorage.serve.result_annotations import AnnotatingScheduler

# How long controllers and scheduler run before HTTP requests are handled.
TURN_SECONDS = 0.008
MAX_SLEEP_SECONDS = 60.0


Clock = Callable[[], float]


def steady_clock() -> Clock:
    """The time of day, read once and continued monotonically."""
    began, at = time.monotonic(), time.time()  # noqa: TID251 a shell may know the time
    return lambda: at + (time.monotonic() - began)


class ControlPlane:
    """Kubelets, optional controllers and an optional scheduler on one API server."""

    def __init__(
        self,
        api: ApiServer,
        scheduler: Scheduler | None,
        *,
        stopwatch: Clock,
        runs_controllers: bool = True,
    ) -> None:
        self._now = api.now
        client = LocalClient(api)
        self._events = client.events
        self.controllers = ControllerLoop(
            client,
            now=api.now,
            stopwatch=stopwatch,
            report_error=_log_error,
            without=() if runs_controllers else tasks.CONTROLLER_TASKS,
        )
        self._loops: list[ControllerLoop | SchedulerLoop] = [self.controllers]
        self._wake = asyncio.Event()
        for resource in api.registry:
            for obj in list(api.store.each(resource)):
                self.controllers.observe(None, obj)
        self.scheduling: SchedulerLoop | None = None
        if scheduler is not None:
            self.scheduling = SchedulerLoop(scheduler, api, client, stopwatch)
            self._loops.append(self.scheduling)
            self.scheduling.start()
        api.store.subscribe(self._observe)

    def _observe(self, change: Change) -> None:
        if change.type == DELETED:
            self.controllers.observe(change.object, None)
        else:
            self.controllers.observe(change.before, change.object)
        if self.scheduling is not None:
            self.scheduling.observe(change)
        self._wake.set()

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            self._wake.clear()
            self.turn()
            if self.has_work:
                await asyncio.sleep(0)
            else:
                await self._sleep()

    def turn(self) -> None:
        """Work for a few milliseconds."""
        self._events.expire(self._now())
        for loop in self._loops:
            loop.turn(TURN_SECONDS / 2)

    @property
    def has_work(self) -> bool:
        return any(loop.has_work for loop in self._loops)

    @property
    def deadline(self) -> float | None:
        """When the next work is due without a change."""
        deadlines = [loop.deadline for loop in self._loops]
        return min((each for each in deadlines if each is not None), default=None)

    async def _sleep(self) -> None:
        deadline, now = self.deadline, self._now()
        wait = MAX_SLEEP_SECONDS if deadline is None else deadline - now
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.001, min(wait, MAX_SLEEP_SECONDS))):
                await self._wake.wait()


def _log_error(task: Task, error: Exception) -> None:
    name, key = task
    logging.getLogger(__name__).error("%s: %s", name, "/".join(key), exc_info=error)


class SchedulerLoop:
    """A scheduler on a store: changes become observations, effects become writes."""

    def __init__(
        self, scheduler: Scheduler, api: ApiServer, client: LocalClient, stopwatch: Clock
    ) -> None:
        self.scheduler = scheduler
        self._store = api.store
        self._client = client
        self._now = api.now
        self._stopwatch = stopwatch
        self._changes: deque[Change] = deque()
        self._outcomes: deque[tuple[Ticket, Outcome]] = deque()
        if isinstance(scheduler, AnnotatingScheduler):
            scheduler.annotate = client.annotate

    def start(self) -> None:
        """Pass the objects of the store to the scheduler."""
        for kind, resource in scheduler_kinds().values():
            listed = tuple(
                obj
                for _, stored in self._store.snapshot(resource)
                if (obj := decode(kind.struct, stored.body)) is not None
            )
            if listed:
                self._perform(self.scheduler.observe(Listed(kind.struct, listed), self._now()))

    def observe(self, change: Change) -> None:
        """Queue a change for the next turn."""
        if change.resource.storage_key in scheduler_kinds():
            self._changes.append(change)

    @property
    def has_work(self) -> bool:
        return bool(self._changes or self._outcomes or self.scheduler.has_work)

    @property
    def deadline(self) -> float | None:
        return self.scheduler.deadline

    def turn(self, budget_seconds: float) -> None:
        """Work for that long, or until no work is left."""
        end = self._stopwatch() + budget_seconds
        self._perform(self.scheduler.advance(self._now()))
        while self.has_work and self._stopwatch() < end:
            if self._changes:
                observation = observation_of(self._changes.popleft())
                if observation is not None:
                    self._perform(self.scheduler.observe(observation, self._now()))
            elif self._outcomes:
                ticket, outcome = self._outcomes.popleft()
                self._perform(self.scheduler.complete(ticket, outcome, self._now()))
            else:
                self._perform(self.scheduler.schedule_one(self._now()))

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            try:
                outcome: Outcome = self._client.perform(effect.request)
            except StatusError as error:
                outcome = Failed(str(error), missing=error.code == 404)
            except ClaimChangedError as error:
                outcome = Failed(str(error))
            self._outcomes.append((effect.ticket, outcome))


@cache
def scheduler_kinds() -> dict[str, tuple[Kind, Resource]]:
    """The kinds that a scheduler reads by storage key, in the order in which it lists them."""
    return {
        resource.storage_key: (kind, resource)
        for kind in KINDS.values()
        for resource in BUILT_IN
        if kind.name not in ADMISSION
        and (resource.api_version, resource.kind) == (kind.api_version, kind.name)
    }


@cache
def _decoder(struct: type[KubeObject]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(struct)


def decode(struct: type[KubeObject], body: bytes) -> KubeObject | None:
    """An object as the scheduler reads it; None if it is invalid."""
    try:
        obj: KubeObject = _decoder(struct).decode(body)
    except msgspec.ValidationError:
        return None  # The API rejects such objects, but a data folder may be older.
    return obj


def observation_of(change: Change) -> Observation | None:
    """A change as an observation of the scheduler."""
    kind, _ = scheduler_kinds()[change.resource.storage_key]
    obj = decode(kind.struct, change.stored.body)
    if obj is None:
        return None
    if change.type == DELETED:
        return Deleted(obj)
    return Added(obj) if change.type == ADDED else Updated(obj)
