"""Storm: a random small cluster, a random script of changes to it, and random faults.

    storm.run(7)                      the same every time, byte for byte
    storm.run(7, config="mine.yaml")  the same with another configuration

Everything follows from the seed. All invariants are checked after every step; an InvariantError
contains the history of the pod. The faults end before the simulation does.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from random import Random
from typing import Any

from random_faults import random_faults

from moorage.api import config as configuration
from moorage.cluster.status_errors import StatusError
from moorage.sim.faults import Faults
from moorage.sim.run import Simulation

Manifest = dict[str, Any]
Change = Callable[[Simulation], None]

LASTS_SECONDS = 50.0
ZONES = ("east", "west", "north")
PRIORITIES = {"low": 10, "high": 1000}


def run(
    seed: int,
    config: configuration.Source = None,
    *,
    faults: Faults | None = None,
    cluster: "RandomCluster | None" = None,
) -> Simulation:
    """Run a storm; returns the simulation when nothing is left to do."""
    cluster = RandomCluster(seed) if cluster is None else cluster
    sim = Simulation(
        cluster.objects(),
        config,
        seed,
        faults=random_faults(seed) if faults is None else faults,
        check=True,
        trace=True,
    )
    play(sim, cluster.script())
    return sim


def play(sim: Simulation, script: Iterable[tuple[float, Change]]) -> None:
    """Apply each change at its time, then run until nothing is left to do."""
    for at, change in script:
        sim.run(until=at)
        with suppress(StatusError):  # The object may be gone, or exist already.
            change(sim)
    sim.run(until=LASTS_SECONDS)
    sim.run()


class RandomCluster:
    """Draws objects and a script of changes to them."""

    def __init__(self, seed: int) -> None:
        # The text is part of the seed: with another one the seeds of seeds.txt mean other runs.
        self._random = Random(f"weather {seed}")
        # Most pods are one of many, as a workload's replicas are.
        self._workloads = [self._new_pod() for _ in range(3)]
        self._nodes = [self._node(i) for i in range(self._random.randint(2, 5))]
        self._pods = [self._pod(f"pod-{i}") for i in range(self._random.randint(4, 12))]

    def objects(self) -> list[Manifest]:
        """The objects at the start."""
        classes = [_priority_class(name, value) for name, value in PRIORITIES.items()]
        return [*classes, *self._nodes, *self._pods]

    def script(self) -> list[tuple[float, Change]]:
        """Changes with their times, in order."""
        times = sorted(self._random.uniform(0, LASTS_SECONDS) for _ in range(12))
        return [(round(at, 3), self._change(i)) for i, at in enumerate(times)]

    def _change(self, i: int) -> Change:
        draw = self._random
        pod = draw.choice(self._pods)["metadata"]["name"]
        node = draw.choice(self._nodes)
        name = node["metadata"]["name"]
        late = self._pod(f"late-{i}")
        daemon = self._pod(f"daemon-{i}") | {"spec": _spec("250m") | {"nodeName": name}}
        kinds: list[Change] = [
            lambda sim: sim.create([late]),
            lambda sim: sim.create([self._pod(f"more-{i}-{n}") for n in range(3)]),
            lambda sim: sim.create([daemon]),
            lambda sim: sim.create([_namesake(pod)]),
            lambda sim: sim.delete("Pod", "default", pod),
            lambda sim: sim.delete("Pod", "default", pod),
            lambda sim: sim.update(_ungated(sim, pod)),
            lambda sim: sim.create([self._node(10 + i)]),
            lambda sim: sim.delete("Node", "", name),
            lambda sim: sim.create([node]),
            lambda sim: sim.update(_resized(node, draw.choice(("1", "2", "8")))),
            lambda sim: sim.update(_cordoned(node, on=draw.random() < 0.5)),
        ]
        return draw.choice(kinds)

    def _node(self, i: int) -> Manifest:
        draw = self._random
        labels = {"zone": draw.choice(ZONES), "kubernetes.io/hostname": f"node-{i}"}
        taints = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{i}", "labels": labels},
            "spec": {"taints": taints} if draw.random() < 0.2 else {},
            "status": {"allocatable": _room(draw.choice(("1", "2", "4")))},
        }

    def _pod(self, name: str) -> Manifest:
        draw = self._random
        pod = draw.choice(self._workloads) if draw.random() < 0.7 else self._new_pod()
        return pod | {"metadata": pod["metadata"] | {"name": name}}

    def _new_pod(self) -> Manifest:
        draw = self._random
        spec = _spec(draw.choice(("100m", "500m", "1", "1500m", "3")))
        for chance, addition in self._additions():
            if draw.random() < chance:
                spec |= addition
        annotations = {}
        if draw.random() < 0.15:
            annotations["moorage.dev/run-seconds"] = str(draw.choice((1, 5, 20)))
        meta = {"labels": {"app": draw.choice("ab")}, "annotations": annotations}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    def _additions(self) -> list[tuple[float, Manifest]]:
        draw = self._random
        apart = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "zone"}
        spread = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"} | apart
        keep_away = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
        return [
            (0.2, {"nodeSelector": {"zone": draw.choice(ZONES)}}),
            (0.2, {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}),
            (0.6, {"priorityClassName": draw.choice(list(PRIORITIES))}),
            (0.2, {"schedulingGates": [{"name": "wait"}]}),
            (0.1, {"schedulerName": "somebody-else"}),
            (0.1, {"topologySpreadConstraints": [spread]}),
            (0.1, {"affinity": {"podAntiAffinity": keep_away}}),
            (0.5, {"terminationGracePeriodSeconds": draw.choice((0, 1, 10))}),
        ]


def _priority_class(name: str, value: int) -> Manifest:
    meta = {"name": name}
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": meta,
        "value": value,
    }


def _room(cpu: str) -> Manifest:
    return {"cpu": cpu, "memory": "8Gi", "pods": "6"}


def _spec(cpu: str) -> Manifest:
    return {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}


def _namesake(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": _spec("500m")}


def _ungated(sim: Simulation, name: str) -> Manifest:
    pod = sim.read("Pod", "default", name)
    return {**pod, "spec": {**pod["spec"], "schedulingGates": []}}


def _resized(node: Manifest, cpu: str) -> Manifest:
    return node | {"status": {"allocatable": _room(cpu)}}


def _cordoned(node: Manifest, *, on: bool) -> Manifest:
    return node | {"spec": node["spec"] | {"unschedulable": on}}
