"""How many gangs of a shape fit, such as jobs of eight workers in one rack each.

Pending pods are placed first. Then gangs of copies of the pod are placed until one does not fit as
a whole: nothing changes after that, so the next one would not fit either. There is no preemption.
The shape is a number of pods, and the topology constraint of a PodGroup. The feature gates that
gangs need are switched on for the question.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from moorage.api import config as configuration
from moorage.api import manifests
from moorage.api.config import SchedulerConfiguration, feature_gates
from moorage.api.meta import KubeObject, ObjectMeta
from moorage.api.pod import Pod, PodSchedulingGroup
from moorage.api.pod_groups import (
    GangSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingConstraints,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    PodGroupTemplate,
    TopologyConstraint,
    Workload,
    group_key,
)
from moorage.errors import InputError
from moorage.explaining import groups
from moorage.explaining.explanation import GroupExplanation
from moorage.planning.capacity import MOST, PodCopies, pools_of, read_candidate
from moorage.planning.input_cluster import InputCluster, Objects, without_preemption
from moorage.planning.packing import OnProgress, Packing

MOST_MEMBERS = 10_000
"""All pods of a gang are tried, even if none fits."""


@dataclass(frozen=True, slots=True)
class GangShape:
    """How many pods a gang has, and the node label that they must have in common, if any."""

    size: int
    topology_key: str = ""

    @classmethod
    def of(cls, pod: Pod, objects: Iterable[KubeObject], size: int | None = None) -> "GangShape":
        """The shape that a pod's PodGroup has, or its template in a Workload; raises InputError."""
        key = group_key(pod)
        found: PodGroupSpec | PodGroupTemplate | None = None
        for obj in objects:
            if isinstance(obj, PodGroup) and key in (obj.key, f"default/{obj.key}"):
                found = obj.spec
            elif isinstance(obj, Workload) and obj.spec.pod_group_templates and found is None:
                found = _of_workload(obj)
        if found is None:
            if size is None:
                raise InputError(f"Pod {pod.key}: the size of a gang is not known")
            return cls(size)
        gang, constraints = found.scheduling_policy.gang, found.scheduling_constraints
        if size is None and gang is None:
            raise InputError(f"PodGroup {key}: is no gang")
        topology = () if constraints is None else constraints.topology
        least = 0 if gang is None else gang.min_count
        if (size or least) > MOST_MEMBERS:
            rule = f"must be at most {MOST_MEMBERS} to be counted"
            path = "spec.schedulingPolicy.gang.minCount"
            raise InputError(f"PodGroup {key}, {path}: {rule}, is {size or least}")
        return cls(size or least, topology[0].key if topology else "")

    def group(self, pod: Pod, number: int) -> PodGroup:
        """A PodGroup for a gang of copies of a pod."""
        meta = ObjectMeta(
            name=f"{pod.name}.{number}", namespace=pod.namespace, uid=f"{pod.uid}.gang.{number}"
        )
        policy = PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=self.size))
        constraints = None
        if self.topology_key:
            topology = (TopologyConstraint(key=self.topology_key),)
            constraints = PodGroupSchedulingConstraints(topology=topology)
        spec = PodGroupSpec(scheduling_policy=policy, scheduling_constraints=constraints)
        return PodGroup(metadata=meta, spec=spec)

    def gates(self) -> dict[str, bool]:
        """The feature gates that a gang of this shape needs."""
        names = [feature_gates.GENERIC_WORKLOAD, feature_gates.GANG_SCHEDULING]
        if self.topology_key:
            names.append(feature_gates.TOPOLOGY_AWARE)
        return dict.fromkeys(names, True)


def _of_workload(workload: Workload) -> PodGroupTemplate:
    templates = workload.spec.pod_group_templates
    if len(templates) > 1:
        names = ", ".join(each.name for each in templates)
        raise InputError(
            f"Workload {workload.key}: has several podGroupTemplates ({names}); "
            "give a PodGroup instead"
        )
    return templates[0]


