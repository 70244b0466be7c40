"""Eviction: delete a pod only if its disruption budget allows it.

`serve` evicts pods on request, scenarios and `simulate drain` evict the pods of drained nodes.
"""

from collections.abc import Iterable
from enum import Enum

from moorage.cluster import status_errors
from moorage.cluster.resources import DISRUPTION_BUDGETS
from moorage.cluster.status_errors import InternalError, StatusCause, TooManyRequestsError
from moorage.controllers import objects
from moorage.controllers.objects import Object

DISRUPTION_TARGET = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_MAX_DISRUPTED_PODS = 2000
_RETRY_SECONDS = 10


class Verdict(Enum):
    """What a budget says to an eviction."""

    FREE = "allowed, and not counted"
    CHARGED = "allowed, and counted"
    BLOCKED = "not allowed now"


def is_exempt(phase: str | None, *, is_terminating: bool) -> bool:
    """Whether budgets do not apply to a pod: it does not run, or leaves already."""
    return is_terminating or phase in ("Succeeded", "Failed", "Pending")


def judge(
    *, allowed: int, healthy: int, desired: int, is_ready: bool, policy: str | None
) -> Verdict:
    """What a budget with these figures says; `policy` is its `unhealthyPodEvictionPolicy`."""
    # An unready pod is not counted as healthy, so it costs nothing while the budget holds.
    if not is_ready and (policy == "AlwaysAllow" or healthy >= desired > 0):
        return Verdict.FREE
    return Verdict.CHARGED if allowed > 0 else Verdict.BLOCKED


def charged_budget(budgets: Iterable[Object], pod: Object, at: str) -> Object | None:
    """The budget of the pod with this eviction counted, or None if no budget is needed.

    Raises TooManyRequestsError if the budget does not allow the eviction.
    """
    phase = objects.status(pod).get("phase")
    if is_exempt(phase, is_terminating=objects.is_terminating(pod)):
        return None
    matching = [
        each
        for each in budgets
        if objects.namespace(each) == objects.namespace(pod)
        and objects.selector(each).matches(objects.labels(pod))
    ]
    if len(matching) > 1:  # As in an API server; `kubectl drain` fails then.
        raise InternalError(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
            "not support."
        )
    return _charged(matching[0], pod, at) if matching else None


def _charged(budget: Object, pod: Object, at: str) -> Object | None:
    name, status = objects.name(budget), objects.status(budget)
    allowed = status.get("disruptionsAllowed", 0)
    disrupted = status.get("disruptedPods", {})
    verdict = judge(
        allowed=allowed,
        healthy=status.get("currentHealthy", 0),
        desired=status.get("desiredHealthy", 0),
        is_ready=objects.is_condition_true(pod, "Ready"),
        policy=budget["spec"].get("unhealthyPodEvictionPolicy"),
    )
    if verdict is Verdict.FREE:
        return None
    if status.get("observedGeneration", 0) < objects.generation(budget):
        text = f"The disruption budget {name} is still being processed by the server."
        raise _too_many_requests(text, _RETRY_SECONDS)
    if allowed < 0:
        why = "pdb disruptions allowed is negative"
        raise status_errors.forbidden(DISRUPTION_BUDGETS, name, why)
    if len(disrupted) > _MAX_DISRUPTED_PODS:
        why = "DisruptedPods map too big - too many evictions not confirmed"
        raise status_errors.forbidden(DISRUPTION_BUDGETS, name, why)
    if verdict is Verdict.BLOCKED:
        raise _too_many_requests(
            f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods "
            f"and has {status.get('currentHealthy', 0)} currently"
        )
    disrupted = {**disrupted, objects.name(pod): at}
    return objects.with_status(budget, disruptionsAllowed=allowed - 1, disruptedPods=disrupted)


def with_disruption_target(pod: Object, at: str) -> Object:
    """The pod with the condition that gives the reason of its deletion."""
    conditions = objects.status(pod).get("conditions", [])
    changed = objects.set_condition(conditions, DISRUPTION_TARGET, at)
    return objects.with_status(pod, conditions=changed)


def _too_many_requests(why: str, seconds: int = 0) -> TooManyRequestsError:
    return TooManyRequestsError(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        causes=[StatusCause("DisruptionBudget", why)],
        retry_after_seconds=seconds,
    )
