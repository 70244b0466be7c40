"""Pods start, run and end; the pods of a node that is gone are collected after a while.

One object simulates the kubelets of all nodes and the garbage collector of pods. It watches the
cluster, and schedules actions on the clock.

    observed                                 action                            unless meanwhile
    a pod on a node, not yet running         StartPod after `start_seconds`    terminating, or gone,
                                                                               or claims are missing
    running, with moorage.dev/run-seconds    FinishPod after that time         gone
    a terminating pod                        EndPod after moorage.dev/stop-    gone
                                             seconds, or its grace period
    a node deleted, or a pod bound to a      CollectPods after a while         the node is back
    missing node
"""

import math
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.devices import ResourceClaim
from moorage.api.meta import Condition
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.cluster.verbs.delete import DEFAULT_GRACE_SECONDS
from moorage.controllers import claims
from moorage.controllers.garbage_collection import QUARANTINE_SECONDS
from moorage.controllers.kubelet import (
    RUN_SECONDS,
    STOPPED_EXIT_CODE,
    annotated_seconds,
    end_phase,
    exit_code,
    stop_seconds,
)
from moorage.core.observations import Added, Deleted, Observation, Updated
from moorage.errors import InputError
from moorage.sim.clock import Clock, timestamp
from moorage.sim.cluster import MemoryCluster, is_protected
from moorage.sim.pod_states import READY, with_condition

NOT_READY = Condition(type="Ready", status="False")


class PodAction(Struct, frozen=True):
    """Something happens to a pod."""

    key: str
    uid: str


class StartPod(PodAction, frozen=True):
    """A bound pod's containers are up."""


class FinishPod(PodAction, frozen=True):
    """The run time of a pod is over."""


class EndPod(PodAction, frozen=True):
    """A terminating pod has stopped."""


class CollectPods(Struct, frozen=True):
    """A node has been missing for so long that its pods are removed."""

    node: str


Action = StartPod | FinishPod | EndPod | CollectPods


def run_seconds(pod: Pod) -> float | None:
    """How long a pod runs; None for one that runs for ever."""
    annotations = pod.metadata.annotations
    if not annotations or (text := annotations.get(RUN_SECONDS)) is None:
        return None
    seconds = annotated_seconds(annotations, RUN_SECONDS)
    if seconds is None:
        raise InputError(
            f'Pod {pod.key}, metadata.annotations["{RUN_SECONDS}"]: must be seconds, is "{text}"'
        )
    return seconds


