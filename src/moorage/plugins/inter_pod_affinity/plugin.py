"""InterPodAffinity: place a pod near, or away from, other pods.

Required affinity and anti-affinity reject nodes, and so does the required anti-affinity of pods on
nodes. Preferred terms, the pod's own and others', add or subtract points; pods that require
affinity to this pod add `hard_pod_affinity_weight` each. The topology key of a term says which
nodes count as near. The counts are views of the placements (`mp.Placements`).
"""

from collections.abc import Hashable

from moorage import plugin as mp
from moorage.plugins.inter_pod_affinity import filtering
from moorage.plugins.inter_pod_affinity.filtering import (
    AffinityCounts,
    FilterToken,
    GroupVerdicts,
)
from moorage.plugins.inter_pod_affinity.scoring import AffinityScores, MinMax
from moorage.plugins.inter_pod_affinity.template_terms import NAME, TemplateTerms

COUNTS = mp.StateKey[AffinityCounts](
    "PreFilterInterPodAffinity",
    missing='error reading "PreFilterInterPodAffinity" from cycleState: not found',
)
VERDICTS = mp.StateKey[GroupVerdicts]("GroupedInterPodAffinity")
SCORES = mp.StateKey[AffinityScores](
    "PreScoreInterPodAffinity",
    missing='failed to read "PreScoreInterPodAffinity" from cycleState: not found',
)


