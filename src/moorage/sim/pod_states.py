"""The states of pods as an API server stores them: new, gated, running, terminating."""

from functools import lru_cache
from typing import TypeVar

from msgspec import convert
from msgspec.structs import replace

from moorage.api.meta import Condition, KubeObject
from moorage.api.pod import Pod
from moorage.cluster.verbs import binding, create
from moorage.controllers import objects
from moorage.controllers.kubelet import RUN_SECONDS
from moorage.sim.clock import timestamp

T = TypeVar("T", bound=KubeObject)

SCHEDULED = convert(binding.SCHEDULED, Condition)
READY = Condition(type="Ready", status="True")
GATED = convert(create.GATED, Condition)


def initialized(obj: T, now: float) -> T:
    """An object as it is stored on creation: a pod becomes Pending, and gated if it has gates.

    A pod that runs already is ready, unless its status says something else.
    """
    if not isinstance(obj, Pod):
        return obj
    status = obj.status
    if not status.phase:
        status = replace(status, phase="Pending")
    if obj.spec.scheduling_gates and not obj.node_name:
        status = replace(status, conditions=with_condition(status.conditions, GATED, now))
    if status.phase == "Running" and obj.condition("Ready") is None:
        status = replace(status, conditions=with_condition(status.conditions, READY, now))
    return obj if status is obj.status else replace(obj, status=status)


def terminating(obj: T, seconds: int, now: float) -> T:
    """The object with its deletion timestamp."""
    meta = obj.metadata
    first = meta.deletion_timestamp is None
    meta = replace(
        meta,
        deletion_timestamp=timestamp(now + seconds),
        deletion_grace_period_seconds=seconds,
        generation=meta.generation + first,
    )
    return replace(obj, metadata=meta)


def is_settled(pod: Pod) -> bool:
    """Whether a new pod runs, and no controller or kubelet has anything to do for it."""
    spec, meta, status = pod.spec, pod.metadata, pod.status
    return (
        bool(spec.node_name)
        and status.phase == "Running"
        and meta.deletion_timestamp is None
        and not spec.resource_claims
        and status.extended_resource_claim_status is None
        and (not meta.annotations or RUN_SECONDS not in meta.annotations)
        and (not spec.volumes or not any(each.ephemeral is not None for each in spec.volumes))
    )


def with_condition(
    conditions: tuple[Condition, ...], new: Condition, now: float
) -> tuple[Condition, ...]:
    """The conditions with one replaced; its transition time changes only with its status."""
    at = new.last_transition_time or timestamp(now)
    for i, old in enumerate(conditions):
        if old.type == new.type:
            at = objects.transition_time(old.status, old.last_transition_time, new.status, at)
            return (*conditions[:i], _condition_at(new, at), *conditions[i + 1 :])
    return (*conditions, _condition_at(new, at))


@lru_cache(maxsize=1024)
def _condition_at(condition: Condition, at: str) -> Condition:
    """The condition with its transition time; pods that change at one time share it."""
    return replace(condition, last_transition_time=at)
