"""PluginMethod: the only way in which the framework runs a plugin's code.

An exception of a plugin becomes a `PluginError` that names the plugin, words the failure as
Kubernetes does, and says in which file and line of the plugin it was raised; so it fails one pod
and nothing else. The functions below call a method and check what it returned.

Whatever a plugin raises is its error, also `sys.exit` or a CancelledError: a scheduler that ends
leaves the pod to the next one, which then ends, too. Only KeyboardInterrupt ends the process.
"""

from collections import Counter
from collections.abc import Callable, Hashable
from functools import wraps
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, SupportsInt, TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage import plugin_reports
from moorage.api.pod import Pod
from moorage.api.selectors import SelectorError
from moorage.api.server_requests import PodRef, PodRequest, Request
from moorage.errors import MoorageError, PluginError, definition, describe, location, shown
from moorage.framework import points
from moorage.framework.points import Awaiting
from moorage.framework.status import (
    SUCCESS,
    Code,
    Mask,
    Narrowed,
    Scores,
    Status,
    Verdicts,
    error,
)
from moorage.nodes.groups import GroupKey

if TYPE_CHECKING:
    from moorage.framework.state import CycleState
    from moorage.framework.views.template import TemplateViews
    from moorage.nodes.groups import Groups
    from moorage.nodes.info import NodeInfo
    from moorage.nodes.rows import Rows


class CallMeter(Protocol):
    """Measures a profile (see `Profile.measure`): the calls of plugins and of extension points.

    Every `begin` is followed by one `end_...`; calls may be nested.
    """

    # Whether single plugin calls are measured at present; they are counted in any case. Then no
    # decision is repeated, because that calls no plugin.
    is_sampling: bool

    def cycle_started(self, views: "TemplateViews") -> None:
        """A scheduling cycle starts."""

    def begin(self) -> float:
        """A call starts; returns what `end_...` needs."""

    def end_method(self, method: "PluginMethod", began: float, result: Any) -> None:
        """A plugin returned, or raised: then the result is a PluginError."""

    def end_point(self, label: str, began: float, result: Any) -> None:
        """The same for all plugins of an extension point together."""

    def now(self) -> float:
        """The time, for `repeated`."""

    def repeated(self, pre_filter: float, filter_: float, score: float) -> None:
        """The results of three extension points were repeated; each started at its time."""


T = TypeVar("T")
AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


def measured(label: str) -> Callable[[AnyFunction], AnyFunction]:
    """Report the calls of a method to the `meter` of its object, if it has one, under a label."""

    def decorate(function: AnyFunction) -> AnyFunction:
        @wraps(function)
        def run(self: Any, *args: Any) -> Any:
            meter: CallMeter | None = self.meter
            if meter is None:
                return function(self, *args)
            began = meter.begin()
            try:
                result = function(self, *args)
            except BaseException as raised:
                meter.end_point(label, began, raised)
                raise
            meter.end_point(label, began, result)
            return result

        return run  # type: ignore[return-value]  # the same signature

    return decorate


class PluginMethod:
    """One method of one plugin.

    `method` is a name of the contract (`points.METHODS`), or `normalizer.summarize` and
    `normalizer.apply`.
    """

    __slots__ = ("_function", "calls", "meter", "method", "name", "plugin")

    def __init__(self, plugin: Any, method: str) -> None:
        self.plugin = plugin
        self.name: str = plugin.name
        self.method = method
        self.meter: CallMeter | None = None
        # Counted only if there is a meter.
        self.calls = 0
        self._function: Callable[..., Any] = attrgetter(method)(plugin)

    def __reduce__(self) -> tuple[Any, ...]:
        return PluginMethod, (self.plugin, self.method)

    def __repr__(self) -> str:
        return f"{self.name}.{self.method}"

    def call(self, *args: Any) -> Any:
        """Call the plugin; a method with a name is called in less than half the time."""
        if self.meter is not None:
            self.calls += 1
            if self.meter.is_sampling:
                return self._measured(self.meter, *args)
        try:
            return self._function(*args)
        except KeyboardInterrupt:
            raise
        except BaseException as raised:
            raise self._reported(raised) from raised

    def _measured(self, meter: CallMeter, *args: Any) -> Any:
        began = meter.begin()
        try:
            result = self._function(*args)
        except KeyboardInterrupt:
            raise
        except BaseException as raised:
            failure = self._reported(raised)
            meter.end_method(self, began, failure)
            raise failure from raised
        meter.end_method(self, began, result)
        return result

    def _reported(self, raised: BaseException) -> PluginError:
        """The error for an exception; observers get the exception itself."""
        if not isinstance(raised, DELIBERATE):
            plugin_reports.exception(self.name, raised)
        return self.failed(reason_of(raised))

    def failed(self, reason: str) -> PluginError:
        """The error for a failure of this method."""
        return PluginError(self.name, reason, self.error_text(reason))

    def returned(self, result: object, wanted: str) -> PluginError:
        """The error for a result that is not what the contract says."""
        where = definition(self._function)
        return self.failed(f"{self.method} returned {shown(result)}, which is not {wanted}{where}")

    def error_text(self, reason: str) -> str:
        """How Kubernetes words a failure at this point."""
        known = points.METHODS.get(self.method)
        wording = points.NORMALIZE_ERROR if known is None else known.error
        return wording.format(plugin=self.name, reason=reason)


