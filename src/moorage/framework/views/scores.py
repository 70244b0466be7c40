"""ScoreView: one score plugin's raw scores for every row. NormalizedView: the same in 0..100.

A raw score view is shared by all templates that agree in what the plugin reads of a pod. Normalised
scores depend on which rows are feasible, so each template has its own.
"""

from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from moorage.api.pod import Pod
from moorage.errors import PluginError
from moorage.framework import invoke
from moorage.framework.points import BY_PODS, ByMax
from moorage.framework.state import CycleState
from moorage.framework.status import Mask, Scores
from moorage.framework.views.filters import PluginView
from moorage.framework.views.view import View
from moorage.nodes.info import NodeInfo

if TYPE_CHECKING:
    from moorage.framework.profile import Profile
    from moorage.framework.views.feasible import FeasibleView

NO_SCORES: Scores = np.zeros(0, dtype=np.int64)
# By the number of bytes.
UNSIGNED: dict[int, np.dtype[Any]] = {4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}


class ScoreRangeError(PluginError):
    """A score out of range; an error of another plugin comes before it."""


class PluginNormalizer:
    """A plugin's normalizer: a summary of the feasible raw scores, then each score by itself."""

    def __init__(self, profile: "Profile", plugin: Any) -> None:
        # What has to be known of the feasible raw scores.
        self.summarize = profile.require(plugin, "normalizer.summarize")
        # Raw scores, or one of them, normalised by that summary.
        self.apply = partial(invoke.normalized, profile.require(plugin, "normalizer.apply"))
        self.is_by_max = isinstance(plugin.normalizer, ByMax)

    def incomparable(self, summary: object) -> PluginError:
        """The error for a summary that cannot be compared with another one, such as an array."""
        return self.summarize.returned(summary, "hashable")


def normalizer_of(profile: "Profile", plugin: Any) -> PluginNormalizer | None:
    """A plugin's normalizer, if it has one."""
    has_any = getattr(plugin, "normalizer", None) is not None
    return PluginNormalizer(profile, plugin) if has_any else None


class ScoreView(PluginView):
    """Raw scores.

    `uniform` is the one score that all rows have, if that is known. `errors` has the rows for which
    the plugin raised: they matter only while such a row is feasible, and so do scores out of range.
    """

    def __init__(self, profile: "Profile", plugin: Any, state: CycleState) -> None:
        super().__init__(profile, plugin, "score", state)
        self.name: str = plugin.name
        self.normalizer = normalizer_of(profile, plugin)
        self.values = NO_SCORES
        self.uniform: int | None = None
        self.errors: dict[int, PluginError] = {}
        self.in_range = True

    def take_value(self, row: int, raw: int) -> None:
        """Take the known score of a row that changed."""
        if self.errors:
            self.errors.pop(row, None)
        if raw != self.values.item(row):
            self.values[row] = raw
            self.log.add(row)

    def value_for(self, row: int) -> int | None:
        """The score of a row, computed anew; None if there is none, or it is out of range."""
        try:
            raw = invoke.score_one(self._one, self.state, self._pod, NodeInfo(self.table, row))
        except PluginError:
            return None
        if 0 <= raw <= 100:
            return raw
        bounds = np.iinfo(self.values.dtype)
        return raw if self.normalizer is not None and bounds.min <= raw <= bounds.max else None

    def _too_large(self, raw: int) -> PluginError:
        """The error for a score beyond those of the whole-cluster form."""
        dtype = self.values.dtype
        return self._one.failed(f"the score {raw} does not fit {dtype}, which score_all returns")

    def compute_row(self, row: int) -> bool:
        if self.table.nodes[row] is None:
            return False
        if self.errors:
            self.errors.pop(row, None)
        try:
            raw = invoke.score_one(self._one, self.state, self._pod, NodeInfo(self.table, row))
            if self.normalizer is None:
                raw = checked(self.name, raw)
        except PluginError as raised:
            self.errors[row] = raised
            raw = 0
        if raw == self.values.item(row):
            return False
        try:
            self.values[row] = raw
        except OverflowError as raised:
            self.errors[row] = self._too_large(raw)
            self.errors[row].__cause__ = raised
            self.values[row] = raw = 0
        if not 0 <= raw <= 100:
            self.in_range = False
        if self.uniform is not None:
            # Readers took the score as a number so far, and have to read all rows now.
            self.uniform = None
            self.log.forget()
        return True

    def compute_all(self) -> None:
        self.errors.clear()
        self.in_range, self.uniform = True, None
        if self._all is None:
            self.values = np.zeros(self.table.capacity, dtype=np.int64)
            self.compute_each(np.flatnonzero(self.table.active_rows))
        else:
            self._take_all()
        # Scores by usage are hardly ever all the same.
        if self.depends not in BY_PODS and (self.values == self.values[0]).all():
            self.uniform = int(self.values[0])

    def _take_all(self) -> None:
        """Take the scores of the array form; if it raises, that is the error of every row."""
        assert self._all is not None
        try:
            scores = invoke.score_rows(self._all, self.state, self._pod, self.table)
        except PluginError as failure:
            self.has_failed = True
            self.errors.update(
                dict.fromkeys(np.flatnonzero(self.table.active_rows).tolist(), failure)
            )
            scores = np.zeros(self.table.capacity, dtype=np.int64)
        else:
            self.has_failed = False
        # Copied because single rows are written to it, and a plugin may keep its own array.
        self.values = scores.copy()
        if self.normalizer is None:
            self.in_range = is_in_range(scores)

    @property
    def ignores_feasible(self) -> bool:
        """Whether normalised scores are the same whichever rows are feasible."""
        if self.normalizer is None:
            return True
        return self.uniform is not None and self.normalizer.is_by_max


