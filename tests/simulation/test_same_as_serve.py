"""A Simulation and the control plane of `serve` do the same with the same workloads."""

import itertools
from random import Random

import pytest

from moorage.api import timestamps
from moorage.cluster.api_server import ApiServer
from moorage.cluster.resources import BUILT_IN
from moorage.cluster.store import Store
from moorage.controllers import objects
from moorage.core.scheduler import Scheduler
from moorage.errors import InputError
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
        core = ("Pod", "Node", "PersistentVolume", "PersistentVolumeClaim")
        groups = {"Job": "batch/", **dict.fromkeys(core, "")}
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


# Volumes


ZONE = "topology.kubernetes.io/zone"
REQUEST = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
VOLUME_SECONDS = 12.0  # enough to schedule a pod, to provision, and to stop a pod
STORAGE = ("PersistentVolumeClaim", "PersistentVolume")


def storage_class(name, mode, policy="Delete", provisioner="disk.example.com", **metadata):
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, **metadata},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        "reclaimPolicy": policy,
    }


CLASSES = {
    "at-once": storage_class("at-once", "Immediate"),
    "kept": storage_class("kept", "Immediate", "Retain"),
    "late": storage_class("late", "WaitForFirstConsumer"),
    "by-hand": storage_class(
        "by-hand", "WaitForFirstConsumer", provisioner="kubernetes.io/no-provisioner"
    ),
}
DEFAULT = storage_class(
    "standard",
    "WaitForFirstConsumer",
    annotations={"storageclass.kubernetes.io/is-default-class": "true"},
)


def claim(name, class_=None, **fields):
    named = {} if class_ is None else {"storageClassName": class_}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**REQUEST, **named, **fields},
    }


def disk(name, class_="", size="1Gi", policy="Retain", **fields):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_,
            "persistentVolumeReclaimPolicy": policy,
            "csi": {"driver": "disk.example.com", "volumeHandle": name},
            **fields,
        },
    }


def user(name, claim=None, template=None):
    """A pod that uses a claim, or has one of its own."""
    volume = {"name": "data"}
    if claim is not None:
        volume["persistentVolumeClaim"] = {"claimName": claim}
    else:
        volume["ephemeral"] = {"volumeClaimTemplate": template}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "annotations": {"moorage.dev/stop-seconds": "1"},
        },
        "spec": {"containers": [{"name": "c", "image": "app:1"}], "volumes": [volume]},
    }


def storage_of(cluster):
    """Claims and volumes: phases, references, classes, nodes, annotations of the controllers."""
    found = {}
    for kind in STORAGE:
        for obj in objects.plain(cluster.objects(kind)):
            meta, spec = obj["metadata"], obj["spec"]
            reference = spec.get("claimRef") or {}
            # The names of provisioned volumes have the UID of their claim.
            made = meta["name"].startswith("pvc-")
            name = f"for {reference['name']}" if made else meta["name"]
            volume = spec.get("volumeName", "")
            owners = [each["name"] for each in meta.get("ownerReferences") or ()]
            marks = {
                key: value
                for key, value in (meta.get("annotations") or {}).items()
                if key.startswith("pv.kubernetes.io/")
            }
            found[kind, name] = {
                "phase": obj["status"]["phase"],
                # A struct does not keep whether the class of a volume is missing or empty.
                "class": spec.get("storageClassName", "" if kind == "PersistentVolume" else None),
                "volume": f"for {name}" if volume.startswith("pvc-") else volume,
                "claim": (reference.get("name"), bool(reference.get("uid"))),
                "policy": spec.get("persistentVolumeReclaimPolicy"),
                "affinity": spec.get("nodeAffinity"),
                "modes": obj["status"].get("accessModes"),
                "capacity": obj["status"].get("capacity"),
                "marks": marks,
                "labels": meta.get("labels") or {},
                "owners": owners,
            }
    return found


def phases(cluster):
    return sorted((p["metadata"]["name"], p["status"]["phase"]) for p in cluster.objects("Pod"))


