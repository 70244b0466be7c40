"""Replica: one scheduler process: the core, its watch, and a trace of its calls."""

from collections.abc import Sequence
from typing import Any

from moorage.api.config import SchedulerConfiguration
from moorage.core.effects import Effect, Outcome, Ticket
from moorage.core.extenders import ExtenderClient
from moorage.core.observations import Observation
from moorage.core.queued_pod import QueuedPod
from moorage.core.scheduler import Scheduler
from moorage.errors import InvariantError
from moorage.framework.registry import Registry
from moorage.sim.trace import Line, Trace, observed
from moorage.sim.watch import Watch


class SchedulerFactory:
    """Makes the schedulers of one simulation; they share one plugin registry."""

    def __init__(
        self, config: SchedulerConfiguration, extenders: Sequence[ExtenderClient] = ()
    ) -> None:
        self._config = config
        self._registry = Registry()
        self._extenders = extenders

    def __call__(self, seed: int) -> Scheduler:
        return Scheduler(
            self._config, seed=seed, registry=self._registry, extenders=self._extenders
        )


class Replica:
    """A scheduler that runs, or ran."""

    def __init__(
        self,
        number: int,
        scheduler: Scheduler,
        watch: Watch,
        trace: Trace | None,
    ) -> None:
        self.number = number
        self.scheduler = scheduler
        self.watch = watch
        self.is_running = True
        # A slow cycle delays the next one.
        self.busy_until = 0.0
        self._trace = trace

    def observe(self, observation: Observation, now: float) -> list[Effect]:
        """Pass an observation to the scheduler."""
        effects = self.scheduler.observe(observation, now)
        if self._trace is not None:
            self._record("observe", now, effects, **observed(observation))
        return effects

    def schedule_one(self, now: float) -> list[Effect]:
        """Try one pod."""
        effects = self.scheduler.schedule_one(now)
        if self._trace is not None:
            self._record("schedule_one", now, effects)
        return effects

    def complete(self, ticket: Ticket, outcome: Outcome, now: float) -> list[Effect]:
        """Pass an outcome to the scheduler."""
        effects = self.scheduler.complete(ticket, outcome, now)
        if self._trace is not None:
            self._record("complete", now, effects, ticket=ticket, outcome=outcome)
        return effects

    def advance(self, now: float) -> list[Effect]:
        """Process expired deadlines."""
        effects = self.scheduler.advance(now)
        if self._trace is not None:
            self._record("advance", now, effects)
        deadline = self.scheduler.deadline
        if deadline is not None and deadline <= now:
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
        if self.scheduler.has_work:
            return self.busy_until
        return self.scheduler.deadline

    def has_assumed_pods(self) -> bool:
        """Whether pods are assumed: in a binding cycle, or waiting on permit."""
        return self.scheduler.cache.assumed_count > 0

    def waiting_counts(self) -> dict[str, int]:
        """How many pods wait for a node, by queue; gated pods are not counted."""
        counts = self.scheduler.queue.counts()
        return {queue: counts[queue] for queue in ("active", "backoff", "unschedulable")}

    def depths(self) -> dict[str, int]:
        """How many pods are in each queue."""
        counts = self.scheduler.queue.counts()
        return {queue: counts[queue] for queue in ("active", "backoff", "unschedulable", "gated")}

    def unschedulable_pods(self) -> list[QueuedPod]:
        """Pods that wait for a cluster event."""
        return self.scheduler.queue.dump()["unschedulable"]

    def is_retrying(self) -> bool:
        """Whether pods will be tried again without a cluster event."""
        counts = self.waiting_counts()
        return counts["active"] + counts["backoff"] > 0

    def _record(self, call: str, now: float, effects: list[Effect], **details: Any) -> None:
        assert self._trace is not None
        line = Line(at=now, call=call, replica=self.number, effects=tuple(effects), **details)
        self._trace.note(line)
