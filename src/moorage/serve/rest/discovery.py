"""Discovery and OpenAPI: which groups, versions, resources and verbs the API serves.

The OpenAPI documents name the kinds and have no schemas of fields. So `kubectl explain` shows the
kind only, and `kubectl create` and `apply` leave validation to the server, as with any current one.
"""

from typing import Any

from moorage.serve.resources import Resource, ResourceRegistry
from moorage.serve.rest import requests

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_SUBRESOURCE_VERBS = {
    "status": ["get", "patch", "update"],
    "scale": ["get", "patch", "update"],
    "resize": ["get", "patch", "update"],
    "finalize": ["update"],
    "binding": ["create"],
    "eviction": ["create"],
}
_KIND_OF = {
    "scale": ("autoscaling", "v1", "Scale"),
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
}

Json = dict[str, Any]


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
    found = registry.versions().get((name, version))
    if found is None:
        raise requests.unknown_path()
    listed = [row for resource in found for row in _rows(resource)]
    if not name:
        listed.append(_row_of_bindings())
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{name}/{version}" if name else version,
        "resources": listed,
    }


def aggregated(registry: ResourceRegistry, *, core: bool) -> Json:
    """`/api` and `/apis` for clients that want everything at once."""
    items: dict[str, Json] = {}
    for (name, version), found in registry.versions().items():
        if core == (not name):
            item = items.setdefault(name, {"metadata": {"name": name}, "versions": []})
            item["versions"].append(
                {
                    "version": version,
                    "freshness": "Current",
                    "resources": [_aggregated_row(resource) for resource in found],
                }
            )
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": list(items.values()),
    }


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
    row: Json = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        row["shortNames"] = list(resource.short_names)
    if resource.categories:
        row["categories"] = list(resource.categories)
    return [row, *(_subresource_row(resource, each) for each in resource.subresources)]


def _verbs(resource: Resource) -> list[str]:
    if resource.kind == "Namespace" and not resource.group:
        return [verb for verb in _VERBS if verb != "deletecollection"]
    return _VERBS


def _subresource_row(resource: Resource, subresource: str) -> Json:
    row: Json = {
        "name": f"{resource.plural}/{subresource}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _SUBRESOURCE_VERBS[subresource],
    }
    if subresource in _KIND_OF:
        row["group"], row["version"], row["kind"] = _KIND_OF[subresource]
    return row


def _row_of_bindings() -> Json:
    return {
        "name": "bindings",
        "singularName": "binding",
        "namespaced": True,
        "kind": "Binding",
        "verbs": ["create"],
    }


def _aggregated_row(resource: Resource) -> Json:
    row: Json = {
        "resource": resource.plural,
        "responseKind": _kind(resource.group, resource.version, resource.kind),
        "scope": resource.scope,
        "singularResource": resource.singular,
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        row["shortNames"] = list(resource.short_names)
    if resource.categories:
        row["categories"] = list(resource.categories)
    if resource.subresources:
        row["subresources"] = [
            {
                "subresource": each,
                "responseKind": _kind(
                    *_KIND_OF.get(each, (resource.group, resource.version, resource.kind))
                ),
                "verbs": _SUBRESOURCE_VERBS[each],
            }
            for each in resource.subresources
        ]
    return row


def _kind(group_name: str, version: str, kind: str) -> Json:
    return {"group": group_name, "version": version, "kind": kind}


# How kubectl asks for it, and how it is answered.
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
PROTOBUF_RESPONSE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def openapi_index(registry: ResourceRegistry) -> Json:
    """`/openapi/v3`: where the documents are."""
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
    resources = registry.versions().get((group, version))
    if resources is None:
        raise requests.unknown_path()
    return {
        "openapi": "3.0.0",
        "info": {"title": "Moorage", "version": "v1"},
        "paths": {_path(each): _operations(each) for each in resources},
        "components": {"schemas": {_name(each): _schema(each) for each in resources}},
    }


def openapi_v2(registry: ResourceRegistry) -> Json:
    """`/openapi/v2`."""
    return {
        "swagger": "2.0",
        "info": {"title": "Moorage", "version": "v1"},
        "paths": {},
        "definitions": {_name(each): _schema(each) for each in registry},
    }


def openapi_protobuf() -> bytes:
    """The same for kubectl, which reads this form only: a document without any schema.

    kubectl looks here for kinds that no API has, such as List, and checks nothing where it
    finds nothing. Fields 1, 2 and 8 are the version, the title and the paths.
    """
    info = _field(1, b"moorage") + _field(2, b"v1")
    return _field(1, b"2.0") + _field(2, info) + _field(8, b"")


def _field(number: int, value: bytes) -> bytes:
    return bytes((number << 3 | 2, len(value))) + value


def _path(resource: Resource) -> str:
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else "/api/v1"
    place = "/namespaces/{namespace}" if resource.namespaced else ""
    return f"{root}{place}/{resource.plural}/{{name}}"


def _operations(resource: Resource) -> Json:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    names = ("dryRun", "fieldManager", "fieldValidation", "force")
    return {
        "patch": {
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": kind,
            "parameters": [
                {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
                for name in names
            ],
            "responses": {"200": {"description": "OK"}},
        }
    }


def _name(resource: Resource) -> str:
    group = resource.group.partition(".")[0] or "core"
    return f"io.k8s.api.{group}.{resource.version}.{resource.kind}"


def _schema(resource: Resource) -> Json:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    fields: Json = {
        "apiVersion": {"type": "string", "description": "The version of the kind."},
        "kind": {"type": "string", "description": "The kind of the object."},
        "metadata": {"type": "object", "description": "Name, labels, versions and times."},
        "spec": {"type": "object", "description": "What is wanted."},
        "status": {"type": "object", "description": "What is."},
    }
    return {
        "type": "object",
        "description": f"{resource.kind}. Moorage keeps no descriptions of fields.",
        "properties": fields,
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-group-version-kind": [kind],
    }
