"""The Events of controllers: Kubernetes' words, combined and limited."""

import pytest

CONTAINER = {"name": "c", "image": "web:1"}


def workload(replicas=1, **fields):
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}}
    return {
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template,
            **fields,
        }
    }


def job(**annotations):
    template = {
        "metadata": {"annotations": {"moorage.dev/run-seconds": "1", **annotations}},
        "spec": {"containers": [CONTAINER], "restartPolicy": "Never"},
    }
    return {"spec": {"template": template, "backoffLimit": 0}}


def events(world, kind):
    return [e for e in world.all("Event") if e["involvedObject"]["kind"] == kind]


def events_about(world, kind):
    """Reason, message and count of the Events about the one object of a kind."""
    return [(e["reason"], e["message"], e["count"]) for e in events(world, kind)]


@pytest.mark.parametrize(
    ("kind", "reporter"),
    [
        ("ReplicaSet", "replicaset-controller"),
        ("ReplicationController", "replication-controller"),
    ],
)
def test_events_of_created_and_deleted_pods(world, kind, reporter):
    world.nodes(2)
    fields = workload(replicas=2)
    if kind == "ReplicationController":
        fields["spec"]["selector"] = {"app": "web"}
    world.create(kind, "web", **fields)
    world.run(5)
    made = sorted(pod["metadata"]["name"] for pod in world.pods(app="web"))
    created = [("SuccessfulCreate", f"Created pod: {name}", 1) for name in made]
    assert sorted(events_about(world, kind)) == created
    world.change(kind, "web", replicas=0)
    world.run(60)
    deleted = [("SuccessfulDelete", f"Deleted pod: {name}", 1) for name in made]
    assert sorted(events_about(world, kind)) == created + deleted
    assert {event["source"]["component"] for event in events(world, kind)} == {reporter}
    assert {event["type"] for event in events(world, kind)} == {"Normal"}


def test_events_of_a_large_set_are_combined(world):
    world.create("ReplicaSet", "web", **workload(replicas=60))
    world.run(5)
    *single, (_, text, count) = events_about(world, "ReplicaSet")
    assert len(single) == 9
    assert all(text.startswith("Created pod: web-") for _, text, _ in single)
    assert text.startswith("(combined from similar events): Created pod: web-")
    assert count == 16  # 25 at once are all that is told.
    world.run(601)
    world.change("ReplicaSet", "web", replicas=62)
    world.run(5)
    assert len(events_about(world, "ReplicaSet")) == 12  # After a pause each counts again.


def test_a_daemon_set(world):
    world.nodes(1)
    fields = workload()
    del fields["spec"]["replicas"]
    world.create("DaemonSet", "agent", **fields)
    world.run(5)
    (pod,) = world.pods(app="web")
    text = f"Created pod: {pod['metadata']['name']}"
    assert events_about(world, "DaemonSet") == [("SuccessfulCreate", text, 1)]


def test_a_stateful_set(world):
    world.nodes(1)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "data"}, "spec": spec}
    world.create("StatefulSet", "db", **workload(volumeClaimTemplates=[claim]))
    world.run(5)
    assert events_about(world, "StatefulSet") == [
        ("SuccessfulCreate", "Create Claim data-db-0 Pod db-0 in StatefulSet db success", 1),
        ("SuccessfulCreate", "Create Pod db-0 in StatefulSet db successful", 1),
    ]


def test_a_deployment(world):
    world.nodes(2)
    world.create("Deployment", "web", **workload(replicas=3))
    world.run(5)
    (only,) = world.all("ReplicaSet")
    name = only["metadata"]["name"]
    world.change("Deployment", "web", replicas=1)
    world.run(5)
    assert events_about(world, "Deployment") == [
        ("ScalingReplicaSet", f"Scaled up replica set {name} from 0 to 3", 1),
        ("ScalingReplicaSet", f"Scaled down replica set {name} from 3 to 1", 1),
    ]


def test_completed_job(world):
    world.nodes(1)
    world.create("Job", "sums", **job())
    world.run(10)
    (pod,) = world.pods()
    assert events_about(world, "Job") == [
        ("SuccessfulCreate", f"Created pod: {pod['metadata']['name']}", 1),
        ("Completed", "Job completed", 1),
    ]


def test_the_time_to_live_of_a_job_ends_without_an_event(world):
    world.nodes(1)
    fields = job()
    fields["spec"]["ttlSecondsAfterFinished"] = 3
    world.create("Job", "sum", **fields)
    world.run(10)
    assert not world.exists("Job", "sum")
    assert [each[0] for each in events_about(world, "Job")] == ["SuccessfulCreate", "Completed"]


def test_failed_job(world):
    world.nodes(1)
    world.create("Job", "sums", **job(**{"moorage.dev/exit-code": "1"}))
    world.run(10)
    text = "Job has reached the specified backoff limit"
    assert events_about(world, "Job")[1:] == [("BackoffLimitExceeded", text, 1)]
    assert events(world, "Job")[1]["type"] == "Warning"
