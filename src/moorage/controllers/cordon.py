"""Cordoned nodes: `spec.unschedulable`, and the taint that the node controller derives from it.

Without the taint, topology spread constraints with `nodeTaintsPolicy: Honor` would count the node.
"""

from msgspec.structs import replace

from moorage.api.node import Node, Taint

UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def cordoned(node: Node) -> Node:
    """The node after `kubectl cordon`."""
    return _with(node, is_cordoned=True)


def uncordoned(node: Node) -> Node:
    """The node after `kubectl uncordon`."""
    return _with(node, is_cordoned=False)


def _with(node: Node, *, is_cordoned: bool) -> Node:
    others = tuple(taint for taint in node.spec.taints if taint.key != UNSCHEDULABLE.key)
    taints = (*others, UNSCHEDULABLE) if is_cordoned else others
    return replace(node, spec=replace(node.spec, unschedulable=is_cordoned, taints=taints))
