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
