"""QueueUsage: what the pods of each queue use, how long they waited, and what it is entitled to.

A share is the dominant one: the largest part that the pods of a queue, and of its children, use of
any resource. A queue is entitled to its part of what its parent is entitled to, by weight among the
children, and to its guarantee.
"""

from collections import Counter
from collections.abc import Mapping

from moorage.api import requests
from moorage.api.pod import Pod
from moorage.api.queues import Queue, queue_name

Amounts = Mapping[str, int]


class QueueUsage:
    """See the module."""

    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}
        self.running: Counter[str] = Counter()
        # Seconds from creation to binding.
        self.waits: dict[str, list[float]] = {}
        self._used: dict[str, Counter[str]] = {}
        self._share_seconds: dict[str, float] = {}

    def queue_of(self, pod: Pod) -> str:
        """The queue that a pod names, or that of its namespace; it need not exist."""
        spaces = (q.name for q in self.queues.values() if pod.namespace in q.spec.namespaces)
        return queue_name(pod) or next(spaces, "default")

    def add(self, queue: str, amounts: Amounts, sign: int = 1) -> None:
        """Count a pod that comes to a node, or leaves it."""
        for name in self.lineage(queue):
            used = self._used.setdefault(name, Counter())
            for resource, amount in amounts.items():
                used[resource] += sign * amount
            self.running[name] += sign

    def waited(self, queue: str, seconds: float) -> None:
        """Count the wait of a pod that was bound."""
        for name in self.lineage(queue):
            self.waits.setdefault(name, []).append(seconds)

    def lineage(self, queue: str) -> list[str]:
        """A queue and its ancestors, as far as they exist."""
        found: list[str] = []
        while queue in self.queues and queue not in found:
            found.append(queue)
            queue = self.queues[queue].spec.parent
        return found

    def shares(self, totals: Amounts) -> dict[str, float]:
        """The dominant share of every queue."""
        return {name: round(_largest(self._used.get(name, {}), totals), 6) for name in self.queues}

    def integrate(self, seconds: float, totals: Amounts) -> None:
        """Count the shares for a time in which nothing changes."""
        for name, share in self.shares(totals).items():
            self._share_seconds[name] = self._share_seconds.get(name, 0.0) + share * seconds

    def mean_share(self, queue: str, seconds: float) -> float:
        """The mean share over so many seconds since the start."""
        return round(self._share_seconds.get(queue, 0.0) / seconds, 6) if seconds else 0.0

    def entitled(self, queue: str, totals: Amounts) -> float:
        """The share that a queue can expect if all queues ask for more."""
        part = 1.0
        for name in reversed(self.lineage(queue)):
            spec = self.queues[name].spec
            same = [q.spec.weight for q in self.queues.values() if q.spec.parent == spec.parent]
            guaranteed = _largest(requests.units(spec.guaranteed), totals)
            part = max(part * spec.weight / sum(same), guaranteed)
        return round(part, 6)


def _largest(amounts: Amounts, totals: Amounts) -> float:
    return max((n / totals[r] for r, n in amounts.items() if totals.get(r)), default=0.0)
