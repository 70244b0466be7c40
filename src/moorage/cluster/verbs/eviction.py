"""Eviction: delete a pod only if its disruption budget allows it."""

from moorage.cluster import status_errors
from moorage.cluster.resources import DISRUPTION_BUDGETS, PODS
from moorage.cluster.status_errors import InternalError, StatusCause, TooManyRequestsError
from moorage.cluster.store import Store
from moorage.controllers import objects
from moorage.controllers.objects import Object

_MAX_DISRUPTED_PODS = 2000
_RETRY_SECONDS = 10


def charged_budget(store: Store, pod: Object) -> Object | None:
    """The budget of the pod with this eviction counted, or None if no budget is needed.

    Raises TooManyRequestsError if the budget does not allow the eviction.
    """
    phase = objects.status(pod).get("phase")
    if phase in ("Succeeded", "Failed", "Pending") or objects.is_terminating(pod):
        return None
    budgets = [
        each
        for each in store.each(DISRUPTION_BUDGETS)
        if objects.namespace(each) == objects.namespace(pod)
        and objects.selector(each).matches(objects.labels(pod))
    ]
    if len(budgets) > 1:  # As in an API server; `kubectl drain` fails then.
        raise InternalError(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
            "not support."
        )
    if not budgets:
        return None
    budget = budgets[0]
    if not objects.is_condition_true(pod, "Ready") and _allows_unready_pods(budget):
        return None
    return _charge(budget, pod["metadata"]["name"], store.clock())


def with_disruption_target(pod: Object, at: str) -> Object:
    """The pod with the condition that gives the reason of its deletion."""
    target = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    target["message"] = "Eviction API: evicting"
    conditions = objects.set_condition(objects.status(pod).get("conditions", []), target, at)
    return objects.with_status(pod, conditions=conditions)


def _allows_unready_pods(budget: Object) -> bool:
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = objects.status(budget)
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    return bool(desired > 0 and healthy >= desired)


def _charge(budget: Object, pod: str, at: str) -> Object:
    name, status = objects.name(budget), objects.status(budget)
    allowed = status.get("disruptionsAllowed", 0)
    disrupted = status.get("disruptedPods", {})
    if status.get("observedGeneration", 0) < objects.generation(budget):
        text = f"The disruption budget {name} is still being processed by the server."
        raise _too_many_requests(text, _RETRY_SECONDS)
    if allowed < 0:
        why = "pdb disruptions allowed is negative"
        raise status_errors.forbidden(DISRUPTION_BUDGETS, name, why)
    if len(disrupted) > _MAX_DISRUPTED_PODS:
        why = "DisruptedPods map too big - too many evictions not confirmed"
        raise status_errors.forbidden(DISRUPTION_BUDGETS, name, why)
    if allowed == 0:
        raise _too_many_requests(
            f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods "
            f"and has {status.get('currentHealthy', 0)} currently"
        )
    charged = {"disruptionsAllowed": allowed - 1, "disruptedPods": {**disrupted, pod: at}}
    return {**budget, "status": {**status, **charged}}


def _too_many_requests(why: str, seconds: int = 0) -> TooManyRequestsError:
    return TooManyRequestsError(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        PODS,
        causes=[StatusCause("DisruptionBudget", why)],
        retry_after_seconds=seconds,
    )
