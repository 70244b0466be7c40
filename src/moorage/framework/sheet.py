"""Sheet: one template under one profile: which rows fit, why the others do not, and every score.

Plugins whose answers may be kept are memos, combined here and updated row by row; the others are
asked in every cycle. In the usual case one pod was placed since the last look, one row changed,
and bringing the sheet up to date costs a few microseconds whatever the number of nodes.
"""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from moorage.api.pod import Pod
from moorage.errors import PluginError
from moorage.framework import calls
from moorage.framework.answers import FITS, NO_NODE, Filtered, Places, PreFiltered, Scored
from moorage.framework.beside import Beside
from moorage.framework.leaders import Leaders
from moorage.framework.memo import KEPT, FilterMemo, depends_of
from moorage.framework.points import Depends
from moorage.framework.reasons import Reasons
from moorage.framework.score_column import (
    ScoreColumn,
    check_range,
    normalised,
    normalizing,
    out_of_range,
    summarized,
)
from moorage.framework.state import CycleState
from moorage.framework.status import Code, Codes, Mask, Narrowed, Scores, Status
from moorage.framework.template import PodTemplate

if TYPE_CHECKING:
    from moorage.framework.profile import Profile

# Up to so many changed rows are combined one by one.
FEW = 32


class Sheet:
    """See the module."""

    def __init__(self, profile: "Profile", template: PodTemplate, state: CycleState) -> None:
        self.profile = profile
        self.template = template
        self.state = state
        self._reads: dict[str, Hashable] = {}
        self._kept_pre_filter: dict[str, Status | Narrowed] = {}
        self._outspoken: list[Any] = []
        self._skipping: set[str] = set()
        self._memos: list[tuple[int, FilterMemo]] | None = None
        self._columns: list[ScoreColumn] | None = None
        self._by_place: dict[int, FilterMemo] = {}
        self._epochs: list[int] = []
        self._nodes_seen = -1
        self._seen = -1
        self.first: Places = np.zeros(0, dtype=np.int16)
        self.fits: Mask = np.zeros(0, dtype=np.bool_)
        self._rejected_by: list[int] = []
        self.totals: Scores = np.zeros(0, dtype=np.int64)
        self._leaders = Leaders()
        # Rows combined since the totals were last brought up to date; None means all.
        self._untotalled: list[int] | None = None
        self._fits_moved = True
        # How often all rows were combined anew.
        self.combined = 0
        # Verdicts on nodes that are promised to others, once there are any, and all refusals.
        self.beside: Beside | None = None
        self.reasons: Reasons | None = None

    def read_by(self, plugin: Any) -> Hashable:
        """What a plugin reads of the pod: templates that agree in it share its answers."""
        read = self._reads.get(plugin.name)
        if read is None:
            read = self._read(plugin) if hasattr(plugin, "reads") else self.template.serial
            self._reads[plugin.name] = read
        return read

    def _read(self, plugin: Any) -> Hashable:
        try:
            read: Hashable = plugin.reads(self.template.exemplar)
            hash(read)
        except Exception as trouble:  # A plugin may raise anything; it must cost its own pod only.
            text = f'plugin "{plugin.name}": reads: {calls.describe(trouble)}'
            raise PluginError(plugin.name, text) from trouble
        return read

    def memo_at(self, place: int) -> FilterMemo:
        """The kept verdicts of the filter at a place."""
        return self._by_place[place]

    @property
    def has_erred(self) -> bool:
        """Whether any kept verdict stands for trouble."""
        return any(memo.has_erred for _, memo in self._memos or ())

    # Before the nodes

    def run_pre_filters(self, state: CycleState, pod: Pod) -> PreFiltered:
        """Ask every pre_filter plugin, in order, as far as answers are not kept."""
        self._forget_nodes()
        outspoken = self._outspoken or self._find_outspoken()
        result = PreFiltered(skipped=set(self._skipping))
        remembered: Status | None = None
        for plugin in outspoken:
            said = self._kept_pre_filter.get(plugin.name)
            if said is None:
                said = self._pre_filter(plugin, state, pod)
            if isinstance(said, Narrowed):
                result.narrow(plugin.name, said.names)
                if result.rejected is not None:
                    return result
            elif said.code is Code.SKIP:
                result.skipped.add(plugin.name)
            elif said.code is Code.UNSCHEDULABLE:
                remembered = said.by(plugin.name)
            elif said.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                result.rejected = said.by(plugin.name)
                return result
            elif said.code is not Code.SUCCESS:
                text = said.message or f"returned {said.code.label}"
                text = f'running PreFilter plugin "{plugin.name}": {text}'
                raise PluginError(plugin.name, text)
        result.rejected = remembered
        return result

    def _pre_filter(self, plugin: Any, state: CycleState, pod: Pod) -> Status | Narrowed:
        kept = depends_of(plugin) in KEPT
        try:
            said = plugin.pre_filter(self.state if kept else state, pod)
        except Exception as trouble:  # A plugin may raise anything; it must cost its own pod only.
            text = f'running PreFilter plugin "{plugin.name}": {calls.describe(trouble)}'
            raise PluginError(plugin.name, text) from trouble
        if not isinstance(said, Status | Narrowed):
            text = f"pre_filter returned {said!r}, which is not a Status"
            text = f'running PreFilter plugin "{plugin.name}": {text}'
            raise PluginError(plugin.name, text)
        if kept:
            self._kept_pre_filter[plugin.name] = said
            self._outspoken = []
        return said

    def _find_outspoken(self) -> list[Any]:
        """The pre_filter plugins whose answer is not known to be a plain yes, or a skip."""
        said = {name: a.code for name, a in self._kept_pre_filter.items() if isinstance(a, Status)}
        self._skipping = {name for name, code in said.items() if code is Code.SKIP}
        quiet = {*self._skipping, *(name for name, code in said.items() if code is Code.SUCCESS)}
        self._outspoken = [p for p in self.profile.pre_filters if p.name not in quiet]
        return self._outspoken

    def _forget_nodes(self) -> None:
        """What plugins worked out about all nodes together holds until one of them changes."""
        if not self.profile.looks_at_nodes:
            return
        position = self.state.table.node_changes.position
        if position != self._nodes_seen:
            self._nodes_seen = position
            for plugin in self.profile.pre_filters:
                if depends_of(plugin) is Depends.NODES:
                    self._kept_pre_filter.pop(plugin.name, None)
            self._outspoken, self._skipping = [], set()
            self._memos = self._columns = None
            self._seen = -1

    # Which nodes fit

    def run_filters(self, state: CycleState, pod: Pod, pre: PreFiltered) -> Filtered:
        """Every row's verdict, first refusal first."""
        self._refresh_fits()
        volatile = [
            (place, plugin)
            for place, plugin in self.profile.volatile_filters
            if plugin.name not in pre.skipped
        ]
        if not volatile:
            return Filtered(self.fits, self.first, self._rejected_by, self, {})
        first, answers = self.first.copy(), {}
        rejected_by = list(self._rejected_by)
        in_question = None if pre.names is None else state.table.named(pre.names)
        for place, plugin in volatile:
            # Nobody before it refused these; rows without a node are below every place.
            untouched = first > place
            # Asked one by one, so only about nodes that nobody left out either.
            open_ = untouched if in_question is None else untouched & in_question
            codes, status_of, book = self._ask_volatile(plugin, state, pod, open_)
            answers[place] = (status_of, codes, book)
            refused = np.flatnonzero(codes.astype(np.bool_) & untouched)
            if len(refused):
                _move(rejected_by, first[refused], place)
                first[refused] = place
        return Filtered(first == FITS, first, rejected_by, self, answers)

    def _ask_volatile(
        self, plugin: Any, state: CycleState, pod: Pod, open_: Mask
    ) -> tuple[Codes, Any, calls.Book | None]:
        if hasattr(plugin, "filter_all"):
            verdicts = calls.filter_rows(plugin, state, pod, state.table)
            book = calls.Book(erred=True) if verdicts.troubles else None
            return verdicts.codes, verdicts.status_of, book
        book = calls.Book()
        rows = np.flatnonzero(open_)
        self.profile.loops.add(plugin.name, "filter", len(rows))
        codes = np.zeros(len(open_), dtype=np.int64)
        for row, code in calls.filter_loop(plugin, state, pod, rows.tolist(), book).items():
            codes[row] = code
        return codes, book.status, book

    def _refresh_fits(self) -> None:
        memos = self._filter_memos()
        for _, memo in memos:
            memo.refresh()
        table = self.state.table
        epochs = [memo.epoch for _, memo in memos]
        rows = table.changes.since(self._seen) if self._seen >= 0 else None
        anew = epochs != self._epochs or len(self.first) != table.capacity
        if anew or rows is None or len(rows) > FEW:
            self._combine_all(memos)
        else:
            for row in rows:
                self._combine_row(memos, row)
        self._epochs = epochs
        self._seen = table.changes.position

    def _filter_memos(self) -> list[tuple[int, FilterMemo]]:
        if self._memos is None:
            self._memos = [
                (place, self.profile.filter_memo(plugin, self))
                for place, plugin in self.profile.kept_filters
                if self._takes_part(plugin)
            ]
            self._by_place = dict(self._memos)
        return self._memos

    def _takes_part(self, plugin: Any) -> bool:
        said = self._kept_pre_filter.get(plugin.name)
        return not (isinstance(said, Status) and said.code is Code.SKIP)

    def _combine_all(self, memos: Sequence[tuple[int, FilterMemo]]) -> None:
        table = self.state.table
        first = np.full(table.capacity, FITS, dtype=np.int16)
        for place, memo in reversed(memos):
            if memo.refuses:
                np.putmask(first, memo.codes != 0, place)
        np.putmask(first, ~table.active_rows, NO_NODE)
        self.combined += 1
        self.first = first
        self.fits = first == FITS
        self._rejected_by = _tally(first) if any(memo.refuses for _, memo in memos) else []
        self._untotalled = None
        self._fits_moved = True

    def _combine_row(self, memos: Sequence[tuple[int, FilterMemo]], row: int) -> None:
        place = NO_NODE
        if self.state.table.nodes[row] is not None:
            place = FITS
            for at, memo in memos:
                if memo.refuses and memo.codes[row]:
                    place = at
                    break
        before = int(self.first[row])
        if place != before:
            self.first[row] = place
            self.fits[row] = place == FITS
            self._fits_moved = self._fits_moved or FITS in (place, before)
            _recount(self._rejected_by, before, place)
        if self._untotalled is not None:
            self._untotalled.append(row)

    def refresh_reasons(
        self, filtered: Filtered, beside: Beside | None, own: int | None
    ) -> Reasons:
        """Why every row is refused, for a pod that was itself promised the `own` row."""
        if self.reasons is None:
            self.reasons = Reasons(self.state.cluster)
        epoch = (self.combined, 0 if beside is None else beside.epoch)
        self.reasons.refresh(filtered, beside, own, epoch if filtered.is_kept else None)
        return self.reasons

    # How good they are

    def run_scores(self, state: CycleState, pod: Pod, fits: Mask) -> Scored:
        """Weighted, normalised scores of the rows that fit."""
        columns = self._score_columns(state, pod, fits)
        if fits is self.fits:
            self._refresh_totals(columns)
            totals = self.totals
            parts = [(c.plugin.name, c.weight, c.normalised) for c in columns]
        else:
            totals, parts = self._weigh(columns, fits)
        return self._add_volatile(state, pod, fits, totals, parts)

    def _score_columns(self, state: CycleState, pod: Pod, fits: Mask) -> list[ScoreColumn]:
        if self._columns is None:
            columns = []
            for plugin, weight in self.profile.kept_scores:
                if not self._pre_score(plugin, self.state, pod, fits).is_skip:
                    memo = self.profile.score_memo(plugin, self)
                    columns.append(ScoreColumn(plugin, weight, memo))
            self._columns = columns
        for column in self._columns:
            column.memo.refresh()
            if column.memo.troubles:
                column.memo.complain(fits)
        return self._columns

    def _pre_score(self, plugin: Any, state: CycleState, pod: Pod, fits: Mask) -> Status:
        if not self.profile.has_pre_score(plugin):
            return _NO_PRE_SCORE
        try:
            said = plugin.pre_score(state, pod, fits)
        except Exception as trouble:  # As above.
            text = f'running PreScore plugin "{plugin.name}": {calls.describe(trouble)}'
            raise PluginError(plugin.name, text) from trouble
        if not isinstance(said, Status) or said.code not in (Code.SUCCESS, Code.SKIP):
            text = said.message if isinstance(said, Status) else f"returned {said!r}"
            raise PluginError(plugin.name, f'running PreScore plugin "{plugin.name}": {text}')
        return said

    def _refresh_totals(self, columns: list[ScoreColumn]) -> None:
        # Should a plugin raise below, the next look starts over.
        rows, self._untotalled = self._untotalled, None
        anew = rows is None or len(self.totals) != len(self.fits)
        for column in columns:
            summary = column.summary
            if anew or self._fits_moved or column.version != column.memo.version:
                summary = column.summarize(self.fits)
                column.version = column.memo.version
            if summary != column.summary or column.epoch != column.memo.epoch:
                anew = True
            column.summary = summary
        if anew:
            self._total_all(columns)
        elif rows:
            for row in rows:
                self._total_row(columns, row)
        self._untotalled = []
        self._fits_moved = False

    def _total_all(self, columns: list[ScoreColumn]) -> None:
        totals = np.zeros(len(self.fits), dtype=np.int64)
        for column in columns:
            normalised = column.apply(column.memo.raw, column.summary)
            if normalised is column.memo.raw and column.normalizer is not None:
                normalised = normalised.copy()  # Single rows are written to it later.
            column.normalised = normalised
            column.epoch = column.memo.epoch
            check_range(column.plugin, normalised, self.fits)
            totals += normalised * column.weight if column.weight != 1 else normalised
        np.putmask(totals, ~self.fits, -1)
        self.totals = totals
        self._leaders.forget()

    def _total_row(self, columns: list[ScoreColumn], row: int) -> None:
        before, total = self.totals.item(row), -1
        if self.fits[row]:
            total = 0
            for column in columns:
                score = column.apply(column.memo.raw.item(row), column.summary)
                if not 0 <= score <= 100:
                    raise out_of_range(column.plugin, score)
                if column.normalizer is not None:
                    column.normalised[row] = score
                total += column.weight * score
        self.totals[row] = total
        self._leaders.change(row, before, total)

    def _weigh(
        self, columns: list[ScoreColumn], fits: Mask
    ) -> tuple[Scores, list[tuple[str, int, Scores]]]:
        """As the kept totals, for a set of rows that is this cycle's own."""
        self._refresh_totals(columns)
        totals = self.totals.copy()
        parts = []
        for column in columns:
            normalised, summary = column.normalised, column.summarize(fits)
            if summary != column.summary:
                normalised = column.apply(column.memo.raw, summary)
                check_range(column.plugin, normalised, fits)
                totals += column.weight * (normalised - column.normalised)
            parts.append((column.plugin.name, column.weight, normalised))
        np.putmask(totals, ~fits, -1)
        return totals, parts

    def _add_volatile(
        self,
        state: CycleState,
        pod: Pod,
        fits: Mask,
        totals: Scores,
        parts: list[tuple[str, int, Scores]],
    ) -> Scored:
        mine = False
        for plugin, weight in self.profile.volatile_scores:
            if self._pre_score(plugin, state, pod, fits).is_skip:
                continue
            normalised = self._normalised(plugin, state, pod, fits)
            check_range(plugin, normalised, fits)
            totals = totals + weight * normalised
            mine = True
            parts.append((plugin.name, weight, normalised))
        if mine:
            np.putmask(totals, ~fits, -1)
            # A score plugin that runs last may be configured first; people see that order.
            parts.sort(key=lambda part: self.profile.score_places[part[0]])
        return Scored(totals, parts, self._leaders if totals is self.totals else Leaders())

    def _normalised(self, plugin: Any, state: CycleState, pod: Pod, fits: Mask) -> Scores:
        raw = self._raw(plugin, state, pod, fits)
        if getattr(plugin, "normalizer", None) is not None:
            scores: Scores = normalised(plugin, raw, summarized(plugin, raw[fits]))
            return scores
        if hasattr(plugin, "normalize_score"):
            try:
                raw = raw.copy()
                raw[fits] = plugin.normalize_score(state, pod, raw[fits])
            except Exception as trouble:  # As above.
                raise normalizing(plugin, trouble) from trouble
        return raw

    def _raw(self, plugin: Any, state: CycleState, pod: Pod, fits: Mask) -> Scores:
        if hasattr(plugin, "score_all"):
            return calls.score_rows(plugin, state, pod, state.table)
        raw = np.zeros(len(fits), dtype=np.int64)
        rows = np.flatnonzero(fits).tolist()
        self.profile.loops.add(plugin.name, "score", len(rows))
        for row in rows:
            raw[row] = calls.score_one(plugin, state, pod, state.table, row)
        return raw


_NO_PRE_SCORE = Status(Code.SUCCESS)


def _tally(first: Places) -> list[int]:
    """How many rows each place refuses."""
    refused = first[(first != FITS) & (first != NO_NODE)]
    return np.bincount(refused).tolist() if len(refused) else []


def _move(rejected_by: list[int], before: Places, place: int) -> None:
    """Count rows for a place that were counted for later ones, or fitted, before."""
    rejected_by.extend([0] * (place + 1 - len(rejected_by)))
    rejected_by[place] += len(before)
    if len(before) and before.min() != FITS:
        for later, count in enumerate(_tally(before)):
            rejected_by[later] -= count


def _recount(rejected_by: list[int], before: int, after: int) -> None:
    for place, change in ((before, -1), (after, 1)):
        if place not in (FITS, NO_NODE):
            rejected_by.extend([0] * (place + 1 - len(rejected_by)))
            rejected_by[place] += change