def compare(*steps):
    """Make the same requests of both, and compare volumes after each pause; returns the last."""
    served, simulated = Served(), Simulated()
    in_zone = node("n0")
    in_zone["metadata"]["labels"][ZONE] = "a"
    for change in (("create", in_zone), *steps, ("run",)):
        for cluster in (served, simulated):
            if change == ("run",):
                cluster.run(VOLUME_SECONDS)
            else:
                perform(cluster, change)
        if change == ("run",):
            assert storage_of(simulated) == storage_of(served)
            assert phases(simulated) == phases(served)
    return storage_of(simulated)


@pytest.mark.parametrize("class_", CLASSES)
def test_a_claim_is_bound_and_its_volume_reclaimed(class_):
    disks = [disk("large", "by-hand", "9Gi"), disk("small", "by-hand", "2Gi")]
    begin = [CLASSES[class_], *disks, claim("data", class_)]
    used = [*(("create", obj) for obj in begin), ("run",), ("create", user("p", "data"))]
    found = compare(*used)
    assert found["PersistentVolumeClaim", "data"]["phase"] == "Bound"
    expected = "small" if class_ == "by-hand" else "for data"
    assert found["PersistentVolumeClaim", "data"]["volume"] == expected
    ended = [("run",), ("delete", "Pod", "p"), ("run",)]
    found = compare(*used, *ended, ("delete", "PersistentVolumeClaim", "data"))
    left = {name: each["phase"] for (_, name), each in found.items()}
    assert (
        sorted(left.values())
        == {
            "at-once": ["Available", "Available"],
            "late": ["Available", "Available"],
            "kept": ["Available", "Available", "Released"],
            "by-hand": ["Available", "Released"],
        }[class_]
    )


def test_a_waiting_claim_gets_its_volume_with_its_consumer():
    waiting = [("create", CLASSES["late"]), ("create", claim("data", "late"))]
    found = compare(*waiting)
    assert {name: each["phase"] for (_, name), each in found.items()} == {"data": "Pending"}
    found = compare(*waiting, ("run",), ("create", user("p", "data")))
    (term,) = found["PersistentVolume", "for data"]["affinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": ZONE, "operator": "In", "values": ["a"]}]


def test_an_ephemeral_volume_lives_as_long_as_its_pod():
    template = {
        "metadata": {"labels": {"of": "p"}},
        "spec": {**REQUEST, "storageClassName": "late"},
    }
    steps = [("create", CLASSES["late"]), ("create", user("p", template=template))]
    found = compare(*steps)
    own = found["PersistentVolumeClaim", "p-data"]
    assert (own["phase"], own["labels"], own["owners"]) == ("Bound", {"of": "p"}, ["p"])
    assert compare(*steps, ("run",), ("delete", "Pod", "p")) == {}


def test_a_claim_gets_the_default_class_also_when_it_comes_later():
    early, later = ("create", claim("early")), ("create", claim("later"))
    none = ("create", claim("none", ""))
    found = compare(early, none, ("run",), ("create", DEFAULT), later, ("run",))
    classes = {name: each["class"] or "" for (_, name), each in found.items()}
    assert classes == {"early": "standard", "later": "standard", "none": ""}


@pytest.mark.parametrize(
    ("requested", "disks", "expected"),
    [
        pytest.param({"volumeName": "b"}, [disk("a"), disk("b")], "b", id="named by the claim"),
        pytest.param({"volumeName": "b"}, [disk("b", size="1Mi")], "", id="named, too small"),
        pytest.param(
            {},
            [disk("a"), disk("b", "other", claimRef={"namespace": "default", "name": "data"})],
            "b",
            id="reserved for the claim",
        ),
        pytest.param(
            {},
            [disk("a", accessModes=["ReadWriteOnce", "ReadOnlyMany"]), disk("b", size="5Gi")],
            "b",
            id="fewest access modes first",
        ),
        pytest.param(
            {"selector": {"matchLabels": {"tier": "gold"}}}, [disk("a")], "", id="selector"
        ),
        pytest.param({"volumeMode": "Block"}, [disk("a")], "", id="volume mode"),
    ],
)
def test_which_volume_a_claim_gets(requested, disks, expected):
    steps = [("create", obj) for obj in (*disks, claim("data", "", **requested))]
    found = compare(*steps)["PersistentVolumeClaim", "data"]
    phase = "Bound" if expected else "Pending"
    assert (found["phase"], found["volume"]) == (phase, expected or requested.get("volumeName", ""))


