"""Unknown fields and wrong types of built-in kinds and of custom resources."""

import pytest

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 5},
        "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
        "parts": {
            "type": "array",
            "maxItems": 2,
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "port": {"type": "integer", "default": 80},
                },
            },
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "limit": {"x-kubernetes-int-or-string": True},
        "choice": {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
    },
}


@pytest.fixture
def widgets(server):
    schema = {"type": "object", "properties": {"spec": SPEC}}
    version = {"name": "v1", "served": True, "storage": True}
    version["schema"] = {"openAPIV3Schema": schema}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [version],
    }
    server.post(DEFINITIONS, {"metadata": {"name": "widgets.example.com"}, "spec": spec})
    return WIDGETS


def widget(**spec):
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"size": 1, **spec},
    }


def test_strict_refuses_unknown_fields(server, make_pod):
    pod = make_pod("web", containers=[{"name": "a", "image": "b", "imagine": 1}])
    pod["spec"]["replicas"] = 1
    answer = server.post(f"{PODS}?fieldValidation=Strict", pod)
    assert answer.status == 400
    assert answer.json["message"] == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
        'unknown field "spec.containers[0].imagine", unknown field "spec.replicas"'
    )


def test_warning_names_unknown_fields_and_drops_them(server):
    answer = server.post(MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}, "dota": {}})
    assert (answer.status, answer.headers["Warning"]) == (201, '299 - "unknown field \\"dota\\""')
    assert "dota" not in server.get(f"{MAPS}/a").json


def test_ignore_drops_them_silently(server):
    answer = server.post(f"{MAPS}?fieldValidation=Ignore", {"metadata": {"name": "a", "x": 1}})
    assert answer.status == 201
    assert answer.headers.get("Warning") is None
    assert "x" not in answer.json["metadata"]


def test_patch_is_checked(server):
    server.post(MAPS, {"metadata": {"name": "a"}})
    path, media = f"{MAPS}/a?fieldValidation=Strict", "application/merge-patch+json"
    answer = server.request("PATCH", path, {"dota": 1}, media=media)
    assert (answer.status, answer.json["reason"]) == (422, "Invalid")


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("priority", "high", "cannot unmarshal string into Go struct field PodSpec.spec.priority"),
        ("hostNetwork", "yes", "Go struct field PodSpec.spec.hostNetwork of type bool"),
        ("tolerations", {}, "cannot unmarshal object into Go struct field"),
        ("nodeSelector", {"a": 1}, "cannot unmarshal number into Go struct field"),
    ],
)
def test_wrong_types(server, make_pod, field, value, text):
    pod = make_pod("web")
    pod["spec"][field] = value
    answer = server.post(PODS, pod)
    assert answer.status == 400
    assert text in answer.json["message"]


def test_custom_resource_is_pruned_and_gets_defaults(server, widgets):
    sent = widget(extra=1, parts=[{"id": "a", "x": 1}], any={"b": 1}, labels={"k": "v"}, limit="5%")
    created = server.post(widgets, sent)
    assert created.headers["Warning"] == '299 - "unknown field \\"spec.extra\\""'
    assert created.json["spec"] == {
        "size": 1,
        "colour": "red",
        "parts": [{"id": "a", "port": 80}],
        "any": {"b": 1},
        "labels": {"k": "v"},
        "limit": "5%",
    }


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"size": "big"}, 'spec.size in body must be of type integer: "string"'),
        ({"size": 0}, "spec.size in body should be greater than or equal to 1"),
        ({"size": 6}, "Invalid value: 6: spec.size in body should be less than or equal to 5"),
        ({"colour": "green"}, 'Unsupported value: "green": supported values: "red", "blue"'),
        ({"name": "A"}, "spec.name in body should match '^[a-z]+$'"),
        ({"name": "abcdef"}, "spec.name: Too long: may not be more than 5 bytes"),
        ({"parts": [{}, {}, {}]}, "spec.parts: Too many: 3: must have at most 2 items"),
        ({"parts": [{"id": 1}]}, "spec.parts[0].id in body must be of type string"),
        ({"labels": {"k": 1}}, "spec.labels.k in body must be of type string"),
        ({"limit": {}}, 'spec.limit in body must be of type integer,string: "object"'),
        ({"choice": {}}, "must validate one and only one schema (oneOf)"),
        ({"choice": {"a": "x", "b": "y"}}, "Found 2 valid alternatives"),
    ],
)
def test_invalid_custom_resource(server, widgets, spec, text):
    answer = server.post(widgets, widget(**spec))
    assert (answer.status, answer.json["reason"]) == (422, "Invalid")
    assert text in answer.json["message"]


def test_missing_field_of_a_custom_resource(server, widgets):
    answer = server.post(widgets, {**widget(), "spec": {}})
    message = 'Widget.example.com "w" is invalid: spec.size: Required value'
    assert (answer.status, answer.json["message"]) == (422, message)


def test_update_of_a_custom_resource_is_validated(server, widgets):
    created = server.post(widgets, widget()).json
    created["spec"]["size"] = 9
    assert server.put(f"{widgets}/w", created).status == 422


def test_strict_refuses_unknown_fields_of_custom_resources(server, widgets):
    answer = server.post(f"{widgets}?fieldValidation=Strict", widget(extra=1))
    assert answer.status == 400
    assert 'strict decoding error: unknown field "spec.extra"' in answer.json["message"]


def test_new_default_is_seen_in_stored_objects(server, widgets):
    server.post(widgets, widget())
    definition = server.get(f"{DEFINITIONS}/widgets.example.com").json
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["name"]["default"] = "abc"
    assert server.put(f"{DEFINITIONS}/widgets.example.com", definition).status == 200
    assert server.get(f"{widgets}/w").json["spec"]["name"] == "abc"
    assert server.get(widgets).json["items"][0]["spec"]["name"] == "abc"


def test_singular_name_of_a_definition(server):
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "mice", "singular": "mouse", "kind": "Rodent"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    }
    server.post(DEFINITIONS, {"metadata": {"name": "mice.example.com"}, "spec": spec})
    listed = server.get("/apis/example.com/v1").json["resources"]
    assert [each["singularName"] for each in listed] == ["mouse"]
