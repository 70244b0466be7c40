"""OpenAPI, as far as kubectl needs it: which kinds there are, and that the server checks fields.

There are no schemas of fields. `kubectl explain` shows the kind and no more; `kubectl create` and
`apply` leave checking to the server, as they do with any current one.
"""

from typing import Any

from moorage.serve.catalog import Catalog
from moorage.serve.resources import Resource
from moorage.serve.rest import paths

Answer = dict[str, Any]

# How kubectl asks for it, and how it is answered.
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
PROTOBUF_ANSWER = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def index(catalog: Catalog) -> Answer:
    """`/openapi/v3`: where the documents are."""
    found = {}
    for group, version in catalog.versions():
        path = f"apis/{group}/{version}" if group else f"api/{version}"
        found[path] = {"serverRelativeURL": f"/openapi/v3/{path}"}
    return {"paths": found}


def document(catalog: Catalog, path: str) -> Answer:
    """`/openapi/v3/apis/GROUP/VERSION`."""
    match path.split("/"):
        case ["api", version]:
            group = ""
        case ["apis", group, version]:
            pass
        case _:
            raise paths.nowhere()
    resources = catalog.versions().get((group, version))
    if resources is None:
        raise paths.nowhere()
    return {
        "openapi": "3.0.0",
        "info": {"title": "Moorage", "version": "v1"},
        "paths": {_path(each): _operations(each) for each in resources},
        "components": {"schemas": {_name(each): _schema(each) for each in resources}},
    }


def swagger(catalog: Catalog) -> Answer:
    """`/openapi/v2`."""
    return {
        "swagger": "2.0",
        "info": {"title": "Moorage", "version": "v1"},
        "paths": {},
        "definitions": {_name(each): _schema(each) for each in catalog},
    }


def protobuf() -> bytes:
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


def _operations(resource: Resource) -> Answer:
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


def _schema(resource: Resource) -> Answer:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    fields: Answer = {
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
