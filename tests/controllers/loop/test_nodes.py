"""Node lifecycle, evictions by taints, and kubelets that start and end pods."""

import pytest

from moorage.cluster.verbs.delete import DeleteOptions

SMALL = {"containers": [{"name": "c", "image": "a", "resources": {"requests": {"cpu": "1"}}}]}
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def taints(world, node):
    found = world.get("Node", node)["spec"].get("taints", [])
    return sorted((taint["key"], taint["effect"]) for taint in found)


def ready(world, node):
    conditions = world.get("Node", node)["status"]["conditions"]
    return next(each["status"] for each in conditions if each["type"] == "Ready")


def pod(world, name, **fields):
    annotations = fields.pop("annotations", {})
    spec = {**SMALL, **fields}
    return world.create("Pod", name, metadata={"annotations": annotations}, spec=spec)


def phase(world, name):
    return world.get("Pod", name)["status"]["phase"]


# Kubelets ----------------------------------------------------------------------------------------


def test_node_without_status_gets_default_capacity(world):
    world.create("Node", "n0")
    node = world.get("Node", "n0")
    assert node["status"]["allocatable"]["cpu"] == "8"
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "n0"
    assert ready(world, "n0") == "True"


def test_node_keeps_its_own_capacity(world):
    world.create("Node", "n0", status={"capacity": {"cpu": "2", "memory": "1Gi", "pods": "3"}})
    assert world.get("Node", "n0")["status"]["allocatable"]["cpu"] == "2"


def test_heartbeats_renew_the_lease(world):
    world.create("Node", "n0")

    def renewed():
        return world.get("Lease", "n0", "kube-node-lease")["spec"]["renewTime"]

    first = renewed()
    world.run(25)
    assert renewed() > first
    assert ready(world, "n0") == "True"


def test_bound_pod_starts_after_a_short_time(world):
    world.nodes(1)
    pod(world, "web")
    assert (phase(world, "web"), world.get("Pod", "web")["spec"]["nodeName"]) == ("Pending", "n0")
    world.run(1)
    status = world.get("Pod", "web")["status"]
    assert status["phase"] == "Running"
    assert {each["type"] for each in status["conditions"] if each["status"] == "True"} == {
        "PodScheduled",
        "Initialized",
        "ContainersReady",
        "Ready",
    }
    world.run(1000)
    assert phase(world, "web") == "Running"


@pytest.mark.parametrize(
    ("annotations", "ends"),
    [
        pytest.param({"moorage.dev/run-seconds": "30"}, "Succeeded", id="after its time"),
        pytest.param(
            {"moorage.dev/run-seconds": "30", "moorage.dev/exit-code": "3"},
            "Failed",
            id="with an exit code",
        ),
        pytest.param({"moorage.dev/run-seconds": "soon"}, "Running", id="unreadable is unsaid"),
    ],
)
def test_pod_ends_after_its_run_seconds(world, annotations, ends):
    world.nodes(1)
    pod(world, "web", annotations=annotations)
    world.run(25)
    assert phase(world, "web") == "Running"
    world.run(10)
    assert phase(world, "web") == ends


@pytest.mark.parametrize(
    ("annotations", "grace", "gone_after"),
    [
        pytest.param({}, 30, 1.5, id="usually within a second"),
        pytest.param({"moorage.dev/stop-seconds": "20"}, 30, 21, id="it takes its time"),
        pytest.param({"moorage.dev/stop-seconds": "20"}, 5, 6, id="but no longer than allowed"),
        pytest.param({"moorage.dev/stop-seconds": "20"}, 0, 0, id="or at once"),
    ],
)
def test_deleted_pod_ends_after_its_grace_period(world, annotations, grace, gone_after):
    world.nodes(1)
    pod(world, "web", annotations=annotations)
    world.run(2)
    world.delete("Pod", "web", DeleteOptions(grace_period_seconds=grace))
    if gone_after:
        assert "deletionTimestamp" in world.get("Pod", "web")["metadata"]
        world.run(gone_after * 0.5)
        assert world.exists("Pod", "web")
        world.run(gone_after * 0.5)
    assert not world.exists("Pod", "web")


# Lifecycle ---------------------------------------------------------------------------------------


def test_not_ready_node_is_tainted_and_recovers(world):
    world.nodes(1)
    world.annotate("Node", "n0", **{"moorage.dev/kubelet": "not-ready"})
    assert ready(world, "n0") == "False"
    assert taints(world, "n0") == [(NOT_READY, "NoExecute"), (NOT_READY, "NoSchedule")]
    world.annotate("Node", "n0", **{"moorage.dev/kubelet": "well"})
    assert ready(world, "n0") == "True"
    assert taints(world, "n0") == []


