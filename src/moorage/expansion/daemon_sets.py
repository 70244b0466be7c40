"""DaemonSets: a pod for every node that will have it, each bound to its node by affinity.

As in Kubernetes the pods still go through the scheduler: their node affinity leaves them a single
node, and some taints that come and go do not keep them away.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from moorage.api import selectors
from moorage.api.meta import LabelSelectorRequirement
from moorage.api.node import Node
from moorage.api.pod import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    Toleration,
)
from moorage.api.workloads import DaemonSet
from moorage.errors import ManifestError
from moorage.expansion import templates
from moorage.expansion.children import Children, live
from moorage.expansion.names import Names
from moorage.expansion.wanted import Wanted

REPELLING = ("NoSchedule", "NoExecute")
TAINTS = "node.kubernetes.io/"
TOLERATED = (
    (f"{TAINTS}not-ready", "NoExecute"),
    (f"{TAINTS}unreachable", "NoExecute"),
    (f"{TAINTS}disk-pressure", "NoSchedule"),
    (f"{TAINTS}memory-pressure", "NoSchedule"),
    (f"{TAINTS}pid-pressure", "NoSchedule"),
    (f"{TAINTS}unschedulable", "NoSchedule"),
)
TOLERATED_ON_HOST_NETWORK = (f"{TAINTS}network-unavailable", "NoSchedule")


def wanted(owner: DaemonSet, children: Children, nodes: Iterable[Node], serials: Names) -> Wanted:
    """A pod for every node that lacks one; those on nodes that no longer qualify are too many."""
    template = owner.spec.template
    if template is None:
        where = f"DaemonSet {owner.namespace or 'default'}/{owner.name}"
        raise ManifestError(f"{where}, spec.template: is missing")
    template = replace(template, spec=_tolerant(template.spec))
    own = children.of(owner, Pod)
    taken = {pod.name for pod in own}
    there = {node_of(pod): pod for pod in live(own)}
    eligible = [node for node in nodes if is_eligible(template.spec, node)]
    names = {node.name for node in eligible}
    key = f"DaemonSet/{owner.namespace or 'default'}/{owner.name}"
    made = []
    for node in eligible:
        if node.name not in there:
            spec = pinned(template.spec, node.name)
            name = serials.fresh(key, f"{owner.name}-", taken)
            made.append(templates.pod(owner, template, name, spec=spec))
    surplus = [pod for node, pod in there.items() if node not in names]
    return Wanted(made=made, surplus=surplus)


def is_eligible(spec: PodSpec, node: Node) -> bool:
    """Whether a daemon is meant for a node: by name, labels and taints. Room is not looked at."""
    if spec.node_name not in ("", node.name):
        return False
    if not selectors.selector_from_map(spec.node_selector or {}).matches(node.labels):
        return False
    required = _required(spec)
    if required is not None:
        matcher = selectors.compile_node_selector(required)
        if not matcher.matches(node.labels, node.name):
            return False
    return all(
        taint.effect not in REPELLING or selectors.tolerates_any(spec.tolerations, taint)
        for taint in node.spec.taints
    )


def pinned(spec: PodSpec, node: str) -> PodSpec:
    """The spec with a node affinity that only one node meets, in place of what it required."""
    field = LabelSelectorRequirement(key=selectors.NODE_NAME_FIELD, operator="In", values=(node,))
    only = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(field,)),))
    affinity = spec.affinity or Affinity()
    node_affinity = replace(
        affinity.node_affinity or NodeAffinity(),
        required_during_scheduling_ignored_during_execution=only,
    )
    return replace(spec, affinity=replace(affinity, node_affinity=node_affinity))


def node_of(pod: Pod) -> str:
    """The node that a daemon is on, or is meant for."""
    if pod.node_name:
        return pod.node_name
    required = _required(pod.spec)
    for term in required.node_selector_terms if required else ():
        for requirement in term.match_fields:
            if requirement.key == selectors.NODE_NAME_FIELD and len(requirement.values) == 1:
                return requirement.values[0]
    return ""


def _required(spec: PodSpec) -> NodeSelector | None:
    affinity = spec.affinity.node_affinity if spec.affinity else None
    return affinity.required if affinity else None


def _tolerant(spec: PodSpec) -> PodSpec:
    wanted = TOLERATED + ((TOLERATED_ON_HOST_NETWORK,) if spec.host_network else ())
    more = (Toleration(key=key, operator="Exists", effect=effect) for key, effect in wanted)
    return replace(spec, tolerations=tuple(dict.fromkeys((*spec.tolerations, *more))))