def method_of(plugin: Any, method: str) -> PluginMethod | None:
    """A plugin's method; None if it has none of that name."""
    try:
        found = PluginMethod(plugin, method)
    except AttributeError:
        return None
    return found if callable(found._function) else None


# Exceptions that are raised on purpose: their text is complete.
DELIBERATE: tuple[type[BaseException], ...] = (MoorageError, SelectorError)


def guard(
    plugin: str,
    prefix: str,
    call: Callable[..., Any],
    *args: Any,
    deliberate: tuple[type[BaseException], ...] = DELIBERATE,
) -> Any:
    """Run other code of a plugin, such as its constructor; `prefix` begins the error's text."""
    try:
        return call(*args)
    except KeyboardInterrupt:
        raise
    except BaseException as raised:
        reason = reason_of(raised, deliberate)
        raise PluginError(plugin, reason, prefix + reason) from raised


def reason_of(
    raised: BaseException, deliberate: tuple[type[BaseException], ...] = DELIBERATE
) -> str:
    """An exception in one line, with its location unless it was raised on purpose."""
    return describe(raised) + ("" if isinstance(raised, deliberate) else location(raised))


class Loops:
    """How many nodes each plugin was called for one by one, for lack of a whole-cluster form."""

    SLOW = 1_000_000

    def __init__(self) -> None:
        self._nodes: Counter[tuple[str, str]] = Counter()
        # Plugins and points that reached the limit since the last `newly_slow`.
        self.new: list[tuple[str, str]] = []

    def add(self, plugin: str, point: str, nodes: int) -> None:
        """Count a loop over that many nodes."""
        before = self._nodes[plugin, point]
        self._nodes[plugin, point] = before + nodes
        if before < self.SLOW <= before + nodes:
            self.new.append((plugin, point))

    def newly_slow(self) -> list[tuple[str, str, int]]:
        """Plugins that reached the limit since the last call, with point and number of nodes."""
        new = [(*loop, self._nodes[loop]) for loop in self.new]
        self.new.clear()
        return new


# Filter and score


def filter_one(method: PluginMethod, state: "CycleState", pod: Pod, node: "NodeInfo") -> Status:
    """The status of one node; a failure is an error status for that node only."""
    try:
        status = method.call(state, pod, node)
    except PluginError as failure:
        return error(failure.reason, method.name)
    if not isinstance(status, Status):
        return error(method.returned(status, "a Status").reason, method.name)
    if status is SUCCESS or status.is_success or status.is_rejected:
        return status
    return error(status.message or f"returned {status.code.label}", method.name)


def filter_rows(method: PluginMethod, state: "CycleState", pod: Pod, rows: "Rows") -> Verdicts:
    """The verdicts of `filter_all`."""
    verdicts = method.call(state, pod, rows)
    if not isinstance(verdicts, Verdicts) or len(verdicts) != len(rows):
        raise method.failed("filter_all must return Verdicts with an entry per row")
    return verdicts