def test_node_without_heartbeats_becomes_unreachable(world):
    world.nodes(1)
    world.annotate("Node", "n0", **{"moorage.dev/kubelet": "stopped"})
    world.run(25)
    assert ready(world, "n0") == "True"
    world.run(30)
    assert ready(world, "n0") == "Unknown"
    assert taints(world, "n0") == [(UNREACHABLE, "NoExecute"), (UNREACHABLE, "NoSchedule")]


def test_pods_are_evicted_after_their_toleration_seconds(world):
    world.nodes(1)
    hasty = {"key": NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10}
    loyal = {"operator": "Exists"}
    pod(world, "hasty", tolerations=[hasty])
    pod(world, "usual")
    pod(world, "loyal", tolerations=[loyal])
    world.run(2)
    world.annotate("Node", "n0", **{"moorage.dev/kubelet": "not-ready"})
    world.run(8)
    assert [name for name in ("hasty", "usual", "loyal") if world.exists("Pod", name)] == [
        "hasty",
        "usual",
        "loyal",
    ]
    world.run(5)
    assert [n for n in ("hasty", "usual", "loyal") if world.exists("Pod", n)] == ["usual", "loyal"]
    world.run(290)
    assert [n for n in ("hasty", "usual", "loyal") if world.exists("Pod", n)] == ["loyal"]


def test_recovered_node_keeps_its_pods(world):
    world.nodes(1)
    pod(world, "web")
    world.run(2)
    world.annotate("Node", "n0", **{"moorage.dev/kubelet": "not-ready"})
    world.run(100)
    conditions = world.get("Pod", "web")["status"]["conditions"]
    assert {"Ready": "False"}.items() <= {c["type"]: c["status"] for c in conditions}.items()
    world.annotate("Node", "n0", **{"moorage.dev/kubelet": ""})
    world.run(400)
    conditions = world.get("Pod", "web")["status"]["conditions"]
    assert {"Ready": "True"}.items() <= {c["type"]: c["status"] for c in conditions}.items()


def test_no_execute_taint_evicts_pods_at_once(world):
    world.nodes(1)
    pod(world, "web")
    world.run(2)
    world.change("Node", "n0", taints=[{"key": "out", "effect": "NoExecute"}])
    world.run(2)
    assert not world.exists("Pod", "web")
    assert taints(world, "n0") == [("out", "NoExecute")]


def test_toleration_seconds_start_when_the_pod_is_bound(world):
    world.nodes(1)
    world.change("Node", "n0", taints=[{"key": "out", "effect": "NoExecute"}])
    world.run(100)
    tolerated = {"key": "out", "operator": "Exists", "effect": "NoExecute"}
    tolerated["tolerationSeconds"] = 20
    pod(world, "web", tolerations=[tolerated])
    world.run(15)
    assert phase(world, "web") == "Running"
    world.run(10)
    assert not world.exists("Pod", "web")


def test_cordoned_node_is_tainted_until_uncordoned(world):
    world.nodes(1)
    world.change("Node", "n0", unschedulable=True)
    assert taints(world, "n0") == [("node.kubernetes.io/unschedulable", "NoSchedule")]
    world.change("Node", "n0", unschedulable=False)
    assert taints(world, "n0") == []


def test_pods_of_a_deleted_node_are_collected_and_replaced(world):
    world.nodes(2)
    labels = {"app": "web"}
    made = {"metadata": {"labels": labels}, "spec": SMALL}
    world.create(
        "ReplicaSet",
        "web",
        spec={"replicas": 1, "selector": {"matchLabels": labels}, "template": made},
    )
    world.run(2)
    (lost,) = world.pods(app="web")
    world.delete("Node", lost["spec"]["nodeName"])
    world.run(30)
    assert world.exists("Pod", lost["metadata"]["name"])
    world.run(15)
    (new,) = world.running(app="web")
    assert new["metadata"]["name"] != lost["metadata"]["name"]
    assert not world.exists("Lease", lost["spec"]["nodeName"], "kube-node-lease")


def test_stopped_kubelet_neither_starts_nor_ends_pods(world):
    world.nodes(1)
    pod(world, "old")
    world.run(2)
    world.annotate("Node", "n0", **{"moorage.dev/kubelet": "stopped"})
    pod(world, "new")
    world.delete("Pod", "old")
    world.run(20)
    assert phase(world, "new") == "Pending"
    assert world.exists("Pod", "old")
    world.annotate("Node", "n0", **{"moorage.dev/kubelet": "well"})
    world.run(2)
    assert phase(world, "new") == "Running"
    assert not world.exists("Pod", "old")
