"""The resources that the API serves: one row per built-in kind, and the registry of all of them.

A resource is an endpoint of the API (`apps/v1 deployments`); a kind is the type of its objects
(`Deployment`). To serve another built-in kind, add a row and list it in `BUILT_IN`. A
CustomResourceDefinition adds rows at run time, one per served version. All versions share one
storage; the only conversion between them is the `apiVersion`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from moorage.serve.controllers.objects import Object

NAMESPACED, CLUSTER = "Namespaced", "Cluster"  # the words of CustomResourceDefinitions


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One place in the API. Compared by identity: there is one of each."""

    group: str
    version: str
    kind: str
    plural: str
    scope: str
    short_names: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    # Events are seen through two groups and kept once, under this key.
    stored_as: str = ""
    custom: bool = False

    @property
    def namespaced(self) -> bool:
        return self.scope == NAMESPACED

    @property
    def api_version(self) -> str:
        """As objects state it: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> str:
        """As the API server's messages name it: `pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """As the API server's complaints name it: `Pod`, `Deployment.apps`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def storage_key(self) -> str:
        """The shelf of the store on which its objects lie."""
        return self.stored_as or self.key

    @property
    def singular(self) -> str:
        return self.kind.lower()


_ALL = ("all",)
_STATUS = ("status",)
_SCALED = ("status", "scale")

NAMESPACES = Resource("", "v1", "Namespace", "namespaces", CLUSTER, ("ns",), ("status", "finalize"))
NODES = Resource("", "v1", "Node", "nodes", CLUSTER, ("no",), _STATUS)
PODS = Resource(
    "", "v1", "Pod", "pods", NAMESPACED, ("po",), ("status", "binding", "eviction", "resize"), _ALL
)
SERVICES = Resource("", "v1", "Service", "services", NAMESPACED, ("svc",), _STATUS, _ALL)
ENDPOINTS = Resource("", "v1", "Endpoints", "endpoints", NAMESPACED, ("ep",))
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps", NAMESPACED, ("cm",))
SECRETS = Resource("", "v1", "Secret", "secrets", NAMESPACED)
SERVICE_ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts", NAMESPACED, ("sa",))
PERSISTENT_VOLUMES = Resource(
    "", "v1", "PersistentVolume", "persistentvolumes", CLUSTER, ("pv",), _STATUS
)
PERSISTENT_VOLUME_CLAIMS = Resource(
    "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", NAMESPACED, ("pvc",), _STATUS
)
RESOURCE_QUOTAS = Resource(
    "", "v1", "ResourceQuota", "resourcequotas", NAMESPACED, ("quota",), _STATUS
)
LIMIT_RANGES = Resource("", "v1", "LimitRange", "limitranges", NAMESPACED, ("limits",))
REPLICATION_CONTROLLERS = Resource(
    "", "v1", "ReplicationController", "replicationcontrollers", NAMESPACED, ("rc",), _SCALED, _ALL
)
EVENTS = Resource("", "v1", "Event", "events", NAMESPACED, ("ev",))
EVENTS_V1 = Resource(
    "events.k8s.io", "v1", "Event", "events", NAMESPACED, ("ev",), stored_as=EVENTS.storage_key
)
DEPLOYMENTS = Resource(
    "apps", "v1", "Deployment", "deployments", NAMESPACED, ("deploy",), _SCALED, _ALL
)
REPLICA_SETS = Resource(
    "apps", "v1", "ReplicaSet", "replicasets", NAMESPACED, ("rs",), _SCALED, _ALL
)
STATEFUL_SETS = Resource(
    "apps", "v1", "StatefulSet", "statefulsets", NAMESPACED, ("sts",), _SCALED, _ALL
)
DAEMON_SETS = Resource("apps", "v1", "DaemonSet", "daemonsets", NAMESPACED, ("ds",), _STATUS, _ALL)
CONTROLLER_REVISIONS = Resource(
    "apps", "v1", "ControllerRevision", "controllerrevisions", NAMESPACED
)
JOBS = Resource("batch", "v1", "Job", "jobs", NAMESPACED, (), _STATUS, _ALL)
CRON_JOBS = Resource("batch", "v1", "CronJob", "cronjobs", NAMESPACED, ("cj",), _STATUS, _ALL)
DISRUPTION_BUDGETS = Resource(
    "policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", NAMESPACED, ("pdb",), _STATUS
)
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", CLUSTER, ("pc",)
)
LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases", NAMESPACED)
STORAGE_CLASSES = Resource(
    "storage.k8s.io", "v1", "StorageClass", "storageclasses", CLUSTER, ("sc",)
)
CSI_NODES = Resource("storage.k8s.io", "v1", "CSINode", "csinodes", CLUSTER)
CSI_DRIVERS = Resource("storage.k8s.io", "v1", "CSIDriver", "csidrivers", CLUSTER)
CSI_STORAGE_CAPACITIES = Resource(
    "storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities", NAMESPACED
)
VOLUME_ATTACHMENTS = Resource(
    "storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", CLUSTER, (), _STATUS
)
RESOURCE_CLAIMS = Resource(
    "resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", NAMESPACED, (), _STATUS
)
RESOURCE_CLAIM_TEMPLATES = Resource(
    "resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates", NAMESPACED
)
RESOURCE_SLICES = Resource("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", CLUSTER)
DEVICE_CLASSES = Resource("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", CLUSTER)
DEFINITIONS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    CLUSTER,
    ("crd", "crds"),
    _STATUS,
    ("api-extensions",),
)

