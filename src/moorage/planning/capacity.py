"""How many more of this pod fit, and what runs out first.

Pending pods are placed first. Then copies of the pod in question are placed until one is rejected:
nothing changes after that, so the next one would be rejected as well. There is no preemption. The
answer separates nodes that took no copy at all from nodes that filled up. If the pods have claims
from templates, each copy gets claims of its own.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec.structs import replace

from moorage.api import config as configuration
from moorage.api import quantity, requests
from moorage.api.devices import ResourceClaim, ResourceClaimTemplate
from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod, Volume
from moorage.api.storage import PersistentVolumeClaim
from moorage.errors import InputError
from moorage.expansion.device_claims import with_claims
from moorage.framework.status import Status
from moorage.planning.input_cluster import (
    InputCluster,
    Objects,
    PodWithClaims,
    read_pod,
    without_preemption,
)
from moorage.planning.packing import PODS_PER_PROGRESS, OnProgress, Packing

# Pods without requests fit until the nodes' pod limits; plugins may lift even those.
MOST = 1_000_000

# The node labels that name a pool, most specific first.
POOL_LABELS = (
    "moorage.dev/pool",
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "node.kubernetes.io/instance-type",
)
NO_POOL = "(no pool)"


@dataclass(frozen=True, slots=True)
class PoolCapacity:
    """How many copies fit on a pool, on how many of its nodes, and what runs out."""

    name: str
    nodes: int
    usable: int
    fits: int
    # Reasons of nodes that filled up, and of nodes that took no copy at all.
    runs_out: Mapping[str, int]
    unusable: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """The pool as plain data."""
        return {
            "nodes": self.nodes,
            "usable": self.usable,
            "fits": self.fits,
            "runsOut": dict(self.runs_out),
            "unusable": dict(self.unusable),
        }


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many more of a pod fit."""

    pod: str
    fits: int
    # Whether counting stopped at the given limit: then at least so many fit.
    is_limited: bool
    # The scheduler's message for the next copy.
    message: str
    runs_out: Mapping[str, int]
    unusable: Mapping[str, int]
    pools: tuple[PoolCapacity, ...]
    nodes: Mapping[str, int]
    # How many pending pods were placed first, and how many of them have no node.
    placed_before: int
    pending_before: int

    @property
    def first(self) -> str:
        """The reason that stops the most nodes; empty if none does."""
        return next(iter(self.runs_out), "")

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data."""
        return {
            "pod": self.pod,
            "fits": self.fits,
            "limited": self.is_limited,
            "runsOutFirst": self.first,
            "runsOut": dict(self.runs_out),
            "unusable": dict(self.unusable),
            "message": self.message,
            "pools": {pool.name: pool.to_dict() for pool in self.pools},
            "nodes": dict(self.nodes),
            "placedBefore": self.placed_before,
            "pendingBefore": self.pending_before,
        }


@dataclass(slots=True)
class PodCopies:
    """Numbered copies of a pod, each with a name and claims of its own."""

    pod: Pod
    # The claims of which each copy gets its own; shared claims are not among them.
    claims: tuple[PersistentVolumeClaim, ...]
    # The templates of the device claims that each copy gets.
    templates: tuple[KubeObject, ...] = ()
    made: int = 0

    @classmethod
    def of(cls, candidate: PodWithClaims, cluster: InputCluster, suffix: str = "") -> "PodCopies":
        """Copies under a name that no other pod's name begins with."""
        pod = candidate.pod
        name = f"{pod.name}{suffix}"
        while any(each.key.startswith(f"{pod.namespace}/{name}.") for each in cluster.pods):
            name += "-"
        templates = tuple(
            each for each in cluster.others if isinstance(each, ResourceClaimTemplate)
        )
        uid = f"{pod.uid}{suffix}"
        named = replace(pod, metadata=replace(pod.metadata, name=name, uid=uid))
        return cls(named, candidate.claims, tuple(templates))

    @property
    def prefix(self) -> str:
        """The prefix of the keys of all copies, and of no other pod."""
        return f"{self.pod.key}."

    def add(self, packing: Packing, number: int) -> Pod:
        """The copy of a number; its claims are added to the packing once."""
        *device_claims, copy = self._with_device_claims(self._pod(number))
        if number > self.made:
            self.made = number
            for claim in (*map(partial(self._claim, number=number), self.claims), *device_claims):
                packing.add(claim)
        assert isinstance(copy, Pod)
        return copy

    def _with_device_claims(self, pod: Pod) -> list[KubeObject]:
        """The device claims of a copy, and the copy."""
        if not pod.spec.resource_claims:
            return [pod]
        found = with_claims([*self.templates, pod])
        return [each for each in found if isinstance(each, ResourceClaim | Pod)]

    def _claim(self, claim: PersistentVolumeClaim, number: int) -> PersistentVolumeClaim:
        name = self._claim_name(claim.name, number)
        uid = f"{claim.uid}.{self.pod.uid}.{number}"
        return replace(claim, metadata=replace(claim.metadata, name=name, uid=uid))

    def _claim_name(self, name: str, number: int) -> str:
        return f"{name}.{self.pod.name}.{number}"

    def _pod(self, number: int) -> Pod:
        pod = self.pod
        meta = replace(pod.metadata, name=f"{pod.name}.{number}", uid=f"{pod.uid}.{number}")
        if not self.claims:
            return replace(pod, metadata=meta)
        volumes = tuple(self._volume(volume, number) for volume in pod.spec.volumes)
        return replace(pod, metadata=meta, spec=replace(pod.spec, volumes=volumes))

    def _volume(self, volume: Volume, number: int) -> Volume:
        own = volume.persistent_volume_claim
        if own is None or all(own.claim_name != claim.name for claim in self.claims):
            return volume
        name = self._claim_name(own.claim_name, number)
        return replace(volume, persistent_volume_claim=replace(own, claim_name=name))


