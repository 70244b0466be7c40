"""The resources that the API serves: one row per built-in kind, and the registry of all of them.

A resource is an endpoint of the API (`apps/v1 deployments`); a kind is the type of its objects
(`Deployment`). To serve another built-in kind, add a row. A CustomResourceDefinition adds rows at
run time, one per served version. All versions share one storage; the only conversion between them
is the `apiVersion`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from moorage.controllers import objects
from moorage.controllers.objects import Object

NAMESPACED, CLUSTER = "Namespaced", "Cluster"  # the scopes of CustomResourceDefinitions


class ScalePaths(NamedTuple):
    """Where an object has what its `scale` subresource shows."""

    spec_replicas: tuple[str, ...] = ("spec", "replicas")
    status_replicas: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ("spec", "selector")


REPLICAS = ScalePaths()


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One endpoint of the API. Compared by identity: there is one instance of each."""

    group: str
    version: str
    kind: str
    plural: str
    scope: str
    short_names: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    # Events are served by two groups and stored once, under this key.
    stored_as: str = ""
    custom: bool = False
    # Whether objects are only sent to be answered, and never stored: reviews of access.
    is_review: bool = False
    # Whether clients can only get and list its objects, which the server writes.
    is_read_only: bool = False
    scale_paths: ScalePaths = REPLICAS
    # Of a custom resource: the singular name and the schema that its definition states.
    singular_name: str = ""
    schema: Object | None = None
    # Fields of a custom resource that field selectors may name: `spec.color`.
    selectable_fields: tuple[str, ...] = ()
    # The schema of a custom resource, if it has defaults: stored objects get them when read.
    defaulting_schema: Object | None = None
    # The key of its objects in the store; several reads of it belong to each request.
    storage_key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "storage_key", self.stored_as or self.key)

    @property
    def namespaced(self) -> bool:
        return self.scope == NAMESPACED

    @property
    def built_in_kind(self) -> str:
        """Its kind, by which rules are chosen; empty for a custom resource, whatever its kind."""
        return "" if self.custom else self.kind

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its objects: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> str:
        """Its name in messages of the API server: `pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """Its kind in validation errors: `Pod`, `Deployment.apps`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def singular(self) -> str:
        return self.singular_name or self.kind.lower()


