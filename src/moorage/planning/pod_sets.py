"""How many sets of several pods fit together, such as two web servers and a database.

Pending pods are placed first. Then whole sets are placed, pod by pod in the given order, until a
pod is rejected. A pod that is given twice is in every set twice. Beside the sets, the answer has
the capacity for each of the pods alone.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moorage.api import config as configuration
from moorage.api import manifests
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.errors import InputError
from moorage.planning.capacity import (
    MOST,
    Capacity,
    PodCopies,
    capacity,
    pools_of,
    read_candidate,
    reasons,
)
from moorage.planning.input_cluster import (
    InputCluster,
    Objects,
    PodWithClaims,
    without_preemption,
)
from moorage.planning.packing import PODS_PER_PROGRESS, OnProgress, Packing

PodSource = Mapping[str, Any] | KubeObject


@dataclass(frozen=True, slots=True)
class PodSetCapacity:
    """How many sets of pods fit, and which pod of the next set does not."""

    # The pods of a set, by key, with how many of each a set has.
    pods: Mapping[str, int]
    fits: int
    # Whether counting stopped at the given limit: then at least so many fit.
    is_limited: bool
    # The pod of the next set that is rejected, and the scheduler's message.
    rejected: str
    message: str
    runs_out: Mapping[str, int]
    unusable: Mapping[str, int]
    # The pods of complete sets, by pool and by node.
    pools: Mapping[str, Mapping[str, int]]
    nodes: Mapping[str, Mapping[str, int]]
    alone: tuple[Capacity, ...]
    # The workloads that make pods of the set: the names of such pods are generated.
    workloads: Mapping[str, str]

    def title(self, pod: str) -> str:
        """The name of a pod of the set for people: that of its workload, if it has one."""
        return self.workloads.get(pod, pod)

    @property
    def pending_before(self) -> int:
        """How many pods of the cluster are pending."""
        return self.alone[0].pending_before

    @property
    def first(self) -> str:
        """The reason that stops the most nodes; empty if none does."""
        return next(iter(self.runs_out), "")

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data."""
        return {
            "set": dict(self.pods),
            "workloads": dict(self.workloads),
            "fits": self.fits,
            "limited": self.is_limited,
            "rejected": self.rejected,
            "runsOutFirst": self.first,
            "runsOut": dict(self.runs_out),
            "unusable": dict(self.unusable),
            "message": self.message,
            "pools": {name: dict(counts) for name, counts in self.pools.items()},
            "nodes": {name: dict(counts) for name, counts in self.nodes.items()},
            "alone": {each.pod: each.to_dict() for each in self.alone},
            "pendingBefore": self.pending_before,
        }


def pod_sets(
    objects: Objects,
    pods: Sequence[PodSource],
    config: configuration.Source = None,
    *,
    seed: int = 0,
    pool_label: str | None = None,
    most: int = MOST,
    on_progress: OnProgress | None = None,
) -> PodSetCapacity:
    """How many sets of one pod of each of `pods` (Pods or workloads) fit besides `objects`."""
    objects = list(objects)
    cluster = InputCluster.of(objects, config)
    pools = pools_of(cluster.nodes, pool_label)
    candidates = [read_candidate(pod, cluster) for pod in pods]
    distinct = _distinct(candidates, pods)
    alone = tuple(
        capacity(objects, pod, cluster.config, seed=seed, pool_label=pool_label, most=most)
        for pod in distinct.values()
    )
    packing = Packing(cluster.objects, without_preemption(cluster.config), seed=seed)
    packing.pack(on_progress=on_progress)
    # Copies of the same pod must not have the same names, so the members have a number each.
    members = [
        PodCopies.of(each, cluster, suffix=f"-{number}")
        for number, each in enumerate(candidates, 1)
    ]
    first = [packing.explain(member.add(packing, 1)) for member in members]
    sets, index, copy = _fill(packing, members, most, on_progress)
    last = packing.explain(copy)
    keys = [each.pod.key for each in candidates]
    placed = _placed(packing, members, keys, sets)
    # The nodes of the pod that is rejected, whichever member of the set it was on them.
    taken = {node for node, counts in placed.items() if keys[index] in counts}
    usable = set(first[index].feasible) | taken
    return PodSetCapacity(
        pods=Counter(keys),
        fits=sets,
        is_limited=bool(last.picked),
        rejected="" if last.picked else keys[index],
        message=last.message,
        runs_out=reasons({n: s for n, s in last.rejected.items() if n in usable}),
        unusable=reasons({n: s for n, s in last.rejected.items() if n not in usable}),
        pools={
            name: sum((placed.get(node, Counter()) for node in nodes), Counter())
            for name, nodes in pools.items()
        },
        nodes=placed,
        alone=alone,
        workloads={
            key: f"{obj.kind} {obj.namespace or 'default'}/{obj.name}"
            for key, source in distinct.items()
            for obj in manifests.read([source]).workloads
        },
    )


def _distinct(
    candidates: Sequence[PodWithClaims], pods: Sequence[PodSource]
) -> dict[str, PodSource]:
    """The given pods by key; refuses different pods of the same name."""
    known: dict[str, Pod] = {}
    for each in candidates:
        if known.setdefault(each.pod.key, each.pod).spec != each.pod.spec:
            raise InputError(f"Pod {each.pod.key}: is given twice, with different specs")
    return {each.pod.key: pod for each, pod in zip(candidates, pods, strict=True)}


def _fill(
    packing: Packing, members: Sequence[PodCopies], most: int, on_progress: OnProgress | None
) -> tuple[int, int, Pod]:
    """Place sets: how many are complete, and the member that is rejected with its copy."""
    for number in range(1, most + 1):
        for index, member in enumerate(members):
            copy = member.add(packing, number)
            # A later pod may release one that waits in permit.
            if not packing.take(copy) and copy.uid not in packing.scheduler.cluster.waiting:
                return number - 1, index, copy
        if on_progress is not None and number % PODS_PER_PROGRESS == 0:
            on_progress(number, number)
    return most, 0, members[0].add(packing, most + 1)


def _placed(
    packing: Packing, members: Sequence[PodCopies], keys: Sequence[str], sets: int
) -> dict[str, Counter[str]]:
    """The pods of complete sets, by node."""
    found: dict[str, Counter[str]] = {}
    for member, key in zip(members, keys, strict=True):
        for number in range(1, sets + 1):
            node = packing.placed.get(f"{member.prefix}{number}")
            if node is not None:
                found.setdefault(node, Counter())[key] += 1
    return dict(sorted(found.items()))
