"""PodTopologySpread: pods of one kind evenly over zones, nodes, or whatever a label tells apart.

A pod's hard constraints rule out nodes where its arrival would make a domain too full compared
with the emptiest one; its soft constraints prefer nodes with few pods of the kind around. Pods
that state no constraints get those of the profile, with a selector from their services and
controller. Nothing is counted here: the placements keep count.
"""

from collections.abc import Hashable, Iterable

import msgspec

from moorage import plugin as mp
from moorage.plugins.pod_topology_spread import advice
from moorage.plugins.pod_topology_spread.constraints import HARD, SOFT, SYSTEM_DEFAULTS, Stated
from moorage.plugins.pod_topology_spread.filtering import Spread, Spreads, Told
from moorage.plugins.pod_topology_spread.hints import Hints
from moorage.plugins.pod_topology_spread.scoring import FewestBest, Points
from moorage.plugins.pod_topology_spread.spreading import Defaults, Group, Spreading

SPREADS = mp.StateKey[Spreads]("PreFilterPodTopologySpread")
POINTS = mp.StateKey[Points]("PreScorePodTopologySpread")

SYSTEM = "System"


class PodTopologySpread:
    name = "PodTopologySpread"
    depends = mp.Depends.PLACEMENTS
    reads_kinds = ("Service", "ReplicationController", "ReplicaSet", "StatefulSet")
    normalizer = FewestBest()

    def __init__(
        self, *, default_constraints: Iterable[Stated] = (), defaulting_type: str = SYSTEM
    ) -> None:
        system = defaulting_type == SYSTEM
        stated = (
            SYSTEM_DEFAULTS
            if system
            else msgspec.convert(tuple(default_constraints), tuple[Stated, ...])
        )
        self._defaults = Defaults(stated, require_all=not system)
        self._hints = Hints(stated)
        # Templates are shared by profiles, whose defaults may differ.
        self._slot = f"{self.name} {msgspec.json.encode(stated).decode()}"

    def prepare(self, template: mp.PodTemplate) -> None:
        self._spreading(template)

    def skip_key(self, state: mp.CycleState, pod: mp.Pod) -> Hashable:
        """Whether there are constraints is a matter of the pod, its services and its controller."""
        return self._spreading(state.template).stamp(state.cluster)

    # Filter

    def pre_filter(self, state: mp.CycleState, pod: mp.Pod) -> mp.Status:
        try:
            group = self._group(HARD, state)
        except mp.selectors.SelectorError as trouble:
            text = "get constraints from pod: obtaining pod's hard topology spread constraints"
            raise mp.PluginFailure(f"{text}: {trouble}") from trouble
        if not group.constraints:
            return mp.SKIP
        counted = group.counted(state.table.placements)
        state[SPREADS] = Spreads(pod.namespace, [Spread(each) for each in counted])
        return mp.SUCCESS

    def add_pod(
        self, state: mp.CycleState, pod: mp.Pod, other: mp.Placed, node: mp.NodeInfo
    ) -> None:
        state[SPREADS].correct(other.pod, node, 1)

    def remove_pod(
        self, state: mp.CycleState, pod: mp.Pod, other: mp.Placed, node: mp.NodeInfo
    ) -> None:
        state[SPREADS].correct(other.pod, node, -1)

    def filter(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> mp.Status:
        return state[SPREADS].status(node)

    def filter_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Verdicts:
        return state[SPREADS].verdicts(table)

    def filter_changes(
        self, state: mp.CycleState, pod: mp.Pod, since: Told | None
    ) -> tuple[Told, mp.RowArray | None]:
        return state[SPREADS].news(since)

    # Score

    def pre_score(self, state: mp.CycleState, pod: mp.Pod, feasible: mp.Mask) -> mp.Status:
        try:
            group = self._group(SOFT, state)
        except mp.selectors.SelectorError as trouble:
            text = "calculating preScoreState: obtaining pod's soft topology spread constraints"
            raise mp.PluginFailure(f"{text}: {trouble}") from trouble
        if not group.constraints:
            return mp.SKIP
        state[POINTS] = Points(group, state.table, feasible)
        return mp.SUCCESS

    def score(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> int:
        return state[POINTS].of(node)

    def score_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Scores:
        return state[POINTS].of_all(table)

    def score_compact(self, state: mp.CycleState, pod: mp.Pod) -> mp.ScoresByGroup | None:
        return state[POINTS].by_kind

    def explain_rejection(self, rejection: mp.Rejection) -> str:
        return advice.explain(rejection)

    # Requeueing

    def events_to_register(self) -> mp.Events:
        pod_change, node_change = self._hints.pod_change, self._hints.node_change
        return {
            mp.ClusterEvent.POD_ADD: pod_change,
            mp.ClusterEvent.UPDATE_POD_LABEL: pod_change,
            mp.ClusterEvent.UPDATE_POD_TOLERATION: pod_change,
            mp.ClusterEvent.POD_DELETE: pod_change,
            mp.ClusterEvent.NODE_ADD: node_change,
            mp.ClusterEvent.NODE_DELETE: node_change,
            mp.ClusterEvent.UPDATE_NODE_LABEL: node_change,
            mp.ClusterEvent.UPDATE_NODE_TAINT: node_change,
        }

    def _group(self, action: str, state: mp.CycleState) -> Group:
        return self._spreading(state.template).group(action, state.cluster)

    def _spreading(self, template: mp.PodTemplate) -> Spreading:
        known: Spreading | None = template.compiled.get(self._slot)
        if known is None:
            known = template.compiled[self._slot] = Spreading(template.exemplar, self._defaults)
        return known
