"""Shapes with pods that need no other pods and no volumes, named after what they add."""

from collections.abc import Iterator
from itertools import count, islice

from moorage.api.meta import LabelSelectorRequirement, NodeSelector, NodeSelectorTerm, ObjectMeta
from moorage.api.node import Taint
from moorage.api.pod import Affinity, NodeAffinity, Pod, PodSchedulingGate, Toleration
from moorage.api.quantity import Quantity
from moorage.api.workloads import Service, ServiceSpec
from moorage.bench.workload import (
    NAMESPACE,
    REQUESTS,
    ZONE,
    ZONES,
    BenchLoad,
    node,
    nodes_of,
    pod,
    pods_of,
    shape,
)
from moorage.core.observations import Added, Deleted, Observation

GPU = "nvidia.com/gpu"
DEDICATED = Taint(key="dedicated", value="batch", effect="NoSchedule")
AVOIDED = Taint(key="slow-disk", effect="PreferNoSchedule")
PER_NODE = 4
LARGE = {"cpu": "900m", "memory": "500Mi"}
LARGER = {"cpu": "3", "memory": "500Mi"}
VICTIMS = 3  # A pod with LARGER requests evicts so many with LARGE ones.
HUGE = {"cpu": "64", "memory": "500Mi"}


@shape(pods=10_000)
def basic(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods of one template, 100m and 500Mi."""
    return BenchLoad(nodes_of(nodes), pods_of("initial", initial), pods_of("pod", pods))


@shape(pods=2_000)
def own_template(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Every pod has different requests and labels; nothing is shared."""

    def own(i: int) -> Pod:
        requests = {"cpu": f"{50 + i % 97}m", "memory": f"{300 + i % 389}Mi"}
        return pod(f"pod-{i}", labels={"app": f"app-{i}"}, requests=requests)

    return BenchLoad(nodes_of(nodes), pods_of("initial", initial), [own(i) for i in range(pods)])


@shape(pods=10_000)
def node_affinity(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods that require two of the three zones."""
    wanted = LabelSelectorRequirement(key=ZONE, operator="In", values=ZONES[:2])
    affinity = _required(NodeSelectorTerm(match_expressions=(wanted,)))
    made = pods_of("pod", pods, affinity=affinity)
    return BenchLoad(nodes_of(nodes), pods_of("initial", initial), made)


@shape(pods=5_000)
def daemonset(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods pinned to one node each, by the name of the node."""

    def pinned(i: int) -> Pod:
        name = (f"node-{i % nodes}",)
        here = LabelSelectorRequirement(key="metadata.name", operator="In", values=name)
        return pod(f"pod-{i}", affinity=_required(NodeSelectorTerm(match_fields=(here,))))

    return BenchLoad(nodes_of(nodes), pods_of("initial", initial), [pinned(i) for i in range(pods)])


def _required(term: NodeSelectorTerm) -> Affinity:
    required = NodeSelector(node_selector_terms=(term,))
    affinity = NodeAffinity(required_during_scheduling_ignored_during_execution=required)
    return Affinity(node_affinity=affinity)


@shape(pods=5_000)
def gpus(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods that request a GPU; every other node has eight."""
    eight: dict[str, Quantity] = {GPU: "8"}
    made = [node(f"node-{i}", i, more=None if i % 2 else eight) for i in range(nodes)]
    requests: dict[str, Quantity] = {**REQUESTS, GPU: "1"}
    return BenchLoad(made, pods_of("initial", initial), pods_of("pod", pods, requests=requests))


@shape(pods=10_000)
def taints(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Half of the nodes are tainted; pods tolerate half of the taints."""

    def node_taints(i: int) -> tuple[Taint, ...]:
        return ((), (DEDICATED,), (AVOIDED,), (Taint(key="gpu", effect="NoSchedule"),))[i % 4]

    tolerations = (Toleration(key=DEDICATED.key, operator="Exists", effect="NoSchedule"),)
    tainted = [node(f"node-{i}", i, taints=node_taints(i)) for i in range(nodes)]
    made = pods_of("pod", pods, tolerations=tolerations)
    return BenchLoad(tainted, pods_of("initial", initial), made)


@shape(pods=5_000)
def host_ports(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods with one of eight host ports; a node takes one pod of each."""

    made = [pod(f"pod-{i}", host_port=8000 + i * 8 // pods) for i in range(pods)]
    return BenchLoad(nodes_of(nodes), pods_of("initial", initial), made)


@shape(pods=5_000)
def unschedulable(nodes: int, initial: int, pods: int) -> BenchLoad:
    """One pod in five requests more than any node has."""

    made = [pod(f"pod-{i}", requests=REQUESTS if i % 5 else HUGE) for i in range(pods)]
    rejected = len(range(0, pods, 5))
    return BenchLoad(nodes_of(nodes), pods_of("initial", initial), made, unschedulable=rejected)


# Too little room, or many waiting pods


@shape(pods=2_000)
def preemption(nodes: int, initial: int, pods: int) -> BenchLoad:
    """All nodes are full of pods with lower priority."""
    low = [
        pod(f"low-{i}", requests=LARGE, node_name=f"node-{i % nodes}")
        for i in range(PER_NODE * nodes)
    ]
    high = pods_of("pod", min(pods, nodes), requests=LARGER, priority=1000)
    victims = VICTIMS * len(high)
    return BenchLoad(nodes_of(nodes), low, high, unschedulable=len(high), victims=victims)


def _alone(nodes: int, initial: int, pods: int) -> BenchLoad:
    """The baseline of the shapes below: the same pods, no waiting ones."""
    return BenchLoad(nodes_of(nodes), [], pods_of("pod", pods))


@shape(pods=5_000, without=_alone)
def with_unschedulable(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods while twice as many unschedulable pods wait."""
    waiting = pods_of("unschedulable", 2 * pods, requests=HUGE)
    return BenchLoad(nodes_of(nodes), waiting, pods_of("pod", pods))


@shape(pods=5_000, without=_alone)
def with_gated(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods while twice as many gated pods wait."""
    gates = (PodSchedulingGate(name="example.com/quota"),)
    waiting = pods_of("gated", 2 * pods, scheduling_gates=gates)
    return BenchLoad(nodes_of(nodes), waiting, pods_of("pod", pods))


# A cluster that changes between decisions


@shape(pods=5_000)
def churn(nodes: int, initial: int, pods: int) -> BenchLoad:
    """A running pod ends for every pod that is placed."""
    there = pods_of("initial", max(initial, pods))
    ends: list[Observation] = [Deleted(each) for each in there[:pods]]
    return BenchLoad(nodes_of(nodes), there, pods_of("pod", pods), churn=ends)


@shape(pods=5_000)
def mixed_churn(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Meanwhile nodes, Services and unschedulable pods come and go."""
    every = 5
    happens = list(islice(_created_and_deleted(nodes), pods // every))
    there, wanted = pods_of("initial", initial), pods_of("pod", pods)
    return BenchLoad(nodes_of(nodes), there, wanted, churn=happens, churn_every=every)


def _created_and_deleted(nodes: int) -> Iterator[Observation]:
    """Objects that scheduler_perf creates and deletes by turns."""
    for i in count():
        name = f"churn-{i}"
        meta = ObjectMeta(name=name, namespace=NAMESPACE, uid=f"service-{i}", resource_version="1")
        service = Service(metadata=meta, spec=ServiceSpec(selector={"app": name}))
        made = (node(f"node-{nodes + i}", i), pod(name, requests=HUGE), service)
        yield from map(Added, made)
        yield from map(Deleted, made)
