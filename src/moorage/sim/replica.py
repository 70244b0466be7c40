"""Replica: one scheduler process: the core, its watch, and a trace of its calls."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from moorage.core.effects import Effect, Outcome, Ticket
from moorage.core.observations import Observation
from moorage.core.queued_pod import QueuedPod
from moorage.core.scheduler import Scheduler
from moorage.errors import InvariantError
from moorage.framework.invoke import CallMeter, measured
from moorage.sim.trace import Line, Trace, observed
from moorage.sim.watch import Watch

# Makes the schedulers of one simulation, of a `seed` each; they share one plugin registry.
SchedulerFactory = partial[Scheduler]


@dataclass(slots=True, eq=False)
class Replica:
    """A scheduler that runs, or ran."""

    number: int
    scheduler: Scheduler
    watch: Watch
    trace: Trace | None
    is_running: bool = True
    # A slow cycle delays the next one.
    busy_until: float = 0.0
    # Measures the calls of the scheduler, for `moorage simulate --profile`.
    meter: CallMeter | None = None

    def measure(self, meter: CallMeter) -> None:
        """Report the calls of the scheduler, its cycle and its profiles to a meter."""
        self.meter = self.scheduler.cycle.meter = meter
        for profile in self.scheduler.profiles.values():
            profile.measure(meter)

    @measured("observe")
    def observe(self, observation: Observation, now: float) -> list[Effect]:
        """Pass an observation to the scheduler."""
        effects = self.scheduler.observe(observation, now)
        details = {} if self.trace is None else observed(observation)
        return self._traced("observe", now, effects, **details)

    @measured("schedule_one")
    def schedule_one(self, now: float) -> list[Effect]:
        """Try one pod."""
        return self._traced("schedule_one", now, self.scheduler.schedule_one(now))

    @measured("complete")
    def complete(self, ticket: Ticket, outcome: Outcome, now: float) -> list[Effect]:
        """Pass an outcome to the scheduler."""
        effects = self.scheduler.complete(ticket, outcome, now)
        return self._traced("complete", now, effects, ticket=ticket, outcome=outcome)

    @measured("advance")
    def advance(self, now: float) -> list[Effect]:
        """Process expired deadlines."""
        effects = self._traced("advance", now, self.scheduler.advance(now))
        if self.is_due(now):
            deadline = self.scheduler.deadline
            raise InvariantError(f"at {now} the deadline is still {deadline}: time stands still")
        return effects

    def is_due(self, now: float) -> bool:
        """Whether a deadline has expired."""
        deadline = self.scheduler.deadline
        return deadline is not None and deadline <= now

    def is_ready(self, now: float) -> bool:
        """Whether it can try a pod now."""
        return self.busy_until <= now and self.scheduler.has_work

    def next_at(self) -> float | None:
        """When it next acts without an observation."""
        return self.busy_until if self.scheduler.has_work else self.scheduler.deadline

    def has_assumed_pods(self) -> bool:
        """Whether pods are assumed: in a binding cycle, or waiting on permit."""
        return self.scheduler.cache.assumed_count > 0

    def depths(self) -> dict[str, int]:
        """How many pods are in each queue."""
        counts = self.scheduler.queue.counts()
        return {queue: counts[queue] for queue in ("active", "backoff", "unschedulable", "gated")}

    def unschedulable_pods(self) -> list[QueuedPod]:
        """Pods that wait for a cluster event."""
        return self.scheduler.queue.dump()["unschedulable"]

    def is_retrying(self) -> bool:
        """Whether pods will be tried again without a cluster event."""
        counts = self.depths()
        return counts["active"] + counts["backoff"] > 0

    def has_torn_gangs(self) -> bool:
        """Whether gangs will be released that are bound in part and do not fit."""
        groups = self.scheduler.groups
        return groups is not None and groups.torn.deadline is not None

    def _traced(self, call: str, now: float, effects: list[Effect], **details: Any) -> list[Effect]:
        """The effects of a call, which the trace records."""
        if self.trace is not None:
            line = Line(at=now, call=call, replica=self.number, effects=tuple(effects), **details)
            self.trace.note(line)
        return effects
