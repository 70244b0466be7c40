"""DefaultPreemption: a pod that fits no node evicts less important pods.

A pod that may preempt is tried on the nodes where preemption may help (`candidates`). On each, the
victims are the pods that must leave (`victims`; `dry_run` for many nodes at once). The node with
the least harm is chosen. The core evicts the victims and reports when that begins and ends;
meanwhile the pod is gated, because another attempt would evict even more.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from moorage import plugin as mp
from moorage.errors import PluginError
from moorage.plugins.default_preemption import candidates, groups, victims
from moorage.plugins.default_preemption.candidates import Candidates, Found
from moorage.plugins.default_preemption.dry_run import PreemptionDryRun
from moorage.plugins.default_preemption.results import DryRunResults, PreemptionCache
from moorage.plugins.disruption_budgets import Budgets

NOT_HELPFUL = mp.unresolvable("Preemption is not helpful for scheduling")
UNDER_WAY = mp.unresolvable("waiting for the preemption for this pod to be finished")
GROUP_UNDER_WAY = mp.unresolvable("waiting for the preemption for this pod group to be finished")

NO_CANDIDATE = mp.unschedulable("preemption: no candidate node for preemption")
NEVER = mp.unschedulable("preemption: not eligible due to preemptionPolicy=Never.")
TERMINATING = mp.unschedulable(
    "preemption: not eligible due to a terminating pod on the nominated node."
)

CONSTRAINED = mp.unschedulable(
    "preemption: not eligible due to placement-based pod group scheduling limitation"
)
BY_GROUP = mp.unschedulable("preemption: not eligible due to workload aware preemption enabled")
NO_GROUP = mp.unschedulable("preemption: pod group for pod not found")

CLEAR = ""
DISRUPTION_TARGET = "DisruptionTarget"
BY_SCHEDULER = "PreemptionByScheduler"


class DefaultPreemption:
    name = "DefaultPreemption"
    # Members of a group that is restricted to placements do not preempt.
    preempts_in_placements = False
    reads_kinds = ("PodDisruptionBudget",)

    def __init__(
        self, *, min_candidate_nodes_percentage: int = 10, min_candidate_nodes_absolute: int = 100
    ) -> None:
        self._percentage = min_candidate_nodes_percentage
        self._absolute = min_candidate_nodes_absolute
        # UIDs of the pods for which victims are being evicted.
        self._under_way: set[str] = set()
        # Pod groups for which victims are being evicted.
        self._groups_under_way: set[str] = set()
        self._cache = PreemptionCache()
        self._for_groups = False

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cache": PreemptionCache()}

    # Queue

    def pre_enqueue(self, pod: mp.Pod) -> mp.Status:
        if self._groups_under_way and mp.group_key(pod) in self._groups_under_way:
            return GROUP_UNDER_WAY
        return UNDER_WAY if pod.uid in self._under_way else mp.SUCCESS

    def attach(self, cluster: mp.Cluster) -> None:
        self._for_groups = cluster.has_feature(mp.feature_gates.WORKLOAD_AWARE_PREEMPTION)

    def preemption_started(self, pod: mp.Pod) -> None:
        if self._for_groups and pod.spec.scheduling_group is not None:
            self._groups_under_way.add(mp.group_key(pod))
        else:
            self._under_way.add(pod.metadata.uid)

    def preemption_finished(self, pod: mp.Pod) -> None:
        if self._for_groups and pod.spec.scheduling_group is not None:
            self._groups_under_way.discard(mp.group_key(pod))
        self._under_way.discard(pod.metadata.uid)

    def post_filter_group(
        self,
        cluster: mp.Cluster,
        group: mp.PodGroup,
        pods: Sequence[mp.Pod],
        trial: mp.GroupTrial,
    ) -> tuple[mp.Pod, ...] | mp.Status:
        return groups.victims_of(cluster, group, pods, trial, self._cache.budgets(cluster))

    def events_to_register(self) -> mp.Events:
        return {mp.ClusterEvent.POD_DELETE: self._victim_deleted}

    def _victim_deleted(self, pod: mp.Pod, old: mp.Pod | None, new: mp.Pod | None) -> mp.Hint:
        """The plugin that rejected the pod decides whether a deletion helps.

        Only a member that joined its group during the group's preemption was never rejected.
        """
        is_member = self._for_groups and pod.spec.scheduling_group is not None
        if is_member and pod.condition("PodScheduled") is None:
            return mp.Hint.QUEUE
        return mp.Hint.QUEUE_SKIP

    # Preemption

    def post_filter(
        self, state: mp.CycleState, pod: mp.Pod, failure: mp.NoFeasibleNode
    ) -> mp.PostFiltered:
        if pod.spec.scheduling_group is not None:
            limit = _group_limit(state.cluster, pod)
            if limit is not None:
                return mp.PostFiltered(limit)
        if pod.spec.preemption_policy == "Never":
            return mp.PostFiltered(NEVER)
        if failure.nominated and _waits_for_victims(state.table, pod, failure):
            return mp.PostFiltered(TERMINATING)
        cached = self._cache.results(state)
        rows = cached.potential_rows(failure)
        if not len(rows):
            return self._no_candidate(state, Counter())
        budgets = self._cache.budgets(state.cluster)
        # The results of earlier attempts that still hold.
        own = state.table.row_of.get(failure.nominated)
        results = cached.refresh(failure.what_if.key, budgets, own)
        start = failure.random.randrange(len(rows))
        found = self._search(state, pod, failure, cached.visited_from(start), results, budgets)
        if found.best is None:
            return self._no_candidate(state, results.rejections(rows))
        listed = Candidates(results, found)
        if not failure.reviewers:
            return _chosen(listed, results.candidate(found.best), listed.why)
        try:
            left = review(pod, listed, failure.reviewers)
        except ReviewError as error:
            return mp.PostFiltered(_error(str(error)))
        if not left:
            return mp.PostFiltered(NO_CANDIDATE)
        position, why = candidates.choose(left)
        return _chosen(left, left[position], why)

    def _search(
        self,
        state: mp.CycleState,
        pod: mp.Pod,
        failure: mp.NoFeasibleNode,
        rows: mp.RowArray,
        results: DryRunResults,
        budgets: Budgets,
    ) -> Found:
        """The candidates, those that violate no budget first; rows are visited in this order."""
        needed = candidates.enough(len(rows), self._percentage, self._absolute)

        def dry_run(untried: mp.RowArray) -> None:
            if len(untried) > candidates.FEW:
                untried = self._try_many(state, pod, failure, untried, results, budgets)
            for row in untried.tolist():
                try:
                    outcome = victims.on_node(pod, failure.what_if.node(row), budgets)
                except PluginError as error:
                    outcome = mp.Status(mp.Code.ERROR, (str(error),))
                results.record(row, outcome)

        return candidates.find(rows, needed, results, dry_run)

    def _try_many(
        self,
        state: mp.CycleState,
        pod: mp.Pod,
        failure: mp.NoFeasibleNode,
        rows: mp.RowArray,
        results: DryRunResults,
        budgets: Budgets,
    ) -> mp.RowArray:
        """Try rows together if possible; returns those that have to be tried one by one."""
        own: mp.Mask = rows == state.table.row_of.get(failure.nominated, -1)
        together = rows[~own]
        supposed = failure.what_if.rows(together)
        if supposed is None:
            return rows
        pods = self._cache.sorted_pods(state.table)
        pods.refresh(together)
        try:
            PreemptionDryRun.of(pod, together, supposed, pods, budgets).run(results)
        except PluginError:
            return rows  # One by one, the error is reported for the nodes that it is about.
        return rows[own]

    def _no_candidate(
        self, state: mp.CycleState, rejections: Counter[mp.Status]
    ) -> mp.PostFiltered:
        """Preemption helps nowhere: say why, and clear the nomination."""
        errors = [status.message for status in rejections if not status.is_rejected]
        if errors:
            text = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
            return mp.PostFiltered(_error(text))
        nodes = state.table.node_count
        text = mp.summarize(nodes, rejected=rejections.items(), absent=NOT_HELPFUL)
        return mp.PostFiltered(mp.unschedulable(f"preemption: {text}"), CLEAR)


def _waits_for_victims(table: mp.NodeTable, pod: mp.Pod, failure: mp.NoFeasibleNode) -> bool:
    """Whether victims are terminating on the pod's nominated node."""
    row = table.row_of.get(failure.nominated)
    if row is None or table.nodes[row] is None:
        return False
    if failure.status(row).code is mp.Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return False  # The end of the victims does not help there, so the pod may try elsewhere.
    return any(
        other.pod.priority < pod.priority and _is_preempted(other.pod)
        for other in table.placed[row].values()
    )


