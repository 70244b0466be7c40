"""Pods as controllers read them: phase, readiness, availability, and pods from a template."""

from collections import Counter
from collections.abc import Iterable

from moorage.api import timestamps
from moorage.controllers import objects
from moorage.controllers.objects import Object


def phase(pod: Object) -> str:
    return str(objects.status(pod).get("phase") or "Pending")


def node_name(pod: Object) -> str:
    return str(objects.spec(pod).get("nodeName") or "")


def is_ended(pod: Object) -> bool:
    return phase(pod) in ("Succeeded", "Failed")


def is_active(pod: Object) -> bool:
    """Neither ended nor being deleted."""
    return not is_ended(pod) and not objects.is_terminating(pod)


def is_ready(pod: Object) -> bool:
    return objects.is_condition_true(pod, "Ready")


def ready_at(pod: Object) -> float:
    """When the Ready condition last changed."""
    return timestamps.to_seconds(objects.condition(pod, "Ready").get("lastTransitionTime"))


def created_at(pod: Object) -> float:
    return timestamps.to_seconds(pod["metadata"].get("creationTimestamp"))


def is_available(pod: Object, min_ready_seconds: int, now: float) -> bool:
    """Ready for at least `min_ready_seconds`."""
    return is_ready(pod) and (not min_ready_seconds or ready_at(pod) + min_ready_seconds <= now)


def next_available_at(pods: Iterable[Object], min_ready_seconds: int, now: float) -> float | None:
    """When the next of these pods becomes available, if one does by the passing of time."""
    if not min_ready_seconds:
        return None
    times = [ready_at(pod) + min_ready_seconds for pod in pods if is_ready(pod)]
    return min((at for at in times if at > now), default=None)


def from_template(owner: Object, *, name: str = "", **labels: str) -> Object:
    """A pod of a workload; its `generateName` is the workload's name, also if it has a name."""
    template = objects.template(owner)
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    named = {"generateName": f"{objects.name(owner)}-", **({"name": name} if name else {})}
    copied = {
        "labels": {**(meta.get("labels") or {}), **labels},
        "annotations": meta.get("annotations"),
        "finalizers": meta.get("finalizers"),
    }
    metadata = {
        "namespace": objects.namespace(owner),
        "ownerReferences": [objects.controller_reference(owner)],
        **named,
        **{key: value for key, value in copied.items() if value},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def in_deletion_order(candidates: Iterable[Object], related: Iterable[Object]) -> list[Object]:
    """Pods in the order in which a workload deletes surplus ones.

    Unassigned before assigned, pending before running, not ready before ready, low deletion cost
    first, nodes with many related pods first, then the youngest. `related` are the pods of all
    ReplicaSets of the same owner.
    """
    per_node = Counter(node_name(pod) for pod in related if is_active(pod))

    def rank(pod: Object) -> tuple[object, ...]:
        ready = is_ready(pod)
        return (
            bool(node_name(pod)),
            _PHASES.get(phase(pod), 2),
            ready,
            deletion_cost(pod),
            -per_node[node_name(pod)],
            -ready_at(pod) if ready else 0.0,
            -created_at(pod),
        )

    return sorted(candidates, key=rank)


def deletion_cost(pod: Object) -> int:
    try:
        return int(objects.annotations(pod).get(DELETION_COST, "0"))
    except ValueError:
        return 0
