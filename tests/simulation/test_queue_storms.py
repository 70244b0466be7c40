"""Storms with queues and gangs: random clusters, changes and faults, with a tree of queues.

No queue exceeds its maximum at any time, in the API server's objects. At the end, the usage that
the scheduler has kept equals a new count.
MOORAGE_SEEDS=1000 runs that many seeds, MOORAGE_SEED=7 that one.
"""

from collections import Counter
from contextlib import suppress

import pytest
from random_faults import random_faults
from tests import group_builders, queue_builders, storm
from tests.storm_seeds import seeds

from moorage import Simulation
from moorage.api import requests
from moorage.api.pod import Pod
from moorage.cluster.status_errors import StatusError
from moorage.plugins.fair_share.tree import QueueTree

# Seeds that failed once stay.
SEEDS = sorted({*seeds(12), 30, 917})
STEP_SECONDS = 0.5
# Milli-cpu and pods.
LIMITS = {"org": (3000, 6), "a": (2000, 9), "b": (9000, 3), "c": (2500, 4)}
PARENTS = {"a": "org", "b": "org"}


class QueueCluster(storm.RandomCluster):
    """A random cluster whose pods belong to queues, most of them."""

    def objects(self):
        guaranteed = {name: self._random.choice((None, {"cpu": "1"})) for name in LIMITS}
        queues = [
            queue_builders.queue(
                name,
                PARENTS.get(name, ""),
                guaranteed=guaranteed[name],
                max={"cpu": f"{cpu}m", "pods": pods},
                weight=self._random.randint(1, 3),
            )
            for name, (cpu, pods) in LIMITS.items()
        ]
        return [*queues, *self._gangs(), *super().objects()]

    def _gangs(self):
        made = []
        for i in range(self._random.randrange(3)):
            made += group_builders.gang(f"gang-{i}", self._random.randint(2, 4), cpu="500m")
        for each in made:
            if each["kind"] == "Pod":
                labels = {"moorage.dev/queue": self._random.choice([*LIMITS])}
                each["metadata"]["labels"] = labels
        return made

    def _new_pod(self):
        pod = super()._new_pod()
        name = self._random.choice([*LIMITS, ""])
        labels = {"moorage.dev/queue": name} if name else {}
        return pod | {"metadata": pod["metadata"] | {"labels": pod["metadata"]["labels"] | labels}}

    def _pod(self, name):
        pod = super()._pod(name)
        if name.startswith("daemon"):  # Bound without a scheduler, so no limit can hold for it.
            pod = pod | {"metadata": pod["metadata"] | {"labels": {}}}
        return pod


def check_limits(sim):
    cpu, count = Counter(), Counter()
    for pod in sim.cluster.all(Pod):
        name = pod.labels.get("moorage.dev/queue")
        if name and pod.node_name and not pod.is_terminal:
            for each in (name, PARENTS.get(name)):
                cpu[each] += requests.requested(pod).get("cpu", 0)
                count[each] += 1
    for name, (most_cpu, most_pods) in LIMITS.items():
        assert cpu[name] <= most_cpu, f"{name} at {sim.now}: {cpu[name]}m of {most_cpu}m cpu"
        assert count[name] <= most_pods, f"{name} at {sim.now}: {count[name]} of {most_pods} pods"


def usage(tree):
    tree.refresh()
    return {each.path: {r: n for r, n in each.used.items() if n} for each in tree.queues.values()}


@pytest.mark.parametrize("seed", SEEDS)
def test_no_queue_exceeds_its_maximum(seed):
    cluster = QueueCluster(seed)
    sim = Simulation(
        cluster.objects(),
        queue_builders.settings(**group_builders.GATES),
        seed,
        faults=random_faults(seed),
        check=True,
    )
    for at, change in [*cluster.script(), (storm.LASTS_SECONDS, lambda sim: None)]:
        while sim.now < at:
            sim.run(until=min(at, sim.now + STEP_SECONDS))
            check_limits(sim)
        with suppress(StatusError):
            change(sim)
    sim.run()
    check_limits(sim)
    state = sim.scheduler.cluster
    assert usage(state.derived(QueueTree)) == usage(QueueTree(state))
