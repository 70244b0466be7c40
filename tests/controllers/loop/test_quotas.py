"""ResourceQuotas: usage in the status, and refusal of objects beyond them."""

import pytest

from moorage.cluster.status_errors import ForbiddenError
from moorage.controllers import resource_quota

from .test_workloads import workload


def pod(requests=None, limits=None, **spec):
    resources = {"requests": requests or {}, "limits": limits or {}}
    return {"spec": {"containers": [{"name": "c", "image": "i", "resources": resources}], **spec}}


def used(world, name="q"):
    return world.get("ResourceQuota", name)["status"]["used"]


def quota(world, name="q", **fields):
    hard = {key.replace("__", "/").replace("_", "."): value for key, value in fields.items()}
    world.create("ResourceQuota", name, spec={"hard": hard})
    world.run(1)


def test_usage_follows_the_objects(world):
    world.nodes(1)
    quota(world, pods="3", requests_cpu="2", limits_memory="1Gi", secrets="5")
    assert used(world) == {
        "pods": "0",
        "requests.cpu": "0",
        "limits.memory": "0",
        "secrets": "0",
    }
    world.create("Pod", "a", **pod({"cpu": "500m"}, {"memory": "256Mi"}))
    world.create("Secret", "c")
    world.run(5)
    expected = {"pods": "1", "requests.cpu": "500m", "limits.memory": "256Mi", "secrets": "1"}
    assert used(world) == expected
    world.delete("Pod", "a")
    world.run(5)
    assert (used(world)["pods"], used(world)["requests.cpu"]) == ("0", "0")


def test_an_object_beyond_the_quota_is_refused(world):
    quota(world, pods="1", secrets="1")
    world.create("Pod", "a", **pod())
    with pytest.raises(ForbiddenError) as error:
        world.create("Pod", "b", **pod())
    assert str(error.value) == (
        'pods "b" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
    )
    world.create("Secret", "c")
    with pytest.raises(ForbiddenError):
        world.create("Secret", "d")


def test_a_new_quota_applies_at_once(world):
    world.create("ResourceQuota", "q", spec={"hard": {"secrets": "1"}})
    world.create("Secret", "a")
    with pytest.raises(ForbiddenError, match="used: secrets=1, limited: secrets=1"):
        world.create("Secret", "b")


def test_amounts_have_to_be_stated(world):
    quota(world, cpu="1", limits_memory="1Gi")
    with pytest.raises(ForbiddenError, match="must specify cpu for: c; limits"):
        world.create("Pod", "a", **pod())


def test_a_replica_set_reports_the_failure(world):
    quota(world, pods="1")
    world.create("ReplicaSet", "web", **workload("web", replicas=3))
    world.run(2)
    (failure,) = world.get("ReplicaSet", "web")["status"]["conditions"]
    assert (failure["type"], failure["status"], failure["reason"]) == (
        "ReplicaFailure", "True", "FailedCreate",
    )  # fmt: skip
    assert "exceeded quota: q" in failure["message"]
    world.change("ReplicaSet", "web", replicas=1)
    world.run(2)
    assert "conditions" not in world.get("ReplicaSet", "web")["status"]


@pytest.mark.parametrize(
    ("scope", "spec", "matches"),
    [
        pytest.param({"scopeName": "BestEffort"}, {}, True, id="best effort"),
        pytest.param({"scopeName": "NotBestEffort"}, {}, False, id="not best effort"),
        pytest.param({"scopeName": "Terminating"}, {"activeDeadlineSeconds": 9}, True, id="ends"),
        pytest.param({"scopeName": "NotTerminating"}, {}, True, id="does not end"),
        pytest.param({"scopeName": "PriorityClass", "operator": "In", "values": ["high"]},
                     {"priorityClassName": "high"}, True, id="class"),
        pytest.param({"scopeName": "PriorityClass", "operator": "NotIn", "values": ["high"]},
                     {"priorityClassName": "high"}, False, id="not this class"),
        pytest.param({"scopeName": "PriorityClass", "operator": "Exists"}, {}, False,
                     id="no class"),
    ],
)  # fmt: skip
def test_scopes(scope, spec, matches):
    limited = {"spec": {"scopeSelector": {"matchExpressions": [scope]}}}
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {}, **pod(**spec)}
    assert resource_quota.matches_scopes(limited, obj) is matches


