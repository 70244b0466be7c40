"""Situation: the cluster that a question is asked about, completed and sorted by what it is.

Everything that takes part in a decision is here; how it came to be, and who asks, is not known.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from moorage.api import claims, defaults, manifests
from moorage.api import config as configuration
from moorage.api.config import Plugin, PluginSet, SchedulerConfiguration
from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.storage import PersistentVolumeClaim
from moorage.api.workloads import DaemonSet, DaemonSetSpec, PodTemplateSpec
from moorage.errors import InputError
from moorage.expansion import daemon_sets, expand
from moorage.expansion.children import Children
from moorage.expansion.names import Names

Objects = Iterable[Mapping[str, Any] | KubeObject]

MIRROR = "kubernetes.io/config.mirror"
DAEMON_SET = "DaemonSet"
NOBODY = PluginSet(disabled=(Plugin(name="*"),))


@dataclass(frozen=True, slots=True)
class Situation:
    """Nodes, pods and the rest, with what an API server would have filled in."""

    others: tuple[KubeObject, ...]
    nodes: tuple[Node, ...]
    # Pods that have ended take part in nothing and are left out.
    pods: tuple[Pod, ...]
    # What every new node gets; those without pods of their own count as well.
    daemon_sets: tuple[DaemonSet, ...]
    config: SchedulerConfiguration

    @classmethod
    def of(
        cls, objects: Objects, config: configuration.Source = None, *, nodes_follow: bool = False
    ) -> "Situation":
        """Read objects; complains if there is no node among them, unless nodes are to be added."""
        manifest = manifests.read(objects)
        completed = defaults.complete(expand(manifest.everything))
        nodes = tuple(obj for obj in completed if isinstance(obj, Node))
        pods = [obj for obj in completed if isinstance(obj, Pod) and not obj.is_terminal]
        if not nodes and not (nodes_follow and pods):
            raise InputError("the cluster is empty: there is no Node among the objects given")
        # A node has its daemons before anybody else comes there.
        pods.sort(key=lambda pod: not is_tied(pod))
        return cls(
            others=tuple(obj for obj in completed if not isinstance(obj, Node | Pod)),
            nodes=nodes,
            pods=tuple(pods),
            daemon_sets=_daemon_sets(manifest.workloads, pods),
            config=configuration.load(config),
        )

    @property
    def objects(self) -> tuple[KubeObject, ...]:
        """Everything, what others refer to first."""
        return (*self.others, *self.nodes, *self.pods)

    @property
    def running(self) -> tuple[Pod, ...]:
        """Pods that have a node."""
        return tuple(pod for pod in self.pods if pod.node_name)

    @property
    def pending(self) -> tuple[Pod, ...]:
        """Pods that wait for a node, gated ones left out: they wait for somebody else."""
        return tuple(
            pod for pod in self.pods if not pod.node_name and not pod.spec.scheduling_gates
        )

    def complete(self, objects: Iterable[KubeObject]) -> list[KubeObject]:
        """More objects, with what this cluster's API server would fill in."""
        return defaults.complete(objects, known=self.others)

    def daemons(self, nodes: Iterable[Node]) -> list[Pod]:
        """The pods that daemon sets would have on nodes that are new here, already in place."""
        serials, none_yet, nodes = Names(), Children(), list(nodes)
        made = [
            _on_its_node(pod, owner)
            for owner in self.daemon_sets
            for pod in daemon_sets.wanted(owner, none_yet, nodes, serials).made
            if isinstance(pod, Pod)
        ]
        return [pod for pod in self.complete(made) if isinstance(pod, Pod)]


def _on_its_node(pod: Pod, owner: DaemonSet) -> Pod:
    """A daemon on the node that it is meant for; named after both, which nobody else is."""
    node = daemon_sets.node_of(pod)
    meta = replace(pod.metadata, name=f"{owner.name}-{node}")
    return placed(replace(pod, metadata=meta), node)


@dataclass(frozen=True, slots=True)
class Asked:
    """The pod that a question is about, and the claims that are made along with it."""

    pod: Pod
    claims: tuple[PersistentVolumeClaim, ...] = ()


def asked_pod(objects: Objects, situation: Situation) -> Asked:
    """The one pod that is meant: a pod itself, or what a workload makes its pods like."""
    manifest = manifests.read(objects)
    expanded = expand(manifest.everything)
    pods = [obj for obj in expanded if isinstance(obj, Pod)]
    owners = {
        (pod.controller.kind, pod.controller.name) if pod.controller else pod.key: pod
        for pod in pods
    }
    if len(owners) != 1:
        found = f"{len(owners)} different ones" if owners else "none"
        raise InputError(f"one pod is expected, or a workload that makes one; there is {found}")
    made = [obj for obj in expanded if isinstance(obj, PersistentVolumeClaim)]
    pod, *others = situation.complete([unplaced(pods[0]), *made])
    assert isinstance(pod, Pod)
    own = (obj for obj in others if isinstance(obj, PersistentVolumeClaim))
    return Asked(pod, tuple(claim for claim in own if claims.uses(pod, claim)))


def _daemon_sets(workloads: Iterable[KubeObject], pods: Iterable[Pod]) -> tuple[DaemonSet, ...]:
    """Those that are given, and those that only their pods tell of."""
    found = {
        (obj.namespace or "default", obj.name): obj
        for obj in workloads
        if isinstance(obj, DaemonSet)
    }
    for pod in pods:
        owner = pod.controller
        if owner is not None and owner.kind == DAEMON_SET:
            key = (pod.namespace, owner.name)
            if key not in found:
                found[key] = _told_by(pod, owner.name)
    return tuple(found.values())


def _told_by(pod: Pod, name: str) -> DaemonSet:
    """A daemon set as one of its pods shows it; which nodes it required, the pod hides."""
    spec, affinity = unplaced(pod).spec, pod.spec.affinity
    if affinity is not None and affinity.node_affinity is not None:
        unpinned = replace(
            affinity.node_affinity, required_during_scheduling_ignored_during_execution=None
        )
        spec = replace(spec, affinity=replace(affinity, node_affinity=unpinned))
    meta = replace(type(pod.metadata)(), labels=pod.labels, annotations=pod.metadata.annotations)
    return DaemonSet(
        metadata=replace(type(pod.metadata)(), name=name, namespace=pod.namespace),
        spec=DaemonSetSpec(template=PodTemplateSpec(metadata=meta, spec=spec)),
    )


def without_preemption(config: SchedulerConfiguration) -> SchedulerConfiguration:
    """The configuration under which nobody has to leave for anybody else.

    "Does it fit?" asks for room that is there, not for room that others could be made to give up.
    """
    profiles = tuple(
        replace(profile, plugins=replace(profile.plugins, post_filter=NOBODY))
        for profile in config.profiles
    )
    return replace(config, profiles=profiles)


def is_tied(pod: Pod) -> bool:
    """Whether a pod belongs to its node and comes and goes with it."""
    owner = pod.controller
    return MIRROR in pod.metadata.annotations or (owner is not None and owner.kind == DAEMON_SET)


def unplaced(pod: Pod) -> Pod:
    """The pod as it was before it had a node."""
    spec = replace(pod.spec, node_name="")
    return replace(pod, spec=spec, status=type(pod.status)())


def placed(pod: Pod, node: str) -> Pod:
    """The pod on a node."""
    return replace(pod, spec=replace(pod.spec, node_name=node))
