"""Patience: what is worth waiting for, and when a simulation has nothing left to do.

    under way                              how long it is waited for
    news, requests, answers, kubelets      until they are through
    pods that run for a given time         while somebody waits for a node
    retries after a back-off               until they have changed nothing for a longest back-off
    pods on their way, or on permit        the same, and as long as a plugin may make them wait
    pods that rest                         once, if they were not tried since the latest relief

Pods that rest are tried every five minutes, for ever, which leads nowhere. But the hints that wake
them before have gaps, Kubernetes' own among them, and that retry is what mends those. A relief is
a change that may have been meant for them: not a pod that was bound, or has started.
"""

from moorage.sim.clock import Clock
from moorage.sim.faults import Trouble
from moorage.sim.kubelet import Kubelet
from moorage.sim.replicas import Replicas

# Back-offs end at whole seconds, and each is the longest at the latest at the second one.
SPARE_SECONDS = 2.0
LONGEST_PERMIT_SECONDS = 15 * 60.0
# While the world misbehaves, the next try may succeed by luck.
TRIES_IN_TROUBLE = 50


class Patience:
    """Knows when the next thing happens that may still place a pod."""

    def __init__(
        self,
        clock: Clock[object],
        kubelet: Kubelet,
        replicas: Replicas,
        trouble: Trouble,
        longest_backoff_seconds: float,
    ) -> None:
        self._clock = clock
        self._kubelet = kubelet
        self._replicas = replicas
        self._trouble = trouble
        self._retry_seconds = longest_backoff_seconds + SPARE_SECONDS
        self._changed_at = 0.0
        # When the latest relief came, and after how many scheduling cycles.
        self._relieved_at, self._relieved_after = 0.0, 0

    def changed(self, *, relief: bool) -> None:
        """Something happened to the cluster from outside."""
        self._changed_at = self._clock.now
        if relief:
            self._relieved_at, self._relieved_after = self._clock.now, self._replicas.cycles

    def soonest(self) -> float | None:
        """When anything at all happens next."""
        return _first(self._clock.next_at, self._replicas.next_at())

    def is_at_ease(self) -> bool:
        """Whether pods at the most rest: nothing is under way, and no pod is tried again soon."""
        return not self._is_anything_under_way() and not any(
            replica.holds_room() or replica.is_retrying() for replica in self._replicas.running
        )

    def next_at(self) -> float | None:
        """When something happens that is worth waiting for; None if nothing does."""
        if self._is_anything_under_way():
            return self.soonest()
        if not self._is_anybody_waiting():
            return None  # Pods may still end, but that helps nobody.
        return self._clock.next_at if self._is_retrying_useless() else self.soonest()

    def _is_anything_under_way(self) -> bool:
        return len(self._clock) > self._kubelet.running_to_an_end

    def _is_anybody_waiting(self) -> bool:
        return any(
            replica.holds_room() or sum(replica.waiting().values()) > 0
            for replica in self._replicas.running
        )

    def _is_retrying_useless(self) -> bool:
        """Whether what a scheduler will do by itself can be expected to change nothing."""
        replicas = self._replicas.running
        tries = 1 if self._trouble.is_over(self._clock.now) else TRIES_IN_TROUBLE
        if any(replica.holds_room() for replica in replicas):
            return self._quiet_seconds() > tries * self._retry_seconds + LONGEST_PERMIT_SECONDS
        if any(replica.is_retrying() for replica in replicas):
            return self._quiet_seconds() > tries * self._retry_seconds
        return not self._is_rest_in_doubt()

    def _quiet_seconds(self) -> float:
        """How long nothing has changed that could make a difference."""
        now = self._clock.now
        return now - max(self._changed_at, self._replicas.changed_at, self._trouble.over_since(now))

    def _is_rest_in_doubt(self) -> bool:
        """Whether a pod rests that was not tried since the latest relief."""
        resting = [pod for replica in self._replicas.running for pod in replica.resting()]
        if self._replicas.cycles == self._relieved_after:
            return bool(resting)
        return any(pod.queued_at < self._relieved_at for pod in resting)


def _first(*moments: float | None) -> float | None:
    return min((at for at in moments if at is not None), default=None)
