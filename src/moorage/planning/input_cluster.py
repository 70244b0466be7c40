"""InputCluster: the objects that a planning question is about, completed and sorted by kind."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from moorage.api import claims, defaults, manifests
from moorage.api import config as configuration
from moorage.api.config import PluginEntry, PluginSet, SchedulerConfiguration
from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.storage import PersistentVolumeClaim
from moorage.api.workloads import DaemonSet, DaemonSetSpec, PodTemplateSpec
from moorage.controllers import daemon_set
from moorage.errors import InputError
from moorage.expansion import expand
from moorage.expansion.device_claims import with_claims

Objects = Iterable[Mapping[str, Any] | KubeObject]

MIRROR = "kubernetes.io/config.mirror"
DAEMON_SET = "DaemonSet"
NO_PLUGINS = PluginSet(disabled=(PluginEntry(name="*"),))


@dataclass(frozen=True, slots=True)
class InputCluster:
    """Nodes, pods and other objects, with the defaults that an API server fills in."""

    others: tuple[KubeObject, ...]
    nodes: tuple[Node, ...]
    # Pods that have not ended; the others do not affect scheduling.
    pods: tuple[Pod, ...]
    # Every new node gets a pod of each; sets without pods in the input count as well.
    daemon_sets: tuple[DaemonSet, ...]
    config: SchedulerConfiguration

    @classmethod
    def of(
        cls, objects: Objects, config: configuration.Source = None, *, nodes_follow: bool = False
    ) -> "InputCluster":
        """Read objects; refuses a cluster without nodes, unless `nodes_follow`."""
        manifest = manifests.read(objects)
        completed = with_claims(defaults.complete(expand(manifest.everything)))
        nodes = tuple(obj for obj in completed if isinstance(obj, Node))
        pods = [obj for obj in completed if isinstance(obj, Pod) and not obj.is_terminal]
        if not nodes and not (nodes_follow and pods):
            raise InputError("the cluster is empty: there is no Node among the objects given")
        # The DaemonSet pods of a node are placed before any other pod.
        pods.sort(key=lambda pod: not belongs_to_node(pod))
        return cls(
            others=tuple(obj for obj in completed if not isinstance(obj, Node | Pod)),
            nodes=nodes,
            pods=tuple(pods),
            daemon_sets=_daemon_sets(manifest.workloads, pods),
            config=configuration.load(config),
        )

    @property
    def objects(self) -> tuple[KubeObject, ...]:
        """All objects; nodes and pods last, because they refer to the others."""
        return (*self.others, *self.nodes, *self.pods)

    @property
    def running(self) -> tuple[Pod, ...]:
        """Pods that have a node."""
        return tuple(pod for pod in self.pods if pod.node_name)

    @property
    def pending(self) -> tuple[Pod, ...]:
        """Pods without a node, except gated ones."""
        return tuple(
            pod for pod in self.pods if not pod.node_name and not pod.spec.scheduling_gates
        )

    def complete(self, objects: Iterable[KubeObject]) -> list[KubeObject]:
        """More objects, with the defaults that this cluster's API server would fill in."""
        return defaults.complete(objects, known=self.others)

    def daemons(self, nodes: Iterable[Node]) -> list[Pod]:
        """The DaemonSet pods of new nodes, already on their nodes."""
        if not self.daemon_sets:
            return []
        made = [
            _daemon_pod(pod) for pod in expand([*nodes, *self.daemon_sets]) if isinstance(pod, Pod)
        ]
        return [pod for pod in self.complete(made) if isinstance(pod, Pod)]


def _daemon_pod(pod: Pod) -> Pod:
    """A DaemonSet pod on its node, with a unique name made of both names."""
    node, owner = daemon_node(pod), pod.controller
    assert owner is not None, "a DaemonSet created the pod"
    meta = replace(pod.metadata, name=f"{owner.name}-{node}", uid="")
    return on_node(replace(pod, metadata=meta), node)


def daemon_node(pod: Pod) -> str:
    """The node that a DaemonSet pod is bound to, or restricted to."""
    return pod.node_name or daemon_set.target_node({"spec": msgspec.to_builtins(pod.spec)})


@dataclass(frozen=True, slots=True)
class PodWithClaims:
    """The pod that a question is about, and the claims that are created with it."""

    pod: Pod
    claims: tuple[PersistentVolumeClaim, ...] = ()


def read_pod(objects: Objects, cluster: InputCluster) -> PodWithClaims:
    """The one pod in `objects`, or a pod of the one workload."""
    manifest = manifests.read(objects)
    expanded = expand(manifest.everything)
    pods = [obj for obj in expanded if isinstance(obj, Pod)]
    owners = {
        (pod.controller.kind, pod.controller.name) if pod.controller else pod.key: pod
        for pod in pods
    }
    if len(owners) != 1:
        found = f"{len(owners)} different ones" if owners else "none"
        given = ", ".join(f"{type(obj).__name__} {obj.name}" for obj in manifest.everything)
        problem = "one pod is expected, or a workload that makes one"
        raise InputError(f"{given or 'no object'}: {problem}; there is {found}")
    made = [obj for obj in expanded if isinstance(obj, PersistentVolumeClaim)]
    pod, *others = cluster.complete([without_node(pods[0]), *made])
    assert isinstance(pod, Pod)
    own = (obj for obj in others if isinstance(obj, PersistentVolumeClaim))
    return PodWithClaims(pod, tuple(claim for claim in own if claims.uses(pod, claim)))


def _daemon_sets(workloads: Iterable[KubeObject], pods: Iterable[Pod]) -> tuple[DaemonSet, ...]:
    """The given daemon sets, and those of which only pods are given."""
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
                found[key] = _from_pod(pod, owner.name)
    return tuple(found.values())


def _from_pod(pod: Pod, name: str) -> DaemonSet:
    """A daemon set as far as one of its pods shows it; its required node affinity is lost."""
    spec, affinity = without_node(pod).spec, pod.spec.affinity
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
    """The configuration without post_filter plugins.

    "Does it fit?" is about free capacity, not about what preemption could free.
    """
    profiles = tuple(
        replace(profile, plugins=replace(profile.plugins, post_filter=NO_PLUGINS))
        for profile in config.profiles
    )
    return replace(config, profiles=profiles)


def belongs_to_node(pod: Pod) -> bool:
    """Whether a pod is created and deleted with its node: mirror pods and DaemonSet pods."""
    owner = pod.controller
    return MIRROR in pod.metadata.annotations or (owner is not None and owner.kind == DAEMON_SET)


def without_node(pod: Pod) -> Pod:
    """The pod as it was before it was bound."""
    spec = replace(pod.spec, node_name="")
    return replace(pod, spec=spec, status=type(pod.status)())


def on_node(pod: Pod, node: str) -> Pod:
    """The pod on a node."""
    return replace(pod, spec=replace(pod.spec, node_name=node))
