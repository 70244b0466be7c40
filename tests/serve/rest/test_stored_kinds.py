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
    spec = {"scaleTargetRef": TARGET, "minReplicas": 1, "maxReplicas": 3}
    spec["targetCPUUtilizationPercentage"] = 50
    created = server.post(SCALERS.format("v1"), {"metadata": {"name": "web"}, "spec": spec}).json
    assert (created["apiVersion"], created["spec"]) == ("autoscaling/v1", spec)
    newer = server.get(f"{SCALERS.format('v2')}/web").json
    target = {"type": "Utilization", "averageUtilization": 50}
    assert newer["spec"]["metrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    ]
    listed = server.get(SCALERS.format("v1")).json
    assert listed["items"][0]["spec"] == spec


RBAC = "rbac.authorization.k8s.io"
DEFAULTS = [
    pytest.param(
        "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
        {"spec": {"podSelector": {}, "egress": [{"ports": [{"port": 53}]}]}},
        {
            "spec": {
                "podSelector": {},
                "policyTypes": ["Ingress", "Egress"],
                "egress": [{"ports": [{"port": 53, "protocol": "TCP"}]}],
            }
        },
        id="network policy",
    ),
    pytest.param(
        f"/apis/{RBAC}/v1/clusterrolebindings",
        {
            "roleRef": {"kind": "ClusterRole", "name": "r"},
            "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}],
        },
        {
            "roleRef": {"kind": "ClusterRole", "name": "r", "apiGroup": RBAC},
            "subjects": [
                {"kind": "User", "name": "u", "apiGroup": RBAC},
                {"kind": "ServiceAccount", "name": "s"},
            ],
        },
        id="binding",
    ),
    pytest.param(
        "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
        {"spec": {"type": "Limited", "limited": {"limitResponse": {"queuing": {"queues": 3}}}}},
        {
            "spec": {
                "type": "Limited",
                "limited": {
                    "nominalConcurrencyShares": 30,
                    "lendablePercent": 0,
                    "limitResponse": {
                        "queuing": {"queues": 3, "handSize": 8, "queueLengthLimit": 50}
                    },
                },
            }
        },
        id="priority level",
    ),
    pytest.param(
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
        {"webhooks": [{"name": "a.b.c", "rules": [{"operations": ["*"]}], "clientConfig": {}}]},
        {
            "webhooks": [
                {
                    "name": "a.b.c",
                    "rules": [{"operations": ["*"], "scope": "*"}],
                    "clientConfig": {},
                    "failurePolicy": "Fail",
                    "matchPolicy": "Equivalent",
                    "namespaceSelector": {},
                    "objectSelector": {},
                    "timeoutSeconds": 10,
                    "reinvocationPolicy": "Never",
                }
            ]
        },
        id="webhook",
    ),
]


@pytest.mark.parametrize(("path", "sent", "expected"), DEFAULTS)
def test_defaults(server, path, sent, expected):
    created = server.post(path, {"metadata": {"name": "x"}, **sent}).json
    assert {key: created[key] for key in expected} == expected


def test_addresses_of_a_service(server):
    sent = {
        "metadata": {"name": "web"},
        "spec": {"ports": [{"port": 80}], "clusterIP": "10.96.0.9"},
    }
    spec = server.post("/api/v1/namespaces/default/services", sent).json["spec"]
    assert spec["clusterIPs"] == ["10.96.0.9"]
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")
