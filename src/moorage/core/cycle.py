"""SchedulingCycle: one pod, from pre_filter to the selected node. It decides and changes nothing.

It reads the live table: nothing else runs meanwhile, so there is no snapshot to copy.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import NamedTuple

import numpy as np

from moorage.api.pod import Pod
from moorage.core import diagnosis, post_filters, sampling
from moorage.core.decision import Decision
from moorage.core.diagnosis import Diagnosis
from moorage.core.extenders import EXTENDER, Extenders
from moorage.errors import PluginError
from moorage.framework.cluster import Cluster
from moorage.framework.invoke import CallMeter
from moorage.framework.post_filter import NoFeasibleNode, Reviewer
from moorage.framework.profile import Profile
from moorage.framework.state import CycleState
from moorage.framework.status import (
    SUCCESS,
    Code,
    Mask,
    Status,
    error,
    summarize,
    unresolvable,
    unschedulable,
)
from moorage.framework.views.feasible import FeasibleRows
from moorage.framework.views.filters import worded
from moorage.framework.views.pre_filters import PreFiltered
from moorage.framework.views.rejections import RejectionCounts
from moorage.framework.views.template import TemplateViews
from moorage.framework.views.view import RowArray
from moorage.framework.what_if import WhatIf
from moorage.nodes.nominated import NominatedPods
from moorage.nodes.template import PodTemplate, TemplateSource

NOT_PRE_FILTERED = PreFiltered()
# The status of nodes that were not searched, when there is no better reason.
NOT_SEARCHED = unresolvable()
# The label under which a meter sees the decision.
DECIDE = "decide"


def _nominated_in_status(pod: Pod) -> str:
    return pod.status.nominated_node_name


class Choices(NamedTuple):
    """What a cycle's choices follow from, besides pods and nodes."""

    random: Random
    start: int


