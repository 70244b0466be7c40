"""Live: the loop on wall-clock time, and who may turn it.

    sync     everything but pods is listed, then pods
    lead     the lease is ours, and everything was listed once more since then
    turn     news, outcomes, pods, for some milliseconds; what is due; then the network
    stop     a signal: finish what is under way, give the lease back, 0
             the lease is lost: nothing more is sent, 1

A standby is told all news too, so it is warm; it just tries no pod.
"""

import asyncio
import gc
import math
import time
from collections import deque
from collections.abc import Coroutine
from typing import Any

from moorage.api.kinds import Kind
from moorage.core.effects import Outcome, Ticket
from moorage.core.scheduler import Scheduler
from moorage.live import lease as leases
from moorage.live import logs
from moorage.live.client import Client
from moorage.live.event_recorder import EventRecorder
from moorage.live.lease import Lease
from moorage.live.news import News
from moorage.live.performer import CONCURRENCY, Performer
from moorage.live.ports import Ports
from moorage.live.reflector import Reflector

SLICE_SECONDS = 0.004
# How often to look, while there is plenty to do, whether something is due.
LOOK_SECONDS = 0.02
# More would be decided long before they can be sent, and ahead of pods that matter more.
MOST_BINDINGS = 4 * CONCURRENCY
FINISH_SECONDS = 5.0
EVENTS_SECONDS = 2.0

# A request alone makes more than Python's 700 objects; that often there is nothing to find.
GARBAGE_THRESHOLDS = (50_000, 20, 50)

STOPPED, LOST = 0, 1


