"""OpenAPI documents over HTTP: schemas of built-in kinds and of custom resources."""

import pytest

from moorage.serve.openapi import protobuf_v2
from moorage.serve.protobuf import wire

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCHEMA = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
}


def define(server, schema):
    version = {"name": "v1", "served": True, "storage": True}
    version["schema"] = {"openAPIV3Schema": schema}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [version],
    }
    return server.post(DEFINITIONS, {"metadata": {"name": "widgets.example.com"}, "spec": spec})


def references(value):
    if isinstance(value, dict):
        yield from ([value["$ref"]] if isinstance(value.get("$ref"), str) else [])
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def document(server, path):
    url = server.get("/openapi/v3").json["paths"][path]["serverRelativeURL"]
    return server.get(url).json


@pytest.mark.parametrize("path", ["api/v1", "apis/apps/v1", "apis/apiextensions.k8s.io/v1"])
def test_references_are_in_the_same_document(server, path):
    found = document(server, path)
    names = {ref.removeprefix("#/components/schemas/") for ref in references(found["paths"])}
    schemas = found["components"]["schemas"]
    for name, schema in schemas.items():
        if not name.endswith("JSONSchemaProps"):  # It has a field `$ref`.
            names |= {ref.removeprefix("#/components/schemas/") for ref in references(schema)}
    assert names - set(schemas) == set()


def test_fields_with_their_rules(server):
    schemas = document(server, "api/v1")["components"]["schemas"]
    container = schemas["io.k8s.api.core.v1.Container"]
    assert container["required"] == ["name"]
    assert container["properties"]["ports"] == {
        "type": "array",
        "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.ContainerPort"},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
        "x-kubernetes-patch-strategy": "merge",
        "x-kubernetes-patch-merge-key": "containerPort",
    }
    volume = schemas["io.k8s.api.core.v1.Volume"]["properties"]
    assert {"name", "emptyDir", "configMap"} <= set(volume)
    assert "kind" in schemas["io.k8s.api.core.v1.Pod"]["properties"]
    assert "kind" not in schemas["io.k8s.api.core.v1.PodTemplateSpec"]["properties"]


def test_kubectl_finds_that_the_server_validates_fields(server):
    path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    patch = document(server, "apis/apps/v1")["paths"][path]["patch"]
    assert "fieldValidation" in [each["name"] for each in patch["parameters"]]


def test_schema_of_a_custom_resource(server):
    define(server, SCHEMA)
    schema = document(server, "apis/example.com/v1")["components"]["schemas"][
        "com.example.v1.Widget"
    ]
    assert schema["properties"]["spec"] == SCHEMA["properties"]["spec"]
    assert schema["x-kubernetes-group-version-kind"] == [
        {"group": "example.com", "version": "v1", "kind": "Widget"}
    ]


@pytest.mark.parametrize("properties", [{}, {"properties": {"spec": {"type": "object"}}}])
def test_version_2_names_no_field_where_unknown_ones_are_kept(server, properties):
    """Otherwise kubectl refuses a list of such objects."""
    define(server, {"type": "object", "x-kubernetes-preserve-unknown-fields": True, **properties})
    assert server.get("/openapi/v2").json["definitions"]["com.example.v1.Widget"] == {
        "type": "object",
        "x-kubernetes-group-version-kind": [
            {"group": "example.com", "version": "v1", "kind": "Widget"}
        ],
    }


def test_changed_definition_has_another_url(server):
    define(server, SCHEMA)
    before = server.get("/openapi/v3").json["paths"]["apis/example.com/v1"]
    definition = server.get(f"{DEFINITIONS}/widgets.example.com").json
    size = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    size["properties"]["colour"] = {"type": "string"}
    server.put(f"{DEFINITIONS}/widgets.example.com", definition)
    assert server.get("/openapi/v3").json["paths"]["apis/example.com/v1"] != before


def test_unknown_version_has_no_document(server):
    assert server.get("/openapi/v3/apis/none/v1").status == 404


def test_version_2_in_protobuf(server):
    define(server, SCHEMA)
    answer = server.get("/openapi/v2", Accept=protobuf_v2.MEDIA_TYPE)
    assert answer.headers["Content-Type"] == protobuf_v2.RESPONSE_TYPE
    definitions = wire.texts(answer.body)[9]
    names = [wire.texts(each)[1].decode() for _, each in wire.fields(definitions)]
    assert {"io.k8s.api.core.v1.Pod", "com.example.v1.Widget"} <= set(names)
    assert set(names) == set(server.get("/openapi/v2").json["definitions"])
