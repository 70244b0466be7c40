"""ScoreColumn: one score plugin's normalised scores, and the rule that they lie in 0..100."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moorage.errors import PluginError
from moorage.framework import calls
from moorage.framework.memo import ScoreMemo
from moorage.framework.normalizers import ByMax
from moorage.framework.status import Mask, Scores


@dataclass(slots=True)
class ScoreColumn:
    """One score plugin's normalised scores, kept while its summary stays the same."""

    plugin: Any
    weight: int
    memo: ScoreMemo
    summary: Hashable = None
    normalised: Scores = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    epoch: int = -1
    version: int = -1

    @property
    def normalizer(self) -> Any:
        return getattr(self.plugin, "normalizer", None)

    def summarize(self, fits: Mask) -> Hashable:
        """What the normalizer wants to know of the feasible raw scores."""
        normalizer = self.normalizer
        if normalizer is None:
            return None
        # Of equal scores one is as good as all, unless somebody counts them.
        one_is_enough = self.memo.uniform is not None and isinstance(normalizer, ByMax)
        return summarized(self.plugin, self.memo.raw[:1] if one_is_enough else self.memo.raw[fits])

    def apply(self, raw: Any, summary: Hashable) -> Any:
        """Raw scores, or one of them, normalised."""
        return raw if self.normalizer is None else normalised(self.plugin, raw, summary)


def summarized(plugin: Any, feasible: Scores) -> Hashable:
    """What a plugin's normalizer makes of the feasible raw scores."""
    try:
        summary: Hashable = plugin.normalizer.summarize(feasible)
    except Exception as trouble:  # As above.
        raise normalizing(plugin, trouble) from trouble
    return summary


def normalised(plugin: Any, raw: Any, summary: Hashable) -> Any:
    """Raw scores, or one of them, as a plugin's normalizer sees them: whole numbers."""
    try:
        scores = plugin.normalizer.apply(raw, summary)
        if isinstance(raw, int):
            return int(scores)
        whole = np.asarray(scores).astype(np.int64, copy=False)
        if whole.shape != raw.shape:
            raise ValueError(f"a normalizer must return {len(raw)} scores for as many")
    except Exception as trouble:  # As above.
        raise normalizing(plugin, trouble) from trouble
    return whole


def normalizing(plugin: Any, trouble: Exception) -> PluginError:
    text = f'plugin "{plugin.name}" failed with: {calls.describe(trouble)}'
    return PluginError(plugin.name, f"running Normalize on Score plugins: {text}")


def check_range(plugin: Any, scores: Scores, fits: Mask) -> None:
    """Scores must lie in 0..100 after normalising."""
    # Seen as unsigned, a negative number is a huge one: one pass tells both bounds.
    if not len(scores) or scores.view(np.uint64).max() <= 100:
        return
    wrong = scores[fits & ((scores < 0) | (scores > 100))]
    if len(wrong):
        raise out_of_range(plugin, int(wrong[0]))


def out_of_range(plugin: Any, score: int) -> PluginError:
    """The reference's words for a score that is none."""
    return PluginError(
        plugin.name,
        f'applying score defaultWeights on Score plugins: plugin "{plugin.name}" returns an '
        f"invalid score {score}, it should in the range of [0, 100] after normalizing",
    )
