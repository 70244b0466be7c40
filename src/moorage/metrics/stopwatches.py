"""Stopwatches: where a scheduler's time goes, per plugin and per stage, for somebody who waits.

Methods of one scheduler and of its plugins are wrapped, as `timing` does it, but every call is
measured, and of nested calls each has its own time only. So all parts add up to the whole:

    stage      what the machine does by itself: its verbs, the decision, the points of a profile
    plugin     what plugins do, by method: `filter_all` once for all nodes, `filter` once for each
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moorage.core.scheduler import Scheduler
from moorage.framework.profile import Profile
from moorage.metrics.facts import Clock
from moorage.metrics.timing import PLUGIN_POINTS

# Methods of the scheduler, and what they are called in a table for people.
VERBS = {
    "observe": "taking in news",
    "schedule_one": "queue, and placing pods",
    "complete": "binding",
    "advance": "what is due",
}
SHEET_POINTS = {
    "run_pre_filters": "before the nodes",
    "run_filters": "which nodes fit",
    "run_scores": "how good they are",
}
DECISION = "decision"
PREEMPTION = "after a refusal"


@dataclass(slots=True)
class Spent:
    """Calls of something, and the seconds that it took of its own."""

    calls: int = 0
    seconds: float = 0.0


class Stopwatches:
    """See the module."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.stages: dict[str, Spent] = {}
        # By plugin and method.
        self.plugins: dict[tuple[str, str], Spent] = {}
        # What the calls within took, for each call that is under way.
        self._within: list[float] = []

    def attach(self, scheduler: Scheduler) -> None:
        """Measure a scheduler from now on."""
        for method, stage in VERBS.items():
            self._wrap(scheduler, method, self.stages.setdefault(stage, Spent()))
        self._wrap(scheduler.cycle, "decide", self.stages.setdefault(DECISION, Spent()))
        for profile in scheduler.profiles.values():
            self._attach_profile(profile)

    def _attach_profile(self, profile: Profile) -> None:
        self._wrap(profile, "run_post_filters", self.stages.setdefault(PREEMPTION, Spent()))
        find = profile.sheets.of

        def sheet(template: Any) -> Any:
            found = find(template)
            for method, stage in SHEET_POINTS.items():
                if method not in vars(found):
                    self._wrap(found, method, self.stages.setdefault(stage, Spent()))
            return found

        profile.sheets.of = sheet  # type: ignore[method-assign]  # see the module
        for plugin in profile.plugins():
            for method in PLUGIN_POINTS:
                if callable(getattr(plugin, method, None)):
                    spent = self.plugins.setdefault((plugin.name, method), Spent())
                    self._wrap(plugin, method, spent)

    def _wrap(self, owner: Any, method: str, spent: Spent) -> None:
        try:
            setattr(owner, method, self._timed(getattr(owner, method), spent))
        except AttributeError:
            return  # It has slots, and no room for this; its time is that of whoever calls it.

    def _timed(self, call: Callable[..., Any], spent: Spent) -> Callable[..., Any]:
        clock, within = self._clock, self._within

        def timed(*args: Any, **named: Any) -> Any:
            within.append(0.0)
            began = clock()
            try:
                return call(*args, **named)
            finally:
                took = clock() - began
                spent.calls += 1
                spent.seconds += took - within.pop()
                if within:
                    within[-1] += took

        return timed
