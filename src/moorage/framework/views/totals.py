"""TotalView: the weighted sum of normalised scores of feasible rows, and the best rows."""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from moorage.api.pod import Pod
from moorage.framework.state import CycleState
from moorage.framework.status import Mask, Scores
from moorage.framework.views.scores import NO_SCORES, NormalizedView, ScoreView, check_range
from moorage.framework.views.view import Changed, RowArray, View, rows_of_both
from moorage.nodes.changes import UNREAD
from moorage.nodes.resource_numbers import ResourceNumbers

if TYPE_CHECKING:
    from moorage.framework.views.feasible import FeasibleView

# How many rows have what readers derived from their scores: the best rows of a cycle are most often
# those of the next.
MOST_DERIVED = 64
MOST_NUMBERS = 1024

# Up to such a weight, a hundred points fit into 32 bits beside what many other plugins give.
LIGHT = 1 << 16

# A score plugin's name, its weight, and its scores: one number if all rows have the same.
Part = tuple[str, int, int | Scores]


class KnownScores(Struct, frozen=True, gc=False):
    """What follows from the resources of a feasible row; scores by node are still to be added."""

    total: int
    # Weighted, per plugin; with a slot for each plugin whose scores follow from the node object.
    scores: dict[str, int]


class Parts:
    """What each score plugin gave, in the order of the configuration."""

    # Scores of rows that the columns do not have yet, and the parts that add to them.
    _ahead: Mapping[int, dict[str, int]] = MappingProxyType({})
    _by_node: Sequence[Part] = ()
    # Set if rows with equal resources have equal scores.
    _numbers: ResourceNumbers | None = None

    def __init__(
        self,
        parts: Sequence[Part],
        order: Mapping[str, int],
        constant: dict[str, int] | None = None,
        varying: Sequence[Part] | None = None,
    ) -> None:
        self._parts = parts
        self._order = order
        # The weighted scores that all rows share, with a slot for each of the others, in order.
        self._constant = self._in_order(parts) if constant is None else constant
        if varying is None:
            varying = [part for part in parts if not isinstance(part[2], int)]
        self._varying = varying
        # The same together with parts of other plugins, by their names.
        self._merged: dict[tuple[str, ...], dict[str, int]] = {}
        # What a reader derived from the scores of a row; dropped when they change.
        self.derived: dict[int, Any] = {}
        # What a reader derived from these parts by the number of a row's resources.
        self.known: dict[int, Any] = {}
        # Scores by the number of a row's resources, where these decide.
        self._by_number: dict[int, dict[str, int]] = {}

    def _in_order(self, parts: Sequence[Part]) -> dict[str, int]:
        order = self._order
        ordered = sorted(parts, key=lambda part: order.get(part[0], len(order)))
        return {name: w * given if isinstance(given, int) else 0 for name, w, given in ordered}

    def of(self, row: int) -> dict[str, int]:
        """A row's weighted score per plugin; read only."""
        if self._numbers is None:
            return self._read(row)
        number, known = self._numbers.of(row), self._by_number
        found = known.get(number)
        if found is None:
            if len(known) > MOST_NUMBERS:
                known.clear()
            found = known[number] = self._read(row)
        return found

    def _read(self, row: int) -> dict[str, int]:
        found, varying = self._constant, self._varying
        if row in self._ahead:
            found, varying = self._ahead[row], self._by_node
            if not varying:
                return found
        found = found.copy()
        for name, weight, scores in varying:
            found[name] = weight * scores.item(row)  # type: ignore[union-attr]  # no int
        return found

    def read_ahead(
        self, ahead: dict[int, dict[str, int]], by_node: set[str], numbers: ResourceNumbers
    ) -> None:
        """Read the scores of rows there first, except those of plugins that read nodes only."""
        self._ahead = ahead
        self._by_node = [part for part in self._varying if part[0] in by_node]
        self._numbers = None if self._by_node else numbers

    def with_scores(self, weighted: Mapping[str, int]) -> dict[str, int]:
        """The weighted scores that all rows share, together with some of other plugins."""
        return {**self._constant, **weighted}

    def with_parts(self, more: Sequence[Part]) -> "Parts":
        """These parts and those of other plugins, which differ between rows."""
        names = next(zip(*more, strict=True), ())
        return Parts(
            [*self._parts, *more], self._order, self._slots(names), [*self._varying, *more]
        )

    def _slots(self, names: tuple[str, ...]) -> dict[str, int]:
        """The weighted scores that all rows share, also with slots for other plugins."""
        slots = self._merged.get(names)
        if slots is None:
            slots = self._in_order([*self._parts, *[(name, 0, 0) for name in names]])
            self._merged[names] = slots
        return slots

    def of_with(self, row: int, weighted: Mapping[str, int]) -> dict[str, int]:
        """A row's weighted score per plugin, together with those of other plugins."""
        return {**self._slots((*weighted,)), **self.of(row), **weighted}

    def replaced(self, part: Part) -> "Parts":
        """These parts with another one of the same plugin."""
        return Parts([part if each[0] == part[0] else each for each in self._parts], self._order)


