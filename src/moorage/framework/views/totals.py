"""TotalView: the weighted sum of normalised scores of feasible rows, and the best rows."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from moorage.api.pod import Pod
from moorage.errors import PluginError
from moorage.framework.state import CycleState
from moorage.framework.status import Mask, Scores
from moorage.framework.views.parts import CycleParts, KnownScores, Part, Parts
from moorage.framework.views.row_sets import BestRows, RowBlocks
from moorage.framework.views.scores import (
    NO_SCORES,
    NormalizedView,
    ScoreRangeError,
    ScoreView,
    check_range,
)
from moorage.framework.views.view import Changed, RowArray, View, rows_of_both
from moorage.nodes.changes import UNREAD

if TYPE_CHECKING:
    from moorage.framework.views.feasible import FeasibleView

# Up to such a weight, a hundred points fit into 32 bits beside what many other plugins give.
LIGHT = 1 << 16


class Scored(Struct, gc=False):
    """The totals of feasible rows in one cycle (-1 elsewhere), and what each plugin gave."""

    totals: Scores
    parts: Parts | CycleParts
    best_rows: BestRows

    def plus(self, added: Sequence[tuple[str, int, Scores]]) -> "Scored":
        """The totals with the scores that other plugins give in this cycle."""
        before = totals = self.totals
        for _, weight, scores in added:
            if weight >= LIGHT:
                scores = scores.astype(np.int64)
            totals = totals + (scores if weight == 1 else scores * weight)
        if before.item(before.argmin()) < 0:  # To look is quicker, and most often all rows fit.
            # All bits of a negative number become 1: -1 again where a row does not fit.
            totals |= before >> (8 * before.itemsize - 1)
        return Scored(totals, self.parts.with_parts(added), BestRows())

    def best(self) -> Sequence[int] | RowArray | RowBlocks:
        """The rows that share the highest total, ascending."""
        return self.best_rows.rows(self.totals)

    def total(self, row: int) -> int:
        """The total of a row."""
        return self.totals.item(row)

    def scores(self, row: int) -> dict[str, int]:
        """The weighted score per plugin of a row."""
        return self.parts.of(row)


class TotalView(View):
    """Weighted sums of score views: of feasible rows, -1 elsewhere; and the best rows."""

    def __init__(
        self,
        columns: Sequence[tuple[int, ScoreView | NormalizedView]],
        feasible: "FeasibleView",
        order: Mapping[str, int],
    ) -> None:
        # The feasible view is refreshed before scores are computed, so only its log is read.
        logs = [feasible.table.node_changes, feasible.log]
        super().__init__(feasible.table, [view for _, view in columns], logs)
        self._columns = columns
        self._feasible = feasible
        self._order = order
        # The columns that differ between rows, and the sum of the others.
        self._varying: list[tuple[int, ScoreView | NormalizedView]] = []
        self._constant = 0
        self._checked: list[ScoreView | NormalizedView] = []
        # The sums of all rows, feasible or not; None if they have to be computed again.
        self._sums: Scores | None = None
        # The columns of plugins that read node objects only, as far as they differ between rows.
        self._by_node: list[tuple[int, ScoreView | NormalizedView]] = []
        # Half as wide is half the work; wide enough for all weights that people use.
        is_wide = 100 * sum([weight for weight, _ in columns]) >= 1 << 30
        self._dtype = np.int64 if is_wide else np.int32
        self.parts = Parts([], order)
        self.scored = Scored(NO_SCORES, self.parts, BestRows())
        # Rows whose totals are newer than the columns, with their scores.
        self._ahead: dict[int, dict[str, int]] = {}

    def refresh(self, state: CycleState, pod: Pod) -> None:
        if self._ahead:
            self._node_position = UNREAD  # More than the newest row is to be computed.
        super().refresh(state, pod)

    def allow_ahead(self) -> None:
        """Prepare for `take_total`, when all columns are up to date."""
        self._by_node = [(w, view) for w, view in self._varying if reads_nodes_only(view)]
        names = {view.name for _, view in self._by_node}
        self.parts.read_ahead(self._ahead, names)

    def take_total(self, row: int, known: KnownScores) -> None:
        """Take the scores of a feasible row that the columns do not have yet."""
        scored, total = self.scored, known.total
        for weight, view in self._by_node:
            total += weight * view.values.item(row)
        self._ahead[row] = known.scores
        before = scored.totals.item(row)
        if total != before:
            scored.totals[row] = total
            scored.best_rows.change(row, before, total)

    def sum_of(self, by_plugin: Mapping[str, int]) -> KnownScores:
        """The scores of a row to which these plugins give these scores."""
        weighted = {v.name: w * by_plugin[v.name] for w, v in self._varying if v.name in by_plugin}
        total = self._constant + sum(weighted.values())
        return KnownScores(total, self.parts.with_scores(weighted))

    @classmethod
    def of(
        cls,
        scores: Sequence[tuple[int, ScoreView]],
        feasible: "FeasibleView",
        order: Mapping[str, int],
    ) -> "TotalView":
        """The totals of raw scores, normalised where a plugin does that."""
        columns = [
            (weight, raw if raw.normalizer is None else NormalizedView(raw, feasible))
            for weight, raw in scores
        ]
        return cls(columns, feasible, order)

    @property
    def scores(self) -> list[tuple[int, ScoreView]]:
        """The raw scores, with their weights."""
        return [(w, v if isinstance(v, ScoreView) else v.raw) for w, v in self._columns]

    @property
    def ignores_feasible(self) -> bool:
        """Whether scores are the same whichever rows are feasible."""
        columns = [view for _, view in self._columns]
        return all(isinstance(v, ScoreView) or v.raw.ignores_feasible for v in columns)

    def read_cursors(self, rows: Changed = ()) -> Changed:
        *by_score, by_feasible = self._cursors
        if self._ahead:
            rows = [*self._ahead]  # The columns may have their old values again.
            self._ahead.clear()
        for cursor in by_score:
            rows = rows_of_both(rows, cursor.changed())
        if rows is None or len(rows) > self.most_rows:
            rows = self._sums = None
        both = rows_of_both(rows, by_feasible.changed())
        if both is None or len(both) > self.most_rows:
            for row in rows or ():
                self.compute_row(row)  # The sums of all other rows hold.
            return None
        return both

    def compute_row(self, row: int) -> bool:
        assert self._sums is not None
        scored, total = self.scored, self._constant
        for weight, view in self._varying:
            total += weight * view.values.item(row)
        try:
            self._sums[row] = total
        except OverflowError:  # A score is out of range: if the row fits, `check` raises.
            self._sums[row] = total = 0
        if not self._feasible.fits.item(row):
            total = -1
        before = scored.totals.item(row)
        if total != before:
            scored.totals[row] = total
            scored.best_rows.change(row, before, total)
        return True  # Its parts may have changed, even if their sum has not.

    def compute_all(self) -> None:
        if self._sums is None:
            self._sums, self.parts = self._add_up()
        totals = masked(self._feasible.fits, self._sums.copy())
        self.scored = Scored(totals, self.parts, BestRows())

    def _add_up(self) -> tuple[Scores, Parts]:
        parts: list[Part] = []
        self._varying, self._constant = [], 0
        sums: Scores | None = None
        for weight, view in self._columns:
            if view.uniform is not None and view.in_range:
                self._constant += weight * view.uniform
                parts.append((view.name, weight, view.uniform))
                continue
            self._varying.append((weight, view))
            parts.append((view.name, weight, view.values))
            scores = view.values
            if self._dtype is np.int64:
                scores = scores.astype(np.int64, copy=False)
            weighted = scores if weight == 1 else scores * weight
            sums = weighted if sums is None else sums + weighted
        if sums is None:
            sums = np.full(self.table.capacity, self._constant, dtype=self._dtype)
        elif self._constant or len(self._varying) == 1:
            sums = sums + self._constant  # A copy: it may be the column's own array.
        # A uniform column changes only together with all others.
        self._checked = [
            view
            for _, view in self._columns
            if view.uniform is None or view.errors or not view.in_range
        ]
        self._find_live()
        return sums, Parts(parts, self._order)

    @property
    def is_valid(self) -> bool:
        """Whether no plugin raised for any row, and all scores are in range."""
        return not any(view.errors or not view.in_range for view in self._checked)

    def failures(self, fits: Mask) -> list[PluginError]:
        """The errors of plugins that raised for a row that fits, or gave it a score out of range.

        One for each plugin.
        """
        return [
            failure
            for view in self._checked
            if (view.errors or not view.in_range) and (failure := _failure(view, fits)) is not None
        ]

    def among(self, fits: Mask) -> "Scored":
        """The scores if other rows are feasible in this cycle."""
        totals, parts = self.scored.totals.copy(), self.parts
        for weight, view in self._columns:
            if isinstance(view, ScoreView) or view.raw.ignores_feasible:
                continue
            summary = view.summarize(fits)
            try:
                differs = bool(summary != view.summary)
            except Exception as wrong:
                raise view.normalizer.incomparable(summary) from wrong
            if differs:
                scores = view.normalizer.apply(view.raw.values, summary)
                check_range(view.name, scores, fits)
                before = view.values if view.uniform is None else view.uniform
                totals = totals + weight * (scores - before)
                parts = parts.replaced((view.name, weight, scores))
        return Scored(masked(fits, totals), parts, BestRows())


def _failure(view: ScoreView | NormalizedView, fits: Mask) -> PluginError | None:
    errors = [error for row, error in sorted(view.errors.items()) if fits[row]]
    for error in errors:
        if not isinstance(error, ScoreRangeError):
            return error
    if errors:
        return errors[0]
    try:
        check_range(view.name, view.values, fits)
    except PluginError as failure:
        return failure
    return None


def reads_nodes_only(view: ScoreView | NormalizedView) -> bool:
    """Whether a plugin's raw scores change only with node objects."""
    return (view.raw if isinstance(view, NormalizedView) else view).is_by_node


def masked(fits: Mask, totals: Scores) -> Scores:
    """The totals, in place, with -1 where a row does not fit."""
    # A bitwise or with -1 gives -1, and with 0 nothing changes: no branch for any row.
    totals |= fits.view(np.int8) - np.int8(1)
    return totals
