"""`moorage run` against `moorage serve` in another process: controllers, kubelets and volumes.

The tests share a server and a scheduler, with a proxy in between, and use namespaces of their own.
"""

import json
import os
import shutil
import subprocess
from collections import Counter

import pytest
from test_faults import FAULTS
from world import BIN, World, until

NODES = 4  # of eight CPUs each
FAULTS = {name: rate for row in FAULTS.values() for name, rate in row.items()}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


class Playground(World):
    """A cluster of `moorage serve` with a running scheduler."""

    def __init__(self, folder):
        super().__init__(folder)
        for i in range(NODES):
            self.create_node(f"node-{i}", cpu="8", memory="32Gi")
        self.inject_faults()
        self.scheduler = self.run()
        until(lambda: self.scheduler.said("scheduling"))

    def apply(self, namespace, *objects):
        self.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        for path, obj in objects:
            self.call("POST", path.replace("NS", namespace), obj)

    def running(self, namespace):
        """The pods of a namespace that run, and their nodes."""
        items = self.call("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in items
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        }

    def all_in(self, namespace, plural):
        listed = self.call("GET", f"/api/v1/namespaces/{namespace}/{plural}")["items"]
        return {each["metadata"]["name"]: each for each in listed}

    def reasons_of_events(self, namespace):
        events = self.call("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
        return Counter(each["reason"] for each in events["items"])

    def remove(self, namespace):
        self.call("DELETE", f"/api/v1/namespaces/{namespace}")
        until(lambda: not self.all_in(namespace, "pods"))


@pytest.fixture(scope="module")
def playground(tmp_path_factory):
    made = Playground(tmp_path_factory.mktemp("playground"))
    yield made
    made.close()


@pytest.fixture
def namespace(playground, request):
    name = request.node.originalname.removeprefix("test_").replace("_", "-")
    yield name
    playground.inject_faults()
    playground.remove(name)


def workload(kind, name, replicas, cpu, template=None, **spec):
    labels = {"app": name}
    requests = {"cpu": cpu, "memory": "100Mi"}
    container = {"name": "c", "image": "web:1", "resources": {"requests": requests}}
    pod = {"containers": [container], **(template or {})}
    return f"/apis/apps/v1/namespaces/NS/{kind.lower()}s", {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
            **spec,
        },
    }


def storage_class(name, provisioner):
    return "/apis/storage.k8s.io/v1/storageclasses", {
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def claim_template(storage_class):
    spec = {**CLAIM, "storageClassName": storage_class}
    return {
        "serviceName": "none",
        "podManagementPolicy": "Parallel",
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": spec}],
    }


def local_volume(name, node):
    at_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return "/api/v1/persistentvolumes", {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "static",
            "local": {"path": "/mnt"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [at_node]}]}},
        },
    }


def test_every_pod_runs_once_or_waits_with_a_reason(playground, namespace):
    playground.inject_faults(**FAULTS)
    playground.apply(namespace, workload("Deployment", "web", 40, "1"))
    until(lambda: len(playground.running(namespace)) == 8 * NODES, 60)
    made = playground.inject_faults()
    assert sum(made.get(name, 0) for name in FAULTS) > 10, "too few faults were injected"
    why = f"0/{NODES} nodes are available: {NODES} Insufficient cpu."
    # Reflectors wait up to five seconds after several failures in a row.
    reasons = playground.reasons
    until(lambda: all(why in text for text in reasons().values()), 60, shown=reasons)
    assert len(playground.reasons()) == 40 - 8 * NODES
    playground.check_room()