class ResourcePath(NamedTuple):
    """The resource, object or subresource that a URL names; without a name, a collection."""

    resource: Resource
    namespace: str | None = None
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name of the object in the store."""
        return self.namespace or "", self.name


# In the order in which an API server lists them: groups by importance, then by name.
BUILT_IN: list[Resource] = []


def _row(
    group: str,
    kind: str,
    plural: str,
    scope: str,
    short_names: tuple[str, ...] = (),
    subresources: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
    stored_as: str = "",
    version: str = "v1",
    *,
    is_review: bool = False,
    is_read_only: bool = False,
) -> Resource:
    resource = Resource(
        group,
        version,
        kind,
        plural,
        scope,
        short_names,
        subresources,
        categories,
        stored_as=stored_as,
        is_review=is_review,
        is_read_only=is_read_only,
    )
    BUILT_IN.append(resource)
    return resource


_ALL = ("all",)
_STATUS = ("status",)
_SCALED = ("status", "scale")
_POD = ("status", "binding", "eviction", "resize")

NAMESPACES = _row("", "Namespace", "namespaces", CLUSTER, ("ns",), ("status", "finalize"))
NODES = _row("", "Node", "nodes", CLUSTER, ("no",), _STATUS)
PODS = _row("", "Pod", "pods", NAMESPACED, ("po",), _POD, _ALL)
SERVICES = _row("", "Service", "services", NAMESPACED, ("svc",), _STATUS, _ALL)
ENDPOINTS = _row("", "Endpoints", "endpoints", NAMESPACED, ("ep",))
COMPONENT_STATUSES = _row(
    "", "ComponentStatus", "componentstatuses", CLUSTER, ("cs",), is_read_only=True
)
CONFIG_MAPS = _row("", "ConfigMap", "configmaps", NAMESPACED, ("cm",))
SECRETS = _row("", "Secret", "secrets", NAMESPACED)
SERVICE_ACCOUNTS = _row("", "ServiceAccount", "serviceaccounts", NAMESPACED, ("sa",), ("token",))
POD_TEMPLATES = _row("", "PodTemplate", "podtemplates", NAMESPACED)
PERSISTENT_VOLUMES = _row("", "PersistentVolume", "persistentvolumes", CLUSTER, ("pv",), _STATUS)
PERSISTENT_VOLUME_CLAIMS = _row(
    "", "PersistentVolumeClaim", "persistentvolumeclaims", NAMESPACED, ("pvc",), _STATUS
)
RESOURCE_QUOTAS = _row("", "ResourceQuota", "resourcequotas", NAMESPACED, ("quota",), _STATUS)
LIMIT_RANGES = _row("", "LimitRange", "limitranges", NAMESPACED, ("limits",))
REPLICATION_CONTROLLERS = _row(
    "", "ReplicationController", "replicationcontrollers", NAMESPACED, ("rc",), _SCALED, _ALL
)
EVENTS = _row("", "Event", "events", NAMESPACED, ("ev",))
DEPLOYMENTS = _row("apps", "Deployment", "deployments", NAMESPACED, ("deploy",), _SCALED, _ALL)
REPLICA_SETS = _row("apps", "ReplicaSet", "replicasets", NAMESPACED, ("rs",), _SCALED, _ALL)
STATEFUL_SETS = _row("apps", "StatefulSet", "statefulsets", NAMESPACED, ("sts",), _SCALED, _ALL)
DAEMON_SETS = _row("apps", "DaemonSet", "daemonsets", NAMESPACED, ("ds",), _STATUS, _ALL)
CONTROLLER_REVISIONS = _row("apps", "ControllerRevision", "controllerrevisions", NAMESPACED)
EVENTS_V1 = _row(
    "events.k8s.io", "Event", "events", NAMESPACED, ("ev",), stored_as=EVENTS.storage_key
)
AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
SELF_REVIEWS = _row(
    AUTHENTICATION, "SelfSubjectReview", "selfsubjectreviews", CLUSTER, is_review=True
)
TOKEN_REVIEWS = _row(AUTHENTICATION, "TokenReview", "tokenreviews", CLUSTER, is_review=True)
SELF_ACCESS_REVIEWS = _row(
    AUTHORIZATION, "SelfSubjectAccessReview", "selfsubjectaccessreviews", CLUSTER, is_review=True
)
SELF_RULES_REVIEWS = _row(
    AUTHORIZATION, "SelfSubjectRulesReview", "selfsubjectrulesreviews", CLUSTER, is_review=True
)
ACCESS_REVIEWS = _row(
    AUTHORIZATION, "SubjectAccessReview", "subjectaccessreviews", CLUSTER, is_review=True
)
LOCAL_ACCESS_REVIEWS = _row(
    AUTHORIZATION,
    "LocalSubjectAccessReview",
    "localsubjectaccessreviews",
    NAMESPACED,
    is_review=True,
)
AUTOSCALERS, AUTOSCALERS_V1 = (
    _row(
        "autoscaling",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        NAMESPACED,
        ("hpa",),
        _STATUS,
        _ALL,
        version=version,
    )
    for version in ("v2", "v1")
)
JOBS = _row("batch", "Job", "jobs", NAMESPACED, (), _STATUS, _ALL)
CRON_JOBS = _row("batch", "CronJob", "cronjobs", NAMESPACED, ("cj",), _STATUS, _ALL)
CERTIFICATE_REQUESTS = _row(
    "certificates.k8s.io",
    "CertificateSigningRequest",
    "certificatesigningrequests",
    CLUSTER,
    ("csr",),
    ("status", "approval"),
)
INGRESSES = _row("networking.k8s.io", "Ingress", "ingresses", NAMESPACED, ("ing",), _STATUS)
INGRESS_CLASSES = _row("networking.k8s.io", "IngressClass", "ingressclasses", CLUSTER)
NETWORK_POLICIES = _row(
    "networking.k8s.io", "NetworkPolicy", "networkpolicies", NAMESPACED, ("netpol",)
)
IP_ADDRESSES = _row("networking.k8s.io", "IPAddress", "ipaddresses", CLUSTER, ("ip",))
SERVICE_CIDRS = _row("networking.k8s.io", "ServiceCIDR", "servicecidrs", CLUSTER, (), _STATUS)
DISRUPTION_BUDGETS = _row(
    "policy", "PodDisruptionBudget", "poddisruptionbudgets", NAMESPACED, ("pdb",), _STATUS
)
RBAC = "rbac.authorization.k8s.io"
CLUSTER_ROLE_BINDINGS = _row(RBAC, "ClusterRoleBinding", "clusterrolebindings", CLUSTER)
CLUSTER_ROLES = _row(RBAC, "ClusterRole", "clusterroles", CLUSTER)
ROLE_BINDINGS = _row(RBAC, "RoleBinding", "rolebindings", NAMESPACED)
ROLES = _row(RBAC, "Role", "roles", NAMESPACED)
STORAGE_CLASSES = _row("storage.k8s.io", "StorageClass", "storageclasses", CLUSTER, ("sc",))
CSI_NODES = _row("storage.k8s.io", "CSINode", "csinodes", CLUSTER)
CSI_DRIVERS = _row("storage.k8s.io", "CSIDriver", "csidrivers", CLUSTER)
CSI_STORAGE_CAPACITIES = _row(
    "storage.k8s.io", "CSIStorageCapacity", "csistoragecapacities", NAMESPACED
)
VOLUME_ATTACHMENTS = _row(
    "storage.k8s.io", "VolumeAttachment", "volumeattachments", CLUSTER, (), _STATUS
)
VOLUME_ATTRIBUTES_CLASSES = _row(
    "storage.k8s.io", "VolumeAttributesClass", "volumeattributesclasses", CLUSTER, ("vac",)
)
ADMISSION, _EXTENSIONS = "admissionregistration.k8s.io", ("api-extensions",)
for _kind, _plural, _subresources in (
    ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", ()),
    ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", ()),
    ("ValidatingAdmissionPolicy", "validatingadmissionpolicies", _STATUS),
    ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", ()),
    ("MutatingAdmissionPolicy", "mutatingadmissionpolicies", ()),
    ("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", ()),
):  # stored, not acted upon
    _row(ADMISSION, _kind, _plural, CLUSTER, (), _subresources, _EXTENSIONS)
PRIORITY_CLASSES = _row("scheduling.k8s.io", "PriorityClass", "priorityclasses", CLUSTER, ("pc",))
POD_GROUPS = _row(
    "scheduling.k8s.io", "PodGroup", "podgroups", NAMESPACED, (), _STATUS, version="v1alpha2"
)
WORKLOADS = _row("scheduling.k8s.io", "Workload", "workloads", NAMESPACED, version="v1alpha2")
QUEUES = _row("scheduling.moorage.dev", "Queue", "queues", CLUSTER, (), _STATUS, version="v1alpha1")
ELASTIC_QUOTAS = _row(
    "scheduling.x-k8s.io",
    "ElasticQuota",
    "elasticquotas",
    NAMESPACED,
    ("eq", "eqs"),
    _STATUS,
    version="v1alpha1",
)
LEASES = _row("coordination.k8s.io", "Lease", "leases", NAMESPACED)
RUNTIME_CLASSES = _row("node.k8s.io", "RuntimeClass", "runtimeclasses", CLUSTER)
ENDPOINT_SLICES = _row("discovery.k8s.io", "EndpointSlice", "endpointslices", NAMESPACED)
FLOW_CONTROL = "flowcontrol.apiserver.k8s.io"
FLOW_SCHEMAS = _row(FLOW_CONTROL, "FlowSchema", "flowschemas", CLUSTER, (), _STATUS)
PRIORITY_LEVELS = _row(
    FLOW_CONTROL,
    "PriorityLevelConfiguration",
    "prioritylevelconfigurations",
    CLUSTER,
    (),
    _STATUS,
)
API_SERVICES = _row(
    "apiregistration.k8s.io", "APIService", "apiservices", CLUSTER, (), _STATUS, _EXTENSIONS
)
RESOURCE_CLAIMS = _row(
    "resource.k8s.io", "ResourceClaim", "resourceclaims", NAMESPACED, (), _STATUS
)
RESOURCE_CLAIM_TEMPLATES = _row(
    "resource.k8s.io", "ResourceClaimTemplate", "resourceclaimtemplates", NAMESPACED
)
RESOURCE_SLICES = _row("resource.k8s.io", "ResourceSlice", "resourceslices", CLUSTER)
DEVICE_CLASSES = _row("resource.k8s.io", "DeviceClass", "deviceclasses", CLUSTER)
DEFINITIONS = _row(
    "apiextensions.k8s.io",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    CLUSTER,
    ("crd", "crds"),
    _STATUS,
    _EXTENSIONS,
)

# Group versions of an API server itself: it serves nothing that a definition adds to them. In a
# cluster the two others come from definitions, next to which there may be more.
_OWN_VERSIONS = frozenset(each.api_version for each in BUILT_IN) - {
    QUEUES.api_version,
    ELASTIC_QUOTAS.api_version,
}

GroupVersion = tuple[str, str]


class ResourceRegistry:
    """All served resources, built-in and custom, by path and by kind."""

    def __init__(self, definitions: Iterable[Object] = ()) -> None:
        self._by_path: dict[tuple[str, str, str], Resource] = {}
        self._by_kind: dict[tuple[str, str], Resource] = {}
        self._custom: dict[str, list[Resource]] = {}
        for resource in BUILT_IN:
            self._add(resource)
        for definition in definitions:
            self.define(definition)

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._by_path.values())

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource of a path."""
        return self._by_path.get((group, version, plural))

    def of(self, obj: Object) -> Resource | None:
        """The resource of an object, by its apiVersion and kind."""
        return self._by_kind.get((obj.get("apiVersion", ""), obj.get("kind", "")))

    def defined_by(self, definition: Object) -> list[Resource]:
        """The resources that a definition adds, one per version."""
        return self._custom.get(definition["metadata"]["name"], [])

    def versions(self) -> dict[GroupVersion, list[Resource]]:
        """All group versions with their resources, in the order of their registration."""
        found: dict[GroupVersion, list[Resource]] = {}
        for resource in self:
            found.setdefault((resource.group, resource.version), []).append(resource)
        return found

    def define(self, definition: Object) -> None:
        """Serve the resources of a new or changed definition."""
        name = definition["metadata"]["name"]
        self.forget(name)
        stated = _custom_rows(definition) if is_established(definition) else ()
        rows = [row for row in stated if not self._is_taken(row)]
        self._custom[name] = rows
        for row in rows:
            self._add(row)

    def forget(self, name: str) -> None:
        """Stop serving the resources of a definition."""
        for resource in self._custom.pop(name, ()):
            self._by_path.pop((resource.group, resource.version, resource.plural), None)
            self._by_kind.pop((resource.api_version, resource.kind), None)

    def _is_taken(self, resource: Resource) -> bool:
        """Whether another resource has its path, or another kind its group and name."""
        return (
            resource.api_version in _OWN_VERSIONS
            or (resource.group, resource.version, resource.plural) in self._by_path
            or (resource.api_version, resource.kind) in self._by_kind
        )

    def _add(self, resource: Resource) -> None:
        self._by_path[resource.group, resource.version, resource.plural] = resource
        self._by_kind[resource.api_version, resource.kind] = resource


