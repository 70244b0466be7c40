"""Pods start, run and end; the pods of a node that is gone are collected after a while.

One object stands for the kubelets of all nodes, and for the garbage collector of pods. It watches
the cluster, and what it wants to do later it puts on the clock.

    seen                                 and then                         unless meanwhile
    a pod on a node, not yet running     Start after `start_seconds`      it is terminating, or gone
    running, with moorage.dev/run-seconds  Finish after that time         gone
    a pod that is terminating            End after its grace period       gone
    a node deleted, or a pod bound to one that is not there
                                         Collect its pods after a while   the node is back
"""

import math

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.core.observations import Added, Deleted, Observation, Updated
from moorage.errors import InputError
from moorage.sim.clock import Clock, timestamp
from moorage.sim.cluster import Cluster

RUN_SECONDS = "moorage.dev/run-seconds"
DEFAULT_GRACE_SECONDS = 30
# How long a missing node may stay away before its pods are taken for lost, as in Kubernetes.
COLLECT_SECONDS = 40.0


class Start(Struct, frozen=True):
    """A bound pod's containers are up."""

    key: str
    uid: str


class Finish(Struct, frozen=True):
    """A pod has done what it was made for."""

    key: str
    uid: str


class End(Struct, frozen=True):
    """A terminating pod's grace period is over."""

    key: str
    uid: str


class Collect(Struct, frozen=True):
    """A node has been missing for so long that its pods are lost."""

    node: str


Happening = Start | Finish | End | Collect


def run_seconds(pod: Pod) -> float | None:
    """How long a pod runs until it has succeeded; None for one that runs for ever."""
    text = pod.metadata.annotations.get(RUN_SECONDS)
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise InputError(
            f'Pod {pod.key}, metadata.annotations["{RUN_SECONDS}"]: must be seconds, is "{text}"'
        )
    return seconds


class Kubelet:
    """The kubelets of all nodes at once."""

    def __init__(
        self, cluster: Cluster, clock: Clock[object], *, start_seconds: float = 1.0
    ) -> None:
        self.start_seconds = start_seconds
        # How many Finish are on the clock: a simulation need not wait for all of them.
        self.running_to_an_end = 0
        self._cluster = cluster
        self._clock = clock
        # Node -> UID -> key, and the pods (by UID) whose End is on the clock.
        self._pods: dict[str, dict[str, str]] = {}
        self._ending: set[str] = set()
        cluster.watch(self._notice)

    def happen(self, what: Happening) -> None:
        """Do what was put on the clock, if it still makes sense."""
        match what:
            case Start():
                self._start(what)
            case Finish():
                self._finish(what)
            case End():
                self._end(what)
            case Collect():
                self._collect(what.node)

    def _notice(self, observation: Observation) -> None:
        match observation:
            case Added(obj=Pod() as pod):
                self._notice_pod(pod, is_new=True)
            case Updated(obj=Pod() as pod):
                self._notice_pod(pod, is_new=False)
            case Deleted(obj=Pod() as pod):
                self._pods.get(pod.node_name, {}).pop(pod.uid, None)
                self._ending.discard(pod.uid)
            case Added(obj=Node() as node):
                for uid, key in self._pods.get(node.name, {}).items():
                    self._clock.in_(self.start_seconds, Start(key, uid))
            case Deleted(obj=Node() as node):
                if self._pods.get(node.name):
                    self._clock.in_(COLLECT_SECONDS, Collect(node.name))

    def _notice_pod(self, pod: Pod, *, is_new: bool) -> None:
        if not pod.node_name or pod.is_terminal:
            return
        mine = self._pods.setdefault(pod.node_name, {})
        if pod.uid not in mine:
            mine[pod.uid] = pod.key
            self._take_over(pod, is_new=is_new)
        if pod.is_terminating and pod.uid not in self._ending:
            self._ending.add(pod.uid)
            grace = pod.metadata.deletion_grace_period_seconds
            seconds = DEFAULT_GRACE_SECONDS if grace is None else grace
            self._clock.in_(seconds, End(pod.key, pod.uid))

    def _take_over(self, pod: Pod, *, is_new: bool) -> None:
        if pod.status.phase == "Running":
            self._set_term(pod)
        elif self._cluster.get(Node, pod.node_name) is not None:
            self._clock.in_(self.start_seconds, Start(pod.key, pod.uid))
        elif not is_new:
            # Bound to a node that has just gone. A pod that was made with such a node's name is
            # left alone: a dump of a part of a cluster has many of them.
            self._clock.in_(COLLECT_SECONDS, Collect(pod.node_name))

    def _set_term(self, pod: Pod) -> None:
        seconds = run_seconds(pod)
        if seconds is not None:
            self.running_to_an_end += 1
            self._clock.in_(seconds, Finish(pod.key, pod.uid))

    def _alive(self, key: str, uid: str) -> Pod | None:
        pod = self._cluster.get(Pod, key)
        return pod if pod is not None and pod.uid == uid and not pod.is_terminal else None

    def _start(self, what: Start) -> None:
        pod = self._alive(what.key, what.uid)
        if pod is None or pod.is_terminating or pod.status.phase == "Running":
            return
        if self._cluster.get(Node, pod.node_name) is None:
            return
        now = timestamp(self._clock.now)
        running = replace(pod.status, phase="Running", start_time=pod.status.start_time or now)
        self._set_term(self._cluster.write_status(pod, running))

    def _finish(self, what: Finish) -> None:
        self.running_to_an_end -= 1
        pod = self._alive(what.key, what.uid)
        if pod is None:
            return
        if pod.is_terminating:
            self._cluster.remove(pod)
        else:
            self._cluster.write_status(pod, replace(pod.status, phase="Succeeded"))
            self._pods.get(pod.node_name, {}).pop(pod.uid, None)

    def _end(self, what: End) -> None:
        pod = self._cluster.get(Pod, what.key)
        if pod is not None and pod.uid == what.uid:
            self._cluster.remove(pod)

    def _collect(self, node: str) -> None:
        if self._cluster.get(Node, node) is not None:
            return
        for uid, key in list(self._pods.get(node, {}).items()):
            pod = self._alive(key, uid)
            if pod is not None:
                self._cluster.remove(pod)