class NormalizedView(View):
    """One score plugin's normalised scores, valid while the summary of feasible scores is."""

    def __init__(self, raw: ScoreView, feasible: "FeasibleView") -> None:
        super().__init__(raw.table, [raw])
        assert raw.normalizer is not None
        self.name = raw.name
        self.raw = raw
        self.normalizer = raw.normalizer
        self.values = NO_SCORES
        self.uniform: int | None = None
        self.in_range = True
        self.summary: Hashable = None
        self.errors = raw.errors
        self._feasible = feasible
        self._version = -1

    @property
    def is_by_node(self) -> bool:
        return self.raw.is_by_node and self.raw.ignores_feasible

    def refresh(self, state: CycleState, pod: Pod) -> None:
        raw, feasible = self.raw, self._feasible
        raw.refresh(state, pod)
        is_same = self._version == feasible.version or raw.ignores_feasible
        if is_same and self._cursors[0].is_current:
            return
        rows = self.read_cursors()
        summary = self.summarize(feasible.fits)
        was_uniform = self.uniform is not None
        try:
            if summary != self.summary or (was_uniform and raw.uniform is None):
                self.summary, rows = summary, None
        except Exception as wrong:
            raise self.normalizer.incomparable(summary) from wrong
        self.update(rows)
        self.commit()
        self._version = feasible.version

    def summarize(self, fits: Mask) -> Hashable:
        """The normalizer's summary of raw scores where some rows are feasible."""
        values = self.raw.values
        seen = values[:1] if self.raw.ignores_feasible else values[fits]
        summary: Hashable = self.normalizer.summarize.call(seen)
        return summary

    def compute_row(self, row: int) -> bool:
        score = self.normalizer.apply(self.raw.values.item(row), self.summary)
        if not 0 <= score <= 100:
            self.in_range = False
        if score == self.values.item(row):
            return False
        self.values[row] = score
        return True

    def compute_all(self) -> None:
        raw, self.in_range, self.uniform = self.raw, True, None
        if raw.uniform is not None:
            self.uniform = checked(self.name, self.normalizer.apply(raw.uniform, self.summary))
            return
        scores = self.normalizer.apply(raw.values, self.summary)
        # Copied because single rows are written to it.
        self.values = scores.copy() if scores is raw.values else scores
        self.in_range = is_in_range(scores)


def is_in_range(scores: Scores) -> bool:
    """Whether all scores lie in 0..100."""
    # Seen as unsigned, a negative number is a huge one: one pass finds both bounds.
    unsigned = UNSIGNED[scores.itemsize]
    return not len(scores) or 0 <= scores.item(scores.view(unsigned).argmax()) <= 100


def check_range(name: str, scores: Scores, fits: Mask) -> None:
    """Raise if the score of a row that fits does not lie in 0..100."""
    for score in scores[fits & ((scores < 0) | (scores > 100))][:1].tolist():
        checked(name, score)


def checked(name: str, score: int) -> int:
    """The score; raises if it does not lie in 0..100."""
    if 0 <= score <= 100:
        return score
    raise ScoreRangeError(
        name,
        f'applying score defaultWeights on Score plugins: plugin "{name}" returns an '
        f"invalid score {score}, it should in the range of [0, 100] after normalizing",
    )
