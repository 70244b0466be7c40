"""PluginCycle: one pod's way through a single plugin, as the framework would lead it.

What comes back is looked at on the way: a method that returns something that its point does not
allow is an AssertionError that says so.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.framework import points
from moorage.framework.cluster import Cluster
from moorage.framework.points import Plugin
from moorage.framework.status import SUCCESS, Mask, Narrowed, Scores, Status, Verdicts, unresolvable
from moorage.nodes.rows import Rows
from moorage.nodes.table import NodeTable
from moorage.testing.builders import make_cluster, make_state


class Form(Enum):
    """The ways to ask for many rows."""

    NODE = "{}"
    TABLE = "{}_all"
    SLICE = "{}_all on a slice of the table"


class Answers(NamedTuple):
    """Everything that a plugin says of a pod, by node name."""

    found: Status | Narrowed
    statuses: dict[str, Status]
    raw: dict[str, int]

    def of(self, names: set[str]) -> "Answers":
        """As far as these nodes are concerned."""
        return Answers(
            self.found,
            {name: status for name, status in self.statuses.items() if name in names},
            {name: score for name, score in self.raw.items() if name in names},
        )


class PluginCycle:
    """One pod's way through a single plugin, up to the scores."""

    def __init__(
        self, plugin: Plugin, pod: Pod, cluster: Cluster | NodeTable, now: float = 0.0
    ) -> None:
        self.plugin: Any = plugin
        self.pod = pod
        self.state = make_state(pod, cluster, now)
        self.table = table = self.state.table
        self.found: Status | Narrowed = SUCCESS
        if hasattr(plugin, "pre_filter"):
            self.found = plugin.pre_filter(self.state, pod)
            if not isinstance(self.found, Narrowed):
                allow("pre_filter", self.found)
        passed = isinstance(self.found, Narrowed) or self.found.is_success
        self.filters = passed and points.implements(plugin, "filter")
        self.scores = points.implements(plugin, "score") and self.pre_score(table.active_rows)

    def pre_score(self, feasible: Mask) -> bool:
        """Whether the plugin is going to score."""
        if not hasattr(self.plugin, "pre_score"):
            return True
        status = self.plugin.pre_score(self.state, self.pod, feasible.copy())
        return allow("pre_score", status).is_success

    def forms(self, point: str) -> list[Form]:
        """The forms that the plugin has."""
        per_node = callable(getattr(self.plugin, point, None))
        whole = callable(getattr(self.plugin, f"{point}_all", None))
        return [Form.NODE] * per_node + [Form.TABLE, Form.SLICE] * whole

    def status(self, row: int) -> Status:
        """What becomes of a node in the end, narrowing and skipping included."""
        name = self.table.name(row)
        if isinstance(self.found, Narrowed):
            if name not in self.found.names:
                return unresolvable(f"node(s) didn't satisfy plugin(s) [{self.plugin.name}]")
        elif self.found.is_skip:
            return SUCCESS
        elif not self.found.is_success:
            return self.found
        return self.statuses([row], self.forms("filter")[0])[0] if self.filters else SUCCESS

    def statuses(self, rows: list[int], form: Form) -> list[Status]:
        """What the filter says of rows."""
        plugin = self.plugin
        if form is Form.NODE:
            asked = [plugin.filter(self.state, self.pod, self.table.info(row)) for row in rows]
            return [allow("filter", status) for status in asked]
        table, chosen = self._rows(rows, form)
        verdicts = plugin.filter_all(self.state, self.pod, table)
        assert isinstance(verdicts, Verdicts), f"filter_all must return Verdicts, not {verdicts!r}"
        codes = _entries("filter_all", verdicts.codes, len(table))[chosen].tolist()
        status_of = verdicts.status_of
        return [allow("filter_all", status_of(code)) if code else SUCCESS for code in codes]

    def raw(self, rows: list[int], form: Form) -> list[int]:
        """What the plugin scores rows, before normalising."""
        plugin = self.plugin
        if form is Form.NODE:
            asked = [plugin.score(self.state, self.pod, self.table.info(row)) for row in rows]
            for score in asked:
                assert type(score) is int, f"score must return an int, not {score!r}"
            return asked
        table, chosen = self._rows(rows, form)
        scores = plugin.score_all(self.state, self.pod, table)
        return [int(score) for score in _entries("score_all", scores, len(table))[chosen]]

    def answers(self) -> Answers:
        """All that the plugin says of nodes, in its first form."""
        rows = active_rows(self.table)
        names = [self.table.name(row) for row in rows]
        answers = Answers(self.found, {}, {})
        if self.filters:
            statuses = self.statuses(rows, self.forms("filter")[0])
            answers.statuses.update(zip(names, statuses, strict=True))
        if self.scores:
            raw = self.raw(rows, self.forms("score")[0])
            answers.raw.update(zip(names, raw, strict=True))
        return answers

    def _rows(self, rows: list[int], form: Form) -> tuple[Rows, Any]:
        """What to hand to a whole-cluster form, and where in its answer the rows are."""
        chosen = np.array(rows, dtype=np.intp)
        if form is Form.TABLE:
            return self.table, chosen
        return self.table.slice(chosen), slice(None)

    def normalized(self, raw: list[int]) -> list[int]:
        """The scores that count, with these nodes being all that are feasible."""
        plugin = self.plugin
        scores: Scores = np.array(raw, dtype=np.int64)
        if hasattr(plugin, "normalize_score"):
            scores = plugin.normalize_score(self.state, self.pod, scores.copy())
            return [int(score) for score in _entries("normalize_score", scores, len(raw))]
        normalizer = getattr(plugin, "normalizer", None)
        if normalizer is None:
            return raw
        summary = normalizer.summarize(scores)
        singly = [int(normalizer.apply(score, summary)) for score in raw]
        together = [int(score) for score in normalizer.apply(scores, summary)]
        assert singly == together, (
            f"normalizer.apply gives {together} for an array of scores and {singly} for its "
            "elements one by one; the framework uses both ways"
        )
        return together


