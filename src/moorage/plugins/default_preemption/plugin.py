"""DefaultPreemption: a pod that fits nowhere takes the place of less important ones.

With as little harm as possible: `eligibility` says whether the pod may, `search` looks for nodes
where it would help, `victims` for those who would have to leave, `choice` picks the node. Evicting
them is not done here. The core does it, and tells when it begins and when it is over: meanwhile the
pod is held back, because another attempt could only preempt even more.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from moorage import plugin as mp
from moorage.errors import PluginError
from moorage.plugins.default_preemption import choice, eligibility, reviews, search, victims
from moorage.plugins.default_preemption.budgets import Budgets
from moorage.plugins.default_preemption.dry_run import DryRun
from moorage.plugins.default_preemption.kept import Kept, KeptTrials
from moorage.plugins.default_preemption.trials import Candidates, Rows, Trials

NOT_HELPFUL = mp.unresolvable("Preemption is not helpful for scheduling")
UNDER_WAY = mp.unresolvable("waiting for the preemption for this pod to be finished")

NO_CANDIDATE = mp.unschedulable("preemption: no candidate node for preemption")

CLEAR = ""


class DefaultPreemption:
    name = "DefaultPreemption"
    reads_kinds = ("PodDisruptionBudget",)

    def __init__(
        self, *, min_candidate_nodes_percentage: int = 10, min_candidate_nodes_absolute: int = 100
    ) -> None:
        self._percentage = min_candidate_nodes_percentage
        self._absolute = min_candidate_nodes_absolute
        # UIDs of the pods for which others are being evicted.
        self._under_way: set[str] = set()
        self._kept = Kept()

    def __getstate__(self) -> dict[str, Any]:
        # What is kept can be found out again.
        return {**self.__dict__, "_kept": Kept()}

    # Queue

    def pre_enqueue(self, pod: mp.Pod) -> mp.Status:
        return UNDER_WAY if pod.uid in self._under_way else mp.SUCCESS

    def evictions_begun(self, pod: mp.Pod) -> None:
        self._under_way.add(pod.uid)

    def evictions_over(self, pod: mp.Pod) -> None:
        self._under_way.discard(pod.uid)

    def events_to_register(self) -> mp.Events:
        # Who refused the pod knows whether a deletion helps; this one only lets them be asked.
        return {mp.ClusterEvent.POD_DELETE: never}

    # Preemption

    def post_filter(
        self, state: mp.CycleState, pod: mp.Pod, refusal: mp.Refusal
    ) -> mp.PostFiltered:
        reason = eligibility.why_not(state, pod, refusal)
        if reason:
            return mp.PostFiltered(mp.unschedulable(f"preemption: {reason}"))
        kept = self._kept.trials(state)
        rows = kept.potential_rows(refusal)
        if not len(rows):
            return self._in_vain(state, Counter())
        trials = self._trials(state, refusal, kept)
        found = self._search(state, pod, refusal, rows, trials)
        if not len(found):
            return self._in_vain(state, trials.refusals(rows))
        candidates = Candidates(trials, found)
        if refusal.reviewers:
            return self._reviewed(pod, candidates, refusal.reviewers)
        return _chosen(candidates, choice.among_rows(found, trials))

    def _reviewed(
        self, pod: mp.Pod, candidates: Candidates, reviewers: Sequence[mp.Reviewer]
    ) -> mp.PostFiltered:
        """The answer after others have had a word in it."""
        try:
            left = reviews.after(pod, candidates, reviewers)
        except reviews.ReviewError as trouble:
            return mp.PostFiltered(_error(str(trouble)))
        if not left:
            return mp.PostFiltered(NO_CANDIDATE)
        return _chosen(left, choice.among(left))

    def _trials(self, state: mp.CycleState, refusal: mp.Refusal, kept: KeptTrials) -> Trials:
        """What is known from earlier attempts of such pods and still holds."""
        budgets = state.cluster.version_of(mp.PodDisruptionBudget)
        stamp = None if refusal.stamp is None else (refusal.stamp, budgets)
        own = state.table.row_of.get(refusal.nominated)
        return kept.refresh(stamp, own)

    def _search(
        self, state: mp.CycleState, pod: mp.Pod, refusal: mp.Refusal, rows: Rows, trials: Trials
    ) -> Rows:
        budgets = self._kept.budgets(state.cluster)
        start = refusal.random.randrange(len(rows))
        rotated = np.concatenate([rows[start:], rows[:start]])
        wanted = search.enough(len(rows), self._percentage, self._absolute)

        def try_out(untried: Rows) -> None:
            if len(untried) > search.FEW:
                untried = self._try_many(state, pod, refusal, untried, trials)
            for row in untried.tolist():
                trials.record(row, _try_one(pod, refusal.what_if(row), budgets))

        return search.candidates(rotated, wanted, trials, try_out)

    def _try_many(
        self, state: mp.CycleState, pod: mp.Pod, refusal: mp.Refusal, rows: Rows, trials: Trials
    ) -> Rows:
        """Try rows together, as far as possible; returns those that have to be tried singly."""
        budgets = self._kept.budgets(state.cluster)
        own: mp.Mask = rows == state.table.row_of.get(refusal.nominated, -1)
        together = rows[~own]
        supposed = refusal.suppose(together)
        if supposed is None:
            return rows
        crowds = self._kept.crowds(state.table)
        crowds.refresh(together)
        try:
            DryRun.of(pod, together, supposed, crowds, budgets).run(trials)
        except PluginError:
            return rows  # One by one it shows which nodes the trouble is about.
        return rows[own]

    def _in_vain(self, state: mp.CycleState, refusals: Counter[mp.Status]) -> mp.PostFiltered:
        """Nothing helps: say why, and take back what was promised."""
        errors = [status.message for status in refusals if not status.is_rejected]
        if errors:
            text = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
            return mp.PostFiltered(_error(text))
        nodes = state.table.node_count
        text = mp.summarize(nodes, refused=refusals.items(), absent=NOT_HELPFUL)
        return mp.PostFiltered(mp.unschedulable(f"preemption: {text}"), CLEAR)


def _chosen(candidates: Sequence[mp.Candidate], picked: choice.Choice) -> mp.PostFiltered:
    best = candidates[picked.place]
    return mp.PostFiltered(
        mp.SUCCESS,
        nominated=best.node,
        victims=best.victims,
        candidates=candidates,
        why=picked.why,
    )


def _error(text: str) -> mp.Status:
    # Not raised, as plugins usually do: the reference has its own words for this one.
    return mp.Status(mp.Code.ERROR, (f"preemption: {text}",))


def _try_one(pod: mp.Pod, question: mp.WhatIf, budgets: Budgets) -> mp.Candidate | mp.Status:
    try:
        return victims.on_node(pod, question, budgets)
    except PluginError as trouble:
        return mp.Status(mp.Code.ERROR, (str(trouble),))


def never(pod: mp.Pod, old: Any, new: Any) -> mp.Hint:
    return mp.Hint.QUEUE_SKIP
