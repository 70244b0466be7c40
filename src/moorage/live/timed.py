"""A scheduler whose verbs are timed: the live shell has the clock, the core has none."""

import time

from moorage.api.config import SchedulerConfiguration
from moorage.core.effects import Effect, Outcome, Ticket
from moorage.core.observations import Observation
from moorage.core.scheduler import Scheduler
from moorage.live.ports import Ports
from moorage.metrics.meter import Meter


class TimedScheduler(Scheduler):
    """The machine as it is, and a meter beside it."""

    def __init__(
        self,
        configuration: SchedulerConfiguration,
        meter: Meter,
        *,
        seed: int = 0,
        ports: Ports | None = None,
    ) -> None:
        if ports is None:
            super().__init__(configuration, seed=seed, journal=meter.journal)
        else:
            super().__init__(
                configuration,
                seed=seed,
                journal=meter.journal,
                extenders=ports.extenders,
                at_once=ports.at_once,
            )
        self.meter = meter
        meter.attach(self)

    def observe(self, observation: Observation, now: float) -> list[Effect]:
        began = time.perf_counter()
        effects = super().observe(observation, now)
        self.meter.observed(observation, time.perf_counter() - began)
        return effects

    def schedule_one(self, now: float) -> list[Effect]:
        began = time.perf_counter()
        effects = super().schedule_one(now)
        self.meter.called("schedule_one", time.perf_counter() - began)
        return effects

    def complete(self, ticket: Ticket, outcome: Outcome, now: float) -> list[Effect]:
        began = time.perf_counter()
        effects = super().complete(ticket, outcome, now)
        self.meter.called("complete", time.perf_counter() - began)
        return effects

    def advance(self, now: float) -> list[Effect]:
        began = time.perf_counter()
        effects = super().advance(now)
        self.meter.called("advance", time.perf_counter() - began)
        return effects
