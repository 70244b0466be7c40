"""LiveScheduler: the scheduling loop on real time.

    sync       all kinds but pods are listed, then pods
    lead       the lease is acquired, and everything that was listed before is listed again
    iterate    observations, outcomes and pods for some milliseconds; what is due; then the network
    stop       after a signal: write what is outstanding, release the lease as soon as no write
               needs it, return 0
               after losing the lease: send nothing more, return 1

A standby handles all observations too, so its cache is warm; it only schedules no pods.
"""

import asyncio
import contextlib
import math
from collections import Counter, deque
from collections.abc import Coroutine
from typing import Any

from moorage import garbage
from moorage.api.kinds import Kind
from moorage.core.effects import Outcome, Ticket
from moorage.core.scheduler import Scheduler
from moorage.live import logs
from moorage.live.client import Client
from moorage.live.event_recorder import EventRecorder
from moorage.live.extenders import HttpExtenders
from moorage.live.leader_election import LeaderElector, LeaseLost
from moorage.live.performer import CONCURRENCY, CONDITIONS, ApiPerformer
from moorage.live.reflector import ObservationQueue, Reflector

SLICE_SECONDS = 0.004
# How often a busy loop checks whether something is due.
CHECK_SECONDS = 0.02
# More decisions would be made long before they can be sent, and ahead of more important pods.
MAX_BINDINGS = 4 * CONCURRENCY
# How long a scheduler that is stopped may take, and the part in which it writes. The rest is for
# the lease: without its release, the next leader would wait until it expires.
GRACE_SECONDS = 30.0
WRITING_SHARE = 0.9

STOPPED, LOST = 0, 1


