"""Fitting: which rows fit a template, by verdicts that are kept, and who refuses the others.

In the usual case one pod was placed since the last look: then one row is asked about again, by the
filters that look at usage, whatever the number of nodes.
"""

from collections.abc import Sequence

import numpy as np

from moorage.framework.answers import FITS, NO_NODE, Places, tally
from moorage.framework.memo import FilterMemo
from moorage.framework.points import Depends
from moorage.framework.status import Mask
from moorage.nodes.table import NodeTable

# Up to so many changed rows are combined one by one.
FEW = 32


class Fitting:
    """See the module."""

    __slots__ = (
        "_first",
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
        "rejected_by",
    )

    def __init__(self, table: NodeTable, memos: Sequence[tuple[int, FilterMemo]]) -> None:
        self._table = table
        # The filters that take part, in order, by their places among all filters of the profile.
        self.memos = memos
        self.memo_at = dict(memos)
        depends = [memo.depends for _, memo in memos]
        self._usage_memos = [memo for _, memo in memos if memo.depends is Depends.USAGE]
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
        # For whoever follows: rows combined since it last looked (None: all), and whether other
        # rows fit than then.
        self.changed: list[int] | None = None
        self.moved = True

    @property
    def first(self) -> Places:
        """The place of the first filter that refuses a row."""
        if self._first is None:
            # Nobody refused any row so far; most often nobody asks either.
            self._first = np.where(self.fits, np.int16(FITS), np.int16(NO_NODE))
        return self._first

    def refresh(self) -> None:
        """Bring the verdicts up to date."""
        table = self._table
        position, nodes = table.changes.position, table.node_changes.position
        if position == self._seen:
            return
        rows = table.changes.since(self._seen)
        if nodes == self._nodes_seen and rows is not None and len(rows) <= FEW:
            version = 0
            for memo in self._usage_memos:
                memo.follow(rows, self._seen, position)
                version += memo.version
            if version == self._version:
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
        if rows is None or len(rows) > FEW:
            self._combine_all()
        else:
            for row in rows:
                self._combine(row)
        self._seen, self._nodes_seen = position, nodes

    def _combine_all(self) -> None:
        table = self._table
        self.combined += 1
        if any(memo.refuses for _, memo in self.memos):
            self._first = first = self._find_first()
            self.fits = first == FITS
            self.count = int(np.count_nonzero(self.fits))
            self.rejected_by = tally(first)
        else:
            self._first = None
            self.fits, self.count = table.active_rows.copy(), table.node_count
            self.rejected_by = []
        self.changed = None
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
        before = self.first.item(row)
        if place != before:
            self.first[row] = place
            self._recount(before, -1)
            self._recount(place, 1)
            if place == FITS or before == FITS:
                self.fits[row] = place == FITS
                self.moved = True
        if self.changed is not None:
            self.changed.append(row)

    def _recount(self, place: int, change: int) -> None:
        if place == FITS:
            self.count += change
        elif place != NO_NODE:
            self.rejected_by.extend([0] * (place + 1 - len(self.rejected_by)))
            self.rejected_by[place] += change
