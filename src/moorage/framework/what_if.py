"""WhatIf: filters run again in the middle of a pod's cycle, as if pods had come or gone.

WhatIf             one pod's questions in its cycle
HypotheticalNode   one node, on a copy of the node and of the cycle's state: any filter
HypotheticalVerdicts   many nodes in a few array operations: filters that read nodes and usage only
"""

from collections.abc import Hashable, Iterable, Sequence, Set
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from moorage.api import claims
from moorage.api.pod import Pod
from moorage.framework import invoke
from moorage.framework.invoke import PluginMethod
from moorage.framework.points import BY_PODS, Depends, depends_of
from moorage.framework.state import CycleState
from moorage.framework.status import SUCCESS, Mask, Status, Verdicts
from moorage.framework.views.feasible import NO_FILTER, FeasibleRows
from moorage.framework.views.filters import FITS, RowStatuses, worded
from moorage.framework.views.policy import BY_NODE
from moorage.framework.views.pre_filters import PreFiltered
from moorage.framework.views.view import RowArray
from moorage.nodes.hypothetical import HypotheticalRows, NumberedUsages, Numbers
from moorage.nodes.info import NodeCopy, NodeInfo
from moorage.nodes.nominated import NominatedPods
from moorage.nodes.usage import Placed, Usage

if TYPE_CHECKING:
    from moorage.framework.profile import Profile

# From near to far; a filter that reads nodes elsewhere may still read its own node's pods.
OF_NODE = (Depends.NODE, Depends.RESOURCES, Depends.USAGE)
REACHES = (*OF_NODE, Depends.NODES, Depends.PLACEMENTS, Depends.ANYTHING)
NOT_SETTLED = (NO_FILTER, SUCCESS)
# How many results are kept; then all are dropped, as a cluster with that many has few repetitions.
MOST_KNOWN = 1 << 14


