"""PATCH: apply a patch to the stored object, then update it."""

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


def patch(api: ApiServer, path: ResourcePath, request: Patch) -> tuple[Object, bool]:
    """The patched object, and whether it is new: server-side apply creates missing objects."""
    if request.media_type == APPLY:
        return _apply(api, path, request)
    current = api.store.get(path.resource, *path.key)
    if path.subresource == "scale":
        patched = apply_patch(path.resource, scale.scale_of(current), request)
        changed = scale.scaled(path.resource, current, patched)
    else:
        changed = apply_patch(path.resource, current, request)
    new = api.update(
        path.resource,
        changed,
        subresource="" if path.subresource == "scale" else path.subresource,
        manager=request.manager,
        dry_run=request.dry_run,
    )
    return scale.scale_of(new) if path.subresource == "scale" else new, False


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
            raise BadRequestError(f"a patch may not change {path}")
    for field in ("uid", "resourceVersion"):
        value = after["metadata"].get(field)
        if value is not None and not isinstance(value, str):
            raise BadRequestError(f"metadata.{field} has to be a text")


def _apply(api: ApiServer, path: ResourcePath, request: Patch) -> tuple[Object, bool]:
    resource = path.resource
    if not request.manager:
        raise BadRequestError(
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value'
        )
    if path.subresource == "scale":
        raise UnsupportedMediaTypeError("scale cannot be applied; patch it")
    body = documents.without_nulls(request.body)
    if not isinstance(body, dict) or not isinstance(body.get("metadata", {}), dict):
        raise BadRequestError("an applied configuration is an object with metadata")
    meta = {**body.get("metadata", {}), "name": path.name}
    if resource.namespaced:
        meta["namespace"] = path.namespace or ""
    preconditions = {key: meta.pop(key) for key in ("resourceVersion", "uid") if key in meta}
    if not all(isinstance(value, str) for value in preconditions.values()):
        raise BadRequestError("metadata.uid and metadata.resourceVersion have to be texts")
    stated = {"apiVersion": resource.api_version, "kind": resource.kind}
    body = {**stated, **body, "metadata": meta}
    if {key: body[key] for key in stated} != stated:
        raise BadRequestError("apiVersion and kind of the configuration do not fit the URL")
    found = api.store.find(resource, *path.key)
    manager = FieldManager(request.manager, "Apply", path.subresource)
    result = apply.apply(found, body, manager, at=api.store.clock(), force=request.force)
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
    return new, False
