"""RowStatuses: a status for every row, as codes. FilterView: one filter plugin's verdicts, for one
part of a pod; shared by all templates that agree in what the plugin reads of it.
"""

from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from moorage.api.pod import Pod
from moorage.errors import PluginError, shown
from moorage.framework import invoke
from moorage.framework.points import BY_PODS, FILTER_ERROR, depends_of
from moorage.framework.state import CycleState
from moorage.framework.status import (
    ONLY_SUCCESS,
    SUCCESS,
    Code,
    Codes,
    Mask,
    Status,
    Verdicts,
    error,
)
from moorage.framework.views.view import RowArray, View
from moorage.nodes.info import NodeInfo

if TYPE_CHECKING:
    from moorage.framework.profile import Profile

FITS = 0


def worded(status: Status) -> Status:
    """The status of a filter, an error as Kubernetes words it."""
    if status is SUCCESS or status.is_success or status.is_rejected:
        return status
    return error(FILTER_ERROR.format(plugin=status.plugin, reason=status.message), status.plugin)


class RowStatuses:
    """A status per row. `codes` is None while every row fits.

    Code 0 is a row that fits. A negative code is a status that was interned here. A positive code
    is one of a plugin's own, resolved by the `status_of` of its Verdicts.
    """

    def __init__(self, name: str, capacity: int) -> None:
        # The name that statuses are given; empty: they keep theirs.
        self.name = name
        self.codes: Codes | None = None
        self.has_errors = False
        self.status_of: Callable[[int], Status] | None = None
        self._capacity = capacity
        self._interned: dict[Status, int] = {}
        self._statuses: list[Status] = []

    def code(self, status: Status) -> int:
        """The code of a status; 0 for success."""
        if status is SUCCESS or status.code is Code.SUCCESS:
            return FITS
        code = self._interned.get(status)
        if code is None:
            self._statuses.append(status)
            self.has_errors = self.has_errors or not status.is_rejected
            code = self._interned[status] = -len(self._statuses)
        return code

    def set(self, row: int, status: Status) -> bool:
        """Write one row; whether it changed."""
        code = FITS if status is SUCCESS else self.code(status)
        codes = self.codes
        if codes is None:
            if code == FITS:
                return False
            codes = self.all_codes()
        if code == codes.item(row):
            return False
        codes[row] = code
        return True

    def all_codes(self) -> Codes:
        """The codes, made if there are none yet."""
        if self.codes is None:
            self.codes = np.zeros(self._capacity, dtype=np.int64)
        return self.codes

    @property
    def rejects(self) -> Mask:
        """The rows that do not fit."""
        rejects: Mask = self.all_codes() != FITS
        return rejects

    def status(self, row: int) -> Status:
        """The status of a row."""
        return SUCCESS if self.codes is None else self.status_for(self.codes.item(row))

    def status_for(self, code: int) -> Status:
        """The status that a code stands for."""
        if code == FITS:
            return SUCCESS
        status = self._statuses[-code - 1] if code < 0 else self._resolved(code)
        return status.by(self.name) if self.name else status

    def _resolved(self, code: int) -> Status:
        """The status that a plugin's own code stands for."""
        assert self.status_of is not None
        try:
            status: Any = invoke.guard(self.name, "status_of: ", self.status_of, code)
        except PluginError as failure:
            status = error(str(failure))
        if isinstance(status, Status) and status.is_rejected:
            return status
        self.has_errors = True
        if isinstance(status, Status) and status.code is Code.ERROR:
            return status
        return error(f"status_of returned {shown(status)}, which is no rejection")

    def take(self, verdicts: Verdicts) -> None:
        """Replace all rows by the result of a whole-cluster form."""
        # Copied because single rows are written to it, and a plugin may keep its own array.
        self.codes = verdicts.codes.copy() if verdicts.rejects else None
        self._capacity = len(verdicts)
        self.status_of = verdicts.status_of
        if verdicts.errors:
            self.has_errors = True

    def at(self, rows: RowArray) -> "RowStatuses":
        """The statuses of some rows, by their position among these."""
        found = copy(self)
        found.codes = None if self.codes is None else self.codes[rows]
        found._capacity = len(rows)
        return found

    def by_status(self, rows: RowArray) -> list[tuple[Status, RowArray]]:
        """The distinct statuses of rows that do not fit, each with its rows."""
        found_codes = self.all_codes()[rows]
        if len(rows) and (found_codes == found_codes[0]).all():  # Most often there is one.
            status = self.status(int(rows[0]))
            return [] if status is SUCCESS else [(status, rows)]
        codes, at = np.unique(found_codes, return_inverse=True)
        found = [rows[at == i] for i, code in enumerate(codes.tolist()) if code != FITS]
        return [(self.status(int(same[0])), same) for same in found]