class LiveScheduler:
    """A scheduler connected to a cluster; health checks and dumps read its public attributes."""

    def __init__(
        self,
        scheduler: Scheduler,
        client: Client,
        kinds: list[tuple[Kind, tuple[str, ...]]],
        *,
        host: str,
        elector: LeaderElector | None = None,
        delay_cache: bool = False,
        extenders: HttpExtenders | None = None,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        self.scheduler = scheduler
        self.client = client
        self.elector = elector
        self.is_synced = False
        self.leads = False
        self.is_stopping = False
        self._wake = asyncio.Event()
        self.observations = ObservationQueue(self._wake)
        self.reflectors = [
            Reflector(client, kind, self.observations, needed_by=readers) for kind, readers in kinds
        ]
        self.events = EventRecorder(client.with_own_bucket(), host, is_busy=self._is_busy)
        self.performer = ApiPerformer(
            client,
            self.events,
            self._may_act,
            self._finish,
            self._fail,
            extenders=extenders,
            is_busy=self._is_busy,
        )
        # Held while a cycle waits for extenders in another thread: the scheduler must not be read
        # meanwhile.
        self.cycling = asyncio.Lock()
        self._has_extenders = extenders is not None
        self._delay_cache = delay_cache
        self._grace_seconds = grace_seconds
        self._acquired_at = 0.0
        self._renewing: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._error: BaseException | None = None
        self._finished: deque[tuple[Ticket, Outcome]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf
        self._check_at = 0.0
        self._stop = asyncio.Event()
        self._log = logs.named("run")
        # The core measures durations with `now`, so it must not jump with the wall clock.
        self._monotonic = client.clock.monotonic
        self._started_at = client.clock.wall() - self._monotonic()

    def now(self) -> float:
        """Seconds since 1970 by the wall clock at the start, monotonic from there on."""
        return self._started_at + self._monotonic()

    def could_schedule(self) -> bool:
        """Whether there are pods to schedule, and scheduling is allowed."""
        return self._may_schedule() and self.scheduler.has_work

    def stop(self) -> None:
        """Write what is outstanding, and return from `run`."""
        self._stop.set()

    async def run(self) -> int:
        """Schedule until stopped (returns 0) or until the lease is lost (returns 1)."""
        for work in (self._loop(), self.events.run(), self._start_up()):
            self._spawn(work)
        try:
            await self._stop.wait()
            if self._error is not None:
                raise self._error  # The next leader takes over.
            await self._finish_up()
            return STOPPED
        except LeaseLost as lost:
            self._log.error("Leaderelection lost", why=str(lost))
            return LOST
        finally:
            self.leads = False
            self.is_stopping = True
            await self._end()

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._fail(task.exception())

    def _fail(self, error: BaseException | None) -> None:
        """Stop after a bug of ours: a scheduler that guesses is worse than one that stops."""
        self.leads = False
        self._error = self._error or error
        self._stop.set()

    async def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._release()

    # Start and stop

    async def _start_up(self) -> None:
        """Sync and become the leader."""
        acquired = self._spawn(self._acquire())
        if self._delay_cache:
            await acquired
        await self._sync()
        await acquired
        await self._list_again()
        self.leads = not self.is_stopping
        self._log.info("scheduling", profiles=sorted(self.scheduler.profiles))
        self._wake.set()

    async def _acquire(self) -> None:
        if self.elector is not None:
            await self.elector.acquire()
            self._renewing = self._spawn(self.elector.keep())
        self._acquired_at = self._monotonic()

    async def _sync(self) -> None:
        pods = [each for each in self.reflectors if each.kind.name == "Pod"]
        others = [each for each in self.reflectors if each.kind.name != "Pod"]
        for stage in (others, pods):
            for reflector in stage:
                self._spawn(reflector.run())
            await asyncio.gather(*(reflector.settled() for reflector in stage))
        await self._all_observed()
        garbage.collect_rarely()
        self.is_synced = True
        objects = {each.kind.name: len(each) for each in self.reflectors if len(each)}
        self._log.info("synced", **objects)

    async def _list_again(self) -> None:
        """List what was listed before this scheduler became the leader: it may be outdated."""
        if self.elector is None:
            return
        old = [each for each in self.reflectors if each.listed_at < self._acquired_at]
        await asyncio.gather(*(reflector.refresh() for reflector in old))
        await self._all_observed()

    async def _all_observed(self) -> None:
        """Wait until the core has handled all observations that are queued now."""
        queued = self.observations.put_count
        while self.observations.taken_count < queued:
            await asyncio.sleep(SLICE_SECONDS)

    async def _finish_up(self) -> None:
        """Write what is outstanding; Events do not need the lease."""
        self.is_stopping = True
        self.leads = False
        self._log.info("stopping", **self.performer.outstanding(), events=self.events.outstanding)
        self.events.report_dropped()
        until = asyncio.get_running_loop().time() + WRITING_SHARE * self._grace_seconds
        before = self._lost()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self._drained()
        lost = Counter(self.performer.outstanding())
        await self._release()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self.events.flushed()
        lost += self._lost() - before
        lost["events"] += self.events.outstanding
        if lost := +lost:
            self._log.warning("not written", **lost)

    def _lost(self) -> Counter[str]:
        """What was given up since the start."""
        return Counter({CONDITIONS: self.performer.lost_conditions, "events": self.events.given_up})

    async def _drained(self) -> None:
        """Wait until nothing is in progress, and the core has requested nothing more."""
        while self._finished or self.performer.outstanding():
            await self.performer.drained()
            await asyncio.sleep(0)

    async def _release(self) -> None:
        """Send nothing more that needs the lease, and give it back."""
        await self.performer.close()
        if self.elector is None or not self.elector.may_act():
            return
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait({self._renewing})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout((1 - WRITING_SHARE) * self._grace_seconds):
                await self.elector.release()

    # The loop

    async def _loop(self) -> None:
        while True:
            self._wake.clear()
            is_busy = self._iterate() or (
                self._has_extenders and await self._schedule_with_extenders()
            )
            if self._may_wait(is_busy=is_busy):
                await self._wake.wait()
            else:
                await asyncio.sleep(0)

    def _iterate(self) -> bool:
        """Handle observations, outcomes and pods for one time slice; True if there is more."""
        scheduler, perform, started_at = self.scheduler, self.performer.perform, self._started_at
        monotonic = self._monotonic
        moment = monotonic()
        until = moment + SLICE_SECONDS
        while (observation := self.observations.take()) is not None:
            perform(scheduler.observe(observation, started_at + moment))
            moment = monotonic()
            if moment > until:
                return True
        while self._finished:
            ticket, outcome = self._finished.popleft()
            perform(scheduler.complete(ticket, outcome, started_at + moment))
            moment = monotonic()
            if moment > until:
                return True
        while not self._has_extenders and scheduler.has_work and self._may_schedule():
            perform(scheduler.schedule_one(started_at + moment))
            moment = monotonic()
            if moment > until:
                return True
        return bool(self._finished)

    def _may_wait(self, *, is_busy: bool) -> bool:
        """Do what is due; if there is nothing else to do either, set the timer."""
        now = self.now()
        if is_busy and now < self._check_at:
            return False
        self._check_at = now + CHECK_SECONDS
        deadline = self.scheduler.deadline
        if deadline is not None and deadline <= now:
            self.performer.perform(self.scheduler.advance(now))
            return False
        if deadline is not None and deadline < self._timer_at:
            self._set_timer(deadline, now)
        return not is_busy

    def _set_timer(self, moment: float, now: float) -> None:
        """Wake up at `moment`; a timer that turns out to be too early does no harm."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = moment
        self._timer = asyncio.get_running_loop().call_later(moment - now, self._timer_expired)

    def _timer_expired(self) -> None:
        self._timer, self._timer_at = None, math.inf
        self._wake.set()

    async def _schedule_with_extenders(self) -> bool:
        """Schedule one pod in another thread; meanwhile observations and outcomes are queued."""
        if not self.could_schedule():
            return False
        async with self.cycling:
            effects = await asyncio.to_thread(self.scheduler.schedule_one, self.now())
        self.performer.perform(effects)
        return True

    def _may_schedule(self) -> bool:
        return self.leads and self.performer.bindings < MAX_BINDINGS and self._may_act()

    def _is_busy(self) -> bool:
        """Whether pods are being scheduled or bound, so that reports have to wait."""
        return self.leads and (self.scheduler.has_work or self.performer.bindings > 0)

    def _may_act(self) -> bool:
        return self.elector is None or self.elector.may_act()

    def _finish(self, ticket: Ticket, outcome: Outcome) -> None:
        self._finished.append((ticket, outcome))
        self._wake.set()
