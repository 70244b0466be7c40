"""The API server's rules for pods (creation, update, binding, deletion) and priority classes."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from moorage.api.admission import SYSTEM_PRIORITIES
from moorage.api.meta import Condition, KubeObject
from moorage.api.pod import Pod
from moorage.api.policy import PriorityClass
from moorage.api.resource_claims import FINALIZER
from moorage.controllers import job
from moorage.sim.clock import timestamp
from moorage.sim.refusals import Denied, Forbidden

T = TypeVar("T", bound=KubeObject)

PRIORITY_GROUP = "scheduling.k8s.io"
DEFAULT_GRACE_SECONDS = 30
SCHEDULED = Condition(type="PodScheduled", status="True")
GATED = Condition(
    type="PodScheduled",
    status="False",
    reason="SchedulingGated",
    message="Scheduling is blocked due to non-empty scheduling gates",
)


def initialized(obj: T, now: float) -> T:
    """An object as it is stored on creation: a pod becomes Pending, and gated if it has gates."""
    if not isinstance(obj, Pod):
        return obj
    status = obj.status
    if not status.phase:
        status = replace(status, phase="Pending")
    if obj.spec.scheduling_gates and not obj.node_name:
        status = replace(status, conditions=with_condition(status.conditions, GATED, now))
    return obj if status is obj.status else replace(obj, status=status)


def check_pod_update(old: Pod, new: Pod) -> None:
    """Refuse changes of immutable fields."""
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


def grace_seconds(pod: Pod, requested: int | None) -> int:
    """How long a deleted pod may take to end; 0 if no kubelet runs it."""
    if not pod.node_name or pod.is_terminal:
        return 0
    own = pod.spec.termination_grace_period_seconds
    return next(s for s in (requested, own, DEFAULT_GRACE_SECONDS) if s is not None)


def terminating(obj: T, seconds: int, now: float) -> T:
    """The object with its deletion timestamp."""
    meta = replace(
        obj.metadata,
        deletion_timestamp=timestamp(now + seconds),
        deletion_grace_period_seconds=seconds,
    )
    return replace(obj, metadata=meta)


def is_protected(obj: KubeObject) -> bool:
    """Whether a finalizer keeps the object: that of a device claim, or of the pod of a job."""
    finalizers = obj.metadata.finalizers
    return bool(finalizers) and (FINALIZER in finalizers or job.FINALIZER in finalizers)


def is_finished(obj: KubeObject) -> bool:
    """Whether the object is being deleted, and nothing keeps it any more."""
    meta = obj.metadata
    return (
        meta.deletion_timestamp is not None
        and not meta.deletion_grace_period_seconds
        and not is_protected(obj)
    )


def with_condition(
    conditions: tuple[Condition, ...], new: Condition, now: float
) -> tuple[Condition, ...]:
    """The conditions with one replaced; its transition time changes only with its status."""
    old = next((condition for condition in conditions if condition.type == new.type), None)
    changed_at = new.last_transition_time or timestamp(now)
    if old is not None and old.status == new.status:
        changed_at = old.last_transition_time or changed_at
    new = replace(new, last_transition_time=changed_at)
    if old is None:
        return (*conditions, new)
    return tuple(new if condition is old else condition for condition in conditions)


def is_priority_class(obj: KubeObject | Mapping[str, Any]) -> bool:
    """Whether an object, or its manifest, is a priority class."""
    kind = obj.get("kind") if isinstance(obj, Mapping) else type(obj).__name__
    return kind == "PriorityClass"


def check_default_class(new: KubeObject, known: Iterable[PriorityClass]) -> None:
    """Refuse a second default class."""
    if isinstance(new, PriorityClass) and new.global_default:
        for other in known:
            if other.global_default and other.name != new.name:
                raise Denied(
                    f'priorityclasses.{PRIORITY_GROUP} "{new.name}" is forbidden: PriorityClass '
                    f"{other.name} is already marked as default. Only one default can exist"
                )


def check_class_update(old: PriorityClass, new: PriorityClass) -> None:
    """Refuse changes of immutable fields."""
    problem = f'PriorityClass.{PRIORITY_GROUP} "{new.name}" is invalid: '
    if new.value != old.value:
        raise Forbidden(f"{problem}value: Forbidden: may not be changed in an update.")
    if new.preemption_policy not in (None, old.preemption_policy):
        raise Forbidden(f"{problem}preemptionPolicy: Invalid value: field is immutable")


def check_class_delete(name: str) -> None:
    """Refuse to delete a system class."""
    if name in SYSTEM_PRIORITIES:
        raise Denied(
            f'priorityclasses.{PRIORITY_GROUP} "{name}" is forbidden: '
            "this is a system priority class and cannot be deleted"
        )
