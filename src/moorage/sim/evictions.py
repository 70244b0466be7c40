"""Who had to leave a node for another pod, as the schedulers tell it."""

from collections.abc import Iterable

from msgspec import Struct

from moorage.core.journal import Journal, Preempted


class Eviction(Struct, frozen=True, kw_only=True):
    """A pod that was evicted by another, where, and when."""

    pod: str
    by: str
    node: str
    at: float


def of(journals: Iterable[Journal]) -> list[Eviction]:
    """All evictions, oldest first."""
    facts = [fact for journal in journals for fact in journal if isinstance(fact, Preempted)]
    return [
        Eviction(pod=fact.pod, by=fact.by, node=fact.node, at=fact.at)
        for fact in sorted(facts, key=lambda fact: fact.at)
    ]