def filter_changes(
    method: PluginMethod, state: "CycleState", pod: Pod, since: Any
) -> tuple[Any, NDArray[np.intp] | None]:
    """Where a filter says that its verdicts may have changed since its last result."""
    returned = method.call(state, pod, since)
    try:
        since, rows = returned
        if rows is None:
            return since, None
        changed = np.asarray(rows, dtype=np.intp)
    except Exception as wrong:
        raise method.returned(returned, "a pair with an array of rows") from wrong
    if changed.ndim != 1 or (
        len(changed) and not (changed.min() >= 0 and changed.max() < state.table.capacity)
    ):
        raise method.returned(returned, "a pair with numbers of rows")
    return since, changed


def score_one(method: PluginMethod, state: "CycleState", pod: Pod, node: "NodeInfo") -> int:
    """The raw score of one node."""
    score = method.call(state, pod, node)
    if type(score) is int and LEAST <= score <= MOST:
        return score
    if isinstance(score, float) and 0 < score < 1:
        plugin_reports.warning(method.name, FRACTIONS)
    return _converted(method, _integer, score)


def score_rows(method: PluginMethod, state: "CycleState", pod: Pod, rows: "Rows") -> Scores:
    """The raw scores of `score_all`."""
    scores: Scores = method.call(state, pod, rows)
    if type(scores) is not np.ndarray or scores.dtype is not INT32:
        returned, active = scores, rows.active
        scores = _converted(method, lambda given: _integers(given, active), returned)
        if getattr(returned, "dtype", None) == np.float64 and not scores.any() and np.any(returned):
            plugin_reports.warning(method.name, FRACTIONS)
    if scores.shape != (len(rows),):
        raise method.failed("score_all must return an array with an entry per row")
    return scores


INT32 = np.dtype(np.int32)
FRACTIONS = "scores below 1 count as 0, because scores are whole numbers; use 0 to 100"


# The scores that there are: those of 64 bits.
LEAST, MOST = -(1 << 63), (1 << 63) - 1


def _integer(returned: Any) -> int:
    if isinstance(returned, str | bytes) or not isinstance(returned, SupportsInt):
        raise TypeError(f"a score has to be a whole number, is {shown(returned)}")
    score = int(returned)
    if LEAST <= score <= MOST:
        return score
    raise OverflowError(f"the score {shown(returned)} has more than 64 bits")


def _integers(returned: Any, active: Mask | None = None) -> Scores:
    """Scores as integers; those of rows that are not active have no meaning."""
    scores: NDArray[Any] = np.asarray(returned)
    kind = scores.dtype.kind
    if kind not in "biuf":
        raise TypeError(f"scores have to be numbers, is {shown(returned)}")
    if kind == "f" or scores.dtype == np.uint64:
        is_wrong = ~((scores >= LEAST) & (scores < -float(LEAST)))
        if is_wrong.any():
            wrong = scores[is_wrong if active is None else is_wrong & active]
            if wrong.size:
                raise OverflowError(f"the score {wrong.flat[0]} is no number of 64 bits")
            scores = np.where(is_wrong, 0, scores)
    # Half as wide is half the work, and wide enough.
    return scores if scores.dtype == np.int32 else scores.astype(np.int64, copy=False)


def _converted(method: PluginMethod, convert: Callable[[Any], T], returned: Any) -> T:
    """What a method returned, in the type that is needed."""
    try:
        return convert(returned)
    except Exception as wrong:
        raise method.failed(describe(wrong) + definition(method._function)) from wrong


def group_keys(method: PluginMethod, state: "CycleState", pod: Pod) -> tuple[GroupKey, ...] | None:
    """What rows have to agree in to be alike for a plugin; None if it does not tell."""
    keys = method.call(state, pod)
    if keys is None:
        return None
    if isinstance(keys, tuple) and all(isinstance(key, GroupKey) for key in keys):
        return keys
    raise method.returned(keys, "a tuple of GroupKeys")


def filter_groups(
    method: PluginMethod, state: "CycleState", pod: Pod, groups: "Groups"
) -> list[bool]:
    """Which groups fit."""
    fits = method.call(state, pod, groups)
    # To collect the types is quicker than to look at each.
    if isinstance(fits, list) and len(fits) == len(groups.numbers) and {*map(type, fits)} <= BOOLS:
        return fits
    raise method.returned(fits, "a list with True or False per group")


def score_groups(
    method: PluginMethod, state: "CycleState", pod: Pod, groups: "Groups"
) -> list[int] | None:
    """The raw scores of groups; None if the plugin skips the pod."""
    scores = method.call(state, pod, groups)
    if scores is None:
        return None
    if (
        isinstance(scores, list)
        and len(scores) == len(groups.numbers)
        and {*map(type, scores)} <= INTS
    ):
        return scores
    raise method.returned(scores, "a list with an integer per group")


