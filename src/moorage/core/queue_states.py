"""The states of a pod in the scheduling queue, and the events that lead from one to another.

Whether an event happens is decided in `queue.py` (hints, backoff) and `sub_queues.py` (gates).
"""

from moorage.core.transitions import TransitionTable

NEW = "new"
ACTIVE = "active"
BACKOFF = "backoff"
UNSCHEDULABLE = "unschedulable"
GATED = "gated"
IN_FLIGHT = "in_flight"
DONE = "done"

ACTIVATE = "activate"
BACK_OFF = "back off"
REJECT = "reject"
GATE = "gate"
POP = "pop"
FINISH = "finish"
DELETE = "delete"

QUEUE_TRANSITIONS = TransitionTable(
    "queue",
    (
        (NEW, ACTIVATE, ACTIVE, "no pre_enqueue plugin rejects the new pod"),
        (NEW, GATE, GATED, "a pre_enqueue plugin rejects the new pod"),
        (ACTIVE, POP, IN_FLIGHT, "the pod is first in the order of `queue_sort`"),
        (ACTIVE, DELETE, DONE, "the pod is gone, or has a node"),
        (BACKOFF, ACTIVATE, ACTIVE, "the backoff is over, or a plugin activates the pod"),
        (BACKOFF, POP, IN_FLIGHT, "no pod is active; only pods that plugins rejected"),
        (BACKOFF, DELETE, DONE, "the pod is gone, or has a node"),
        (UNSCHEDULABLE, ACTIVATE, ACTIVE, "an event may help and the backoff is over"),
        (UNSCHEDULABLE, BACK_OFF, BACKOFF, "an event may help, but the backoff is not over"),
        (UNSCHEDULABLE, GATE, GATED, "an event may help, but a pre_enqueue plugin rejects the pod"),
        (UNSCHEDULABLE, DELETE, DONE, "the pod is gone, or has a node"),
        (GATED, ACTIVATE, ACTIVE, "no pre_enqueue plugin rejects the pod any more"),
        (GATED, BACK_OFF, BACKOFF, "the same, but the backoff is not over"),
        (GATED, GATE, GATED, "an event may help, but a pre_enqueue plugin still rejects the pod"),
        (GATED, DELETE, DONE, "the pod is gone, or has a node"),
        (IN_FLIGHT, ACTIVATE, ACTIVE, "the attempt failed, without a backoff to wait for"),
        (IN_FLIGHT, BACK_OFF, BACKOFF, "an error, or an event meanwhile may help"),
        (IN_FLIGHT, REJECT, UNSCHEDULABLE, "plugins rejected the pod; no event meanwhile helps"),
        (IN_FLIGHT, GATE, GATED, "the attempt failed, and a pre_enqueue plugin rejects the pod"),
        (IN_FLIGHT, FINISH, DONE, "the pod is permitted on its node, or is gone"),
        (DONE, ACTIVATE, ACTIVE, "the binding failed, without a backoff to wait for"),
        (DONE, BACK_OFF, BACKOFF, "the binding failed"),
        (DONE, GATE, GATED, "the binding failed, and a pre_enqueue plugin rejects the pod"),
    ),
)
