"""RandomCluster: a small cluster that changes at random, step by step.

    world = RandomCluster(Random(7))
    for _ in range(50):
        world.step()
        state = world.state(pod := world.incoming())

For what depends on pods anywhere: pods repel, attract and spread each other, across namespaces
whose labels change; some are being deleted, some outlive their node or come before it. `nodes`,
`pods` and `namespaces` are the truth; `cluster` has been told of every change of it.
"""

from collections.abc import Callable
from random import Random
from typing import TypeVar

from msgspec.structs import replace

from moorage.api.meta import (
    KubeObject,
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorTerm,
    ObjectMeta,
    OwnerReference,
)
from moorage.api.node import Node, Taint
from moorage.api.pod import (
    Affinity,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from moorage.api.policy import Namespace
from moorage.api.workloads import (
    ReplicaSet,
    ReplicationController,
    ReplicationControllerSpec,
    SelectedSpec,
    Service,
    ServiceSpec,
    StatefulSet,
    StatefulSetSpec,
)
from moorage.framework.cluster import Cluster
from moorage.framework.state import CycleState
from moorage.nodes.table import NodeTable
from moorage.nodes.template import Templates
from moorage.nodes.usage import Usage
from moorage.testing.builders import make_node, make_pod

T = TypeVar("T")

NODE_NAMES = tuple(f"n{i}" for i in range(7))
NAMESPACES = ("red", "blue", "grey")
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
TOPOLOGY_KEYS = (ZONE, HOSTNAME, "rack", "unheard")
LABELS = {"app": ("a", "b"), "tier": ("x", "y", "")}
OWNERS = {
    "ReplicationController": "v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "Job": "batch/v1",
}
# One that no API server would accept.
BROKEN = LabelSelector(match_labels={"app": "{{.bad-value.}}"})


class RandomCluster:
    """See the module."""

    def __init__(self, rng: Random, *, broken: bool = False) -> None:
        self._rng = rng
        self._broken = broken
        self._serial = 0
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.namespaces: dict[str, Namespace] = {}
        # So few rows that the table has to grow.
        self.cluster = Cluster(NodeTable(2))
        self.templates = Templates()
        for _ in range(4):
            self._set_node()
            self._set_namespace()
            self._set_workload()

    @property
    def table(self) -> NodeTable:
        return self.cluster.table

    def state(self, pod: Pod) -> CycleState:
        """A fresh state for a cycle of this pod."""
        return CycleState.of(self.cluster, self.templates.of(pod))

    def step(self) -> None:
        """Let something happen."""
        happenings: tuple[tuple[int, Callable[[], None]], ...] = (
            (6, self._add_pod),
            (3, self._remove_pod),
            (2, self._relabel_pod),
            (2, self._terminate_pod),
            (3, self._set_node),
            (1, self._remove_node),
            (1, self._set_namespace),
            (2, self._set_workload),
        )
        weights = [weight for weight, _ in happenings]
        happen = self._rng.choices([what for _, what in happenings], weights)[0]
        happen()

    # Nodes

    def _set_node(self) -> None:
        node = self.random_node(self._rng.choice(NODE_NAMES))
        self.nodes[node.name] = node
        self.table.set_node(node)

    def _remove_node(self) -> None:
        if self.nodes:
            name = self._rng.choice(sorted(self.nodes))
            del self.nodes[name]
            self.table.remove_node(name)

    def random_node(self, name: str) -> Node:
        """A node that has most of the topology labels, and perhaps a taint."""
        pick = self._rng.choice
        labels = {
            ZONE: pick(("z1", "z1", "z2", "z3", "", None)),
            HOSTNAME: pick((name, name, name, "twin", None)),
            "rack": pick(("r1", "r2", None)),
            "disk": pick(("ssd", None)),
        }
        effect = pick(("NoSchedule", "NoExecute", "PreferNoSchedule"))
        taints = [Taint(key="spot", effect=effect)] if pick((True, False)) else []
        return make_node(name, labels=labels, taints=taints)

    # Pods

    def _add_pod(self) -> None:
        pod = self.random_pod(node=self._rng.choice(NODE_NAMES))
        self.pods[pod.uid] = pod
        self.table.add_pod(pod.node_name, pod, Usage.of(pod))

    def _remove_pod(self) -> None:
        if self.pods:
            pod = self.pods.pop(self._rng.choice(sorted(self.pods)))
            self.table.remove_pod(pod.node_name, pod.uid)

    def _relabel_pod(self) -> None:
        self._change_pod(labels=self._random_labels())

    def _terminate_pod(self) -> None:
        self._change_pod(deletion_timestamp="2030-01-01T00:00:00Z")

    def _change_pod(self, **changes: object) -> None:
        if self.pods:
            old = self.pods[self._rng.choice(sorted(self.pods))]
            new = replace(old, metadata=replace(old.metadata, **changes))
            self.pods[new.uid] = new
            self.table.replace_pod(new.node_name, new, Usage.of(new))

    def incoming(self) -> Pod:
        """A pod that waits for a node."""
        return self.random_pod(node=None)

    def random_pod(self, node: str | None) -> Pod:
        """A pod that has to do with others."""
        self._serial += 1
        pick = self._rng.choice
        pod = make_pod(
            f"p{self._serial}",
            namespace=pick(NAMESPACES),
            labels=self._random_labels(),
            node=node,
            affinity=pick((None, self._random_affinity())),
            topology_spread_constraints=self._some(self.random_constraint),
            node_selector=pick((None, None, {"disk": "ssd"})),
            tolerations=pick(((), (Toleration(key="spot", operator="Exists"),))),
        )
        kind = pick((None, *OWNERS))
        if kind is None:
            return pod
        owner = OwnerReference(
            api_version=OWNERS[kind], kind=kind, name=pick(("w1", "w2")), controller=True
        )
        return replace(pod, metadata=replace(pod.metadata, owner_references=(owner,)))

    def _random_labels(self) -> dict[str, str]:
        labels = {key: self._rng.choice((None, *values)) for key, values in LABELS.items()}
        return {key: value for key, value in labels.items() if value is not None}

    def _random_affinity(self) -> Affinity:
        pick = self._rng.choice
        required = NodeSelector(node_selector_terms=self._some(self._random_node_term))
        return Affinity(
            node_affinity=pick(
                (None, NodeAffinity(required_during_scheduling_ignored_during_execution=required))
            ),
            pod_affinity=pick((None, self._random_pod_affinity())),
            pod_anti_affinity=pick((None, self._random_pod_affinity())),
        )

    def _random_node_term(self) -> NodeSelectorTerm:
        pick = self._rng.choice
        disk = LabelSelectorRequirement(key="disk", operator=pick(("Exists", "DoesNotExist")))
        name = LabelSelectorRequirement(
            key="metadata.name", operator=pick(("In", "NotIn")), values=("n1",)
        )
        return NodeSelectorTerm(
            match_expressions=pick(((), (disk,))), match_fields=pick(((), (), (name,)))
        )

    def _random_pod_affinity(self) -> PodAffinity:
        return PodAffinity(
            required_during_scheduling_ignored_during_execution=self._some(self._random_term),
            preferred_during_scheduling_ignored_during_execution=self._some(
                lambda: WeightedPodAffinityTerm(
                    weight=self._rng.choice((1, 3, 100)), pod_affinity_term=self._random_term()
                )
            ),
        )

    def _random_term(self) -> PodAffinityTerm:
        return PodAffinityTerm(
            label_selector=self.random_selector(),
            topology_key=self._rng.choice(TOPOLOGY_KEYS),
            namespaces=self._rng.choice(((), (), ("red",), ("blue", "grey"))),
            namespace_selector=self._rng.choice((None, None, self._random_team())),
        )

    def _random_team(self) -> LabelSelector:
        operator = self._rng.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        wanted = LabelSelectorRequirement(
            key="team", operator=operator, values=("one",) if operator.endswith("In") else ()
        )
        return self._rng.choice((LabelSelector(), LabelSelector(match_expressions=(wanted,))))

    def random_constraint(self) -> TopologySpreadConstraint:
        """A constraint, hard or soft."""
        pick = self._rng.choice
        hard = pick((True, False))
        return TopologySpreadConstraint(
            max_skew=pick((1, 1, 2)),
            topology_key=pick(TOPOLOGY_KEYS[:3]),
            when_unsatisfiable="DoNotSchedule" if hard else "ScheduleAnyway",
            label_selector=self.random_selector(),
            min_domains=pick((None, 1, 2, 3)) if hard else None,
            node_affinity_policy=pick((None, "Honor", "Ignore")),
            node_taints_policy=pick((None, "Honor", "Honor", "Ignore")),
            match_label_keys=pick(((), (), ("tier",), ("tier", "unheard"))),
        )

    def random_selector(self) -> LabelSelector | None:
        """A selector of pods, perhaps of all or none; in a world with broken ones one of these."""
        pick = self._rng.choice
        if self._broken and self._rng.randrange(20) == 0:
            return BROKEN
        key = pick(sorted(LABELS))
        operator = pick(("In", "NotIn", "Exists", "DoesNotExist"))
        count = self._rng.randrange(1, 3) if operator.endswith("In") else 0
        expression = LabelSelectorRequirement(
            key=key, operator=operator, values=tuple(self._rng.sample(LABELS[key], count))
        )
        return pick(
            (
                None,
                LabelSelector(),
                LabelSelector(match_labels={"app": pick(LABELS["app"])}),
                LabelSelector(match_expressions=(expression,)),
                LabelSelector(match_labels={"app": "a"}, match_expressions=(expression,)),
            )
        )

    def _some(self, make: Callable[[], T]) -> tuple[T, ...]:
        return tuple(make() for _ in range(self._rng.choice((0, 0, 1, 1, 2, 3))))

    # Other objects

    def _set_namespace(self) -> None:
        name = self._rng.choice(NAMESPACES)
        known = self.namespaces.pop(name, None)
        if known is not None and self._rng.choice((True, False)):
            self.cluster.drop(known)
            return
        labels = self._rng.choice(({}, {"team": "one"}, {"team": "two"}))
        self.namespaces[name] = Namespace(metadata=ObjectMeta(name=name, labels=labels))
        self.cluster.put(self.namespaces[name])

    def _set_workload(self) -> None:
        pick = self._rng.choice
        meta = ObjectMeta(name=pick(("w1", "w2")), namespace=pick(NAMESPACES))
        equal = pick((None, {}, {"app": "a"}, {"tier": "x"}))
        controlled = ReplicationControllerSpec(selector=equal)
        selector = SelectedSpec(selector=self.random_selector())
        obj: KubeObject = pick(
            (
                Service(metadata=meta, spec=ServiceSpec(selector=equal)),
                ReplicationController(metadata=meta, spec=controlled),
                ReplicaSet(metadata=meta, spec=selector),
                StatefulSet(metadata=meta, spec=StatefulSetSpec(selector=selector.selector)),
            )
        )
        if self._rng.randrange(4) == 0:
            self.cluster.drop(obj)
        else:
            self.cluster.put(obj)
