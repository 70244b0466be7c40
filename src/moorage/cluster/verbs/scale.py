"""The `scale` subresource: the replicas and the selector of a workload."""

from typing import Any

from moorage.cluster.objects import validation
from moorage.cluster.resources import Resource
from moorage.cluster.status_errors import BadRequestError
from moorage.controllers import objects
from moorage.controllers.objects import Object

_MAX_REPLICAS = 2**31 - 1
KIND = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
_SCALES = Resource("autoscaling", "v1", "Scale", "scales", "Namespaced")


def scale_of(resource: Resource, obj: Object) -> Object:
    """The scale of a workload."""
    meta, paths = obj["metadata"], resource.scale_paths
    selector = objects.value_at(obj, *paths.selector) if paths.selector else None
    if not isinstance(selector, str):
        selector = _selector_text(selector)
    fields = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {field: meta[field] for field in fields if field in meta},
        "spec": {"replicas": objects.value_at(obj, *paths.spec_replicas) or 0},
        "status": {
            "replicas": objects.value_at(obj, *paths.status_replicas) or 0,
            **({"selector": selector} if selector or not resource.custom else {}),
        },
    }


def scaled(resource: Resource, obj: Object, scale: Any) -> Object:
    """The workload with the replicas of a Scale; raises BadRequestError or InvalidError."""
    name = obj["metadata"]["name"]
    spec = scale.get("spec", {}) if isinstance(scale, dict) else None
    meta = scale.get("metadata", {}) if isinstance(scale, dict) else None
    if not isinstance(spec, dict) or not isinstance(meta, dict):
        raise BadRequestError("a Scale is an object with metadata and spec")
    replicas = spec.get("replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool) or abs(replicas) > _MAX_REPLICAS:
        raise BadRequestError(f"Scale: spec.replicas has to be a whole number, is {replicas!r:.60}")
    if replicas < 0:
        rule = "must be greater than or equal to 0"
        raise validation.invalid(_SCALES, name, "spec.replicas", replicas, rule)
    expected = {key: meta[key] for key in ("uid", "resourceVersion") if meta.get(key)}
    changed = _with_value(obj, resource.scale_paths.spec_replicas, replicas)
    return {**changed, "metadata": {**obj["metadata"], **expected}}


def _with_value(obj: Any, path: tuple[str, ...], value: Any) -> Any:
    if not path:
        return value
    fields = obj if isinstance(obj, dict) else {}
    return {**fields, path[0]: _with_value(fields.get(path[0]), path[1:], value)}


def applied(resource: Resource, scale: Object) -> Object:
    """An applied Scale as a configuration of the workload."""
    spec = scale.get("spec")
    stated = isinstance(spec, dict) and "replicas" in spec
    applied: Object = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": scale["metadata"],
    }
    if not stated:
        return applied
    path = resource.scale_paths.spec_replicas
    new: Object = _with_value(applied, path, scale["spec"]["replicas"])
    return new


def _selector_text(selector: Any) -> str:
    """A selector in the syntax of `kubectl -l`."""
    if not isinstance(selector, dict):
        return ""
    labels = selector.get("matchLabels")
    if labels is None and not selector.get("matchExpressions"):
        labels = selector  # A ReplicationController has a plain map.
    pieces = [f"{key}={value}" for key, value in sorted((labels or {}).items())]
    for each in selector.get("matchExpressions", ()):
        key, values = each.get("key", ""), ",".join(sorted(each.get("values", ())))
        match each.get("operator"):
            case "In":
                pieces.append(f"{key} in ({values})")
            case "NotIn":
                pieces.append(f"{key} notin ({values})")
            case "Exists":
                pieces.append(key)
            case "DoesNotExist":
                pieces.append(f"!{key}")
    return ",".join(pieces)
