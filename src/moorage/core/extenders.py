"""Extenders: external services that take part in decisions, Kubernetes' HTTP extenders.

This module decides which extenders are called for a pod, in which order, and how their responses
are used. It does not know the transport: a shell passes in clients, over HTTP or otherwise.

    filter       after all filter plugins, one after the other, on the nodes that are left
    prioritize   after all score plugins, in parallel; a failed call adds no scores
    preempt      when victims were found, one after the other (see post_filter.Reviewer)
    bind         instead of the bind plugins; an effect like any other binding
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from moorage.api import config
from moorage.api.meta import NodeName
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.server_requests import BindPod, PodRef
from moorage.errors import PluginError, describe
from moorage.framework.cluster import Cluster
from moorage.framework.events import EVERYTHING
from moorage.framework.post_filter import Candidate, Reviewer
from moorage.framework.profile import Profile
from moorage.framework.state import CycleState
from moorage.framework.status import Mask, Status, unresolvable, unschedulable
from moorage.framework.views.feasible import NO_FILTER, NO_NODE, FeasibleRows
from moorage.framework.views.filters import RowStatuses
from moorage.framework.views.parts import Part
from moorage.framework.views.row_sets import BestRows
from moorage.framework.views.totals import Scored

# The plugin name under which extenders reject pods; any cluster event requeues such a pod.
EXTENDER = "Extender"
# An extender's scores go from 0 to 10, a plugin's to 100.
SCALE = 10
LOWEST = np.iinfo(np.int64).min

NO_REASON = unresolvable()

Rows = NDArray[np.intp]
Call = Callable[[], Any]
# Runs calls, perhaps in parallel; a result is what a call returned or raised.
RunCalls = Callable[[Sequence[Call]], list[Any]]


class FilterResult(Struct, frozen=True, kw_only=True):
    """The nodes that an extender accepts, and why others fail; unresolvable overrides failed."""

    nodes: Sequence[str] = ()
    failed: Mapping[str, str] = {}
    unresolvable: Mapping[str, str] = {}


class ExtenderVictims(Struct, frozen=True):
    """An extender's victims on a node, by UID, and how many budgets their eviction violates."""

    uids: tuple[str, ...]
    violations: int = 0


class ExtenderClient(Protocol):
    """A service to call; every method may raise, and `settings.ignorable` says what follows."""

    settings: config.Extender

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> FilterResult:
        """Which of these nodes may a pod run on?"""

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Iterable[tuple[str, int]]:
        """How good are these nodes for a pod? Names with scores from 0 to 10."""

    def preempt(
        self, pod: Pod, candidates: Mapping[str, Candidate]
    ) -> Mapping[str, ExtenderVictims]:
        """On which of these nodes may pods be evicted for a pod, and which pods?"""


def sequentially(calls: Sequence[Call]) -> list[Any]:
    """Each call's result, or the exception that it raised."""
    results: list[Any] = []
    for call in calls:
        try:
            results.append(call())
        except Exception as error:  # A client's code may raise anything.
            results.append(error)
    return results


