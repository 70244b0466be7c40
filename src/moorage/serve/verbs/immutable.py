"""Fields that nobody may change once an object is there."""

from typing import Any

from moorage.serve.controllers.objects import Object
from moorage.serve.objects import complaints
from moorage.serve.refusals import Invalid
from moorage.serve.resources import PODS, Resource

_IMMUTABLE: dict[str, tuple[str, ...]] = {
    "Deployment": ("spec.selector",),
    "ReplicaSet": ("spec.selector",),
    "DaemonSet": ("spec.selector",),
    "StatefulSet": ("spec.selector", "spec.serviceName", "spec.podManagementPolicy"),
    "Job": ("spec.selector", "spec.completionMode"),
    "PriorityClass": ("value", "preemptionPolicy"),
    "StorageClass": ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
    "PersistentVolumeClaim": ("spec.accessModes", "spec.selector", "spec.volumeMode"),
}
_POD_MAY_CHANGE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check(resource: Resource, before: Object, obj: Object) -> None:
    """Refuse a change of what may not change."""
    name = before["metadata"]["name"]
    if resource is PODS:
        _check_pod(name, before["spec"], obj["spec"])
        return
    if resource.custom:
        return
    for path in _IMMUTABLE.get(resource.kind, ()):
        if _at(before, path) != _at(obj, path):
            rule = "field is immutable"
            if path == "value":
                rule = "may not be changed in an update."
            raise complaints.may_not_change(resource, name, path, rule)
    if resource.kind in ("ConfigMap", "Secret") and before.get("immutable") is True:
        fields = ("data", "binaryData", "immutable")
        if any(before.get(field) != obj.get(field) for field in fields):
            rule = "field is immutable when `immutable` is set"
            raise complaints.may_not_change(resource, name, "data", rule)


def _at(obj: Object, path: str) -> Any:
    value: Any = obj
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _check_pod(name: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    gates = _names(old.get("schedulingGates"))
    if set(_names(new.get("schedulingGates"))) - set(gates):
        raise complaints.may_not_change(
            PODS,
            name,
            "spec.schedulingGates",
            "only deletion is allowed, but found new scheduling gate",
        )
    tolerations = new.get("tolerations", [])
    if any(each not in tolerations for each in old.get("tolerations", [])):
        raise _pod_change(name)
    # While it is gated, a pod may be steered: where it may go can only get narrower, which is
    # left to whoever does it.
    steered = ("nodeSelector", "affinity") if gates else ()
    free = ("schedulingGates", "tolerations", "activeDeadlineSeconds", *steered)
    if _bare(old, free) != _bare(new, free):
        raise _pod_change(name)


def _bare(spec: dict[str, Any], free: tuple[str, ...]) -> dict[str, Any]:
    bare = {key: value for key, value in spec.items() if key not in free}
    for field in ("containers", "initContainers"):
        if field in bare:
            bare[field] = [{**each, "image": "", "imagePullPolicy": ""} for each in bare[field]]
    return bare


def _names(gates: Any) -> list[str]:
    return [each.get("name", "") for each in gates or ()]


def _pod_change(name: str) -> Invalid:
    rule = f"pod updates may not change fields other than {_POD_MAY_CHANGE}"
    return complaints.may_not_change(PODS, name, "spec", rule)
