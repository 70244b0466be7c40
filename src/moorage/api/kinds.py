"""The kinds that Moorage reads: struct, group, version, plural, scope.

In the order in which a starting scheduler should observe them: referenced objects first, pods last.
"""

from dataclasses import dataclass
from functools import cached_property

from moorage.api import devices, pod_groups, policy, queues, storage, workloads
from moorage.api.meta import KubeObject
from moorage.api.node import Node, NodePool
from moorage.api.pod import Pod


@dataclass(frozen=True)
class Kind:
    """One kind: its struct, group, plural, whether it is namespaced, and version."""

    struct: type[KubeObject]
    group: str
    plural: str
    namespaced: bool
    version: str = "v1"

    @cached_property
    def name(self) -> str:
        return self.struct.__name__

    @cached_property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(policy.Namespace, "", "namespaces", namespaced=False),
        Kind(policy.PriorityClass, "scheduling.k8s.io", "priorityclasses", namespaced=False),
        Kind(policy.LimitRange, "", "limitranges", namespaced=True),
        Kind(policy.ResourceQuota, "", "resourcequotas", namespaced=True),
        Kind(policy.RuntimeClass, "node.k8s.io", "runtimeclasses", namespaced=False),
        Kind(storage.StorageClass, "storage.k8s.io", "storageclasses", namespaced=False),
        Kind(storage.CSIDriver, "storage.k8s.io", "csidrivers", namespaced=False),
        Kind(storage.PersistentVolume, "", "persistentvolumes", namespaced=False),
        Kind(storage.PersistentVolumeClaim, "", "persistentvolumeclaims", namespaced=True),
        Kind(workloads.Service, "", "services", namespaced=True),
        Kind(workloads.ReplicationController, "", "replicationcontrollers", namespaced=True),
        Kind(workloads.ReplicaSet, "apps", "replicasets", namespaced=True),
        Kind(workloads.StatefulSet, "apps", "statefulsets", namespaced=True),
        Kind(policy.PodDisruptionBudget, "policy", "poddisruptionbudgets", namespaced=True),
        Kind(
            pod_groups.PodGroup,
            "scheduling.k8s.io",
            "podgroups",
            namespaced=True,
            version="v1alpha2",
        ),
        Kind(queues.Queue, queues.GROUP, "queues", namespaced=False, version="v1alpha1"),
        Kind(
            queues.ElasticQuota,
            "scheduling.x-k8s.io",
            "elasticquotas",
            namespaced=True,
            version="v1alpha1",
        ),
        Kind(storage.CSINode, "storage.k8s.io", "csinodes", namespaced=False),
        Kind(storage.CSIStorageCapacity, "storage.k8s.io", "csistoragecapacities", namespaced=True),
        Kind(storage.VolumeAttachment, "storage.k8s.io", "volumeattachments", namespaced=False),
        Kind(devices.DeviceClass, "resource.k8s.io", "deviceclasses", namespaced=False),
        Kind(devices.ResourceSlice, "resource.k8s.io", "resourceslices", namespaced=False),
        Kind(
            devices.ResourceClaimTemplate,
            "resource.k8s.io",
            "resourceclaimtemplates",
            namespaced=True,
        ),
        Kind(devices.ResourceClaim, "resource.k8s.io", "resourceclaims", namespaced=True),
        Kind(Node, "", "nodes", namespaced=False),
        Kind(Pod, "", "pods", namespaced=True),
    )
}

# Only admission reads them: a scheduler of a cluster sees pods that have been admitted. `explain`
# and `snapshot` read them for the pods that controllers would create.
ADMISSION = ("LimitRange", "ResourceQuota", "RuntimeClass")

# Read, but not observed by a scheduler: `moorage.expansion` turns them into pods and nodes.
WORKLOADS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(workloads.Deployment, "apps", "deployments", namespaced=True),
        Kind(workloads.DaemonSet, "apps", "daemonsets", namespaced=True),
        Kind(workloads.Job, "batch", "jobs", namespaced=True),
        Kind(workloads.CronJob, "batch", "cronjobs", namespaced=True),
        # Controllers make PodGroups of it; they are not simulated.
        Kind(
            pod_groups.Workload,
            "scheduling.k8s.io",
            "workloads",
            namespaced=True,
            version="v1alpha2",
        ),
        Kind(NodePool, "moorage.dev", "nodepools", namespaced=False),
    )
}

READ: dict[str, Kind] = KINDS | WORKLOADS

_BY_VERSION = {(kind.api_version, kind.name): kind for kind in READ.values()}


def known(api_version: str, kind: str) -> Kind | None:
    """The kind of this name, if it is read in this version."""
    return _BY_VERSION.get((api_version, kind))


# Groups of Kubernetes' own kinds only.
_OWN_GROUPS = ("", "apps", "batch", "policy")
_MEANT = {
    word: kind for kind in READ.values() for word in (kind.name.lower(), f"{kind.name.lower()}s")
}


def meant(api_version: str, kind: str) -> Kind | None:
    """The kind that is meant by one that does not exist, such as pod of v1, or Pod of apps/v1."""
    group, _, version = api_version.rpartition("/")
    found = _MEANT.get(kind.lower()) if group in _OWN_GROUPS and version == "v1" else None
    return found if found is not None and found.group in _OWN_GROUPS else None


def is_outdated(api_version: str, kind: str) -> bool:
    """Whether the kind is read, but not in this version; skipping such an object would surprise.

    Kinds of the same name in other groups do not count: Knative's Service, Volcano's Job.
    """
    found = READ.get(kind)
    if found is None or found.api_version == api_version:
        return False
    group = api_version.rpartition("/")[0]
    return group == found.group or (group == "extensions" and found.group == "apps")
