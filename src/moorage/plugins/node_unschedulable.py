"""NodeUnschedulable: reject cordoned nodes.

A cordoned node has `spec.unschedulable` set. A pod that tolerates the taint that usually comes with
it is not rejected, whether the node has that taint or not.
"""

import numpy as np

from moorage import plugin as mp

CORDONED = mp.unresolvable("node(s) were unschedulable")
TAINT = mp.Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def is_unschedulable(node: mp.Node) -> bool:
    return node.spec.unschedulable


def tolerates(pod: mp.Pod) -> bool:
    return mp.selectors.tolerates_any(pod.spec.tolerations, TAINT)


UNSCHEDULABLE = mp.Column("unschedulable", np.bool_, read=is_unschedulable, default=False)


class NodeUnschedulable:
    name = "NodeUnschedulable"
    columns = (UNSCHEDULABLE,)
    depends = mp.Depends.NODE
    reads_kinds = ()

    def reads(self, pod: mp.Pod) -> tuple[mp.Toleration, ...]:
        return pod.spec.tolerations

    def filter(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> mp.Status:
        if is_unschedulable(node.node) and not tolerates(pod):
            return CORDONED
        return mp.SUCCESS

    def filter_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Verdicts:
        fits = np.ones(len(table), dtype=np.bool_) if tolerates(pod) else ~table[UNSCHEDULABLE]
        return mp.Verdicts(fits=fits, otherwise=CORDONED)

    def explain_rejection(self, rejection: mp.Rejection) -> str:
        names = mp.texts.listed([node.name for node in rejection.nodes], 60)
        return f"cordoned; `kubectl uncordon` makes them schedulable again: {names}."

    def events_to_register(self) -> mp.Events:
        return {
            mp.ClusterEvent.NODE_ADD: uncordoned,
            mp.ClusterEvent.UPDATE_NODE_TAINT: uncordoned,
            mp.ClusterEvent.UPDATE_POD_TOLERATION: now_tolerates,
        }


def uncordoned(pod: mp.Pod, old: mp.Node | None, new: mp.Node) -> mp.Hint:
    opened = not is_unschedulable(new) and (old is None or is_unschedulable(old))
    return mp.Hint.QUEUE if opened else mp.Hint.QUEUE_SKIP


def now_tolerates(pod: mp.Pod, old: mp.Pod, new: mp.Pod) -> mp.Hint:
    return mp.Hint.QUEUE if new.uid == pod.uid and tolerates(new) else mp.Hint.QUEUE_SKIP