class InterPodAffinity:
    name = NAME
    depends = mp.Depends.PLACEMENTS
    reads_kinds = ("Namespace",)
    normalizer = MinMax()

    def __init__(
        self,
        *,
        hard_pod_affinity_weight: int = 1,
        ignore_preferred_terms_of_existing_pods: bool = False,
    ) -> None:
        self._hard_weight = hard_pod_affinity_weight
        self._ignores_others = ignore_preferred_terms_of_existing_pods

    def prepare(self, template: mp.PodTemplate) -> None:
        TemplateTerms.of(template)

    def skip_key(self, state: mp.CycleState, pod: mp.Pod) -> Hashable:
        """A pod without terms is skipped until there are pods whose terms match it."""
        terms = TemplateTerms.of(state.template)
        if terms.states_terms:
            return None
        if terms.has_no_terms(state.table.placements):
            return False, False
        both = terms.filter_views(state.cluster).views, self._counted(state, terms)
        return tuple(any(view.nonzero for view in views) for views in both)

    # Filter

    def pre_filter(self, state: mp.CycleState, pod: mp.Pod) -> mp.Status:
        terms = TemplateTerms.of(state.template)
        if terms.has_no_terms(state.table.placements):
            return mp.SKIP
        if terms.own.problems:
            return mp.unresolvable(f"parsing pod: {terms.problem}")
        views = terms.filter_views(state.cluster)
        if not terms.has_required and not any(view.nonzero for view in views.views):
            return mp.SKIP
        state[COUNTS] = AffinityCounts.of(terms, views)
        return mp.SUCCESS

    def add_pod(
        self, state: mp.CycleState, pod: mp.Pod, other: mp.Placed, node: mp.NodeInfo
    ) -> None:
        state[COUNTS].correct(other.pod, node.labels, 1)

    def remove_pod(
        self, state: mp.CycleState, pod: mp.Pod, other: mp.Placed, node: mp.NodeInfo
    ) -> None:
        state[COUNTS].correct(other.pod, node.labels, -1)

    def filter(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> mp.Status:
        return state[COUNTS].status(node.labels)

    def filter_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Verdicts:
        return state[COUNTS].verdicts(state.table, table)

    def filter_changes(
        self, state: mp.CycleState, pod: mp.Pod, since: FilterToken | None
    ) -> tuple[FilterToken, mp.RowArray | None]:
        return state[COUNTS].changes(since)

    # Score

    def pre_score(self, state: mp.CycleState, pod: mp.Pod, feasible: mp.Mask) -> mp.Status:
        return self._prepare_score(state, pod)

    def _prepare_score(self, state: mp.CycleState, pod: mp.Pod) -> mp.Status:
        if self._ignores_others and not _prefers(pod):
            return mp.SKIP
        terms = TemplateTerms.of(state.template)
        if terms.has_no_terms(state.table.placements):
            return mp.SKIP
        if terms.own.problems:
            raise mp.PluginFailure(f"failed to parse pod: {terms.problem}")
        if not any(view.nonzero for view in self._counted(state, terms)):
            return mp.SKIP
        views = terms.score_views(state.cluster)
        weighted = [*views.preferred]
        if self._hard_weight > 0:
            weighted += [(self._hard_weight, view) for view in views.required]
        state[SCORES] = AffinityScores(weighted)
        return mp.SUCCESS

    def _counted(self, state: mp.CycleState, terms: TemplateTerms) -> list[mp.DomainView]:
        """The views of the score; while all are empty, the pod is skipped."""
        views = terms.score_views(state.cluster)
        return views.views if self._hard_weight > 0 else views.weighted_views

    def score(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> int:
        return state[SCORES].of(node)

    def score_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Scores:
        return state[SCORES].of_all(table)

    # Both, by groups of nodes

    def group_keys(self, state: mp.CycleState, pod: mp.Pod) -> tuple[mp.GroupKey, ...] | None:
        keys: tuple[mp.GroupKey, ...] = ()
        if COUNTS in state:
            verdicts = state[VERDICTS] = GroupVerdicts(state[COUNTS])
            keys = verdicts.keys
        if self._prepare_score(state, pod) is mp.SKIP:
            return keys
        return (*keys, *state[SCORES].group_keys)

    def filter_groups(self, state: mp.CycleState, pod: mp.Pod, groups: mp.Groups) -> list[bool]:
        return state[VERDICTS].of(groups)

    def score_groups(
        self, state: mp.CycleState, pod: mp.Pod, groups: mp.Groups
    ) -> list[int] | None:
        return state[SCORES].of_groups(groups) if SCORES in state else None

    def explain_rejection(self, rejection: mp.Rejection) -> str:
        return filtering.explain(rejection)

    # Requeueing

    def events_to_register(self) -> mp.Events:
        return {
            mp.ClusterEvent.POD_ADD: pod_change,
            mp.ClusterEvent.UPDATE_POD_LABEL: pod_change,
            mp.ClusterEvent.POD_DELETE: pod_change,
            mp.ClusterEvent.NODE_ADD: node_change,
            mp.ClusterEvent.UPDATE_NODE_LABEL: node_change,
        }


def _prefers(pod: mp.Pod) -> bool:
    """Whether a pod has preferred terms."""
    affinity = pod.spec.affinity
    both = () if affinity is None else (affinity.pod_affinity, affinity.pod_anti_affinity)
    return any(each is not None and each.preferred for each in both)


# Hints. Namespace selectors are matched against empty labels, as in Kubernetes; a pod that waits
# because of that is retried when it has waited long.


def pod_change(pod: mp.Pod, old: mp.Pod | None, new: mp.Pod | None) -> mp.Hint:
    """A pod was added or deleted, or its labels changed."""
    if new is not None and old is not None and new.uid == pod.uid:
        return mp.Hint.QUEUE
    if not all(_is_placed(each) for each in (old, new) if each is not None):
        return mp.Hint.QUEUE_SKIP
    own = mp.affinity_terms.of(pod)
    if old is None:
        helps = new is not None and _match(own.required_affinity, new)
    elif new is None:
        theirs = mp.affinity_terms.of(old).required_anti_affinity
        helps = _match(own.required_anti_affinity, old) or _match(theirs, pod)
    else:
        affinity, anti_affinity = own.required_affinity, own.required_anti_affinity
        joins = _match(affinity, new) and not _match(affinity, old)
        helps = joins or (_match(anti_affinity, old) and not _match(anti_affinity, new))
    return mp.Hint.QUEUE if helps else mp.Hint.QUEUE_SKIP


def node_change(pod: mp.Pod, old: mp.Node | None, new: mp.Node) -> mp.Hint:
    """A node was added, or its labels changed."""
    own = mp.affinity_terms.of(pod)
    affinity = [term.topology_key for term in own.required_affinity]
    anti_affinity = [term.topology_key for term in own.required_anti_affinity]
    if old is None:
        helps = bool(anti_affinity) or any(key in new.labels for key in affinity)
    else:
        helps = any(
            key in new.labels and old.labels.get(key) != new.labels[key] for key in affinity
        ) or any(
            key in old.labels and new.labels.get(key) != old.labels[key] for key in anti_affinity
        )
    return mp.Hint.QUEUE if helps else mp.Hint.QUEUE_SKIP


def _is_placed(pod: mp.Pod) -> bool:
    """Whether a pod is on a node, or nominated to one."""
    return bool(pod.node_name or pod.status.nominated_node_name)


def _match(terms: tuple[mp.AffinityTerm, ...], pod: mp.Pod) -> bool:
    """Whether there are terms, and all of them match a pod."""
    return bool(terms) and all(term.matches(pod.namespace, pod.labels) for term in terms)
