"""Shapes in which there is not room for all."""

from moorage.api.pod import PodSchedulingGate
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


def _alone(nodes: int, initial: int, pods: int) -> Workload:
    """The pods of the shapes below, without those beside whom they are measured."""
    return Workload(nodes_of(nodes), [], pods_of("pod", pods))


@shape(pods=5_000, without=_alone)
def beside_hopeless(nodes: int, initial: int, pods: int) -> Workload:
    """Pods beside twice as many that fit nowhere, and rest."""
    resting = pods_of("hopeless", 2 * pods, requests=HUGE)
    return Workload(nodes_of(nodes), resting, pods_of("pod", pods))


@shape(pods=5_000, without=_alone)
def beside_gated(nodes: int, initial: int, pods: int) -> Workload:
    """Pods beside twice as many that wait at a gate."""
    gates = (PodSchedulingGate(name="example.com/quota"),)
    waiting = pods_of("gated", 2 * pods, scheduling_gates=gates)
    return Workload(nodes_of(nodes), waiting, pods_of("pod", pods))
