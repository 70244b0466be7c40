"""Replica: one scheduler process: the core, its watch, and a trace of what it is told and asks."""

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


class MakeScheduler:
    """Makes the schedulers of one simulation, which look for their plugins only once."""

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
        # A cycle that takes its time keeps the scheduler from the next one.
        self.busy_until = 0.0
        self._trace = trace

    def observe(self, observation: Observation, now: float) -> list[Effect]:
        """Tell the scheduler some news."""
        effects = self.scheduler.observe(observation, now)
        if self._trace is not None:
            self._note("observe", now, effects, **observed(observation))
        return effects

    def schedule_one(self, now: float) -> list[Effect]:
        """Let it try a pod."""
        effects = self.scheduler.schedule_one(now)
        if self._trace is not None:
            self._note("schedule_one", now, effects)
        return effects

    def complete(self, ticket: Ticket, outcome: Outcome, now: float) -> list[Effect]:
        """Bring it an answer."""
        effects = self.scheduler.complete(ticket, outcome, now)
        if self._trace is not None:
            self._note("complete", now, effects, ticket=ticket, outcome=outcome)
        return effects

    def advance(self, now: float) -> list[Effect]:
        """Let it do what is due."""
        effects = self.scheduler.advance(now)
        if self._trace is not None:
            self._note("advance", now, effects)
        deadline = self.scheduler.deadline
        if deadline is not None and deadline <= now:
            raise InvariantError(f"at {now} the deadline is still {deadline}: time stands still")
        return effects

    def is_due(self, now: float) -> bool:
        """Whether advance has something to do."""
        deadline = self.scheduler.deadline
        return deadline is not None and deadline <= now

    def is_ready(self, now: float) -> bool:
        """Whether it can try a pod now."""
        return self.busy_until <= now and self.scheduler.has_work

    def next_at(self) -> float | None:
        """When it will next do something by itself."""
        if self.scheduler.has_work:
            return self.busy_until
        return self.scheduler.deadline

    def holds_room(self) -> bool:
        """Whether pods are on their way to a node, or wait for permission to go."""
        return self.scheduler.cache.assumed_count > 0

    def waiting(self) -> dict[str, int]:
        """How many pods wait for a node, and where; gated ones wait for somebody else."""
        counts = self.scheduler.queue.counts()
        return {place: counts[place] for place in ("active", "backoff", "unschedulable")}

    def depths(self) -> dict[str, int]:
        """How many pods are in each queue."""
        counts = self.scheduler.queue.counts()
        return {place: counts[place] for place in ("active", "backoff", "unschedulable", "gated")}

    def resting(self) -> list[QueuedPod]:
        """Pods that wait for a change."""
        return self.scheduler.queue.dump()["unschedulable"]

    def is_retrying(self) -> bool:
        """Whether pods will be tried again before anything has changed."""
        counts = self.waiting()
        return counts["active"] + counts["backoff"] > 0

    def _note(self, call: str, now: float, effects: list[Effect], **told: Any) -> None:
        assert self._trace is not None
        line = Line(at=now, call=call, replica=self.number, effects=tuple(effects), **told)
        self._trace.note(line)
