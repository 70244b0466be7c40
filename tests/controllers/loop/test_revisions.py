"""ControllerRevisions of DaemonSets and StatefulSets, surges, and the retention of claims."""

import pytest

from moorage.cluster.resources import PERSISTENT_VOLUME_CLAIMS

from .test_workloads import CLAIM, hosts, images, names, template, workload

LABELS = {"app": "web"}


def revisions(world):
    """The image and number of each revision."""
    return sorted(
        (each["data"]["spec"]["template"]["spec"]["containers"][0]["image"], each["revision"])
        for each in world.all("ControllerRevision")
    )


@pytest.mark.parametrize("kind", ["DaemonSet", "StatefulSet"])
def test_each_template_has_a_revision_and_an_old_one_comes_back(world, kind):
    world.nodes(2)
    world.create(kind, "web", **workload("web"))
    world.run(20)
    world.change(kind, "web", template=template(LABELS, "web:2"))
    world.run(20)
    assert revisions(world) == [("web:1", 1), ("web:2", 2)]
    world.change(kind, "web", template=template(LABELS, "web:1"))
    world.run(20)
    assert revisions(world) == [("web:1", 3), ("web:2", 2)]
    assert images(world.running(**LABELS)) == ["web:1"]
    (owner,) = world.all("ControllerRevision")[0]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["controller"]) == (kind, True)


def test_metadata_of_revisions_and_pods(world):
    world.nodes(1)
    world.create("StatefulSet", "web", **workload("web", replicas=1))
    world.run(5)
    (revision,) = world.all("ControllerRevision")
    assert "annotations" not in revision["metadata"]
    (pod,) = world.pods()
    assert (pod["metadata"]["name"], pod["metadata"]["generateName"]) == ("web-0", "web-")


def test_old_revisions_beyond_the_limit_are_deleted(world):
    world.nodes(1)
    world.create("DaemonSet", "web", **workload("web", revisionHistoryLimit=1))
    for number in range(2, 6):
        world.change("DaemonSet", "web", template=template(LABELS, f"web:{number}"))
        world.run(20)
    assert revisions(world) == [("web:4", 4), ("web:5", 5)]


def test_pods_below_the_partition_are_created_from_the_current_revision(world):
    world.nodes(3)
    world.create("StatefulSet", "web", **workload("web", replicas=2))
    world.run(10)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    new = template(LABELS, "web:2")
    world.change("StatefulSet", "web", template=new, updateStrategy=strategy)
    world.run(20)
    for name in ("web-0", "web-1"):
        world.delete("Pod", name)
    world.run(20)
    got = {p["metadata"]["name"]: p["spec"]["containers"][0]["image"] for p in world.running()}
    assert got == {"web-0": "web:1", "web-1": "web:2"}
    status = world.get("StatefulSet", "web")["status"]
    assert status["currentRevision"] != status["updateRevision"]
    assert (status["currentReplicas"], status["updatedReplicas"]) == (1, 1)


@pytest.mark.parametrize(
    ("deleted", "scaled", "after_scaling", "after_deletion"),
    [
        pytest.param("Retain", "Retain", 2, 2, id="retain"),
        pytest.param("Delete", "Retain", 2, 0, id="deleted with the set"),
        pytest.param("Retain", "Delete", 1, 1, id="deleted with a surplus pod"),
        pytest.param("Delete", "Delete", 1, 0, id="both"),
    ],
)
def test_retention_of_claims(world, deleted, scaled, after_scaling, after_deletion):
    world.nodes(2)
    policy = {"whenDeleted": deleted, "whenScaled": scaled}
    fields = workload(
        "web",
        replicas=2,
        volumeClaimTemplates=[CLAIM],
        persistentVolumeClaimRetentionPolicy=policy,
        podManagementPolicy="Parallel",
    )
    world.create("StatefulSet", "web", **fields)
    world.run(5)
    assert names(world.all("PersistentVolumeClaim")) == ["data-web-0", "data-web-1"]
    world.change("StatefulSet", "web", replicas=1)
    world.run(10)
    assert len(world.all("PersistentVolumeClaim")) == after_scaling
    world.delete("StatefulSet", "web")
    world.run(10)
    assert len(world.all("PersistentVolumeClaim")) == after_deletion


def test_daemon_set_with_a_surge_starts_the_new_pod_first(world):
    world.nodes(2)
    rolling = {"maxSurge": 1, "maxUnavailable": 0}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    world.create("DaemonSet", "web", **workload("web", updateStrategy=strategy))
    world.run(5)
    world.change("DaemonSet", "web", template=template(LABELS, "web:2"))
    most = 0
    for _ in range(60):
        world.run(0.25)
        found = world.running(**LABELS)
        assert set(hosts(found)) == {"n0", "n1"}
        active = [p for p in world.pods(**LABELS) if "deletionTimestamp" not in p["metadata"]]
        most = max(most, len(active))
    assert images(world.running(**LABELS)) == ["web:2"]
    assert most == 3


def test_daemon_set_with_a_surge_waits_for_min_ready_seconds_only(world):
    world.nodes(1)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    fields = workload("web", updateStrategy=strategy, minReadySeconds=10)
    world.create("DaemonSet", "web", **fields)
    world.run(20)
    world.change("DaemonSet", "web", template=template(LABELS, "web:2"))
    world.run(8)
    assert images(world.running(**LABELS)) == ["web:1", "web:2"]
    world.run(8)
    assert images(world.running(**LABELS)) == ["web:2"]


def test_stateful_set_replaces_as_many_pods_as_may_be_unavailable(world):
    world.nodes(2)
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    fields = workload("web", replicas=4, updateStrategy=rolling, podManagementPolicy="Parallel")
    world.create("StatefulSet", "web", **fields)
    world.run(5)
    world.change("StatefulSet", "web", template=template(LABELS, "web:2"))
    fewest = 4
    for _ in range(40):
        world.run(0.25)
        fewest = min(fewest, len(world.running(**LABELS)))
    assert fewest == 2
    assert images(world.running(**LABELS)) == ["web:2"]


def test_a_claim_with_another_controller_is_kept(world):
    world.nodes(1)
    fields = workload("web", replicas=1, volumeClaimTemplates=[CLAIM])
    world.create("StatefulSet", "web", **fields)
    world.run(5)
    other = world.create("ConfigMap", "other")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "controller": True}
    owner["uid"] = other["metadata"]["uid"]
    claim = world.get("PersistentVolumeClaim", "data-web-0")
    meta = {**claim["metadata"], "ownerReferences": [owner]}
    world.api.replace(PERSISTENT_VOLUME_CLAIMS, {**claim, "metadata": meta})
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    world.change("StatefulSet", "web", persistentVolumeClaimRetentionPolicy=policy)
    world.run(2)
    assert world.get("PersistentVolumeClaim", "data-web-0")["metadata"]["ownerReferences"] == [
        owner
    ]
    world.delete("StatefulSet", "web")
    world.run(5)
    assert world.exists("PersistentVolumeClaim", "data-web-0")
