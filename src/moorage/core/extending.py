"""Extending: services outside that have a word in decisions, Kubernetes' HTTP extenders.

Which of them are asked about a pod, in which order, and what becomes of their answers. How a
question travels is not known here: a shell hands in objects that answer, over HTTP or otherwise.

    filter       after all filter plugins, one after the other, on the nodes that are left
    prioritize   after all score plugins, together; who fails has no say
    preempt      when victims were found, one after the other (see post_filter.Reviewer)
    bind         instead of the bind plugins; asked of the world like any other binding
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
from moorage.core.extended import EXTENDER, Extended
from moorage.errors import PluginError
from moorage.framework import calls
from moorage.framework.answers import Filtered, Parts, Scored
from moorage.framework.cluster import Cluster
from moorage.framework.effects import BindPod, PodRef
from moorage.framework.hints import EVERYTHING
from moorage.framework.leaders import Leaders
from moorage.framework.post_filter import Candidate, Reviewer
from moorage.framework.profile import Profile
from moorage.framework.state import CycleState
from moorage.framework.status import Mask, Status, unresolvable, unschedulable

# An extender's scores go from 0 to 10, a plugin's to 100.
SCALE = 10
LOWEST = np.iinfo(np.int64).min

UNSAID = unresolvable()

Rows = NDArray[np.intp]
Call = Callable[[], Any]
AtOnce = Callable[[Sequence[Call]], list[Any]]


class Passed(Struct, frozen=True, kw_only=True):
    """The nodes that an extender lets pass, and why others fail; unresolvable ones beat failed."""

    nodes: Sequence[str] = ()
    failed: Mapping[str, str] = {}
    unresolvable: Mapping[str, str] = {}


class Chosen(Struct, frozen=True):
    """An extender's victims on a node, by UID, and how many budgets their eviction violates."""

    uids: tuple[str, ...]
    violations: int = 0


class Extender(Protocol):
    """A service that is asked; every method may raise, and then what the settings say happens."""

    settings: config.Extender

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> Passed:
        """Which of these nodes may a pod run on?"""

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Iterable[tuple[str, int]]:
        """How good are these nodes for a pod? Names with scores from 0 to 10."""

    def preempt(self, pod: Pod, candidates: Mapping[str, Candidate]) -> Mapping[str, Chosen]:
        """On which of these nodes may pods be evicted for a pod, and which pods?"""


def in_turn(asked: Sequence[Call]) -> list[Any]:
    """Each call's answer, or what it raised."""
    answers: list[Any] = []
    for call in asked:
        try:
            answers.append(call())
        except Exception as trouble:  # Somebody else's code may raise anything
            answers.append(trouble)
    return answers


