"""Calls into a plugin's filter and score, in whichever form it has.

A plugin that has only a per-node form gets a loop around it; how many nodes were asked one by one
is counted, because that is what makes a scheduler slow. An exception becomes a PluginError that
names the plugin, so that it costs its own pod only.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.errors import PLUGIN_EXCEPTIONS, PluginError
from moorage.framework.state import CycleState
from moorage.framework.status import SUCCESS, ByKind, Code, FewRows, Scores, Status, Verdicts, error
from moorage.nodes.info import NodeInfo
from moorage.nodes.table import Rows

# Up to so many rows the per-node form is cheaper than starting up array operations.
FEW = 6


class Loops:
    """How many nodes each plugin was asked about one by one, for lack of a whole-cluster form."""

    SLOW = 1_000_000

    def __init__(self) -> None:
        self._asked: Counter[tuple[str, str]] = Counter()
        self._told: set[tuple[str, str]] = set()
        # Whether a plugin passed the mark since somebody asked.
        self.has_news = False

    def add(self, plugin: str, point: str, nodes: int) -> None:
        """Note a loop over that many nodes."""
        self._asked[plugin, point] += nodes
        if self._asked[plugin, point] >= self.SLOW and (plugin, point) not in self._told:
            self.has_news = True

    def newly_slow(self) -> list[tuple[str, str, int]]:
        """Plugins that passed the mark since the last call."""
        new = [
            (*who, asked)
            for who, asked in self._asked.items()
            if asked >= self.SLOW and who not in self._told
        ]
        self._told.update((plugin, point) for plugin, point, _ in new)
        self.has_news = False
        return new


class Book:
    """Statuses under small negative numbers, for verdicts that were not given as codes."""

    __slots__ = ("_codes", "_statuses", "erred")

    def __init__(self) -> None:
        self.erred = False
        self._codes: dict[Status, int] = {}
        self._statuses: list[Status] = []

    def code(self, status: Status) -> int:
        """The number of a status; 0 for success."""
        if status is SUCCESS or status.code is Code.SUCCESS:
            return 0
        code = self._codes.get(status)
        if code is None:
            self._statuses.append(status)
            self.erred = self.erred or not status.is_rejected
            code = self._codes[status] = -len(self._statuses)
        return code

    def status(self, code: int) -> Status:
        """The status under a number."""
        return self._statuses[-code - 1]


def filter_one(plugin: Any, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
    """A plugin's verdict on one node; trouble comes back as a status, for that node only."""
    try:
        status = plugin.filter(state, pod, node)
    except PLUGIN_EXCEPTIONS as trouble:  # Fails this pod only.
        return error(describe(trouble), plugin.name)
    if status is SUCCESS:
        return status
    if not isinstance(status, Status):
        return error(f"filter returned {status!r}, which is not a Status", plugin.name)
    if status.is_success or status.is_rejected:
        return status
    return error(status.message or f"returned {status.code.label}", plugin.name)


def filter_trouble(plugin: Any, text: str) -> str:
    """How Kubernetes words it when a filter fails."""
    return f'running "{plugin.name}" filter plugin: {text}'


def score_trouble(plugin: Any, text: str) -> str:
    """How Kubernetes words it when a score fails."""
    return f'running Score plugins: plugin "{plugin.name}" failed with: {text}'


def filter_rows(plugin: Any, state: CycleState, pod: Pod, rows: Rows) -> Verdicts:
    """A plugin's verdicts in its whole-cluster form."""
    try:
        verdicts = plugin.filter_all(state, pod, rows)
    except PLUGIN_EXCEPTIONS as trouble:  # As above.
        text = filter_trouble(plugin, describe(trouble))
        raise PluginError(plugin.name, text) from trouble
    if not isinstance(verdicts, Verdicts) or len(verdicts) != len(rows):
        text = filter_trouble(plugin, "filter_all must return Verdicts with an entry per row")
        raise PluginError(plugin.name, text)
    return verdicts


def filter_news(
    plugin: Any, state: CycleState, pod: Pod, told: Any
) -> tuple[Any, NDArray[np.intp] | None]:
    """Where a plugin says that its verdicts may have changed since it told that."""
    try:
        told, rows = plugin.filter_news(state, pod, told)
        return told, None if rows is None else np.asarray(rows, dtype=np.intp)
    except PLUGIN_EXCEPTIONS as trouble:  # As above.
        text = filter_trouble(plugin, describe(trouble))
        raise PluginError(plugin.name, text) from trouble


def score_one(plugin: Any, state: CycleState, pod: Pod, node: NodeInfo) -> int:
    """A plugin's raw score for one node."""
    try:
        return int(plugin.score(state, pod, node))
    except PLUGIN_EXCEPTIONS as trouble:  # As above.
        raise PluginError(plugin.name, score_trouble(plugin, describe(trouble))) from trouble


def score_rows(plugin: Any, state: CycleState, pod: Pod, rows: Rows) -> Scores:
    """A plugin's raw scores in its whole-cluster form."""
    try:
        scores: Scores = np.asarray(plugin.score_all(state, pod, rows))
        if scores.dtype != np.int32:  # Half as wide is half the work, and wide enough.
            scores = scores.astype(np.int64, copy=False)
    except PLUGIN_EXCEPTIONS as trouble:  # As above.
        raise PluginError(plugin.name, score_trouble(plugin, describe(trouble))) from trouble
    if scores.shape != (len(rows),):
        text = score_trouble(plugin, "score_all must return an array with an entry per row")
        raise PluginError(plugin.name, text)
    return scores


def score_briefly(plugin: Any, state: CycleState, pod: Pod) -> ByKind | FewRows | None:
    """A plugin's raw scores in few words, if it finds any."""
    try:
        found: ByKind | FewRows | None = plugin.score_briefly(state, pod)
    except PLUGIN_EXCEPTIONS as trouble:  # As above.
        raise PluginError(plugin.name, score_trouble(plugin, describe(trouble))) from trouble
    return found


def filter_loop(
    plugin: Any, state: CycleState, pod: Pod, rows: Sequence[int], book: Book
) -> dict[int, int]:
    """Codes for some rows from the per-node form, without those that fit."""
    table = state.table
    codes = {}
    for row in rows:
        code = book.code(filter_one(plugin, state, pod, table.info(row)))
        if code:
            codes[row] = code
    return codes


def describe(trouble: BaseException) -> str:
    """An exception in one line, as its author worded it."""
    if isinstance(trouble, SystemExit):
        return f"called sys.exit({'' if trouble.code is None else repr(trouble.code)})"
    text = str(trouble) or type(trouble).__name__
    if isinstance(trouble, KeyError) and trouble.args:
        # A bare key says nothing by itself; some say a sentence in its place.
        text = str(trouble.args[0]) if " " in str(trouble.args[0]) else f"KeyError: {text}"
    return " ".join(text.split())