def is_established(definition: Object) -> bool:
    """Whether a definition is served; False if its group has one of its names already."""
    return objects.condition(definition, "Established").get("status") != "False"


def _custom_rows(definition: Object) -> Iterator[Resource]:
    """The resources that a validated definition describes."""
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
                tuple(each for each in _SCALED if each in (version.get("subresources") or {})),
                tuple(names.get("categories", ())),
                stored_as=f"{names['plural']}.{spec['group']}",
                custom=True,
                selectable_fields=tuple(
                    str(each.get("jsonPath", "")).removeprefix(".")
                    for each in version.get("selectableFields") or ()
                ),
                defaulting_schema=_defaulting_schema(version),
                singular_name=str(names.get("singular") or ""),
                schema=_schema(version),
                scale_paths=_scale_paths((version.get("subresources") or {}).get("scale") or {}),
            )


def _defaulting_schema(version: Object) -> Object | None:
    schema = _schema(version)
    return schema if _has_defaults(schema) else None


def _has_defaults(schema: Any) -> bool:
    if isinstance(schema, dict):
        return "default" in schema or any(map(_has_defaults, schema.values()))
    return isinstance(schema, list) and any(map(_has_defaults, schema))


def _schema(version: Object) -> Object | None:
    found = (version.get("schema") or {}).get("openAPIV3Schema")
    return found if isinstance(found, dict) else None


def _scale_paths(scale: Object) -> ScalePaths:
    """The paths of a definition, which are written as `.spec.replicas`."""
    fields = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
    stated = (str(scale.get(field) or "") for field in fields)
    paths = [tuple(part for part in text.split(".") if part) for text in stated]
    return ScalePaths(paths[0] or ("spec", "replicas"), paths[1], paths[2])
