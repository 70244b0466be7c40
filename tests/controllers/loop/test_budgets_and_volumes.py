"""Disruption budgets, volumes and the scheduler, with all controllers running."""

import pytest

from moorage.cluster.status_errors import TooManyRequestsError

from .conftest import resource

WEB = {"app": "web"}


def web(replicas, cpu="100m", **spec):
    container = {"name": "c", "image": "a", "resources": {"requests": {"cpu": cpu}}}
    made = {"metadata": {"labels": WEB}, "spec": {"containers": [container], **spec}}
    return {
        "spec": {"replicas": replicas, "selector": {"matchLabels": WEB}, "template": made},
    }


# Budgets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "desired", "allowed"),
    [
        pytest.param({"minAvailable": 3}, 3, 1, id="a number that has to stay"),
        pytest.param({"minAvailable": "50%"}, 2, 2, id="a share that has to stay"),
        pytest.param({"minAvailable": "51%"}, 3, 1, id="a share is rounded up"),
        pytest.param({"maxUnavailable": 1}, 3, 1, id="a number that may be missing"),
        pytest.param({"maxUnavailable": "30%"}, 2, 2, id="a share that may be missing"),
        pytest.param({"minAvailable": 9}, 9, 0, id="more than there are"),
    ],
)
def test_disruptions_allowed(world, limit, desired, allowed):
    world.nodes(2)
    world.create("Deployment", "web", **web(4))
    selector = {"matchLabels": WEB}
    world.create("PodDisruptionBudget", "web", spec={"selector": selector, **limit})
    status = world.get("PodDisruptionBudget", "web")["status"]
    assert (status["currentHealthy"], status["disruptionsAllowed"]) == (0, 0)
    world.run(5)
    status = world.get("PodDisruptionBudget", "web")["status"]
    assert (status["currentHealthy"], status["expectedPods"]) == (4, 4)
    assert (status["desiredHealthy"], status["disruptionsAllowed"]) == (desired, allowed)


def test_eviction_waits_until_the_evicted_pod_is_replaced(world):
    world.nodes(2)
    world.create("Deployment", "web", **web(3))
    spec = {"selector": {"matchLabels": WEB}, "minAvailable": 2}
    world.create("PodDisruptionBudget", "web", spec=spec)
    world.run(5)
    first, second, _ = (pod["metadata"]["name"] for pod in world.running(**WEB))
    world.api.evict("default", first)
    with pytest.raises(TooManyRequestsError):
        world.api.evict("default", second)
    world.run(5)
    assert len(world.running(**WEB)) == 3
    world.api.evict("default", second)


# Volumes -----------------------------------------------------------------------------------------


def claim(world, name, class_="fast", size="1Gi"):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    world.create("PersistentVolumeClaim", name, spec={**spec, "storageClassName": class_})


def volume(world, name, size, class_="fast", policy="Retain"):
    world.create(
        "PersistentVolume",
        name,
        spec={
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_,
            "persistentVolumeReclaimPolicy": policy,
            "hostPath": {"path": "/x"},
        },
    )


ENDS_SOON = {"moorage.dev/run-seconds": "10"}


def phase(world, name):
    return world.get("PersistentVolumeClaim", name)["status"].get("phase", "Pending")


def volume_phase(world, name):
    return world.get("PersistentVolume", name)["status"]["phase"]


def user(name):
    source = {"persistentVolumeClaim": {"claimName": name}}
    return {
        "containers": [{"name": "c", "image": "a"}],
        "volumes": [{"name": "data", **source}],
    }


def test_claim_binds_the_smallest_volume_that_is_large_enough(world):
    for name, size in (("large", "9Gi"), ("medium", "5Gi"), ("small", "1Gi")):
        volume(world, name, size)
    claim(world, "data", size="2Gi")
    assert phase(world, "data") == "Bound"
    assert world.get("PersistentVolumeClaim", "data")["spec"]["volumeName"] == "medium"
    assert [volume_phase(world, name) for name in ("large", "medium", "small")] == [
        "Available",
        "Bound",
        "Available",
    ]
    world.delete("PersistentVolumeClaim", "data")
    assert volume_phase(world, "medium") == "Released"


