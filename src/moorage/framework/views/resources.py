"""ResourceViews: the views of one template that depend on a row's resources only.

A cluster has few kinds of nodes, and workloads few sizes of pods. So the resources of a row are
most often those that another row had before, and what the plugins said then is known: a lookup
instead of a call of each plugin.
"""

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from moorage.api.pod import Pod
from moorage.framework.points import Depends
from moorage.framework.state import CycleState
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

    def refresh(self, state: CycleState, pod: Pod) -> None:
        """Bring all views up to date where the results for the rows that changed are known."""
        log, before, position = self._log, self._position, self._log.position
        changes = position - before
        if changes == 0:
            return
        self._position = position
        if before == UNREAD or changes > FEW_ROWS or changes > len(log.entries):
            if not log.entries:
                self._known.clear()  # Not only rows have changed.
            return
        rows = [log.entries[-1]] if changes == 1 else _latest(log, changes)
        keys = [self._table.resources_of(row) for row in rows]
        known = self._known
        results = [known.get(key) for key in keys]
        if None in results:
            self._learn(rows, keys, state, pod)
            return
        for index, view in enumerate(self._views):
            cursor = view.cursor
            if cursor.position == before:
                for row, values in zip(rows, results, strict=True):
                    view.take_value(row, values[index])  # type: ignore[index]  # There is no None.
                cursor.position = position

    def _learn(
        self, rows: Sequence[int], keys: Sequence[tuple[int, ...]], state: CycleState, pod: Pod
    ) -> None:
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        for view in self._views:
            view.refresh(state, pod)
        for row, key in zip(rows, keys, strict=True):
            values = [view.value_at(row) for view in self._views]
            if None not in values and self._table.nodes[row] is not None:
                self._known[key] = tuple(values)  # type: ignore[arg-type]  # There is no None.


def _latest(log: RowLog, count: int) -> list[int]:
    """The latest rows of a log, each once."""
    return [*dict.fromkeys(islice(reversed(log.entries), count))]
