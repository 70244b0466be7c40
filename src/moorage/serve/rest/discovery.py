"""What is served, told to those who ask: groups, versions, resources and their verbs."""

from typing import Any

from moorage.serve.catalog import Catalog
from moorage.serve.resources import Resource
from moorage.serve.rest import paths

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

Answer = dict[str, Any]


def api_versions() -> Answer:
    """`/api`."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def groups(catalog: Catalog) -> Answer:
    """`/apis`."""
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(name, versions) for name, versions in _groups(catalog).items()],
    }


def group(catalog: Catalog, name: str) -> Answer:
    """`/apis/GROUP`."""
    versions = _groups(catalog).get(name)
    if versions is None:
        raise paths.nowhere()
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def resources(catalog: Catalog, name: str, version: str) -> Answer:
    """`/api/v1` and `/apis/GROUP/VERSION`."""
    found = catalog.versions().get((name, version))
    if found is None:
        raise paths.nowhere()
    listed = [row for resource in found for row in _rows(resource)]
    if not name:
        listed.append(_row_of_bindings())
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{name}/{version}" if name else version,
        "resources": listed,
    }


def aggregated(catalog: Catalog, *, core: bool) -> Answer:
    """`/api` and `/apis` for clients that want everything at once."""
    items: dict[str, Answer] = {}
    for (name, version), found in catalog.versions().items():
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


def _groups(catalog: Catalog) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, version in catalog.versions():
        if name:
            found.setdefault(name, []).append(version)
    return found


def _group(name: str, versions: list[str]) -> Answer:
    listed = [{"groupVersion": f"{name}/{each}", "version": each} for each in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _rows(resource: Resource) -> list[Answer]:
    row: Answer = {
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


def _subresource_row(resource: Resource, subresource: str) -> Answer:
    row: Answer = {
        "name": f"{resource.plural}/{subresource}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _SUBRESOURCE_VERBS[subresource],
    }
    if subresource in _KIND_OF:
        row["group"], row["version"], row["kind"] = _KIND_OF[subresource]
    return row


def _row_of_bindings() -> Answer:
    return {
        "name": "bindings",
        "singularName": "binding",
        "namespaced": True,
        "kind": "Binding",
        "verbs": ["create"],
    }


def _aggregated_row(resource: Resource) -> Answer:
    row: Answer = {
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


def _kind(group_name: str, version: str, kind: str) -> Answer:
    return {"group": group_name, "version": version, "kind": kind}