class Extenders:
    """All extenders: those that are not ignorable first, else in the order of the file."""

    def __init__(
        self,
        extenders: Iterable[ExtenderClient],
        cluster: Cluster,
        at_once: RunCalls = sequentially,
    ) -> None:
        self._extenders = sorted(extenders, key=lambda each: each.settings.ignorable)
        self._cluster = cluster
        self._at_once = at_once

    def register(self, profiles: Iterable[Profile]) -> None:
        """Requeue pods that extenders rejected after any cluster event."""
        for profile in profiles:
            profile.events[EXTENDER] = EVERYTHING

    @property
    def looks_at_all(self) -> bool:
        """Whether one feasible node is not enough: some extender filters or scores nodes."""
        settings = [each.settings for each in self._extenders]
        return any(each.filter_verb or each.prioritize_verb for each in settings)

    def _interested(self, pod: Pod, verb: str) -> list[ExtenderClient]:
        return [
            each
            for each in self._extenders
            if getattr(each.settings, verb) and is_interested(each.settings, pod)
        ]

    def _in_order(self, fits: Mask) -> Rows:
        order = self._cluster.table.zone_order.rows()
        rows: Rows = order[fits[order]]
        return rows

    # Filter

    def filter(
        self, pod: Pod, filtered: FeasibleRows, fits: Mask, seen: Rows | None
    ) -> FeasibleRows:
        """The verdicts after all extenders; the same object if no extender rejects a row.

        `seen` are the rejected rows that a sampling walk visited; only those keep a verdict then.
        """
        before = left = self._in_order(fits)
        refused: dict[int, Status] = {}
        for extender in self._interested(pod, "filter_verb"):
            if not len(left):
                break
            left = self._filter(extender, pod, left, refused)
        if len(left) == len(before):
            return filtered
        return extended(filtered, left, refused, seen)

    def accepts(self, pod: Pod, filtered: FeasibleRows, only: Mask) -> bool:
        """Whether all extenders accept the pod's nominated node; an error counts as a rejection.

        The cycle then asks about all nodes, and an error that lasts is reported there.
        """
        try:
            return bool(self.filter(pod, filtered, only, None).fits[only].any())
        except PluginError:
            return False

    def _filter(
        self, extender: ExtenderClient, pod: Pod, rows: Rows, refused: dict[int, Status]
    ) -> Rows:
        """The rows that one extender accepts."""
        table, settings = self._cluster.table, extender.settings
        nodes = {node.name: node for row in rows if (node := table.nodes[row]) is not None}
        try:
            answer = extender.filter(pod, list(nodes.values()))
            for name in answer.nodes:
                if name not in nodes:
                    raise LookupError(
                        f'extender "{settings.url_prefix}" claims a filtered node "{name}" which '
                        "is not found in the input node list"
                    )
        except Exception as error:
            if settings.ignorable:
                return rows
            raise PluginError(EXTENDER, describe(error)) from error
        left = dict.fromkeys(table.row_of[name] for name in answer.nodes)
        for row in rows.tolist():
            if row not in left:
                refused[row] = _rejection(answer, table.name(row))
        return np.array(list(left), dtype=np.intp)

    # Prioritize

    def prioritize(self, pod: Pod, fits: Mask, scored: Scored) -> Scored:
        """The scores with what extenders add to them."""
        extenders = self._interested(pod, "prioritize_verb")
        if not extenders:
            return scored
        table, rows = self._cluster.table, self._in_order(fits)
        nodes = [node for row in rows if (node := table.nodes[row]) is not None]
        answers = self._at_once([partial(each.prioritize, pod, nodes) for each in extenders])
        totals, parts = scored.totals.astype(np.int64), list[Part]()
        for extender, answer in zip(extenders, answers, strict=True):
            if not isinstance(answer, Exception):
                points = self._points(extender.settings, answer, fits)
                totals += points
                parts.append((f"{EXTENDER} {extender.settings.url_prefix}", 1, points))
        # Extenders may add negative scores, so an infeasible row gets the lowest possible total.
        totals[~fits] = LOWEST
        return Scored(totals, scored.parts.with_parts(parts), BestRows())

    def _points(
        self, settings: config.Extender, answer: Iterable[tuple[str, int]], fits: Mask
    ) -> NDArray[np.int64]:
        added: dict[int, int] = {}
        for name, score in answer:
            row = self._cluster.table.row_of.get(name)
            if row is not None and fits[row]:
                added[row] = added.get(row, 0) + score * settings.weight * SCALE
        points = np.zeros(len(fits), dtype=np.int64)
        for row, sum_ in added.items():
            points[row] = _wrapped(sum_)
        return points

    # Preempt and bind

    @property
    def reviewers(self) -> list[Reviewer]:
        """The extenders that take part in preemption."""
        preempting = [each for each in self._extenders if each.settings.preempt_verb]
        return [PreemptionReview(each, self._cluster) for each in preempting]

    def binders(self, pod: Pod) -> list["ExtenderBinder"]:
        """The extenders that bind a pod in place of the bind plugins."""
        return [ExtenderBinder(each.settings) for each in self._interested(pod, "bind_verb")]


