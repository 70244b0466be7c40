"""ScoreColumn: one score plugin's normalised scores, and the rule that they lie in 0..100."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from moorage.errors import PluginError
from moorage.framework import invoke
from moorage.framework.answers import Part
from moorage.framework.memo import ScoreMemo
from moorage.framework.normalizers import ByMax
from moorage.framework.status import Mask, Scores

if TYPE_CHECKING:
    from moorage.framework.fitting import Fitting


class ScoreColumn:
    """One score plugin's normalised scores, kept while its summary stays the same."""

    __slots__ = (
        "_version",
        "constant",
        "epoch",
        "is_sound",
        "memo",
        "normalised",
        "normalizer",
        "plugin",
        "summary",
        "weight",
    )

    def __init__(self, plugin: Any, weight: int, memo: ScoreMemo) -> None:
        self.plugin = plugin
        self.weight = weight
        self.memo = memo
        self.normalizer = getattr(plugin, "normalizer", None)
        self.summary: Hashable = None
        # The one score that all rows have, or the scores.
        self.constant: int | None = None
        self.normalised: Scores = np.zeros(0, dtype=np.int64)
        # Whether the scores of all rows lie in 0..100, be they feasible or not.
        self.is_sound = True
        self.epoch = -1
        self._version = -1

    @property
    def scores(self) -> int | Scores:
        """The normalised scores, one number if all rows have the same."""
        return self.normalised if self.constant is None else self.constant

    @property
    def part(self) -> Part:
        """What the plugin adds to the totals, before its weight."""
        return self.plugin.name, self.weight, self.scores

    @property
    def is_stale(self) -> bool:
        """Whether all scores have to be normalised anew."""
        memo = self.memo
        return self.epoch != memo.epoch or (self.constant is not None and memo.uniform is None)

    @property
    def is_indifferent(self) -> bool:
        """Whether it does not matter which rows fit: of equal scores one is as good as all."""
        return self.memo.uniform is not None and isinstance(self.normalizer, ByMax)

    def settle(self, fits: Mask) -> bool:
        """Whether all rows have one score that does not depend on which of them fit; if so, it."""
        memo = self.memo
        if memo.uniform is None or memo.troubles:
            return False
        if self.normalizer is not None:
            if not self.is_indifferent:
                return False
            self.summary = self.summarize(fits)
        self.normalise(fits)
        return True

    def refresh_summary(self, fitting: "Fitting") -> bool:
        """Look again at the feasible scores if they may be others; whether their summary is."""
        memo = self.memo
        if self._version == memo.version and (not fitting.moved or self.is_indifferent):
            return False
        before, self.summary = self.summary, self.summarize(fitting.fits)
        self._version = memo.version
        return before != self.summary

    def summarize(self, fits: Mask) -> Hashable:
        """What the normalizer wants to know of the feasible raw scores."""
        raw = self.memo.raw
        return summarized(self.plugin, raw[:1] if self.is_indifferent else raw[fits])

    def normalise(self, fits: Mask) -> None:
        """Make all scores anew."""
        memo = self.memo
        self.epoch = memo.epoch
        if memo.uniform is not None:
            self.constant = checked(self.plugin, self.apply(memo.uniform, self.summary))
            return
        self.constant = None
        scores = self.apply(memo.raw, self.summary)
        if scores is memo.raw and self.normalizer is not None:
            scores = scores.copy()  # Single rows are written to it later.
        self.is_sound = check_range(self.plugin, scores, fits)
        self.normalised = scores

    def renew(self, row: int) -> int:
        """Normalise one row's score anew; it still has to be checked."""
        score: int = self.apply(self.memo.raw.item(row), self.summary)
        self.normalised[row] = score
        return score

    def apply(self, raw: Any, summary: Hashable) -> Any:
        """Raw scores, or one of them, normalised."""
        return raw if self.normalizer is None else normalised(self.plugin, raw, summary)


def summarized(plugin: Any, feasible: Scores) -> Hashable:
    """What a plugin's normalizer makes of the feasible raw scores."""
    summary: Hashable = invoke.PluginMethod(plugin, "normalizer.summarize")(feasible)
    return summary


def normalised(plugin: Any, raw: Any, summary: Hashable) -> Any:
    """Raw scores, or one of them, as a plugin's normalizer sees them: whole numbers."""
    return invoke.normalized(invoke.PluginMethod(plugin, "normalizer.apply"), raw, summary)


def check_range(plugin: Any, scores: Scores, fits: Mask) -> bool:
    """Scores must lie in 0..100 after normalising; says whether those of other rows do, too."""
    # Seen as unsigned, a negative number is a huge one: one pass tells both bounds.
    unsigned = np.uint32 if scores.dtype == np.int32 else np.uint64
    if not len(scores) or 0 <= scores.item(scores.view(unsigned).argmax()) <= 100:
        return True
    wrong = scores[fits & ((scores < 0) | (scores > 100))]
    if len(wrong):
        checked(plugin, int(wrong[0]))
    return False


def checked(plugin: Any, score: int) -> int:
    """The same for one score."""
    if 0 <= score <= 100:
        return score
    raise PluginError(
        plugin.name,
        f'applying score defaultWeights on Score plugins: plugin "{plugin.name}" returns an '
        f"invalid score {score}, it should in the range of [0, 100] after normalizing",
    )
