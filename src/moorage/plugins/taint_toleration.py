"""TaintToleration: keep off nodes whose taints the pod does not tolerate.

Taints with effect NoSchedule and NoExecute rule a node out. Those with PreferNoSchedule cost
score: the fewer of them the pod does not tolerate, the better. Other effects are ignored.
"""

from collections import Counter
from functools import lru_cache

import numpy as np

from moorage import plugin as mp

UNTOLERATED = mp.unresolvable("node(s) had untolerated taint(s)")
# The tolerations that count against PreferNoSchedule.
SOFT_TOLERATIONS = mp.StateKey[tuple[mp.Toleration, ...]](
    "TaintToleration.soft_tolerations",
    missing='failed to read "PreScoreTaintToleration" from cycleState: not found',
)

HARD = ("NoSchedule", "NoExecute")
SOFT = "PreferNoSchedule"

Taints = tuple[mp.Taint, ...]
Tolerations = tuple[mp.Toleration, ...]


# A cluster has few distinct sets of taints and of tolerations, so the same pairs recur.
@lru_cache(maxsize=8192)
def is_untolerated(taints: Taints, tolerations: Tolerations) -> bool:
    """Whether a taint rejects the pod."""
    return any(
        taint.effect in HARD and not mp.selectors.tolerates_any(tolerations, taint)
        for taint in taints
    )


@lru_cache(maxsize=8192)
def untolerated_soft(taints: Taints, tolerations: Tolerations) -> int:
    """How many PreferNoSchedule taints are not tolerated."""
    return sum(
        taint.effect == SOFT and not mp.selectors.tolerates_any(tolerations, taint)
        for taint in taints
    )


class TaintToleration:
    name = "TaintToleration"
    depends = mp.Depends.NODE
    reads_kinds = ()
    normalizer = mp.ByMax(reverse=True)

    def reads(self, pod: mp.Pod) -> Tolerations:
        return pod.spec.tolerations

    def filter(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> mp.Status:
        return UNTOLERATED if is_untolerated(node.taints, pod.spec.tolerations) else mp.SUCCESS

    def filter_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Verdicts:
        tolerations = pod.spec.tolerations
        fits = np.array([not is_untolerated(taints, tolerations) for taints in table.taint_sets])
        return mp.Verdicts(fits=table.per_taint_set(fits), otherwise=UNTOLERATED)

    def pre_score(self, state: mp.CycleState, pod: mp.Pod, feasible: mp.Mask) -> mp.Status:
        state[SOFT_TOLERATIONS] = tuple(t for t in pod.spec.tolerations if t.effect in ("", SOFT))
        return mp.SUCCESS

    def score(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> int:
        return untolerated_soft(node.taints, state[SOFT_TOLERATIONS])

    def score_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Scores:
        tolerations = state[SOFT_TOLERATIONS]
        counts = [untolerated_soft(taints, tolerations) for taints in table.taint_sets]
        return table.per_taint_set(np.array(counts, dtype=np.int64))

    def explain_rejection(self, rejection: mp.Rejection) -> str:
        tolerations = rejection.pod.spec.tolerations
        counts = Counter(
            f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"
            for node in rejection.nodes
            for taint in node.taints
            if taint.effect in HARD and not mp.selectors.tolerates_any(tolerations, taint)
        )
        return f"the pod has no toleration for {mp.texts.counted(counts, 'node', 120)}."

    def events_to_register(self) -> mp.Events:
        return {
            mp.ClusterEvent.NODE_ADD: now_tolerated,
            mp.ClusterEvent.UPDATE_NODE_TAINT: now_tolerated,
            mp.ClusterEvent.UPDATE_POD_TOLERATION: own_tolerations,
        }


def now_tolerated(pod: mp.Pod, old: mp.Node | None, new: mp.Node) -> mp.Hint:
    tolerations = pod.spec.tolerations
    repelled = old is None or is_untolerated(old.spec.taints, tolerations)
    cured = repelled and not is_untolerated(new.spec.taints, tolerations)
    return mp.Hint.QUEUE if cured else mp.Hint.QUEUE_SKIP


def own_tolerations(pod: mp.Pod, old: mp.Pod, new: mp.Pod) -> mp.Hint:
    # Tolerations can only be added, so any change of them may help.
    return mp.Hint.QUEUE if new.uid == pod.uid else mp.Hint.QUEUE_SKIP
