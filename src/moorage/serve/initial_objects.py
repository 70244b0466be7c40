"""The objects that a server starts with: default nodes, and objects and node pools from files.

Objects may come from a repository or from a dump of another cluster. The UIDs of a dump are not
valid here: owner references are rewritten to the new UIDs. References to owners that are not in
the input are dropped; otherwise the garbage collector would delete the object.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from moorage.api import defaults, manifests
from moorage.api.devices import DeviceClass
from moorage.cluster.api_server import ApiServer
from moorage.cluster.resources import (
    COMPONENT_STATUSES,
    ENDPOINT_SLICES,
    ENDPOINTS,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    SERVICES,
    Resource,
)
from moorage.cluster.status_errors import ForbiddenError, StatusError
from moorage.controllers import objects
from moorage.controllers.index import KIND_OF
from moorage.controllers.objects import Object
from moorage.errors import ManifestError
from moorage.expansion.pools import nodes_of_pools

# Kinds that others refer to are created first.
FIRST_KINDS = (
    *("CustomResourceDefinition", "Namespace"),
    *("PriorityClass", "StorageClass", "RuntimeClass", "Node"),
)
# They apply to new objects, wherever these are in the files; not to those of a dump.
LIMITING_KINDS = ("LimitRange", "ResourceQuota")
# Kubelets and the API create the first two; they are of no use without the original cluster. Of a
# file with a Scenario the cluster is taken, and not what happens to it.
SKIPPED_KINDS = (
    *("Event", "events.k8s.io/Event", "coordination.k8s.io/Lease"),
    "moorage.dev/Scenario",
)
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"

POOL_KIND = ("moorage.dev/v1", "NodePool")

SourceObject = tuple[str, Object]
"""Where an object was read, for messages, and the object."""


def default_nodes(count: int) -> Iterator[Object]:
    """Nodes in three zones."""
    for number in range(count):
        name = f"node-{number + 1}"
        labels = {HOSTNAME: name, ZONE: f"zone-{'abc'[number % 3]}"}
        yield {"metadata": {"name": name, "labels": labels}}


def add_nodes(api: ApiServer, count: int) -> None:
    """Create default nodes, except those that exist."""
    for node in default_nodes(count):
        if api.store.find(NODES, "", node["metadata"]["name"]) is None:
            api.create(NODES, node)


KUBERNETES = {"name": "kubernetes", "namespace": "default"}
# Otherwise kube-controller-manager would write a second slice.
_UNMIRRORED = {"endpointslice.kubernetes.io/skip-mirror": "true"}


def add_kubernetes_service(api: ApiServer, address: str, port: int) -> None:
    """The Service of this API server and its endpoints, as an API server writes them."""
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    service = {
        "type": "ClusterIP",
        "clusterIP": "10.96.0.1",
        "clusterIPs": ["10.96.0.1"],
        "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
    }
    labels = {"component": "apiserver", "provider": "kubernetes"}
    slice_labels = {"kubernetes.io/service-name": "kubernetes"}
    endpoints = {"addresses": [{"ip": address}], "ports": ports}
    family = "IPv6" if ":" in address else "IPv4"
    sliced = {
        "addressType": family,
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": ports,
    }
    found: tuple[tuple[Resource, Object], ...] = (
        (SERVICES, {"metadata": {**KUBERNETES, "labels": labels}, "spec": service}),
        (ENDPOINTS, {"metadata": {**KUBERNETES, "labels": _UNMIRRORED}, "subsets": [endpoints]}),
        (ENDPOINT_SLICES, {"metadata": {**KUBERNETES, "labels": slice_labels}, **sliced}),
    )
    for resource, obj in found:
        if api.store.find(resource, KUBERNETES["namespace"], KUBERNETES["name"]) is None:
            api.create(resource, obj)


def add_component_statuses(api: ApiServer, running: dict[str, bool]) -> None:
    """The status of components, by name: whether this process runs them."""
    for name, is_running in running.items():
        condition = {"type": "Healthy", "status": "True", "message": "ok"}
        if not is_running:
            condition = {"type": "Healthy", "status": "Unknown", "error": "not run by this server"}
        obj = {"metadata": {"name": name}, "conditions": [condition]}
        if api.store.find(COMPONENT_STATUSES, "", name) is None:
            api.create(COMPONENT_STATUSES, obj)
        else:
            api.replace(COMPONENT_STATUSES, obj)


def add_objects(
    api: ApiServer, found: Iterable[SourceObject], warn: Callable[[str], None] = lambda _: None
) -> int:
    """Create the objects except those that exist; returns the number of new ones.

    `warn` is called for each object that admission refuses, as a quota does, and for each of a kind
    that is not served.
    """
    waiting = sorted(
        (each for each in _with_pools(found) if objects.kind_of(each[1]) not in SKIPPED_KINDS),
        key=lambda each: _rank(each[1]),
    )
    pending_uids = {_uid(obj) for _, obj in waiting} - {""}
    new_uids: dict[str, str] = {}
    created: list[Object] = []
    while waiting:
        later = []
        for origin, obj in waiting:
            if any(uid in pending_uids and uid not in new_uids for uid in _owner_uids(obj)):
                later.append((origin, obj))
            elif _is_added(api, origin, obj, new_uids, warn):
                created.append(obj)
        if len(later) == len(waiting):  # Owners that own each other: take them in any order.
            pending_uids = set()
        waiting = later
    for obj in created:
        _restore_devices(api, obj, new_uids)
    return len(created)


def _rank(obj: Object) -> int:
    """The order of creation: what others need, objects of a dump, limits, new objects."""
    kind = obj["kind"]
    if kind in FIRST_KINDS:
        return FIRST_KINDS.index(kind)
    last = len(FIRST_KINDS)
    return last + 1 if kind in LIMITING_KINDS else last if _uid(obj) else last + 2


def _restore_devices(api: ApiServer, obj: Object, new_uids: dict[str, str]) -> None:
    """Write the allocation of a device claim, or the names of a pod's claims.

    A new object has no status. Controllers compute the rest of it again, but no scheduler allocates
    devices for a pod that has a node.
    """
    resource, status = api.resource_of(obj), objects.status(obj)
    if resource is RESOURCE_CLAIMS and status.get("allocation"):
        users = [
            {**user, "uid": new_uids[user["uid"]]}
            for user in status.get("reservedFor") or ()
            if user.get("uid") in new_uids
        ]
        fields = {"allocation": status["allocation"], "devices": status.get("devices")}
        fields["reservedFor"] = users or None
    elif resource is PODS:
        names = ("resourceClaimStatuses", "extendedResourceClaimStatus")
        fields = {name: status[name] for name in names if status.get(name)}
    else:
        return
    if fields:
        meta = obj["metadata"]
        stored = api.store.get(resource, meta.get("namespace") or "default", meta["name"])
        api.replace(resource, objects.with_status(stored, **fields))


def _with_pools(found: Iterable[SourceObject]) -> Iterator[SourceObject]:
    """The objects, with the nodes, slices and classes of node pools in place of the pools."""
    found = list(found)
    kind = KIND_OF[DeviceClass]
    classes = {_name(obj) for _, obj in found if objects.kind_of(obj) == kind}
    for origin, obj in found:
        if (obj.get("apiVersion"), obj["kind"]) != POOL_KIND:
            yield origin, obj
            continue
        try:
            made = nodes_of_pools(manifests.read([obj]).workloads)
        except ManifestError as error:
            raise ManifestError(str(error).replace("objects[0]", origin, 1)) from None
        for each in map(defaults.identity, made):
            if not isinstance(each, DeviceClass) or each.name not in classes:
                yield origin, objects.plain(each)


def _is_added(
    api: ApiServer,
    origin: str,
    obj: Object,
    new_uids: dict[str, str],
    warn: Callable[[str], None],
) -> bool:
    """Create an object; whether it is new, and admitted."""
    resource = api.registry.of(obj)
    if resource is None:  # A folder may hold a scheduler's configuration; `simulate` skips it too.
        kind, version = obj["kind"], obj.get("apiVersion")
        warn(f'{origin}: no matches for kind "{kind}" in version "{version}": it is left out')
        return False
    meta: Any = obj.get("metadata")
    if not isinstance(meta, dict):
        raise ManifestError(f"{origin}, {obj['kind']}, metadata: is missing")
    try:
        namespace = str(meta.get("namespace") or "default") if resource.namespaced else ""
        if namespace and api.store.find(NAMESPACES, "", namespace) is None:
            api.create(NAMESPACES, {"metadata": {"name": namespace}})
        existing = api.store.find(resource, namespace, meta.get("name", ""))
        new = existing or api.create(resource, with_new_references(obj, new_uids))
    except ForbiddenError as error:
        warn(f"{origin}: {error}")
        return False
    except StatusError as error:
        raise ManifestError(f"{origin}: {error}") from None
    new_uids[_uid(obj)] = objects.uid(new)
    return existing is None


def with_new_references(obj: Object, new_uids: dict[str, str]) -> Object:
    """The object with the new UIDs of its owners, without the UID of a volume's claim.

    Its version is that of another server.
    """
    meta = {key: each for key, each in obj["metadata"].items() if key != "resourceVersion"}
    owners = [
        {**owner, "uid": new_uids[owner["uid"]]}
        for owner in meta.pop("ownerReferences", None) or ()
        if owner.get("uid") in new_uids
    ]
    if owners:
        meta["ownerReferences"] = owners
    moved = {**obj, "metadata": meta}
    spec = moved.get("spec")
    if isinstance(spec, dict) and isinstance(spec.get("claimRef"), dict):
        claim = {k: v for k, v in spec["claimRef"].items() if k not in ("uid", "resourceVersion")}
        moved["spec"] = {**spec, "claimRef": claim}
    return moved


def _name(obj: Object) -> str:
    meta = obj.get("metadata")
    return str(meta.get("name") or "") if isinstance(meta, dict) else ""


def _uid(obj: Object) -> str:
    meta = obj.get("metadata")
    return str(meta.get("uid") or "") if isinstance(meta, dict) else ""


def _owner_uids(obj: Object) -> list[str]:
    meta = obj.get("metadata")
    owners = meta.get("ownerReferences") if isinstance(meta, dict) else None
    return [str(owner.get("uid") or "") for owner in owners or () if isinstance(owner, dict)]
