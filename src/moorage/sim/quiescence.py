"""Quiescence: when a simulation has nothing left to do, and what is worth waiting for.

    in progress                            waited for
    observations, requests, kubelets       until they are done
    pods that run for a given time         while a pod waits for a node, or is refused by a quota
    controllers of workloads               while pods back off or become available
    retries after a backoff                until they have changed nothing for the longest backoff
    assumed pods, or waiting on permit     the same, and the longest time on permit
    gangs that are bound in part           until they are complete or released
    unschedulable pods                     one retry, if not tried since the latest helpful change

Unschedulable pods are retried every five minutes, for ever, mostly in vain. But queueing hints
have gaps, Kubernetes' own too, and that retry closes them. A helpful change is one that may make a
waiting pod schedulable: not a pod that has started, nor one that was bound, except for pods
whose constraints on other pods can keep them from preempting: a queueing hint hears only of what
rejected the pod itself, not of what rejected it in a dry run.
"""

from moorage.core.queued_pod import QueuedPod
from moorage.sim.clock import Clock
from moorage.sim.controllers import Controllers
from moorage.sim.faults import FaultPlan
from moorage.sim.kubelet import Kubelet
from moorage.sim.replicas import Replicas

# Backoffs end at whole seconds, and the second one may already be the longest.
SPARE_SECONDS = 2.0
LONGEST_PERMIT_SECONDS = 15 * 60.0
# With faults the next try may succeed by chance.
TRIES_WITH_FAULTS = 50


class Quiescence:
    """Knows when the next thing happens that may still place a pod."""

    def __init__(
        self,
        clock: Clock[object],
        kubelet: Kubelet,
        replicas: Replicas,
        controllers: Controllers,
        fault_plan: FaultPlan,
        longest_backoff_seconds: float,
    ) -> None:
        self._clock = clock
        self._kubelet = kubelet
        self._replicas = replicas
        self._controllers = controllers
        self._fault_plan = fault_plan
        self._retry_seconds = longest_backoff_seconds + SPARE_SECONDS
        self._changed_at = 0.0
        # The time of the latest helpful change, and the scheduling cycles before it.
        self._helped_at, self._helped_after = 0.0, 0

    def changed(self, *, may_help_pods: bool) -> None:
        """The cluster changed."""
        self._changed_at = self._clock.now
        if may_help_pods:
            self._helped_at, self._helped_after = self._clock.now, self._replicas.cycles

    def next_any_at(self) -> float | None:
        """When anything happens next."""
        moments = (self._clock.next_at, self._replicas.next_at(), self._controllers.next_at)
        return min((at for at in moments if at is not None), default=None)

    def is_quiet(self) -> bool:
        """Whether only unschedulable pods are left: nothing is in progress, no retry is due."""
        return not self._has_pending_actions() and not any(
            replica.has_assumed_pods() or replica.is_retrying() or replica.has_torn_gangs()
            for replica in self._replicas.running
        )

    def next_at(self) -> float | None:
        """When the next thing worth waiting for happens; None if there is none."""
        if self._has_pending_actions():
            return self.next_any_at()
        if not self._has_waiting_pods() and not self._controllers.host.index.failures:
            return None  # Pods may still end, but no pod waits for that.
        return self._clock.next_at if self._is_retrying_futile() else self.next_any_at()

    def _has_pending_actions(self) -> bool:
        return len(self._clock) > self._kubelet.finite_pods or self._controllers.host.is_awaiting

    def _has_waiting_pods(self) -> bool:
        """Whether pods wait for a node, gated ones aside."""
        return any(
            replica.has_assumed_pods() or replica.is_retrying() or replica.depths()["unschedulable"]
            for replica in self._replicas.running
        )

    def _is_retrying_futile(self) -> bool:
        """Whether retries can be expected to change nothing."""
        replicas = self._replicas.running
        if any(replica.has_torn_gangs() for replica in replicas):
            return False
        tries = 1 if self._fault_plan.is_over(self._clock.now) else TRIES_WITH_FAULTS
        if any(replica.has_assumed_pods() for replica in replicas):
            return self._quiet_seconds() > tries * self._retry_seconds + LONGEST_PERMIT_SECONDS
        if any(replica.is_retrying() for replica in replicas):
            return self._quiet_seconds() > tries * self._retry_seconds
        return not self._has_untried_pods()

    def _quiet_seconds(self) -> float:
        """How long nothing has changed that could help a pod."""
        now = self._clock.now
        return now - max(
            self._changed_at, self._replicas.changed_at, self._fault_plan.over_since(now)
        )

    def _has_untried_pods(self) -> bool:
        """Whether an unschedulable pod was not tried since the latest helpful change."""
        pods = [pod for replica in self._replicas.running for pod in replica.unschedulable_pods()]
        if self._replicas.cycles == self._helped_after:
            return bool(pods)
        bound_at = self._replicas.bound_at
        return any(
            pod.queued_at < self._helped_at
            or (pod.queued_at <= bound_at and _may_preempt_beside_others(pod))
            for pod in pods
        )


def _may_preempt_beside_others(queued: QueuedPod) -> bool:
    """Whether a pod elsewhere may make it possible that this one preempts others.

    Few pods have a negative priority, so that one of priority 0 could evict them.
    """
    spec, affinity = queued.pod.spec, queued.pod.spec.affinity
    return queued.pod.priority > 0 and (
        any(each.when_unsatisfiable == "DoNotSchedule" for each in spec.topology_spread_constraints)
        or bool(affinity and affinity.pod_affinity and affinity.pod_affinity.required)
    )
