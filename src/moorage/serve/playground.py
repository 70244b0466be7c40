"""The playground's life: what changes the API is noticed, controllers and scheduler act on it.

They share the event loop with HTTP. Each takes a turn of a few milliseconds at a time, and in
between whoever asks something over HTTP is answered. When nothing is to be done, nothing is:
it sleeps until a change or the next deadline.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable

from moorage.core.scheduler import Scheduler
from moorage.serve.api_server import ApiServer
from moorage.serve.change_log import DELETED, Change
from moorage.serve.controllers.loop import Loop
from moorage.serve.performer import Performer
from moorage.serve.scheduling import Scheduling

# How long controllers and scheduler may work before HTTP has its turn.
TURN_SECONDS = 0.008
LONGEST_SLEEP_SECONDS = 60.0


def steady_clock() -> Callable[[], float]:
    """The time of day, which never goes back: the machine's clock is looked at once."""
    began, at = time.monotonic(), time.time()  # noqa: TID251 a shell may know the time
    return lambda: at + (time.monotonic() - began)


class Playground:
    """Controllers, kubelets and, if there is one, the scheduler of one API server."""

    def __init__(
        self, api: ApiServer, scheduler: Scheduler | None, *, stopwatch: Callable[[], float]
    ) -> None:
        now = api.now
        self._now = now
        performer = Performer(api, now)
        self._events = performer.events
        self.loop = Loop(performer, now=now, stopwatch=stopwatch)
        self.scheduling = (
            None
            if scheduler is None
            else Scheduling(scheduler, api.store, performer, now=now, stopwatch=stopwatch)
        )
        self._wake = asyncio.Event()
        for resource in api.catalog:
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
