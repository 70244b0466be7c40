"""The score: weighted counts per row, updated as pods come and go; normalised to 0 to 100."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from moorage import plugin as mp

# Up to so many rows with points, only these rows are returned (`score_compact`).
MOST_SPARSE_ROWS = 256
# Up to so many domains of a single topology key, scores are returned by domain.
MOST_DOMAINS = 128


class AffinityScores:
    """Weighted counts, per domain of every topology key and summed up per row."""

    def __init__(self, weighted: Iterable[tuple[int, mp.DomainView]], table: mp.NodeTable) -> None:
        self._table = table
        self._nodes = mp.Cursor(table.node_changes)
        self._views: dict[mp.LabelColumn, list[tuple[int, mp.DomainView]]] = {}
        for weight, view in weighted:
            self._views.setdefault(view.column, []).append((weight, view))
        self._cursors = {
            column: [mp.Cursor(view.moved) for _, view in views]
            for column, views in self._views.items()
        }
        self._count()

    def _count(self) -> None:
        """Recount all rows."""
        cursors: list[mp.Cursor[Any]] = [self._nodes, *chain(*self._cursors.values())]
        for cursor in cursors:
            cursor.changed()
            cursor.commit()
        self._by_key: dict[mp.LabelColumn, NDArray[np.int64]] = {}
        for column, views in self._views.items():
            points = sum([weight * view.sums for weight, view in views])
            assert isinstance(points, np.ndarray), "there is a view for every column"
            self._by_key[column] = points
        self._by_domain = self._find_by_domain()
        self._sparse: dict[int, int] | None = None
        if self._by_domain is None:
            self._raw = self._add_up()
            self._find_sparse()

    def _find_by_domain(self) -> mp.ScoresByGroup | None:
        """The scores by domain, if there is one topology key and it has few."""
        (column, points), *others = self._by_key.items()
        if others or len(points) > MOST_DOMAINS:
            return None
        sizes = np.bincount(column.codes, minlength=len(points))
        return mp.ScoresByGroup(points, sizes, column.codes)

    def _add_up(self) -> mp.Scores:
        first, *others = [points.take(column.codes) for column, points in self._by_key.items()]
        return sum(others, first)

    def _find_sparse(self) -> None:
        """The rows that have any points, if they are few."""
        self._sparse = None
        if np.count_nonzero(self._raw) <= MOST_SPARSE_ROWS:
            rows = np.flatnonzero(self._raw)
            self._sparse = dict(zip(rows.tolist(), self._raw[rows].tolist(), strict=True))

    def refresh(self) -> None:
        """Recount the domains whose number of pods has changed."""
        if not self._nodes.is_current:
            self._count()
            return
        for column, cursors in self._cursors.items():
            stale = [cursor for cursor in cursors if cursor.position != cursor.log.position]
            moved: dict[int, int] = {}
            for cursor in stale:
                domains = cursor.changed()
                if domains is None or len(domains) > mp.FEW_ROWS:
                    self._count()
                    return
                moved.update(domains)
            for code, row in moved.items():
                self._move(column, code, row)
            for cursor in stale:
                cursor.commit()

    def _move(self, column: mp.LabelColumn, code: int, row: int) -> None:
        points = self._by_key[column]
        after = sum([weight * view.sums.item(code) for weight, view in self._views[column]])
        change = after - points.item(code)
        if not change:
            return
        points[code] = after
        if self._by_domain is not None:
            return
        if column.sizes[code] > 1:
            self._raw[column.codes == code] += change
            self._find_sparse()
            return
        total = self._raw.item(row) + change
        self._raw[row] = total
        if self._sparse is None:
            return
        self._sparse[row] = total
        if not total:
            del self._sparse[row]
        elif len(self._sparse) > MOST_SPARSE_ROWS:
            self._sparse = None

    def of(self, node: mp.NodeInfo) -> int:
        """A node's points: the sum over the domains that it is in."""
        row = node.row
        domains = [(points, column.codes.item(row)) for column, points in self._by_key.items()]
        return sum([points.item(code) for points, code in domains])

    def of_all(self, rows: mp.Rows) -> mp.Scores:
        """The points of many nodes; not to be written to."""
        return rows.take(self._raw if self._by_domain is None else self._add_up())

    @property
    def compact(self) -> mp.ScoresByGroup | mp.SparseScores | None:
        """The points by domain, or of the nodes that have any, if there are few of them."""
        return self._by_domain if self._sparse is None else mp.SparseScores(self._sparse, 0)


class MinMax(Struct, frozen=True):
    """The least gets 0 and the most 100; where all are equal, all get 0.

    In floating point, division first, cut off and not rounded: 29 of 100 becomes 28.
    """

    def summarize(self, feasible: mp.Scores) -> tuple[int, int]:
        """The least and the most."""
        return (int(feasible.min()), int(feasible.max())) if len(feasible) else (0, 0)

    def apply(self, raw: Any, summary: tuple[int, int]) -> Any:
        """One score or an array of them."""
        least, most = summary
        if least == most:
            return raw * 0
        scaled = float(mp.BEST) * ((raw - least) / (most - least))
        return scaled.astype(np.int64) if isinstance(scaled, np.ndarray) else int(scaled)
