"""Stopwatches: where a scheduler's time goes, per plugin and per stage (`simulate --profile`).

Every call is measured, and of nested calls each counts its own time only, so that all parts add up
to the whole:

    stage      what the scheduler does itself: its verbs, the decision, the points of a profile
    plugin     what plugins do, by method: `filter_all` once for all nodes, `filter` once for each
"""

from dataclasses import dataclass
from typing import Any

from moorage.core.cycle import DECIDE
from moorage.framework.invoke import PluginMethod
from moorage.framework.views.template import TemplateViews
from moorage.metrics.facts import Clock

# What is measured, and its name in the table that is printed.
STAGES = {
    "observe": "taking in news",
    "schedule_one": "queue, and placing pods",
    "complete": "binding",
    "advance": "what is due",
    DECIDE: "decision",
    "PreFilter": "before the nodes",
    "Filter": "which nodes fit",
    "Score": "how good they are",
    "PostFilter": "after a refusal",
}


@dataclass(slots=True)
class Spent:
    """Calls of something, and the seconds that it took of its own."""

    calls: int = 0
    seconds: float = 0.0


class Stopwatches:
    """A CallMeter for a scheduler, its cycle and all its profiles."""

    is_sampling = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.stages = {stage: Spent() for stage in STAGES.values()}
        # By plugin and method.
        self.plugins: dict[tuple[str, str], Spent] = {}
        # What the nested calls took, for each call in progress.
        self._nested: list[float] = []

    def cycle_started(self, views: TemplateViews) -> None:
        """Nothing to do."""

    def begin(self) -> float:
        """A call starts."""
        self._nested.append(0.0)
        return self._clock()

    def end_method(self, method: PluginMethod, began: float, result: Any) -> None:
        """A plugin call ended."""
        key = method.name, method.method
        self._end(self.plugins.setdefault(key, Spent()), began)

    def end_point(self, label: str, began: float, result: Any) -> None:
        """A stage ended; a point that is no stage counts as part of the stage around it."""
        stage = STAGES.get(label)
        if stage is None:
            nested = self._nested.pop()
            if self._nested:
                self._nested[-1] += nested
        else:
            self._end(self.stages[stage], began)

    def now(self) -> float:
        return self._clock()

    def repeated(self, pre_filter: float, filter_: float, score: float) -> None:
        """Not called, because every plugin call is measured."""

    def _end(self, spent: Spent, began: float) -> None:
        took = self._clock() - began
        spent.calls += 1
        spent.seconds += took - self._nested.pop()
        if self._nested:
            self._nested[-1] += took
