"""Storms in a full cluster, where pods with higher priority keep arriving.

As in all storms, no pod may be deleted twice. At the end no pending pod is nominated, and every
evicted pod had a lower priority than its preemptor.
MOORAGE_SEEDS=1000 runs that many seeds, MOORAGE_SEED=7 that one.
"""

from random import Random

import pytest
from random_faults import random_faults
from tests import storm
from tests.storm_seeds import seeds

from moorage import Simulation
from moorage.api.pod import Pod
from moorage.sim.faults import Faults

SEEDS = seeds(24)
PRIORITIES = {"low": 0, "mid": 100, "high": 1000, "top": 10000}
# Unschedulable pods are retried after five minutes; that repairs what faults left behind.
FLUSHED_SECONDS = 700.0


class PriorityCluster:
    """A small cluster full of pods of low priority, and a random script of changes."""

    def __init__(self, seed):
        self.draw = Random(f"preemption {seed}")
        self.nodes = [self.node(i) for i in range(self.draw.randint(1, 4))]
        self.low = [self.pod(f"low-{i}", "low") for i in range(self.draw.randint(4, 14))]

    def objects(self):
        classes = [
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
            }
            for name, value in PRIORITIES.items()
        ]
        return [*classes, *self.nodes, *self.low, *self.budgets()]

    def budgets(self):
        if self.draw.random() < 0.5:
            return []
        return [
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "a", "namespace": "default"},
                "spec": {"selector": {"matchLabels": {"app": "a"}}},
                "status": {"disruptionsAllowed": self.draw.randrange(2)},
            }
        ]

    def node(self, i):
        room = {"cpu": self.draw.choice("234"), "memory": "8Gi", "pods": self.draw.choice("468")}
        meta = {"name": f"node-{i}", "labels": {"zone": self.draw.choice("ew")}}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": meta,
            "status": {"allocatable": room},
        }

    def pod(self, name, priority):
        draw = self.draw
        cpu = {"requests": {"cpu": draw.choice(("300m", "900m", "1500m"))}}
        spec = {
            "containers": [{"name": "main", "resources": cpu}],
            "priorityClassName": priority,
            "terminationGracePeriodSeconds": draw.choice((0, 1, 5, 20)),
        }
        if draw.random() < 0.15:
            term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "zone"}
            apart = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            spec["affinity"] = {"podAntiAffinity": apart}
        meta = {"name": name, "labels": {"app": draw.choice("ab")}}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    def script(self):
        times = sorted(self.draw.uniform(1, storm.LASTS_SECONDS) for _ in range(14))
        return [(round(at, 3), self.change(i)) for i, at in enumerate(times)]

    def change(self, i):
        draw = self.draw
        rank = draw.choice(("mid", "high", "top"))
        new = [self.pod(f"{rank}-{i}-{n}", rank) for n in range(draw.randint(1, 3))]
        node = draw.choice(self.nodes)
        name, earlier = node["metadata"]["name"], f"{rank}-{max(i - 1, 0)}-0"
        return draw.choice(
            [
                *[lambda sim: sim.create(new)] * 6,
                lambda sim: sim.create([self.pod(f"low-more-{i}", "low")]),
                lambda sim: sim.delete("Pod", "default", earlier),
                lambda sim: sim.delete("Pod", "default", draw.choice(self.low)["metadata"]["name"]),
                lambda sim: sim.delete("Node", "", name),
                lambda sim: sim.create([node]),
            ]
        )


def live_through(seed, faults):
    cluster = PriorityCluster(seed)
    sim = Simulation(cluster.objects(), seed=seed, faults=faults, check=True)
    storm.play(sim, cluster.script())
    return sim


def check(sim):
    priority = {name.partition("-")[0]: value for name, value in PRIORITIES.items()}
    for each in sim.evictions:
        victim, by = (key.partition("/")[2].partition("-")[0] for key in (each.pod, each.by))
        assert priority[victim] < priority[by]
    sim.run(until=sim.now + FLUSHED_SECONDS)
    sim.run()
    nominated = {
        pod.key: pod.status.nominated_node_name
        for pod in sim.cluster.all(Pod)
        if not pod.node_name and pod.status.nominated_node_name
    }
    assert nominated == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_storm(seed):
    check(live_through(seed, random_faults(seed)))


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(20030, id="a nominated pod that waits for its retry keeps the room of others"),
        pytest.param(51466, id="a nominated pod is bound elsewhere"),
    ],
)
def test_seeds_that_failed(seed):
    check(live_through(seed, random_faults(seed)))


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param({}, id="no faults"),
        pytest.param({"delete_fails": 0.6}, id="victims cannot be deleted"),
        pytest.param({"patch_fails": 0.8}, id="nominations and marks are lost"),
        pytest.param({"delete_fails": 0.3, "patch_fails": 0.3, "answer_seconds": 10}, id="slow"),
        pytest.param(
            {"late_seconds": 15, "stale": 0.5, "duplicated": 0.5}, id="late and stale observations"
        ),
        pytest.param({"restarts": 6, "answer_seconds": 5}, id="restarts"),
        pytest.param({"restarts": 4, "overlap_seconds": 30}, id="two leaders"),
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_a_single_kind_of_fault(seed, faults):
    check(live_through(seed, Faults(until_seconds=40, **faults) if faults else None))


def test_the_simulations_evict_pods():
    evicted = [len(live_through(seed, None).evictions) for seed in range(10)]
    assert sum(count > 0 for count in evicted) > 5, "no storm has an eviction"
