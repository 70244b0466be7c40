"""RepeatedTotals: the totals of one template while nothing changes but the resources of rows.

Pods of one workload come one after the other, and each changes the resources of the row where the
last one went. What all plugins say about such a row follows from its resources, so the new total is
looked up. The views that it is the sum of are brought up to date when they are needed again.
"""

from collections.abc import Sequence

from moorage.framework.views.feasible import FeasibleView
from moorage.framework.views.filters import FITS, FilterView
from moorage.framework.views.parts import KnownScores
from moorage.framework.views.resources import (
    MOST_KNOWN,
    ResourceViews,
    can_look_up,
    latest_rows,
)
from moorage.framework.views.scores import NormalizedView
from moorage.framework.views.totals import TotalView


class RepeatedTotals:
    """See the module. Made when all views are up to date."""

    def __init__(
        self, feasible: FeasibleView, total: TotalView, by_resources: ResourceViews
    ) -> None:
        self.feasible = feasible
        self.total = total
        self._by_resources = by_resources
        self._number_of = by_resources.table.resource_numbers.of
        self._log = by_resources.table.changes
        self._position = self._log.position
        self._node_changes = by_resources.table.node_changes
        self._node_position = self._node_changes.position
        # By the number of a row's resources; it holds as long as the parts, also after other
        # changes, such as a node that is full.
        self._known: dict[int, KnownScores] = total.parts.known
        self._filters = [view for view in by_resources.views if isinstance(view, FilterView)]
        total.allow_ahead()

    @classmethod
    def of(
        cls, feasible: FeasibleView, total: TotalView, by_resources: ResourceViews
    ) -> "RepeatedTotals | None":
        """The totals of a template, if only nodes and resources matter for them."""
        # Normalised scores of nodes are the same as long as the same rows are feasible.
        scores = [
            view
            for view in total.live_inputs
            if not (isinstance(view, NormalizedView) and view.raw.is_by_node)
        ]
        if feasible.has_errors or not total.is_valid:
            return None
        covers = by_resources.covers([*feasible.live_inputs, *scores])
        return cls(feasible, total, by_resources) if covers else None

    @property
    def holds(self) -> bool:
        """Whether no node object changed, nor a verdict of a filter."""
        return self._node_position == self._node_changes.position and self.feasible.is_current

    def take_changes(self) -> bool:
        """Bring the totals up to date; False if that takes more than known scores."""
        log, position = self._log, self._log.position
        if self._position == position:
            return True
        rows: Sequence[int]
        if self._position + 1 == position and log.entries:
            rows = (log.entries[-1],)
        elif can_look_up(log, self._position):
            rows = latest_rows(log, self._position)
        else:
            return False
        fits, total, known, number_of = self.feasible.fits, self.total, self._known, self._number_of
        for row in rows:
            number = number_of(row)
            scores = known.get(number) or self._learn(row, number)
            if scores is None:
                return False
            if fits.item(row):
                total.take_total(row, scores)
            elif not all(view.fits(row) for view in self._filters):
                return False  # It may have become feasible.
        self._position = position
        return True

    def _learn(self, row: int, number: int) -> KnownScores | None:
        """The scores of a row with new resources; None if they are not valid, or it is rejected."""
        values = self._by_resources.values(row)
        if values is None:
            return None
        by_plugin: dict[str, int] = {}
        for view, value in zip(self._by_resources.views, values, strict=True):
            if not isinstance(view, FilterView):
                by_plugin[view.name] = value
            elif value != FITS:
                return None
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        found = self._known[number] = self.total.sum_of(by_plugin)
        return found