class Live:
    """A scheduler at work on a cluster. What is public here is for health checks and dumps."""

    def __init__(
        self,
        scheduler: Scheduler,
        client: Client,
        kinds: list[tuple[Kind, tuple[str, ...]]],
        *,
        host: str,
        lease: Lease | None = None,
        delay_cache: bool = False,
        ports: Ports | None = None,
    ) -> None:
        self.scheduler = scheduler
        self.client = client
        self.lease = lease
        self.is_synced = False
        self.leads = False
        self.is_stopping = False
        self._wake = asyncio.Event()
        self.news = News(self._wake)
        self.reflectors = [
            Reflector(client, kind, self.news, needed_by=readers) for kind, readers in kinds
        ]
        self.events = EventRecorder(client.with_own_bucket(), host)
        self.performer = Performer(
            client, self.events, self._may_act, self._finish, self._in_trouble, ports=ports
        )
        # Held while a cycle waits for extenders in a thread of its own: who looks at the
        # scheduler from outside has to wait for that.
        self.cycling = asyncio.Lock()
        self._waits = ports is not None
        self._delay_cache = delay_cache
        self._acquired_at = 0.0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._trouble: BaseException | None = None
        self._finished: deque[tuple[Ticket, Outcome]] = deque()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = math.inf
        self._look_at = 0.0
        self._stop = asyncio.Event()
        self._log = logs.named("run")
        # Wall-clock time that never jumps: the core measures spans with it.
        self._started_at = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds since 1970, as of the start, and steady from there on."""
        return self._started_at + time.monotonic()

    def could_schedule(self) -> bool:
        """Whether there are pods to try, and nothing keeps us from it."""
        return self._may_schedule() and self.scheduler.has_work

    def stop(self) -> None:
        """Finish what is under way and end."""
        self._stop.set()

    async def run(self) -> int:
        """Schedule until stopped (0), or until the lease is lost (1)."""
        for work in (self._turns(), self.events.run(), self._rise()):
            self._spawn(work)
        try:
            await self._stop.wait()
            if self._trouble is not None:
                raise self._trouble  # The next leader takes over.
            await self._finish_up()
            return STOPPED
        except leases.Lost as lost:
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
            self._in_trouble(task.exception())

    def _in_trouble(self, trouble: BaseException | None) -> None:
        """Something of ours failed: a scheduler that guesses is worse than one that stops."""
        self.leads = False
        self._trouble = self._trouble or trouble
        self._stop.set()

    async def _end(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.performer.close()
        if self.lease is not None and self.lease.may_act():
            await self.lease.release()

    # On the way to work

    async def _rise(self) -> None:
        """Sync, lead, and go on leading."""
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
        if self.lease is not None:
            await self.lease.acquire()
            self._spawn(self.lease.keep())
        self._acquired_at = time.monotonic()

    async def _sync(self) -> None:
        pods = [each for each in self.reflectors if each.kind.name == "Pod"]
        others = [each for each in self.reflectors if each.kind.name != "Pod"]
        for stage in (others, pods):
            for reflector in stage:
                self._spawn(reflector.run())
            await asyncio.gather(*(reflector.settled() for reflector in stage))
        await self._told()
        # What is there now stays for long; looking it through for garbage again is in vain.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GARBAGE_THRESHOLDS)
        self.is_synced = True
        objects = {each.kind.name: len(each) for each in self.reflectors if len(each)}
        self._log.info("synced", **objects)

    async def _list_again(self) -> None:
        """What was listed before we led may be old: see the cluster as it is, then bind."""
        if self.lease is None:
            return
        old = [each for each in self.reflectors if each.listed_at < self._acquired_at]
        await asyncio.gather(*(reflector.refresh() for reflector in old))
        await self._told()

    async def _told(self) -> None:
        """Wait until the core knows what has been read by now."""
        read = self.news.put_count
        while self.news.taken_count < read:
            await asyncio.sleep(SLICE_SECONDS)

    async def _finish_up(self) -> None:
        self.is_stopping = True
        self.leads = False
        self._log.info("stopping", bindings=self.performer.bindings)
        for wait, seconds in (
            (self.performer.drained(), FINISH_SECONDS),
            (self.events.flushed(), EVENTS_SECONDS),
        ):
            try:
                async with asyncio.timeout(seconds):
                    await wait
            except TimeoutError:
                self._log.warning("not everything could be finished in time")

    # At work

    async def _turns(self) -> None:
        while True:
            self._wake.clear()
            is_busy = self._turn() or (self._waits and await self._wait_for_extenders())
            if self._may_wait(is_busy=is_busy):
                await self._wake.wait()
            else:
                await asyncio.sleep(0)

    def _turn(self) -> bool:
        """Turn the machine for a while; True if there is more to do."""
        scheduler, perform, started_at = self.scheduler, self.performer.perform, self._started_at
        moment = time.monotonic()
        until = moment + SLICE_SECONDS
        while (observation := self.news.take()) is not None:
            perform(scheduler.observe(observation, started_at + moment))
            moment = time.monotonic()
            if moment > until:
                return True
        while self._finished:
            ticket, outcome = self._finished.popleft()
            perform(scheduler.complete(ticket, outcome, started_at + moment))
            moment = time.monotonic()
            if moment > until:
                return True
        while not self._waits and scheduler.has_work and self._may_schedule():
            perform(scheduler.schedule_one(started_at + moment))
            moment = time.monotonic()
            if moment > until:
                return True
        return bool(self._finished)

    def _may_wait(self, *, is_busy: bool) -> bool:
        """Do what is due; if nothing is, and nothing else is to be done, set the alarm."""
        now = self.now()
        if is_busy and now < self._look_at:
            return False
        self._look_at = now + LOOK_SECONDS
        deadline = self.scheduler.deadline
        if deadline is not None and deadline <= now:
            self.performer.perform(self.scheduler.advance(now))
            return False
        if deadline is not None and deadline < self._alarm_at:
            self._set_alarm(deadline, now)
        return not is_busy

    def _set_alarm(self, moment: float, now: float) -> None:
        """Be woken at a moment, or before: an alarm that turns out to be early does no harm."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = moment
        self._alarm = asyncio.get_running_loop().call_later(moment - now, self._alarmed)

    def _alarmed(self) -> None:
        self._alarm, self._alarm_at = None, math.inf
        self._wake.set()

    async def _wait_for_extenders(self) -> bool:
        """Try one pod aside, while news and outcomes are kept; False if there is none."""
        if not (self._may_schedule() and self.scheduler.has_work):
            return False
        async with self.cycling:
            effects = await asyncio.to_thread(self.scheduler.schedule_one, self.now())
        self.performer.perform(effects)
        return True

    def _may_schedule(self) -> bool:
        return self.leads and self.performer.bindings < MOST_BINDINGS and self._may_act()

    def _may_act(self) -> bool:
        return self.lease is None or self.lease.may_act()

    def _finish(self, ticket: Ticket, outcome: Outcome) -> None:
        self._finished.append((ticket, outcome))
        self._wake.set()
