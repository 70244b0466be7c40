"""The kinds that Moorage reads: struct, group, version, plural, scope.

In the order in which a starting scheduler should observe them: referenced objects first, pods last.
"""

from typing import NamedTuple

from moorage.api.meta import KubeObject
from moorage.api.node import Node, NodePool
from moorage.api.pod import Pod
from moorage.api.policy import Namespace, PodDisruptionBudget, PriorityClass
from moorage.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from moorage.api.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)


class Kind(NamedTuple):
    """One kind: its struct, group, version, plural, and whether it is namespaced."""

    struct: type[KubeObject]
    group: str
    version: str
    plural: str
    namespaced: bool

    @property
    def name(self) -> str:
        return self.struct.__name__

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(Namespace, "", "v1", "namespaces", namespaced=False),
        Kind(PriorityClass, "scheduling.k8s.io", "v1", "priorityclasses", namespaced=False),
        Kind(StorageClass, "storage.k8s.io", "v1", "storageclasses", namespaced=False),
        Kind(CSIDriver, "storage.k8s.io", "v1", "csidrivers", namespaced=False),
        Kind(PersistentVolume, "", "v1", "persistentvolumes", namespaced=False),
        Kind(PersistentVolumeClaim, "", "v1", "persistentvolumeclaims", namespaced=True),
        Kind(Service, "", "v1", "services", namespaced=True),
        Kind(ReplicationController, "", "v1", "replicationcontrollers", namespaced=True),
        Kind(ReplicaSet, "apps", "v1", "replicasets", namespaced=True),
        Kind(StatefulSet, "apps", "v1", "statefulsets", namespaced=True),
        Kind(PodDisruptionBudget, "policy", "v1", "poddisruptionbudgets", namespaced=True),
        Kind(CSINode, "storage.k8s.io", "v1", "csinodes", namespaced=False),
        Kind(CSIStorageCapacity, "storage.k8s.io", "v1", "csistoragecapacities", namespaced=True),
        Kind(VolumeAttachment, "storage.k8s.io", "v1", "volumeattachments", namespaced=False),
        Kind(Node, "", "v1", "nodes", namespaced=False),
        Kind(Pod, "", "v1", "pods", namespaced=True),
    )
}

# Read, but not observed by a scheduler: `moorage.expansion` turns them into pods and nodes.
WORKLOADS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(Deployment, "apps", "v1", "deployments", namespaced=True),
        Kind(DaemonSet, "apps", "v1", "daemonsets", namespaced=True),
        Kind(Job, "batch", "v1", "jobs", namespaced=True),
        Kind(CronJob, "batch", "v1", "cronjobs", namespaced=True),
        Kind(NodePool, "moorage.dev", "v1", "nodepools", namespaced=False),
    )
}

READ: dict[str, Kind] = KINDS | WORKLOADS

_BY_VERSION = {(kind.api_version, kind.name): kind for kind in READ.values()}


def known(api_version: str, kind: str) -> Kind | None:
    """The kind of this name, if it is read in this version."""
    return _BY_VERSION.get((api_version, kind))


def is_outdated(api_version: str, kind: str) -> bool:
    """Whether the kind is read, but not in this version; skipping such an object would surprise.

    Kinds of the same name in other groups do not count: Knative's Service, Volcano's Job.
    """
    found = READ.get(kind)
    if found is None or found.api_version == api_version:
        return False
    group = api_version.rpartition("/")[0]
    return group == found.group or (group == "extensions" and found.group == "apps")
