"""The `scale` subresource: the replicas and the selector of a workload."""

from typing import Any

from moorage.cluster.objects import validation
from moorage.cluster.resources import Resource
from moorage.cluster.status_errors import BadRequestError, InternalError, StatusCause
from moorage.controllers import objects
from moorage.controllers.objects import Object

_MAX_REPLICAS = 2**31 - 1
SCALES = Resource("autoscaling", "v1", "Scale", "scales", "Namespaced")
KIND = {"apiVersion": SCALES.api_version, "kind": SCALES.kind}


def scale_of(resource: Resource, obj: Object) -> Object:
    """The scale of a workload; raises InternalError for a custom resource without replicas."""
    meta, paths = obj["metadata"], resource.scale_paths
    replicas = objects.value_at(obj, *paths.spec_replicas)
    if replicas is None and resource.custom:
        why = f'the spec replicas field "{_path_text(paths.spec_replicas)}" does not exist'
        raise InternalError(
            f"Internal error occurred: {why}", causes=[StatusCause(message=why, reason="")]
        )
    selector = objects.value_at(obj, *paths.selector) if paths.selector else None
    if not isinstance(selector, str):
        selector = _selector_text(selector)
    fields = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        **KIND,
        "metadata": {field: meta[field] for field in fields if field in meta},
        "spec": {"replicas": replicas} if replicas else {},
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
    if replicas < 0 and resource.custom:
        field, rule = _path_text(resource.scale_paths.spec_replicas), "a non-negative integer"
        raise validation.invalid(resource, name, field, replicas, f"should be {rule}")
    if replicas < 0:
        rule = "must be greater than or equal to 0"
        raise validation.invalid(SCALES, name, "spec.replicas", replicas, rule)
    expected = {key: meta[key] for key in ("uid", "resourceVersion") if meta.get(key)}
    changed = _with_value(obj, resource.scale_paths.spec_replicas, replicas)
    return {**changed, "metadata": {**obj["metadata"], **expected}}


def _path_text(path: tuple[str, ...]) -> str:
    return "".join(f".{step}" for step in path)


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