def test_claims_wait_for_their_pods(playground, namespace):
    playground.apply(
        namespace,
        storage_class("made", "moorage.dev/pretend"),
        storage_class("static", "kubernetes.io/no-provisioner"),
        local_volume("disk", "node-2"),
        workload("StatefulSet", "new", 2, "1", **claim_template("made")),
        workload("StatefulSet", "old", 2, "1", **claim_template("static")),
    )
    nodes = until(lambda: len(playground.running(namespace)) == 3 and playground.running(namespace))
    claims = playground.all_in(namespace, "persistentvolumeclaims")
    for name in ("new-0", "new-1"):
        claim = claims[f"data-{name}"]
        selected = claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
        assert (claim["status"]["phase"], selected) == ("Bound", nodes[name])
    (lucky,) = (name for name in nodes if name.startswith("old"))
    disk = playground.call("GET", "/api/v1/persistentvolumes/disk")
    assert disk["spec"]["claimRef"]["name"] == f"data-{lucky}"
    assert nodes[lucky] == "node-2"
    (other,) = {"old-0", "old-1"} - {lucky}
    reason = f"0/{NODES} nodes are available: {NODES} node(s) didn't find available persistent vol"
    until(lambda: playground.reasons().get(other, "").startswith(reason))


def test_preemption_by_higher_priority(playground, namespace):
    urgent = {"metadata": {"name": "urgent"}, "value": 1000}
    playground.apply(
        namespace,
        ("/apis/scheduling.k8s.io/v1/priorityclasses", urgent),
        workload("Deployment", "low", NODES, "6"),
    )
    until(lambda: len(playground.running(namespace)) == NODES)
    path, high = workload("Deployment", "high", 2, "5", {"priorityClassName": "urgent"})
    playground.call("POST", path.replace("NS", namespace), high)

    def settled():
        running = playground.running(namespace)
        return running if sum(name.startswith("high") for name in running) == 2 else None

    running = until(settled)
    assert len(running) == NODES, "as few victims as possible"
    assert len(set(running.values())) == NODES
    until(lambda: playground.reasons_of_events(namespace)["Preempted"] == 2)


@pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is not installed")
def test_drain_with_a_disruption_budget(playground, namespace):
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    playground.apply(
        namespace,
        (
            "/apis/policy/v1/namespaces/NS/poddisruptionbudgets",
            {"metadata": {"name": "web"}, "spec": budget},
        ),
        workload("Deployment", "web", 6, "2"),
    )
    until(lambda: len(playground.running(namespace)) == 6)
    drained = ("node-0", "node-1")
    # It tries again every five seconds until the pods elsewhere run and the next one may go.
    kubectl("drain", *drained, "--timeout=60s", playground=playground)
    try:
        running = until(
            lambda: len(playground.running(namespace)) == 6 and playground.running(namespace)
        )
        assert set(running.values()) == {"node-2", "node-3"}
    finally:
        kubectl("uncordon", *drained, playground=playground)


def test_a_snapshot_gives_the_same_explanation_and_simulation(playground, namespace):
    playground.apply(
        namespace,
        workload("Deployment", "web", 3, "1"),
        workload("StatefulSet", "huge", 1, "9", serviceName="none"),
    )
    until(lambda: len(playground.running(namespace)) == 3 and playground.reasons().get("huge-0"))
    kubeconfig, dump = playground.kubeconfig(), playground.folder / "dump.json"
    moorage("snapshot", "--kubeconfig", kubeconfig, "-o", dump)
    for source in (("--kubeconfig", kubeconfig), ("-f", dump)):
        text = moorage("explain", f"{namespace}/huge-0", *source)
        text = " ".join(text.split())
        assert f"0/{NODES} nodes are available: {NODES} Insufficient cpu." in text
        assert "Recorded by the cluster's scheduler condition Unschedulable: 0/" in text
    live = " ".join(
        moorage("explain", "sts/huge", "-n", namespace, "--kubeconfig", kubeconfig).split()
    )
    assert "Event FailedScheduling at " in live
    assert "Configuration assumed here: " in live
    simulated = json.loads(moorage("simulate", "-f", dump, "-o", "json"))
    assert {key: node for key, node in simulated["placements"].items() if namespace in key} == {
        **{f"{namespace}/{name}": node for name, node in playground.running(namespace).items()},
        f"{namespace}/huge-0": None,
    }


def moorage(*arguments):
    return ran(BIN / "moorage", *arguments)


def kubectl(*arguments, playground):
    return ran("kubectl", "--kubeconfig", playground.folder / "served.kubeconfig", *arguments)


def ran(*command):
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        env={**os.environ, "HOME": "/nonexistent"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
