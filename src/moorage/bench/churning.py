"""Shapes in which the cluster does not hold still: things come and go between the decisions."""

from collections.abc import Iterator
from itertools import islice

from moorage.api.meta import KubeObject, ObjectMeta
from moorage.api.workloads import Service, ServiceSpec
from moorage.bench.crowded import HUGE
from moorage.bench.objects import NAMESPACE, node, nodes_of, pod, pods_of
from moorage.bench.workload import Workload, shape
from moorage.core.observations import Added, Deleted, Observation


@shape(pods=5_000)
def churn(nodes: int, initial: int, pods: int) -> Workload:
    """While a pod is placed, another one ends that runs already."""
    there = pods_of("initial", max(initial, pods))
    ends: list[Observation] = [Deleted(each) for each in there[:pods]]
    return Workload(nodes_of(nodes), there, pods_of("pod", pods), churn=ends)


@shape(pods=5_000)
def mixed_churn(nodes: int, initial: int, pods: int) -> Workload:
    """Meanwhile nodes, Services and hopeless pods come and go."""
    every = 5
    happens = list(islice(_come_and_go(nodes), pods // every))
    there, wanted = pods_of("initial", initial), pods_of("pod", pods)
    return Workload(nodes_of(nodes), there, wanted, churn=happens, churn_every=every)


def _come_and_go(nodes: int) -> Iterator[Observation]:
    """What scheduler_perf makes and removes again, in turn."""
    for i in range(1_000_000):
        service = Service(
            metadata=ObjectMeta(
                name=f"churn-{i}", namespace=NAMESPACE, uid=f"service-{i}", resource_version="1"
            ),
            spec=ServiceSpec(selector={"app": f"churn-{i}"}),
        )
        made: tuple[KubeObject, ...] = (
            node(f"node-{nodes + i}", i),
            pod(f"churn-{i}", requests=HUGE),
            service,
        )
        yield from map(Added, made)
        yield from map(Deleted, made)
