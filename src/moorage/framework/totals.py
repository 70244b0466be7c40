"""Totals: how good each row is for a template, by scores that are kept.

Weighted and normalised scores added up, brought up to date where rows changed. A score that is the
same for every row is a number here, not an array.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from moorage.framework.answers import Part, Parts
from moorage.framework.fitting import Fitting
from moorage.framework.leaders import Leaders
from moorage.framework.points import Depends
from moorage.framework.score_column import ScoreColumn, check_range, checked
from moorage.framework.status import Mask, Scores
from moorage.framework.volatile import among
from moorage.nodes.table import NodeTable

NOTHING = Parts([])


class Totals:
    """See the module."""

    __slots__ = (
        "_constant",
        "_fitting",
        "_given",
        "_is_wide",
        "_memos",
        "_nodes_seen",
        "_normalizing",
        "_order",
        "_same",
        "_seen",
        "_sums",
        "_table",
        "_usage_columns",
        "_varying",
        "columns",
        "leaders",
        "parts",
        "values",
    )

    def __init__(
        self,
        table: NodeTable,
        fitting: Fitting,
        columns: Sequence[ScoreColumn],
        same: Sequence[Part],
        order: Mapping[str, int],
    ) -> None:
        self._table = table
        self._fitting = fitting
        self.columns = columns
        self._usage_columns = [c for c in columns if c.memo.depends is Depends.USAGE]
        self._memos = [c.memo for c in columns]
        self._normalizing = [c for c in columns if c.normalizer is not None]
        # What others give that give every row the same as long as no node changes, and its sum.
        self._same = same
        self._given = sum([weight * score for _, weight, score in same if isinstance(score, int)])
        # The order in which people see all of them.
        self._order = order
        # The columns that differ between rows, and the sum of the others.
        self._varying: list[ScoreColumn] = []
        self._constant = 0
        # Whether totals may be too much for integers of 32 bits, as some scores are.
        weights = [*[column.weight for column in columns], *[weight for _, weight, _ in same]]
        self._is_wide = 100 * sum(weights) >= 1 << 30
        self._seen = self._nodes_seen = -1
        # Of all rows, and with -1 for those that do not fit.
        self._sums: Scores = np.zeros(0, dtype=np.int64)
        self.values: Scores = self._sums
        self.parts = NOTHING
        self.leaders = Leaders()

    def refresh(self, fits: Mask) -> None:
        """Bring the totals up to date; a plugin that raised over a node in `fits` raises here."""
        table, fitting = self._table, self._fitting
        if fitting.changed == [] and not fitting.moved and not self._memos:
            return
        position, nodes = table.changes.position, table.node_changes.position
        # Should a plugin raise below, the next look starts over.
        rows, fitting.changed = fitting.changed, None
        anew = rows is None
        if rows is not None and nodes == self._nodes_seen:
            for column in self._usage_columns:
                memo = column.memo
                memo.follow(rows, self._seen, position)
                if memo.epoch != column.epoch:
                    anew = True
        else:
            for column in self.columns:
                column.memo.refresh()
                anew = anew or column.is_stale
        for memo in self._memos:
            if memo.troubles:
                memo.complain(fits)
        if self._normalizing:
            for column in self._normalizing:
                if column.refresh_summary(fitting):
                    anew = True
        swept = fitting.swept
        if anew or (swept and not all(column.is_sound for column in self._varying)):
            self._add_up_all()
        else:
            for row in rows or ():
                self._add_up(row)
            if swept:
                self._mask()
        self._seen, self._nodes_seen = position, nodes
        fitting.changed, fitting.moved, fitting.swept = [], False, False

    def _add_up_all(self) -> None:
        fits = self._fitting.fits
        self._varying, self._constant = [], self._given
        totals: Scores | None = None
        for column in self.columns:
            column.normalise(fits)
            if column.constant is not None:
                self._constant += column.weight * column.constant
                continue
            self._varying.append(column)
            scores, weight = column.normalised, column.weight
            if self._is_wide:
                scores = scores.astype(np.int64, copy=False)
            weighted = scores if weight == 1 else scores * weight
            totals = weighted if totals is None else totals + weighted
        if totals is None:
            width = np.int64 if self._is_wide else np.int32
            totals = np.full(len(fits), self._constant, dtype=width)
        elif len(self._varying) == 1:
            totals = totals + self._constant  # It may be what the column keeps.
        else:
            totals += self._constant
        self._sums = totals
        self._mask()
        parts = [*self._same, *[column.part for column in self.columns]]
        parts.sort(key=lambda part: self._order[part[0]])
        self.parts = Parts(parts)

    def _mask(self) -> None:
        """Leave out the rows that do not fit."""
        self.values = among(self._fitting.fits, self._sums.copy())
        self.leaders.forget()

    def _add_up(self, row: int) -> None:
        self.parts.notes.pop(row, None)
        before, total = self.values.item(row), self._constant
        fits = self._fitting.fits.item(row)
        for column in self._varying:
            score = column.memo.raw.item(row) if column.normalizer is None else column.renew(row)
            if not 0 <= score <= 100:
                column.is_sound = False
                if fits:
                    checked(column.plugin, score)
            total += column.weight * score
        self._sums[row] = total
        if not fits:
            total = -1
        if total != before:
            self.values[row] = total
            self.leaders.change(row, before, total)

    def among(self, fits: Mask) -> tuple[Scores, Parts]:
        """The totals of a set of rows that is this cycle's own; -1 elsewhere."""
        totals, parts = self.values.copy(), self.parts
        for column in self._normalizing:
            if column.is_indifferent:
                continue
            summary = column.summarize(fits)
            if summary != column.summary:
                scores = column.apply(column.memo.raw, summary)
                check_range(column.plugin, scores, fits)
                totals = totals + column.weight * (scores - column.scores)
                given = (column.plugin.name, column.weight, scores)
                parts = Parts([given if each[0] == given[0] else each for each in parts.all])
        return among(fits, totals), parts
