"""Limits for what soak.py measures: CPU time per pod, and memory."""

import json
import statistics
import time

import pytest
from soak import Churn, cost
from world import until

# The goal is 0.8 ms, on a machine that has nothing else to do; tests share theirs.
MOST_MILLISECONDS = 2.5
# What the sample takes on the machine where the limit was written down. On a slower or busier one
# also CPU time is longer, for the sample and for a pod alike; the limit grows with the sample.
SAMPLE_MILLISECONDS = 0.8
CONTAINER = {"name": "app", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
POD = {
    "metadata": {"name": "pod", "labels": {f"label-{i}": "x" * 10 for i in range(10)}},
    "spec": {"containers": [CONTAINER] * 5},
}
MOST_GROWTH_BYTES = 6 * 2**20


def samples():
    """Milliseconds of CPU that a fixed piece of Python takes, several times."""
    found = []
    for _ in range(50):
        began = time.process_time()
        for _ in range(40):
            json.loads(json.dumps(POD))
        found.append(1000 * (time.process_time() - began))
    return found


@pytest.mark.slow
def test_cpu_per_pod(world):
    before = samples()
    milliseconds, _ = cost(world, nodes=200, pods=600)
    slowness = statistics.median(before + samples()) / SAMPLE_MILLISECONDS
    assert milliseconds < MOST_MILLISECONDS * max(1.0, slowness)


@pytest.mark.slow
def test_memory_stays_while_a_cluster_churns(world):
    churn = Churn(world, nodes=20, pods=100)
    scheduler = world.run()
    until(lambda: scheduler.said("scheduling"))
    churn.go_on(3, per_second=150)
    warm = scheduler.resident_bytes()
    churn.go_on(4, per_second=150)
    assert scheduler.resident_bytes() - warm < MOST_GROWTH_BYTES
    until(
        lambda: len(world.bound()) == len(churn.pods),
        shown=lambda: f"not bound: {sorted(set(churn.pods) - set(world.bound()))}",
    )
    world.check_room()
