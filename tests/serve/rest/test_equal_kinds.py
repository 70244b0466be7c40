"""Custom resources whose kind or plural is that of a built-in one, in another group."""

import pytest

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# Fields that the built-in kinds do not allow, or have with other types.
FIELDS = {
    "spec": {
        "capacity": {"cpu": "lots"},
        "hard": {"pods": "many"},
        "limits": [{"max": {"cpu": "x"}}],
        "replicas": "few",
        "template": {"spec": {"containers": [{"resources": {"requests": {"cpu": "no"}}}]}},
    },
    "data": {"number": 5},
    "type": 7,
}


def definition(group, kind, plural, version="v1"):
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "subresources": {"status": {}}}
    served["schema"] = {"openAPIV3Schema": schema}
    names = {"kind": kind, "plural": plural, "listKind": f"{kind}List"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [served]}
    return {"metadata": {"name": f"{plural}.{group}"}, "spec": spec}


@pytest.mark.parametrize(
    ("group", "version", "kind", "plural"),
    [
        pytest.param("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups", id="next to ours"),
        pytest.param("scheduling.moorage.dev", "v1alpha1", "Plan", "plans", id="own group"),
        pytest.param("example.com", "v1", "Pod", "pods", id="pods"),
        pytest.param("example.com", "v1", "Node", "nodes", id="nodes"),
        pytest.param("example.com", "v1", "Queue", "queues", id="queues"),
        pytest.param("example.com", "v1", "Workload", "workloads", id="workloads"),
        pytest.param("example.com", "v1", "Deployment", "deployments", id="deployments"),
        pytest.param("example.com", "v1", "ResourceQuota", "resourcequotas", id="quotas"),
        pytest.param("example.com", "v1", "LimitRange", "limitranges", id="limit ranges"),
        pytest.param("example.com", "v1", "PersistentVolume", "persistentvolumes", id="volumes"),
        pytest.param("example.com", "v1", "Secret", "secrets", id="secrets"),
        pytest.param("example.com", "v1", "Event", "events", id="events"),
        pytest.param("example.com", "v1", "Namespace", "namespaces", id="namespaces"),
    ],
)
def test_every_verb(server, group, version, kind, plural):
    created = server.post(DEFINITIONS, definition(group, kind, plural, version))
    assert created.status == 201
    stated = {"apiVersion": f"{group}/{version}", "kind": kind}
    listed = f"/apis/{group}/{version}/namespaces/default/{plural}"
    served = server.get(f"/apis/{group}/{version}").json["resources"]
    assert (plural, kind) in [(each["name"], each["kind"]) for each in served]
    obj = {**stated, "metadata": {"name": "one"}, **FIELDS}
    made = server.post(listed, obj)
    assert made.status == 201, made.json
    assert {key: made.json.get(key) for key in FIELDS} == FIELDS
    changed = {**made.json, "type": 8}
    assert server.put(f"{listed}/one", changed).json["type"] == 8
    merged = server.patch(f"{listed}/one", {"type": 9}, "application/merge-patch+json")
    assert merged.json["type"] == 9
    status = server.put(f"{listed}/one/status", {**merged.json, "status": {"phase": 5}})
    assert status.json["status"] == {"phase": 5}
    (item,) = server.get(listed).json["items"]
    assert item["type"] == 9
    table = server.get(listed, Accept="application/json;as=Table;v=v1;g=meta.k8s.io").json
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Age"]
    (event,) = server.watch(f"{listed}?watch=1&timeoutSeconds=0")
    assert event["object"]["apiVersion"] == f"{group}/{version}"
    assert server.delete(f"{listed}/one").status == 200
    assert server.get(listed).json["items"] == []


def test_a_definition_next_to_a_built_in_kind_takes_nothing_from_it(server):
    group, version = "scheduling.x-k8s.io", "v1alpha1"
    path = f"/apis/{group}/{version}/namespaces/default/elasticquotas"
    quota = {"metadata": {"name": "q"}, "spec": {"max": {"cpu": "4"}}}
    assert server.post(path, quota).status == 201
    for kind, plural in (("ElasticQuota", "elasticquotas"), ("ElasticQuota", "others")):
        assert server.post(DEFINITIONS, definition(group, kind, plural, version)).status == 201
        assert server.delete(f"{DEFINITIONS}/{plural}.{group}").status == 200
    assert [each["metadata"]["name"] for each in server.get(path).json["items"]] == ["q"]
    wrong = {"metadata": {"name": "r"}, "spec": {"max": {"cpu": "four"}}}
    assert server.post(path, wrong).status == 400


def test_as_in_an_api_server_its_own_group_versions_get_no_further_kinds(server):
    made = server.post(DEFINITIONS, definition("networking.k8s.io", "Gate", "gates"))
    assert made.status == 201
    assert server.get("/apis/networking.k8s.io/v1/namespaces/default/gates").status == 404


def test_a_name_that_another_definition_of_the_group_has(server):
    """As in an API server, it is served once the name is free."""

    def conditions(plural):
        found = server.get(f"{DEFINITIONS}/{plural}.example.com").json["status"]
        return {
            each["type"]: (each["status"], each["reason"], each["message"])
            for each in found["conditions"]
        }

    for plural in ("gates", "doors"):
        assert server.post(DEFINITIONS, definition("example.com", "Gate", plural)).status == 201
    assert conditions("gates")["Established"][0] == "True"
    assert conditions("doors") == {
        "NamesAccepted": ("False", "ListKindConflict", '"GateList" is already in use'),
        "Established": ("False", "NotAccepted", "not all names are accepted"),
    }
    gates, doors = (
        f"/apis/example.com/v1/namespaces/default/{each}" for each in ("gates", "doors")
    )
    assert server.get(doors).status == 404
    assert server.post(gates, {"metadata": {"name": "a"}}).status == 201
    assert server.delete(f"{DEFINITIONS}/doors.example.com").status == 200
    assert len(server.get(gates).json["items"]) == 1
    assert server.post(DEFINITIONS, definition("example.com", "Gate", "doors")).status == 201
    assert server.delete(f"{DEFINITIONS}/gates.example.com").status == 200
    assert conditions("doors")["Established"][0] == "True"
    assert server.post(doors, {"metadata": {"name": "a"}}).json["kind"] == "Gate"
    assert server.get(gates).status == 404


def test_objects_go_with_a_definition_that_had_a_finalizer(server):
    held = definition("example.com", "Gate", "gates")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    gates = "/apis/example.com/v1/namespaces/default/gates"
    server.post(DEFINITIONS, held)
    server.post(gates, {"metadata": {"name": "a"}})
    server.delete(f"{DEFINITIONS}/gates.example.com")
    merge = "application/merge-patch+json"
    path = f"{DEFINITIONS}/gates.example.com"
    server.patch(path, {"metadata": {"finalizers": None}}, merge)
    assert server.get(path).status == 404
    server.post(DEFINITIONS, definition("example.com", "Gate", "gates"))
    assert server.get(gates).json["items"] == []
