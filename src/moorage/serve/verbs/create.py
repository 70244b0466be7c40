"""Create: metadata, defaults, admission and generated fields of a new object."""

import base64
from collections.abc import Iterator
from random import Random
from typing import Any

from moorage.api.admission import SYSTEM_PRIORITIES
from moorage.serve import status_errors
from moorage.serve.controllers import objects
from moorage.serve.controllers.objects import Object
from moorage.serve.objects import defaults, validation
from moorage.serve.resources import (
    DEFINITIONS,
    JOBS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    PRIORITY_CLASSES,
    SECRETS,
    SERVICES,
    Resource,
)
from moorage.serve.status_errors import BadRequestError, ForbiddenError, StatusCause
from moorage.serve.store import Store
from moorage.serve.verbs import admission

_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_TRIES = 100  # of an address
# What only the server decides, whatever a request says.
_SERVERS_OWN = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
)


def prepare(store: Store, random: Random, resource: Resource, obj: Object) -> Object:
    """The object as it will be stored, but for its version; `obj` is used up."""
    meta = obj["metadata"] = _metadata(resource, obj)
    validation.validate_name(resource, meta["name"])
    if resource.namespaced:
        check_namespace(store, resource, meta)
    if resource is SECRETS:
        _secret(resource, obj)
    read = validation.validate(resource, obj)
    if "status" in resource.subresources and resource is not NODES:
        # An API server drops what a node brings, too. Here nobody else would say what it has.
        obj.pop("status", None)
    defaults.fill(resource, obj)
    if "status" in resource.subresources and not resource.custom:
        obj.setdefault("status", {})
    meta["generation"] = 1
    if resource is PODS:
        admission.pod(store, obj, read)
        _pod(store, obj)
    elif resource is PRIORITY_CLASSES:
        admission.priority_class(store, read)
    elif resource is PERSISTENT_VOLUME_CLAIMS:
        admission.claim(store, obj)
    elif resource is SERVICES:
        _service(store, random, obj)
    elif resource is JOBS:
        _job(random, obj)
    return obj


def check_namespace(store: Store, resource: Resource, meta: dict[str, Any]) -> None:
    """Refuse an object in a namespace that is not there, or on its way out."""
    namespace = store.find(NAMESPACES, "", meta["namespace"])
    if namespace is None:
        raise status_errors.not_found(NAMESPACES, meta["namespace"])
    if "deletionTimestamp" in namespace["metadata"]:
        place, name = meta["namespace"], meta["name"]
        raise ForbiddenError(
            f'{resource.key} "{name}" is forbidden: unable to create new content in namespace '
            f"{place} because it is being terminated",
            resource,
            name,
            causes=[
                StatusCause(
                    "NamespaceTerminating",
                    f"namespace {place} is being terminated",
                    "metadata.namespace",
                )
            ],
        )


def _metadata(resource: Resource, obj: Object) -> dict[str, Any]:
    meta = {key: value for key, value in obj["metadata"].items() if key not in _SERVERS_OWN}
    if not meta.get("name"):
        raise validation.required(resource, "", "metadata.name", "name or generateName is required")
    if not resource.namespaced:
        meta.pop("namespace", None)
    return meta


def _pod(store: Store, obj: Object) -> None:
    spec = obj["spec"]
    defaults.fill_created_pod(obj)
    conditions = []
    if spec.get("schedulingGates") and not spec.get("nodeName"):
        conditions = [{**_GATED, "lastTransitionTime": store.clock()}]
    status = {"phase": "Pending", "qosClass": defaults.qos_class(spec)}
    obj["status"] = {**status, "conditions": conditions} if conditions else status


def _service(store: Store, random: Random, obj: Object) -> None:
    """An address that nobody answers at, so that the service looks like one."""
    spec = obj["spec"]
    if spec.get("type") == "ExternalName" or spec.get("clusterIP"):
        return
    taken = {each["spec"].get("clusterIP") for each in store.each(SERVICES)}
    for _ in range(_TRIES):  # A service goes without one rather than for ever without an answer.
        address = f"10.96.{random.randrange(1, 255)}.{random.randrange(1, 255)}"
        if address not in taken:
            spec["clusterIP"], spec["clusterIPs"] = address, [address]
            return


def _job(random: Random, obj: Object) -> None:
    """Without a selector of its own, a job finds its pods by a label with a name of its own."""
    spec = obj["spec"]
    if "selector" in spec or spec.get("manualSelector"):
        return
    own = f"{random.getrandbits(128):032x}"
    labels = {
        "batch.kubernetes.io/controller-uid": own,
        "batch.kubernetes.io/job-name": obj["metadata"]["name"],
        "controller-uid": own,
        "job-name": obj["metadata"]["name"],
    }
    template = spec["template"]["metadata"]
    template["labels"] = {**template.get("labels", {}), **labels}
    key = "batch.kubernetes.io/controller-uid"
    spec["selector"] = {"matchLabels": {key: own}}


def _secret(resource: Resource, obj: Object) -> None:
    plain = obj.pop("stringData", None)
    if plain is None:
        return
    if not isinstance(plain, dict) or not isinstance(obj.get("data", {}), dict):
        raise BadRequestError("stringData and data have to be objects", resource)
    encoded = {k: base64.b64encode(str(v).encode()).decode() for k, v in plain.items()}
    obj["data"] = {**obj.get("data", {}), **encoded}


_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_DESCRIPTIONS = {
    "system-node-critical": (
        "Used for system critical pods that must not be moved from their current node."
    ),
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, "
        "but can be moved to another node if necessary."
    ),
}


def initial_namespaces() -> Iterator[Object]:
    """The namespaces of every cluster."""
    for name in _NAMESPACES:
        yield {"metadata": {"name": name}}


def initial_priority_classes() -> Iterator[Object]:
    """The priority classes of every cluster."""
    for name, value in SYSTEM_PRIORITIES.items():
        yield {"metadata": {"name": name}, "value": value, "description": _DESCRIPTIONS[name]}


def establish_definition(store: Store, definition: Object) -> Object:
    """A definition with the conditions that clients wait for: its kind is served at once."""
    at = store.clock()
    found: list[Object] = []
    for type_, reason in (
        ("NamesAccepted", "NoConflicts"),
        ("Established", "InitialNamesAccepted"),
    ):
        condition = {"type": type_, "status": "True", "reason": reason, "message": ""}
        found = objects.set_condition(found, condition, at)
    names = definition["spec"]["names"]
    versions = [each["name"] for each in definition["spec"]["versions"] if each.get("storage")]
    status = {"conditions": found, "acceptedNames": names, "storedVersions": versions}
    return store.update(DEFINITIONS, {**definition, "status": status})


def with_identity(store: Store, obj: Object) -> Object:
    """The object that a dry run answers with."""
    born = {"uid": store.uid(), "creationTimestamp": store.clock()}
    return {**obj, "metadata": {**obj["metadata"], **born}}
