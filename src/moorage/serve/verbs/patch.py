"""PATCH: apply a patch to the stored object, then update it."""

from typing import Any, NamedTuple

from moorage.serve.api_server import ApiServer
from moorage.serve.controllers.objects import Object
from moorage.serve.objects import decoding
from moorage.serve.patches import apply, json_patch, strategic_merge
from moorage.serve.patches.apply import FieldManager
from moorage.serve.resources import Resource
from moorage.serve.status_errors import BadRequestError, UnsupportedMediaTypeError
from moorage.serve.verbs import scale

JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


class Patch(NamedTuple):
    """What is to change, in which language, and in whose name."""

    media_type: str
    body: Any
    manager: str
    force: bool = False
    dry_run: bool = False


class PatchTarget(NamedTuple):
    """What is to be changed."""

    resource: Resource
    namespace: str
    name: str
    subresource: str = ""


def patch(api: ApiServer, target: PatchTarget, wanted: Patch) -> tuple[Object, bool]:
    """The object after the patch, and whether it is new: apply creates what is not there."""
    resource = target.resource
    found = api.store.find(resource, target.namespace, target.name)
    if wanted.media_type == APPLY:
        return _apply(api, target, wanted, found)
    current = api.store.get(resource, target.namespace, target.name)
    if target.subresource == "scale":
        changed = scale.scaled(resource, current, apply_patch(resource, scale.of(current), wanted))
        new = _update(api, target._replace(subresource=""), wanted, changed)
        return scale.of(new), False
    changed = apply_patch(resource, current, wanted)
    return _update(api, target, wanted, changed), False


def apply_patch(resource: Resource, obj: Object, wanted: Patch) -> Object:
    """An object with a patch in it, not yet checked."""
    match wanted.media_type:
        case "application/json-patch+json":
            result = json_patch.apply_json_patch(obj, wanted.body)
        case "application/merge-patch+json":
            result = json_patch.apply_merge_patch(obj, wanted.body)
        case "application/strategic-merge-patch+json":
            if resource.custom:
                raise UnsupportedMediaTypeError(
                    "the body of the request was in an unknown format - accepted media types "
                    f"include: {JSON}, {MERGE}, {APPLY}"
                )
            result = strategic_merge.apply(obj, wanted.body)
        case other:
            raise UnsupportedMediaTypeError(
                "the body of the request was in an unknown format - accepted media types include: "
                f"{JSON}, {MERGE}, {STRATEGIC}, {APPLY}; it is {other[:60]!r}"
            )
    if not isinstance(result, dict) or not isinstance(result.get("metadata"), dict):
        raise BadRequestError("the patch leaves no object")
    cleaned: Object = decoding.without_nulls(result)
    _check_identity(obj, cleaned)
    return cleaned


def _check_identity(before: Object, after: Object) -> None:
    for field in ("apiVersion", "kind"):
        if after.get(field) != before.get(field):
            raise BadRequestError(f"a patch may not change {field}")
    for field in ("name", "namespace"):
        if after["metadata"].get(field) != before["metadata"].get(field):
            raise BadRequestError(f"a patch may not change metadata.{field}")
    for field in ("uid", "resourceVersion"):
        value = after["metadata"].get(field)
        if value is not None and not isinstance(value, str):
            raise BadRequestError(f"metadata.{field} has to be a text")


def _update(api: ApiServer, target: PatchTarget, wanted: Patch, changed: Object) -> Object:
    return api.update(
        target.resource,
        changed,
        subresource=target.subresource,
        manager=wanted.manager,
        dry_run=wanted.dry_run,
    )


def _apply(
    api: ApiServer, target: PatchTarget, wanted: Patch, found: Object | None
) -> tuple[Object, bool]:
    resource = target.resource
    if not wanted.manager:
        raise BadRequestError(
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value'
        )
    if target.subresource == "scale":
        raise UnsupportedMediaTypeError("scale cannot be applied; patch it")
    body = decoding.without_nulls(wanted.body)
    if not isinstance(body, dict) or not isinstance(body.get("metadata", {}), dict):
        raise BadRequestError("an applied configuration is an object with metadata")
    meta = {**body.get("metadata", {}), "name": target.name}
    if resource.namespaced:
        meta["namespace"] = target.namespace
    uid = meta.pop("uid", None)
    version = meta.pop("resourceVersion", None)
    for value in (uid, version):
        if value is not None and not isinstance(value, str):
            raise BadRequestError("metadata.uid and metadata.resourceVersion have to be texts")
    stated = {"apiVersion": resource.api_version, "kind": resource.kind}
    body = {**stated, **body, "metadata": meta}
    if {key: body[key] for key in stated} != stated:
        raise BadRequestError("apiVersion and kind of the configuration do not fit the URL")
    who = FieldManager(wanted.manager, "Apply", target.subresource)
    result = apply.apply(found, body, who, at=api.store.clock(), force=wanted.force)
    managed = result["metadata"].pop("managedFields")
    if found is None:
        if target.subresource:
            api.store.get(resource, target.namespace, target.name)  # raises NotFound
        created = api.create(resource, result, managed=managed, dry_run=wanted.dry_run)
        return created, True
    if version is not None:
        result["metadata"]["resourceVersion"] = version
    if uid is not None:
        result["metadata"]["uid"] = uid
    new = api.update(
        resource,
        result,
        subresource=target.subresource,
        managed=managed,
        dry_run=wanted.dry_run,
    )
    return new, False
