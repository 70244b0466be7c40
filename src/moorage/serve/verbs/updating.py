"""What an update may change, and what stays whatever it says."""

from typing import Any

from moorage.serve import refusals
from moorage.serve.change_log import Stored
from moorage.serve.controllers.objects import Object
from moorage.serve.objects import complaints, defaults, shape
from moorage.serve.resources import NAMESPACES, NODES, PODS, Resource
from moorage.serve.verbs import immutable

# What only the server decides.
_KEPT = (
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


def check_precondition(resource: Resource, before: Stored, obj: Object) -> None:
    """Refuse an update that was made from another version, or is meant for a namesake."""
    meta, found = obj["metadata"], before.object["metadata"]
    if (uid := meta.get("uid")) and uid != found["uid"]:
        raise refusals.uid_differs(resource, found["name"], uid, found["uid"])
    version = meta.get("resourceVersion")
    if version and version != found["resourceVersion"]:
        raise refusals.modified(resource, found["name"])


def main(resource: Resource, before: Object, obj: Object) -> Object:
    """An update of the object itself: its status stays, if that has a door of its own."""
    obj = {**obj, "metadata": _metadata(before, obj)}
    if "status" in resource.subresources:
        obj.pop("status", None)
        if "status" in before:
            obj["status"] = before["status"]
    if resource is NAMESPACES and before.get("spec"):
        obj["spec"] = before["spec"]  # Its finalizers leave through `finalize`.
    shape.check(resource, obj)
    defaults.fill(resource, obj)
    immutable.check(resource, before, obj)
    return with_generation(before, obj)


def status(resource: Resource, before: Object, obj: Object) -> Object:
    """An update of the status; pods and nodes may change labels and annotations with it."""
    new = {**before, "status": obj.get("status", {})}
    if resource in (PODS, NODES):
        meta = {**before["metadata"]}
        for field in ("labels", "annotations", "finalizers"):
            if field in obj["metadata"]:
                meta[field] = obj["metadata"][field]
        new["metadata"] = meta
    shape.check(resource, new)
    return new


def finalize(resource: Resource, before: Object, obj: Object) -> Object:
    """The finalizers of a namespace's spec."""
    spec = obj.get("spec", {})
    if not isinstance(spec, dict) or not isinstance(spec.get("finalizers", []), list):
        raise complaints.invalid(
            resource, before["metadata"]["name"], "spec.finalizers", "", "must be a list"
        )
    spec = {**before.get("spec", {}), "finalizers": spec.get("finalizers", [])}
    return {**before, "spec": spec}


def resize(resource: Resource, before: Object, obj: Object) -> Object:
    """The resources of a pod's containers, and nothing else."""
    del resource
    wanted = {
        each.get("name"): each.get("resources", {})
        for each in obj.get("spec", {}).get("containers", ())
    }
    containers = [
        {**each, "resources": wanted.get(each["name"], each.get("resources", {}))}
        for each in before["spec"]["containers"]
    ]
    new = {**before, "spec": {**before["spec"], "containers": containers}}
    shape.check(PODS, new)
    return with_generation(before, new)


def whole(before: Object, obj: Object) -> Object:
    """An update by a controller of ours: it knows what it does, spec and status alike."""
    return with_generation(before, {**obj, "metadata": _metadata(before, obj)})


def is_finished(resource: Resource, obj: Object) -> bool:
    """Whether an object that was being deleted has nothing left to wait for."""
    meta = obj["metadata"]
    if "deletionTimestamp" not in meta or meta.get("finalizers"):
        return False
    if resource is NAMESPACES and obj.get("spec", {}).get("finalizers"):
        return False
    return not meta.get("deletionGracePeriodSeconds")


def with_generation(before: Object, obj: Object) -> Object:
    """The object under the next generation if it wants something else than before."""
    if _wish(before) == _wish(obj):
        return obj
    meta = obj["metadata"]
    return {**obj, "metadata": {**meta, "generation": meta.get("generation", 0) + 1}}


def _wish(obj: Object) -> dict[str, Any]:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}


def _metadata(before: Object, obj: Object) -> dict[str, Any]:
    old, new = before["metadata"], obj["metadata"]
    meta = {key: value for key, value in new.items() if key not in _KEPT and value not in ({}, [])}
    return {**{key: old[key] for key in _KEPT if key in old}, **meta}
