"""Create: metadata, defaults, admission and generated fields of a new object."""

import base64
from collections.abc import Iterator
from random import Random
from typing import Any

from moorage.api.admission import SYSTEM_PRIORITIES
from moorage.cluster import status_errors
from moorage.cluster.objects import defaults, validation
from moorage.cluster.resources import (
    DAEMON_SETS,
    DEFINITIONS,
    JOBS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    SECRETS,
    SERVICES,
    Resource,
)
from moorage.cluster.status_errors import (
    BadRequestError,
    ForbiddenError,
    StatusCause,
    UnclassifiedError,
)
from moorage.cluster.store import Store
from moorage.cluster.verbs import admission
from moorage.controllers import objects, storage_protection
from moorage.controllers.objects import Object

GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_ADDRESS_ATTEMPTS = 100
# Kinds whose objects have no `metadata.generation`.
_WITHOUT_GENERATION = frozenset(
    (
        "ClusterRole",
        "ClusterRoleBinding",
        "ComponentStatus",
        "ConfigMap",
        "ControllerRevision",
        "CSIDriver",
        "CSINode",
        "Endpoints",
        "Event",
        "HorizontalPodAutoscaler",
        "IPAddress",
        "Lease",
        "LimitRange",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "ResourceClaim",
        "ResourceClaimTemplate",
        "ResourceQuota",
        "Role",
        "RoleBinding",
        "RuntimeClass",
        "Secret",
        "Service",
        "ServiceAccount",
        "StorageClass",
        "VolumeAttachment",
    )
)
# Counts that are in JSON even while they are 0, and other fields that are never left out.
_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_DAEMON_COUNTS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
)
_INITIAL_STATUS: dict[str, dict[str, Any]] = {
    "ReplicationController": {"replicas": 0},
    "ReplicaSet": {"replicas": 0},
    "StatefulSet": {"replicas": 0, "availableReplicas": 0},
    "DaemonSet": dict.fromkeys(_DAEMON_COUNTS, 0),
    "PodDisruptionBudget": dict.fromkeys(_COUNTS, 0),
    "HorizontalPodAutoscaler": {"desiredReplicas": 0, "currentMetrics": None},
    "Service": {"loadBalancer": {}},
    "Ingress": {"loadBalancer": {}},
    "VolumeAttachment": {"attached": False},
}


def prepare(store: Store, random: Random, resource: Resource, obj: Object) -> Object:
    """The object to store, without its version; modifies `obj`."""
    meta = obj["metadata"] = _metadata(resource, obj)
    if resource.namespaced:
        check_namespace(store, resource, meta)
    if resource is SECRETS:
        _encode_string_data(resource, obj)
    typed = validation.decode(resource, obj)
    if "status" in resource.subresources and resource is not NODES:
        # An API server drops the status of a node too. Here it is the only source of its capacity.
        obj.pop("status", None)
    defaults.fill(resource, obj)
    if "status" in resource.subresources and not resource.custom:
        obj["status"] = {**_INITIAL_STATUS.get(resource.kind, {}), **obj.get("status", {})}
    if resource.custom or resource.kind not in _WITHOUT_GENERATION:
        meta["generation"] = 1
    if resource is PODS:
        admission.admit_pod(store, obj, typed)
        _complete_pod(store, obj)
    elif resource is POD_GROUPS:
        admission.admit_pod_group(store, obj, typed)
    elif resource is PERSISTENT_VOLUME_CLAIMS:
        admission.set_default_storage_class(store, obj)
    elif resource in (RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES):
        admission.admit_claim(store, resource, typed)
    elif resource is JOBS:
        _generate_selector(random, obj)
    elif resource is DAEMON_SETS:
        defaults.fill_template_generation(obj)
    # The defaults are validated as well, as in an API server.
    validation.validate_rules(resource, obj, typed)
    if resource is PRIORITY_CLASSES:
        admission.admit_priority_class(store, typed)
    elif resource in (PODS, PERSISTENT_VOLUME_CLAIMS):
        admission.check_limits(store, resource, obj)
    elif resource is SERVICES:
        _allocate_cluster_ip(store, random, obj)
    elif resource is JOBS and not meta.get("labels"):
        meta["labels"] = dict(obj["spec"]["template"]["metadata"].get("labels", {}))
    return obj


