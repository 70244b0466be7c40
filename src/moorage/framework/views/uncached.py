"""Scores of plugins that cannot be cached: they hold for one cycle only."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from moorage.api.pod import Pod
from moorage.framework import invoke
from moorage.framework.state import CycleState
from moorage.framework.status import Mask, Scores
from moorage.framework.views.scores import check_range, is_in_range, normalizer_of
from moorage.nodes.groups import Groups

if TYPE_CHECKING:
    from moorage.framework.profile import Profile


class UncachedScore:
    """A score plugin that is called in every cycle; without a weight, only its pre_score."""

    def __init__(self, profile: "Profile", plugin: Any, weight: int | None) -> None:
        self.name: str = plugin.name
        self.plugin = plugin
        self.scores = weight is not None
        self.weight = weight or 0
        called_at = profile.called_at[self.name]
        self.pre_score = profile.method(plugin, "pre_score") if "pre_score" in called_at else None
        self._is_prepared = self.name not in profile.unprepared
        self._loops = profile.loops
        self._score = profile.method(plugin, "score")
        self._score_all = profile.method(plugin, "score_all")
        # The summary of raw scores of groups, and what each then is, normalised and weighted.
        self._summary: Hashable = None
        self._normalized: dict[int, int] = {}
        self._score_groups = profile.method(plugin, "score_groups")
        self._normalizer = normalizer_of(profile, plugin)
        self._normalize_score = profile.method(plugin, "normalize_score")

    @property
    def can_group(self) -> bool:
        """Whether the plugin scores groups of rows."""
        if not self._is_prepared:
            return False
        return self._score_groups is not None and self._normalizer is not None

    def of_groups(self, state: CycleState, pod: Pod, groups: Groups) -> list[int] | None:
        """The scores of groups that have feasible rows, normalised and weighted.

        None if the plugin skips the pod.
        """
        assert self._score_groups is not None
        assert self._normalizer is not None
        raw = invoke.score_groups(self._score_groups, state, pod, groups)
        if raw is None:
            return None
        summary = self._normalizer.summarize.call(np.array(raw))
        try:
            if summary != self._summary:
                self._summary, self._normalized = summary, {}
        except Exception as wrong:
            raise self._normalizer.incomparable(summary) from wrong
        known = self._normalized
        for each in {*raw}.difference(known):
            known[each] = self.weight * self._normalizer.apply(each, summary)
        return [*map(known.__getitem__, raw)]

    def of(self, state: CycleState, pod: Pod, fits: Mask) -> Scores:
        """Normalised scores; those of rows that do not fit have no meaning."""
        if self._score_all is None:
            raw = self._one_by_one(state, pod, fits)
        else:
            raw = invoke.score_rows(self._score_all, state, pod, state.table)
        if self._normalizer is not None:
            raw = self._normalizer.apply(raw, self._normalizer.summarize.call(raw[fits]))
        elif self._normalize_score is not None:
            raw = raw.astype(np.int64)
            raw[fits] = invoke.normalize_score(self._normalize_score, state, pod, raw[fits])
        if not is_in_range(raw):
            check_range(self.name, raw, fits)
        return raw

    def _one_by_one(self, state: CycleState, pod: Pod, fits: Mask) -> Scores:
        assert self._score is not None
        raw = np.zeros(len(fits), dtype=np.int64)
        rows = np.flatnonzero(fits).tolist()
        self._loops.add(self.name, "score", len(rows))
        for row in rows:
            raw[row] = invoke.score_one(self._score, state, pod, state.table.info(row))
        return raw
