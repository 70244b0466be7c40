"""Replicas: the scheduler processes of a simulation, and everything in transit to and from them.

Most of the time there is one. A new leader may replace it, which knows only what the cluster shows.
The old one may go on for a while, and requests that it has sent may still arrive.
"""

from collections.abc import Callable
from typing import assert_never

from msgspec import Struct

from moorage.api.pod import Pod
from moorage.api.server_requests import BindPod, DeletePod, EmitEvent, ReserveResourceClaim
from moorage.core.effects import Effect, Outcome, Ticket
from moorage.core.journal import Journal
from moorage.core.observations import Observation
from moorage.sim import performer
from moorage.sim.checks import InvariantChecks
from moorage.sim.clock import Clock
from moorage.sim.cluster import MemoryCluster
from moorage.sim.faults import FaultDecision, FaultPlan
from moorage.sim.replica import Replica, SchedulerFactory
from moorage.sim.trace import Line, Trace
from moorage.sim.watch import DeliverObservation, Relist, Watch

# A real scheduler takes a while for each pod, so pods that requeue each other for ever do not stop
# time. Here it is a rule: after so many cycles at one instant a second passes.
MOST_CYCLES = 100
MOST_CYCLES_PER_POD = 10
PAUSE_SECONDS = 1.0


class DeliverRequest(Struct, frozen=True):
    """A request reaches the API server."""

    replica: int
    effect: Effect
    fault: FaultDecision


class DeliverOutcome(Struct, frozen=True):
    """The response of the API server reaches the scheduler."""

    replica: int
    ticket: Ticket
    outcome: Outcome


class ReplaceLeader(Struct, frozen=True):
    """A new scheduler replaces the leader, and starts from what the cluster shows."""


class StopReplica(Struct, frozen=True):
    """A scheduler that was replaced stops."""

    replica: int


Action = DeliverObservation | Relist | DeliverRequest | DeliverOutcome | ReplaceLeader | StopReplica


