"""Fitting: which rows fit a template, by verdicts that are kept, and who refuses the others.

In the usual case one pod was placed since the last look: then one row is asked about again, by the
filters that look at usage, whatever the number of nodes.
"""

from collections.abc import Sequence

import numpy as np

from moorage.api.pod import Pod
from moorage.framework.answers import FITS, NO_NODE, Places
from moorage.framework.memo import FilterMemo, FollowedMemo
from moorage.framework.points import Depends
from moorage.framework.state import CycleState
from moorage.framework.status import Mask
from moorage.nodes.changes import RowLog
from moorage.nodes.table import NodeTable

# Up to so many changed rows are combined one by one.
FEW = 32


class Fitting:
    """See the module."""

    __slots__ = (
        "_first",
        "_followed",
        "_log",
        "_looks_around",
        "_nodes_seen",
        "_seen",
        "_table",
        "_usage_memos",
        "_version",
        "changed",
        "combined",
        "count",
        "fits",
        "has_erred",
        "memo_at",
        "memos",
        "moved",
        "news",
        "rejected_by",
        "swept",
    )

    def __init__(
        self, table: NodeTable, memos: Sequence[tuple[int, FilterMemo]], log: RowLog
    ) -> None:
        self._table = table
        # Of changes that matter: those of nodes, or those of usage, too.
        self._log = log
        # The filters that take part, in order, by their places among all filters of the profile.
        self.memos = memos
        self.memo_at = dict(memos)
        depends = [memo.depends for _, memo in memos]
        self._usage_memos = [memo for _, memo in memos if memo.depends is Depends.USAGE]
        self._followed = [memo for _, memo in memos if isinstance(memo, FollowedMemo)]
        self._looks_around = Depends.NODES in depends
        self._seen = self._nodes_seen = -1
        self._version = -1
        self._first: Places | None = None
        self.fits: Mask = np.zeros(0, dtype=np.bool_)
        # How many rows fit, and how many each place refuses.
        self.count = 0
        self.rejected_by: list[int] = []
        # Whether any verdict stands for trouble.
        self.has_erred = False
        # How often all rows were combined anew.
        self.combined = 0
        # How often filters that look beyond the node had news of some rows.
        self.news = 0
        # For whoever follows: rows combined since it last looked (None: all), whether other rows
        # fit than then, and whether rows may be among them that were not combined one by one.
        self.changed: list[int] | None = None
        self.moved = True
        self.swept = False

    @property
    def first(self) -> Places:
        """The place of the first filter that refuses a row."""
        if self._first is None:
            self._first = self._find_first()  # Most often nobody asks.
        return self._first

    def refresh(self, state: CycleState, pod: Pod) -> None:
        """Bring the verdicts up to date."""
        table = self._table
        position, nodes = self._log.position, table.node_changes.position
        if position == self._seen and not self._followed:
            return
        rows = self._log.since(self._seen)
        same = False
        if nodes == self._nodes_seen and rows is not None and len(rows) <= FEW:
            version = 0
            for memo in self._usage_memos:
                memo.follow(rows, self._seen, position)
                version += memo.version
            same = version == self._version
            if same and not self._followed:
                # In the usual case the row of the pod that was placed last still has room.
                if self.changed is not None:
                    self.changed += rows
                self._seen = position
                return
            self._version = version
            self.has_erred = self.has_erred or any(m.has_erred for m in self._usage_memos)
        else:
            self.has_erred = False
            for _, memo in self.memos:
                memo.refresh()
                if memo.has_erred:
                    self.has_erred = True
            if self._looks_around:
                rows = None
            self._version = sum([memo.version for memo in self._usage_memos])
        news: list[int] | None = []
        if self._followed:
            self._seen = -1  # Should a plugin raise below, the next look starts over.
            news = self._catch_up(state, pod)
        self._combine_rows(rows, news, same=same)
        self._seen, self._nodes_seen = position, nodes

    def _catch_up(self, state: CycleState, pod: Pod) -> list[int] | None:
        """Rows of which filters that look beyond the node have news; None if they are many."""
        few: dict[int, None] | None = {}
        for memo in self._followed:
            news = memo.catch_up(state, pod)
            if memo.has_erred:
                self.has_erred = True
            if news is None or len(news) > FEW:
                few = None
            elif few is not None:
                few.update(dict.fromkeys(map(int, news)))
        return None if few is None else list(few)

    def _combine_rows(self, rows: list[int] | None, news: list[int] | None, *, same: bool) -> None:
        """Combine the verdicts on rows that changed (`same`: theirs did not) or are in the news."""
        if rows is None or len(rows) > FEW:
            self._combine_all()
            self.changed = None
            return
        if news:
            self.news += 1
        looked_at = list(dict.fromkeys((*rows, *news))) if news else rows
        if self.changed is not None:
            self.changed += looked_at
        if news is None:
            # Their scores are what they were.
            self._combine_all()
            self.swept = True
            return
        for row in news if same else looked_at:
            self._combine(row)

    def _combine_all(self) -> None:
        table = self._table
        self.combined += 1
        fits, count = table.active_rows.copy(), table.node_count
        self.rejected_by = []
        for place, memo in self.memos:
            if memo.refuses:
                fits &= memo.codes == 0
                before, count = count, int(np.count_nonzero(fits))
                self._recount(place, before - count)
        self._first = None
        self.fits, self.count = fits, count
        self.moved = True

    def _find_first(self) -> Places:
        first = np.full(self._table.capacity, FITS, dtype=np.int16)
        for place, memo in reversed(self.memos):
            if memo.refuses:
                np.copyto(first, place, where=memo.codes != 0)
        np.copyto(first, NO_NODE, where=~self._table.active_rows)
        return first

    def _combine(self, row: int) -> None:
        place = NO_NODE
        if self._table.nodes[row] is not None:
            place = FITS
            for at, memo in self.memos:
                if memo.refuses and memo.codes.item(row):
                    place = at
                    break
        if self._first is not None:
            before = self._first.item(row)
            self._first[row] = place
        elif self.fits.item(row):
            before = FITS
        elif any(self.rejected_by):
            # Who refused the row before is not known any more.
            self._combine_all()
            return
        else:
            before = NO_NODE
        if place != before:
            self._recount(before, -1)
            self._recount(place, 1)
            if place == FITS or before == FITS:
                self.fits[row] = place == FITS
                self.moved = True

    def _recount(self, place: int, change: int) -> None:
        if place == FITS:
            self.count += change
        elif place != NO_NODE:
            self.rejected_by.extend([0] * (place + 1 - len(self.rejected_by)))
            self.rejected_by[place] += change
