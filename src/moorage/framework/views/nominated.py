"""NominatedPodsCheck: whether a pod fits nodes if the pods nominated to them were there already.

A pod has to fit beside the nominated pods of at least its own priority, other than itself. The
check is cached for a template as long as no filter looks beyond the node and its pods, so a
thousand nominations cost no more than the few that changed since the last cycle.
"""

from collections.abc import Hashable
from typing import TYPE_CHECKING

from moorage.framework.cluster import Cluster
from moorage.framework.status import SUCCESS
from moorage.framework.views.filters import RowStatuses
from moorage.framework.views.view import View
from moorage.nodes.changes import FEW_ROWS

if TYPE_CHECKING:
    from moorage.framework.what_if import WhatIf

# After so many changes all rows are checked together.
MOST_CHANGES = 100


class NominatedPodsCheck(View, RowStatuses):
    """Verdicts on rows with nominated pods; a row without any fits."""

    _what_if: "WhatIf"

    def __init__(self, cluster: Cluster) -> None:
        logs = [cluster.table.changes, cluster.nomination_changes]
        View.__init__(self, cluster.table, logs=logs)
        RowStatuses.__init__(self, "", cluster.table.capacity)
        self._key: Hashable = None
        # The row that is nominated to the pod itself: its verdict holds for this pod only.
        self._own: int | None = None

    @property
    def most_rows(self) -> int:
        return MOST_CHANGES

    def refresh_for(self, what_if: "WhatIf") -> None:
        """Bring the verdicts up to date for a pod."""
        self._what_if = what_if
        key, own = what_if.key, what_if.own
        if key is None or key != self._key or self._capacity != self.table.capacity:
            self.restart()
        self._key = None  # If a plugin raises, everything is computed again.
        own_rows = [row for row in (self._own, own) if row is not None]
        self.update(self.read_cursors(own_rows))
        self.commit()
        self._own, self._key = own, key

    def compute_row(self, row: int) -> bool:
        has_node = self.table.nodes[row] is not None
        return self.set(row, self._what_if.beside_nominated(row) if has_node else SUCCESS)

    def compute_all(self) -> None:
        what_if = self._what_if
        self.codes, self._capacity = None, self.table.capacity
        rows = what_if.nominated.rows()
        others = rows[rows != what_if.own] if what_if.own is not None else rows
        many = what_if.rows(others) if len(others) > FEW_ROWS else None
        if many is None:
            for row in rows.tolist():
                self.compute_row(row)
            return
        for status, positions in many.rejections_beside_nominated():
            self.all_codes()[others[positions]] = self.code(status)
        if what_if.own is not None:
            self.compute_row(what_if.own)
