"""A Simulation and the control plane of `serve` do the same with the same workloads."""

import itertools
from random import Random

import pytest

from moorage.api import timestamps
from moorage.cluster.api_server import ApiServer
from moorage.cluster.resources import BUILT_IN
from moorage.cluster.store import Store
from moorage.core.scheduler import Scheduler
from moorage.serve.control_plane import ControlPlane
from moorage.sim.run import Simulation

STEPS = 8
# Enough for a step to end: grace periods, back-offs, and the quarantine of lost pods.
STEP_SECONDS = 400.0
KINDS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job")
STATUS = (
    *("replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "currentReplicas"),
    *("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "numberMisscheduled"),
    *("updatedNumberScheduled", "active", "ready", "succeeded", "failed"),
)


class Served:
    """The control plane of `serve`, without HTTP, in virtual time."""

    def __init__(self):
        self.now = timestamps.EPOCH_SECONDS
        uids = itertools.count(1)
        self.store = Store(
            clock=lambda: timestamps.to_text(self.now), uid=lambda: f"uid-{next(uids)}"
        )
        self.api = ApiServer(self.store, now=lambda: self.now, random=Random(1))
        self.control_plane = ControlPlane(self.api, Scheduler(), stopwatch=lambda: 0.0)

    def run(self, seconds):
        end = self.now + seconds
        while True:
            while self.control_plane.has_work:
                self.control_plane.turn()
            at = self.control_plane.deadline
            if at is None or at > end:
                break
            self.now = max(self.now, at)
            self.control_plane.turn()
        self.now = end

    def create(self, obj):
        self.api.create(self.api.resource_of(obj), obj)

    def apply(self, obj):
        resource, name = self.api.resource_of(obj), obj["metadata"]["name"]
        old = self.store.get(resource, "default" if resource.namespaced else "", name)
        meta = {**old["metadata"], **obj["metadata"]}
        meta.pop("resourceVersion")
        self.api.update(resource, {**old, "metadata": meta, "spec": obj["spec"]})

    def delete(self, kind, name):
        resource = next(each for each in BUILT_IN if each.kind == kind)
        self.api.delete(resource, "default" if resource.namespaced else "", name)

    def objects(self, kind):
        resource = next(each for each in BUILT_IN if each.kind == kind)
        return [obj for obj in self.store.each(resource) if obj["metadata"].get("namespace") != "x"]


class Simulated:
    """A Simulation."""

    def __init__(self):
        self.sim = Simulation([])
        self.run = lambda seconds: self.sim.run(until=self.sim.now + seconds)
        self.create = lambda obj: self.sim.create([obj])
        self.apply = self.sim.update

    def delete(self, kind, name):
        self.sim.delete(kind, "default", name)

    def objects(self, kind):
        host = self.sim._controllers.host
        groups = {"Job": "batch/", "Pod": "", "Node": ""}
        return host.index.all(f"{groups.get(kind, 'apps/')}{kind}")


def node(name, *taints):
    labels = {"kubernetes.io/hostname": name}
    room = {"cpu": "64", "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [{"key": "t", "effect": effect} for effect in taints]},
        "status": {"capacity": room, "allocatable": room},
    }


def workload(kind, image, replicas):
    name = kind.lower()
    annotations = {"moorage.dev/stop-seconds": "1"}
    container = {"name": "c", "image": image, "resources": {"requests": {"cpu": "100m"}}}
    spec = {"containers": [container]}
    fields = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}}
    if kind == "DaemonSet":
        del fields["replicas"]
    if kind == "Job":
        annotations |= {"moorage.dev/run-seconds": "5", "moorage.dev/exit-code": str(replicas % 2)}
        spec["restartPolicy"] = "Never"
        fields = {"completions": replicas, "parallelism": 2, "backoffLimit": 2}
    if kind == "StatefulSet":
        fields["serviceName"] = "db"
    template = {"metadata": {"labels": {"app": name}, "annotations": annotations}, "spec": spec}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**fields, "template": template},
    }


def changes(random):
    """A random sequence of requests: (verb, arguments)."""
    nodes = [f"n{i}" for i in range(4)]
    yield from (("create", node(name)) for name in nodes)
    images = dict.fromkeys(KINDS, "app:1")
    yield from (("create", workload(kind, "app:1", random.randint(1, 4))) for kind in KINDS)
    yield ("run",)
    sizes = dict.fromkeys(KINDS, 2)
    for _ in range(STEPS):
        kind = random.choice(KINDS[:4])
        match random.randrange(5):
            case 0:
                sizes[kind] = random.randint(0, 5)
                yield "apply", workload(kind, images[kind], sizes[kind])
            case 1:
                images[kind] = f"app:{random.randint(1, 3)}"
                yield "apply", workload(kind, images[kind], sizes[kind])
            case 2:
                effects = random.choice([(), ("NoSchedule",), ("NoExecute",)])
                yield "apply", node(random.choice(nodes), *effects)
            case 3 if len(nodes) > 2:
                yield "delete", "Node", nodes.pop()
            case _:
                yield "delete pod", random.randrange(100)
        yield ("run",)


def perform(cluster, change):
    match change:
        case ("run",):
            cluster.run(STEP_SECONDS)
        case ("delete pod", number):
            # Of a StatefulSet: other pods have random names.
            names = sorted(
                obj["metadata"]["name"]
                for obj in cluster.objects("Pod")
                if obj["metadata"]["name"].startswith("statefulset-")
            )
            if names:
                cluster.delete("Pod", names[number % len(names)])
        case (verb, *arguments):
            getattr(cluster, verb)(*arguments)


def pods_of(cluster):
    """The pods by their app, image, phase and, where they are not random, name or node."""
    found = []
    for pod in cluster.objects("Pod"):
        meta, spec = pod["metadata"], pod["spec"]
        app = meta["labels"]["app"]
        if app == "job" and pod["status"]["phase"] != "Running":
            continue  # Which of them a deleted node takes along depends on random placements.
        known = {"statefulset": meta["name"], "daemonset": spec.get("nodeName", "")}
        image = spec["containers"][0]["image"]
        found.append((app, image, pod["status"]["phase"], known.get(app, "")))
    return sorted(found)


def statuses_of(cluster):
    found = {}
    for kind in KINDS:
        for obj in cluster.objects(kind):
            owned = bool(obj["metadata"].get("ownerReferences"))
            image = obj["spec"]["template"]["spec"]["containers"][0]["image"]
            name = image if owned else obj["metadata"]["name"]
            status = obj.get("status") or {}
            conditions = [
                (each["type"], each["status"], each.get("reason"))
                for each in status.get("conditions") or ()
            ]
            counts = {key: status[key] for key in STATUS if status.get(key)}
            found[kind, name] = (counts, sorted(conditions, key=str))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_the_same_changes_have_the_same_results(seed):
    served, simulated = Served(), Simulated()
    for step, change in enumerate(changes(Random(seed))):
        perform(served, change)
        perform(simulated, change)
        if change == ("run",):
            assert pods_of(simulated) == pods_of(served), f"after step {step}"
            assert statuses_of(simulated) == statuses_of(served), f"after step {step}"


def test_a_running_daemon_stays_on_a_node_that_gets_a_no_schedule_taint():
    for cluster in (Served(), Simulated()):
        cluster.create(node("n0"))
        cluster.create(workload("DaemonSet", "app:1", 0))
        cluster.run(10)
        cluster.apply(node("n0", "NoSchedule"))
        cluster.run(10)
        assert [each[2:] for each in pods_of(cluster)] == [("Running", "n0")]
