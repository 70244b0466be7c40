"""Shapes with gangs: the pods of the basic shape, in groups that are bound together."""

from moorage.api.config import feature_gates
from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod, PodSchedulingGroup
from moorage.api.pod_groups import (
    GangSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
)
from moorage.bench.workload import NAMESPACE, BenchLoad, nodes_of, pod, pods_of, shape

GATES = {feature_gates.GENERIC_WORKLOAD: True, feature_gates.GANG_SCHEDULING: True}
HUGE = {"cpu": "64", "memory": "500Mi"}


def _basic(nodes: int, initial: int, pods: int) -> BenchLoad:
    return BenchLoad(nodes_of(nodes), pods_of("initial", initial), pods_of("pod", pods))


@shape(pods=10_000, without=_basic)
def gang_8(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Gangs of 8 pods."""
    return _gangs(nodes, initial, pods, 8)


@shape(pods=10_000, without=_basic)
def gang_64(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Gangs of 64 pods."""
    return _gangs(nodes, initial, pods, 64)


@shape(pods=10_000, without=_basic)
def gang_1000(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Gangs of 1,000 pods."""
    return _gangs(nodes, initial, pods, 1000)


@shape(pods=2_000)
def gang_unschedulable(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Gangs of 8 pods, one of which is too large for any node."""
    made = _gangs(nodes, initial, pods, 8, huge=True)
    return BenchLoad(
        made.nodes, made.initial, made.pods, made.others, unschedulable=pods, gates=GATES
    )


def _gangs(nodes: int, initial: int, pods: int, size: int, *, huge: bool = False) -> BenchLoad:
    groups: list[PodGroup] = []
    members: list[Pod] = []
    for first in range(0, pods, size):
        name, count = f"gang-{first // size}", min(size, pods - first)
        groups.append(_group(name, count))
        of_group = PodSchedulingGroup(pod_group_name=name)
        members += [
            pod(
                f"{name}-{i}",
                requests=HUGE if huge and i == count - 1 else None,
                scheduling_group=of_group,
            )
            for i in range(count)
        ]
    return BenchLoad(nodes_of(nodes), pods_of("initial", initial), members, [*groups], gates=GATES)


def _group(name: str, count: int) -> PodGroup:
    gang = PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=count))
    meta = ObjectMeta(name=name, namespace=NAMESPACE, uid=name, resource_version="1")
    return PodGroup(metadata=meta, spec=PodGroupSpec(scheduling_policy=gang))
