"""Controllers: create and delete the pods of workloads while a simulation runs.

Only workloads with a pod template are reconciled: their pods are created, replaced when they are
evicted or lost, created in order for jobs and StatefulSets, and deleted when there are too many.
Pods of owners that are not part of the simulation are left alone.
"""

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.devices import DeviceClass
from moorage.api.kinds import WORKLOADS
from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.storage import PersistentVolumeClaim
from moorage.api.workloads import (
    DaemonSet,
    Deployment,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from moorage.core.observations import Added, Deleted, Observation, Updated
from moorage.errors import InputError
from moorage.expansion import replica_sets, stateful_sets
from moorage.expansion.children import Children, Key, key_of, owner_key
from moorage.expansion.expand import Controller, controllers_and_nodes, expand, reconcile
from moorage.expansion.templates import NameGenerator
from moorage.sim.clock import Clock
from moorage.sim.cluster import MemoryCluster

SCALABLE = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")
Create = Callable[[list[KubeObject]], object]


class Reconcile(Struct, frozen=True):
    """Compare the pods of a workload with its specification."""

    owner: Key


class Controllers:
    """The controllers of all workloads of one simulation."""

    def __init__(self, cluster: MemoryCluster, clock: Clock[object], create: Create) -> None:
        self._cluster = cluster
        self._clock = clock
        self._create = create
        self._serials = NameGenerator()
        self._owners: dict[Key, Controller] = {}
        self._deployments: dict[Key, Deployment] = {}
        self._children = Children()
        self._due: set[Key] = set()

    def take(self, objects: list[KubeObject]) -> list[KubeObject]:
        """Objects with the pods and nodes made from them; workloads are reconciled from now on."""
        if not any(_makes_others(obj) for obj in objects):
            return objects
        known = self._known()
        made = controllers_and_nodes(objects, known)
        # The name generator stays, so that a later pod never gets an earlier one's name.
        expanded = expand([*objects, *made], known, self._serials, in_order=True)
        self._keep([*objects, *made])
        return expanded

    def scale(self, kind: str, namespace: str, name: str, replicas: int) -> None:
        """Change how many pods a workload has."""
        key = (kind, namespace or "default", name)
        if kind == "Deployment" and key in self._deployments:
            sets = [each for each in self._owners.values() if owner_key(each) == key]
            found = replica_sets.scaled((e for e in sets if isinstance(e, ReplicaSet)), replicas)
            if found is None:
                raise InputError(f"Deployment {key[1]}/{name} has no replica set that could follow")
            self._owners[key_of(found)] = found
            self._mark(key_of(found))
        else:
            owner = self._owners.get(key)
            if not isinstance(owner, ReplicaSet | StatefulSet | ReplicationController):
                raise InputError(f"no {kind} {key[1]}/{name} to scale; {self._candidates()}")
            self._owners[key] = replace(owner, spec=replace(owner.spec, replicas=replicas))
            self._mark(key)

    def perform(self, what: Reconcile) -> bool:
        """Create missing pods, delete surplus ones; whether it did more than create pods."""
        self._due.discard(what.owner)
        owner = self._owners[what.owner]
        nodes = self._cluster.all(Node)
        found = reconcile(owner, self._children, nodes, self._serials, in_order=True)
        new = [obj for obj in found.create if not self._is_there(obj)]
        if new:
            self._create(new)
        for pod in found.delete:
            self._cluster.delete(Pod, pod.key, self._clock.now)
        return bool(found.delete) or any(not isinstance(obj, Pod) for obj in new)

    def held_back(self) -> dict[str, tuple[str, int]]:
        """StatefulSets with the pod that they wait for, and how many pods come after it."""
        sets = [owner for owner in self._owners.values() if isinstance(owner, StatefulSet)]
        found = {
            "/".join(key_of(each)[1:]): stateful_sets.held_back(each, self._children)
            for each in sets
        }
        return {key: waits for key, waits in found.items() if waits is not None}

    def _keep(self, objects: Iterable[KubeObject]) -> None:
        had_any = bool(self._owners)
        for obj in objects:
            if isinstance(obj, Deployment):
                self._deployments[key_of(obj)] = obj
            elif isinstance(obj, Controller) and obj.spec.template is not None:
                self._owners[key_of(obj)] = obj
                if isinstance(obj, StatefulSet):
                    # Its next pod may wait for the removal of one that has ended.
                    self._mark(key_of(obj))
        if self._owners and not had_any:
            self._children = Children(self._cluster.all(Pod))
            self._cluster.watch(self._changed)

    def _known(self) -> list[KubeObject]:
        """Objects of the cluster that are, or may become, owners or children."""
        kinds: tuple[type[KubeObject], ...] = (
            Pod,
            Node,
            ReplicaSet,
            PersistentVolumeClaim,
            DeviceClass,
        )
        return [obj for kind in kinds for obj in self._cluster.all(kind)]

    def _changed(self, observation: Observation) -> None:
        match observation:
            case Added(obj=Pod() as pod):
                self._children.put(pod)
            case Updated(obj=Pod() as pod):
                self._children.put(pod)
                if pod.is_terminal or pod.is_terminating or self._unblocks_others(pod):
                    self._mark(_owner_key(pod))
            case Deleted(obj=Pod() as pod):
                self._children.drop(pod)
                self._mark(_owner_key(pod))
            case Added(obj=Node()) | Updated(obj=Node()) | Deleted(obj=Node()):
                for key, owner in self._owners.items():
                    if isinstance(owner, DaemonSet):
                        self._mark(key)

    def _unblocks_others(self, pod: Pod) -> bool:
        """Whether a pod runs that others of its StatefulSet may have waited for."""
        if pod.status.phase != "Running":
            return False
        return isinstance(self._owners.get(_owner_key(pod)), StatefulSet)

    def _mark(self, owner: Key) -> None:
        if owner in self._owners and owner not in self._due:
            self._due.add(owner)
            self._clock.in_(0.0, Reconcile(owner))

    def _is_there(self, obj: KubeObject) -> bool:
        key = f"{obj.namespace or 'default'}/{obj.name}"
        return self._cluster.get(type(obj), key) is not None

    def _candidates(self) -> str:
        names = sorted(
            f"{kind} {namespace}/{name}"
            for kind, namespace, name in [*self._owners, *self._deployments]
            if kind in SCALABLE
        )
        return f"there is {', '.join(names[:5])}" if names else "there is no workload at all"


def _owner_key(pod: Pod) -> Key:
    return owner_key(pod) or stateful_sets.key_by_name(pod)


def _makes_others(obj: KubeObject) -> bool:
    if type(obj).__name__ in WORKLOADS:
        return True
    sets = ReplicaSet | StatefulSet | ReplicationController
    return isinstance(obj, sets) and obj.spec.template is not None
