"""How long plugins take, measured around the calls of profiles and plugins.

The core does not know of it: a scheduler that is to be measured gets its profiles' and plugins'
methods wrapped, once, before its first pod. One that is not pays nothing.

Answers that are kept are not asked for again. So what is counted here are calls that were really
made; a point at which nothing had to be asked still counts, with the little time that it took.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from moorage.core.scheduler import Scheduler
from moorage.framework.answers import Filtered, PreFiltered
from moorage.framework.post_filter import PostFiltered
from moorage.framework.profile import Profile
from moorage.framework.sheet import Sheet
from moorage.framework.status import Code, Status
from moorage.metrics.facts import Clock
from moorage.metrics.families import Families

# Method of a profile -> extension point, and what a plugin has that takes part in it.
PROFILE_POINTS = {
    "run_pre_enqueue": ("PreEnqueue", "pre_enqueue"),
    "run_post_filters": ("PostFilter", "post_filter"),
    "run_reserve": ("Reserve", "reserve"),
    "run_unreserve": ("Unreserve", "unreserve"),
    "run_permit": ("Permit", "permit"),
    "run_pre_flight": ("PreBindPreFlight", "pre_bind_pre_flight"),
    "run_pre_bind": ("PreBind", "pre_bind"),
    "run_pre_bind_next": ("PreBind", "pre_bind_next"),
    "run_bind": ("Bind", "bind"),
    "run_post_bind": ("PostBind", "post_bind"),
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
    "pre_bind_next": "PreBind",
    "bind": "Bind",
    "post_bind": "PostBind",
}
EVALUATED = ("PreFilter", "Filter", "PreScore", "Score")
SAMPLED = 0.1

LABELS = {code: code.label for code in Code}
SUCCESS, ERROR = LABELS[Code.SUCCESS], LABELS[Code.ERROR]
_OK = Code.SUCCESS

AnySheet = TypeVar("AnySheet", bound=Sheet)


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
            plugins = profile.plugins()
            for method, (point, plugin_method) in PROFILE_POINTS.items():
                # Where nobody takes part there is nothing to measure.
                if any(hasattr(plugin, plugin_method) for plugin in plugins):
                    clock = PointClock(self, point, profile)
                    setattr(profile, method, clock.around(getattr(profile, method)))
            self._attach_sheets(profile)
            for plugin in plugins:
                self._attach_plugin(plugin, profile.name)

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def families(self) -> Families:
        return self._families

    def _attach_sheets(self, profile: Profile) -> None:
        sheets, name = profile.sheets, profile.name
        find, lookups, chance = sheets.of, self._families.sheets, self._chance
        sheets.sheet_type = _measured(self, profile, sheets.sheet_type)
        sheets.newcomers_type = _measured(self, profile, sheets.newcomers_type)

        def sheet(template: Any) -> Any:
            self._is_sampled = chance() < SAMPLED
            found = find(template)
            lookups.add(name, "miss" if found.is_new else "hit")
            return found

        sheets.of = sheet  # type: ignore[method-assign]  # see the module

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
        durations, clock = self._families.plugin_duration, self._clock
        counts = self._families.plugin_evaluation.counts if point in EVALUATED else {}
        key = (plugin, point, profile)

        def timed(*args: Any) -> Any:
            counts[key] = counts.get(key, 0) + 1
            if not self._is_sampled:
                return call(*args)
            began = clock()
            status = ERROR
            try:
                answer = call(*args)
                status = _status(answer)
                return answer
            finally:
                durations.observe(clock() - began, plugin, point, status)

        return timed


class PointClock:
    """How long one extension point of one profile takes."""

    def __init__(self, timing: Timing, point: str, profile: Profile) -> None:
        self._clock = timing.clock
        self._histogram = timing.families.point_duration
        self._point = point
        self._labels = (point, profile.name)
        # Who takes in durations, by status.
        self._takers: dict[str, Callable[[float], None]] = {}

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same call, which runs all plugins of the point, measured."""
        clock, takers = self._clock, self._takers
        # Always a success in kube-scheduler, too.
        readers = {} if self._point == "PreEnqueue" else _READERS

        def timed(*args: Any) -> Any:
            began = clock()
            try:
                answer = call(*args)
            except BaseException:
                self._taker(ERROR)(clock() - began)
                raise
            took = clock() - began
            read = readers.get(type(answer))
            status = SUCCESS if read is None else read(answer)
            (takers.get(status) or self._taker(status))(took)
            return answer

        return timed

    def _taker(self, status: str) -> Callable[[float], None]:
        point, profile = self._labels
        taker = self._takers[status] = self._histogram.cell(point, status, profile).observe
        return taker


def _measured(timing: Timing, profile: Profile, kind: type[AnySheet]) -> type[AnySheet]:
    """Sheets of which three calls are measured.

    Score takes in PreScore and NormalizeScore, which a sheet does not tell apart.
    """
    filtering = PointClock(timing, "Filter", profile).around(kind.run_filters)
    rebuilds, name = timing.families.combined, profile.name

    def run_filters(sheet: Sheet, *args: Any) -> Any:
        before = sheet.combined
        answer = filtering(sheet, *args)
        if sheet.combined != before:
            rebuilds.add(name)
        return answer

    methods = {
        "run_pre_filters": PointClock(timing, "PreFilter", profile).around(kind.run_pre_filters),
        "run_filters": run_filters,
        "run_scores": PointClock(timing, "Score", profile).around(kind.run_scores),
    }
    return type(f"Measured{kind.__name__}", (kind,), methods)


def _status(answer: Any) -> str:
    """The code of an answer, as Kubernetes spells it; what has none is a success."""
    of = _READERS.get(type(answer))
    return SUCCESS if of is None else of(answer)


def _of_status(status: Status) -> str:
    code = status.code
    return SUCCESS if code is _OK else LABELS[code]  # To look up an Enum takes a while.


def _of_pair(pair: Any) -> str:
    return _of_status(pair[0]) if pair and isinstance(pair[0], Status) else SUCCESS


def _of_pre_filtered(answer: PreFiltered) -> str:
    return SUCCESS if answer.rejected is None else LABELS[answer.rejected.code]


def _of_filtered(answer: Filtered) -> str:
    return SUCCESS if answer.count else LABELS[Code.UNSCHEDULABLE]


_READERS: dict[type[Any], Callable[[Any], str]] = {
    Status: _of_status,
    tuple: _of_pair,
    PostFiltered: lambda answer: LABELS[answer.status.code],
    PreFiltered: _of_pre_filtered,
    Filtered: _of_filtered,
}
