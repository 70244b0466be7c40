"""Kept answers: one plugin's verdicts or scores on every row, for one part of a pod.

Answers are shared by all pods that agree in what the plugin reads of them, and brought up to date
for the rows that changed since they were last looked at, as far as `depends` allows. A few rows
are asked in the per-node form, many in the whole-cluster form.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from moorage.api.pod import Pod
from moorage.errors import PluginError
from moorage.framework import calls, invoke
from moorage.framework.keeping import depends_of
from moorage.framework.points import Depends, RowArray
from moorage.framework.state import CycleState
from moorage.framework.status import SUCCESS, Codes, Mask, Scores, Status, Verdicts
from moorage.nodes.changes import RowLog
from moorage.nodes.domains import DENSE
from moorage.nodes.info import NodeInfo
from moorage.nodes.table import NodeTable

if TYPE_CHECKING:
    from moorage.framework.profile import Profile


class _Memo:
    """What verdicts and scores have in common: when they were last brought up to date."""

    def __init__(self, plugin: Any, state: CycleState, pod: Pod, profile: "Profile") -> None:
        self.plugin = plugin
        self.depends = depends_of(plugin)
        self.epoch = 0  # Grows when all rows were asked anew.
        self.state = state  # What the plugin wrote beforehand, for pods that agree in this part.
        self._pod = pod
        self._loops = profile.loops
        self._table: NodeTable = state.table
        self._log: RowLog = (
            self._table.changes if self.depends is Depends.USAGE else self._table.node_changes
        )
        self._seen = -1

    def refresh(self) -> None:
        """Bring the answers up to date."""
        position = self._log.position
        if position == self._seen:
            return
        rows = None if self.depends is Depends.NODES else self._log.since(self._seen)
        self._seen = -1  # Should a plugin raise below, the next look starts over.
        self._ask_again(rows)
        self._seen = position

    def _ask_again(self, rows: Sequence[int] | None) -> None:
        """Ask about rows where something changed; None is for all."""
        if rows is None or len(rows) > self._table.capacity:
            self.epoch += 1
            self._ask_all()
        elif len(rows) <= calls.FEW:
            for row in rows:
                if self._table.nodes[row] is not None:
                    self._ask_one(row)
        else:
            unique = np.unique(np.array(rows, dtype=np.intp))
            self._ask_some(unique[self._table.active_rows[unique]])

    def follow(self, rows: Sequence[int], before: int, position: int) -> None:
        """The same for somebody who knows which rows changed from one position to another."""
        if self._seen != before or len(rows) > calls.FEW:
            self.refresh()
            return
        self._seen = -1  # As above.
        nodes = self._table.nodes
        for row in rows:
            if nodes[row] is not None:
                self._ask_one(row)
        self._seen = position

    def _active(self) -> Any:
        return np.flatnonzero(self._table.active_rows)

    def _ask_all(self) -> None:
        raise NotImplementedError

    def _ask_some(self, rows: Any) -> None:
        raise NotImplementedError

    def _ask_one(self, row: int) -> None:
        raise NotImplementedError


class FilterMemo(_Memo):
    """A filter's verdict on every row, as codes; 0 fits."""

    def __init__(self, plugin: Any, state: CycleState, pod: Pod, profile: "Profile") -> None:
        super().__init__(plugin, state, pod, profile)
        self._one = profile.require(plugin, "filter")
        self._all = profile.method(plugin, "filter_all")
        # Made when the first row is refused.
        self._codes: Codes | None = None
        # False only if no row was refused since all rows were last asked.
        self.refuses = False
        self.version = 0  # Grows when any verdict may have changed.
        self._book = calls.Book()
        self._status_of: Any = None

    @property
    def codes(self) -> Codes:
        """The verdicts; 0 fits."""
        if self._codes is None:
            self._codes = np.zeros(self._table.capacity, dtype=np.int64)
        return self._codes

    @property
    def has_erred(self) -> bool:
        """Whether the plugin ever raised over one of the nodes."""
        return self._book.erred

    def status(self, code: int) -> Status:
        """The status that a code stands for."""
        status: Status = self._book.status(code) if code < 0 else self._status_of(code)
        return status.by(self.plugin.name)

    def _ask_all(self) -> None:
        if self._all is not None:
            verdicts = invoke.filter_rows(self._all, self.state, self._pod, self._table)
            self._codes, self.refuses = None, verdicts.refuses
            if self.refuses:
                # It will be written to; a plugin may keep its own.
                self._codes = verdicts.codes.copy()
            self._status_of = verdicts.status_of
            self._book.erred = self._book.erred or bool(verdicts.troubles)
        else:
            self._codes, self.refuses = None, False
            self._loop(self._active())
        self.version += 1

    def _ask_some(self, rows: Any) -> None:
        if self._all is not None:
            slice_ = self._table.slice(rows)
            verdicts = invoke.filter_rows(self._all, self.state, self._pod, slice_)
            self.codes[rows] = self._translated(verdicts)
            self.refuses = self.refuses or verdicts.refuses
        else:
            self.codes[rows] = 0
            self._loop(rows)
        self.version += 1

    def _ask_one(self, row: int) -> None:
        node = NodeInfo(self._table, row)
        status = invoke.filter_one(self._one, self.state, self._pod, node)
        code = 0 if status is SUCCESS else self._book.code(status)
        if code:
            self.refuses = True
        if self.refuses and code != self.codes.item(row):
            self.codes[row] = code
            self.version += 1

    def _loop(self, rows: Any) -> None:
        self._loops.add(self.plugin.name, "filter", len(rows))
        found = calls.filter_loop(self._one, self.state, self._pod, rows.tolist(), self._book)
        for row, code in found.items():
            self.codes[row] = code
        self.refuses = self.refuses or bool(found)

    def _translated(self, verdicts: Verdicts) -> Codes:
        """Codes of a later answer in terms of the first one's."""
        if verdicts.status_of == self._status_of:
            return verdicts.codes
        codes = np.zeros_like(verdicts.codes)
        for code in np.unique(verdicts.codes):
            if code:
                codes[verdicts.codes == code] = self._book.code(verdicts.status_of(int(code)))
        return codes


