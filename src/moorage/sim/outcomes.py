"""What the schedulers know about pods: why one is pending, and which were evicted."""

from collections.abc import Iterable

from msgspec import Struct

from moorage.api.pod import Pod
from moorage.core.journal import Decided, Erred, Journal, Preempted, Refused
from moorage.core.scheduler import Scheduler

BY_SCHEDULER = ("Unschedulable", "SchedulerError")


class PodEviction(Struct, frozen=True, kw_only=True):
    """A pod that was evicted from a node by preemption."""

    pod: str
    by: str
    node: str
    at: float


def evictions(journals: Iterable[Journal]) -> list[PodEviction]:
    """All evictions, oldest first."""
    facts = [fact for journal in journals for fact in journal if isinstance(fact, Preempted)]
    return [
        PodEviction(pod=fact.pod, by=fact.by, node=fact.node, at=fact.at)
        for fact in sorted(facts, key=lambda fact: fact.at)
    ]


def scheduled_at(journals: Iterable[Journal]) -> dict[str, float]:
    """When a node was last selected for each pod, by UID."""
    return {
        fact.uid: fact.at for journal in journals for fact in journal if isinstance(fact, Decided)
    }


def why_pending(scheduler: Scheduler, pod: Pod) -> str:
    """The message of its PodScheduled condition, or what keeps it from being tried."""
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
    # The condition may not have reached the API server.
    fact = scheduler.journal.last((Refused, Erred), pod.uid)
    return fact.message if fact else ""
