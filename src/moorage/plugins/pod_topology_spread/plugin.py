"""PodTopologySpread: spread matching pods evenly over zones, nodes, or other topology domains.

A hard constraint rejects nodes in domains that would have too many more matching pods than the
domain with the fewest. A soft constraint prefers nodes in domains with few matching pods. Pods
that state no constraints get those of the profile, with a selector from their services and
controller. The counts are views of the placements (`mp.Placements`).
"""

from collections.abc import Hashable, Iterable
from functools import lru_cache
from typing import NamedTuple

import msgspec

from moorage import plugin as mp
from moorage.plugins.pod_topology_spread import constraints, filtering
from moorage.plugins.pod_topology_spread.constraints import (
    HARD,
    HONOR,
    SOFT,
    SYSTEM_DEFAULTS,
    Stated,
)
from moorage.plugins.pod_topology_spread.filtering import (
    DomainCounts,
    FilterToken,
    GroupVerdicts,
    HardConstraints,
)
from moorage.plugins.pod_topology_spread.scoring import FewestBest, GroupedSpread, SpreadScores
from moorage.plugins.pod_topology_spread.views import ConstraintSet, Defaults, TemplateConstraints

HARD_CONSTRAINTS = mp.StateKey[HardConstraints](
    "PreFilterPodTopologySpread",
    missing='reading "PreFilterPodTopologySpread" from cycleState: not found',
)
VERDICTS = mp.StateKey[GroupVerdicts]("GroupVerdictsPodTopologySpread")
SCORES = mp.StateKey[SpreadScores](
    "PreScorePodTopologySpread",
    missing='error reading "PreScorePodTopologySpread" from cycleState: not found',
)
GROUPED = mp.StateKey[GroupedSpread]("GroupedPodTopologySpread")

