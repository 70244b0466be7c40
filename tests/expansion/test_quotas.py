"""Quotas of a cluster of structs: refusals, and usage that follows the objects."""

import pytest

from moorage import Simulation
from moorage.api import manifests
from moorage.expansion import expansion

CONTAINER = {"name": "c", "image": "i"}
LABELS = {"app": "web"}


def quota(name="q", **hard):
    hard = {key.replace("__", "/").replace("_", "."): value for key, value in hard.items()}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"hard": hard},
    }


def pod(name="p", requests=None, meta=None, **spec):
    container = {**CONTAINER, "resources": {"requests": requests or {}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", **(meta or {})},
        "spec": {"containers": [container], **spec},
    }


def workload(kind="Deployment", replicas=3, requests=None, **fields):
    container = {**CONTAINER, "resources": {"requests": requests or {}}}
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
        fields = {"parallelism": replicas, "completions": replicas, **fields}
    elif kind == "DaemonSet":
        fields = {"selector": {"matchLabels": LABELS}, **fields}
    else:
        fields = {"replicas": replicas, "selector": {"matchLabels": LABELS}, **fields}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": "team"},
        "spec": {**fields, "template": template},
    }


def node(name="n"):
    room = {"cpu": "64", "memory": "64Gi", "pods": "110", "gpu/x": "8"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": room},
    }


def used(sim, name="q"):
    return sim.read("ResourceQuota", "team", name)["status"]["used"]


def refused(sim):
    return {(each.kind, each.name): each.pods for each in sim.refusals}


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "Job"])
def test_pods_of_a_workload_beyond_the_quota_are_not_created(kind):
    fields = {"podManagementPolicy": "Parallel"} if kind == "StatefulSet" else {}
    sim = Simulation([node(), quota(pods="2"), workload(kind, 5, **fields)])
    sim.run()
    assert len(sim.placements) == 2
    [refusal] = sim.refusals
    assert refusal[:4] == (kind, "team", "web", 3)
    assert refusal.reason.endswith(
        "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"
    )
    assert used(sim) == {"pods": "2"}


def test_pods_of_a_daemon_set():
    sim = Simulation([*map(node, ("a", "b", "c")), quota(pods="1"), workload("DaemonSet")])
    sim.run()
    assert (len(sim.placements), refused(sim)) == (1, {("DaemonSet", "web"): 2})


def test_a_deployment_has_the_condition():
    sim = Simulation([node(), quota(pods="2"), workload()])
    sim.run()
    conditions = sim.read("Deployment", "team", "web")["status"]["conditions"]
    [failure] = [each for each in conditions if each["type"] == "ReplicaFailure"]
    assert (failure["status"], failure["reason"]) == ("True", "FailedCreate")


def test_refused_pods_are_created_when_others_end():
    short = {"annotations": {"moorage.dev/run-seconds": "100"}}
    sim = Simulation([node(), quota(pods="2"), pod("a", meta=short), workload()])
    sim.run(until=50)
    assert refused(sim) == {("Deployment", "web"): 2}
    sim.run()
    assert sim.now >= 100
    assert refused(sim) == {("Deployment", "web"): 1}
    sim.update(quota(pods="9"))
    sim.run()
    assert not sim.refusals
    assert used(sim) == {"pods": "3"}


def test_a_job_runs_as_many_pods_at_a_time_as_the_quota_allows():
    batch = workload("Job", 6)
    batch["spec"]["template"]["metadata"]["annotations"] = {"moorage.dev/run-seconds": "10"}
    sim = Simulation([node(), quota(pods="2"), batch])
    sim.run()  # Until no pod is refused any more.
    assert sim.now >= 20
    sim.run(until=60)
    assert sim.read("Job", "team", "web")["status"]["succeeded"] == 6
    assert (sim.refusals, used(sim)) == ([], {"pods": "0"})


@pytest.mark.parametrize(
    ("limits", "spec", "why"),
    [
        pytest.param(
            {"requests_cpu": "1"},
            {"requests": {"cpu": "2"}},
            "exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=0, "
            "limited: requests.cpu=1",
            id="requests",
        ),
        pytest.param(
            {"requests_gpu__x": "1"},
            {"requests": {"gpu/x": "2"}},
            "exceeded quota: q, requested: requests.gpu/x=2, used: requests.gpu/x=0, "
            "limited: requests.gpu/x=1",
            id="extended resource",
        ),
        pytest.param(
            {"limits_cpu": "1"},
            {},
            "failed quota: q: must specify limits.cpu for: c",
            id="limit not stated",
        ),
        pytest.param(
            {"count__pods": "0"},
            {},
            "exceeded quota: q, requested: count/pods=1, used: count/pods=0, limited: count/pods=0",
            id="count of pods",
        ),
    ],
)
def test_a_pod_is_refused(limits, spec, why):
    sim = Simulation([node(), quota(**limits), pod(**spec)])
    sim.run()
    assert not sim.placements
    assert [each.reason for each in sim.refusals] == [f'pods "p" is forbidden: {why}']