class PreemptionReview:
    """An extender as a reviewer of preemption candidates."""

    def __init__(self, extender: ExtenderClient, cluster: Cluster) -> None:
        self.ignorable = extender.settings.ignorable
        self._extender = extender
        self._cluster = cluster

    def is_interested(self, pod: Pod) -> bool:
        return is_interested(self._extender.settings, pod)

    def review(self, pod: Pod, candidates: Mapping[str, Candidate]) -> Mapping[str, Candidate]:
        answer = self._extender.preempt(pod, candidates)
        return {node: self._candidate(node, chosen, candidates) for node, chosen in answer.items()}

    def _candidate(
        self, node: str, chosen: ExtenderVictims, candidates: Mapping[str, Candidate]
    ) -> Candidate:
        row = self._cluster.table.row_of.get(node)
        if row is None:
            raise LookupError(f'nodeinfo not found for node name "{node}"')
        placed = self._cluster.table.info(row).placed()
        there = {each.pod.uid: each.pod for each in placed.values()}
        for uid in chosen.uids:
            if uid not in there:
                url = self._extender.settings.url_prefix
                raise LookupError(
                    f"extender: {url} claims to preempt pod (UID: &{{{uid}}}) on node: {node}, "
                    "but the pod is not found on that node"
                )
        known = candidates.get(node)
        victims = tuple(there[uid] for uid in chosen.uids)
        return Candidate(node, victims, chosen.violations, known.budgets if known else ())


class ExtenderBinder:
    """An extender used as a bind plugin."""

    def __init__(self, settings: config.Extender) -> None:
        self.name = settings.url_prefix
        self.ignorable = settings.ignorable

    def bind(self, state: CycleState, pod: Pod, node: NodeName) -> BindPod:
        return BindPod(PodRef.of(pod), node, extender=self.name)


def is_interested(settings: config.Extender, pod: Pod) -> bool:
    """Whether an extender is called for a pod: the pod requests one of its managed resources."""
    if not settings.managed_resources:
        return True
    managed = {resource.name for resource in settings.managed_resources}
    return any(
        name in managed
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for amounts in (container.resources.requests, container.resources.limits)
        for name in amounts
    )


def _rejection(answer: FilterResult, name: str) -> Status:
    if name in answer.unresolvable:
        return unresolvable(answer.unresolvable[name])
    return unschedulable(answer.failed[name]) if name in answer.failed else NO_REASON


def _wrapped(number: int) -> int:
    """As a 64-bit integer overflows, in kube-scheduler too."""
    return (number + 2**63) % 2**64 - 2**63


def extended(
    filtered: FeasibleRows, left: Rows, rejected: Mapping[int, Status], seen: Rows | None
) -> FeasibleRows:
    """The verdicts of plugins and, after the last of them, of extenders, which leave some rows."""
    index, first = len(filtered.names), filtered.first.copy()
    if seen is not None:
        visited = np.zeros(len(first), dtype=np.bool_)
        visited[seen] = True
        np.putmask(first, ~visited & (first != NO_NODE), NO_FILTER)
    # Statuses keep no name: the cycle blames extenders as such.
    statuses = RowStatuses("", len(first))
    for row, status in rejected.items():
        statuses.set(row, status)
        first[row] = index
    found = FeasibleRows([*filtered.names, EXTENDER], [*filtered.filters, (index, statuses)])
    found.is_extended = True
    found.fits, found.count = np.zeros(len(first), dtype=np.bool_), len(left)
    found.fits[left] = True
    found.has_errors = filtered.has_errors or statuses.has_errors
    rejecting = first[(first != NO_FILTER) & (first != NO_NODE)]
    found.rejected_by = np.bincount(rejecting).tolist() if len(rejecting) else []
    found.known_first = first
    return found