def check_namespace(store: Store, resource: Resource, meta: dict[str, Any]) -> None:
    """Reject an object in a namespace that does not exist or is being deleted."""
    name, namespace_name = meta["name"], meta["namespace"]
    namespace = store.find(NAMESPACES, "", namespace_name)
    if namespace is None:
        raise status_errors.not_found(NAMESPACES, namespace_name)
    if objects.is_terminating(namespace):
        text = f"namespace {namespace_name} is being terminated"
        raise ForbiddenError(
            f'{resource.key} "{name}" is forbidden: unable to create new content in namespace '
            f"{namespace_name} because it is being terminated",
            resource,
            name,
            causes=[StatusCause("NamespaceTerminating", text, "metadata.namespace")],
        )


def protected(resource: Resource, obj: Object) -> Object:
    """A new claim or volume with the finalizer that protects it while it is in use.

    As in an API server, the client that creates the object is no manager of this field.
    """
    finalizer = None if resource.group else storage_protection.FINALIZERS.get(resource.kind)
    finalizers = objects.finalizers(obj)
    if finalizer is None or finalizer in finalizers:
        return obj
    return objects.with_metadata(obj, finalizers=[*finalizers, finalizer])


def _metadata(resource: Resource, obj: Object) -> dict[str, Any]:
    given = obj["metadata"].items()
    if obj["metadata"].get("resourceVersion") not in (None, "", "0"):
        raise UnclassifiedError("resourceVersion should not be set on objects to be created")
    meta = {
        key: value
        for key, value in given
        if key not in objects.SERVER_METADATA and value not in ({}, [])
    }
    if not meta.get("name"):
        raise validation.required(resource, "", "metadata.name", "name or generateName is required")
    if not resource.namespaced:
        meta.pop("namespace", None)
    return meta


def _complete_pod(store: Store, obj: Object) -> None:
    spec = obj["spec"]
    defaults.fill_created_pod(obj)
    obj["status"] = {"phase": "Pending", "qosClass": defaults.qos_class(spec)}
    if spec.get("schedulingGates") and not spec.get("nodeName"):
        obj["status"]["conditions"] = objects.set_condition([], GATED, store.clock())


def _allocate_cluster_ip(store: Store, random: Random, obj: Object) -> None:
    """Give a service a free address, as clients expect; nothing listens there."""
    spec = obj["spec"]
    if spec.get("type") == "ExternalName" or spec.get("clusterIP"):
        return
    taken = {each["spec"].get("clusterIP") for each in store.each(SERVICES)}
    for _ in range(_ADDRESS_ATTEMPTS):  # If all are taken, the service has no address.
        address = f"10.96.{random.randrange(1, 255)}.{random.randrange(1, 255)}"
        if address not in taken:
            spec["clusterIP"], spec["clusterIPs"] = address, [address]
            return


def _generate_selector(random: Random, obj: Object) -> None:
    """Give a job a selector by a generated label, unless its selector is stated as manual."""
    spec = obj["spec"]
    if spec.get("manualSelector"):
        return
    own = validation.generate_uid(random)
    labels = {
        "batch.kubernetes.io/controller-uid": own,
        "batch.kubernetes.io/job-name": obj["metadata"]["name"],
        "controller-uid": own,
        "job-name": obj["metadata"]["name"],
    }
    template = spec.setdefault("template", {}).setdefault("metadata", {})
    template["labels"] = {**template.get("labels", {}), **labels}
    selector = spec.setdefault("selector", {})
    generated = {"batch.kubernetes.io/controller-uid": own}
    selector["matchLabels"] = {**selector.get("matchLabels", {}), **generated}


