"""Why a pod has no node, in one line, as the scheduler would put it."""

from moorage.api.pod import Pod
from moorage.core.journal import Erred, Refused
from moorage.core.scheduler import Scheduler

BY_SCHEDULER = ("Unschedulable", "SchedulerError")


def why_pending(scheduler: Scheduler, pod: Pod) -> str:
    """The text of its PodScheduled condition, or what keeps it from being tried."""
    name = pod.spec.scheduler_name
    profile = scheduler.profiles.get(name)
    if profile is None:
        return f'no profile for scheduler "{name}"'
    held = profile.run_pre_enqueue(pod)
    if held is not None:
        return held.message
    waiting = scheduler.cluster.waiting.get(pod.uid)
    if waiting is not None:
        return f"waits on permit to go to {waiting.node}"
    cached = scheduler.cache.get(pod.uid)
    if cached is not None and cached.assumed:
        return f"on its way to {cached.node}, and not bound yet"
    return _refusal(scheduler, pod) or "not tried yet"


def _refusal(scheduler: Scheduler, pod: Pod) -> str:
    condition = pod.condition("PodScheduled")
    if condition is not None and condition.reason in BY_SCHEDULER:
        return condition.message
    # The condition may not have got through to the API server.
    for fact in reversed(scheduler.journal.story(pod.uid)):
        if isinstance(fact, Refused | Erred):
            return fact.message
    return ""
