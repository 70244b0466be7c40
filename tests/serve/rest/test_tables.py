"""The cells that `kubectl get` prints, per kind."""

import pytest

from moorage.api import timestamps
from moorage.cluster.resources import BUILT_IN, NAMESPACES
from moorage.cluster.store import Store
from moorage.serve.rest.tables import cells, columns, event_columns, table
from moorage.serve.rest.tables.stored_kind_columns import STORED_KIND_COLUMNS as STORED

CONFIG_MAPS, REPLICA_SETS = (
    next(each for each in BUILT_IN if each.kind == kind) for kind in ("ConfigMap", "ReplicaSet")
)
NOW = timestamps.to_seconds("2026-01-01T01:00:00Z")
META = {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"}

GANG = {"schedulingPolicy": {"gang": {"minCount": 2}}}
TEMPLATED = {
    "schedulingPolicy": {"basic": {}},
    "podGroupTemplateRef": {"workload": {"workloadName": "train"}},
}
SCHEDULED = {"type": "PodGroupScheduled", "status": "True"}


def obj(**fields):
    return {"metadata": META, **fields}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"), (119, "119s"), (120, "2m"), (125, "2m5s"), (600, "10m"), (10_799, "179m"),
        (10_800, "3h"), (11_000, "3h3m"), (100_000, "27h"), (172_800, "2d"), (180_000, "2d2h"),
        (86_400 * 10, "10d"), (86_400 * 730, "2y"), (86_400 * 800, "2y70d"),
        (86_400 * 365 * 9, "9y"), (-1, "0s"), (-60, "<invalid>"),
    ],
)  # fmt: skip
def test_duration(seconds, text):
    assert cells.duration(seconds) == text