class FollowedMemo(FilterMemo):
    """The verdicts of a filter that looks beyond the node, and says where they may have changed."""

    def __init__(self, plugin: Any, state: CycleState, pod: Pod, profile: "Profile") -> None:
        super().__init__(plugin, state, pod, profile)
        self._told: Any = None
        self._news = profile.require(plugin, "filter_changes")

    def refresh(self) -> None:
        """They are up to date once they have caught up."""

    def catch_up(self, state: CycleState, pod: Pod) -> Sequence[int] | RowArray | None:
        """Bring the verdicts up to date; returns the rows that were asked about, None for all."""
        self.state, self._pod = state, pod
        log, seen, told = self._log, self._seen, self._told
        changed = () if seen == log.position else log.since(seen)
        self._seen, self._told = -1, None  # As above.
        told, news = invoke.filter_changes(self._news, state, pod, told)
        rows: Sequence[int] | RowArray | None = news
        if news is None or changed is None:
            rows = None
        elif changed or len(news) <= calls.FEW:
            rows = [*news.tolist(), *changed]
        if isinstance(rows, np.ndarray):
            if len(rows) * DENSE > self._table.capacity:
                self._ask_all()
            else:
                self._ask_some(rows)
        elif rows is None or rows:
            self._ask_again(rows)
        self._seen, self._told = log.position, told
        return rows


class ScoreMemo(_Memo):
    """A score's raw points for every row."""

    def __init__(self, plugin: Any, state: CycleState, pod: Pod, profile: "Profile") -> None:
        super().__init__(plugin, state, pod, profile)
        self._one = profile.require(plugin, "score")
        self._all = profile.method(plugin, "score_all")
        self.raw: Scores = np.zeros(0, dtype=np.int64)
        # The one value that all rows have, if so; looked for where it is likely.
        self.uniform: int | None = None
        self.version = 0  # Grows when any score changed.
        # Rows over which the plugin raised: of no concern unless such a node is feasible.
        self.troubles: dict[int, str] = {}

    def complain(self, fits: Mask) -> None:
        """Raise if the plugin did so over a node that fits."""
        for row in sorted(self.troubles):
            if fits[row]:
                raise PluginError(self.plugin.name, self.troubles[row])

    def _ask_all(self) -> None:
        self.troubles.clear()
        if self._all is not None:
            self.raw = invoke.score_rows(self._all, self.state, self._pod, self._table).copy()
        else:
            self.raw = np.zeros(self._table.capacity, dtype=np.int64)
            self._loop(self._active())
        if self.depends is not Depends.USAGE:
            self.uniform = int(self.raw[0]) if (self.raw == self.raw[0]).all() else None
        self.version += 1

    def _ask_some(self, rows: Any) -> None:
        if self._all is not None:
            slice_ = self._table.slice(rows)
            self.raw[rows] = invoke.score_rows(self._all, self.state, self._pod, slice_)
            for row in rows.tolist() if self.troubles else ():
                self.troubles.pop(row, None)
        else:
            self._loop(rows)
        self.version += 1
        if self.uniform is not None and not (self.raw[rows] == self.uniform).all():
            self.uniform = None

    def _ask_one(self, row: int) -> None:
        raw = self._score(row)
        if raw != self.raw.item(row):
            self.raw[row] = raw
            self.version += 1
            self.uniform = None

    def _loop(self, rows: Any) -> None:
        self._loops.add(self.plugin.name, "score", len(rows))
        for row in rows.tolist():
            self.raw[row] = self._score(row)

    def _score(self, row: int) -> int:
        if self.troubles:
            self.troubles.pop(row, None)
        try:
            return invoke.score_one(self._one, self.state, self._pod, NodeInfo(self._table, row))
        except PluginError as trouble:
            self.troubles[row] = str(trouble)
            return 0