class KnownStatuses:
    """The statuses of hypothetical nodes if they depend on resources only.

    A cluster has few kinds of nodes and sizes of pods, so the next row is often like an earlier
    one. A number stands for resources: that of a row, or a negative one for those of another number
    with a pod more or less.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, Usage, int], int] = {}
        # By template and number.
        self._statuses: dict[tuple[int, int], Status] = {}
        self._last = 0

    def shifted(self, number: int, others: Iterable[Placed], sign: int) -> int:
        """The number after pods came (1) or left (-1)."""
        for other in others:
            usage = other.usage
            found = self._numbers.get((number, usage, sign))
            if found is None:
                if len(self._numbers) >= MOST_KNOWN:
                    self._numbers.clear()
                found = self._last = self._last - 1
                self._numbers[number, usage, sign] = found
                self._numbers[found, usage, -sign] = number
            number = found
        return number

    def get(self, template: int, number: int) -> Status | None:
        """The status that is known for a template and resources."""
        return self._statuses.get((template, number))

    def put(self, template: int, number: int, status: Status) -> None:
        """Keep a status, unless it is an error."""
        if status is SUCCESS or status.is_rejected:
            if len(self._statuses) >= MOST_KNOWN:
                self._statuses.clear()
            self._statuses[template, number] = status


class WhatIfPlan(NamedTuple):
    """Which filters have to run again when pods come or go."""

    # The plugins that skip the pods.
    skipped: frozenset[str]
    # Filters that read node objects only: their verdicts hold.
    settled: frozenset[int]
    # The other filters, and all of them: their per-node methods, with their index.
    filters: tuple[tuple[int, PluginMethod], ...]
    all_filters: tuple[tuple[int, PluginMethod], ...]
    # Plugins that keep account of pods in their state (add_pod, remove_pod).
    accounting: tuple[Any, ...]
    # The furthest that any filter looks.
    reach: Depends
    # Whether the filters that run again can answer for many rows at once.
    in_columns: bool
    # What they answered, if they depend on resources only.
    known: KnownStatuses | None


def plan(profile: "Profile", skipped: Set[str]) -> WhatIfPlan:
    """The plan for pods that these plugins skip."""
    filters = [(i, p) for i, p in enumerate(profile.filters) if p.name not in skipped]
    methods = {i: profile.require(p, "filter") for i, p in filters}
    accounting = [
        p
        for p in profile.pre_filters
        if p.name not in skipped and (hasattr(p, "add_pod") or hasattr(p, "remove_pod"))
    ]
    again = [(i, p) for i, p in filters if depends_of(p) not in BY_NODE or p in accounting]
    in_columns = not accounting and all(
        depends_of(p) in BY_PODS and hasattr(p, "filter_all") for _, p in again
    )
    reaches = [Depends.NODE, *[depends_of(p) for _, p in filters]]
    reach = max(reaches + [Depends.PLACEMENTS] * bool(accounting), key=REACHES.index)
    indexes = {i for i, _ in again}
    by_resources = not accounting and all(depends_of(p) is Depends.RESOURCES for _, p in again)
    return WhatIfPlan(
        frozenset(skipped),
        frozenset(methods.keys() - indexes),
        tuple((i, methods[i]) for i, _ in again),
        tuple(methods.items()),
        tuple(accounting),
        reach,
        in_columns,
        KnownStatuses() if by_resources else None,
    )


class WhatIf:
    """One pod's questions about nodes as they might be."""

    __slots__ = ("_settled", "filtered", "nominated", "own", "plan", "pod", "profile", "state")

    def __init__(
        self,
        profile: "Profile",
        state: CycleState,
        pod: Pod,
        pre: PreFiltered,
        filtered: FeasibleRows | None,
        nominated: NominatedPods,
        own: int | None,
    ) -> None:
        self.profile = profile
        self.state = state
        self.pod = pod
        # The verdicts on nodes as they are, once filters have run.
        self.filtered = filtered
        self.nominated = nominated
        # The row that is nominated to this pod.
        self.own = own
        # Which filters run again.
        self.plan = profile.what_if_plan(pre.skipped)
        # The settled filters that reject a row, once they were asked for.
        self._settled: list[tuple[int, RowStatuses]] | None = None

    def settled(self, row: int) -> tuple[int, Status]:
        """The first settled filter that rejects a row, with its verdict."""
        if self._settled is None:
            filters = () if self.filtered is None else self.filtered.filters
            settled = self.plan.settled
            self._settled = [(i, s) for i, s in filters if s.codes is not None and i in settled]
        for index, statuses in self._settled:
            status = statuses.status(row)
            if status is not SUCCESS:
                return index, worded(status)
        return NOT_SETTLED

    @property
    def key(self) -> Hashable:
        """While it is the same, answers for the template hold on rows that do not change.

        None: a filter reads more than the cluster, so that no answer outlives the cycle.
        """
        skipped, reach = self.plan.skipped, self.plan.reach
        if reach in OF_NODE:
            return skipped
        cluster = self.profile.cluster
        nodes = cluster.table.node_changes.position
        match reach:
            case Depends.NODES:
                return skipped, nodes
            case Depends.PLACEMENTS:
                # Pods of one template may have other claims, which such a filter may read.
                nominations = cluster.nomination_changes.position
                pods, others = cluster.table.changes.position, cluster.version
                return skipped, nodes, pods, nominations, others, *claims.names_of(self.pod)
        return None

    def node(self, row: int) -> "HypotheticalNode":
        """One node; the pod has to fit it beside nominated pods and without them."""
        return HypotheticalNode(self, row, self.nominated.beside(self.pod, row))

    def rows(self, rows: RowArray) -> "HypotheticalVerdicts | None":
        """Many nodes, but not the pod's own; None if a filter cannot answer in columns."""
        if self.filtered is None or not self.plan.in_columns:
            return None
        assert self.own is None or self.own not in rows, "the pod's own row is asked for alone"
        return HypotheticalVerdicts(self, self.filtered, rows)

    def beside_nominated(self, row: int) -> Status:
        """Whether the pod fits a node if the pods nominated to it were there."""
        others = self.nominated.beside(self.pod, row)
        return HypotheticalNode(self, row).status_with(others) if others else SUCCESS