BOOLS, INTS = frozenset((bool, np.bool_)), frozenset((int, np.int64))


def normalize_score(
    method: PluginMethod, state: "CycleState", pod: Pod, feasible: Scores
) -> Scores:
    """The normalised scores of `normalize_score`."""

    def converted(returned: Any) -> Scores:
        return np.broadcast_to(_integers(returned), feasible.shape).astype(np.int64, copy=False)

    return _converted(method, converted, method.call(state, pod, feasible))


def normalized(method: PluginMethod, raw: Any, *args: Any) -> Any:
    """One raw score or an array of them, normalised to integers, by a `normalizer.apply`."""
    returned = method.call(raw, *args)
    if isinstance(raw, int):
        if type(returned) is int and LEAST <= returned <= MOST:
            return returned
        return _converted(method, _integer, returned)
    scores = _converted(method, _integers, returned).astype(np.int64, copy=False)
    if scores.shape != raw.shape:
        raise method.failed(f"a normalizer must return {len(raw)} scores for as many")
    return scores


def skip_key(method: PluginMethod, state: "CycleState", pod: Pod) -> Hashable:
    """The key while which a plugin would skip the pod again; None if it raised."""
    try:
        return hashable(method, method.call(state, pod))
    except PluginError:
        return None


def hashable(method: PluginMethod, key: Any) -> Hashable:
    """A value that a plugin returned as a key of what is cached."""
    try:
        hash(key)
    except Exception as wrong:
        raise method.returned(key, "hashable") from wrong
    return key  # type: ignore[no-any-return]  # as was found out


# For the next two a caller calls the method itself, and checks only what is not a constant.


def check_pre_filtered(method: PluginMethod, result: Any) -> Status | Narrowed:
    """The result of `pre_filter`; raises if it is none."""
    if isinstance(result, Status | Narrowed):
        return result
    raise method.returned(result, "a Status")


def skips_score(method: PluginMethod, status: Any) -> bool:
    """Whether `pre_score` skips the pod; raises if its result is neither success nor SKIP."""
    if not isinstance(status, Status):
        raise method.returned(status, "a Status")
    if status.code not in (Code.SUCCESS, Code.SKIP):
        raise method.failed(status.message)
    return status.code is Code.SKIP


# The points of the binding cycle


def result_of(method: PluginMethod, allowed: type[T], *args: Any) -> Status | T:
    """What a method returned: a status with the plugin's name, or a value of the allowed type.

    A failure is an error status.
    """
    try:
        result = method.call(*args)
    except PluginError as failure:
        return error(str(failure), method.name)
    if isinstance(result, allowed) and not isinstance(result, Status):
        return result
    return status_of(method, result)


def status_of(method: PluginMethod, status: Any) -> Status:
    """The status with the plugin's name; an error if the point does not allow its code."""
    if not isinstance(status, Status):
        return _not_a_status(method, status)
    if status is SUCCESS or status.is_success or status.is_rejected:
        return status.by(method.name)
    if status.code in points.METHODS[method.method].codes:
        return status.by(method.name)
    text = status.message or f"returned {status.code.label}"
    return error(method.error_text(text), method.name)


def _not_a_status(method: PluginMethod, result: Any) -> Status:
    return error(str(method.returned(result, "a Status")), method.name)


def pre_bind(method: PluginMethod, *args: Any) -> Status | Awaiting | tuple[Request, ...]:
    """The result of `pre_bind` or `pre_bind_next`; a single request counts as a tuple of one."""
    result: Any = result_of(method, object, *args)
    if isinstance(result, PodRequest):
        result = (result,)
    if isinstance(result, tuple):
        is_valid = are_requests(result)
    else:
        awaits = isinstance(result, Awaiting) and points.follows_up(method.plugin)
        is_valid = awaits or isinstance(result, Status)
    return result if is_valid else _not_a_status(method, result)


def are_requests(values: object) -> bool:
    """Whether this is a tuple of requests to the API server."""
    return isinstance(values, tuple) and all(
        isinstance(each, Request) and isinstance(each.pod, PodRef) for each in values
    )
