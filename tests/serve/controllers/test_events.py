"""What controllers tell about what they did: Events in Kubernetes' words, and not too many."""

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


def told(world, kind):
    """What Events say about the one object of a kind, in order: reason, text, how often."""
    return [(e["reason"], e["message"], e["count"]) for e in events(world, kind)]


@pytest.mark.parametrize(
    ("kind", "reporter"),
    [
        ("ReplicaSet", "replicaset-controller"),
        ("ReplicationController", "replication-controller"),
    ],
)
def test_pods_that_are_made_and_deleted(world, kind, reporter):
    world.nodes(2)
    fields = workload(replicas=2)
    if kind == "ReplicationController":
        fields["spec"]["selector"] = {"app": "web"}
    world.create(kind, "web", **fields)
    world.run(5)
    made = sorted(pod["metadata"]["name"] for pod in world.pods(app="web"))
    created = [("SuccessfulCreate", f"Created pod: {name}", 1) for name in made]
    assert sorted(told(world, kind)) == created
    world.change(kind, "web", replicas=0)
    world.run(60)
    deleted = [("SuccessfulDelete", f"Deleted pod: {name}", 1) for name in made]
    assert sorted(told(world, kind)) == created + deleted
    assert {event["source"]["component"] for event in events(world, kind)} == {reporter}
    assert {event["type"] for event in events(world, kind)} == {"Normal"}


def test_a_large_set_is_told_about_in_few_words(world):
    world.create("ReplicaSet", "web", **workload(replicas=60))
    world.run(5)
    *single, (_, text, count) = told(world, "ReplicaSet")
    assert len(single) == 9
    assert all(text.startswith("Created pod: web-") for _, text, _ in single)
    assert text.startswith("(combined from similar events): Created pod: web-")
    assert count == 16  # 25 at once are all that is told.
    world.run(601)
    world.change("ReplicaSet", "web", replicas=62)
    world.run(5)
    assert len(told(world, "ReplicaSet")) == 12  # After a pause each counts again.


def test_a_daemon_set(world):
    world.nodes(1)
    fields = workload()
    del fields["spec"]["replicas"]
    world.create("DaemonSet", "agent", **fields)
    world.run(5)
    (pod,) = world.pods(app="web")
    text = f"Created pod: {pod['metadata']['name']}"
    assert told(world, "DaemonSet") == [("SuccessfulCreate", text, 1)]


def test_a_stateful_set(world):
    world.nodes(1)
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    world.create("StatefulSet", "db", **workload(volumeClaimTemplates=[claim]))
    world.run(5)
    assert told(world, "StatefulSet") == [
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
    assert told(world, "Deployment") == [
        ("ScalingReplicaSet", f"Scaled up replica set {name} from 0 to 3", 1),
        ("ScalingReplicaSet", f"Scaled down replica set {name} from 3 to 1", 1),
    ]


def test_a_job_that_completes(world):
    world.nodes(1)
    world.create("Job", "sums", **job())
    world.run(10)
    (pod,) = world.pods()
    assert told(world, "Job") == [
        ("SuccessfulCreate", f"Created pod: {pod['metadata']['name']}", 1),
        ("Completed", "Job completed", 1),
    ]


def test_a_job_that_fails(world):
    world.nodes(1)
    world.create("Job", "sums", **job(**{"moorage.dev/exit-code": "1"}))
    world.run(10)
    text = "Job has reached the specified backoff limit"
    assert told(world, "Job")[1:] == [("BackoffLimitExceeded", text, 1)]
    assert events(world, "Job")[1]["type"] == "Warning"
