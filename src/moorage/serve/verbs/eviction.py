"""How a pod is asked to leave: only if its disruption budget can spare it."""

from typing import NamedTuple

import msgspec

from moorage.api import selectors
from moorage.api.meta import LabelSelector
from moorage.serve import status_errors
from moorage.serve.controllers import objects
from moorage.serve.controllers.objects import Object
from moorage.serve.resources import DISRUPTION_BUDGETS, PODS
from moorage.serve.status_errors import StatusCause, StatusError, TooManyRequestsError
from moorage.serve.store import Store

_MOST_DISRUPTED_PODS = 2000
_AT_WORK_SECONDS = 10


class TwoBudgets(StatusError):
    """An API server calls this an error of its own; drain gives up on it."""

    code = 500
    reason = "InternalError"


class Verdict(NamedTuple):
    """The budget as it will be, if one was spent; the eviction may go on."""

    budget: Object | None


def judge(store: Store, pod: Object) -> Verdict:
    """Whether a pod may leave; raises TooManyRequestsError if its budget does not allow it."""
    meta, status = pod["metadata"], pod.get("status", {})
    ended = status.get("phase") in ("Succeeded", "Failed", "Pending")
    if ended or "deletionTimestamp" in meta:
        return Verdict(None)
    budgets = [each for each in store.each(DISRUPTION_BUDGETS) if _covers(each, meta)]
    if len(budgets) > 1:
        raise TwoBudgets(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
            "not support."
        )
    if not budgets:
        return Verdict(None)
    budget = budgets[0]
    if not objects.is_condition_true(pod, "Ready") and _may_go_unready(budget):
        return Verdict(None)
    return Verdict(_spent(budget, meta["name"], store.clock()))


def leaving(pod: Object, at: str) -> Object:
    """The pod with the reason why it is about to be deleted."""
    status = pod.get("status", {})
    why = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    found = objects.set_condition(status.get("conditions", []), why, at)
    return {**pod, "status": {**status, "conditions": found}}


def _covers(budget: Object, meta: Object) -> bool:
    if budget["metadata"]["namespace"] != meta["namespace"]:
        return False
    wanted = budget.get("spec", {}).get("selector")
    if wanted is None:
        return False
    selector = selectors.compile_label_selector(msgspec.convert(wanted, LabelSelector))
    return selector.matches(meta.get("labels", {}))


def _may_go_unready(budget: Object) -> bool:
    status = budget.get("status", {})
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    return bool(desired > 0 and healthy >= desired)


def _spent(budget: Object, pod: str, at: str) -> Object:
    meta, status = budget["metadata"], budget.get("status", {})
    name = meta["name"]
    allowed = status.get("disruptionsAllowed", 0)
    disrupted = status.get("disruptedPods", {})
    if status.get("observedGeneration", 0) < meta.get("generation", 0):
        text = f"The disruption budget {name} is still being processed by the server."
        raise _not_now(text, _AT_WORK_SECONDS)
    if allowed < 0:
        raise status_errors.forbidden(
            DISRUPTION_BUDGETS, name, "pdb disruptions allowed is negative"
        )
    if len(disrupted) > _MOST_DISRUPTED_PODS:
        raise status_errors.forbidden(
            DISRUPTION_BUDGETS, name, "DisruptedPods map too big - too many evictions not confirmed"
        )
    if allowed == 0:
        raise _not_now(
            f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods "
            f"and has {status.get('currentHealthy', 0)} currently"
        )
    spent = {
        **status,
        "disruptionsAllowed": allowed - 1,
        "disruptedPods": {**disrupted, pod: at},
    }
    return {**budget, "status": spent}


def _not_now(why: str, seconds: int = 0) -> TooManyRequestsError:
    return TooManyRequestsError(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        PODS,
        causes=[StatusCause("DisruptionBudget", why)],
        retry_after_seconds=seconds,
    )
