"""Shapes in which there is not room for all."""

from moorage.api.pod import Pod
from moorage.bench.objects import nodes_of, pod, pods_of
from moorage.bench.workload import Workload, shape

PER_NODE = 4
LARGE = {"cpu": "900m", "memory": "500Mi"}
HUGE = {"cpu": "64", "memory": "500Mi"}


@shape(pods=2_000)
def preemption(nodes: int, initial: int, pods: int) -> Workload:
    """Every node is full of lesser pods; each new one has three of them leave, up to its promise."""
    low = [_on(pod(f"low-{i}", requests=LARGE, priority=0), i, nodes) for i in range(PER_NODE * nodes)]
    high = [
        pod(f"pod-{i}", requests={"cpu": "3", "memory": "500Mi"}, priority=1000)
        for i in range(min(pods, nodes))
    ]
    return Workload(nodes_of(nodes), low, high, hopeless=len(high))


@shape(pods=5_000)
def beside_hopeless(nodes: int, initial: int, pods: int) -> Workload:
    """Pods of one template beside twice as many that rest, because they fit nowhere."""
    resting = [pod(f"hopeless-{i}", requests=HUGE) for i in range(2 * pods)]
    return Workload(nodes_of(nodes), resting, pods_of("pod", pods))


def _on(made: Pod, i: int, nodes: int) -> Pod:
    from msgspec.structs import replace

    return replace(made, spec=replace(made.spec, node_name=f"node-{i % nodes}"))