class HypotheticalNode:
    """One node as it would be with pods added or removed.

    Verdicts of filters that do not depend on pods are taken from the cycle, if it has them. If the
    others depend on resources only, the node is copied when a status is not known yet.
    """

    def __init__(self, what_if: WhatIf, row: int, nominated: Sequence[Placed] = ()) -> None:
        self._what_if = what_if
        self._nominated = nominated
        plan, state = what_if.plan, what_if.state
        self._accounting = plan.accounting
        self._settled = settled = what_if.settled(row)
        # If no plugin keeps account of pods, the state needs no correction.
        self._state = state.clone() if plan.accounting else state
        # The node as it is.
        self.info = NodeInfo(state.table, row)
        self._copy: NodeCopy | None = None
        # Pods that came (1) or left (-1), of which the copy does not know.
        self._shifts: list[tuple[Placed, int]] = []
        self._known: KnownStatuses | None = None
        if settled is NOT_SETTLED and what_if.filtered is not None:
            self._known = plan.known
            self._number = state.table.resource_numbers.of(row)

    @property
    def node(self) -> NodeCopy:
        """The node as it would be."""
        if self._copy is None:
            self._copy = self.info.copy()
        for other, sign in self._shifts:
            if sign > 0:
                self._copy.add(other.pod, other.usage)
            else:
                self._copy.remove(other.pod)
        self._shifts.clear()
        return self._copy

    def add(self, other: Placed) -> None:
        """As if a pod were there."""
        self._shifts.append((other, 1))
        if self._known is not None:
            self._number = self._known.shifted(self._number, (other,), 1)
        elif self._accounting:
            self._account("add_pod", other)

    def remove(self, *others: Placed) -> None:
        """As if pods were gone."""
        if self._known is not None:
            self._number = self._known.shifted(self._number, others, -1)
        for other in others:
            self._shifts.append((other, -1))
            if self._accounting:
                self._account("remove_pod", other)

    def _account(self, name: str, other: Placed) -> None:
        for plugin in self._accounting:
            method = self._what_if.profile.method(plugin, name)
            if method is not None:
                method.call(self._state, self._what_if.pod, other, self.node)

    def status(self) -> Status:
        """The first rejection, or SUCCESS; both beside nominated pods and without them."""
        if self._nominated:
            beside = self.status_with(self._nominated)
            if beside is not SUCCESS:
                return beside
        known = self._known
        if known is None:
            return self._run_filters()
        template = self._state.template.serial
        status = known.get(template, self._number)
        if status is None:
            status = self._run_filters()
            known.put(template, self._number, status)
        return status

    def status_with(self, others: Sequence[Placed]) -> Status:
        """The first rejection if these pods came as well, or SUCCESS."""
        if self._known is not None:
            number = self._known.shifted(self._number, others, 1)
            status = self._known.get(self._state.template.serial, number)
            if status is not None:
                return status
        beside = copy(self)
        beside._nominated = ()
        beside._shifts = self._shifts.copy()
        if self._copy is not None:
            beside._copy = self._copy.copy()
        if self._accounting:
            beside._state = self._state.clone()
        for other in others:
            beside.add(other)
        return beside.status()

    def _run_filters(self) -> Status:
        """The first rejection, or SUCCESS itself."""
        until, settled = self._settled
        what_if, node = self._what_if, self.node
        plan, pod = what_if.plan, what_if.pod
        for index, method in plan.all_filters if what_if.filtered is None else plan.filters:
            if index > until:
                break
            status = invoke.filter_one(method, self._state, pod, node)
            if status is not SUCCESS and not status.is_success:
                return worded(status.by(method.name))
        return settled


