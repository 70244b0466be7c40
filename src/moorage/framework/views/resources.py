"""ResourceViews: the views of one template that depend on a row's resources only.

A cluster has few kinds of nodes, and workloads few sizes of pods. So the resources of a row are
most often those that another row had before, and what the plugins said then is known: a lookup
instead of a call of each plugin.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from moorage.framework.points import Depends
from moorage.framework.views.view import View
from moorage.nodes.changes import UNREAD, RowLog
from moorage.nodes.table import NodeTable

if TYPE_CHECKING:
    from moorage.framework.views.filters import FilterView
    from moorage.framework.views.scores import ScoreView

# How many results are kept; then all are dropped, as a cluster with that many has few repetitions.
MOST_KNOWN = 4096
# Looking up so many rows takes less time than recomputing all, whatever the number of rows.
MOST_LOOKUPS = 64


class ResourceViews:
    """See the module."""

    def __init__(self, table: NodeTable, views: "Sequence[FilterView | ScoreView]") -> None:
        self.table = table
        self.views = views
        # The values of all views, by the number of a row's resources.
        self._known: dict[int, tuple[int, ...]] = {}

    @classmethod
    def of(
        cls, table: NodeTable, views: "Sequence[FilterView | ScoreView]"
    ) -> "ResourceViews | None":
        """Those of some views, if there are any."""
        found = [view for view in views if view.depends is Depends.RESOURCES]
        return cls(table, found) if found else None

    def covers(self, views: Iterable[View]) -> bool:
        """Whether all of these views are among them."""
        return all(any(view is each for each in self.views) for view in views)

    def refresh(self) -> None:
        """Bring the views up to date that few changes are missing from."""
        log, position = self.table.changes, self.table.changes.position
        since, rows, values = position, [], []
        for index, view in enumerate(self.views):
            cursor = view.cursor
            if cursor.position == position or not can_look_up(log, cursor.position):
                continue
            if cursor.position != since:
                since, rows = cursor.position, latest_rows(log, cursor.position)
                values = [self.values(row) for row in rows]
            if None not in values:
                for row, known in zip(rows, values, strict=True):
                    view.take_value(row, known[index])  # type: ignore[index]  # no None
                cursor.position = position

    def values(self, row: int) -> tuple[int, ...] | None:
        """The values of all views for a row; None if there are none, or none that hold."""
        number = self.table.resource_numbers.of(row)
        known = self._known.get(number)
        if known is None and self.table.nodes[row] is not None:
            values = [view.value_for(row) for view in self.views]
            if None not in values:
                if len(self._known) > MOST_KNOWN:
                    self._known.clear()
                known = self._known[number] = tuple(values)  # type: ignore[arg-type]  # no None
        return known


def can_look_up(log: RowLog, since: int) -> bool:
    """Whether few rows changed since a position, and they are known."""
    changes = log.position - since
    return since != UNREAD and changes <= MOST_LOOKUPS and changes <= len(log.entries)


def latest_rows(log: RowLog, since: int) -> list[int]:
    """The rows that changed since a position, each once."""
    changes = log.position - since
    if changes == 1:
        return [log.entries[-1]]
    return [*dict.fromkeys(islice(reversed(log.entries), changes))]
