"""Scores that hold for one cycle only, of plugins that look beyond the node, added to the totals.

A plugin may give its raw scores as an array, by kinds of rows, or for a few rows beside one score
for all others: the less of it, the less there is to normalise, to add up and to look through.
"""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from moorage.api.pod import Pod
from moorage.framework import invoke
from moorage.framework.answers import Part, Scored
from moorage.framework.keeping import VolatileScore
from moorage.framework.leaders import Leaders
from moorage.framework.score_column import (
    check_range,
    checked,
    normalised,
    summarized,
)
from moorage.framework.state import CycleState
from moorage.framework.status import Mask, Scores, ScoresByGroup, SparseScores

if TYPE_CHECKING:
    from moorage.framework.profile import Profile


# Up to such a weight a hundred points fit into 32 bits, beside what many others give.
LIGHT = 1 << 16


class Sum:
    """The totals of one cycle while plugins are added one by one."""

    __slots__ = ("_fits", "_leaders", "_pod", "_profile", "_state", "_totals", "parts")

    def __init__(
        self, profile: "Profile", state: CycleState, pod: Pod, fits: Mask, scored: Scored
    ) -> None:
        self._profile = profile
        self._state = state
        self._pod = pod
        self._fits = fits
        # -1 where a row does not fit, unless scores were added there.
        self._totals = scored.totals
        self._leaders: Leaders | None = scored.leaders
        self.parts: list[Part] = []

    def add(self, asked: VolatileScore) -> None:
        """Ask a plugin and add its scores."""
        plugin, weight = asked.plugin, asked.weight
        given = self._ask(asked)
        if isinstance(given, SparseScores):
            self.parts.append((plugin.name, weight, self._add_few(plugin, weight, given)))
        else:
            if isinstance(given, ScoresByGroup):
                scores = self._by_kind(plugin, given)
            else:
                scores = self._normalised(asked, given)
            if weight >= LIGHT:
                scores = scores.astype(np.int64, copy=False)
            self._totals = self._totals + (scores if weight == 1 else scores * weight)
            self._leaders = None
            self.parts.append((plugin.name, weight, scores))

    @property
    def totals(self) -> Scores:
        """The sum; -1 where a row does not fit."""
        return self._totals if self._leaders is not None else among(self._fits, self._totals)

    @property
    def leaders(self) -> Leaders:
        """The rows with the highest total, as far as they are known."""
        return self._leaders or Leaders()

    # Raw scores

    def _ask(self, asked: VolatileScore) -> Scores | ScoresByGroup | SparseScores:
        plugin, state, pod, profile = asked.plugin, self._state, self._pod, self._profile
        if asked.has_score_compact:
            brief = invoke.score_compact(profile.require(plugin, "score_compact"), state, pod)
            if brief is not None:
                return brief
        if asked.has_score_all:
            return invoke.score_rows(profile.require(plugin, "score_all"), state, pod, state.table)
        raw = np.zeros(len(self._fits), dtype=np.int64)
        rows = np.flatnonzero(self._fits).tolist()
        self._profile.loops.add(plugin.name, "score", len(rows))
        score = profile.require(plugin, "score")
        for row in rows:
            raw[row] = invoke.score_one(score, state, pod, state.table.info(row))
        return raw

    # Normalised scores

    def _normalised(self, asked: VolatileScore, raw: Scores) -> Scores:
        plugin, fits = asked.plugin, self._fits
        if asked.has_normalizer:
            raw = normalised(plugin, raw, summarized(plugin, raw[fits]))
        elif asked.has_normalize_score:
            raw = raw.copy()
            method = self._profile.require(plugin, "normalize_score")
            raw[fits] = invoke.normalize_score(method, self._state, self._pod, raw[fits])
        check_range(plugin, raw, fits)
        return raw

    def _by_kind(self, plugin: Any, given: ScoresByGroup) -> Scores:
        raw = given.scores
        # Most rows fit, so the others are counted.
        others = given.groups[np.flatnonzero(~self._fits)]
        present = given.sizes > np.bincount(others, minlength=len(raw))
        scores: Scores = normalised(plugin, raw, summarized(plugin, raw[present]))
        for score in scores[present].tolist():
            checked(plugin, score)
        return scores.take(given.groups)

    def _add_few(self, plugin: Any, weight: int, given: SparseScores) -> SparseScores:
        fits = self._fits
        few = {row: raw for row, raw in given.scores.items() if fits.item(row)}
        has_rest = len(few) < np.count_nonzero(fits)
        raw = np.array([*few.values(), given.rest] if has_rest else list(few.values()))
        summary = summarized(plugin, raw)
        rest = self._one(plugin, given.rest, summary) if has_rest else 0
        before = self._totals
        if rest == 0 and weight < LIGHT:
            totals = before.copy()
        else:
            totals = before.astype(np.int64) + rest * weight
        scores: dict[int, int] = {}
        changed: dict[int, int] = {}
        for row, each in few.items():
            score = scores[row] = self._one(plugin, each, summary)
            changed[row] = totals[row] = before.item(row) + score * weight
        self._totals = totals
        known = self._leaders if rest == 0 else None
        self._leaders = None if known is None else known.beside(before, changed)
        return SparseScores(scores, rest)

    @staticmethod
    def _one(plugin: Any, raw: int, summary: Hashable) -> int:
        score: int = normalised(plugin, raw, summary)
        return checked(plugin, score)


def among(fits: Mask, totals: Scores) -> Scores:
    """The totals, in place, of the rows that fit; -1 elsewhere."""
    np.copyto(totals, -1, where=~fits)
    return totals
