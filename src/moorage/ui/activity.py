"""Activity: what the scheduler did in the last minutes, second by second.

The facts of its journal are read once a second, so that scheduling does no work for it.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moorage.core.journal import Bound, Decided, Fact, Gone, Journal, Preempted, Queued, Refused
from moorage.ui import history

KEPT_SECONDS = 300
MOST_RECENT = 50
MOST_REASONS = 20
MOST_LATENCIES = 10_000

QUEUES = ("active", "backoff", "unschedulable", "gated")
RECENT = (Decided, Refused, Preempted)


@dataclass(slots=True)
class Second:
    """What happened in a second, and the queue lengths at its end."""

    at: int
    bound: int = 0
    latencies: list[float] = field(default_factory=list)
    rejections: Counter[str] = field(default_factory=Counter)
    queues: Mapping[str, int] = field(default_factory=dict)


class Activity:
    """Figures of the last minutes; `read` has to be called about once a second."""

    def __init__(self, journal: Journal, counts: Callable[[], Mapping[str, int]]) -> None:
        self._journal = journal
        self._counts = counts
        self._last: Fact | None = None
        self._seconds: deque[Second] = deque(maxlen=KEPT_SECONDS)
        self._recent: deque[Fact] = deque(maxlen=MOST_RECENT)
        # When pods entered the queue, by UID.
        self._queued_at: dict[str, float] = {}

    def read(self, now: float) -> None:
        """Count the new facts."""
        second = self._second(int(now))
        for fact in self._journal.since(self._last):
            self._last = fact
            self._count(fact, second)
        second.queues = {name: self._counts().get(name, 0) for name in QUEUES}

    def _second(self, at: int) -> Second:
        """The latest second; a gap is filled with seconds in which nothing happened."""
        seconds = self._seconds
        begin = max(seconds[-1].at + 1, at - KEPT_SECONDS) if seconds else at
        for each in range(begin, at + 1):
            seconds.append(Second(each, queues=seconds[-1].queues if seconds else {}))
        return seconds[-1]

    def _count(self, fact: Fact, second: Second) -> None:
        if isinstance(fact, RECENT):
            self._recent.append(fact)
        if isinstance(fact, Queued):
            self._queued_at.setdefault(fact.uid, fact.at)
        elif isinstance(fact, Bound):
            second.bound += 1
            began = self._queued_at.pop(fact.uid, None)
            if began is not None and len(second.latencies) < MOST_LATENCIES:
                second.latencies.append(fact.at - began)
        elif isinstance(fact, Refused):
            second.rejections[", ".join(fact.plugins) or fact.message] += 1
        elif isinstance(fact, Gone):
            self._queued_at.pop(fact.uid, None)

    def facts(self, uid: str) -> list[Fact]:
        """The facts about a pod that the journal still has."""
        return [fact for fact in self._journal.since(None) if fact.uid == uid]

    def facts_of_node(self, node: str) -> list[dict[str, Any]]:
        """The latest decisions for a node."""
        return history.of_node(self._journal.since(None), node)

    def document(self) -> dict[str, Any]:
        """The seconds as columns, oldest first, and the latest decisions, newest first."""
        seconds = list(self._seconds)
        reasons: Counter[str] = Counter()
        for each in seconds:
            reasons += each.rejections
        waits = sorted(wait for each in seconds for wait in each.latencies)
        return {
            "at": [each.at for each in seconds],
            "bound": [each.bound for each in seconds],
            "rejected": [each.rejections.total() for each in seconds],
            "latency": [_percentile(sorted(each.latencies), 0.5) for each in seconds],
            "queues": {name: [each.queues.get(name, 0) for each in seconds] for name in QUEUES},
            "waits": {
                "count": len(waits),
                "p50": _percentile(waits, 0.5),
                "p99": _percentile(waits, 0.99),
            },
            "reasons": dict(reasons.most_common(MOST_REASONS)),
            "recent": [
                {"at": fact.at, "pod": fact.pod, "what": said[0], "text": said[1]}
                for fact in reversed(self._recent)
                if (said := history.line(fact)) is not None
            ],
        }


def _percentile(ordered: list[float], share: float) -> float | None:
    return round(ordered[int(share * (len(ordered) - 1))], 4) if ordered else None