class BestRows:
    """The highest total, and the rows that have it, ascending.

    After a pod was placed, one row has another total. Then finding the best again takes a look at
    that row, not at all of them; only when none is left are all totals searched.
    """

    # An array of rows is quick to make and slow to change, a list the other way round: the array
    # becomes a list after so many changes.
    ARRAY_CHANGES = 8
    # Taking a row out of a longer list takes longer than counting rows by block.
    MOST_LISTED = 1 << 14

    def __init__(self) -> None:
        self._best = -1
        self._array: RowArray | None = None
        self._rows: list[int] | RowBlocks = []
        self._changes = 0
        self._capacity = 0

    def change(self, row: int, before: int, after: int) -> None:
        """The total of one row changed."""
        if self._array is not None and self._is_listed(self._array):
            self._change_array(self._array, row, before, after)
            return
        rows = self._rows
        if not rows:
            return
        if before == self._best:
            rows.remove(row) if isinstance(rows, RowBlocks) else rows.pop(bisect_left(rows, row))
        if after > self._best:
            self._best, self._rows = after, [row]
        elif after == self._best:
            rows.add(row) if isinstance(rows, RowBlocks) else insort(rows, row)

    def _is_listed(self, array: RowArray) -> bool:
        """Whether the rows stay an array; else they are in `_rows` from now on."""
        self._changes += 1
        if len(array) > self.MOST_LISTED:
            self._rows, self._array = RowBlocks(array, self._capacity), None
        elif self._changes > self.ARRAY_CHANGES:
            self._rows, self._array = array.tolist(), None
        return self._array is not None

    def _change_array(self, array: RowArray, row: int, before: int, after: int) -> None:
        if after > self._best:
            self._best, self._rows, self._array = after, [row], None
            return
        at = int(array.searchsorted(row))
        if before == self._best:
            array = np.concatenate((array[:at], array[at + 1 :]))
        elif after == self._best:
            array = np.concatenate((array[:at], [row], array[at:]))
        self._array = array if len(array) else None

    def rows(self, totals: Scores) -> "Sequence[int] | RowArray | RowBlocks":
        """The best rows; searched among all totals if they are not known."""
        if self._rows:
            return self._rows
        if self._array is None:
            # Finding where the maximum is takes less time than finding how high it is.
            self._best = totals.item(totals.argmax())
            self._array = (totals == self._best).nonzero()[0]
            self._changes, self._capacity = 0, len(totals)
        return self._array