@dataclass(frozen=True, slots=True)
class GangCapacity:
    """How many gangs of a shape fit."""

    pod: str
    shape: GangShape
    fits: int
    # Whether counting stopped at the given limit: then at least so many fit.
    is_limited: bool
    # Why the next gang does not fit; None if counting stopped at the limit.
    next: GroupExplanation | None
    message: str
    # The gangs in each placement: one value of the topology key, or the whole cluster.
    placements: Mapping[str, int]
    # The pods of gangs, by pool and by node.
    pools: Mapping[str, int]
    nodes: Mapping[str, int]
    placed_before: int
    pending_before: int

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data."""
        topology = {"topologyKey": self.shape.topology_key} if self.shape.topology_key else {}
        return {
            "pod": self.pod,
            "gang": {"size": self.shape.size, **topology},
            "fits": self.fits,
            "limited": self.is_limited,
            "message": self.message,
            **({} if self.next is None else {"next": self.next.to_dict()}),
            "placements": dict(self.placements),
            "pools": dict(self.pools),
            "nodes": dict(self.nodes),
            "placedBefore": self.placed_before,
            "pendingBefore": self.pending_before,
        }


def is_gang(pod: KubeObject | Mapping[str, Any], objects: Iterable[KubeObject]) -> bool:
    """Whether a pod, or those of a workload, belong to a PodGroup that is a gang."""
    template = getattr(getattr(pod, "spec", None), "template", None)
    spec = getattr(pod, "spec", None) if isinstance(pod, Pod) else getattr(template, "spec", None)
    named = getattr(spec, "scheduling_group", None)
    return named is not None and any(
        isinstance(obj, PodGroup) and obj.name == named.pod_group_name and obj.min_count is not None
        for obj in objects
    )


def gang_capacity(
    objects: Objects,
    pod: Mapping[str, Any] | KubeObject,
    config: configuration.Source = None,
    *,
    size: int | None = None,
    seed: int = 0,
    pool_label: str | None = None,
    most: int = MOST,
    on_progress: OnProgress | None = None,
) -> GangCapacity:
    """How many gangs of `pod`, or of a workload's pods, fit in addition to `objects`.

    `size` is the number of pods of a gang; without it, the `minCount` of the pod's PodGroup.
    """
    everything = manifests.read(objects).everything
    cluster = InputCluster.of(everything, config)
    pools = pools_of(cluster.nodes, pool_label)
    candidate = read_candidate(pod, cluster)
    shape = GangShape.of(candidate.pod, everything, size)
    config = without_preemption(_with_gates(cluster.config, shape.gates()))
    packing = Packing(cluster.objects, config, seed=seed)
    packing.pack(on_progress=on_progress)
    before, left = len(packing.placed), len(packing.left)
    copies = PodCopies.of(candidate, cluster)
    fits = 0
    while fits < most and _take(packing, copies, shape, fits + 1):
        fits += 1
        if on_progress is not None:
            on_progress(fits * shape.size, fits * shape.size)
    is_limited, key = fits == most, f"{copies.pod.namespace}/{copies.pod.name}.{fits + 1}"
    rejected = None if is_limited else groups.explain(packing.scheduler, key)
    mine = {key: at for key, at in packing.placed.items() if key.startswith(copies.prefix)}
    nodes, labels = Counter(mine.values()), {node.name: node.labels for node in cluster.nodes}
    domains = Counter(labels[node].get(shape.topology_key, "") for node in mine.values())
    return GangCapacity(
        pod=candidate.pod.key,
        shape=shape,
        fits=fits,
        is_limited=is_limited,
        next=rejected,
        message="" if is_limited else _message(packing, copies.prefix, rejected),
        placements={name: count // shape.size for name, count in sorted(domains.items()) if name},
        pools={name: sum(nodes[node] for node in names) for name, names in pools.items()},
        nodes={node.name: nodes[node.name] for node in cluster.nodes if nodes[node.name]},
        placed_before=before,
        pending_before=left,
    )


def _take(packing: Packing, copies: PodCopies, shape: GangShape, number: int) -> bool:
    """Place one more gang; whether it fits as a whole."""
    group = shape.group(copies.pod, number)
    packing.add(group)
    named = PodSchedulingGroup(pod_group_name=group.name)
    first = (number - 1) * shape.size
    members = []
    for i in range(first + 1, first + shape.size + 1):
        copy = copies.add(packing, i)
        members.append(replace(copy, spec=replace(copy.spec, scheduling_group=named)))
        packing.add(members[-1])
    packing.pack()
    waiting = {pod.uid for pod in packing.waiting}
    return not any(member.uid in waiting for member in members)


def _with_gates(
    config: SchedulerConfiguration, gates: Mapping[str, bool]
) -> SchedulerConfiguration:
    if all(config.feature_gates.get(name) for name in gates):
        return config
    plain = configuration.to_dict(config)
    return configuration.load({**plain, "featureGates": {**config.feature_gates, **gates}})


def _message(packing: Packing, prefix: str, rejected: GroupExplanation | None) -> str:
    """Why the next gang does not fit."""
    if rejected is not None:
        return rejected.summary.partition(f"{rejected.key} ")[2]
    return next((text for key, text in packing.left.items() if key.startswith(prefix)), "")
