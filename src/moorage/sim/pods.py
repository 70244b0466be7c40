"""What an API server decides about pods: how they begin, may change, may be bound, and end."""

from typing import TypeVar

from msgspec.structs import replace

from moorage.api.meta import Condition, KubeObject
from moorage.api.pod import Pod
from moorage.sim.clock import timestamp
from moorage.sim.refusals import Forbidden

T = TypeVar("T", bound=KubeObject)

DEFAULT_GRACE_SECONDS = 30
SCHEDULED = Condition(type="PodScheduled", status="True")
GATED = Condition(
    type="PodScheduled",
    status="False",
    reason="SchedulingGated",
    message="Scheduling is blocked due to non-empty scheduling gates",
)


def begun(obj: T, now: float) -> T:
    """An object as it is stored when it is created: a pod is pending, and maybe gated."""
    if not isinstance(obj, Pod):
        return obj
    status = obj.status
    if not status.phase:
        status = replace(status, phase="Pending")
    if obj.spec.scheduling_gates and not obj.node_name:
        status = replace(status, conditions=with_condition(status.conditions, GATED, now))
    return replace(obj, status=status)


def check_update(old: Pod, new: Pod) -> None:
    """Refuse what nobody may change on an existing pod."""
    if new.node_name not in ("", old.node_name):
        raise Forbidden(f'Pod "{new.name}" is invalid: spec.nodeName: Forbidden: only bind sets it')
    before = {gate.name for gate in old.spec.scheduling_gates}
    if any(gate.name not in before for gate in new.spec.scheduling_gates):
        raise Forbidden(
            f'Pod "{new.name}" is invalid: spec.schedulingGates: Forbidden: '
            "only deletion is allowed, but found new scheduling gate"
        )


def bound(pod: Pod, node: str, now: float) -> Pod:
    """The pod on its node."""
    conditions = with_condition(pod.status.conditions, SCHEDULED, now)
    return replace(
        pod,
        spec=replace(pod.spec, node_name=node),
        status=replace(pod.status, conditions=conditions, nominated_node_name=""),
    )


def bind_problem(pod: Pod) -> str:
    """Why a pod may not be bound; empty if it may."""
    if pod.is_terminating:
        return f"pod {pod.name} is being deleted, cannot be assigned to a host"
    if pod.node_name:
        return f'pod {pod.name} is already assigned to node "{pod.node_name}"'
    if pod.spec.scheduling_gates:
        return f"pod {pod.name} has non-empty .spec.schedulingGates"
    return ""


def grace_seconds(pod: Pod, asked: int | None) -> int:
    """How long a deleted pod may take to end; 0 where no kubelet has anything to wind down."""
    if not pod.node_name or pod.is_terminal:
        return 0
    own = pod.spec.termination_grace_period_seconds
    return next(s for s in (asked, own, DEFAULT_GRACE_SECONDS) if s is not None)


def terminating(pod: Pod, seconds: int, now: float) -> Pod:
    """The pod with the time by which it will have ended."""
    meta = replace(
        pod.metadata,
        deletion_timestamp=timestamp(now + seconds),
        deletion_grace_period_seconds=seconds,
    )
    return replace(pod, metadata=meta)


def with_condition(
    conditions: tuple[Condition, ...], new: Condition, now: float
) -> tuple[Condition, ...]:
    """The conditions with one set; its transition time moves only when its status does."""
    old = next((condition for condition in conditions if condition.type == new.type), None)
    changed_at = new.last_transition_time or timestamp(now)
    if old is not None and old.status == new.status:
        changed_at = old.last_transition_time or changed_at
    new = replace(new, last_transition_time=changed_at)
    if old is None:
        return (*conditions, new)
    return tuple(new if condition is old else condition for condition in conditions)
