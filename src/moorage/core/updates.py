"""The ClusterEvents of the core: its own, and those that an update of an object stands for."""

from moorage.api import requests
from moorage.api.kinds import KINDS
from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.framework.events import (
    ASSIGNED_POD,
    NODE,
    UNSCHEDULABLE_POD,
    WILDCARD,
    Action,
    ClusterEvent,
)
from moorage.nodes.template import have_same_usage

ASSIGNED_POD_ADD = ClusterEvent(ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_UPDATE = ClusterEvent(ASSIGNED_POD, Action.UPDATE)
ASSIGNED_POD_DELETE = ClusterEvent(ASSIGNED_POD, Action.DELETE)
UNSCHEDULABLE_POD_ADD = ClusterEvent(UNSCHEDULABLE_POD, Action.ADD)
UNSCHEDULABLE_POD_UPDATE = ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE)

FORCE_ACTIVATE = ClusterEvent(WILDCARD, Action.ALL, "ForceActivate")
UNSCHEDULABLE_TIMEOUT = ClusterEvent(WILDCARD, Action.ALL, "UnschedulableTimeout")

SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF = "PopFromBackoffQ"


def resource_of(obj: KubeObject) -> str:
    """The name of an object's kind in a ClusterEvent."""
    kind = KINDS[type(obj).__name__]
    return f"{kind.group}/{kind.name}" if kind.group else kind.name


def pod_update(old: Pod, new: Pod) -> list[ClusterEvent]:
    """The events of a pod update; a general Update if no specific aspect changed."""
    was, spec = old.spec, new.spec
    resource = ASSIGNED_POD if spec.node_name else UNSCHEDULABLE_POD
    has_same_labels = old.metadata.labels == new.metadata.labels
    # Most often nothing but a condition changed, or that the pod is terminating.
    has_same_requests = was == spec and have_same_usage(new, old)
    claims, claims_now = old.status.resource_claim_statuses, new.status.resource_claim_statuses
    if has_same_labels and has_same_requests and claims == claims_now:
        return _UPDATED[resource]
    actions = []
    if not has_same_labels:
        actions.append(Action.UPDATE_POD_LABEL)
    if not has_same_requests and requests.decreased(old, new):
        actions.append(Action.UPDATE_POD_SCALE_DOWN)
    if was is not spec:
        if was.scheduling_gates and not spec.scheduling_gates:
            actions.append(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        if len(was.tolerations) != len(spec.tolerations):
            actions.append(Action.UPDATE_POD_TOLERATION)
    if claims != claims_now:
        actions.append(Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    if not actions:
        return _UPDATED[resource]
    return [ClusterEvent(resource, action) for action in actions]


_UPDATED = {ASSIGNED_POD: [ASSIGNED_POD_UPDATE], UNSCHEDULABLE_POD: [UNSCHEDULABLE_POD_UPDATE]}


def node_update(old: Node, new: Node) -> list[ClusterEvent]:
    """The events of a node update; none for a heartbeat."""
    actions = []
    if old.spec.unschedulable and not new.spec.unschedulable:
        actions.append(Action.UPDATE_NODE_TAINT)
    if old.status.allocatable != new.status.allocatable:
        actions.append(Action.UPDATE_NODE_ALLOCATABLE)
    if old.labels != new.labels:
        actions.append(Action.UPDATE_NODE_LABEL)
    if old.spec.taints != new.spec.taints:
        actions.append(Action.UPDATE_NODE_TAINT)
    if _conditions(old) != _conditions(new):
        actions.append(Action.UPDATE_NODE_CONDITION)
    if old.metadata.annotations != new.metadata.annotations:
        actions.append(Action.UPDATE_NODE_ANNOTATION)
    if old.status.declared_features != new.status.declared_features:
        actions.append(Action.UPDATE_NODE_DECLARED_FEATURE)
    return [ClusterEvent(NODE, action) for action in actions]


def _conditions(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}