# In the order in which an API server lists them: groups by importance, then by name.
BUILT_IN: tuple[Resource, ...] = (
    NAMESPACES,
    NODES,
    PODS,
    SERVICES,
    ENDPOINTS,
    CONFIG_MAPS,
    SECRETS,
    SERVICE_ACCOUNTS,
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    RESOURCE_QUOTAS,
    LIMIT_RANGES,
    REPLICATION_CONTROLLERS,
    EVENTS,
    DEPLOYMENTS,
    REPLICA_SETS,
    STATEFUL_SETS,
    DAEMON_SETS,
    CONTROLLER_REVISIONS,
    EVENTS_V1,
    JOBS,
    CRON_JOBS,
    DISRUPTION_BUDGETS,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    VOLUME_ATTACHMENTS,
    PRIORITY_CLASSES,
    LEASES,
    RESOURCE_CLAIMS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_SLICES,
    DEVICE_CLASSES,
    DEFINITIONS,
)


GroupVersion = tuple[str, str]


class ResourceRegistry:
    """Resources by place and by kind."""

    def __init__(self, definitions: Iterable[Object] = ()) -> None:
        self._by_place: dict[tuple[str, str, str], Resource] = {}
        self._by_kind: dict[tuple[str, str], Resource] = {}
        self._custom: dict[str, list[Resource]] = {}
        for resource in BUILT_IN:
            self._add(resource)
        for definition in definitions:
            self.define(definition)

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._by_place.values())

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource at a place of the API."""
        return self._by_place.get((group, version, plural))

    def of(self, obj: Object) -> Resource | None:
        """The resource of an object."""
        return self._by_kind.get((obj.get("apiVersion", ""), obj.get("kind", "")))

    def defined_by(self, definition: Object) -> list[Resource]:
        """The resources that a definition adds, one per version."""
        return self._custom.get(definition["metadata"]["name"], [])

    def versions(self) -> dict[GroupVersion, list[Resource]]:
        """All group versions with their resources, in the order of their coming."""
        found: dict[GroupVersion, list[Resource]] = {}
        for resource in self:
            found.setdefault((resource.group, resource.version), []).append(resource)
        return found

    def _add(self, resource: Resource) -> None:
        self._by_place[resource.group, resource.version, resource.plural] = resource
        self._by_kind[resource.api_version, resource.kind] = resource

    def forget(self, name: str) -> None:
        for resource in self._custom.pop(name, ()):
            self._by_place.pop((resource.group, resource.version, resource.plural), None)
            self._by_kind.pop((resource.api_version, resource.kind), None)

    def define(self, definition: Object) -> None:
        """Serve the resources of a new or changed definition."""
        self.forget(definition["metadata"]["name"])
        rows = list(_rows(definition))
        built_in = {resource.api_version for resource in BUILT_IN}
        rows = [row for row in rows if row.api_version not in built_in]
        self._custom[definition["metadata"]["name"]] = rows
        for row in rows:
            self._add(row)


def _rows(definition: Object) -> Iterator[Resource]:
    """The resources that a definition, already checked, describes."""
    spec = definition["spec"]
    names = spec["names"]
    for version in spec["versions"]:
        if version.get("served"):
            yield Resource(
                spec["group"],
                version["name"],
                names["kind"],
                names["plural"],
                NAMESPACED if spec["scope"] == NAMESPACED else CLUSTER,
                tuple(names.get("shortNames", ())),
                tuple(_subresources(version)),
                tuple(names.get("categories", ())),
                stored_as=f"{names['plural']}.{spec['group']}",
                custom=True,
            )


def _subresources(version: dict[str, Any]) -> Iterator[str]:
    declared = version.get("subresources") or {}
    if "status" in declared:
        yield "status"