class SchedulingCycle:
    """Decides for pods, one after the other."""

    def __init__(
        self,
        cluster: Cluster,
        templates: TemplateSource,
        nominated: Mapping[str, Sequence[Pod]],
        random: Random,
        nominated_node: Callable[[Pod], str] = _nominated_in_status,
        reviewers: Sequence[Reviewer] = (),
        extenders: Extenders | None = None,
    ) -> None:
        self.meter: CallMeter | None = None
        # The rows to which the search is restricted, for a pod group.
        self.placement: Mask | None = None
        # Whether no way out is looked for, because this is the trial of a group's preemption.
        self.is_trial = False
        self._cluster = cluster
        # The nominated pods by the node's name, and the node nominated to a pod.
        self._nominated = nominated
        self._nominated_node = nominated_node
        self._nominated_pods = NominatedPods(cluster.table, cluster.nomination_changes, templates)
        self._extenders = extenders
        self._reviewers = reviewers
        self._random = random
        self._walk = sampling.Walk()

    def decide(
        self,
        profile: Profile,
        pod: Pod,
        template: PodTemplate,
        now: float,
        *,
        by_group: bool = False,
    ) -> Decision:
        """Find the best node for a pod, or the reason why there is none.

        If it may be decided by groups of rows, what the decision has of single rows is the best.
        """
        cluster, meter = self._cluster, self.meter
        began = 0.0 if meter is None else meter.begin()
        table = cluster.table
        try:
            views = profile.views.of(template)
        except PluginError as failure:
            return self._unread(profile, pod, template, now, failure, began)
        if profile.meter is not None:
            profile.meter.cycle_started(views)
        below = views.state
        state = CycleState(cluster, table, template, now, below.idle, below)
        decision = Decision(pod, profile, template, state, table.node_count, NOT_PRE_FILTERED)
        try:
            repeated = None
            # If plugins decide alone, over all rows, and their calls are not measured.
            if (
                profile.percentage is None
                and self._extenders is None
                and self.placement is None
                and not self._nominated
                and not pod.status.nominated_node_name
                and (profile.meter is None or not profile.meter.is_sampling)
            ):
                repeated = views.repeat() or (views.decide(state, pod) if by_group else None)
            if repeated is None:
                self._search(decision, views)
            else:
                decision.pre, decision.filtered, decision.scored = repeated
                decision.feasible_count = decision.filtered.count
                self._select_best(decision)
        except PluginError as failure:
            decision.status = error(str(failure), failure.plugin)
        finally:
            if meter is not None:
                meter.end_point(DECIDE, began, decision)
        return decision

    def _unread(
        self,
        profile: Profile,
        pod: Pod,
        template: PodTemplate,
        now: float,
        failure: PluginError,
        began: float,
    ) -> Decision:
        """The decision for a pod of which a plugin could not say what it reads."""
        cluster = self._cluster
        state, nodes = CycleState.of(cluster, template, now), cluster.table.node_count
        status = error(str(failure), failure.plugin)
        decision = Decision(pod, profile, template, state, nodes, NOT_PRE_FILTERED, status)
        if self.meter is not None:
            self.meter.end_point(DECIDE, began, decision)
        return decision

    @property
    def random(self) -> Random:
        """The random source that breaks ties."""
        return self._random

    @property
    def choices(self) -> "Choices":
        """What breaks ties, and where the next sampling walk starts."""
        return Choices(self._random, self._walk.start)

    @choices.setter
    def choices(self, new: "Choices") -> None:
        self._random, self._walk.start = new

    def _search(self, decision: Decision, views: TemplateViews) -> None:
        if self.placement is not None:
            rows = self.placement & self._cluster.table.active_rows
            decision.nodes = int(np.count_nonzero(rows))
        if decision.nodes == 0:
            # No plugin rejected the pod, so it is retried after a back-off, as after an error.
            decision.status = unresolvable(diagnosis.NO_NODES)
            return
        decision.pre = views.pre_filter(decision.state, decision.pod)
        if decision.pre.rejected is not None:
            self._reject_early(decision)
            return
        filtered = views.filter(decision.state, decision.pod, decision.pre)
        decision.filtered = filtered
        fits = self._fits(decision, filtered, views)
        if decision.status is not SUCCESS:
            return
        if decision.feasible_count == 0:
            self._reject(decision, views)
        elif decision.feasible_count == 1:
            row = decision.row = int(np.flatnonzero(fits)[0])
            decision.node = self._cluster.table.names[row]
        else:
            scored = views.score(decision.state, decision.pod, fits)
            if self._extenders is not None:
                scored = self._extenders.prioritize(decision.pod, fits, scored)
            decision.scored = scored
            self._select_best(decision)

    # Which nodes are feasible

    def _fits(self, decision: Decision, filtered: FeasibleRows, views: TemplateViews) -> Mask:
        """The rows to choose from."""
        fits = filtered.fits
        if self._nominated:
            fits = self._beside_nominated(decision, views, fits)
        if decision.pre.names is not None:
            fits = fits & self._cluster.table.named(decision.pre.names)
        if self.placement is not None:
            fits = fits & self.placement
        own = self._own_row(decision.pod)
        if own is not None and fits[own]:
            # The node nominated to this pod: if it fits, no other is searched.
            only = np.zeros_like(fits)
            only[own] = True
            if self._extenders is None or self._extenders.accepts(decision.pod, filtered, only):
                decision.feasible_count = 1
                return only
        if decision.profile.percentage is not None:
            fits = self._sample(decision, fits)
        else:
            is_same = fits is filtered.fits
            decision.feasible_count = filtered.count if is_same else int(np.count_nonzero(fits))
        if filtered.has_errors:
            # A failure for a node that is not searched does not matter, nor for one that is
            # rejected beside nominated pods, which comes first.
            rows = self._searched_rows(decision)
            if decision.check is not None:
                rows = rows[~decision.check.rejects[rows]]
            decision.status = filter_failure(filtered, rows) or decision.status
        if self._extenders is not None and decision.status is SUCCESS:
            return self._extend(decision, filtered, fits)
        return fits

    def _extend(self, decision: Decision, filtered: FeasibleRows, fits: Mask) -> Mask:
        """The rows that extenders leave."""
        assert self._extenders is not None
        left = self._extenders.filter(decision.pod, filtered, fits, decision.rejected)
        if left is filtered:
            return fits
        decision.filtered, decision.rejected = left, None
        decision.feasible_count = int(np.count_nonzero(left.fits))
        return left.fits

    def _own_row(self, pod: Pod) -> int | None:
        name = self._nominated_node(pod)
        return self._cluster.table.row_of.get(name) if name else None

    def _beside_nominated(self, decision: Decision, views: TemplateViews, fits: Mask) -> Mask:
        """The rows that have room beside nominated pods of at least this priority, too."""
        check = decision.check = views.check_nominated(self._what_if(decision))
        if check.has_errors:
            failure = _first_error(check.by_status(np.flatnonzero(check.rejects)))
            decision.status = failure or decision.status
        if decision.filtered is not None and not decision.filtered.count:
            return fits
        # Return the same array if nothing changed: scores are cached for that array only.
        rejects = check.rejects
        return fits & ~rejects if (fits & rejects).any() else fits

    def _what_if(self, decision: Decision) -> WhatIf:
        known = decision.what_if
        if known is not None and known.filtered is decision.filtered:
            return known
        self._nominated_pods.refresh(self._nominated)
        decision.what_if = WhatIf(
            decision.profile,
            decision.state,
            decision.pod,
            decision.pre,
            decision.filtered,
            self._nominated_pods,
            self._own_row(decision.pod),
        )
        return decision.what_if

    def _sample(self, decision: Decision, fits: Mask) -> Mask:
        order = self._cluster.table.zone_order.rows()
        names = decision.pre.names
        if names is not None:
            order = order[self._cluster.table.named(names)[order]]
        if self.placement is not None:
            order = order[self.placement[order]]
        percentage = decision.profile.percentage or 0
        by_extenders = self._extenders is not None and self._extenders.looks_at_all
        needs_choice = decision.profile.has_scores or by_extenders
        wanted = sampling.enough(len(order), percentage) if needs_choice else 1
        feasible, decision.rejected = self._walk.sample(order, fits, wanted, decision.nodes)
        sampled = np.zeros_like(fits)
        sampled[feasible] = True
        decision.feasible_count = len(feasible)
        return sampled

    # Selecting a node

    def _select_best(self, decision: Decision) -> None:
        """Select a row with the highest total; the seed decides which of several."""
        assert decision.scored is not None
        best = decision.scored.best()
        row = decision.row = int(best[int(self._random.random() * len(best))])
        decision.node = self._cluster.table.names[row]

    # Rejecting the pod

    def _reject_early(self, decision: Decision) -> None:
        """A pre_filter plugin rejected the pod for all nodes."""
        status = decision.pre.rejected
        assert status is not None
        message = summarize(decision.nodes, pre_filter=status.message)
        decision.diagnosis = Diagnosis(message)
        decision.diagnosis.blame(status)
        if not status.plugin or status.code is Code.UNSCHEDULABLE:
            decision.diagnosis.unschedulable_plugins.update(decision.pre.narrowed_by)
        self._post_filter(decision, status)

    def _reject(self, decision: Decision, views: TemplateViews) -> None:
        """Every node that was searched was rejected."""
        pre, filtered = decision.pre, decision.filtered
        assert filtered is not None
        counts: RejectionCounts | None = None
        if pre.names is None and self.placement is None:
            counts = views.count_rejections(filtered, decision.check)
            decision.diagnosis = diagnosis.by_counts(decision.nodes, counts)
        else:
            decision.diagnosis = self._diagnose(decision, filtered)
        if filtered.is_extended:
            decision.diagnosis.unschedulable_plugins.add(EXTENDER)
        self._post_filter(decision, NOT_SEARCHED if pre.names is None else pre.absent, counts)

    def _diagnose(self, decision: Decision, filtered: FeasibleRows) -> Diagnosis:
        """Sum up why the nodes do not fit that the search was narrowed to."""
        pre, check, rows = decision.pre, decision.check, self._searched_rows(decision)
        beside = [] if check is None else check.by_status(rows)
        others = rows if check is None else rows[~check.rejects[rows]]
        by_status = filtered.by_status(others) + beside
        rejected = [(status, len(same)) for status, same in by_status]
        message = summarize(decision.nodes, rejected=rejected, absent=pre.absent)
        found = Diagnosis(message, set(pre.narrowed_by))
        for status, _ in rejected:
            found.blame(status)
        return found

    def _searched_rows(self, decision: Decision) -> RowArray:
        if decision.rejected is not None:
            return decision.rejected
        table = self._cluster.table
        rows = table.active_rows if self.placement is None else table.active_rows & self.placement
        if decision.pre.names is None:
            return np.flatnonzero(rows)
        return np.flatnonzero(table.named(decision.pre.names) & rows)

    def _post_filter(
        self, decision: Decision, absent: Status, counts: RejectionCounts | None = None
    ) -> None:
        """Let post_filter plugins look for a way out; `absent` is for nodes not searched."""
        assert decision.diagnosis is not None
        profile, pre = decision.profile, decision.pre
        if profile.has_post_filters and not self.is_trial:
            named = None if pre.names is None else self._cluster.table.named(pre.names)
            failure = NoFeasibleNode(
                pre,
                decision.filtered,
                absent,
                self._what_if(decision),
                check=decision.check,
                counts=counts,
                searched=named,
                nominated=self._nominated_node(decision.pod),
                reviewers=self._reviewers,
                random=self._random,
            )
            result = post_filters.run(profile, decision.state, decision.pod, failure)
            decision.post_filter = result
            decision.nominated = result.nominated
            decision.diagnosis.unschedulable_plugins.update(result.rejected_by)
        decision.status = unschedulable(decision.message)


def filter_failure(filtered: FeasibleRows, rows: RowArray) -> Status | None:
    """The first error among some rows: a filter raised, and no earlier one rejected."""
    failed = _first_error(filtered.by_status(rows))
    return None if failed is None else worded(failed)


def _first_error(by_status: Sequence[tuple[Status, RowArray]]) -> Status | None:
    return next((status for status, _ in by_status if not status.is_rejected), None)
