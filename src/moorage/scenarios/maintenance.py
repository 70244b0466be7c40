"""NodeMaintenance: drains nodes, fails nodes, and brings them back.

A drain cordons the node and evicts its pods, by the rules of the eviction API; blocked evictions
are retried after five seconds at first and less often later. DaemonSet pods stay. A failed node is
deleted at once with its pods; Kubernetes waits five minutes before it evicts them.
"""

from collections.abc import Iterable
from functools import partial
from random import Random

from msgspec.structs import replace

from moorage.api.meta import ObjectMeta
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.cluster.status_errors import StatusError
from moorage.controllers import cordon
from moorage.errors import InputError
from moorage.planning.input_cluster import belongs_to_node
from moorage.scenarios.plan import DrainNodes, FailNodes, NodeAction
from moorage.sim.results.result import DRAIN, NODE_FAILURE, Disruption
from moorage.sim.run import Simulation

RETRY_SECONDS = 5.0
LONGEST_RETRY_SECONDS = 300.0


class NodeMaintenance:
    """Performs the node events of a scenario."""

    def __init__(self, simulation: Simulation, random: Random) -> None:
        self._simulation = simulation
        self._cluster = simulation.cluster
        self._random = random

    def check_names(self, path: str, action: NodeAction) -> None:
        """Refuse the names of nodes that do not exist."""
        for i, name in enumerate(action.names or ()):
            if self._cluster.get(Node, name) is None:
                raise InputError(f'{path}.nodes[{i}]: there is no node "{name}"')

    def drain(self, path: str, action: DrainNodes) -> None:
        """Cordon nodes and begin to evict their pods."""
        names = []
        for node in self._chosen(path, action):
            names.append(node.name)
            self._cordon(node.name, cordoned=True)
            if action.seconds is not None:
                later = self._simulation.now + action.seconds
                self._simulation.at(later, partial(self._cordon, node.name, cordoned=False))
        self._evict(tuple(names), RETRY_SECONDS)

    def fail(self, path: str, action: FailNodes) -> None:
        """Delete nodes and all pods on them."""
        for node in self._chosen(path, action):
            for pod in self._on([node.name]):
                self._record(pod, NODE_FAILURE)
                self._cluster.remove(pod)
            self._cluster.remove(node)
            if action.seconds is not None:
                self._simulation.at(
                    self._simulation.now + action.seconds, partial(self._restore, node)
                )

    def _chosen(self, path: str, action: NodeAction) -> list[Node]:
        self.check_names(path, action)
        existing = list(self._cluster.all(Node))
        if action.names is not None:
            found = [node for node in existing if node.name in action.names]
        elif action.selector is not None:
            found = [node for node in existing if action.selector.matches(node.labels)]
        else:
            found = existing
        if not found:
            raise InputError(f"{path}: no node matches after {self._simulation.now:g} s")
        if action.count is not None and action.count < len(found):
            found = self._random.sample(found, action.count)
        return found

    def _cordon(self, name: str, *, cordoned: bool) -> None:
        node = self._cluster.get(Node, name)
        if node is not None and node.spec.unschedulable != cordoned:
            self._cluster.update(cordon.cordoned(node) if cordoned else cordon.uncordoned(node))

    def _restore(self, node: Node) -> None:
        if self._cluster.get(Node, node.name) is None:
            meta = ObjectMeta(
                name=node.name, labels=node.labels, annotations=node.metadata.annotations
            )
            self._cluster.create(replace(node, metadata=meta), self._simulation.now)

    def _evict(self, names: tuple[str, ...], retry_seconds: float) -> None:
        nodes = (self._cluster.get(Node, name) for name in names)
        drained = [node.name for node in nodes if node and node.spec.unschedulable]
        leaving = [
            pod for pod in self._on(drained) if not pod.is_terminating and not belongs_to_node(pod)
        ]
        blocked = False
        for pod in leaving:
            try:
                self._simulation.evict(pod.namespace, pod.name)
            except StatusError:
                blocked = True
            else:
                self._record(pod, DRAIN)
        if blocked:
            later = min(2 * retry_seconds, LONGEST_RETRY_SECONDS)
            again = partial(self._evict, names, later)
            self._simulation.at(self._simulation.now + retry_seconds, again)

    def _on(self, names: Iterable[str]) -> list[Pod]:
        nodes = set(names)
        return [pod for pod in self._cluster.active(Pod) if pod.node_name in nodes]

    def _record(self, pod: Pod, cause: str) -> None:
        node, now = pod.node_name, self._simulation.now
        self._simulation.disrupted(Disruption(pod=pod.key, node=node, at=now, cause=cause, by=node))
