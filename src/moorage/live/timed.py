"""TimedScheduler: a scheduler whose calls are timed for metrics; the core has no clock."""

import time
from typing import Any

from moorage.api.config import SchedulerConfiguration
from moorage.core.effects import Effect, Outcome, Ticket
from moorage.core.observations import Observation
from moorage.core.scheduler import Scheduler
from moorage.live.extenders import HttpExtenders
from moorage.metrics.meter import Meter


class TimedScheduler(Scheduler):
    """A scheduler that reports the duration of each call to a meter."""

    def __init__(
        self,
        configuration: SchedulerConfiguration,
        meter: Meter,
        *,
        seed: int = 0,
        extenders: HttpExtenders | None = None,
    ) -> None:
        calls: dict[str, Any] = {}
        if extenders is not None:
            calls = {"extenders": extenders.extenders, "at_once": extenders.at_once}
        super().__init__(configuration, seed=seed, journal=meter.journal, **calls)
        self.metrics = meter
        meter.attach(self)

    def observe(self, observation: Observation, now: float) -> list[Effect]:
        began = time.perf_counter()
        effects = super().observe(observation, now)
        self.metrics.observed(observation, time.perf_counter() - began)
        return effects

    def schedule_one(self, now: float) -> list[Effect]:
        began = time.perf_counter()
        effects = super().schedule_one(now)
        self.metrics.called("schedule_one", time.perf_counter() - began)
        return effects

    def complete(self, ticket: Ticket, outcome: Outcome, now: float) -> list[Effect]:
        began = time.perf_counter()
        effects = super().complete(ticket, outcome, now)
        self.metrics.called("complete", time.perf_counter() - began)
        return effects

    def advance(self, now: float) -> list[Effect]:
        began = time.perf_counter()
        effects = super().advance(now)
        self.metrics.called("advance", time.perf_counter() - began)
        return effects
