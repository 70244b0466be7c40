"""Discovery and OpenAPI: which groups, versions, resources and verbs the API serves.

The OpenAPI documents name the kinds and have no schemas of fields. So `kubectl explain` shows the
kind only, and `kubectl create` and `apply` leave validation to the server, as with any current one.
"""

from typing import Any

from moorage.cluster.resources import Resource, ResourceRegistry
from moorage.serve.rest import requests

Json = dict[str, Any]

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_SUBRESOURCE_VERBS = {
    **{each: ["get", "patch", "update"] for each in ("status", "scale", "resize")},
    "finalize": ["update"],
    "approval": ["get", "patch", "update"],
    **{each: ["create"] for each in ("binding", "eviction", "token")},
}
_SUBRESOURCE_KINDS = {
    "scale": ("autoscaling", "v1", "Scale"),
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}


def api_versions() -> Json:
    """`/api`."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def groups(registry: ResourceRegistry) -> Json:
    """`/apis`."""
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(name, versions) for name, versions in _groups(registry).items()],
    }


def group(registry: ResourceRegistry, name: str) -> Json:
    """`/apis/GROUP`."""
    versions = _groups(registry).get(name)
    if versions is None:
        raise requests.unknown_path()
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def resources(registry: ResourceRegistry, name: str, version: str) -> Json:
    """`/api/v1` and `/apis/GROUP/VERSION`."""
    listed = [row for resource in _served(registry, name, version) for row in _rows(resource)]
    if not name:
        row = {"name": "bindings", "singularName": "binding", "namespaced": True}
        listed.append({**row, "kind": "Binding", "verbs": ["create"]})
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{name}/{version}" if name else version,
        "resources": listed,
    }


def aggregated(registry: ResourceRegistry, *, core: bool) -> Json:
    """`/api` and `/apis` with all resources in one response."""
    items: dict[str, Json] = {}
    for (name, version), found in registry.versions().items():
        if core == (not name):
            item = items.setdefault(name, {"metadata": {"name": name}, "versions": []})
            rows = [_aggregated_row(resource) for resource in found]
            served = {"version": version, "freshness": "Current", "resources": rows}
            item["versions"].append(served)
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": list(items.values()),
    }


def _served(registry: ResourceRegistry, group: str, version: str) -> list[Resource]:
    found = registry.versions().get((group, version))
    if found is None:
        raise requests.unknown_path()
    return found


def _groups(registry: ResourceRegistry) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, version in registry.versions():
        if name:
            found.setdefault(name, []).append(version)
    return found


def _group(name: str, versions: list[str]) -> Json:
    listed = [{"groupVersion": f"{name}/{each}", "version": each} for each in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _rows(resource: Resource) -> list[Json]:
    row = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(resource),
        **_names(resource),
    }
    return [row, *(_subresource_row(resource, each) for each in resource.subresources)]


def _verbs(resource: Resource, subresource: str = "") -> list[str]:
    if subresource:
        return _SUBRESOURCE_VERBS[subresource]
    if resource.is_review:
        return ["create"]
    if resource.kind == "Namespace" and not resource.group:
        return [verb for verb in _VERBS if verb != "deletecollection"]
    return _VERBS


def _names(resource: Resource) -> Json:
    names = {"shortNames": resource.short_names, "categories": resource.categories}
    return {field: list(values) for field, values in names.items() if values}


def _subresource_row(resource: Resource, subresource: str) -> Json:
    row: Json = {
        "name": f"{resource.plural}/{subresource}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(resource, subresource),
    }
    if subresource in _SUBRESOURCE_KINDS:
        row["group"], row["version"], row["kind"] = _SUBRESOURCE_KINDS[subresource]
    return row


def _aggregated_row(resource: Resource) -> Json:
    row = {
        "resource": resource.plural,
        "responseKind": _kind(resource),
        "scope": resource.scope,
        "singularResource": resource.singular,
        "verbs": _verbs(resource),
        **_names(resource),
    }
    subresources = [
        {
            "subresource": each,
            "responseKind": _kind(resource, each),
            "verbs": _verbs(resource, each),
        }
        for each in resource.subresources
    ]
    return {**row, "subresources": subresources} if subresources else row


def _kind(resource: Resource, subresource: str = "") -> Json:
    own = (resource.group, resource.version, resource.kind)
    group, version, kind = _SUBRESOURCE_KINDS.get(subresource, own)
    return {"group": group, "version": version, "kind": kind}


# OpenAPI ---------------------------------------------------------------------------------------

# The media types of kubectl's request, and of the response.
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
PROTOBUF_RESPONSE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_INFO = {"title": "Moorage", "version": "v1"}


def openapi_index(registry: ResourceRegistry) -> Json:
    """`/openapi/v3`: the URLs of the documents."""
    found = {}
    for group, version in registry.versions():
        path = f"apis/{group}/{version}" if group else f"api/{version}"
        found[path] = {"serverRelativeURL": f"/openapi/v3/{path}"}
    return {"paths": found}


def openapi_document(registry: ResourceRegistry, path: str) -> Json:
    """`/openapi/v3/apis/GROUP/VERSION`."""
    match path.split("/"):
        case ["api", version]:
            group = ""
        case ["apis", group, version]:
            pass
        case _:
            raise requests.unknown_path()
    found = _served(registry, group, version)
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": {_path(each): _operations(each) for each in found},
        "components": {"schemas": {_schema_name(each): _schema(each) for each in found}},
    }


def openapi_v2(registry: ResourceRegistry) -> Json:
    """`/openapi/v2`."""
    return {
        "swagger": "2.0",
        "info": _INFO,
        "paths": {},
        "definitions": {_schema_name(each): _schema(each) for each in registry},
    }


def openapi_protobuf() -> bytes:
    """`/openapi/v2` for kubectl, which accepts protobuf only: a document without schemas.

    kubectl looks here for kinds that no API serves, such as List, and validates nothing if it
    finds no schema. Fields 1, 2 and 8 are the version, the title and the paths.
    """
    info = _field(1, b"moorage") + _field(2, b"v1")
    return _field(1, b"2.0") + _field(2, info) + _field(8, b"")


def _field(number: int, value: bytes) -> bytes:
    return bytes((number << 3 | 2, len(value))) + value


def _path(resource: Resource) -> str:
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else "/api/v1"
    namespace = "/namespaces/{namespace}" if resource.namespaced else ""
    return f"{root}{namespace}/{resource.plural}/{{name}}"


def _operations(resource: Resource) -> Json:
    schema = {"type": "string", "uniqueItems": True}
    names = ("dryRun", "fieldManager", "fieldValidation", "force")
    patch = {
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": _kind(resource),
        "parameters": [{"name": name, "in": "query", "schema": schema} for name in names],
        "responses": {"200": {"description": "OK"}},
    }
    return {"patch": patch}


def _schema_name(resource: Resource) -> str:
    group = resource.group.partition(".")[0] or "core"
    return f"io.k8s.api.{group}.{resource.version}.{resource.kind}"


_FIELDS = {
    "apiVersion": {"type": "string", "description": "The version of the kind."},
    "kind": {"type": "string", "description": "The kind of the object."},
    "metadata": {"type": "object", "description": "Name, labels, versions and times."},
    "spec": {"type": "object", "description": "What is wanted."},
    "status": {"type": "object", "description": "What is."},
}


def _schema(resource: Resource) -> Json:
    return {
        "type": "object",
        "description": f"{resource.kind}. Moorage keeps no descriptions of fields.",
        "properties": _FIELDS,
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-group-version-kind": [_kind(resource)],
    }
