"""Which resources there are: the built-in ones, and those that definitions add.

A CustomResourceDefinition makes its kind served, in each version that it serves. All versions
show one storage; there is no conversion between them but the `apiVersion`.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from moorage.serve.change_log import DELETED, Change
from moorage.serve.controllers.objects import Object
from moorage.serve.resources import BUILT_IN, CLUSTER, DEFINITIONS, NAMESPACED, Resource

GroupVersion = tuple[str, str]


class Catalog:
    """Resources by place and by kind."""

    def __init__(self, definitions: Iterable[Object] = ()) -> None:
        self._by_place: dict[tuple[str, str, str], Resource] = {}
        self._by_kind: dict[tuple[str, str], Resource] = {}
        self._custom: dict[str, list[Resource]] = {}
        for resource in BUILT_IN:
            self._add(resource)
        for definition in definitions:
            self._define(definition)

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._by_place.values())

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource at a place of the API."""
        return self._by_place.get((group, version, plural))

    def of(self, obj: Object) -> Resource | None:
        """The resource of an object."""
        return self._by_kind.get((obj.get("apiVersion", ""), obj.get("kind", "")))

    def defined_by(self, definition: Object) -> list[Resource]:
        """The resources that a definition adds, one per version."""
        return self._custom.get(definition["metadata"]["name"], [])

    def versions(self) -> dict[GroupVersion, list[Resource]]:
        """All group versions with their resources, in the order of their coming."""
        found: dict[GroupVersion, list[Resource]] = {}
        for resource in self:
            found.setdefault((resource.group, resource.version), []).append(resource)
        return found

    def observe(self, change: Change) -> None:
        """Follow the definitions in a store."""
        if change.resource is DEFINITIONS:
            self._forget(change.object["metadata"]["name"])
            if change.type != DELETED:
                self._define(change.object)

    def _add(self, resource: Resource) -> None:
        self._by_place[resource.group, resource.version, resource.plural] = resource
        self._by_kind[resource.api_version, resource.kind] = resource

    def _forget(self, name: str) -> None:
        for resource in self._custom.pop(name, ()):
            self._by_place.pop((resource.group, resource.version, resource.plural), None)
            self._by_kind.pop((resource.api_version, resource.kind), None)

    def _define(self, definition: Object) -> None:
        rows = list(_rows(definition))
        built_in = {resource.api_version for resource in BUILT_IN}
        rows = [row for row in rows if row.api_version not in built_in]
        self._custom[definition["metadata"]["name"]] = rows
        for row in rows:
            self._add(row)


def _rows(definition: Object) -> Iterator[Resource]:
    """The resources that a definition, already checked, describes."""
    spec = definition["spec"]
    names = spec["names"]
    for version in spec["versions"]:
        if version.get("served"):
            yield Resource(
                spec["group"],
                version["name"],
                names["kind"],
                names["plural"],
                NAMESPACED if spec["scope"] == NAMESPACED else CLUSTER,
                tuple(names.get("shortNames", ())),
                tuple(_subresources(version)),
                tuple(names.get("categories", ())),
                stored_as=f"{names['plural']}.{spec['group']}",
                custom=True,
            )


def _subresources(version: dict[str, Any]) -> Iterator[str]:
    declared = version.get("subresources") or {}
    if "status" in declared:
        yield "status"