def _is_preempted(pod: mp.Pod) -> bool:
    """Whether a pod is being deleted because a scheduler preempted it."""
    target = pod.condition(DISRUPTION_TARGET) if pod.is_terminating else None
    return target is not None and (target.status, target.reason) == ("True", BY_SCHEDULER)


def _chosen(
    found: Sequence[mp.Candidate], best: mp.Candidate, why: str | Callable[[], str]
) -> mp.PostFiltered:
    return mp.PostFiltered(
        mp.SUCCESS, nominated=best.node, victims=best.victims, candidates=found, why=why
    )


def _error(text: str) -> mp.Status:
    # Returned, not raised: Kubernetes words this error without naming the plugin.
    return mp.Status(mp.Code.ERROR, (f"preemption: {text}",))


# Reviewers: HTTP extenders that take part in preemption


class ReviewError(Exception):
    """A reviewer that is not ignorable failed, or returned a node without victims."""


def review(
    pod: mp.Pod, found: Iterable[mp.Candidate], reviewers: Sequence[mp.Reviewer]
) -> list[mp.Candidate]:
    """The candidates after each reviewer has removed nodes or replaced victims, in turn."""
    left = {each.node: each for each in found}
    for reviewer in reviewers:
        if left and reviewer.is_interested(pod):
            left = _review(pod, left, reviewer)
    return list(left.values())


def _review(
    pod: mp.Pod, found: dict[str, mp.Candidate], reviewer: mp.Reviewer
) -> dict[str, mp.Candidate]:
    try:
        left = dict(reviewer.review(pod, found))
    except Exception as error:  # The reviewer is not our code; it may raise anything.
        if reviewer.ignorable:
            return found
        raise ReviewError(str(error)) from error
    empty = [node for node, each in left.items() if not each.victims]
    if empty and not reviewer.ignorable:
        raise ReviewError(f'expected at least one victim pod on node "{empty[0]}"')
    return {node: each for node, each in left.items() if each.victims}


def _group_limit(cluster: mp.Cluster, pod: mp.Pod) -> mp.Status | None:
    """Why a member of a pod group does not preempt; None if it may."""
    if cluster.has_feature(mp.feature_gates.WORKLOAD_AWARE_PREEMPTION):
        return BY_GROUP
    if not cluster.has_feature(mp.feature_gates.TOPOLOGY_AWARE):
        return None
    group = cluster.get(mp.PodGroup, mp.group_key(pod))
    if group is None:
        return NO_GROUP
    return CONSTRAINED if group.spec.scheduling_constraints is not None else None
