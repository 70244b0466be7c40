"""Scores of plugins that cannot be cached: they hold for one cycle only.

A plugin that looks beyond the node may give its raw scores in a compact form: by groups of rows, or
for a few rows beside one score for all others. The less there is, the less has to be normalised,
added up and searched.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from moorage.api.pod import Pod
from moorage.framework import invoke
from moorage.framework.state import CycleState
from moorage.framework.status import Mask, Scores, ScoresByGroup, SparseScores
from moorage.framework.views.scores import (
    PluginNormalizer,
    check_range,
    checked,
    is_in_range,
    normalizer_of,
)
from moorage.framework.views.totals import BestRows, Part, Scored, masked

if TYPE_CHECKING:
    from moorage.framework.profile import Profile

# Up to such a weight, a hundred points fit into 32 bits beside what many other plugins give.
LIGHT = 1 << 16


class UncachedScore:
    """A score plugin that is called in every cycle."""

    def __init__(self, profile: "Profile", plugin: Any, weight: int) -> None:
        self.name: str = plugin.name
        self.weight = weight
        is_enabled = self.name in profile.pre_scores
        self.pre_score = profile.method(plugin, "pre_score") if is_enabled else None
        self._loops = profile.loops
        self._score = profile.require(plugin, "score")
        self._score_all = profile.method(plugin, "score_all")
        self._score_compact = profile.method(plugin, "score_compact")
        self._normalizer = normalizer_of(profile, plugin)
        self._normalize_score = profile.method(plugin, "normalize_score")

    @property
    def normalizer(self) -> PluginNormalizer:
        """The normalizer, which a plugin with compact scores has."""
        assert self._normalizer is not None
        return self._normalizer

    def raw(self, state: CycleState, pod: Pod, fits: Mask) -> Scores | ScoresByGroup | SparseScores:
        """Raw scores in the most compact form that the plugin has for this pod."""
        if self._score_compact is not None and self._normalizer is not None:
            compact = invoke.score_compact(self._score_compact, state, pod)
            if compact is not None:
                return compact
        if self._score_all is not None:
            return invoke.score_rows(self._score_all, state, pod, state.table)
        raw = np.zeros(len(fits), dtype=np.int64)
        rows = np.flatnonzero(fits).tolist()
        self._loops.add(self.name, "score", len(rows))
        for row in rows:
            raw[row] = invoke.score_one(self._score, state, pod, state.table.info(row))
        return raw

    def normalized(self, state: CycleState, pod: Pod, fits: Mask, raw: Scores) -> Scores:
        """Normalised scores of rows that fit, from an array of raw ones."""
        if self._normalizer is not None:
            raw = self._normalizer.apply(raw, self._normalizer.summarize.call(raw[fits]))
        elif self._normalize_score is not None:
            raw = raw.copy()
            raw[fits] = invoke.normalize_score(self._normalize_score, state, pod, raw[fits])
        if not is_in_range(raw):
            check_range(self.name, raw, fits)
        return raw


class CycleScores:
    """The totals of one cycle while uncached scores are added to them, plugin by plugin."""

    def __init__(self, state: CycleState, pod: Pod, fits: Mask, scored: Scored) -> None:
        self._state = state
        self._pod = pod
        self._fits = fits
        self._scored = scored
        # -1 where a row does not fit, unless scores were added there.
        self._totals = scored.totals
        # None: not known any more.
        self._best: BestRows | None = scored.best_rows
        self._parts: list[Part] = []

    def add(self, plugin: UncachedScore) -> None:
        """Call a plugin and add its scores."""
        fits, weight = self._fits, plugin.weight
        raw = plugin.raw(self._state, self._pod, fits)
        if isinstance(raw, SparseScores):
            self._parts.append((plugin.name, weight, self._add_sparse(plugin, raw)))
            return
        if isinstance(raw, ScoresByGroup):
            scores = self._by_group(plugin, raw)
        else:
            scores = plugin.normalized(self._state, self._pod, fits, raw)
        if weight >= LIGHT:
            scores = scores.astype(np.int64, copy=False)
        self._totals = self._totals + (scores if weight == 1 else scores * weight)
        self._best = None
        self._parts.append((plugin.name, weight, scores))

    def scored(self) -> Scored:
        """The totals with all scores that were added."""
        is_known = self._best is not None
        totals = self._totals if is_known else masked(self._fits, self._totals)
        return Scored(totals, self._scored.parts.with_parts(self._parts), self._best or BestRows())

    def _by_group(self, plugin: UncachedScore, given: ScoresByGroup) -> Scores:
        raw, fits = given.scores, self._fits
        # The groups that have a row that fits; the fewer rows, the less to count.
        if 2 * np.count_nonzero(fits) < len(fits):
            present = np.bincount(given.groups[fits.nonzero()[0]], minlength=len(raw)) > 0
        else:
            others = given.groups[(~fits).nonzero()[0]]
            present = given.sizes > np.bincount(others, minlength=len(raw))
        summary = plugin.normalizer.summarize.call(raw[present])
        scores: Scores = plugin.normalizer.apply(raw, summary)
        for score in scores[present].tolist():
            checked(plugin.name, score)
        # Half as wide is half the work for every row; readers take any width.
        return scores.astype(np.int32).take(given.groups)  # type: ignore[return-value]

    def _add_sparse(self, plugin: UncachedScore, given: SparseScores) -> SparseScores:
        fits, weight, before = self._fits, plugin.weight, self._totals
        few = {row: raw for row, raw in given.scores.items() if fits.item(row)}
        has_rest = len(few) < np.count_nonzero(fits)
        # Row by row: there are a handful, with fewer distinct scores.
        raw = {*few.values(), given.rest} if has_rest else set(few.values())
        summary = plugin.normalizer.summarize.call(np.array(sorted(raw), dtype=np.int64))
        scores = {
            each: checked(plugin.name, plugin.normalizer.apply(each, summary)) for each in raw
        }
        rest = scores[given.rest] if has_rest else 0
        if rest == 0 and weight < LIGHT:
            totals = before.copy()
        else:
            totals = before.astype(np.int64) + rest * weight
        changed: dict[int, int] = {}
        for row, each in few.items():
            changed[row] = totals[row] = before.item(row) + scores[each] * weight
        self._totals = totals
        known = self._best if rest == 0 else None
        self._best = None if known is None else known.with_changes(before, changed)
        return SparseScores({row: scores[each] for row, each in few.items()}, rest)