def test_a_volume_can_be_used_again_when_its_reference_is_removed():
    used = [("create", disk("a")), ("create", claim("data", "")), ("run",)]
    used += [("delete", "PersistentVolumeClaim", "data"), ("run",)]
    free = disk("a")
    free["metadata"]["annotations"] = {}
    found = compare(*used, ("apply", free), ("run",), ("create", claim("next", "")))
    assert found["PersistentVolume", "a"]["claim"] == ("next", True)


# Quotas and limit ranges -------------------------------------------------------------------------

QUOTA_KINDS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job")


def quota(random):
    """A quota of some of the things that the workloads use."""
    hard = {
        "pods": str(random.randint(1, 6)),
        "requests.cpu": f"{random.randint(1, 6)}00m",
        "count/replicasets.apps": str(random.randint(1, 4)),
        "count/jobs.batch": "1",
    }
    names = random.sample(list(hard), random.randint(1, 3))
    return namespaced("ResourceQuota", {"hard": {name: hard[name] for name in names}})


def limit_range(random):
    """Bounds that some of the workloads violate, or defaults."""
    limit = random.choice(
        [
            {"max": {"cpu": "1"}, "default": {"cpu": "200m"}},
            {"min": {"cpu": "150m"}},
            {"defaultRequest": {"memory": "1Mi"}},
        ]
    )
    return namespaced("LimitRange", {"limits": [{"type": "Container", **limit}]})


def namespaced(kind, spec):
    meta = {"name": kind.lower(), "namespace": "default"}
    return {"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": spec}


def admission_changes(random, kind):
    """A workload under a quota and a limit range, both of which change: (verb, arguments).

    One workload, because which of several gets the rest of a quota is a matter of order.
    """
    yield from (("create", node(name)) for name in ("n0", "n1", "n2"))
    limits = random.sample([quota, limit_range], random.randint(1, 2))
    yield from (("create", make(random)) for make in limits)
    yield ("run",)
    yield "create", workload(kind, "app:1", 4)
    yield ("run",)
    for _ in range(STEPS // 2):
        match random.randrange(3) if kind != "Job" else 2:
            case 0:
                yield "apply", workload(kind, "app:1", random.randint(0, 5))
            case 1:
                yield "apply", workload(kind, f"app:{random.randint(1, 3)}", 2)
            case _:
                yield "apply", random.choice(limits)(random)
        yield ("run",)
    for make in limits:
        obj = make(random)
        yield "delete", obj["kind"], obj["metadata"]["name"]
        yield ("run",)


def quota_of(cluster):
    if isinstance(cluster, Simulated):
        try:
            return cluster.sim.read("ResourceQuota", "default", "resourcequota")["status"]
        except InputError:
            return None
    found = cluster.objects("ResourceQuota")
    return found[0]["status"] if found else None


@pytest.mark.parametrize("kind", QUOTA_KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_quotas_and_limit_ranges_refuse_the_same(kind, seed):
    served, simulated = Served(), Simulated()
    for step, change in enumerate(admission_changes(Random(f"{kind}/{seed}"), kind)):
        perform(served, change)
        perform(simulated, change)
        if change == ("run",):
            assert quota_of(simulated) == quota_of(served), f"after step {step}"
            assert pods_of(simulated) == pods_of(served), f"after step {step}"
            assert statuses_of(simulated) == statuses_of(served), f"after step {step}"


# Fields that no scheduler reads ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
def test_a_change_of_the_environment_replaces_the_pods(kind):
    for cluster in (Served(), Simulated()):
        cluster.create(node("n0"))
        uids = []
        for value in ("1", "1", "2"):
            changed = workload(kind, "app:1", 2)
            [container] = changed["spec"]["template"]["spec"]["containers"]
            container["env"] = [{"name": "A", "value": value}]
            (cluster.apply if uids else cluster.create)(changed)
            cluster.run(STEP_SECONDS)
            uids.append({pod["metadata"]["uid"] for pod in cluster.objects("Pod")})
        assert uids[0] == uids[1]
        assert not uids[0] & uids[2]
        assert len(uids[2]) == (1 if kind == "DaemonSet" else 2)