def test_a_claim_in_use_stays_until_its_pod_is_deleted(world):
    world.nodes(1)
    volume(world, "disk", "1Gi")
    claim(world, "data")
    world.create("Pod", "user", spec=user("data"), metadata={"annotations": ENDS_SOON})
    world.run(5)
    world.delete("PersistentVolumeClaim", "data")
    world.delete("PersistentVolume", "disk")
    kept = world.get("PersistentVolumeClaim", "data")["metadata"]
    assert kept["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert kept["deletionTimestamp"]
    world.run(60)
    assert world.get("Pod", "user")["status"]["phase"] == "Succeeded"
    assert world.exists("PersistentVolumeClaim", "data")  # As in Kubernetes: it may be mounted.
    assert world.exists("PersistentVolume", "disk")
    world.delete("Pod", "user")
    assert not world.exists("PersistentVolumeClaim", "data")
    assert not world.exists("PersistentVolume", "disk")


def test_a_claim_from_before_protection_gets_the_finalizer(world):
    claim(world, "data")
    old = world.get("PersistentVolumeClaim", "data")
    meta = {key: value for key, value in old["metadata"].items() if key != "finalizers"}
    world.api.update(resource("PersistentVolumeClaim"), {**old, "metadata": meta})
    world.settle()
    found = world.get("PersistentVolumeClaim", "data")["metadata"]
    assert found["finalizers"] == ["kubernetes.io/pvc-protection"]


def test_volume_is_provisioned_and_deleted_with_its_claim(world):
    world.create("StorageClass", "fast", provisioner="moorage.dev/disk")
    claim(world, "data")
    assert phase(world, "data") == "Pending"
    world.run(1)
    assert phase(world, "data") == "Bound"
    assert len(world.all("PersistentVolume")) == 1
    world.delete("PersistentVolumeClaim", "data")
    assert world.all("PersistentVolume") == []


def test_wait_for_first_consumer_provisions_in_the_zone_of_the_consumer(world):
    world.nodes(1, **{"topology.kubernetes.io/zone": "b"})
    late = {"volumeBindingMode": "WaitForFirstConsumer"}
    world.create("StorageClass", "fast", provisioner="moorage.dev/disk", **late)
    claim(world, "data")
    world.run(5)
    assert phase(world, "data") == "Pending"
    world.create("Pod", "user", spec=user("data"))
    world.run(5)
    assert phase(world, "data") == "Bound"
    assert world.get("Pod", "user")["status"]["phase"] == "Running"
    (made,) = world.all("PersistentVolume")
    (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["b"]


def test_the_schedulers_annotation_selects_a_node_too(world):
    world.nodes(1)
    late = {"volumeBindingMode": "WaitForFirstConsumer"}
    world.create("StorageClass", "fast", provisioner="moorage.dev/disk", **late)
    claim(world, "data")
    selected = {"volume.kubernetes.io/selected-node": "n0"}
    world.annotate("PersistentVolumeClaim", "data", **selected)
    world.run(1)
    assert phase(world, "data") == "Bound"


def test_ephemeral_volume_creates_and_deletes_its_claim(world):
    world.nodes(1)
    world.create("StorageClass", "fast", provisioner="moorage.dev/disk")
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    template = {"spec": {**wanted, "storageClassName": "fast"}}
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
    containers = [{"name": "c", "image": "a"}]
    world.create("Pod", "user", spec={"containers": containers, "volumes": volumes})
    world.run(5)
    assert phase(world, "user-scratch") == "Bound"
    assert world.get("Pod", "user")["status"]["phase"] == "Running"
    world.delete("Pod", "user")
    world.run(5)
    assert not world.exists("PersistentVolumeClaim", "user-scratch")
    assert world.all("PersistentVolume") == []


def test_pod_starts_after_its_volume_is_bound(world):
    world.nodes(1)
    claim(world, "data", class_="none")
    world.create("Pod", "user", spec={**user("data"), "nodeName": "n0"})
    world.run(5)
    assert world.get("Pod", "user")["status"]["phase"] == "Pending"
    volume(world, "late", "1Gi", class_="none")
    world.run(5)
    assert world.get("Pod", "user")["status"]["phase"] == "Running"


# The scheduler -----------------------------------------------------------------------------------


def test_pending_pod_has_the_reason_in_its_condition_and_events(world):
    world.nodes(2)
    world.create("Deployment", "web", **web(1, cpu="100"))
    (pod,) = world.pods(**WEB)
    (condition,) = pod["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "False")
    assert condition["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    (event,) = [each for each in world.all("Event") if each["reason"] == "FailedScheduling"]
    assert event["message"] == condition["message"]
    assert event["involvedObject"]["uid"] == pod["metadata"]["uid"]


def test_pod_of_higher_priority_preempts_others(world):
    world.nodes(1)
    world.create("PriorityClass", "gold", value=1000)
    world.create("Deployment", "web", **web(2, cpu="4"))
    world.run(5)
    spec = web(1, cpu="4", priorityClassName="gold")["spec"]["template"]["spec"]
    world.create("Pod", "vip", spec=spec)
    assert world.get("Pod", "vip")["status"]["nominatedNodeName"] == "n0"
    world.run(10)
    assert world.get("Pod", "vip")["status"]["phase"] == "Running"
    assert len(world.running(**WEB)) == 1
    assert "Preempted" in {each["reason"] for each in world.all("Event")}


def test_the_same_note_is_one_event_with_a_count_and_old_ones_go(world):
    world.nodes(1)
    world.create("Deployment", "web", **web(1, cpu="100"))
    world.run(1300)  # Tried again every five minutes.
    (event,) = [each for each in world.all("Event") if each["reason"] == "FailedScheduling"]
    assert event["count"] > 2
    world.delete("Deployment", "web")
    world.run(2 * 3600 + 60)
    assert world.all("Event") == []


def test_new_node_lets_pending_pods_run(world):
    world.create("Deployment", "web", **web(3))
    world.run(5)
    assert world.running(**WEB) == []
    world.nodes(1)
    world.run(15)
    assert len(world.running(**WEB)) == 3


def test_the_scheduler_gives_a_waiting_claim_the_volume_that_reaches_its_node(world):
    world.nodes(2)
    late = {"volumeBindingMode": "WaitForFirstConsumer"}
    world.create("StorageClass", "local", provisioner="kubernetes.io/no-provisioner", **late)
    volume(world, "disk", "1Gi", class_="local")
    claim(world, "data", class_="local")
    world.run(1)
    assert phase(world, "data") == "Pending"
    world.create("Pod", "user", spec=user("data"))
    world.run(5)
    assert phase(world, "data") == "Bound"
    assert world.get("Pod", "user")["status"]["phase"] == "Running"
    assert world.get("PersistentVolume", "disk")["spec"]["claimRef"]["name"] == "data"


def test_a_waiting_claim_gets_the_default_class_that_comes_later(world):
    world.nodes(1)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    world.create("PersistentVolumeClaim", "data", spec=spec)
    world.run(2)
    assert "storageClassName" not in world.get("PersistentVolumeClaim", "data")["spec"]
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    fields = {"provisioner": "example.com/disk", "metadata": {"annotations": annotations}}
    world.create("StorageClass", "standard", **fields)
    world.run(5)
    claim = world.get("PersistentVolumeClaim", "data")
    assert claim["spec"]["storageClassName"] == "standard"
    assert claim["status"]["phase"] == "Bound"


def test_a_bound_claim_shows_the_attributes_class_of_its_volume(world):
    world.nodes(1)
    world.create("StorageClass", "fast", provisioner="example.com/disk")
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec |= {"storageClassName": "fast", "volumeAttributesClassName": "gold"}
    world.create("PersistentVolumeClaim", "data", spec=spec)
    world.run(5)
    status = world.get("PersistentVolumeClaim", "data")["status"]
    assert (status["phase"], status["currentVolumeAttributesClassName"]) == ("Bound", "gold")
