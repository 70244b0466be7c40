"""Shapes in which there is not room for all."""

from moorage.bench.objects import nodes_of, pod, pods_of
from moorage.bench.workload import Workload, shape

PER_NODE = 4
LARGE = {"cpu": "900m", "memory": "500Mi"}
LARGER = {"cpu": "3", "memory": "500Mi"}
HUGE = {"cpu": "64", "memory": "500Mi"}


@shape(pods=2_000)
def preemption(nodes: int, initial: int, pods: int) -> Workload:
    """Full nodes: lesser pods leave, each pod is promised one."""
    low = [
        pod(f"low-{i}", requests=LARGE, node_name=f"node-{i % nodes}")
        for i in range(PER_NODE * nodes)
    ]
    high = pods_of("pod", min(pods, nodes), requests=LARGER, priority=1000)
    return Workload(nodes_of(nodes), low, high, hopeless=len(high))


@shape(pods=5_000)
def beside_hopeless(nodes: int, initial: int, pods: int) -> Workload:
    """Pods beside twice as many that fit nowhere, and rest."""
    resting = pods_of("hopeless", 2 * pods, requests=HUGE)
    return Workload(nodes_of(nodes), resting, pods_of("pod", pods))
