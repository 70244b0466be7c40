"""Replicas: the scheduler processes of a simulation, and everything on its way to and from them.

Most of the time there is one. It may be replaced by a new one, which knows only what the cluster
shows; the old one may go on for a while without noticing, and what it had sent off may still land.
"""

from collections.abc import Callable
from typing import assert_never

from moorage.api.pod import Pod
from moorage.core.effects import Effect
from moorage.core.journal import Journal
from moorage.core.observations import Observation
from moorage.framework.effects import BindPod, DeletePod, EmitEvent
from moorage.sim import performer
from moorage.sim.checks import Checks
from moorage.sim.clock import Clock
from moorage.sim.cluster import Cluster
from moorage.sim.faults import Trouble
from moorage.sim.happenings import Answer, Deliver, Land, Relist, Replace, Stop
from moorage.sim.replica import MakeScheduler, Replica
from moorage.sim.trace import Line, Trace
from moorage.sim.watch import Watch

Happening = Deliver | Relist | Land | Answer | Replace | Stop

# A real scheduler takes a while for each pod, so that even pods which wake each other for ever do
# not stop the world. Here that has to be said: so many cycles at one moment, then a second passes.
MOST_CYCLES = 100
MOST_CYCLES_PER_POD = 10
PAUSE_SECONDS = 1.0


class Replicas:
    """The scheduler processes."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock[object],
        make_scheduler: MakeScheduler,
        seed: int,
        trouble: Trouble,
        trace: Trace | None,
        checks: Checks | None,
    ) -> None:
        self.running: list[Replica] = []
        self.leader: Replica
        self.events: list[EmitEvent] = []
        # When a request last changed something that may let another pod fit.
        self.changed_at = 0.0
        self.cycles = 0
        self._cluster = cluster
        self._clock = clock
        self._make_scheduler = make_scheduler
        self._seed = seed
        self._trouble = trouble
        self._trace = trace
        self._checks = checks
        self._all: list[Replica] = []
        self._moment = (0.0, 0)
        cluster.watch(self._news, active_pods_only=True)
        self._start()
        for at in trouble.restarts():
            clock.schedule(at, Replace())

    @property
    def journals(self) -> list[Journal]:
        """What the schedulers have to tell, the first one first."""
        return [replica.scheduler.journal for replica in self._all]

    def happen(self, what: Happening) -> None:
        """Do what was put on the clock."""
        match what:
            case Deliver(replica=number, observation=observation):
                self._deliver(self._all[number], observation)
            case Land(replica=number):
                self._land(self._all[number], what)
            case Answer(replica=number):
                self._answer(self._all[number], what)
            case Relist(replica=number, kind=kind):
                self._all[number].watch.relist(kind)
            case Replace():
                self._replace()
            case Stop(replica=number):
                self._stop(self._all[number])
            case _:
                assert_never(what)

    def turn(self) -> bool:
        """Let one scheduler do something at this very moment; False if none has anything to do."""
        now = self._clock.now
        for replica in self.running:
            if replica.is_due(now):
                self._carry(replica, replica.advance(now), _earlier)
                return True
        for replica in self.running:
            if replica.is_ready(now):
                self._try_one(replica, now)
                return True
        return False

    def next_at(self) -> float | None:
        """When a scheduler will next do something by itself."""
        moments = [at for replica in self.running if (at := replica.next_at()) is not None]
        return min(moments, default=None)

    def _start(self) -> None:
        number = len(self._all)
        watch = Watch(number, self._cluster, self._clock, self._trouble)
        seed = self._seed + number
        replica = Replica(number, self._make_scheduler(seed), watch, self._trace)
        if self._trace is not None:
            line = Line(at=self._clock.now, call="start", replica=number, seed=seed)
            self._trace.note(line)
        self.leader = replica
        self.running.append(replica)
        self._all.append(replica)
        if self._checks is not None:
            self._checks.start(replica)
        for listing in watch.list_everything():
            self._clock.schedule(self._clock.now, Deliver(number, listing))

    def _replace(self) -> None:
        for replica in list(self.running):
            overlap = self._trouble.overlap()
            if overlap:
                self._clock.in_(overlap, Stop(replica.number))
            else:
                self._stop(replica)
        self._start()

    def _stop(self, replica: Replica) -> None:
        if replica.is_running:
            replica.is_running = False
            self.running.remove(replica)

    def _news(self, observation: Observation) -> None:
        for replica in self.running:
            replica.watch.news(observation)

    def _deliver(self, replica: Replica, observation: Observation) -> None:
        if replica.is_running:
            effects = replica.observe(observation, self._clock.now)
            if self._checks is not None:
                self._checks.told(replica, observation)
            self._carry(replica, effects, _earlier)

    def _try_one(self, replica: Replica, now: float) -> None:
        self.cycles += 1
        waited = frozenset(replica.scheduler.cluster.waiting)  # A cycle may let those go, too.
        effects = replica.schedule_one(now)
        replica.busy_until = now + self._trouble.thinking(now) + self._pause(now)
        self._carry(replica, effects, lambda uid: uid not in waited)

    def _pause(self, now: float) -> float:
        at, cycles = self._moment
        cycles = cycles + 1 if at == now else 1
        self._moment = (now, cycles)
        most = MOST_CYCLES + MOST_CYCLES_PER_POD * self._cluster.count(Pod)
        return PAUSE_SECONDS if cycles >= most else 0.0

    def _carry(
        self, replica: Replica, effects: list[Effect], decided: Callable[[str], bool]
    ) -> None:
        """Send off what a scheduler asks of the world."""
        now = self._clock.now
        if self._checks is not None:
            self._checks.asked(replica, effects, decided)
        for effect in effects:
            fate = self._trouble.fate(effect.request, now)
            self._clock.in_(fate.there_seconds, Land(replica.number, effect, fate))

    def _land(self, replica: Replica, land: Land) -> None:
        """A request reaches the API server."""
        if not replica.is_running and not self._trouble.still_lands():
            return
        now, effect, fate = self._clock.now, land.effect, land.fate
        version = self._cluster.version
        outcome = performer.perform(self._cluster, effect.request, fate, now, self.events)
        if isinstance(effect.request, BindPod | DeletePod) and self._cluster.version > version:
            self.changed_at = now
            if self._checks is not None and isinstance(effect.request, BindPod):
                self._checks.bound(replica, effect.ticket, effect.request)
        answer = Answer(replica.number, effect.ticket, outcome)
        if fate.back_seconds:
            self._clock.in_(fate.back_seconds, answer)
        else:
            self._answer(replica, answer)  # Ahead of the watch, which is told of it next.

    def _answer(self, replica: Replica, answer: Answer) -> None:
        if replica.is_running:
            if self._checks is not None:
                self._checks.answered(replica, answer.ticket, answer.outcome)
            effects = replica.complete(answer.ticket, answer.outcome, self._clock.now)
            self._carry(replica, effects, _earlier)


def _earlier(uid: str) -> bool:
    """Nothing that is asked for now was decided upon at this moment."""
    return False
