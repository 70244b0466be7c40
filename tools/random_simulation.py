"""Random simulations from a seed, and a record of every decision made in them.

    python tools/random_simulation.py OUTPUT_DIRECTORY FIRST_SEED LAST_SEED

Writes OUTPUT_DIRECTORY/SEED.jsonl for each seed. The file uses the public API only
(`moorage.Simulation`, `moorage.plugin`) and the journal, so that it runs on other commits too: the
directory in PYTHONPATH decides which source tree is recorded. `tools/same_decisions.py` compares
two of them.
"""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from random_faults import random_faults

from moorage import Simulation
from moorage import plugin as mp
from moorage.core.journal import Journal
from moorage.errors import InputError

Manifest = dict[str, Any]

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
ZONES = ("a", "b", "c")
APPS = ("web", "db", "cache", "job")
PRIORITIES = {"low": 10, "middle": 100, "high": 1000, "polite": 500}
DRIVER = "csi.example.com"
LOCAL, PROVISIONED, IMMEDIATE = "local", "provisioned", "immediate"
IMAGES = ("registry/small:1", "registry/large:1")
SCRIPT_SECONDS = 60.0
# Small clusters fill up and preempt; large ones make the array forms of plugins worthwhile.
NODE_COUNTS = (4, 6, 10, 10, 20, 40, 40, 90, 250, 700)