class RowBlocks:
    """Very many rows, ascending, with a count for each block of rows.

    The n-th row is found by adding up the counts and looking into one block, so that neither that
    nor a change takes time in proportion to the rows.
    """

    BLOCK = 2048

    def __init__(self, rows: RowArray, capacity: int) -> None:
        blocks = -(-capacity // self.BLOCK)
        self._has_row = np.zeros(blocks * self.BLOCK, dtype=np.bool_)
        self._has_row[rows] = True
        self._by_block = self._has_row.reshape(blocks, self.BLOCK)
        self._counts = self._by_block.sum(axis=1)
        self._length = len(rows)
        # The first rows, as far as they were asked for.
        self._first: list[int] = []

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> int:
        return self.nth([self], index)

    @classmethod
    def nth(cls, each: "Sequence[RowBlocks]", index: int) -> int:
        """The n-th row of several together, which have none in common."""
        first, *others = each
        ends = sum([blocks._counts for blocks in others], first._counts).cumsum()
        block = int(ends.searchsorted(index, side="right"))
        at = index - (ends.item(block - 1) if block else 0)
        has_row = first._by_block[block]
        for blocks in others:
            has_row = has_row | blocks._by_block[block]
        row: int = block * cls.BLOCK + has_row.nonzero()[0].item(at)
        return row

    def first(self, count: int) -> list[int]:
        """The first rows."""
        if len(self._first) < count:
            self._first = self._find_first(count)
        return self._first[:count]

    def _find_first(self, count: int) -> list[int]:
        found: list[int] = []
        block = int((self._counts > 0).argmax())
        while len(found) < count and block < len(self._counts):
            rows = self._by_block[block].nonzero()[0][: count - len(found)]
            found += [row + block * self.BLOCK for row in rows.tolist()]
            block += 1
        return found

    def add(self, row: int) -> None:
        """Add a row that is not there."""
        if self._first and row < self._first[-1]:
            self._first = []
        self._has_row[row] = True
        self._counts[row // self.BLOCK] += 1
        self._length += 1

    def remove(self, row: int) -> None:
        """Remove a row."""
        if self._first and row <= self._first[-1]:
            self._first = []
        self._has_row[row] = False
        self._counts[row // self.BLOCK] -= 1
        self._length -= 1


class Scored(Struct, gc=False):
    """The totals of feasible rows in one cycle (-1 elsewhere), and what each plugin gave."""

    totals: Scores
    parts: Parts
    best_rows: BestRows

    def plus(self, added: Sequence[tuple[str, int, Scores]]) -> "Scored":
        """The totals with the scores that other plugins give in this cycle."""
        before = totals = self.totals
        for _, weight, scores in added:
            if weight >= LIGHT:
                scores = scores.astype(np.int64)
            totals = totals + (scores if weight == 1 else scores * weight)
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

    def kept(self, rows: Sequence[int]) -> list[Any]:
        """What a reader derived from the scores of rows and kept; None where these changed."""
        kept = self.parts.derived
        if len(kept) > MOST_DERIVED:
            kept.clear()
        return [*map(kept.get, rows)]

    def keep(self, row: int, derived: Any) -> None:
        """Keep what is derived from the scores of a row."""
        self.parts.derived[row] = derived

    def top(self, count: int, selected: int) -> list[int]:
        """The rows with the highest totals: the selected one, which is one of them, and others."""
        best = self.best_rows.rows(self.totals)
        if isinstance(best, list):
            rows = best[:count]
        elif isinstance(best, RowBlocks):
            rows = best.first(count)
        else:
            rows = [*map(int, best[:count])]
        if selected in rows:
            rows.remove(selected)
        found = [selected, *rows[: count - 1]]
        return found if len(found) == count else _fill(found, self.totals, count)


def _fill(found: list[int], totals: Scores, count: int) -> list[int]:
    """Add the next best rows until there are enough, as far as there are any."""
    # Rows that were found are hidden for a moment, which is quicker than a copy.
    hidden = [(row, totals.item(row)) for row in found]
    totals[found] = -1
    while len(hidden) < count:
        row = int(totals.argmax())  # The first of the best.
        total = totals.item(row)
        if total < 0:
            break
        hidden.append((row, total))
        totals[row] = -1
    for row, total in hidden:
        totals[row] = total
    return [row for row, _ in hidden]


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
        self.scored = Scored(NO_SCORES, Parts([], order), BestRows())
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
        self.scored.parts.read_ahead(self._ahead, names, self.table.resource_numbers)

    def take_total(self, row: int, known: KnownScores) -> None:
        """Take the scores of a feasible row that the columns do not have yet."""
        scored, total = self.scored, known.total
        for weight, view in self._by_node:
            total += weight * view.values.item(row)
        self._ahead[row] = known.scores
        scored.parts.derived.pop(row, None)
        before = scored.totals.item(row)
        if total != before:
            scored.totals[row] = total
            scored.best_rows.change(row, before, total)

    def sum_of(self, by_plugin: Mapping[str, int]) -> KnownScores:
        """The scores of a row to which these plugins give these scores."""
        weighted = {v.name: w * by_plugin[v.name] for w, v in self._varying if v.name in by_plugin}
        total = self._constant + sum(weighted.values())
        return KnownScores(total, self.scored.parts.with_scores(weighted))

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
        scored = self.scored
        scored.parts.derived.pop(row, None)
        total = self._constant
        for weight, view in self._varying:
            total += weight * view.values.item(row)
        self._sums[row] = total
        if not self._feasible.fits.item(row):
            total = -1
        before = scored.totals.item(row)
        if total != before:
            scored.totals[row] = total
            scored.best_rows.change(row, before, total)
        return True  # Its parts may have changed, even if their sum has not.

    def compute_all(self) -> None:
        parts = self.scored.parts
        if self._sums is None:
            self._sums, parts = self._add_up()
        self.scored = Scored(masked(self._feasible.fits, self._sums.copy()), parts, BestRows())

    def _add_up(self) -> tuple[Scores, Parts]:
        parts: list[Part] = []
        self._varying, self._constant = [], 0
        sums: Scores | None = None
        for weight, view in self._columns:
            if view.uniform is not None:
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

    def check(self, fits: Mask) -> None:
        """Raise if a plugin raised for a row that fits, or gave it a score out of range."""
        for view in self._checked:
            if view.errors or not view.in_range:
                for row in sorted(view.errors):
                    if fits[row]:
                        raise view.errors[row]
                check_range(view.name, view.values, fits)

    def among(self, fits: Mask) -> "Scored":
        """The scores if other rows are feasible in this cycle."""
        totals, parts = self.scored.totals.copy(), self.scored.parts
        for weight, view in self._columns:
            if isinstance(view, ScoreView) or view.raw.ignores_feasible:
                continue
            summary = view.summarize(fits)
            if summary != view.summary:
                scores = view.normalizer.apply(view.raw.values, summary)
                check_range(view.name, scores, fits)
                before = view.values if view.uniform is None else view.uniform
                totals = totals + weight * (scores - before)
                parts = parts.replaced((view.name, weight, scores))
        return Scored(masked(fits, totals), parts, BestRows())


def reads_nodes_only(view: ScoreView | NormalizedView) -> bool:
    """Whether a plugin's raw scores change only with node objects."""
    return (view.raw if isinstance(view, NormalizedView) else view).is_by_node


def masked(fits: Mask, totals: Scores) -> Scores:
    """The totals, in place, with -1 where a row does not fit."""
    # A bitwise or with -1 gives -1, and with 0 nothing changes: no branch for any row.
    totals |= fits.view(np.int8) - np.int8(1)
    return totals
