"""Discovery: which groups, versions, resources and verbs the API serves."""

import base64
import hashlib
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


_AGGREGATED_BINDINGS: Json = {
    "resource": "bindings",
    "responseKind": {"group": "", "version": "", "kind": "Binding"},
    "scope": "Namespaced",
    "singularResource": "binding",
    "verbs": ["create"],
}


def aggregated(registry: ResourceRegistry, *, core: bool) -> Json:
    """`/api` and `/apis` with all resources in one response."""
    items: dict[str, Json] = {}
    for (name, version), found in registry.versions().items():
        if core == (not name):
            item = items.setdefault(name, {"metadata": {"name": name}, "versions": []})
            rows = [_aggregated_row(resource) for resource in found]
            rows += [_AGGREGATED_BINDINGS] if core else []
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
    if not resource.is_review and not resource.is_read_only:
        row["storageVersionHash"] = _storage_version_hash(resource)
    return [row, *(_subresource_row(resource, each) for each in resource.subresources)]


def _storage_version_hash(resource: Resource) -> str:
    """Clients compare it to learn that a kind is stored in another version."""
    text = f"{resource.group}/{resource.version}/{resource.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def _verbs(resource: Resource, subresource: str = "") -> list[str]:
    if subresource:
        return _SUBRESOURCE_VERBS[subresource]
    if resource.is_review:
        return ["create"]
    if resource.is_read_only:
        return ["get", "list"]
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
