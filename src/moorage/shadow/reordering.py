"""Reordering: whether the order of bindings explains that the other's node is not the best.

A scheduler decides about one pod after the other, but sends bindings concurrently. So the cluster
as it was before a binding may lack pods that were decided before, and may have pods that were
decided after. Bindings that are observed within WINDOW_SECONDS of each other may have been decided
in the other order:

    before the binding    without the pods that were bound just before, on the same node or on any,
                          the other's node is the best
    after the binding     all better nodes get pods just after; or with the pods that were bound
                          just after, the other's node is the best

A comparison that depends on the latter is held back for that time.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from moorage.api.pod import Pod
from moorage.shadow.comparison import PodComparison

WINDOW_SECONDS = 0.2
# With more better nodes than this, the order of bindings explains nothing.
MOST_BETTER = 64


@dataclass(slots=True)
class HeldComparison:
    """A comparison, and the nodes that were better and have got no other pod since."""

    pod: Pod
    found: PodComparison
    better: set[str]
    at: float


class Reordering:
    """The bindings of the last moments, and the comparisons that wait for the next ones."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, Pod]] = deque()
        self._held: deque[HeldComparison] = deque()

    def recent(self, seen_at: float, now: float) -> list[Pod]:
        """The pods that were bound just before, and after a pod was first observed.

        Pods that were bound earlier were also decided earlier.
        """
        while self._recent and self._recent[0][0] < now - WINDOW_SECONDS:
            self._recent.popleft()
        return [pod for at, pod in self._recent if at >= seen_at]

    def hold(self, pod: Pod, found: PodComparison, better: set[str], now: float) -> None:
        """Wait whether these nodes get pods that were decided before."""
        self._held.append(HeldComparison(pod, found, better, now))

    def bound(self, pod: Pod, seen_at: float, now: float) -> Iterator[PodComparison]:
        """A pod was bound; yields the comparisons that this explains."""
        self._recent.append((now, pod))
        for held in list(self._held):
            if seen_at <= held.at:
                held.better.discard(pod.node_name)
                if not held.better:
                    self._held.remove(held)
                    yield held.found

    def expired(self, now: float) -> Iterator[HeldComparison]:
        """The comparisons that were held long enough."""
        while self._held and self._held[0].at + WINDOW_SECONDS <= now:
            yield self._held.popleft()

    @property
    def deadline(self) -> float | None:
        return self._held[0].at + WINDOW_SECONDS if self._held else None