SYSTEM = "System"

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[tuple[Stated, ...], dict[str, str]]).decode


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
        # Templates are shared by profiles, whose defaults may differ.
        self._slot = f"{self.name} {msgspec.json.encode(stated).decode()}"

    def prepare(self, template: mp.PodTemplate) -> None:
        self._constraints(template)

    def skip_key(self, state: mp.CycleState, pod: mp.Pod) -> Hashable:
        """Constraints come from the pod, or from its services and its controller."""
        return self._constraints(state.template).stamp(state.cluster)

    # Filter

    def pre_filter(self, state: mp.CycleState, pod: mp.Pod) -> mp.Status:
        try:
            group = self._group(HARD, state)
        except mp.selectors.SelectorError as error:
            text = "get constraints from pod: obtaining pod's hard topology spread constraints"
            raise mp.PluginFailure(f"{text}: {error}") from error
        if not group.constraints:
            return mp.SKIP
        counted = group.counted(state.table.placements)
        state[HARD_CONSTRAINTS] = HardConstraints(
            pod.namespace, [DomainCounts(each) for each in counted]
        )
        return mp.SUCCESS

    def add_pod(
        self, state: mp.CycleState, pod: mp.Pod, other: mp.Placed, node: mp.NodeInfo
    ) -> None:
        state[HARD_CONSTRAINTS].correct(other.pod, node, 1)

    def remove_pod(
        self, state: mp.CycleState, pod: mp.Pod, other: mp.Placed, node: mp.NodeInfo
    ) -> None:
        state[HARD_CONSTRAINTS].correct(other.pod, node, -1)

    def filter(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> mp.Status:
        return state[HARD_CONSTRAINTS].status(node)

    def filter_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Verdicts:
        return state[HARD_CONSTRAINTS].verdicts(table)

    def filter_changes(
        self, state: mp.CycleState, pod: mp.Pod, since: FilterToken | None
    ) -> tuple[FilterToken, mp.RowArray | None]:
        return state[HARD_CONSTRAINTS].changes(since)

    # Score

    def pre_score(self, state: mp.CycleState, pod: mp.Pod, feasible: mp.Mask) -> mp.Status:
        try:
            group = self._group(SOFT, state)
        except mp.selectors.SelectorError as error:
            text = "calculating preScoreState: obtaining pod's soft topology spread constraints"
            raise mp.PluginFailure(f"{text}: {error}") from error
        if not group.constraints:
            return mp.SKIP
        state[SCORES] = SpreadScores(group, state.table, feasible)
        return mp.SUCCESS

    def score(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> int:
        return state[SCORES].of(node)

    def score_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Scores:
        return state[SCORES].of_all(table)

    # Both, by groups of nodes

    def group_keys(self, state: mp.CycleState, pod: mp.Pod) -> tuple[mp.GroupKey, ...] | None:
        hard: tuple[mp.GroupKey, ...] | None = ()
        if HARD_CONSTRAINTS in state:
            counted = [spread.counted for spread in state[HARD_CONSTRAINTS].spreads]
            state[VERDICTS] = verdicts = GroupVerdicts(counted)
            hard = verdicts.keys
        soft = self._group(SOFT, state)
        if not soft.constraints:
            return hard
        state[GROUPED] = grouped = GroupedSpread(soft, state.table)
        keys = grouped.keys
        return None if hard is None or keys is None else (*hard, *keys)

    def filter_groups(self, state: mp.CycleState, pod: mp.Pod, groups: mp.Groups) -> list[bool]:
        return state[VERDICTS].of(groups)

    def score_groups(
        self, state: mp.CycleState, pod: mp.Pod, groups: mp.Groups
    ) -> list[int] | None:
        return state[GROUPED].of(groups) if GROUPED in state else None

    def explain_rejection(self, rejection: mp.Rejection) -> str:
        return filtering.explain(rejection)

    # Requeueing: of all constraints, only hard ones matter

    def events_to_register(self) -> mp.Events:
        return {
            mp.ClusterEvent.POD_ADD: self.pod_change,
            mp.ClusterEvent.UPDATE_POD_LABEL: self.pod_change,
            mp.ClusterEvent.UPDATE_POD_TOLERATION: self.pod_change,
            mp.ClusterEvent.POD_DELETE: self.pod_change,
            mp.ClusterEvent.NODE_ADD: self.node_change,
            mp.ClusterEvent.NODE_DELETE: self.node_change,
            mp.ClusterEvent.UPDATE_NODE_LABEL: self.node_change,
            mp.ClusterEvent.UPDATE_NODE_TAINT: self.node_change,
        }

    def pod_change(self, pod: mp.Pod, old: mp.Pod | None, new: mp.Pod | None) -> mp.Hint:
        """A pod was added or deleted, or its labels or tolerations changed."""
        if not all(_is_involved(pod, each) for each in (old, new) if each is not None):
            return mp.Hint.QUEUE_SKIP
        hard = self._hard(pod)
        if old is not None and new is not None:
            more = old.spec.tolerations != new.spec.tolerations and new.uid == pod.uid
            helps = more and any(each.honors_taints for each in hard)
            changed = old.labels != new.labels
            helps |= changed and any(each.is_changed_by(old.labels, new.labels) for each in hard)
        else:
            labels = (new or old or pod).labels
            helps = any(each.selects(labels) for each in hard)
        return mp.Hint.QUEUE if helps else mp.Hint.QUEUE_SKIP

    def node_change(self, pod: mp.Pod, old: mp.Node | None, new: mp.Node | None) -> mp.Hint:
        """A node was added or deleted, or its labels or taints changed."""
        keys = [each.topology_key for each in self._hard(pod)]
        mattered = old is not None and all(key in old.labels for key in keys)
        matters = new is not None and all(key in new.labels for key in keys)
        helps = mattered != matters
        if old is not None and new is not None and matters:
            moved = any(old.labels.get(key) != new.labels[key] for key in keys)
            helps |= moved or old.spec.taints != new.spec.taints
        return mp.Hint.QUEUE if helps else mp.Hint.QUEUE_SKIP

    def _hard(self, pod: mp.Pod) -> "tuple[HintConstraint, ...]":
        """The hard constraints of a pod, its own or those of the profile.

        The selector of the profile's comes from services and controllers, which a hint cannot read;
        so any pod of the namespace may be one that it selects.
        """
        own = pod.spec.topology_spread_constraints
        if own:
            return _parsed(_encode((own, pod.labels)))
        return tuple(
            HintConstraint(each.topology_key, None, each.node_taints_policy == HONOR)
            for each in self._defaults.stated
            if each.when_unsatisfiable == HARD
        )

    def _group(self, action: str, state: mp.CycleState) -> ConstraintSet:
        return self._constraints(state.template).group(action, state.cluster)

    def _constraints(self, template: mp.PodTemplate) -> TemplateConstraints:
        known: TemplateConstraints | None = template.compiled.get(self._slot)
        if known is None:
            known = template.compiled[self._slot] = TemplateConstraints(
                template.exemplar, self._defaults
            )
        return known


class HintConstraint(NamedTuple):
    """The part of a hard constraint that a hint reads; `selector` is None if it is unknown."""

    topology_key: str
    selector: mp.selectors.Selector | None
    honors_taints: bool

    def is_changed_by(self, one: dict[str, str], other: dict[str, str]) -> bool:
        """Whether a change of labels adds a pod to the selected ones, or removes it."""
        return self.selector is None or self.selector.matches(one) != self.selector.matches(other)

    def selects(self, labels: dict[str, str]) -> bool:
        return self.selector is None or self.selector.matches(labels)


# Hints are called for the same few pods after every change.
@lru_cache(maxsize=1024)
def _parsed(content: bytes) -> tuple[HintConstraint, ...]:
    stated, labels = _decode(content)
    pod = mp.Pod(metadata=mp.ObjectMeta(labels=labels))
    return tuple(
        HintConstraint(each.topology_key, each.selector, each.honors_taints)
        for each in constraints.parse(pod, stated, HARD)
    )


def _is_involved(pod: mp.Pod, other: mp.Pod) -> bool:
    """Whether a change of `other` may matter: it is the pod, or is on a node in its namespace."""
    if other.uid == pod.uid:
        return True
    is_placed = bool(other.node_name or other.status.nominated_node_name)
    return is_placed and other.namespace == pod.namespace