@pytest.mark.parametrize(
    ("pod", "status"),
    [
        pytest.param({"status": {"phase": "Pending"}}, "Pending", id="pending"),
        pytest.param({}, "Unknown", id="no status"),
        pytest.param({"status": {"phase": "Failed", "reason": "Evicted"}}, "Evicted", id="evicted"),
        pytest.param(
            {
                "status": {
                    "phase": "Pending",
                    "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}],
                }
            },
            "SchedulingGated",
            id="gated",
        ),
        pytest.param(
            {
                "status": {
                    "phase": "Pending",
                    "containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}],
                }
            },
            "ErrImagePull",
            id="waiting",
        ),
        pytest.param(
            {
                "status": {
                    "phase": "Succeeded",
                    "containerStatuses": [{"state": {"terminated": {"reason": "Completed"}}}],
                }
            },
            "Completed",
            id="completed",
        ),
        pytest.param(
            {"status": {"containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}},
            "ExitCode:3",
            id="exit code",
        ),
        pytest.param(
            {"metadata": META | {"deletionTimestamp": "x"}, "status": {"phase": "Running"}},
            "Terminating",
            id="terminating",
        ),
        pytest.param(
            {"metadata": META | {"deletionTimestamp": "x"}, "status": {"phase": "Succeeded"}},
            "Succeeded",
            id="ended and deleted",
        ),
    ],
)
def test_pod_status(pod, status):
    assert columns.pod_status({"metadata": META, **pod}, NOW) == status


@pytest.mark.parametrize(
    ("kind", "obj", "expected"),
    [
        pytest.param(
            "Node",
            {
                "metadata": META | {"labels": {"node-role.kubernetes.io/worker": ""}},
                "spec": {"unschedulable": True},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "nodeInfo": {"kubeletVersion": "v1.36.0"},
                    "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                },
            },
            ["Ready,SchedulingDisabled", "worker", "60m", "v1.36.0", "10.0.0.1", "<none>"],
            id="node",
        ),
        pytest.param(
            "Deployment",
            obj(
                spec={"replicas": 3, "selector": {"matchLabels": {"a": "b"}}},
                status={"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1},
            ),
            ["2/3", 3, 1, "60m", "", "", "a=b"],
            id="deployment",
        ),
        pytest.param(
            "Job",
            obj(
                spec={"completions": 3},
                status={
                    "succeeded": 3,
                    "startTime": "2026-01-01T00:00:00Z",
                    "completionTime": "2026-01-01T00:00:10Z",
                    "conditions": [{"type": "Complete", "status": "True"}],
                },
            ),
            ["Complete", "3/3", "10s", "60m"],
            id="job",
        ),
        pytest.param(
            "PodDisruptionBudget",
            obj(spec={"minAvailable": "50%"}, status={"disruptionsAllowed": 1}),
            ["50%", "N/A", 1, "60m"],
            id="disruption budget",
        ),
        pytest.param(
            "PersistentVolumeClaim",
            obj(
                spec={"volumeName": "v", "storageClassName": "fast", "volumeMode": "Block"},
                status={
                    "phase": "Bound",
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"],
                },
            ),
            ["Bound", "v", "1Gi", "RWO", "fast", "<unset>", "60m", "Block"],
            id="claim",
        ),
        pytest.param(
            "PodGroup", obj(spec=GANG), ["Gang", "<none>", "Pending", "60m"], id="gang, pending"
        ),
        pytest.param(
            "PodGroup",
            obj(spec=TEMPLATED, status={"conditions": [SCHEDULED]}),
            ["Basic", "train", "Scheduled", "60m"],
            id="basic group of a workload, scheduled",
        ),
        pytest.param("ResourceClaim", obj(), ["pending", "60m"], id="device claim, pending"),
        pytest.param(
            "ResourceClaim",
            {
                "metadata": META | {"deletionTimestamp": "x"},
                "status": {"allocation": {}, "reservedFor": [{"name": "p"}]},
            },
            ["deleted,allocated,reserved", "60m"],
            id="device claim, in use and deleted",
        ),
        pytest.param(
            "ResourceSlice",
            obj(spec={"nodeName": "n1", "driver": "gpu.example.com", "pool": {"name": "p"}}),
            ["n1", "gpu.example.com", "p", "60m"],
            id="resource slice",
        ),
        pytest.param(
            "Service",
            obj(
                spec={
                    "type": "ClusterIP",
                    "clusterIP": "10.96.0.1",
                    "ports": [{"port": 80, "protocol": "TCP"}],
                    "selector": {"a": "b"},
                }
            ),
            ["ClusterIP", "10.96.0.1", "<none>", "80/TCP", "60m", "a=b"],
            id="service",
        ),
        pytest.param(
            "Event",
            obj(
                type="Warning",
                reason="FailedScheduling",
                message="0/3 nodes are available",
                eventTime="2026-01-01T00:59:00.000000Z",
                involvedObject={"kind": "Pod", "name": "web"},
                reportingComponent="default-scheduler",
            ),
            [
                "60s",
                "Warning",
                "FailedScheduling",
                "pod/web",
                "",
                "default-scheduler",
                "0/3 nodes are available",
                "60s",
                1,
                "x",
            ],
            id="event",
        ),
        pytest.param(
            "ResourceQuota",
            obj(
                status={
                    "hard": {"pods": "2", "limits.cpu": "4", "cpu": "1"},
                    "used": {"pods": "1", "cpu": "500m"},
                }
            ),
            ["cpu: 500m/1, pods: 1/2", "limits.cpu: 0/4", "60m"],
            id="quota",
        ),
        pytest.param("LimitRange", obj(), ["2026-01-01T00:00:00Z"], id="limits"),
        pytest.param(
            "ControllerRevision",
            {
                "metadata": META
                | {
                    "ownerReferences": [
                        {
                            "apiVersion": "apps/v1",
                            "kind": "StatefulSet",
                            "name": "db",
                            "controller": True,
                        }
                    ]
                },
                "revision": 3,
            },
            ["statefulset.apps/db", 3, "60m"],
            id="revision",
        ),
        pytest.param(
            "CSIDriver",
            obj(spec={"tokenRequests": [{"audience": "a"}], "volumeLifecycleModes": ["Ephemeral"]}),
            [True, False, False, "a", False, "Ephemeral", "60m"],
            id="driver",
        ),
        pytest.param(
            "RoleBinding",
            obj(
                roleRef={"kind": "Role", "name": "reader"},
                subjects=[
                    {"kind": "User", "name": "jane"},
                    {"kind": "User", "name": "joe"},
                    {"kind": "ServiceAccount", "namespace": "ci", "name": "bot"},
                ],
            ),
            ["Role/reader", "60m", "jane, joe", "", "ci/bot"],
            id="binding of a role",
        ),
        pytest.param(
            "Ingress",
            obj(spec={"rules": [{"host": h} for h in "abcd"], "tls": [{}]}),
            ["<none>", "a,b,c + 1 more...", "", "80, 443", "60m"],
            id="ingress",
        ),
        pytest.param("Ingress", obj(spec={}), ["<none>", "*", "", "80"], id="ingress of all hosts"),
        pytest.param(
            "EndpointSlice",
            obj(
                addressType="IPv4",
                ports=[{"port": 80}, {"name": "x"}],
                endpoints=[{"addresses": ["1", "2"]}, {"addresses": ["3", "4", "5"]}],
            ),
            ["IPv4", "80,x", "1,2,3 + 2 more...", "60m"],
            id="slice of endpoints",
        ),
        pytest.param(
            "HorizontalPodAutoscaler",
            obj(
                spec={
                    "scaleTargetRef": {"kind": "Deployment", "name": "web"},
                    "maxReplicas": 3,
                    "metrics": [
                        {
                            "type": "Resource",
                            "resource": {"name": "cpu", "target": {"averageUtilization": 50}},
                        }
                    ],
                }
            ),
            ["Deployment/web", "cpu: <unknown>/50%", "<unset>", 3, 0, "60m"],
            id="autoscaler",
        ),
        pytest.param(
            "CertificateSigningRequest",
            obj(status={"conditions": [{"type": "Approved"}], "certificate": "x"}),
            ["60m", "", "", "<none>", "Approved,Issued"],
            id="certificate",
        ),
        pytest.param(
            "Pod",
            obj(spec={"containers": 3}, status={"containerStatuses": "odd", "conditions": [1]}),
            ["0/0", "Unknown", "0", "60m"],
            id="pod with unexpected values",
        ),
    ],
)
def test_cells(kind, obj, expected):
    found = event_columns.EVENT_COLUMNS if kind == "Event" else {**STORED, **columns.COLUMNS}[kind]
    assert [column.cell(obj, NOW) for column in found][: len(expected)] == expected


def test_default_class_is_marked():
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    assert (
        table.object_name({"metadata": META | {"annotations": annotations}}, NOW) == "x (default)"
    )


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        pytest.param(CONFIG_MAPS, ["", 0, "<unknown>"], id="ConfigMap"),
        pytest.param(NAMESPACES, ["", "", "<unknown>"], id="Namespace"),
        pytest.param(REPLICA_SETS, ["", 0, 0, 0, "<unknown>", "", "", "<none>"], id="ReplicaSet"),
    ],
)
def test_a_bookmark_is_a_row_of_an_empty_object(resource, expected):
    bookmark = {"metadata": {"resourceVersion": "7"}}
    store = Store(clock=lambda: "", uid=lambda: "")
    (row,) = table.render_table(resource, [bookmark], store, NOW, "None")["rows"]
    assert row["cells"] == expected