class ShortNames:
    """A plugin with per-node forms only, as users write them: rejects and scores by node name."""

    name = "ShortNames"

    def filter(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> mp.Status:
        if pod.labels.get("app") == "db" and node.name.endswith("3"):
            return mp.unschedulable("node(s) had a name that ends in 3")
        return mp.SUCCESS

    def score(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> int:
        return 100 - len(node.name) if len(pod.labels) % 2 else 50


class RandomCluster:
    """Draws a configuration, objects, and a script of changes to them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(f"cluster {seed}")
        # Of its own, so that all else stays as it was.
        self.for_preemption = Random(f"preemption {seed}")
        draw = self.random
        self.node_count = draw.choice(NODE_COUNTS)
        self.pod_count = min(draw.randint(2, 8) * self.node_count, draw.randint(60, 180))
        self.has_volumes = draw.random() < 0.5
        self.has_terms = draw.random() < 0.7
        self.workloads = [self.pod_template() for _ in range(draw.randint(2, 6))]
        self.nodes = [self.node(i) for i in range(self.node_count)]
        self.pods: list[str] = []

    def config(self) -> Manifest | None:
        draw = self.random
        settings: Manifest = {}
        if draw.random() < 0.15:
            settings["percentageOfNodesToScore"] = draw.choice((5, 30, 60))
        profile: Manifest = {"schedulerName": "default-scheduler"}
        if draw.random() < 0.2:
            profile["plugins"] = {
                "multiPoint": {"enabled": [{"name": f"{__name__}:ShortNames", "weight": 2}]}
            }
        if draw.random() < 0.2:
            strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
            args: Manifest = {"scoringStrategy": strategy}
            profile["pluginConfig"] = [{"name": "NodeResourcesFit", "args": args}]
        if self.for_preemption.random() < 0.3:
            args = {
                "minCandidateNodesPercentage": self.for_preemption.choice((1, 30)),
                "minCandidateNodesAbsolute": self.for_preemption.choice((0, 2)),
            }
            profile.setdefault("pluginConfig", []).append(
                {"name": "DefaultPreemption", "args": args}
            )
        if len(profile) > 1:
            settings["profiles"] = [profile]
        if not settings:
            return None
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            **settings,
        }

    def objects(self) -> list[Manifest]:
        draw = self.random
        found = [priority_class(name, value) for name, value in PRIORITIES.items()]
        found += self.nodes
        found += [service(app) for app in APPS if draw.random() < 0.3]
        found += [self.budget(app) for app in APPS if draw.random() < 0.4]
        if self.has_volumes:
            found += storage_classes()
            found += [csi_node(node["metadata"]["name"]) for node in self.nodes]
            found += [
                volume(f"disk-{i}", draw.choice(self.nodes)["metadata"]["name"], draw.choice(ZONES))
                for i in range(self.node_count // 2)
            ]
        for i in range(self.pod_count):
            found += self.pod(f"pod-{i}")
        return found

    # The script: changes in order of time.

    def script(self) -> Iterator[tuple[float, Any]]:
        times = sorted(self.random.uniform(0, SCRIPT_SECONDS) for _ in range(35))
        for i, at in enumerate(times):
            yield round(at, 2), self.change(i)

    def change(self, i: int) -> Any:
        """One change, as a function of the simulation; drawn when it is due."""
        draw = self.random
        name = draw.choice(self.pods)
        node = draw.choice(self.nodes)
        make = draw.choices(list(CHANGES), weights=CHANGES.values())[0]
        return make(self, i, name, node)

    def change_create(self, i: int, _name: str, _node: Manifest) -> Any:
        count = self.random.choice((1, 1, 3, 12))
        new = [obj for n in range(count) for obj in self.pod(f"late-{i}-{n}")]
        return lambda sim: sim.create(new)

    def change_preempt(self, i: int, _name: str, _node: Manifest) -> Any:
        """Several equal pods that evict others; later ones see pods nominated before them."""
        urgent = {"priorityClassName": "high", **requests("2", "1Gi")}
        if self.random.random() < 0.3:
            urgent["nodeSelector"] = {ZONE: self.random.choice(ZONES)}
        count = self.random.choice((1, 3, 6))
        new = [pod_manifest(f"urgent-{i}-{n}", {"app": "web"}, urgent) for n in range(count)]
        self.pods += [pod["metadata"]["name"] for pod in new]
        return lambda sim: sim.create(new)

    def change_delete(self, _i: int, name: str, _node: Manifest) -> Any:
        return lambda sim: sim.delete("Pod", "default", name)

    def change_relabel_pod(self, _i: int, name: str, _node: Manifest) -> Any:
        app = self.random.choice(APPS)

        def change(sim: Simulation) -> None:
            pod = sim.read("Pod", "default", name)
            labels = pod["metadata"].get("labels", {}) | {"app": app}
            sim.update(pod | {"metadata": pod["metadata"] | {"labels": labels}})

        return change

    def change_relabel_node(self, _i: int, _name: str, node: Manifest) -> Any:
        labels = node["metadata"]["labels"]
        labels[self.random.choice((ZONE, "disk"))] = self.random.choice(ZONES)
        return lambda sim: sim.update(node)

    def change_resize(self, _i: int, _name: str, node: Manifest) -> Any:
        node["status"]["allocatable"]["cpu"] = self.random.choice(("1", "4", "16"))
        return lambda sim: sim.update(node)

    def change_taint(self, _i: int, _name: str, node: Manifest) -> Any:
        node["spec"]["taints"] = self.taints(0.7)
        return lambda sim: sim.update(node)

    def change_cordon(self, _i: int, _name: str, node: Manifest) -> Any:
        node["spec"]["unschedulable"] = self.random.random() < 0.5
        return lambda sim: sim.update(node)

    def change_add(self, i: int, _name: str, _node: Manifest) -> Any:
        new = [self.node(1000 + 20 * i + n) for n in range(self.random.choice((1, 1, 3, 15)))]
        self.nodes += new
        return lambda sim: sim.create(new)

    def change_remove(self, _i: int, _name: str, node: Manifest) -> Any:
        return lambda sim: sim.delete("Node", "", node["metadata"]["name"])

    def change_readd(self, _i: int, _name: str, node: Manifest) -> Any:
        def change(sim: Simulation) -> None:
            with suppress(InputError):
                sim.delete("Node", "", node["metadata"]["name"])
            sim.create([node])

        return change

    def change_ungate(self, _i: int, name: str, _node: Manifest) -> Any:
        def change(sim: Simulation) -> None:
            pod = sim.read("Pod", "default", name)
            sim.update(pod | {"spec": pod["spec"] | {"schedulingGates": []}})

        return change

    def change_budget(self, _i: int, _name: str, _node: Manifest) -> Any:
        budget = self.budget(self.random.choice(APPS))
        return lambda sim: sim.update(budget)

    # Objects

    def node(self, i: int) -> Manifest:
        draw = self.random
        name = f"node-{i}"
        labels = {HOSTNAME: name, ZONE: draw.choice(ZONES), "disk": draw.choice(("ssd", "hdd"))}
        if draw.random() < 0.05:
            del labels[ZONE]
        allocatable = {"cpu": draw.choice(("2", "8", "16")), "memory": "32Gi", "pods": "20"}
        if draw.random() < 0.2:
            allocatable["example.com/gpu"] = "2"
        present = [image for image in IMAGES if draw.random() < 0.4]
        images = [{"names": [image], "sizeBytes": 400_000_000} for image in present]
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": self.taints(0.2), "unschedulable": draw.random() < 0.03},
            "status": {"allocatable": allocatable, "images": images},
        }

    def taints(self, chance: float) -> list[Manifest]:
        draw = self.random
        if draw.random() >= chance:
            return []
        effect = draw.choice(("NoSchedule", "PreferNoSchedule", "PreferNoSchedule"))
        return [{"key": "dedicated", "value": draw.choice(("x", "y")), "effect": effect}]

    def budget(self, app: str) -> Manifest:
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"budget-{app}", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": self.random.randrange(3)},
        }

    def pod(self, name: str) -> list[Manifest]:
        """A pod, with its claim where it has one; most pods are replicas of a workload."""
        draw = self.random
        own = draw.random() < 0.25
        labels, spec, annotations = self.pod_template() if own else draw.choice(self.workloads)
        self.pods.append(name)
        pod = pod_manifest(name, labels, spec, annotations)
        if not self.has_volumes or draw.random() < 0.7:
            return [pod]
        claim_name = f"claim-{name}"
        if draw.random() < 0.2:
            claim_name = f"claim-{draw.choice(self.pods)}"
        source = {"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}
        pod["spec"] = pod["spec"] | {"volumes": [source]}
        if claim_name != f"claim-{name}":
            return [pod]
        kind = draw.choice((LOCAL, PROVISIONED, PROVISIONED, IMMEDIATE))
        mode = draw.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"))
        return [claim(claim_name, kind, draw.choice(("1Gi", "3Gi")), mode), pod]

    def pod_template(self) -> tuple[dict[str, str], Manifest, dict[str, str]]:
        draw = self.random
        cpu = draw.choice(("50m", "100m", "300m", "500m", "1", "1500m", "3"))
        spec = requests(cpu, draw.choice(("100Mi", "500Mi", "2Gi")), draw.choice((*IMAGES, "")))
        container = spec["containers"][0]
        if draw.random() < 0.1:
            port = {"containerPort": 80, "hostPort": draw.choice((80, 81))}
            container["ports"] = [port]
        if draw.random() < 0.05:
            container["resources"]["limits"] = {"example.com/gpu": "1"}
        if draw.random() < 0.03:
            del container["resources"]["requests"]
        for chance, addition in self.additions():
            if draw.random() < chance:
                spec |= addition
        affinity = self.affinity()
        if affinity:
            spec["affinity"] = affinity
        annotations = {}
        if draw.random() < 0.15:
            annotations["moorage.dev/run-seconds"] = str(draw.choice((3, 15, 40)))
        labels = {"app": draw.choice(APPS)}
        if draw.random() < 0.3:
            labels["tier"] = draw.choice(("front", "back"))
        return labels, spec, annotations

    def additions(self) -> list[tuple[float, Manifest]]:
        draw = self.random
        spreads = [self.spread() for _ in range(draw.choice((1, 1, 2)))]
        tolerate = {"key": "dedicated", "operator": "Equal", "value": draw.choice(("x", "y"))}
        node_name = draw.choice(self.nodes)["metadata"]["name"] if hasattr(self, "nodes") else ""
        return [
            (0.1, {"nodeSelector": {ZONE: draw.choice(ZONES)}}),
            (0.1, {"nodeSelector": {"disk": draw.choice(("ssd", "hdd", "tape"))}}),
            (0.25, {"tolerations": [tolerate]}),
            (0.5, {"priorityClassName": draw.choice(list(PRIORITIES))}),
            (0.05, {"schedulingGates": [{"name": "wait"}]}),
            (0.02, {"nodeName": node_name}),
            (0.25 if self.has_terms else 0.0, {"topologySpreadConstraints": spreads}),
            (0.6, {"terminationGracePeriodSeconds": draw.choice((0, 1, 10))}),
        ]

    def spread(self) -> Manifest:
        draw = self.random
        return {
            "maxSkew": draw.choice((1, 2, 5)),
            "whenUnsatisfiable": draw.choice(("DoNotSchedule", "ScheduleAnyway")),
            **self.term(),
        }

    def term(self) -> Manifest:
        draw = self.random
        return {
            "topologyKey": draw.choice((ZONE, ZONE, HOSTNAME)),
            "labelSelector": {"matchLabels": {"app": draw.choice(APPS)}},
        }

    def affinity(self) -> Manifest:
        draw = self.random
        found: Manifest = {}
        if draw.random() < 0.15:
            zone = {
                "key": ZONE,
                "operator": draw.choice(("In", "NotIn")),
                "values": draw.sample(ZONES, 2),
            }
            terms = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
            found["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        if draw.random() < 0.15:
            disk = {"key": "disk", "operator": "In", "values": ["ssd"]}
            preferred = {
                "weight": draw.choice((1, 50)),
                "preference": {"matchExpressions": [disk]},
            }
            found.setdefault("nodeAffinity", {})[
                "preferredDuringSchedulingIgnoredDuringExecution"
            ] = [preferred]
        if not self.has_terms:
            return found
        for kind, chance in (("podAffinity", 0.1), ("podAntiAffinity", 0.2)):
            if draw.random() < chance:
                found[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": [self.term()]}
            if draw.random() < 0.15:
                weighted = {"weight": draw.choice((1, 20, 100)), "podAffinityTerm": self.term()}
                found.setdefault(kind, {})["preferredDuringSchedulingIgnoredDuringExecution"] = [
                    weighted
                ]
        return found


# What may change, and how often it does against the others.
CHANGES = {
    RandomCluster.change_create: 4,
    RandomCluster.change_preempt: 2,
    RandomCluster.change_delete: 3,
    RandomCluster.change_relabel_pod: 1,
    RandomCluster.change_relabel_node: 1,
    RandomCluster.change_resize: 1,
    RandomCluster.change_taint: 1,
    RandomCluster.change_cordon: 1,
    RandomCluster.change_add: 1,
    RandomCluster.change_remove: 1,
    RandomCluster.change_readd: 1,
    RandomCluster.change_ungate: 1,
    RandomCluster.change_budget: 1,
}


def requests(cpu: str, memory: str, image: str = "") -> Manifest:
    container: Manifest = {
        "name": "main",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    }
    if image:
        container["image"] = image
    return {"containers": [container]}


def pod_manifest(
    name: str,
    labels: dict[str, str],
    spec: Manifest,
    annotations: dict[str, str] | None = None,
) -> Manifest:
    meta = {
        "name": name,
        "namespace": "default",
        "labels": labels,
        "annotations": annotations or {},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def priority_class(name: str, value: int) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": "Never" if name == "polite" else "PreemptLowerPriority",
    }


def service(app: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": f"service-{app}", "namespace": "default"},
        "spec": {"selector": {"app": app}},
    }


def storage_classes() -> list[Manifest]:
    modes = {
        LOCAL: ("kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
        PROVISIONED: (DRIVER, "WaitForFirstConsumer"),
        IMMEDIATE: (DRIVER, "Immediate"),
    }
    return [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": mode,
        }
        for name, (provisioner, mode) in modes.items()
    ]


def csi_node(name: str) -> Manifest:
    driver = {"name": DRIVER, "nodeID": name, "topologyKeys": [ZONE], "allocatable": {"count": 3}}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [driver]},
    }


def volume(name: str, node: str, zone: str) -> Manifest:
    """A local disk; the label makes VolumeZone reject the node now and then."""
    here = {"key": HOSTNAME, "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": {ZONE: zone} if zone == ZONES[0] else {}},
        "spec": {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteOnce", "ReadWriteOncePod"],
            "storageClassName": LOCAL,
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }


def claim(name: str, storage_class: str, size: str, mode: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "storageClassName": storage_class,
            "accessModes": [mode],
            "resources": {"requests": {"storage": size}},
        },
    }


def record(seed: int) -> Iterator[bytes]:
    """Run one random simulation; yields one JSON line per fact, call and final state."""
    cluster = RandomCluster(seed)
    faults = random_faults(seed) if seed % 4 == 3 else None
    sim = Simulation(cluster.objects(), cluster.config(), seed, faults=faults, trace=True)
    for at, change in cluster.script():
        sim.run(until=at)
        with suppress(InputError):  # The object may be gone, or exist already.
            change(sim)
    sim.run()
    encode = msgspec.json.encode
    # Scores and counts first: they say more about a difference than the effects that follow.
    for fact in sim.journal:
        yield encode(fact)
    for line in sim.trace.lines():
        call = msgspec.json.decode(line)
        effects = call.get("effects", ())
        if effects or call["call"] == "schedule_one":
            yield encode({"at": call["at"], "call": call["call"], "effects": effects})
    yield encode({"now": sim.now, "placements": sim.placements, "pending": sim.pending})


def main() -> None:
    directory, first, last = sys.argv[1:]
    Journal.best_nodes = 3
    for seed in range(int(first), int(last) + 1):
        try:
            lines = b"\n".join(record(seed))
        except Exception as error:
            lines = msgspec.json.encode({"raised": repr(error)})
        Path(directory, f"{seed}.jsonl").write_bytes(lines + b"\n")


if __name__ == "__main__":
    # Configurations name the plugin by module; this module is imported under that name then.
    import random_simulation

    random_simulation.main()
