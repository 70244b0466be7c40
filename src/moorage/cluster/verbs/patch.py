"""PATCH: apply a patch to the stored object, then update it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from moorage.api import documents
from moorage.cluster.api_server import ApiServer
from moorage.cluster.patches import apply, json_patch, strategic_merge
from moorage.cluster.patches.apply import FieldManager
from moorage.cluster.resources import Resource, ResourcePath
from moorage.cluster.status_errors import BadRequestError, UnsupportedMediaTypeError
from moorage.cluster.verbs import scale
from moorage.controllers import objects
from moorage.controllers.objects import Object

JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


class Patch(NamedTuple):
    """A patch: its format, its content, and the field manager."""

    media_type: str
    body: Any
    manager: str
    force: bool = False
    dry_run: bool = False
    # Checks the fields of the patched object, or of an applied configuration.
    check: Callable[[Object], Object] = lambda obj: obj


def patch(api: ApiServer, path: ResourcePath, request: Patch) -> tuple[Object, bool]:
    """The patched object, and whether it is new: server-side apply creates missing objects."""
    if request.media_type == APPLY:
        return _apply(api, path, request)
    current = api.store.get(path.resource, *path.key)
    if path.subresource == "scale":
        shown = scale.scale_of(path.resource, current)
        patched = request.check(apply_patch(path.resource, shown, request))
        changed = scale.scaled(path.resource, current, patched)
    else:
        changed = request.check(apply_patch(path.resource, current, request))
    new = api.update(
        path.resource,
        changed,
        subresource=path.subresource,
        manager=request.manager,
        dry_run=request.dry_run,
    )
    return scale.scale_of(path.resource, new) if path.subresource == "scale" else new, False


def apply_patch(resource: Resource, obj: Object, request: Patch) -> Object:
    """The object with the patch applied, not yet validated."""
    match request.media_type:
        case "application/json-patch+json":
            result = json_patch.apply_json_patch(obj, request.body)
        case "application/merge-patch+json":
            result = json_patch.apply_merge_patch(obj, request.body)
        case "application/strategic-merge-patch+json":
            if resource.custom:
                raise UnsupportedMediaTypeError(
                    "the body of the request was in an unknown format - accepted media types "
                    f"include: {JSON}, {MERGE}, {APPLY}"
                )
            result = strategic_merge.apply(obj, request.body)
        case other:
            raise UnsupportedMediaTypeError(
                "the body of the request was in an unknown format - accepted media types include: "
                f"{JSON}, {MERGE}, {STRATEGIC}, {APPLY}; it is {other[:60]!r}"
            )
    if not isinstance(result, dict) or not isinstance(result.get("metadata"), dict):
        raise BadRequestError("the patch leaves no object")
    cleaned: Object = documents.without_nulls(result)
    _check_identity(obj, cleaned)
    return cleaned


def _check_identity(before: Object, after: Object) -> None:
    for path in ("apiVersion", "kind", "metadata.name", "metadata.namespace"):
        steps = path.split(".")
        if objects.value_at(after, *steps) != objects.value_at(before, *steps):
            if path == "metadata.name":
                raise BadRequestError(
                    f"the name of the object ({after['metadata'].get('name', '')!s:.100}) does not "
                    f"match the name on the URL ({before['metadata']['name']})"
                )
            raise BadRequestError(f"a patch may not change {path}")
    for field in ("uid", "resourceVersion"):
        value = after["metadata"].get(field)
        if value is not None and not isinstance(value, str):
            raise BadRequestError(f"metadata.{field} has to be a text")


def _apply(api: ApiServer, path: ResourcePath, request: Patch) -> tuple[Object, bool]:
    resource, at = path.resource, api.store.clock()
    is_scale = path.subresource == "scale"
    stated = {"apiVersion": resource.api_version, "kind": resource.kind}
    body = _applied(path, request.body, scale.KIND if is_scale else stated)
    body = request.check(body)
    meta = body["metadata"]
    preconditions = {key: meta.pop(key) for key in ("resourceVersion", "uid") if key in meta}
    if not all(isinstance(value, str) for value in preconditions.values()):
        raise BadRequestError("metadata.uid and metadata.resourceVersion have to be texts")
    found = api.store.find(resource, *path.key)
    manager = FieldManager(request.manager, "Apply", path.subresource)
    shown = ""
    if is_scale:
        body, shown = scale.applied(resource, body), body["apiVersion"]
    body = _covered(resource, path.subresource, body)
    result = apply.apply(
        found,
        body,
        manager,
        at=at,
        force=request.force,
        rules=api.merge_rules(resource),
        shown_version=shown,
    )
    managed = result["metadata"].pop("managedFields")
    if found is None:
        if path.subresource:
            api.store.get(resource, *path.key)  # raises NotFoundError
        return api.create(resource, result, managed=managed, dry_run=request.dry_run), True
    result["metadata"].update(preconditions)
    new = api.update(
        resource,
        result,
        subresource=path.subresource,
        managed=managed,
        dry_run=request.dry_run,
    )
    return scale.scale_of(path.resource, new) if is_scale else new, False


def _applied(path: ResourcePath, given: Any, stated: dict[str, str]) -> Object:
    """The applied configuration; raises BadRequestError if it does not fit the URL."""
    body = documents.without_nulls(given)
    if not isinstance(body, dict) or not isinstance(body.get("metadata", {}), dict):
        raise BadRequestError("an applied configuration is an object with metadata")
    if {key: body.get(key) for key in stated} != stated:
        group, _, version = str(body.get("apiVersion", "")).rpartition("/")
        kind = f"{group}/{version}, Kind={body.get('kind', '')!s:.100}"
        raise BadRequestError(f"invalid object type: {kind:.200}")
    meta = {**body.get("metadata", {})}
    if meta.get("name", path.name) != path.name:
        raise BadRequestError(
            f"the name of the object ({meta['name']!s:.100}) does not match the name on the URL "
            f"({path.name[:100]})"
        )
    if meta.get("namespace", path.namespace) != path.namespace:
        raise BadRequestError(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    meta["name"] = path.name
    if path.resource.namespaced:
        meta["namespace"] = path.namespace or ""
    return {**body, "metadata": meta}


def _covered(resource: Resource, subresource: str, body: Object) -> Object:
    """The part of a configuration that an apply to this subresource may set and own."""
    if subresource == "status":
        return {k: v for k, v in body.items() if k in ("apiVersion", "kind", "metadata", "status")}
    if not subresource and "status" in resource.subresources:
        return {key: value for key, value in body.items() if key != "status"}
    return body
