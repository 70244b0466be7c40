"""SchedulingCycle: one pod, from pre_filter to the pick. It changes nothing; it only decides.

It reads the live table: nothing else runs meanwhile, so there is no snapshot to copy.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.core import diagnosis, sampling
from moorage.core.diagnosis import Diagnosis
from moorage.errors import PluginError
from moorage.framework.cluster import Cluster
from moorage.framework.effects import Request
from moorage.framework.post_filter import Refusal
from moorage.framework.profile import Profile
from moorage.framework.sheet import Filtered, PreFiltered, Scored, Sheet
from moorage.framework.state import CycleState
from moorage.framework.status import SUCCESS, Mask, Status, error, unresolvable, unschedulable
from moorage.framework.template import PodTemplate, Templates
from moorage.framework.what_if import WhatIf
from moorage.nodes.usage import Placed

Rows = NDArray[np.intp]

NO_ROWS: Rows = np.zeros(0, dtype=np.intp)

# Statuses for nodes that nobody looked at, when there is no better reason.
NOT_LOOKED_AT = unresolvable()


@dataclass(slots=True)
class Decision:
    """What a cycle found out: a node, or why there is none."""

    pod: Pod
    profile: Profile
    template: PodTemplate
    state: CycleState
    nodes: int
    status: Status = SUCCESS
    node: str = ""
    row: int = -1
    diagnosis: Diagnosis | None = None
    post_filter: Status | None = None
    # A node promised to the pod; "" takes a promise back, None leaves it.
    nominated: str | None = ""
    requests: tuple[Request, ...] = ()
    pre: PreFiltered = field(default_factory=PreFiltered)
    filtered: Filtered | None = None
    overruled: dict[int, Status] = field(default_factory=dict)
    # The refused rows that a sampling walk met; None if all rows were looked at.
    refused: Rows | None = None
    feasible_count: int = 0
    scored: Scored | None = None
    # The rows that share the highest total.
    ties: Rows = field(default_factory=lambda: NO_ROWS)

    @property
    def message(self) -> str:
        """The refusal in one sentence, with what post_filter plugins added."""
        if self.diagnosis is None:
            return self.status.message
        added = self.post_filter.message if self.post_filter is not None else ""
        return diagnosis.with_post_filter(self.diagnosis.message, added)

    def verdict(self, row: int) -> Status:
        """Why a row was refused."""
        if row in self.overruled:
            return self.overruled[row]
        assert self.filtered is not None
        return self.filtered.status(row)

    def rejected_by(self) -> dict[str, int]:
        """How many nodes each filter plugin refused."""
        if self.filtered is None:
            return {}
        filters = self.profile.filters
        counts = enumerate(self.filtered.rejected_by)
        return {filters[place].name: count for place, count in counts if count}

    def best_rows(self, count: int) -> list[int]:
        """The rows with the highest totals, the picked one first."""
        if self.scored is None:
            return [self.row]
        others = [row for row in self.ties[:count].tolist() if row != self.row]
        found = [self.row, *others][:count]
        return found if len(found) == count else _fill(found, self.scored.totals, count)


class SchedulingCycle:
    """Decides for pods, one after the other."""

    def __init__(
        self,
        cluster: Cluster,
        templates: Templates,
        promised: Callable[[], Mapping[str, list[Pod]]],
        random: Random,
    ) -> None:
        self._cluster = cluster
        self._templates = templates
        self._promised = promised
        self._random = random
        self._walk = sampling.Walk()

    def decide(self, profile: Profile, pod: Pod, template: PodTemplate, now: float) -> Decision:
        """Find the best node for a pod, or the reason why there is none."""
        sheet = profile.sheet(template)
        state = CycleState(self._cluster, template, now, below=sheet.state)
        decision = Decision(pod, profile, template, state, self._cluster.table.node_count)
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
        failure = filtered.failure()
        if failure is not None:
            decision.status = failure
            return
        fits = self._fits(decision, filtered)
        if decision.status is not SUCCESS:
            return
        if decision.feasible_count == 0:
            self._refuse(decision)
        elif decision.feasible_count == 1:
            self._pick(decision, int(np.flatnonzero(fits)[0]))
        else:
            decision.scored = sheet.run_scores(decision.state, decision.pod, fits)
            self._pick(decision, self._best(decision))

    # Which nodes are in question

    def _fits(self, decision: Decision, filtered: Filtered) -> Mask:
        """The rows to choose from."""
        fits = filtered.fits
        promised = self._promised()
        if promised:
            self._overrule(decision, promised)
            if decision.overruled:
                fits = fits.copy()
                fits[list(decision.overruled)] = False
        if decision.pre.names is not None:
            fits = fits & self._cluster.table.named(decision.pre.names)
        nominated = self._nominated_row(decision, fits)
        if nominated is not None:
            only = np.zeros_like(fits)
            only[nominated] = True
            decision.feasible_count = 1
            return only
        if decision.profile.percentage is not None:
            return self._sample(decision, fits)
        decision.feasible_count = int(np.count_nonzero(fits))
        return fits

    def _nominated_row(self, decision: Decision, fits: Mask) -> int | None:
        """The node promised to this very pod, if it fits: no other is looked for then."""
        name = decision.pod.status.nominated_node_name
        row = self._cluster.table.row_of.get(name) if name else None
        return row if row is not None and fits[row] else None

    def _overrule(self, decision: Decision, promised: Mapping[str, list[Pod]]) -> None:
        """Nodes with promised pods of at least this priority must have room beside those."""
        table = self._cluster.table
        for node, pods in promised.items():
            row = table.row_of.get(node)
            others = [
                pod
                for pod in pods
                if pod.priority >= decision.pod.priority and pod.uid != decision.pod.uid
            ]
            if row is None or table.nodes[row] is None or not others:
                continue
            question = WhatIf(decision.profile, decision.state, decision.pod, decision.pre, row)
            for other in others:
                question.add(Placed(other, self._templates.of(other).usage))
            status = question.status()
            if status.is_rejected:
                decision.overruled[row] = status
            elif not status.is_success:
                decision.status = status
                return

    def _sample(self, decision: Decision, fits: Mask) -> Mask:
        order = self._cluster.table.order.rows()
        names = decision.pre.names
        if names is not None:
            order = order[self._cluster.table.named(names)[order]]
        percentage = decision.profile.percentage or 0
        wanted = sampling.enough(len(order), percentage) if decision.profile.has_scores else 1
        feasible, decision.refused = self._walk.sample(order, fits, wanted, decision.nodes)
        sampled = np.zeros_like(fits)
        sampled[feasible] = True
        decision.feasible_count = len(feasible)
        return sampled

    # Choosing

    def _best(self, decision: Decision) -> int:
        """A row with the highest total; which of several is up to the seed."""
        assert decision.scored is not None
        totals = decision.scored.totals
        ties = decision.ties = np.flatnonzero(totals == totals.max())
        return int(ties[self._random.randrange(len(ties))] if len(ties) > 1 else ties[0])

    def _pick(self, decision: Decision, row: int) -> None:
        decision.row = row
        decision.node = self._cluster.table.name(row)

    # Refusing

    def _refuse_early(self, decision: Decision) -> None:
        """A pre_filter plugin refused the pod for all nodes."""
        status = decision.pre.rejected
        assert status is not None
        message = diagnosis.summarize(decision.nodes, pre_filter=status.message)
        decision.diagnosis = Diagnosis(message)
        decision.diagnosis.blame(status)
        if not status.plugin or status.code.name == "UNSCHEDULABLE":
            decision.diagnosis.unschedulable_plugins.update(decision.pre.narrowed_by)
        self._after_refusal(decision, Refusal(decision.pre, None, status))

    def _refuse(self, decision: Decision) -> None:
        """Every node in question was refused."""
        pre, filtered = decision.pre, decision.filtered
        assert filtered is not None
        absent = NOT_LOOKED_AT if pre.names is None else pre.absent
        rows = self._in_question(decision)
        overruled = [row for row in rows.tolist() if row in decision.overruled]
        plain = rows[~np.isin(rows, overruled)] if overruled else rows
        refused = filtered.histogram(plain)
        refused += [(decision.overruled[row], 1) for row in overruled]
        message = diagnosis.summarize(decision.nodes, refused=refused, absent=absent)
        decision.diagnosis = Diagnosis(message, set(pre.narrowed_by))
        for status, _ in refused:
            decision.diagnosis.blame(status)
        self._after_refusal(decision, Refusal(pre, filtered, absent, decision.overruled))

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
            profile = decision.profile
            answer = profile.run_post_filters(decision.state, decision.pod, refusal)
            decision.post_filter = answer.status
            decision.nominated = answer.nominated
            decision.requests = answer.requests
        decision.status = unschedulable(decision.message)


def _fill(found: list[int], totals: NDArray[np.int64], count: int) -> list[int]:
    """Add the next best rows until there are enough, as far as there are any."""
    rest = totals.copy()
    while len(found) < count:
        rest[found] = -1
        best = int(rest.max())
        if best < 0:
            break
        found = [*found, *np.flatnonzero(rest == best)[: count - len(found)].tolist()]
    return found