def _encode_string_data(resource: Resource, obj: Object) -> None:
    plain = obj.pop("stringData", None)
    if plain is None:
        return
    if not isinstance(plain, dict) or not isinstance(obj.get("data", {}), dict):
        raise BadRequestError("stringData and data have to be objects", resource)
    encoded = {k: base64.b64encode(str(v).encode()).decode() for k, v in plain.items()}
    obj["data"] = {**obj.get("data", {}), **encoded}


# Objects of every cluster, and fields set after creation ---------------------------------------

_INITIAL_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_DESCRIPTIONS = {
    "system-node-critical": (
        "Used for system critical pods that must not be moved from their current node."
    ),
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, "
        "but can be moved to another node if necessary."
    ),
}


def initial_objects() -> Iterator[tuple[Resource, Object]]:
    """The namespaces and priority classes that every cluster has."""
    for name in _INITIAL_NAMESPACES:
        yield NAMESPACES, {"metadata": {"name": name}}
    for name, value in SYSTEM_PRIORITIES.items():
        fields = {"value": value, "description": _DESCRIPTIONS[name]}
        yield PRIORITY_CLASSES, {"metadata": {"name": name}, **fields}


def establish_definition(store: Store, definition: Object) -> Object:
    """Set the conditions of a definition that clients wait for.

    Its kind is served at once, unless another definition of its group has one of its names.
    """
    at, spec, before = store.clock(), definition["spec"], objects.status(definition)
    accepted, conflict = _accepted_names(store, definition)
    if conflict is None:
        states = {
            "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
            "Established": ("True", "InitialNamesAccepted", _ESTABLISHED),
        }
    else:
        states = {
            "NamesAccepted": ("False", *conflict),
            "Established": ("False", "NotAccepted", "not all names are accepted"),
        }
    new = {**definition, "status": {"conditions": before.get("conditions") or []}}
    for type_, (status, reason, message) in states.items():
        state = {"status": status, "reason": reason, "message": message}
        new = objects.with_condition(new, at, type=type_, **state)
    versions = [each["name"] for each in spec["versions"] if each.get("storage")]
    new = objects.with_status(new, acceptedNames=accepted, storedVersions=versions)
    return store.update(DEFINITIONS, new)


def _accepted_names(
    store: Store, definition: Object
) -> tuple[dict[str, Any], tuple[str, str] | None]:
    """The names that no other definition of the group has; reason and text of a conflict."""
    spec, own = definition["spec"], objects.name(definition)
    taken: dict[str, set[str]] = {scope: set() for scope in _NAMES.values()}
    for each in store.each(DEFINITIONS):
        if each["spec"]["group"] == spec["group"] and objects.name(each) != own:
            for field, value in (objects.status(each).get("acceptedNames") or {}).items():
                taken[_NAMES.get(field, "")].update([value] if isinstance(value, str) else value)
    accepted: dict[str, Any] = {"plural": "", "kind": ""}
    conflict = None
    for field, scope in _NAMES.items():  # The last conflict is the one that is reported.
        value = spec["names"].get(field) or []
        names = [value] if isinstance(value, str) else value
        used = [each for each in names if scope and each in taken[scope]]
        if used:
            text = ", ".join(f'"{name}" is already in use' for name in used)
            reason = f"{field[0].upper()}{field[1:]}Conflict"
            conflict = reason, text if len(used) == 1 else f"[{text}]"
        elif value:
            accepted[field] = value
    return accepted, conflict


_ESTABLISHED = "the initial names have been accepted"
# The names of a definition, and among which of its group each has to be the only one.
_NAMES = {
    **dict.fromkeys(("plural", "singular", "shortNames"), "resources"),
    **dict.fromkeys(("kind", "listKind"), "kinds"),
    "categories": "",
}
