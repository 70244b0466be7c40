"""Controllers: the workloads of a simulation, in virtual time.

`moorage.expansion.host` runs the controllers that `serve` runs; this connects them to the cluster
in memory. They act at the end of an instant, when the schedulers have nothing to do. Pods of owners
that are not part of the simulation are left alone.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from moorage.api import defaults, timestamps
from moorage.api.devices import DeviceClass
from moorage.api.meta import KubeObject
from moorage.api.node import Node, NodePool
from moorage.api.pod import Pod
from moorage.api.policy import LimitRange, PriorityClass, ResourceQuota, RuntimeClass
from moorage.api.storage import StorageClass
from moorage.core.observations import Deleted, Listed, Observation
from moorage.expansion.host import ControllerHost
from moorage.expansion.pools import nodes_of_pools
from moorage.sim.clock import Clock
from moorage.sim.cluster import MemoryCluster
from moorage.sim.kubelet import run_seconds

T = TypeVar("T", bound=KubeObject)


# The kinds that change what a new object is.
ADMITTING = (PriorityClass, StorageClass, LimitRange, RuntimeClass)


class Controllers:
    """The controllers of all workloads of one simulation."""

    def __init__(self, cluster: MemoryCluster, clock: Clock[object]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._created_pods = 0
        self.host = ControllerHost(self, self._complete, self._now)
        self._quotas = self.host.quotas
        cluster.watch(self._changed, running=self._pods_run)
        cluster.admit_by(self._quotas)

    def take(self, found: list[KubeObject]) -> list[KubeObject]:
        """The objects to store: with the nodes of pools, without what only controllers read."""
        if NodePool in map(type, found):
            known = (*self._cluster.all(Node), *self._cluster.all(DeviceClass))
            made = nodes_of_pools(found, known)
            found = [*(obj for obj in found if not isinstance(obj, NodePool)), *made]
        return self.host.take(found, self._cluster.all(Pod))

    @property
    def is_due(self) -> bool:
        """Whether a controller has something to do at this instant."""
        if self.host.has_work:
            return True
        deadline = self.next_at
        return deadline is not None and deadline <= self._clock.now

    @property
    def next_at(self) -> float | None:
        """When a controller next acts without a change."""
        deadline = self.host.deadline
        if deadline is None:
            return None
        # The difference of large numbers is not exact, and time must not go back.
        return max(self._clock.now, round(deadline - timestamps.EPOCH_SECONDS, 6))

    def perform(self) -> bool:
        """Let all controllers act that are due; whether they did more than create pods."""
        deleted, others = self.host.deleted_pods, self._cluster.version
        pods = self._created_pods
        self.host.turn()
        changed = self._cluster.version - others - (self._created_pods - pods)
        return changed > 0 or self.host.deleted_pods > deleted

    # The cluster of the host

    def get(self, kind: type[T], key: str) -> T | None:
        return self._cluster.get(kind, key)

    def all(self, kind: type[T]) -> Iterable[T]:
        return self._cluster.all(kind)

    def create_object(self, obj: KubeObject) -> KubeObject:
        if isinstance(obj, Pod):
            run_seconds(obj)  # Refused if it is malformed.
            self._created_pods += 1
        return self._cluster.create(obj, self._clock.now)

    def write(self, obj: T) -> T:
        return self._cluster.write(obj)

    def delete_object(self, kind: type[KubeObject], key: str, grace_seconds: int | None) -> None:
        self._cluster.delete(kind, key, self._clock.now, grace_seconds)

    def _complete(self, obj: KubeObject) -> KubeObject:
        known = [each for kind in ADMITTING for each in self._cluster.all(kind)]
        [completed] = defaults.complete([obj], known=known)
        return completed

    def _now(self) -> float:
        return timestamps.EPOCH_SECONDS + self._clock.now

    def _changed(self, observation: Observation) -> None:
        assert not isinstance(observation, Listed), "a cluster in memory does not list"
        obj, is_deleted, quotas = observation.obj, isinstance(observation, Deleted), self._quotas
        if isinstance(obj, ResourceQuota) and not is_deleted:
            quotas.put(obj)
        if quotas:
            (quotas.forget if is_deleted else quotas.observe)(obj)
        if not isinstance(obj, Pod):
            self._other_changed(obj)
            if isinstance(obj, ResourceQuota) and is_deleted:
                quotas.drop(obj)
        elif is_deleted:
            self.host.triggers.pod_deleted(obj)
        else:
            self.host.triggers.pod_changed(obj)

    def _pods_run(self, pods: Mapping[str, Pod]) -> None:
        """Pods were added; there are no quotas."""
        triggers = self.host.triggers
        if triggers.is_active:
            for pod in pods.values():
                triggers.pod_changed(pod)

    def _other_changed(self, obj: KubeObject) -> None:
        if isinstance(obj, Node):
            self.host.triggers.node_changed(obj)
        elif isinstance(obj, ADMITTING):
            self.host.classes_changed()
