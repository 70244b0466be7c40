"""View: values per row, derived from change logs and kept up to date row by row.

    ChangeLog    rows that changed, in order                     nodes/changes.py
    Cursor       one reader's position in a log                  nodes/changes.py
    View         reads logs through cursors, recomputes the rows that changed, and publishes the
                 rows whose value changed in a log of its own, for the views that read it

A view never writes into its inputs. Whether rows are recomputed one by one or all together is
decided in `View.update` and nowhere else.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.framework.state import CycleState
from moorage.nodes.changes import FEW_ROWS, UNREAD, ChangeLog, Cursor
from moorage.nodes.table import NodeTable

RowArray = NDArray[np.intp]
# Rows that changed; None stands for all of them.
Changed = Sequence[int] | None

# Recomputing one row costs about as much as so many rows of an array operation.
ROW_COST = 256
# There may be thousands of views. A reader that falls further behind recomputes everything.
LONGEST_LOG = 1024


class View:
    """Values per row. A subclass defines how one row and how all rows are computed."""

    def __init__(
        self, table: NodeTable, inputs: Sequence["View"] = (), logs: Sequence[ChangeLog[int]] = ()
    ) -> None:
        self.table = table
        self.log: ChangeLog[int] = ChangeLog(LONGEST_LOG)
        self._inputs = inputs
        self._cursors = [Cursor(log) for log in (*[view.log for view in inputs], *logs)]
        self._node_changes, self._node_position = table.node_changes, UNREAD
        self._find_live()

    def _find_live(self) -> None:
        """Find what may change without a change of a node object."""
        by_node = {id(view.log) for view in self._inputs if view.is_by_node}
        by_node.add(id(self._node_changes))
        self.live_inputs = [view for view in self._inputs if not view.is_by_node]
        self._live_cursors = [c for c in self._cursors if id(c.log) not in by_node]

    def refresh(self, state: CycleState, pod: Pod) -> None:
        """Bring the values up to date.

        `state` and `pod` are those of the current cycle; only plugins that look beyond the node
        read them. If a plugin raises, the cursors start over, and the next refresh recomputes
        everything.
        """
        if self._node_position == self._node_changes.position:
            if not self._live_cursors:
                return
            for view in self.live_inputs:
                view.refresh(state, pod)
            # As `read_cursors`, without calls, for the usual case: one pod was placed since the
            # last cycle, so what changed is one row, the same in every input.
            row: int | None = None
            for cursor in self._live_cursors:
                log = cursor.log
                if cursor.position != log.position:
                    if cursor.position + 1 != log.position or not log.entries:
                        break
                    newest = log.entries[-1]
                    if row is None:
                        row = newest
                    elif row != newest:
                        break
            else:
                if row is not None:
                    self.take_in(row)
                    for cursor in self._live_cursors:
                        cursor.position = cursor.log.position
                return
        else:
            for view in self._inputs:
                view.refresh(state, pod)
        position, self._node_position = self._node_changes.position, UNREAD
        self.update(self.read_cursors())
        self.commit()
        self._node_position = position

    @property
    def is_current(self) -> bool:
        """Whether nothing changed in the inputs, apart from node objects."""
        for cursor in self._live_cursors:  # noqa: SIM110 - a generator takes three times as long
            if cursor.position != cursor.log.position:
                return False
        return True

    def take_in(self, row: int) -> None:
        """Recompute the one row that changed."""
        try:
            if self.compute_row(row):
                self.log.add(row)
        except BaseException:
            self.restart()
            raise

    @property
    def is_by_node(self) -> bool:
        """Whether the values change only with node objects, as things stand."""
        return False

    def read_cursors(self, rows: Changed = ()) -> Changed:
        """The rows that changed in any input since the last commit, and these."""
        for cursor in self._cursors:
            rows = rows_of_both(rows, cursor.changed())
        return rows

    def commit(self) -> None:
        """The rows that `read_cursors` returned are up to date."""
        for cursor in self._cursors:
            cursor.commit()

    def restart(self) -> None:
        """Recompute everything at the next refresh."""
        self._node_position = UNREAD
        for cursor in self._cursors:
            cursor.restart()

    def update(self, rows: Changed) -> None:
        """Recompute rows one by one if they are few, else all rows together."""
        if rows is not None and (len(rows) <= FEW_ROWS or len(rows) <= self.most_rows):
            for row in dict.fromkeys(rows):
                if self.compute_row(row):
                    self.log.add(row)
            return
        self.compute_all()
        self.log.forget()

    @property
    def most_rows(self) -> int:
        """How many rows are recomputed one by one."""
        return FEW_ROWS + self.table.capacity // ROW_COST

    def compute_row(self, row: int) -> bool:
        """Recompute one row; whether its value changed."""
        raise NotImplementedError

    def compute_all(self) -> None:
        """Recompute every row."""
        raise NotImplementedError


def rows_of_both(rows: Changed, more: Changed) -> Changed:
    """The rows that changed according to either of two inputs."""
    if rows is None or more is None:
        return None
    if not rows or rows == more:
        return more
    return [*rows, *more] if more else rows
