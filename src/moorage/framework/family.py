"""Family: templates of which all plugins that look at node objects only make the same.

Pods that differ in their requests or labels most often have all else in common, so what those
plugins say, and what follows from it, is put together once for all of them.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from moorage.framework.answers import Part
from moorage.framework.memo import FilterMemo, ScoreMemo
from moorage.framework.reading import Reading, all_skipping
from moorage.framework.score_column import ScoreColumn
from moorage.framework.state import CycleState
from moorage.framework.status import Mask

if TYPE_CHECKING:
    from moorage.framework.profile import Profile


class Family:
    """See the module."""

    __slots__ = ("_memos", "_profile", "_scores", "holders", "key", "readings", "skips", "state")

    def __init__(
        self, profile: "Profile", readings: Mapping[str, Reading], key: Any, state: CycleState
    ) -> None:
        self._profile = profile
        self.readings = readings
        # What these plugins wrote beforehand.
        self.state = state
        # Under which it is kept, and how many sheets stand on it.
        self.key = key
        self.holders = 0
        # Those who skip the pod beforehand; None if one has more to say.
        asked = [readings[p.name] for p, is_kept in profile.by_family.pre_filters if is_kept]
        self.skips = all_skipping(asked, state)
        self._memos: dict[frozenset[str], list[tuple[int, FilterMemo]]] = {}
        self._scores: Scores | None = None

    def memos(self, skips: frozenset[str]) -> Sequence[tuple[int, FilterMemo]]:
        """The verdicts of those who do not skip the pod, with their places among all filters."""
        memos = self._memos.get(skips)
        if memos is None:
            memos = self._memos[skips] = [
                (place, self.readings[plugin.name].verdicts)
                for place, plugin in self._profile.by_family.filters
                if plugin.name not in skips
            ]
        return memos

    def scores(self, fits: Mask) -> "Scores":
        """The scores of those who do not skip the pod; they hold until a node changes."""
        position = self._profile.cluster.table.node_changes.position
        if self._scores is None or self._scores.position != position:
            self._scores = self._put_together(fits, position)
        return self._scores

    def _put_together(self, fits: Mask, position: int) -> "Scores":
        same: list[Part] = []
        differing: list[tuple[Any, int, ScoreMemo]] = []
        for plugin, weight in self._profile.by_family.scores:
            reading = self.readings[plugin.name]
            if not reading.pre_scored(fits).is_skip:
                reading.scores.refresh()
                column = ScoreColumn(plugin, weight, reading.scores)
                if column.settle(fits):
                    same.append(column.part)
                else:
                    differing.append((plugin, weight, reading.scores))
            self.state.adopt(reading.state)
        return Scores(position, same, differing)


class Scores(NamedTuple):
    """What plugins of a family score, as of a position among the changes of nodes."""

    position: int
    # What each gives that gives every node the same, whichever of them fit.
    same: Sequence[Part]
    # The others, with their weights.
    differing: Sequence[tuple[Any, int, ScoreMemo]]
