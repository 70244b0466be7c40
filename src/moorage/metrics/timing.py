"""How long plugins take, measured around the calls of profiles and plugins.

The core does not know of it: a scheduler that is to be measured gets its profiles' and plugins'
methods wrapped, once, before its first pod. One that is not pays nothing.

Answers that are kept are not asked for again. So what is counted here are calls that were really
made; a point at which nothing had to be asked still counts, with the little time that it took.
"""

from collections.abc import Callable
from typing import Any

from moorage.core.scheduler import Scheduler
from moorage.framework.post_filter import PostFiltered
from moorage.framework.profile import Profile
from moorage.framework.status import Code, Status
from moorage.metrics.facts import Clock
from moorage.metrics.families import Families

# Method of a profile -> extension point.
PROFILE_POINTS = {
    "run_pre_enqueue": "PreEnqueue",
    "run_post_filters": "PostFilter",
    "run_reserve": "Reserve",
    "run_unreserve": "Unreserve",
    "run_permit": "Permit",
    "run_pre_flight": "PreBindPreFlight",
    "run_pre_bind": "PreBind",
    "run_bind": "Bind",
    "run_post_bind": "PostBind",
}
# Method of a plugin -> extension point.
PLUGIN_POINTS = {
    "pre_enqueue": "PreEnqueue",
    "pre_filter": "PreFilter",
    "filter": "Filter",
    "filter_all": "Filter",
    "add_pod": "PreFilterExtensionAddPod",
    "remove_pod": "PreFilterExtensionRemovePod",
    "post_filter": "PostFilter",
    "pre_score": "PreScore",
    "score": "Score",
    "score_all": "Score",
    "normalize_score": "ScoreExtensionNormalize",
    "reserve": "Reserve",
    "unreserve": "Unreserve",
    "permit": "Permit",
    "pre_bind_pre_flight": "PreBindPreFlight",
    "pre_bind": "PreBind",
    "bind": "Bind",
    "post_bind": "PostBind",
}
EVALUATED = ("PreFilter", "Filter", "PreScore", "Score")
SAMPLED = 0.1

SUCCESS, ERROR = Code.SUCCESS.label, Code.ERROR.label


class Timing:
    """Measures a scheduler; `chance` returns numbers from 0 to 1, and none of the core's."""

    def __init__(self, families: Families, clock: Clock, chance: Callable[[], float]) -> None:
        self._families = families
        self._clock = clock
        self._chance = chance
        # Whether single plugins are measured in this cycle.
        self._is_sampled = False

    def attach(self, scheduler: Scheduler) -> None:
        """Measure a scheduler from now on."""
        for profile in scheduler.profiles.values():
            for method, point in PROFILE_POINTS.items():
                timed = self._timed_point(getattr(profile, method), point, profile.name)
                setattr(profile, method, timed)
            self._attach_sheets(profile)
            for plugin in profile.plugins():
                self._attach_plugin(plugin, profile.name)

    def _attach_sheets(self, profile: Profile) -> None:
        find, name = profile.sheet, profile.name

        def sheet(template: Any) -> Any:
            self._is_sampled = self._chance() < SAMPLED
            found = find(template)
            self._families.sheets.add(name, "hit" if found.combined else "miss")
            return TimedSheet(found, self, name)

        profile.sheet = sheet  # type: ignore[method-assign]  # see the module

    def _timed_point(self, call: Callable[..., Any], point: str, profile: str) -> Any:
        def timed(*args: Any, **named: Any) -> Any:
            return self.point(call, point, profile, *args, **named)

        return timed

    def point(
        self, call: Callable[..., Any], point: str, profile: str, *args: Any, **named: Any
    ) -> Any:
        """Make a call that runs all plugins of a point."""
        began = self._clock()
        status = ERROR
        try:
            answer = call(*args, **named)
            status = SUCCESS if point == "PreEnqueue" else _status(answer)
            return answer
        finally:
            spent = self._clock() - began
            self._families.point_duration.observe(spent, point, status, profile)

    def combined(self, profile: str) -> None:
        """All verdicts for one kind of pod had to be combined anew."""
        self._families.combined.add(profile)

    def _attach_plugin(self, plugin: Any, profile: str) -> None:
        for method, point in PLUGIN_POINTS.items():
            call = getattr(plugin, method, None)
            if callable(call):
                try:
                    setattr(plugin, method, self._timed_plugin(call, plugin.name, point, profile))
                except AttributeError:
                    return  # It has slots, and no room for this.

    def _timed_plugin(
        self, call: Callable[..., Any], plugin: str, point: str, profile: str
    ) -> Callable[..., Any]:
        evaluation = self._families.plugin_evaluation if point in EVALUATED else None

        def timed(*args: Any, **named: Any) -> Any:
            if evaluation is not None:
                evaluation.add(plugin, point, profile)
            if not self._is_sampled:
                return call(*args, **named)
            began = self._clock()
            status = ERROR
            try:
                answer = call(*args, **named)
                status = _status(answer)
                return answer
            finally:
                spent = self._clock() - began
                self._families.plugin_duration.observe(spent, plugin, point, status)

        return timed


class TimedSheet:
    """A sheet of which three calls are measured; all else goes through.

    Score takes in PreScore and NormalizeScore, which a sheet does not tell apart.
    """

    __slots__ = ("_profile", "_sheet", "_timing")

    def __init__(self, sheet: Any, timing: Timing, profile: str) -> None:
        object.__setattr__(self, "_sheet", sheet)
        object.__setattr__(self, "_timing", timing)
        object.__setattr__(self, "_profile", profile)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sheet, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._sheet, name, value)

    def run_pre_filters(self, *args: Any) -> Any:
        return self._timing.point(self._sheet.run_pre_filters, "PreFilter", self._profile, *args)

    def run_filters(self, *args: Any) -> Any:
        before = self._sheet.combined
        answer = self._timing.point(self._sheet.run_filters, "Filter", self._profile, *args)
        if self._sheet.combined != before:
            self._timing.combined(self._profile)
        return answer

    def run_scores(self, *args: Any) -> Any:
        return self._timing.point(self._sheet.run_scores, "Score", self._profile, *args)


def _status(answer: Any) -> str:
    """The code of an answer, as Kubernetes spells it; what has none is a success."""
    match answer:
        case Status(code=code):
            return code.label
        case PostFiltered(status=status):
            return status.code.label
        case (Status(code=code), *_):
            return code.label
    rejected = getattr(answer, "rejected", None)  # PreFiltered
    if isinstance(rejected, Status):
        return rejected.code.label
    fits = getattr(answer, "fits", None)  # Filtered
    if fits is not None and not fits.any():
        return Code.UNSCHEDULABLE.label
    return SUCCESS
