"""Kinds that are stored and shown, and the versions of autoscalers."""

import pytest

from moorage.cluster.resources import BUILT_IN

SCALERS = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
TARGET = {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}
STORED_ONLY = ("rbac.authorization.k8s.io", "networking.k8s.io", "flowcontrol.apiserver.k8s.io")


@pytest.mark.parametrize(
    "row", [row for row in BUILT_IN if row.group in STORED_ONLY], ids=lambda row: row.kind
)
def test_kind_is_stored_and_shown(server, row):
    inner = "namespaces/default/" if row.namespaced else ""
    path = f"/apis/{row.group}/{row.version}/{inner}{row.plural}"
    assert server.post(path, {"metadata": {"name": "x"}}).status == 201
    assert server.get(f"{path}/x").json["kind"] == row.kind
    shown = server.get(path, Accept="application/json;as=Table;v=v1;g=meta.k8s.io").json
    assert len(shown["rows"][0]["cells"]) == len(shown["columnDefinitions"])
    assert server.delete(f"{path}/x").status == 200


@pytest.mark.parametrize("name", ["system:node", "a b", "A"])
def test_names_of_roles_are_free(server, name):
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    assert server.post(path, {"metadata": {"name": name}}).status == 201


def test_role_without_a_name_for_urls(server):
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    assert server.post(path, {"metadata": {"name": "a/b"}}).status == 422


def test_autoscaler_in_both_versions(server):
    spec = {"scaleTargetRef": TARGET, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50}
    created = server.post(SCALERS.format("v1"), {"metadata": {"name": "web"}, "spec": spec}).json
    assert (created["apiVersion"], created["spec"]) == ("autoscaling/v1", spec)
    newer = server.get(f"{SCALERS.format('v2')}/web").json
    target = {"type": "Utilization", "averageUtilization": 50}
    assert newer["spec"]["metrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    ]
    listed = server.get(SCALERS.format("v1")).json
    assert listed["items"][0]["spec"] == spec
