"""Update: which fields an update may change, and which keep their stored value."""

from typing import Any

from moorage.cluster import status_errors
from moorage.cluster.objects import defaults, validation
from moorage.cluster.resources import DAEMON_SETS, NAMESPACES, PODS, SERVICES, Resource
from moorage.cluster.store import StoredObject
from moorage.controllers import objects
from moorage.controllers.objects import Object

# Metadata that only the server sets.
_SERVER_FIELDS = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "generateName",
    "selfLink",
    "managedFields",
)

_VERSION_REQUIRED = (
    "Lease",
    "PodDisruptionBudget",
    "RuntimeClass",
    "CSIDriver",
    "CSINode",
    "CSIStorageCapacity",
    "VolumeAttachment",
    "CustomResourceDefinition",
)
# Kinds whose status subresource keeps all metadata, or labels.
_METADATA_KEPT = ("ResourceClaim", "CustomResourceDefinition")
_LABELS_KEPT = ("Deployment",)


def check_precondition(resource: Resource, before: StoredObject, obj: Object) -> None:
    """Reject an update that was made from another version, or for an object of another UID."""
    meta, found = obj["metadata"], before.object["metadata"]
    status_errors.check_uid(resource, found["name"], meta.get("uid") or None, found["uid"])
    check_version(resource, found["name"], meta.get("resourceVersion"), found["resourceVersion"])


def check_version(resource: Resource, name: str, expected: str | None, found: str) -> None:
    """Raise ConflictError if the version is another; as in an API server, "0" means any."""
    if expected not in (None, "", "0", found):
        raise status_errors.modified(resource, name)


def check_versioned(resource: Resource, obj: Object) -> None:
    """Reject a PUT without a version for kinds that demand one."""
    unconditional = not resource.custom and resource.kind not in _VERSION_REQUIRED
    if not unconditional and obj["metadata"].get("resourceVersion") in (None, "", "0"):
        rule = "must be specified for an update"
        name = obj["metadata"].get("name", "")
        raise validation.invalid(resource, name, "metadata.resourceVersion", 0, rule)


def update_object(resource: Resource, before: Object, obj: Object) -> Object:
    """Update the object; its status stays if the resource has a status subresource."""
    obj = {**obj, "metadata": _metadata(before, obj)}
    obj.update(apiVersion=before["apiVersion"], kind=before["kind"])
    _check_finalizers(resource, before, obj)
    if "status" in resource.subresources:
        obj.pop("status", None)
        if "status" in before:
            obj["status"] = before["status"]
    typed = validation.decode(resource, obj)
    defaults.fill(resource, obj)
    _keep_defaults(resource, before, obj)
    if resource is DAEMON_SETS:
        defaults.fill_template_generation(obj, before)
    validation.validate_rules(resource, obj, typed, before)
    return with_generation(before, obj)


def _keep_defaults(resource: Resource, before: Object, obj: Object) -> None:
    """Set again what was set when the object was created, if the update leaves it out."""
    if resource is PODS:
        defaults.add_tolerations(obj["spec"])
    elif resource is NAMESPACES:
        obj["spec"] = before.get("spec", {})  # The `finalize` subresource changes it.
    elif resource is SERVICES and obj["spec"].get("type") != "ExternalName":
        for field in ("clusterIP", "clusterIPs"):
            if not obj["spec"].get(field) and before["spec"].get(field):
                obj["spec"][field] = before["spec"][field]


def update_status(resource: Resource, before: Object, obj: Object) -> Object:
    """Update the status; as in an API server, most kinds may change metadata with it."""
    new = {**before, "status": obj.get("status", {})}
    if not resource.custom and resource.kind not in _METADATA_KEPT:
        meta = _metadata(before, obj)
        if resource.kind in _LABELS_KEPT:
            meta.pop("labels", None)
            kept = before["metadata"].get("labels")
            meta |= {"labels": kept} if kept else {}
        new["metadata"] = meta
        _check_finalizers(resource, before, new)
    validation.validate(resource, new)
    return new


def update_finalizers(resource: Resource, before: Object, obj: Object) -> Object:
    """Update the finalizers in the spec of a namespace."""
    spec = obj.get("spec", {})
    if not isinstance(spec, dict) or not isinstance(spec.get("finalizers", []), list):
        name = before["metadata"]["name"]
        raise validation.invalid(resource, name, "spec.finalizers", "", "must be a list")
    kept = {key: value for key, value in before.get("spec", {}).items() if key != "finalizers"}
    if finalizers := spec.get("finalizers"):
        kept["finalizers"] = finalizers
    return {**before, "spec": kept}


def update_resources(before: Object, obj: Object) -> Object:
    """Update the resources of a pod's containers, and no other field."""
    resources = {
        each.get("name"): each.get("resources", {})
        for each in obj.get("spec", {}).get("containers", ())
    }
    containers = [
        {**each, "resources": resources.get(each["name"], each.get("resources", {}))}
        for each in before["spec"]["containers"]
    ]
    new = {**before, "spec": {**before["spec"], "containers": containers}}
    validation.validate(PODS, new)
    return with_generation(before, new)


def _check_finalizers(resource: Resource, before: Object, obj: Object) -> None:
    """Reject new finalizers of an object that is being deleted."""
    old = set(objects.finalizers(before))
    new = [each for each in objects.finalizers(obj) if each not in old]
    if new and objects.is_terminating(before):
        raise validation.may_not_change(
            resource,
            objects.name(before),
            "metadata.finalizers",
            "no new finalizers can be added if the object is being deleted, found new finalizers "
            f"[]string{{{', '.join(map(_quoted, new))}}}",
        )


def _quoted(text: str) -> str:
    return f'"{text}"'


def replace_object(before: Object, obj: Object) -> Object:
    """Replace spec and status without validation, for the built-in controllers."""
    return with_generation(before, {**obj, "metadata": _metadata(before, obj)})


def is_finished(resource: Resource, obj: Object) -> bool:
    """Whether an object that is being deleted has no finalizers and no grace period left."""
    meta = obj["metadata"]
    if "deletionTimestamp" not in meta or meta.get("finalizers"):
        return False
    if resource is NAMESPACES and obj.get("spec", {}).get("finalizers"):
        return False
    return not meta.get("deletionGracePeriodSeconds")


def with_generation(before: Object, obj: Object) -> Object:
    """The object with the next generation if anything but metadata and status changed."""
    meta = obj["metadata"]
    if "generation" not in meta or _spec_fields(before) == _spec_fields(obj):
        return obj
    return {**obj, "metadata": {**meta, "generation": meta["generation"] + 1}}


def _spec_fields(obj: Object) -> dict[str, Any]:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}


def _metadata(before: Object, obj: Object) -> dict[str, Any]:
    old, new = before["metadata"], obj["metadata"]
    meta = {
        key: value
        for key, value in new.items()
        if key not in _SERVER_FIELDS and value not in ({}, [])
    }
    return {**{key: old[key] for key in _SERVER_FIELDS if key in old}, **meta}
