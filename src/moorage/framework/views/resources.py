"""ResourceViews: the views of one template that depend on a row's resources only.

A cluster has few kinds of nodes, and workloads few sizes of pods. So the resources of a row are
most often those that another row had before, and what the plugins said then is known: a lookup
instead of a call of each plugin.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from moorage.api.pod import Pod
from moorage.framework.points import Depends
from moorage.framework.state import CycleState
from moorage.framework.views.view import View
from moorage.nodes.changes import FEW_ROWS, UNREAD, RowLog
from moorage.nodes.table import NodeTable

if TYPE_CHECKING:
    from moorage.framework.views.filters import FilterView
    from moorage.framework.views.scores import ScoreView

# How many results are kept; then all are dropped, as a cluster with that many has few repetitions.
MOST_KNOWN = 4096


class ResourceViews:
    """See the module."""

    def __init__(self, table: NodeTable, views: "Sequence[FilterView | ScoreView]") -> None:
        self._table = table
        self._log = table.changes
        self._views = views
        self._position = UNREAD
        # The values of all views, by the resources of a row.
        self._known: dict[tuple[int, ...], tuple[int, ...]] = {}

    @classmethod
    def of(
        cls, table: NodeTable, views: "Sequence[FilterView | ScoreView]"
    ) -> "ResourceViews | None":
        """Those of some views, if there are any."""
        found = [view for view in views if view.depends is Depends.RESOURCES]
        return cls(table, found) if found else None

    def covers(self, views: Iterable[View]) -> bool:
        """Whether all of these views are among them."""
        return all(any(view is each for each in self._views) for view in views)

    def refresh(self, state: CycleState, pod: Pod) -> None:
        """Bring all views up to date, unless too much changed: then they do it by themselves."""
        if self.take_known() is not None:
            return
        log, changes = self._log, self._log.position - self._position
        is_first, self._position = self._position == UNREAD, log.position
        if not log.entries:
            self._known.clear()  # Not only rows have changed.
        elif not is_first and changes <= FEW_ROWS and changes <= len(log.entries):
            self._learn(_latest(log, changes), state, pod)

    def take_known(self) -> Sequence[int] | None:
        """Bring the views up to date if all results are known; returns the rows that changed."""
        log, before, table, known = self._log, self._position, self._table, self._known
        position = log.position
        changes = position - before
        if changes == 0:
            return ()
        if before == UNREAD or changes > FEW_ROWS or changes > len(log.entries):
            return None
        rows = [log.entries[-1]] if changes == 1 else _latest(log, changes)
        results = [known.get(table.resources_of(row)) for row in rows]
        if None in results:
            return None
        for row, values in zip(rows, results, strict=True):
            for view, value in zip(self._views, values, strict=True):  # type: ignore[arg-type]  # no None
                if view.cursor.position == before:
                    view.take_value(row, value)
        for view in self._views:
            if view.cursor.position == before:
                view.cursor.position = position
            elif view.cursor.position != position:
                return None  # It is further behind.
        self._position = position
        return rows

    def _learn(self, rows: Sequence[int], state: CycleState, pod: Pod) -> None:
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        for view in self._views:
            view.refresh(state, pod)
        for row in rows:
            values = [view.value_at(row) for view in self._views]
            if None not in values and self._table.nodes[row] is not None:
                key = self._table.resources_of(row)
                self._known[key] = tuple(values)  # type: ignore[arg-type]  # There is no None.


def _latest(log: RowLog, count: int) -> list[int]:
    """The latest rows of a log, each once."""
    return [*dict.fromkeys(islice(reversed(log.entries), count))]