@pytest.mark.parametrize(
    ("obj", "name", "amount"),
    [
        pytest.param({"kind": "Service", "spec": {"type": "NodePort", "ports": [{}, {}]}},
                     "services.nodeports", 2, id="node ports"),
        pytest.param({"kind": "Service", "spec": {"type": "LoadBalancer", "ports": [{}]}},
                     "services.loadbalancers", 1, id="load balancers"),
        pytest.param({"kind": "ReplicaSet", "apiVersion": "apps/v1"}, "count/replicasets.apps", 1,
                     id="any kind"),
        pytest.param({"kind": "PersistentVolumeClaim", "spec": {"storageClassName": "gold",
                      "resources": {"requests": {"storage": "3"}}}},
                     "gold.storageclass.storage.k8s.io/requests.storage", 3, id="class of storage"),
        pytest.param({"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1", "spec": {
                      "devices": {"requests": [{"exactly": {"deviceClassName": "gpu", "count": 2}},
                                    {"firstAvailable": [{"deviceClassName": "gpu"}]}]}}},
                     "gpu.deviceclass.resource.k8s.io/devices", 3, id="devices"),
        pytest.param({"kind": "Pod", **pod({"example.com/gpu": 2})}, "requests.example.com/gpu", 2,
                     id="extended"),
    ],
)  # fmt: skip
def test_usage(obj, name, amount):
    made = {"apiVersion": "v1", "metadata": {}, **obj}
    assert resource_quota.usage(made)[name] == amount * 10**9


def test_a_workload_tries_again_when_the_usage_falls(world):
    world.nodes(1)
    quota(world, pods="1")
    world.create("Pod", "a", **pod())
    world.create("ReplicaSet", "web", **workload("web", replicas=1))
    world.run(100)  # The next attempt would be up to a minute later.
    assert not world.pods(app="web")
    world.delete("Pod", "a")
    world.run(2)
    assert len(world.pods(app="web")) == 1


def test_a_stateful_set_without_its_claim_has_no_pod(world):
    quota(world, persistentvolumeclaims="0")
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    claim["spec"]["resources"] = {"requests": {"storage": "1Gi"}}
    fields = workload("db", replicas=2)
    fields["spec"] |= {"serviceName": "db", "volumeClaimTemplates": [claim]}
    world.create("StatefulSet", "db", **fields)
    world.run(2)
    assert not world.pods(app="db")
    [event] = [each for each in world.all("Event") if each["reason"] == "FailedCreate"]
    assert event["message"].startswith(
        "create Claim data-db-0 for Pod db-0 in StatefulSet db failed error: "
        'persistentvolumeclaims "data-db-0" is forbidden: exceeded quota: q'
    )


def test_a_job_does_not_count_refused_pods_as_active(world):
    quota(world, pods="1")
    fields = workload("batch")
    template = fields["spec"]["template"]
    template["spec"]["restartPolicy"] = "Never"
    world.create("Job", "batch", spec={"parallelism": 3, "template": template})
    world.run(2)
    assert world.get("Job", "batch")["status"]["active"] == 1


def test_a_claim_grows_within_the_quota(world):
    world.create("StorageClass", "fast", provisioner="moorage.dev/disk", allowVolumeExpansion=True)
    quota(world, requests_storage="5Gi", persistentvolumeclaims="1")
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}
    sizes = [{"requests": {"storage": f"{size}Gi"}} for size in (2, 4, 6)]
    world.create("PersistentVolumeClaim", "data", spec={**spec, "resources": sizes[0]})
    world.run(5)
    world.change("PersistentVolumeClaim", "data", resources=sizes[1])
    assert used(world)["requests.storage"] == "4Gi"
    with pytest.raises(ForbiddenError) as error:
        world.change("PersistentVolumeClaim", "data", resources=sizes[2])
    assert str(error.value) == (
        'persistentvolumeclaims "data" is forbidden: exceeded quota: q, requested: '
        "requests.storage=2Gi, used: requests.storage=4Gi, limited: requests.storage=5Gi"
    )
    world.annotate("PersistentVolumeClaim", "data", owner="me")  # It adds nothing.


def test_a_service_gets_ports_within_the_quota(world):
    quota(world, services_nodeports="1")
    ports = [{"name": name, "port": number} for number, name in enumerate(("a", "b"), start=80)]
    world.create("Service", "web", spec={"ports": ports})
    with pytest.raises(ForbiddenError, match=r"requested: services\.nodeports=2"):
        world.change("Service", "web", type="NodePort")
    world.change("Service", "web", type="NodePort", ports=ports[:1])
    assert used(world)["services.nodeports"] == "1"