class Kubelet:
    """The kubelets of all nodes at once."""

    def __init__(
        self, cluster: MemoryCluster, clock: Clock[object], *, start_seconds: float = 1.0
    ) -> None:
        self.start_seconds = start_seconds
        # How many FinishPod are on the clock: a simulation need not wait for all of them.
        self.finite_pods = 0
        self._cluster = cluster
        self._clock = clock
        # Node -> UID -> key; and the grace period of pods (by UID) whose EndPod is on the clock.
        self._pods: dict[str, dict[str, str]] = {}
        self._ending: dict[str, float] = {}
        cluster.watch(self._observe, Pod, Node, ResourceClaim, running=self._observe_running)

    def perform(self, what: Action) -> None:
        """Perform an action from the clock, unless its object changed meanwhile."""
        match what:
            case StartPod():
                self._start(what)
            case FinishPod():
                self._finish(what)
            case EndPod():
                self._end(what)
            case CollectPods():
                self._collect(what.node)

    def _observe(self, observation: Observation) -> None:
        match observation:
            case Added(obj=Pod() as pod):
                self._observe_pod(pod, is_new=True)
            case Updated(obj=Pod() as pod):
                self._observe_pod(pod, is_new=False)
            case Deleted(obj=Pod() as pod):
                self._pods.get(pod.node_name, {}).pop(pod.uid, None)
                self._ending.pop(pod.uid, None)
            case Added(obj=Node() as node):
                for uid, key in self._pods.get(node.name, {}).items():
                    self._clock.in_(self.start_seconds, StartPod(key, uid))
            case Deleted(obj=Node() as node):
                if self._pods.get(node.name):
                    self._clock.in_(QUARANTINE_SECONDS, CollectPods(node.name))
            case Updated(obj=ResourceClaim() as claim):
                self._observe_claim(claim)

    def _observe_running(self, pods: Mapping[str, Pod]) -> None:
        of_nodes = self._pods
        for key, pod in pods.items():
            node = pod.spec.node_name
            if (mine := of_nodes.get(node)) is None:
                mine = of_nodes[node] = {}
            mine[pod.metadata.uid] = key

    def _observe_pod(self, pod: Pod, *, is_new: bool) -> None:
        node, uid = pod.spec.node_name, pod.metadata.uid
        if not node:
            return
        if (mine := self._pods.get(node)) is None:
            mine = self._pods[node] = {}
        is_known = uid in mine
        if not is_known:
            mine[uid] = pod.key
        if pod.is_terminal:
            return
        if not is_known:
            self._adopt(pod, is_new=is_new)
        if pod.metadata.deletion_timestamp is None:
            return
        grace = pod.metadata.deletion_grace_period_seconds
        seconds = float(DEFAULT_GRACE_SECONDS if grace is None else grace)
        if seconds < self._ending.get(pod.uid, math.inf):
            self._ending[pod.uid] = seconds
            stop = stop_seconds(pod.metadata.annotations, default_seconds=seconds)
            self._clock.in_(min(seconds, stop), EndPod(pod.key, pod.uid))

    def _observe_claim(self, claim: ResourceClaim) -> None:
        """Start the pods that waited for this claim."""
        for user in claim.status.reserved_for:
            pod = self._alive(f"{claim.namespace}/{user.name}", user.uid)
            if pod is not None and pod.node_name and pod.status.phase != "Running":
                self._clock.in_(self.start_seconds, StartPod(pod.key, pod.uid))

    def _adopt(self, pod: Pod, *, is_new: bool) -> None:
        if pod.status.phase == "Running":
            self._schedule_finish(pod)
        elif self._cluster.get(Node, pod.node_name) is not None:
            self._clock.in_(self.start_seconds, StartPod(pod.key, pod.uid))
        elif not is_new:
            # Bound to a node that has just gone. A pod that was made with such a node's name is
            # left alone: a dump of a part of a cluster has many of them.
            self._clock.in_(QUARANTINE_SECONDS, CollectPods(pod.node_name))

    def _schedule_finish(self, pod: Pod) -> None:
        seconds = run_seconds(pod)
        if seconds is not None:
            self.finite_pods += 1
            self._clock.in_(seconds, FinishPod(pod.key, pod.uid))

    def _alive(self, key: str, uid: str) -> Pod | None:
        pod = self._cluster.get(Pod, key)
        return pod if pod is not None and pod.uid == uid and not pod.is_terminal else None

    def _start(self, what: StartPod) -> None:
        pod = self._alive(what.key, what.uid)
        if pod is None or pod.is_terminating or pod.status.phase == "Running":
            return
        if self._cluster.get(Node, pod.node_name) is None or not self._has_claims(pod):
            return
        now = self._clock.now
        running = replace(
            pod.status,
            phase="Running",
            start_time=pod.status.start_time or timestamp(now),
            conditions=with_condition(pod.status.conditions, READY, now),
        )
        self._schedule_finish(self._cluster.write_status(pod, running))

    def _has_claims(self, pod: Pod) -> bool:
        """Whether all device claims of a pod are allocated and reserved for it."""
        namespace = pod.namespace
        return not pod.spec.resource_claims or claims.are_ready(
            pod, lambda name: self._cluster.get(ResourceClaim, f"{namespace}/{name}")
        )

    def _finish(self, what: FinishPod) -> None:
        self.finite_pods -= 1
        pod = self._alive(what.key, what.uid)
        if pod is None:
            return
        if pod.is_terminating:
            self._remove(pod)
        else:
            self._write_end(pod, exit_code(pod.metadata.annotations))

    def _end(self, what: EndPod) -> None:
        pod = self._cluster.get(Pod, what.key)
        if pod is not None and pod.uid == what.uid:
            self._remove(pod)

    def _write_end(self, pod: Pod, code: int) -> Pod:
        """Set the phase and the exit code of a pod whose containers ended."""
        conditions = with_condition(pod.status.conditions, NOT_READY, self._clock.now)
        ended = replace(pod.status, phase=end_phase(code), conditions=conditions)
        return self._cluster.write_status(pod, ended)

    def _remove(self, pod: Pod) -> None:
        """Remove a pod that has stopped; the owner of a finalizer reads how it ended."""
        if is_protected(pod) and not pod.is_terminal:
            pod = self._write_end(pod, STOPPED_EXIT_CODE)
        self._cluster.delete(Pod, pod.key, self._clock.now, grace_seconds=0)

    def _collect(self, node: str) -> None:
        if self._cluster.get(Node, node) is not None:
            return
        for uid, key in list(self._pods.get(node, {}).items()):
            pod = self._cluster.get(Pod, key)
            if pod is not None and pod.uid == uid:
                self._remove(pod)
