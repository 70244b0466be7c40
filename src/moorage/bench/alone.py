"""Shapes whose pods do not look at other pods. Each changes one thing and is named after it."""

from moorage.api.meta import LabelSelectorRequirement, NodeSelector, NodeSelectorTerm
from moorage.api.node import Taint
from moorage.api.pod import (
    Affinity,
    NodeAffinity,
    Pod,
    Toleration,
)
from moorage.api.quantity import Quantity
from moorage.bench.objects import REQUESTS, ZONE, ZONES, node, nodes_of, pod, pods_of
from moorage.bench.workload import Workload, shape

GPU = "nvidia.com/gpu"
DEDICATED = Taint(key="dedicated", value="batch", effect="NoSchedule")
HARDLY_LIKED = Taint(key="slow-disk", effect="PreferNoSchedule")


@shape(pods=10_000)
def basic(nodes: int, initial: int, pods: int) -> Workload:
    """Pods of one template, 100m and 500Mi."""
    return Workload(nodes_of(nodes), pods_of("initial", initial), pods_of("pod", pods))


@shape(pods=2_000)
def own_template(nodes: int, initial: int, pods: int) -> Workload:
    """Every pod has requests and labels of its own; nothing is shared."""

    def own(i: int) -> Pod:
        requests = {"cpu": f"{50 + i % 97}m", "memory": f"{300 + i % 389}Mi"}
        return pod(f"pod-{i}", labels={"app": f"app-{i}"}, requests=requests)

    return Workload(nodes_of(nodes), pods_of("initial", initial), [own(i) for i in range(pods)])


@shape(pods=10_000)
def node_affinity(nodes: int, initial: int, pods: int) -> Workload:
    """Pods that require two of the three zones."""
    wanted = LabelSelectorRequirement(key=ZONE, operator="In", values=ZONES[:2])
    term = NodeSelectorTerm(match_expressions=(wanted,))
    required = NodeSelector(node_selector_terms=(term,))
    affinity = Affinity(
        node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required)
    )
    return Workload(
        nodes_of(nodes), pods_of("initial", initial), pods_of("pod", pods, affinity=affinity)
    )


@shape(pods=5_000)
def daemonset(nodes: int, initial: int, pods: int) -> Workload:
    """Pods pinned to one node each, by the name of the node."""

    def pinned(i: int) -> Pod:
        here = LabelSelectorRequirement(
            key="metadata.name", operator="In", values=(f"node-{i % nodes}",)
        )
        term = NodeSelectorTerm(match_fields=(here,))
        required = NodeSelector(node_selector_terms=(term,))
        affinity = NodeAffinity(required_during_scheduling_ignored_during_execution=required)
        return pod(f"pod-{i}", affinity=Affinity(node_affinity=affinity))

    return Workload(nodes_of(nodes), pods_of("initial", initial), [pinned(i) for i in range(pods)])


@shape(pods=5_000)
def gpus(nodes: int, initial: int, pods: int) -> Workload:
    """Pods that ask for a GPU, of which every other node has eight."""
    eight: dict[str, Quantity] = {GPU: "8"}
    made = [node(f"node-{i}", i, more=None if i % 2 else eight) for i in range(nodes)]
    requests: dict[str, Quantity] = {**REQUESTS, GPU: "1"}
    return Workload(made, pods_of("initial", initial), pods_of("pod", pods, requests=requests))


@shape(pods=10_000)
def taints(nodes: int, initial: int, pods: int) -> Workload:
    """Half of the nodes are tainted; pods tolerate half of the taints."""

    def node_taints(i: int) -> tuple[Taint, ...]:
        return ((), (DEDICATED,), (HARDLY_LIKED,), (Taint(key="gpu", effect="NoSchedule"),))[i % 4]

    tolerations = (Toleration(key=DEDICATED.key, operator="Exists", effect="NoSchedule"),)
    tainted = [node(f"node-{i}", i, taints=node_taints(i)) for i in range(nodes)]
    return Workload(
        tainted, pods_of("initial", initial), pods_of("pod", pods, tolerations=tolerations)
    )


@shape(pods=5_000)
def host_ports(nodes: int, initial: int, pods: int) -> Workload:
    """Pods with a host port, of which a node takes one each."""

    def daemon(i: int) -> Pod:
        return pod(f"pod-{i}", host_port=8000 + i * 8 // max(pods, 1))

    return Workload(nodes_of(nodes), pods_of("initial", initial), [daemon(i) for i in range(pods)])


@shape(pods=5_000)
def unschedulable(nodes: int, initial: int, pods: int) -> Workload:
    """One pod in five asks for more than any node has, and is refused."""

    def maybe_huge(i: int) -> Pod:
        if i % 5:
            return pod(f"pod-{i}")
        return pod(f"pod-{i}", requests={"cpu": "64", "memory": "500Mi"})

    made = [maybe_huge(i) for i in range(pods)]
    hopeless = len(range(0, pods, 5))
    return Workload(nodes_of(nodes), pods_of("initial", initial), made, hopeless=hopeless)