class PluginView(View):
    """A view whose values come from one plugin's method in its two forms.

    `state` has what the plugin wrote in pre_filter and pre_score, for pods that agree in what it
    reads. A view that is not retained is evaluated with the state of each cycle.
    """

    def __init__(self, profile: "Profile", plugin: Any, point: str, state: CycleState) -> None:
        self.depends = depends_of(plugin)
        table = state.table
        reads_usage = self.depends in BY_PODS
        self._read_log = table.changes if reads_usage else table.node_changes
        View.__init__(self, table, logs=[self._read_log])
        (self.cursor,) = self._cursors
        self.state = state
        self._pod: Pod = state.template.exemplar
        self._point = point
        self._one = profile.require(plugin, point)
        self._all = profile.method(plugin, f"{point}_all")
        self.has_array_form = self._all is not None
        self._loops = profile.loops
        # Whether the array form raised: then it is called again at the next refresh.
        self.has_failed = False

    def refresh(self, state: CycleState, pod: Pod) -> None:
        # As in a view with inputs, in fewer steps.
        cursor, log = self.cursor, self._read_log
        if cursor.position == log.position:
            return
        if cursor.position + 1 == log.position and log.entries:
            self.take_in(log.entries[-1])
            cursor.position = log.position
        else:
            self.update(self.read_cursors())
            self.commit()
            if self.has_failed:
                self.restart()

    @property
    def is_by_node(self) -> bool:
        return self.depends not in BY_PODS

    @property
    def most_rows(self) -> int:
        # Without an array form, computing all rows is a loop over all nodes.
        return super().most_rows if self._all is not None else self.table.capacity

    def compute_each(self, rows: RowArray) -> None:
        """Compute rows in the per-node form, for lack of another one."""
        self._loops.add(self._one.name, self._point, len(rows))
        for row in rows.tolist():
            self.compute_row(row)


class FilterView(PluginView, RowStatuses):
    """A filter's verdict on every row."""

    def __init__(self, profile: "Profile", plugin: Any, state: CycleState) -> None:
        PluginView.__init__(self, profile, plugin, "filter", state)
        RowStatuses.__init__(self, plugin.name, self.table.capacity)

    def evaluate(self, state: CycleState, pod: Pod) -> None:
        """Compute all verdicts for one cycle, in the array form."""
        assert self._all is not None
        self._take_all(state, pod)

    def evaluate_each(self, state: CycleState, pod: Pod, open_rows: Mask) -> None:
        """Compute the verdicts on some rows for one cycle, one by one."""
        self.state, self._pod = state, pod
        self._clear()
        self.compute_each(np.flatnonzero(open_rows))

    def take_value(self, row: int, code: int) -> None:
        """Take a known verdict on a row that changed."""
        codes = self.codes
        if codes is None:
            if code == FITS:
                return
            codes = self.all_codes()
        if code != codes.item(row):
            codes[row] = code
            self.log.add(row)

    def value_for(self, row: int) -> int:
        """The verdict on a row, as a code, computed anew."""
        return self.code(self._status(row))

    def fits(self, row: int) -> bool:
        """Whether a row fitted at the last refresh."""
        return self.codes is None or self.codes.item(row) == FITS

    def compute_row(self, row: int) -> bool:
        if self.table.nodes[row] is None:
            return False
        return self.set(row, self._status(row))

    def _status(self, row: int) -> Status:
        return invoke.filter_one(self._one, self.state, self._pod, NodeInfo(self.table, row))

    def compute_all(self) -> None:
        if self._all is None:
            self._clear()
            self.compute_each(np.flatnonzero(self.table.active_rows))
        else:
            self._take_all(self.state, self._pod)

    def _take_all(self, state: CycleState, pod: Pod) -> None:
        """Take the verdicts of the array form; if it raises, that is the error of every row.

        It matters for rows that no earlier filter rejects.
        """
        assert self._all is not None
        try:
            verdicts = invoke.filter_rows(self._all, state, pod, self.table)
        except PluginError as failure:
            codes = np.ones(self.table.capacity, dtype=np.int64)
            reason = failure.reason
            verdicts = Verdicts(codes=codes, status_of=ONLY_SUCCESS, errors={1: reason})
        self.take(verdicts)
        self.has_failed = bool(verdicts.errors)

    def _clear(self) -> None:
        self.codes, self._capacity = None, self.table.capacity


class PlacementFilterView(FilterView):
    """The verdicts of a filter that looks beyond the node and reports where they may have changed.

    Its state is that of the current cycle, because the plugin's pre_filter runs in every cycle.
    """

    def __init__(self, profile: "Profile", plugin: Any, state: CycleState) -> None:
        super().__init__(profile, plugin, state)
        self._changes = profile.require(plugin, "filter_changes")
        # What the plugin's last report was paired with; None makes it report everything.
        self._since: Any = None

    @property
    def is_by_node(self) -> bool:
        return False

    def refresh(self, state: CycleState, pod: Pod) -> None:
        self.state, self._pod = state, pod
        since, self._since = self._since, None  # If the plugin raises, everything is recomputed.
        since, reported = invoke.filter_changes(self._changes, state, pod, since)
        if reported is None or len(reported) or not self._cursors[0].is_current:
            self.update(self.read_cursors(None if reported is None else reported.tolist()))
            self.commit()
        self._since = None if self.has_failed else since
