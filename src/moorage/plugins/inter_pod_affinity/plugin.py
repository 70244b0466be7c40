"""InterPodAffinity: near the pods that a pod wants company of, away from those it cannot stand.

Required affinity and anti-affinity rule nodes out, and so does the required anti-affinity of pods
that are there already. Preferred terms, the pod's own and others', earn or cost points; pods that
require this pod's company add `hard_pod_affinity_weight` each. How near is near is a matter of
the term's topology key. Nothing is counted here: the placements keep count.
"""

from collections.abc import Hashable

from moorage import plugin as mp
from moorage.plugins.inter_pod_affinity import advice, hints
from moorage.plugins.inter_pod_affinity.filtering import Counts, Told
from moorage.plugins.inter_pod_affinity.incoming import NAME, Incoming, ScoreViews
from moorage.plugins.inter_pod_affinity.scoring import MinMax, Points

COUNTS = mp.StateKey[Counts]("PreFilterInterPodAffinity")
POINTS = mp.StateKey[Points]("PreScoreInterPodAffinity")


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
        Incoming.of(template)

    def skip_key(self, state: mp.CycleState, pod: mp.Pod) -> Hashable:
        """Pods that state no terms have to do with others only if those state some."""
        if Incoming.of(state.template).states_terms:
            return None
        cluster, table = state.cluster, state.table
        terms = table.placements.terms
        # Pods that state terms matter by the labels of their nodes.
        nodes = table.node_changes.position if terms.all else -1
        return terms.version, nodes, cluster.version_of(mp.Namespace)

    # Filter

    def pre_filter(self, state: mp.CycleState, pod: mp.Pod) -> mp.Status:
        incoming = Incoming.of(state.template)
        if incoming.is_alone(state.table.placements):
            return mp.SKIP
        if incoming.own.problems:
            return mp.unresolvable(f"parsing pod: {incoming.problem}")
        asked = incoming.filter_views(state.cluster)
        if not incoming.has_required and not any(view.nonzero for view in asked.views):
            return mp.SKIP
        state[COUNTS] = Counts.of(incoming, asked)
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
        self, state: mp.CycleState, pod: mp.Pod, since: Told | None
    ) -> tuple[Told, mp.RowArray | None]:
        return state[COUNTS].news(since)

    # Score

    def pre_score(self, state: mp.CycleState, pod: mp.Pod, feasible: mp.Mask) -> mp.Status:
        if self._ignores_others and not _prefers(pod):
            return mp.SKIP
        incoming = Incoming.of(state.template)
        if incoming.is_alone(state.table.placements):
            return mp.SKIP
        if incoming.own.problems:
            raise mp.PluginFailure(f"failed to parse pod: {incoming.problem}")
        asked = incoming.score_views(state.cluster)
        views = asked.views if self._hard_weight > 0 else asked.liked
        if not any(view.nonzero for view in views):
            return mp.SKIP
        state[POINTS] = self._points(incoming, asked, state.table)
        return mp.SUCCESS

    def _points(self, incoming: Incoming, asked: ScoreViews, table: mp.NodeTable) -> Points:
        """The points of all rows, kept for the next pod of the kind."""
        placements, asker = table.placements, (incoming, self._hard_weight)
        known: tuple[ScoreViews, Points] | None = placements.held(asker)
        if known is not None and known[0] is asked:
            known[1].refresh()
            return known[1]
        weighted = [*asked.preferred]
        if self._hard_weight > 0:
            weighted += [(self._hard_weight, view) for view in asked.required]
        points = Points(weighted, table)
        placements.hold(asker, (asked, points))
        return points

    def score(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> int:
        return state[POINTS].of(node)

    def score_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Scores:
        return state[POINTS].of_all(table)

    def score_compact(self, state: mp.CycleState, pod: mp.Pod) -> mp.SparseScores | None:
        return state[POINTS].few

    def explain_rejection(self, rejection: mp.Rejection) -> str:
        return advice.explain(rejection)

    # Requeueing

    def events_to_register(self) -> mp.Events:
        return {
            mp.ClusterEvent.POD_ADD: hints.pod_change,
            mp.ClusterEvent.UPDATE_POD_LABEL: hints.pod_change,
            mp.ClusterEvent.POD_DELETE: hints.pod_change,
            mp.ClusterEvent.NODE_ADD: hints.node_change,
            mp.ClusterEvent.UPDATE_NODE_LABEL: hints.node_change,
        }


def _prefers(pod: mp.Pod) -> bool:
    """Whether a pod says that it likes or dislikes company."""
    affinity = pod.spec.affinity
    both = () if affinity is None else (affinity.pod_affinity, affinity.pod_anti_affinity)
    return any(each is not None and each.preferred for each in both)
