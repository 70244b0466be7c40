"""How long plugins and extension points take: the CallMeter of a profile.

Cached results are not computed again, so the calls that are counted here are those that were made;
a point at which no plugin had to be called still counts, with the little time that it took. Score
includes PreScore and NormalizeScore.
"""

import math
from collections.abc import Callable
from typing import Any

from moorage.framework.invoke import PluginMethod
from moorage.framework.points import METHODS, POINTS
from moorage.framework.post_filter import PostFiltered
from moorage.framework.profile import Profile
from moorage.framework.status import Code, Status
from moorage.framework.views.feasible import FeasibleRows, FeasibleView
from moorage.framework.views.pre_filters import PreFiltered
from moorage.framework.views.template import TemplateViews
from moorage.metrics.facts import Clock
from moorage.metrics.families import Families

# The points whose plugin calls Kubernetes counts, and the methods that count as one.
EVALUATED = {
    method: METHODS[method].label
    for point in ("pre_filter", "filter", "pre_score", "score")
    for method in POINTS[point]
}
# Measured for every pod, whatever the plugins are.
ALWAYS_MEASURED = ("PreFilter", "Filter", "Score")
# The share of cycles in which single plugin calls are measured, as in Kubernetes; and the shortest
# time between two, because such a cycle costs several times as much as a repeated decision.
SAMPLED = 0.1
SAMPLE_SECONDS = 0.1

LABELS = {code: code.label for code in Code}
SUCCESS, ERROR = LABELS[Code.SUCCESS], LABELS[Code.ERROR]
_OK = Code.SUCCESS


class ProfileTiming:
    """Measures one profile; `chance` returns numbers from 0 to 1, and is not the core's Random."""

    def __init__(
        self, profile: Profile, families: Families, clock: Clock, chance: Callable[[], float]
    ) -> None:
        self.is_sampling = False
        # A call starts.
        self.begin = self.now = clock
        self._profile = profile
        self._families = families
        self._chance = chance
        self._sample_at = -math.inf
        self._views: TemplateViews | None = None
        self._rebuilds = 0
        # By point and status: where durations go. A point without plugins is not measured.
        names = [name for name in METHODS if any(hasattr(p, name) for p in profile.plugins())]
        measured = {*ALWAYS_MEASURED, *(METHODS[name].label for name in names)}
        self._cells: dict[str, dict[str, Callable[[float], None]]] = {
            label: {} for label in sorted(measured) if label
        }
        self._repeated: list[Callable[[float], None]] = []

    def cycle_started(self, views: TemplateViews) -> None:
        """Count the cache lookup, and draw whether plugins are measured in this cycle."""
        self.is_sampling = self._chance() < SAMPLED and (now := self.now()) >= self._sample_at
        if self.is_sampling:
            self._sample_at = now + SAMPLE_SECONDS
        self._views, self._rebuilds = views, views.rebuilds
        self._families.view_lookups.add(self._profile.name, "miss" if views.is_new else "hit")

    def end_method(self, method: PluginMethod, began: float, result: Any) -> None:
        """Take in the duration of one plugin call."""
        known = METHODS.get(method.method)
        if known is not None and known.label:
            took = self.begin() - began
            self._families.plugin_duration.observe(took, method.name, known.label, _status(result))

    def end_point(self, label: str, began: float, result: Any) -> None:
        """Take in the duration of an extension point."""
        took = self.begin() - began
        cells = self._cells.get(label)
        if cells is None:
            return
        # Always a success in kube-scheduler, too.
        status = SUCCESS if label == "PreEnqueue" else _status(result)
        observe = cells.get(status)
        if observe is None:
            cell = self._families.point_duration.cell(label, status, self._profile.name)
            observe = cells[status] = cell.observe
        observe(took)
        if label == "Filter" and self._views is not None and self._views.rebuilds != self._rebuilds:
            self._families.rebuilds.add(self._profile.name)

    def repeated(self, pre_filter: float, filter_: float, score: float) -> None:
        """Take in the durations of three extension points at which no plugin was called."""
        ended = self.now()
        if not self._repeated:
            cell, name = self._families.point_duration.cell, self._profile.name
            self._repeated = [cell(label, SUCCESS, name).observe for label in ALWAYS_MEASURED]
        of_pre_filter, of_filter, of_score = self._repeated
        of_pre_filter(filter_ - pre_filter)
        of_filter(score - filter_)
        of_score(ended - score)

    def count_evaluations(self) -> None:
        """Move the number of plugin calls from the methods to their counter."""
        for method in self._profile.called_methods():
            label = EVALUATED.get(method.method)
            if label is not None and method.calls:
                by = method.calls
                self._families.plugin_evaluation.add(method.name, label, self._profile.name, by=by)
            method.calls = 0


def _status(result: Any) -> str:
    """The code of a result, as Kubernetes spells it; success for what has none."""
    read = _READERS.get(type(result))
    if read is None:
        return ERROR if isinstance(result, BaseException) else SUCCESS
    return read(result)


def _of_status(status: Status) -> str:
    code = status.code
    return SUCCESS if code is _OK else LABELS[code]  # To look up an Enum takes a while.


def _of_pair(pair: Any) -> str:
    return _of_status(pair[0]) if pair and isinstance(pair[0], Status) else SUCCESS


_READERS: dict[type[Any], Callable[[Any], str]] = {
    Status: _of_status,
    tuple: _of_pair,
    PostFiltered: lambda result: LABELS[result.status.code],
    PreFiltered: lambda result: LABELS[result.rejected.code] if result.rejected else SUCCESS,
    **dict.fromkeys(
        (FeasibleRows, FeasibleView),
        lambda result: SUCCESS if result.count else LABELS[Code.UNSCHEDULABLE],
    ),
}
