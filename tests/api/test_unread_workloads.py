"""Objects of unknown kinds: which of them make pods, and how many."""

import pytest

from moorage.api import manifests

TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "x"}]}}


def of(spec, kind="Other"):
    document = {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "x"}}
    found = manifests.read([document | {"spec": spec}])
    assert found.skipped == {f"example.com/v1 {kind}": 1}
    return [(each.namespace, each.name, each.pods) for each in found.unread_workloads]


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        pytest.param({"replicas": 5, "template": TEMPLATE}, 5, id="a Rollout"),
        pytest.param(
            {
                "pytorchReplicaSpecs": {
                    "Master": {"replicas": 1, "template": TEMPLATE},
                    "Worker": {"replicas": 3, "template": TEMPLATE},
                }
            },
            4,
            id="a PyTorchJob",
        ),
        pytest.param({"replicas": 2}, 2, id="a Prometheus"),
        pytest.param({"replicas": 0, "template": TEMPLATE}, 0, id="scaled down"),
        pytest.param(
            {
                "replicatedJobs": [
                    {"replicas": 2, "template": {"spec": {"parallelism": 4, "template": TEMPLATE}}}
                ]
            },
            8,
            id="a JobSet",
        ),
        pytest.param({"template": TEMPLATE}, None, id="no number"),
        pytest.param({"replicas": "many", "template": TEMPLATE}, None, id="not a number"),
        pytest.param({"replicas": 2, "workerTemplate": TEMPLATE}, None, id="another template"),
        pytest.param(
            {"replicas": 3, "template": {"spec": {"version": "v1"}}}, None, id="of machines"
        ),
    ],
)
def test_pods(spec, pods):
    assert of(spec) == [("default", "x", pods)]


@pytest.mark.parametrize("spec", [{"data": "x"}, None, {"replicas": True}])
def test_no_workload(spec):
    assert of(spec) == []