class HypotheticalVerdicts:
    """Many nodes as they would be with pods added or removed; some have nominated pods.

    Rows are given back as positions among those that were asked for.
    """

    def __init__(self, what_if: WhatIf, filtered: FeasibleRows, rows: RowArray) -> None:
        plan, nominated = what_if.plan, what_if.nominated
        self._what_if = what_if
        self._filters = plan.filters
        self._rows = HypotheticalRows(what_if.state.table, rows)
        # The pod has to fit beside these, too: a list of numbers for every row.
        numbers = nominated.numbers(what_if.pod, rows)
        self._nominated = (numbers, nominated.book) if numbers.any() else None
        # The verdicts of settled filters, and the rows that all of them accept.
        # A filter that is not among them accepts every row.
        settled = [(i, found.at(rows)) for i, found in filtered.filters if i in plan.settled]
        self._settled = FeasibleRows((), settled)
        self._settled.combine(self._rows.active, len(rows))
        # What the filters say of the rows as they are now, without and with nominated pods.
        self._verdicts: dict[bool, list[Verdicts]] = {}

    def shift(self, numbers: Numbers, book: NumberedUsages, sign: int) -> None:
        """As if pods had come (1) or gone (-1), one or a list for every row."""
        self._rows.shift(numbers, book, sign)
        self._verdicts.clear()

    def fits(self) -> Mask:
        """Which rows the pod would fit, both beside nominated pods and without them."""
        fits = self._settled.fits.copy()
        for beside in (False,) if self._nominated is None else (False, True):
            for verdicts in self._verdicts_of(beside=beside):
                fits &= verdicts.codes == FITS
        return fits

    def rejections(self) -> list[tuple[Status, RowArray]]:
        """The distinct statuses of rows that the pod would not fit, with those rows."""
        alone, positions = self._combined(beside=False), np.arange(len(self._rows))
        if self._nominated is None:
            return _worded(alone.by_status(positions))
        beside = self._combined(beside=True)
        # What nominated pods lead to comes first.
        rest = alone.by_status(np.flatnonzero(beside.fits))
        return _worded([*beside.by_status(positions), *rest])

    def rejections_beside_nominated(self) -> list[tuple[Status, RowArray]]:
        """The same as far as it follows from nominated pods."""
        if self._nominated is None:
            return []
        positions = np.flatnonzero(self._nominated[0].any(axis=1))
        return _worded(self._combined(beside=True).by_status(positions))

    def _beside_nominated(self) -> HypotheticalRows:
        assert self._nominated is not None
        rows = self._rows.copy()
        rows.shift(*self._nominated, 1)
        return rows

    def _combined(self, *, beside: bool) -> FeasibleRows:
        """All verdicts."""
        found, rows = dict(self._settled.filters), self._rows
        by_filter = zip(self._filters, self._verdicts_of(beside=beside), strict=True)
        for (index, method), verdicts in by_filter:
            found[index] = RowStatuses(method.name, len(rows))
            found[index].take(verdicts)
        filtered = FeasibleRows((), sorted(found.items()))
        filtered.combine(rows.active, len(rows))
        return filtered

    def _verdicts_of(self, *, beside: bool) -> list[Verdicts]:
        """What the filters say that run again, on the rows with or without nominated pods."""
        found = self._verdicts.get(beside)
        if found is None:
            what_if, rows = self._what_if, self._beside_nominated() if beside else self._rows
            methods = [what_if.profile.require(m.plugin, "filter_all") for _, m in self._filters]
            found = self._verdicts[beside] = [
                invoke.filter_rows(method, what_if.state, what_if.pod, rows) for method in methods
            ]
        return found


def _worded(by_status: list[tuple[Status, RowArray]]) -> list[tuple[Status, RowArray]]:
    return [(worded(status), rows) for status, rows in by_status]