class Extending:
    """All extenders: those first that may not be ignored, else in the order of the file."""

    def __init__(
        self,
        extenders: Iterable[Extender],
        cluster: Cluster,
        at_once: AtOnce = in_turn,
    ) -> None:
        self._extenders = sorted(extenders, key=lambda each: each.settings.ignorable)
        self._cluster = cluster
        self._at_once = at_once

    def register(self, profiles: Iterable[Profile]) -> None:
        """See to it that pods which extenders refused are tried again after any change."""
        for profile in profiles:
            profile.hints.add(EXTENDER, EVERYTHING)

    @property
    def looks_at_all(self) -> bool:
        """Whether one feasible node is not enough: somebody refuses, or prefers, nodes."""
        settings = [each.settings for each in self._extenders]
        return any(each.filter_verb or each.prioritize_verb for each in settings)

    def _asked(self, pod: Pod, verb: str) -> list[Extender]:
        return [
            each
            for each in self._extenders
            if getattr(each.settings, verb) and is_interested(each.settings, pod)
        ]

    # Filter

    def filter(self, pod: Pod, filtered: Filtered, fits: Mask, seen: Rows | None) -> Filtered:
        """What is left of the rows that fit; the very same answer if nobody refuses any.

        `seen` are the refused rows that a sampling walk met: nothing is said of other rows then.
        """
        asked = self._asked(pod, "filter_verb")
        table = self._cluster.table
        before = left = _in_order(table.order.rows(), fits)
        refused: dict[int, Status] = {}
        for extender in asked:
            if not len(left):
                break
            left = self._ask(extender, pod, left, refused)
        if len(left) == len(before):
            return filtered
        return Extended.of(filtered, left, refused, seen)

    def accepts(self, pod: Pod, filtered: Filtered, only: Mask) -> bool:
        """Whether nobody refuses the one node that was promised to the pod; trouble counts as no.

        All nodes are asked about then, and trouble that lasts shows there.
        """
        try:
            return bool(self.filter(pod, filtered, only, None).fits[only].any())
        except PluginError:
            return False

    def _ask(self, extender: Extender, pod: Pod, rows: Rows, refused: dict[int, Status]) -> Rows:
        """The rows that one extender leaves."""
        table, settings = self._cluster.table, extender.settings
        nodes = {node.name: node for row in rows if (node := table.nodes[row]) is not None}
        try:
            answer = extender.filter(pod, list(nodes.values()))
            for name in answer.nodes:
                if name not in nodes:
                    raise LookupError(_not_asked(settings, name))
        except Exception as trouble:
            if settings.ignorable:
                return rows
            raise PluginError(EXTENDER, calls.describe(trouble)) from trouble
        left = dict.fromkeys(table.row_of[name] for name in answer.nodes)
        for row in rows.tolist():
            if row not in left:
                refused[row] = _refusal(answer, table.name(row))
        return np.array(list(left), dtype=np.intp)

    # Prioritize

    def prioritize(self, pod: Pod, fits: Mask, scored: Scored) -> Scored:
        """The scores with what extenders add to them."""
        asked = self._asked(pod, "prioritize_verb")
        if not asked:
            return scored
        table = self._cluster.table
        rows = _in_order(table.order.rows(), fits)
        nodes = [node for row in rows if (node := table.nodes[row]) is not None]
        answers = self._at_once([partial(each.prioritize, pod, nodes) for each in asked])
        totals, parts = scored.totals.astype(np.int64), list(scored.parts.all)
        for extender, answer in zip(asked, answers, strict=True):
            if not isinstance(answer, Exception):
                points = self._points(extender.settings, answer, fits)
                totals += points
                parts.append((f"{EXTENDER} {extender.settings.url_prefix}", 1, points))
        # A total may be anything, so that of a row that does not fit is less than anything.
        totals[~fits] = LOWEST
        return Scored(totals, Parts(parts), Leaders())

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
        """Those who have a word in preemption."""
        wanted = [each for each in self._extenders if each.settings.preempt_verb]
        return [PreemptionReview(each, self._cluster) for each in wanted]

    def binders(self, pod: Pod) -> list["ExtenderBinder"]:
        """Those who want to bind a pod themselves."""
        return [ExtenderBinder(each.settings) for each in self._asked(pod, "bind_verb")]


class PreemptionReview:
    """An extender's word in preemption."""

    def __init__(self, extender: Extender, cluster: Cluster) -> None:
        self.ignorable = extender.settings.ignorable
        self._extender = extender
        self._cluster = cluster

    def is_interested(self, pod: Pod) -> bool:
        return is_interested(self._extender.settings, pod)

    def review(self, pod: Pod, candidates: Mapping[str, Candidate]) -> Mapping[str, Candidate]:
        answer = self._extender.preempt(pod, candidates)
        return {node: self._candidate(node, chosen, candidates) for node, chosen in answer.items()}

    def _candidate(
        self, node: str, chosen: Chosen, candidates: Mapping[str, Candidate]
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
    """An extender in the place of a bind plugin."""

    def __init__(self, settings: config.Extender) -> None:
        self.name = settings.url_prefix
        self.ignorable = settings.ignorable

    def bind(self, state: CycleState, pod: Pod, node: NodeName) -> BindPod:
        return BindPod(PodRef.of(pod), node, extender=self.name)


def is_interested(settings: config.Extender, pod: Pod) -> bool:
    """Whether an extender looks after such a pod: it asks for a resource of the extender's."""
    if not settings.managed_resources:
        return True
    managed = {resource.name for resource in settings.managed_resources}
    return any(
        name in managed
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for amounts in (container.resources.requests, container.resources.limits)
        for name in amounts
    )


def _in_order(order: Rows, fits: Mask) -> Rows:
    chosen: Rows = order[fits[order]]
    return chosen


def _refusal(answer: Passed, name: str) -> Status:
    if name in answer.unresolvable:
        return unresolvable(answer.unresolvable[name])
    return unschedulable(answer.failed[name]) if name in answer.failed else UNSAID


def _not_asked(settings: config.Extender, name: str) -> str:
    return (
        f'extender "{settings.url_prefix}" claims a filtered node "{name}" which is not found in '
        "the input node list"
    )


def _wrapped(number: int) -> int:
    """As 64 bits hold it; kube-scheduler adds without looking, too."""
    return (number + 2**63) % 2**64 - 2**63
