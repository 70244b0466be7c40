"""DaemonSets: a pod for every eligible node, restricted to that node by node affinity.

As in Kubernetes, the scheduler binds the pods. They tolerate the taints of node conditions.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from moorage.api import selectors
from moorage.api.meta import LabelSelectorRequirement, NodeSelector, NodeSelectorTerm
from moorage.api.node import Node
from moorage.api.pod import Affinity, NodeAffinity, Pod, PodSpec, Toleration
from moorage.api.workloads import DaemonSet
from moorage.expansion import templates
from moorage.expansion.children import Children, ControllerActions, live
from moorage.expansion.templates import NameGenerator

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


def reconcile(
    owner: DaemonSet, children: Children, nodes: Iterable[Node], names: NameGenerator
) -> ControllerActions:
    """Create a pod on every eligible node without one; delete those on other nodes."""
    template = owner.spec.template
    if template is None:
        raise templates.missing_field(owner, "spec.template")
    template = replace(template, spec=_with_tolerations(template.spec))
    own = children.of(owner, Pod)
    taken = {pod.name for pod in own}
    by_node = {node_of(pod): pod for pod in live(own)}
    eligible = [node.name for node in nodes if is_eligible(template.spec, node)]
    created = []
    for node in eligible:
        if node not in by_node:
            name = names.fresh_of(owner, f"{owner.name}-", taken)
            spec = _restricted_to(template.spec, node)
            created.append(templates.pod(owner, template, name, spec=spec))
    ineligible = by_node.keys() - set(eligible)
    return ControllerActions(created, [pod for node, pod in by_node.items() if node in ineligible])


def is_eligible(spec: PodSpec, node: Node) -> bool:
    """Whether name, labels and taints of a node allow a daemon; resources are not checked."""
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


def _restricted_to(spec: PodSpec, node: str) -> PodSpec:
    """The spec with a required node affinity that only one node matches."""
    field = LabelSelectorRequirement(key=selectors.NODE_NAME_FIELD, operator="In", values=(node,))
    only = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(field,)),))
    affinity = spec.affinity or Affinity()
    node_affinity = replace(
        affinity.node_affinity or NodeAffinity(),
        required_during_scheduling_ignored_during_execution=only,
    )
    return replace(spec, affinity=replace(affinity, node_affinity=node_affinity))


def node_of(pod: Pod) -> str:
    """The node that a daemon is bound to, or restricted to."""
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


def _with_tolerations(spec: PodSpec) -> PodSpec:
    taints = TOLERATED + ((TOLERATED_ON_HOST_NETWORK,) if spec.host_network else ())
    more = (Toleration(key=key, operator="Exists", effect=effect) for key, effect in taints)
    return replace(spec, tolerations=tuple(dict.fromkeys((*spec.tolerations, *more))))
