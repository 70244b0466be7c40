"""OpenAPI documents: one per group version in version 3, one for all in version 2.

`kubectl explain` reads version 3. kubectl also reads there that the server validates fields, and
how client-side apply merges lists.
"""

import hashlib
from typing import Any

import msgspec

from moorage.api.schema import messages
from moorage.cluster.resources import Resource, ResourceRegistry
from moorage.serve.openapi import schemas
from moorage.serve.openapi.schemas import Json

_INFO = {"title": "Moorage", "version": "v1"}
_V3, _V2 = "#/components/schemas/", "#/definitions/"
_OPTIONS = ("dryRun", "fieldManager", "fieldValidation")


class OpenApi:
    """The documents of a server; a document is generated when it is asked for."""

    def __init__(self, registry: ResourceRegistry) -> None:
        self._registry = registry

    def index(self) -> Json:
        """`/openapi/v3`: the URLs of the documents; a changed document has another one."""
        found = {}
        for (group, version), resources in self._registry.versions().items():
            path = f"apis/{group}/{version}" if group else f"api/{version}"
            tag = ""
            if any(each.custom for each in resources):
                tag = f"?hash={_digest([each.schema for each in resources])}"
            found[path] = {"serverRelativeURL": f"/openapi/v3/{path}{tag}"}
        return {"paths": found}

    def v3(self, path: str) -> Json | None:
        """`/openapi/v3/apis/GROUP/VERSION`; None if no such version is served."""
        match path.split("/"):
            case ["api", version]:
                group = ""
            case ["apis", group, version]:
                pass
            case _:
                return None
        found = self._registry.versions().get((group, version))
        if found is None:
            return None
        return {
            "openapi": "3.0.0",
            "info": _INFO,
            "paths": {
                path: operations
                for each in found
                for path, operations in _operations(each, self._name(each), _V3).items()
            },
            "components": {"schemas": self._schemas(found, _V3)},
        }

    def v2(self) -> Json:
        """`/openapi/v2`."""
        found = list(self._registry)
        return {
            "swagger": "2.0",
            "info": _INFO,
            "paths": {
                path: operations
                for each in found
                for path, operations in _operations(each, self._name(each), _V2).items()
            },
            "definitions": self._schemas(found, _V2),
        }

    def _schemas(self, resources: list[Resource], root: str) -> Json:
        kinds = {each: name for each in resources if (name := _message_name(each))}
        used = [*kinds.values(), schemas.OBJECT_META, schemas.DELETE_OPTIONS]
        found = {
            schemas.schema_name(name): schemas.schema(name, root)
            for name in sorted(schemas.reachable(used))
        }
        for resource in resources:
            name = self._name(resource)
            own = found.get(name) or schemas.custom_schema(resource.schema, root)
            found[name] = {**own, "x-kubernetes-group-version-kind": [kind_of(resource)]}
        return found

    def _name(self, resource: Resource) -> str:
        message = _message_name(resource)
        if message is not None:
            return schemas.schema_name(message)
        group = ".".join(reversed(resource.group.split(".")))
        return f"{group}.{resource.version}.{resource.kind}"


def kind_of(resource: Resource) -> Json:
    """Group, version and kind, as extensions of OpenAPI have them."""
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _message_name(resource: Resource) -> str | None:
    message = messages.message_of(resource.api_version, resource.kind)
    return None if message is None or resource.custom else message.name


def _operations(resource: Resource, schema: str, root: str) -> Json:
    base = f"/apis/{resource.group}/{resource.version}" if resource.group else "/api/v1"
    collection = f"{base}/namespaces/{{namespace}}" if resource.namespaced else base
    collection = f"{collection}/{resource.plural}"
    found = {collection: {"post": _operation(resource, "post", schema, root)}}
    if not resource.is_review:
        found[collection]["get"] = _operation(resource, "list", schema, root)
        found[f"{collection}/{{name}}"] = {
            verb: _operation(resource, verb, schema, root)
            for verb in ("get", "put", "patch", "delete")
        }
    return found


def _operation(resource: Resource, action: str, schema: str, root: str) -> Json:
    is_v3 = root == _V3
    names: tuple[str, ...] = _OPTIONS if action in ("post", "put", "patch") else ()
    names += ("force",) if action == "patch" else ()
    text = {"type": "string", "uniqueItems": True}
    value = {"schema": {"$ref": f"{root}{schema}"}}
    response: Json = {"description": "OK"}
    response |= {"content": {"application/json": value}} if is_v3 else value
    typed: Json = {"schema": text} if is_v3 else text
    parameters = [{"name": name, "in": "query", **typed} for name in names]
    return {
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": kind_of(resource),
        # Go drops an empty list, and clients compare documents before and after.
        **({"parameters": parameters} if parameters else {}),
        "responses": {"200": response},
    }


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value)).hexdigest()[:32].upper()