class Ran(NamedTuple):
    """What a plugin said of a node; scores are None where it gives none."""

    status: Status
    score: int | None
    raw: int | None


def run_plugin(
    plugin: Plugin,
    pod: Pod,
    node: Node,
    *,
    others: Iterable[Node] = (),
    pods: Iterable[Pod] = (),
    objects: Iterable[KubeObject] = (),
) -> Ran:
    """What a plugin says of a node, from pre_filter to the normalised score.

    `others` are further nodes of the cluster, `pods` run on any of them, `objects` are neither.
    The score is normalised among all these nodes and given even where the filter refuses, so that
    one example shows both.
    """
    cluster = make_cluster([node, *others], pods, objects)
    cycle, table = PluginCycle(plugin, pod, cluster), cluster.table
    row = table.row_of[node.name]
    if not cycle.scores:
        return Ran(cycle.status(row), None, None)
    rows = active_rows(table)
    raw = cycle.raw(rows, cycle.forms("score")[0])
    here = rows.index(row)
    return Ran(cycle.status(row), cycle.normalized(raw)[here], raw[here])


def active_rows(table: NodeTable) -> list[int]:
    """The rows that have a node."""
    return [int(row) for row in np.flatnonzero(table.active_rows)]


def _entries(method: str, values: Any, rows: int) -> Any:
    assert isinstance(values, np.ndarray), f"{method} must return an array, not {values!r}"
    assert values.dtype.kind in "iu", f"{method} must return integers, not {values.dtype}"
    assert values.shape == (rows,), (
        f"{method} must return one entry per row of the table that it is given, {rows} of them, "
        f"not an array of shape {values.shape}"
    )
    return values


def allow(method: str, status: Status) -> Status:
    """The status, if it is one that the method may return."""
    assert isinstance(status, Status), (
        f"{method} must return a Status, as mp.SUCCESS or mp.unschedulable(...), not {status!r}"
    )
    codes = points.METHODS[method].codes
    assert status.code in codes, (
        f"{method} must not return {status.code.label}; allowed here: "
        + ", ".join(code.label for code in codes)
    )
    return status
