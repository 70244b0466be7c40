"""How long plugins take, measured around the calls of profiles and plugins.

The core does not know of it: a scheduler that is to be measured gets its profiles' and plugins'
methods wrapped, once, before its first pod. One that is not pays nothing.

Answers that are kept are not asked for again. So what is counted here are calls that were really
made; a point at which nothing had to be asked still counts, with the little time that it took.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from moorage.core.scheduler import Scheduler
from moorage.framework.answers import Filtered, PreFiltered
from moorage.framework.post_filter import PostFiltered
from moorage.framework.profile import Profile
from moorage.framework.sheet import Sheet
from moorage.framework.status import Code, Status
from moorage.metrics.facts import Clock
from moorage.metrics.families import Families
from moorage.metrics.tallies import Cell

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
        find, name = profile.sheets.of, profile.name
        lookups, rebuilds = self._families.sheets, self._families.combined
        points = SheetClocks(
            PointClock(self, "PreFilter", profile).around(Sheet.run_pre_filters),
            PointClock(self, "Filter", profile).around(Sheet.run_filters),
            PointClock(self, "Score", profile).around(Sheet.run_scores),
            lambda: rebuilds.add(name),
        )

        def sheet(template: Any) -> Any:
            self._is_sampled = self._chance() < SAMPLED
            found = find(template)
            lookups.add(name, "hit" if found.combined else "miss")
            return TimedSheet(found, points)

        profile.sheets.of = sheet  # type: ignore[method-assign]  # see the module

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

        def timed(*args: Any, **named: Any) -> Any:
            counts[key] = counts.get(key, 0) + 1
            if not self._is_sampled:
                return call(*args, **named)
            began = clock()
            status = ERROR
            try:
                answer = call(*args, **named)
                status = _status(answer)
                return answer
            finally:
                durations.observe(clock() - began, plugin, point, status)

        return timed


class PointClock:
    """How long one extension point of one profile takes."""

    __slots__ = ("_cells", "_clock", "_histogram", "_labels", "_point")

    def __init__(self, timing: Timing, point: str, profile: Profile) -> None:
        self._clock = timing.clock
        self._histogram = timing.families.point_duration
        self._point = point
        self._labels = (point, profile.name)
        self._cells: dict[str, Cell] = {}

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same call, which runs all plugins of the point, measured."""
        clock, ended = self._clock, self.ended
        # Always a success in kube-scheduler, too.
        status_of = _success if self._point == "PreEnqueue" else _status

        def timed(*args: Any, **named: Any) -> Any:
            began = clock()
            try:
                answer = call(*args, **named)
            except BaseException:
                ended(began, ERROR)
                raise
            ended(began, status_of(answer))
            return answer

        return timed

    def ended(self, began: float, status: str) -> None:
        """It took from then until now."""
        (self._cells.get(status) or self._cell(status)).observe(self._clock() - began)

    def _cell(self, status: str) -> Cell:
        point, profile = self._labels
        cell = self._cells[status] = self._histogram.cell(point, status, profile)
        return cell


class SheetClocks(NamedTuple):
    """What is measured of the sheets of one profile.

    Score takes in PreScore and NormalizeScore, which a sheet does not tell apart.
    """

    pre_filter: Callable[..., Any]
    filter: Callable[..., Any]
    score: Callable[..., Any]
    rebuilt: Callable[[], None]


class TimedSheet:
    """A sheet of which three calls are measured; all else goes through."""

    __slots__ = ("_clocks", "_sheet")

    def __init__(self, sheet: Any, clocks: SheetClocks) -> None:
        _set(self, "_sheet", sheet)
        _set(self, "_clocks", clocks)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sheet, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._sheet, name, value)

    def run_pre_filters(self, *args: Any) -> Any:
        return self._clocks.pre_filter(self._sheet, *args)

    def run_filters(self, *args: Any) -> Any:
        sheet, clocks = self._sheet, self._clocks
        before = sheet.combined
        answer = clocks.filter(sheet, *args)
        if sheet.combined != before:
            clocks.rebuilt()
        return answer

    def run_scores(self, *args: Any) -> Any:
        return self._clocks.score(self._sheet, *args)


_set = object.__setattr__


def _status(answer: Any) -> str:
    """The code of an answer, as Kubernetes spells it; what has none is a success."""
    of = _READERS.get(type(answer))
    return SUCCESS if of is None else of(answer)


def _success(_: Any) -> str:
    return SUCCESS


def _of_status(status: Status) -> str:
    return LABELS[status.code]


def _of_pair(pair: Any) -> str:
    return LABELS[pair[0].code] if pair and isinstance(pair[0], Status) else SUCCESS


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