@pytest.mark.parametrize(
    ("scope", "spec", "is_refused"),
    [
        pytest.param({"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 9}, True, id="ends"),
        pytest.param({"scopes": ["Terminating"]}, {}, False, id="does not end"),
        pytest.param({"scopes": ["BestEffort"]}, {}, True, id="best effort"),
        pytest.param({"scopes": ["NotBestEffort"]}, {}, False, id="best effort, others limited"),
        pytest.param(
            {
                "scopeSelector": {
                    "matchExpressions": [
                        {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
                    ]
                }
            },
            {"priorityClassName": "high"},
            True,
            id="priority class",
        ),
    ],
)
def test_scopes(scope, spec, is_refused):
    limited = quota(pods="0")
    limited["spec"] |= scope
    high = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 5,
    }
    sim = Simulation([node(), high, limited, pod(**spec)])
    assert bool(sim.refusals) is is_refused


def test_claims_of_a_stateful_set_count():
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "10Gi"}},
        },
    }
    db = workload("StatefulSet", 3, volumeClaimTemplates=[claim], podManagementPolicy="Parallel")
    limit = {"requests.storage": "20Gi", "fast.storageclass.storage.k8s.io/requests.storage": "1Ti"}
    limited = quota()
    limited["spec"]["hard"] = limit
    sim = Simulation([node(), limited, db])
    sim.run()
    [refusal] = sim.refusals
    assert refusal.pods == 1
    assert refusal.reason.startswith('persistentvolumeclaims "data-web-2" is forbidden: exceeded')
    assert used(sim)["requests.storage"] == "20Gi"


def test_workloads_count():
    sim = Simulation([node(), quota(count__deployments_apps="0"), workload()])
    sim.run()
    assert refused(sim) == {("Deployment", "web"): 3}
    sim = Simulation([node(), quota(count__replicasets_apps="0"), workload()])
    sim.run()
    assert refused(sim) == {("Deployment", "web"): 3}


def test_workloads_of_one_file_count_one_after_the_other():
    other = workload(replicas=2)
    other["metadata"] = other["metadata"] | {"name": "second"}
    sim = Simulation([node(), quota(count__deployments_apps="1"), workload(), other])
    sim.run()
    assert refused(sim) == {("Deployment", "second"): 2}


def test_objects_of_a_dump_exist_already():
    stored = {"uid": "u", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    sim = Simulation([node(), quota(pods="0"), pod("a", meta=stored), pod("b")])
    assert refused(sim) == {("Pod", "b"): 1}
    assert used(sim) == {"pods": "1"}


def test_deleting_a_quota_admits_all():
    sim = Simulation([node(), quota(pods="1"), workload()])
    sim.run()
    sim.delete("ResourceQuota", "team", "q")
    sim.run()
    assert (len(sim.placements), sim.refusals) == (3, [])


def test_expansion_without_time():
    found = [node(), quota(pods="2"), pod("a"), workload()]
    expanded = expansion(manifests.read(found).everything)
    assert sum(obj.kind == "Pod" for obj in expanded.objects) == 2
    assert [each[:4] for each in expanded.refusals] == [("Deployment", "team", "web", 2)]


# Limit ranges ------------------------------------------------------------------------------------


def limit_range(kind="Container", **bounds):
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "team"},
        "spec": {"limits": [{"type": kind, **bounds}]},
    }


def test_pods_of_a_workload_out_of_bounds_are_not_created():
    sim = Simulation([node(), limit_range(min={"cpu": "1"}), workload(requests={"cpu": "500m"})])
    sim.run()
    [refusal] = sim.refusals
    assert refusal[:4] == ("Deployment", "team", "web", 3)
    assert refusal.reason.endswith("minimum cpu usage per Container is 1, but request is 500m")
    sim.delete("LimitRange", "team", "l")
    sim.run()
    assert (len(sim.placements), sim.refusals) == (3, [])


def test_defaults_of_a_limit_range_count_for_a_quota():
    found = [node(), quota(requests_cpu="1"), limit_range(defaultRequest={"cpu": "500m"})]
    sim = Simulation([*found, workload()])
    sim.run()
    assert used(sim) == {"requests.cpu": "1"}
    assert refused(sim) == {("Deployment", "web"): 1}


def test_claims_out_of_bounds():
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "team"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
        },
    }
    bounds = limit_range("PersistentVolumeClaim", max={"storage": "5Gi"})
    template = {"metadata": {"name": "c"}, "spec": claim["spec"]}
    sim = Simulation(
        [node(), bounds, claim, workload("StatefulSet", 1, volumeClaimTemplates=[template])]
    )
    sim.run()
    why = "maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 10Gi"
    assert [each.reason.partition(" is forbidden: ")[2] for each in sim.refusals] == [why, why]


def test_a_set_of_a_live_cluster_does_not_get_pods_that_a_quota_refuses():
    stored = {"resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    pods = []
    owner = workload("ReplicaSet", 3)
    owner["metadata"] = {**owner["metadata"], **stored, "uid": "set"}
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "set"}
    for i in range(2):
        meta = {**stored, "uid": f"u{i}", "labels": LABELS}
        meta["ownerReferences"] = [{**reference, "controller": True}]
        pods.append(pod(f"web-{i}", meta=meta, nodeName="n"))
    expanded = expansion(manifests.read([node(), quota(pods="2"), owner, *pods]).everything)
    assert sum(obj.kind == "Pod" for obj in expanded.objects) == 2
    assert [each[:4] for each in expanded.refusals] == [("ReplicaSet", "team", "web", 1)]


def test_a_claim_grows_within_the_quota():
    def claim(size, **spec):
        storage = {"requests": {"storage": size}}
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "team"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": storage, **spec},
        }

    fast = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "moorage.dev/disk",
        "allowVolumeExpansion": True,
    }
    sim = Simulation([fast, quota(requests_storage="5Gi"), claim("2Gi", storageClassName="fast")])
    sim.run()
    bound = sim.read("PersistentVolumeClaim", "team", "data")["spec"]
    sim.update(claim("4Gi", **{k: v for k, v in bound.items() if k != "resources"}))
    with pytest.raises(Exception, match=r"requested: requests\.storage=2Gi, used"):
        sim.update(claim("6Gi", **{k: v for k, v in bound.items() if k != "resources"}))
    found = sim.read("ResourceQuota", "team", "q")
    assert found["status"]["used"] == {"requests.storage": "4Gi"}
