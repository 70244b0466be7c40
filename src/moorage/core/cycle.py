"""SchedulingCycle: one pod, from pre_filter to the pick. It changes nothing; it only decides.

It reads the live table: nothing else runs meanwhile, so there is no snapshot to copy.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from moorage.api.meta import NodeName
from moorage.api.pod import Pod
from moorage.core import diagnosis, sampling
from moorage.core.diagnosis import Diagnosis
from moorage.core.extenders import EXTENDER, ExtendedVerdicts, Extenders
from moorage.errors import PluginError
from moorage.framework import summary
from moorage.framework.answers import Filtered, PreFiltered, Scored
from moorage.framework.beside import Beside
from moorage.framework.cluster import Cluster
from moorage.framework.inquiry import Inquiry
from moorage.framework.invoke import CallMeter, measured
from moorage.framework.post_filter import PostFiltered, Refusal, Reviewer
from moorage.framework.profile import Profile
from moorage.framework.promises import Promises
from moorage.framework.sheet import Sheet
from moorage.framework.state import CycleState
from moorage.framework.status import (
    SUCCESS,
    Code,
    Mask,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from moorage.framework.template import PodTemplate, Templates

Rows = NDArray[np.intp]

NOTHING_SAID = PreFiltered()
# Statuses for nodes that nobody looked at, when there is no better reason.
NOT_LOOKED_AT = unresolvable()


# Under which a meter sees the decision.
DECIDE = "decide"


class Decision(Struct, gc=False):
    """What a cycle found out: a node, or why there is none."""

    pod: Pod
    profile: Profile
    template: PodTemplate
    state: CycleState
    nodes: int
    pre: PreFiltered
    status: Status = SUCCESS
    node: NodeName = NodeName("")
    row: int = -1
    diagnosis: Diagnosis | None = None
    post_filter: PostFiltered | None = None
    # A node promised to the pod; "" takes a promise back, None leaves it.
    nominated: str | None = ""
    filtered: Filtered | None = None
    # Verdicts on nodes that are promised to other pods, if there are any.
    beside: Beside | None = None
    # The refused rows that a sampling walk met; None if all rows were looked at.
    refused: Rows | None = None
    feasible_count: int = 0
    scored: Scored | None = None

    @property
    def message(self) -> str:
        """The refusal in one sentence, with what post_filter plugins added."""
        if self.diagnosis is None:
            return self.status.message
        added = self.post_filter.status.message if self.post_filter is not None else ""
        return diagnosis.with_post_filter(self.diagnosis.message, added)

    def verdict(self, row: int) -> Status:
        """Why a row was refused."""
        beside = None if self.beside is None else self.beside.status(row)
        if beside is not None:
            return beside
        assert self.filtered is not None
        return self.filtered.status(row)

    @property
    def overruled(self) -> dict[int, Status]:
        """Nodes that the pod does not fit beside others, to whom they are promised."""
        if self.beside is None:
            return {}
        rows = np.flatnonzero(self.beside.refuses).tolist()
        return {row: status for row in rows if (status := self.beside.status(row)) is not None}

    def rejected_by(self) -> dict[str, int]:
        """How many nodes each filter plugin refused."""
        if self.filtered is None:
            return {}
        counts = self.filtered.rejected_by
        if not counts:
            return {}
        plugin_at = self.filtered.plugin_at
        return {plugin_at(place): count for place, count in enumerate(counts) if count}

    def best_rows(self, count: int) -> list[int]:
        """The rows with the highest totals, the picked one first."""
        if self.scored is None:
            return [self.row]
        picked, best = self.row, self.scored.best[:count]
        rows = best.tolist() if isinstance(best, np.ndarray) else best
        found = [picked, *[row for row in rows if row != picked]][:count]
        return found if len(found) == count else _fill(found, self.scored.totals, count)


def _as_its_status_says(pod: Pod) -> str:
    """The node promised to a pod."""
    return pod.status.nominated_node_name


class SchedulingCycle:
    """Decides for pods, one after the other."""

    meter: CallMeter | None = None

    def __init__(
        self,
        cluster: Cluster,
        templates: Templates,
        promised: Mapping[str, Sequence[Pod]],
        random: Random,
        promise_to: Callable[[Pod], str] = _as_its_status_says,
        reviewers: Sequence[Reviewer] = (),
        extenders: Extenders | None = None,
    ) -> None:
        self._cluster = cluster
        self._templates = templates
        self._promised = promised
        self._promise_to = promise_to
        self._extenders = extenders
        self._reviewers = reviewers
        self._promises = Promises(cluster, templates)
        self._random = random
        self._walk = sampling.Walk()

    @measured(DECIDE)
    def decide(self, profile: Profile, pod: Pod, template: PodTemplate, now: float) -> Decision:
        """Find the best node for a pod, or the reason why there is none."""
        sheet = profile.sheets.of(template)
        if profile.meter is not None:
            profile.meter.cycle_started(sheet)
        state = CycleState(self._cluster, template, now, below=sheet.state)
        nodes = self._cluster.table.node_count
        decision = Decision(pod, profile, template, state, nodes, NOTHING_SAID)
        try:
            self._search(decision, sheet)
        except PluginError as trouble:
            decision.status = error(str(trouble), trouble.plugin)
        return decision

    def _search(self, decision: Decision, sheet: Sheet) -> None:
        if decision.nodes == 0:
            # No plugin is to blame, so the pod is tried again by and by, as after an error.
            decision.status = unresolvable(diagnosis.NO_NODES)
            return
        decision.pre = sheet.run_pre_filters(decision.state, decision.pod)
        if decision.pre.rejected is not None:
            self._refuse_early(decision)
            return
        filtered = sheet.run_filters(decision.state, decision.pod, decision.pre)
        decision.filtered = filtered
        fits = self._fits(decision, filtered, sheet)
        if decision.status is not SUCCESS:
            return
        if decision.feasible_count == 0:
            self._refuse(decision, sheet)
        elif decision.feasible_count == 1:
            self._pick(decision, int(np.flatnonzero(fits)[0]))
        else:
            decision.scored = sheet.run_scores(decision.state, decision.pod, fits)
            if self._extenders is not None:
                decision.scored = self._extenders.prioritize(decision.pod, fits, decision.scored)
            self._pick(decision, self._best(decision))

    # Which nodes are in question

    def _fits(self, decision: Decision, filtered: Filtered, sheet: Sheet) -> Mask:
        """The rows to choose from."""
        fits = filtered.fits
        if self._promised:
            self._promises.refresh(self._promised)
            fits = self._beside_promised(decision, sheet, fits)
        if decision.pre.names is not None:
            fits = fits & self._cluster.table.named(decision.pre.names)
        nominated = self._nominated_row(decision, fits)
        if nominated is not None:
            only = np.zeros_like(fits)
            only[nominated] = True
            if self._extenders is None or self._extenders.accepts(decision.pod, filtered, only):
                decision.feasible_count = 1
                return only
        if decision.profile.percentage is not None:
            fits = self._sample(decision, fits)
        else:
            kept = fits is filtered.fits
            decision.feasible_count = filtered.count if kept else int(np.count_nonzero(fits))
        if filtered.has_erred:
            # Trouble over a node that is not in question harms nobody.
            failure = filtered.failure(self._in_question(decision))
            decision.status = decision.status if failure is None else failure
        if self._extenders is not None and decision.status is SUCCESS:
            return self._extend(decision, filtered, fits)
        return fits

    def _extend(self, decision: Decision, filtered: Filtered, fits: Mask) -> Mask:
        """What extenders leave of the rows to choose from."""
        assert self._extenders is not None
        left = self._extenders.filter(decision.pod, filtered, fits, decision.refused)
        if left is filtered:
            return fits
        decision.filtered, decision.refused = left, None
        decision.feasible_count = int(np.count_nonzero(left.fits))
        return left.fits

    def _nominated_row(self, decision: Decision, fits: Mask) -> int | None:
        """The node promised to this very pod, if it fits: no other is looked for then."""
        row = self._own_row(decision.pod)
        return row if row is not None and fits[row] else None

    def _own_row(self, pod: Pod) -> int | None:
        name = self._promise_to(pod)
        return self._cluster.table.row_of.get(name) if name else None

    def _beside_promised(self, decision: Decision, sheet: Sheet, fits: Mask) -> Mask:
        """Nodes with promised pods of at least this priority must have room beside those, too."""
        if sheet.beside is None:
            sheet.beside = Beside(self._cluster)
        beside = decision.beside = sheet.beside
        beside.refresh(self._inquiry(decision))
        decision.status = beside.failure or decision.status
        # The very same array is told from another one, for which nothing is kept.
        return fits & ~beside.refuses if (fits & beside.refuses).any() else fits

    def _inquiry(self, decision: Decision) -> Inquiry:
        """The pod's questions about nodes as they might be."""
        return Inquiry(
            decision.profile,
            decision.state,
            decision.pod,
            decision.pre,
            decision.filtered,
            self._promises,
            self._own_row(decision.pod),
        )

    def _sample(self, decision: Decision, fits: Mask) -> Mask:
        order = self._cluster.table.zone_order.rows()
        names = decision.pre.names
        if names is not None:
            order = order[self._cluster.table.named(names)[order]]
        percentage = decision.profile.percentage or 0
        choosy = self._extenders is not None and self._extenders.looks_at_all
        some = decision.profile.has_scores or choosy
        wanted = sampling.enough(len(order), percentage) if some else 1
        feasible, decision.refused = self._walk.sample(order, fits, wanted, decision.nodes)
        sampled = np.zeros_like(fits)
        sampled[feasible] = True
        decision.feasible_count = len(feasible)
        return sampled

    # Choosing

    def _best(self, decision: Decision) -> int:
        """A row with the highest total; which of several is up to the seed."""
        assert decision.scored is not None
        best = decision.scored.best
        return int(best[int(self._random.random() * len(best))])

    def _pick(self, decision: Decision, row: int) -> None:
        decision.row = row
        decision.node = self._cluster.table.names[row]

    # Refusing

    def _refuse_early(self, decision: Decision) -> None:
        """A pre_filter plugin refused the pod for all nodes."""
        status = decision.pre.rejected
        assert status is not None
        message = summary.summarize(decision.nodes, pre_filter=status.message)
        decision.diagnosis = Diagnosis(message)
        decision.diagnosis.blame(status)
        if not status.plugin or status.code.name == "UNSCHEDULABLE":
            decision.diagnosis.unschedulable_plugins.update(decision.pre.narrowed_by)
        resolvable = status.code is not Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        if decision.profile.has_post_filters and not resolvable:
            # As in kube-scheduler, where DynamicResources did not get to see such a pod and stops
            # the post_filter plugins. What was promised to the pod stays promised, if its status
            # says so: one whose write was lost would keep others out for as long as this lasts.
            decision.nominated = None if decision.pod.status.nominated_node_name else ""
            decision.status = unschedulable(decision.message)
            return
        self._after_refusal(decision, Refusal(decision.pre, None, status, random=self._random))

    def _refuse(self, decision: Decision, sheet: Sheet) -> None:
        """Every node in question was refused."""
        pre, filtered = decision.pre, decision.filtered
        assert filtered is not None
        refusal = Refusal(pre, filtered, NOT_LOOKED_AT, decision.beside, random=self._random)
        if pre.names is None:
            own = self._own_row(decision.pod)
            refusal.reasons = sheet.refresh_reasons(filtered, decision.beside, own)
            told = refusal.reasons.told()
            decision.diagnosis = Diagnosis(told.message, set(told.plugins), set(told.pending))
        else:
            refusal.absent = pre.absent
            refusal.in_question = self._cluster.table.named(pre.names)
            self._diagnose(decision, filtered)
        if isinstance(filtered, ExtendedVerdicts) and decision.diagnosis is not None:
            decision.diagnosis.unschedulable_plugins.add(EXTENDER)
        self._after_refusal(decision, refusal)

    def _diagnose(self, decision: Decision, filtered: Filtered) -> None:
        """Sum up why the few nodes do not fit that the search was narrowed to."""
        pre = decision.pre
        refused = self._refusals(decision, filtered, self._in_question(decision))
        message = summary.summarize(decision.nodes, refused=refused, absent=pre.absent)
        decision.diagnosis = Diagnosis(message, set(pre.narrowed_by))
        for status, _ in refused:
            decision.diagnosis.blame(status)

    def _refusals(
        self, decision: Decision, filtered: Filtered, rows: Rows
    ) -> list[tuple[Status, int]]:
        """The distinct statuses of rows, with how many rows have each."""
        beside = decision.beside
        if beside is None:
            return filtered.histogram(rows)
        refuses = beside.refuses[rows]
        return filtered.histogram(rows[~refuses]) + beside.histogram(rows[refuses])

    def _in_question(self, decision: Decision) -> Rows:
        if decision.refused is not None:
            return decision.refused
        table = self._cluster.table
        if decision.pre.names is None:
            return np.flatnonzero(table.active_rows)
        return np.flatnonzero(table.named(decision.pre.names) & table.active_rows)

    def _after_refusal(self, decision: Decision, refusal: Refusal) -> None:
        assert decision.diagnosis is not None
        if decision.profile.has_post_filters:
            self._promises.refresh(self._promised)
            inquiry = self._inquiry(decision)
            refusal.nominated = self._promise_to(decision.pod)
            refusal.what_if, refusal.suppose = inquiry.what_if, inquiry.suppose
            refusal.stamp = inquiry.stamp
            refusal.reviewers = self._reviewers
            answer = decision.profile.run_post_filters(decision.state, decision.pod, refusal)
            decision.post_filter = answer
            decision.nominated = answer.nominated
        decision.status = unschedulable(decision.message)


def _fill(found: list[int], totals: NDArray[np.int64], count: int) -> list[int]:
    """Add the next best rows until there are enough, as far as there are any."""
    # Those that were found are out of sight for a moment, which is quicker than a copy.
    hidden = [(row, totals.item(row)) for row in found]
    totals[found] = -1
    while len(hidden) < count:
        row = int(totals.argmax())  # The first of the best.
        total = totals.item(row)
        if total < 0:
            break
        hidden.append((row, total))
        totals[row] = -1
    for row, total in hidden:
        totals[row] = total
    return [row for row, _ in hidden]