def capacity(
    objects: Objects,
    pod: Mapping[str, Any] | KubeObject,
    config: configuration.Source = None,
    *,
    seed: int = 0,
    pool_label: str | None = None,
    most: int = MOST,
    on_progress: OnProgress | None = None,
) -> Capacity:
    """How many more of `pod`, or of a workload's pods, fit in addition to `objects`."""
    cluster = InputCluster.of(objects, config)
    pools = pools_of(cluster.nodes, pool_label)
    candidate = read_candidate(pod, cluster)
    packing = Packing(cluster.objects, without_preemption(cluster.config), seed=seed)
    packing.pack(on_progress=on_progress)
    left, before = len(packing.left), len(packing.placed)
    copies = PodCopies.of(candidate, cluster)
    first = packing.explain(copies.add(packing, 1))
    placed, rejected_copy = _fill(packing, copies, most, on_progress)
    last = packing.explain(rejected_copy)
    # A node may reject the first copy only until another pod is there, as affinity terms do.
    usable = set(first.feasible) | placed.keys()
    rejected = last.rejected
    return Capacity(
        pod=candidate.pod.key,
        fits=placed.total(),
        is_limited=bool(last.picked),
        message=last.message,
        runs_out=reasons({node: s for node, s in rejected.items() if node in usable}),
        unusable=reasons({node: s for node, s in rejected.items() if node not in usable}),
        pools=tuple(_pool(name, nodes, usable, placed, rejected) for name, nodes in pools.items()),
        nodes={node.name: placed[node.name] for node in cluster.nodes if placed[node.name]},
        placed_before=before,
        pending_before=left,
    )


def read_candidate(pod: Mapping[str, Any] | KubeObject, cluster: InputCluster) -> PodWithClaims:
    """The pod in question; refuses a gated one, which fits nowhere."""
    candidate = read_pod([pod], cluster)
    if candidate.pod.spec.scheduling_gates:
        raise InputError(
            f"Pod {candidate.pod.key}: is held back by a scheduling gate, so it fits nowhere"
        )
    return candidate


def _fill(
    packing: Packing, copies: PodCopies, most: int, on_progress: OnProgress | None
) -> tuple[Counter[str], Pod]:
    """Place copies until one is rejected: the copies per node, and the rejected copy."""
    for number in range(1, most + 1):
        copy = copies.add(packing, number)
        # A later copy may release one that waits in permit.
        if not packing.take(copy) and copy.uid not in packing.scheduler.cluster.waiting:
            break
        if on_progress is not None and number % PODS_PER_PROGRESS == 0:
            on_progress(number, number)
    else:
        copy = copies.add(packing, most + 1)
    mine = (node for key, node in packing.placed.items() if key.startswith(copies.prefix))
    return Counter(mine), copy


def _pool(
    name: str,
    nodes: list[str],
    usable: set[str],
    placed: Counter[str],
    rejected: Mapping[str, Status],
) -> PoolCapacity:
    in_pool = {node: rejected[node] for node in nodes if node in rejected}
    return PoolCapacity(
        name=name,
        nodes=len(nodes),
        usable=sum(node in usable for node in nodes),
        fits=sum(placed[node] for node in nodes),
        runs_out=reasons({node: s for node, s in in_pool.items() if node in usable}),
        unusable=reasons({node: s for node, s in in_pool.items() if node not in usable}),
    )


def reasons(rejected: Mapping[str, Status]) -> dict[str, int]:
    """The number of nodes per reason, the most frequent first."""
    counts = Counter(reason for status in rejected.values() for reason in status.reasons)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def pools_of(nodes: Iterable[Node], label: str | None = None) -> dict[str, list[str]]:
    """Every pool with the names of its nodes.

    A label names the pool: the given one, or the first of the usual ones that any node has. Where
    there is none, nodes of the same size are a pool.
    """
    nodes = list(nodes)
    if label and not any(label in node.labels for node in nodes):
        raise InputError(f'no node has the label "{label}"')
    usual = (key for key in POOL_LABELS if any(key in node.labels for node in nodes))
    label = label or next(usual, "")
    found: dict[str, list[str]] = {}
    for node in nodes:
        pool = node.labels.get(label, NO_POOL) if label else _size(node)
        found.setdefault(pool, []).append(node.name)
    return found


def _size(node: Node) -> str:
    offered = requests.allocatable(node)
    names = (requests.CPU, requests.MEMORY, *filter(requests.is_extended, offered))
    return ", ".join(
        f"{quantity.format_value(offered[name], name)} {name}"
        for name in names
        if offered.get(name)
    )