class Replicas:
    """The scheduler processes."""

    def __init__(
        self,
        cluster: MemoryCluster,
        clock: Clock[object],
        make_scheduler: SchedulerFactory,
        seed: int,
        fault_plan: FaultPlan,
        trace: Trace | None,
        checks: InvariantChecks | None,
    ) -> None:
        self.running: list[Replica] = []
        self.leader: Replica
        self.events: list[EmitEvent] = []
        # When a binding or deletion last changed the cluster, or a late observation arrived.
        self.changed_at = 0.0
        self.bound_at = float("-inf")  # When a pod was last bound.
        self.cycles = 0
        self._cluster = cluster
        self._clock = clock
        self._make_scheduler = make_scheduler
        self._seed = seed
        self._fault_plan = fault_plan
        self._trace = trace
        self._checks = checks
        self._all: list[Replica] = []
        self._moment = (0.0, 0)
        cluster.watch_active(self._changed)
        self._start()
        for at in fault_plan.restarts():
            clock.schedule(at, ReplaceLeader())

    @property
    def journals(self) -> list[Journal]:
        """The journals of all schedulers, in order of their start."""
        return [replica.scheduler.journal for replica in self._all]

    def perform(self, what: Action) -> None:
        """Perform an action from the clock."""
        match what:
            case DeliverObservation(replica=number, observation=observation, is_late=is_late):
                self._deliver(self._all[number], observation)
                if is_late:
                    self.changed_at = self._clock.now
            case DeliverRequest(replica=number):
                self._deliver_request(self._all[number], what)
            case DeliverOutcome(replica=number):
                self._deliver_outcome(self._all[number], what)
            case Relist(replica=number, kind=kind):
                self._all[number].watch.relist(kind)
            case ReplaceLeader():
                self._replace()
            case StopReplica(replica=number):
                self._stop(self._all[number])
            case _:
                assert_never(what)

    def step(self) -> bool:
        """Let one scheduler act at this instant; False if none has anything to do."""
        now = self._clock.now
        for replica in self.running:
            if replica.is_due(now):
                self._send(replica, replica.advance(now), _earlier)
                return True
        for replica in self.running:
            if replica.is_ready(now):
                self._try_one(replica, now)
                return True
        return False

    def next_at(self) -> float | None:
        """When a scheduler next acts without an observation."""
        moments = [at for replica in self.running if (at := replica.next_at()) is not None]
        return min(moments, default=None)

    def _start(self) -> None:
        number = len(self._all)
        watch = Watch(number, self._cluster, self._clock, self._fault_plan)
        seed = self._seed + number
        replica = Replica(number, self._make_scheduler(seed=seed), watch, self._trace)
        if self._trace is not None:
            line = Line(at=self._clock.now, call="start", replica=number, seed=seed)
            self._trace.note(line)
        self.leader = replica
        self.running.append(replica)
        self._all.append(replica)
        if self._checks is not None:
            self._checks.start(replica)
        for listing in watch.initial_lists():
            self._clock.schedule(self._clock.now, DeliverObservation(number, listing))

    def _replace(self) -> None:
        for replica in list(self.running):
            overlap = self._fault_plan.overlap()
            if overlap:
                self._clock.in_(overlap, StopReplica(replica.number))
            else:
                self._stop(replica)
        self._start()

    def _stop(self, replica: Replica) -> None:
        if replica.is_running:
            replica.is_running = False
            self.running.remove(replica)

    def _changed(self, observation: Observation) -> None:
        for replica in self.running:
            replica.watch.send(observation)

    def _deliver(self, replica: Replica, observation: Observation) -> None:
        if replica.is_running:
            effects = replica.observe(observation, self._clock.now)
            if self._checks is not None:
                self._checks.observed(replica, observation)
            self._send(replica, effects, _earlier)

    def _try_one(self, replica: Replica, now: float) -> None:
        self.cycles += 1
        waited = frozenset(replica.scheduler.cluster.waiting)  # A cycle may also permit those.
        effects = replica.schedule_one(now)
        replica.busy_until = now + self._fault_plan.cycle_duration(now) + self._pause(now)
        self._send(replica, effects, lambda uid: uid not in waited)

    def _pause(self, now: float) -> float:
        at, cycles = self._moment
        cycles = cycles + 1 if at == now else 1
        self._moment = (now, cycles)
        most = MOST_CYCLES + MOST_CYCLES_PER_POD * self._cluster.count(Pod)
        return PAUSE_SECONDS if cycles >= most else 0.0

    def _send(
        self, replica: Replica, effects: list[Effect], decided: Callable[[str], bool]
    ) -> None:
        """Send the requests of a scheduler."""
        now = self._clock.now
        if self._checks is not None:
            self._checks.requested(replica, effects, decided)
        for effect in effects:
            fault = self._fault_plan.decide(effect.request, now)
            self._clock.in_(fault.there_seconds, DeliverRequest(replica.number, effect, fault))

    def _deliver_request(self, replica: Replica, sent: DeliverRequest) -> None:
        """A request reaches the API server."""
        if not replica.is_running and not self._fault_plan.still_arrives():
            return
        now, effect, fault = self._clock.now, sent.effect, sent.fault
        version = self._cluster.version
        outcome = performer.perform(self._cluster, effect.request, fault, now, self.events)
        if self._cluster.version > version:
            self._performed(replica, effect)
        response = DeliverOutcome(replica.number, effect.ticket, outcome)
        if fault.back_seconds:
            self._clock.in_(fault.back_seconds, response)
        else:
            # Before the watch, which sends the change next.
            self._deliver_outcome(replica, response)

    def _performed(self, replica: Replica, effect: Effect) -> None:
        """The API server carried a request out."""
        request = effect.request
        if isinstance(request, BindPod | DeletePod):
            self.changed_at = self._clock.now
            if isinstance(request, BindPod):
                self.bound_at = self._clock.now
        if self._checks is not None:
            if isinstance(request, BindPod):
                self._checks.bound(replica, effect.ticket, request)
            elif isinstance(request, ReserveResourceClaim):
                self._checks.reserved(replica, request)

    def _deliver_outcome(self, replica: Replica, response: DeliverOutcome) -> None:
        if replica.is_running:
            if self._checks is not None:
                self._checks.completed(replica, response.ticket, response.outcome)
            effects = replica.complete(response.ticket, response.outcome, self._clock.now)
            self._send(replica, effects, _earlier)


def _earlier(uid: str) -> bool:
    """Requests of calls other than schedule_one were decided earlier."""
    return False
