"""What if the cluster were changed: which pods are placed, moved or pending then.

A change is a text, the same in the web UI and on the command line:

    weight     PLUGIN:WEIGHT                the weight of a score plugin
    queue      QUEUE:max.cpu=100,weight=2   the limits of a queue (see `queue_changes`)
    add        NODE:COUNT, POOL:COUNT       more nodes like a node, or of a NodePool
    pods       POD:COUNT                    more pods like a pod
    requests   POD:cpu=2,memory=4Gi         what a pod requests in total
    tolerate   POD:KEY[=VALUE][:EFFECT]     a toleration
    cordon     NODE, and uncordon
    remove     NODE                         the node fails or is deleted
    drain      NODE                         as `kubectl drain`, within disruption budgets

Changes are applied in this order, after the pending pods have been placed. A pod of the input that
is pending, and was placed on a node that is cordoned or removed, is placed again; with another
weight or another configuration, all of them are. A change of a pod applies to all pods of its
controller; pods that run are recreated with it. Pods of DaemonSets come and go with their nodes and
are not listed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from moorage.api import config as configuration
from moorage.api import manifests, quantity
from moorage.api.config import weights
from moorage.api.devices import ResourceSlice
from moorage.api.meta import KubeObject
from moorage.api.node import Node, NodePool
from moorage.api.pod import Container, Pod, Toleration
from moorage.api.queues import ElasticQuota, Queue
from moorage.api.storage import CSINode
from moorage.controllers import cordon
from moorage.errors import InputError
from moorage.expansion import children
from moorage.nodes.resources import exact_sum
from moorage.planning import drain as draining
from moorage.planning import node_templates, queue_changes
from moorage.planning.compare import Moves, plain_moves
from moorage.planning.drain import DrainResult, recreated
from moorage.planning.input_cluster import InputCluster, Objects, belongs_to_node
from moorage.planning.packing import Packing
from moorage.planning.prices import ClusterCost, PriceList
from moorage.planning.queue_changes import QueueEffect, QueueState

KINDS = (
    "weight",
    "queue",
    "add",
    "pods",
    "requests",
    "tolerate",
    "cordon",
    "uncordon",
    "remove",
    "drain",
)
MOST_ADDED = 10_000
NO_CONTROLLER = "has no controller, and is not recreated"

# The kind and the text of a change.
Change = tuple[str, str]


@dataclass(frozen=True, slots=True)
class CostChange:
    """What the nodes cost per hour without and with the changes."""

    before: ClusterCost
    after: ClusterCost

    @property
    def difference(self) -> Decimal:
        return self.after.per_hour - self.before.per_hour

    def to_dict(self) -> dict[str, Any]:
        """The costs as plain data."""
        return {
            "perHourBefore": float(self.before.per_hour),
            "perHourAfter": float(self.after.per_hour),
            "difference": float(self.difference),
            "unpriced": list(self.after.unpriced),
        }


@dataclass(frozen=True, slots=True)
class WhatIfAnswer:
    """How a changed cluster differs; pods by key."""

    changes: tuple[Change, ...]
    # Pods without a node that get one, among them new pods; and their nodes.
    placed: Mapping[str, str]
    # Pods on another node, before and after.
    moved: Moves
    # Pods that have a node without the changes, or are new; the reasons.
    pending: Mapping[str, str]
    # Pods that are not recreated, and pods that a disruption budget keeps on a drained node.
    lost: Mapping[str, str]
    blocked: Mapping[str, str]
    pending_before: int
    pending_after: int
    nodes_added: tuple[str, ...]
    nodes_removed: tuple[str, ...]
    # The DaemonSet pods on the added nodes.
    daemons_added: int
    # The nodes of all pods without the changes; an empty text for pending pods.
    nodes_before: Mapping[str, str]
    # What the pods on nodes request without the changes, by resource.
    requested_before: Mapping[str, int]
    # The changed cluster.
    packing: Packing
    # None without prices.
    cost: CostChange | None = None
    # What changes for each queue, if a queue is changed.
    queues: tuple[QueueEffect, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether no pod is worse off."""
        return not (self.pending or self.lost or self.blocked)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data."""
        return {
            "changes": [{kind: text} for kind, text in self.changes],
            "clean": self.is_clean,
            "placed": dict(self.placed),
            "moved": plain_moves(self.moved),
            "pending": dict(self.pending),
            "lost": dict(self.lost),
            "blocked": dict(self.blocked),
            "pendingBefore": self.pending_before,
            "pendingAfter": self.pending_after,
            "nodesAdded": list(self.nodes_added),
            "nodesRemoved": list(self.nodes_removed),
            "daemonsAdded": self.daemons_added,
            **({} if self.cost is None else {"cost": self.cost.to_dict()}),
            **({"queues": {it.name: it.to_dict() for it in self.queues}} if self.queues else {}),
        }


def what_if(
    objects: Objects,
    changes: Sequence[Change],
    config: configuration.Source = None,
    *,
    new_config: configuration.Source = None,
    prices: PriceList | None = None,
    seed: int = 0,
) -> WhatIfAnswer:
    """Change a cluster and compare; raises InputError.

    With `new_config`, the changed cluster has that configuration instead of `config`.
    """
    if not changes and new_config is None:
        raise InputError(f"no change is given; it may be one of new-config, {', '.join(KINDS)}")
    for kind, _ in changes:
        if kind not in KINDS:
            raise InputError(f"change {kind!r}: must be one of {', '.join(KINDS)}")
    everything = manifests.read(objects).everything
    pools = {obj.name: obj for obj in everything if isinstance(obj, NodePool)}
    cluster = InputCluster.of(everything, config)
    packing = Packing(cluster.objects, cluster.config, seed=seed)
    draining.place_pending(packing)
    old, requested = _nodes_of(packing), _requested(packing)
    changed = cluster.config if new_config is None else configuration.load(new_config)
    for kind, text in changes:
        if kind == "weight":
            changed = weights.with_weight(changed, *_counted(kind, text))
    if changed is not cluster.config:
        packing = Packing(cluster.objects, changed, seed=seed)
        draining.place_pending(packing)
    queues_before = None
    if any(kind == "queue" for kind, _ in changes):
        queue_changes.require_fair_share(packing)
        queues_before = QueueState(packing)
    changing = _Changing(cluster, pools, packing)
    for kind, text in sorted(changes, key=lambda change: KINDS.index(change[0])):
        if kind != "weight":
            changing.apply(kind, text)
    draining.place_pending(packing)
    drained = None
    if changing.drained:
        nodes = [changing.nodes[name] for name in dict.fromkeys(changing.drained)]
        drained = draining.drain_packing(cluster, packing, nodes)
    found = _difference(tuple(changes), old, requested, changing, packing, drained)
    if queues_before is not None:
        effects = queue_changes.effects(
            queues_before,
            QueueState(packing),
            [key for key in (*found.pending, *found.lost) if old.get(key)],
            cluster.pods,
            everything,
            changing.queues,
            changed,
            seed,
        )
        found = replace_fields(found, queues=effects)
    if prices is None:
        return found
    before = ClusterCost.of(cluster.nodes, prices)
    nodes_after = changing.nodes.values()
    if any(prices.price(node) is not None for node in nodes_after):
        after = ClusterCost.of(nodes_after, prices)
    else:  # The changes may remove all nodes that have a price.
        after = ClusterCost({}, tuple(changing.nodes))
    return replace_fields(found, cost=CostChange(before, after))


class _Changing:
    """Applies changes to a cluster whose pending pods have been placed."""

    def __init__(
        self, cluster: InputCluster, pools: Mapping[str, NodePool], packing: Packing
    ) -> None:
        self.drained: list[str] = []
        # Queues as they are changed.
        self.queues: list[Queue | ElasticQuota] = []
        self.nodes = {node.name: node for node in cluster.nodes}
        self.nodes_before = tuple(self.nodes)
        self._cluster = cluster
        self._pools = pools
        self._packing = packing
        self._pending = {pod.key for pod in cluster.pods if not pod.node_name}
        self._recreated = 0

    def apply(self, kind: str, text: str) -> None:
        """Apply one change; raises InputError."""
        match kind:
            case "queue":
                self._change_queue(text)
            case "add":
                self._add_nodes(*_counted(kind, text))
            case "pods":
                self._add_pods(*_counted(kind, text))
            case "requests":
                key, amounts = _amounts(text)
                self._change_pods(key, lambda pod: _requesting(pod, amounts))
            case "tolerate":
                key, toleration = _toleration(text)
                self._change_pods(key, lambda pod: _tolerating(pod, toleration))
            case "cordon" | "uncordon":
                self._cordon(self._node(text), is_cordoned=kind == "cordon")
            case "remove":
                self._remove(self._node(text))
            case _:
                self.drained.append(self._node(text).name)

    def _change_queue(self, text: str) -> None:
        known = {obj.key: obj for obj in (*self._cluster.others, *self.queues)}
        new = queue_changes.changed(text, known.values())
        self.queues = [*(each for each in self.queues if each.key != new.key), new]
        self._packing.update(new)

    def _node(self, name: str) -> Node:
        if name not in self.nodes:
            raise InputError(f"there is no node {name!r}")
        return self.nodes[name]

    @property
    def _pods(self) -> list[Pod]:
        return [*self._packing.running, *self._packing.waiting]

    def _pod(self, key: str) -> Pod:
        found = next((pod for pod in self._pods if pod.key == key), None)
        if found is None:
            raise InputError(f"there is no pod {key!r}")
        return found

    def _recreate(self, pod: Pod, again: Pod | None = None) -> None:
        self._recreated += 1
        self._packing.remove(pod)
        self._packing.add(recreated(again or pod, f"{pod.uid}.changed.{self._recreated}"))

    def _add_nodes(self, name: str, count: int) -> None:
        like = self._pools.get(name) or self._node(name)
        known = replace_fields(self._cluster, nodes=tuple(self.nodes.values()))
        (template,) = node_templates.read([like], known)
        for obj in template.objects(count):
            self._packing.add(obj)
            if isinstance(obj, Node):
                self.nodes[obj.name] = obj

    def _add_pods(self, key: str, count: int) -> None:
        like, known, number = self._pod(key), {pod.key for pod in self._pods}, 0
        for _ in range(count):
            while f"{key}-copy-{number}" in known:
                number += 1
            again = recreated(like, f"{like.uid}.copy.{number}")
            meta = replace(again.metadata, name=f"{like.name}-copy-{number}")
            self._packing.add(replace(again, metadata=meta))
            number += 1

    def _change_pods(self, key: str, change: Callable[[Pod], Pod]) -> None:
        owner = children.owner_key(self._pod(key))
        for pod in self._pods:
            if pod.key == key or (owner is not None and children.owner_key(pod) == owner):
                self._recreate(pod, change(pod))

    def _cordon(self, node: Node, *, is_cordoned: bool) -> None:
        changed = cordon.cordoned(node) if is_cordoned else cordon.uncordoned(node)
        self.nodes[node.name] = changed
        self._packing.update(changed)
        for pod in self._on(node) if is_cordoned else ():
            if pod.key in self._pending and not belongs_to_node(pod):
                self._recreate(pod)

    def _remove(self, node: Node) -> None:
        del self.nodes[node.name]
        for pod in self._on(node):
            is_recreated = pod.controller is not None or pod.key in self._pending
            if is_recreated and not belongs_to_node(pod):
                self._recreate(pod)
            else:
                self._packing.remove(pod)
        for obj in self._cluster.others:
            if _belongs_to(obj, node.name):
                self._packing.delete(obj)
        self._packing.delete(node)

    def _on(self, node: Node) -> list[Pod]:
        return [pod for pod in self._packing.running if pod.node_name == node.name]


def _difference(
    changes: tuple[Change, ...],
    old: Mapping[str, str],
    requested: Mapping[str, int],
    changing: "_Changing",
    after: Packing,
    drained: DrainResult | None,
) -> WhatIfAnswer:
    new, reasons = _nodes_of(after), after.left
    added = tuple(name for name in changing.nodes if name not in changing.nodes_before)
    new_nodes = frozenset(added)
    return WhatIfAnswer(
        changes=changes,
        placed={key: node for key, node in new.items() if node and not old.get(key)},
        moved={
            key: (old[key], node)
            for key, node in new.items()
            if node and old.get(key) and old[key] != node
        },
        pending={
            key: reasons[key]
            for key, node in new.items()
            if not node and (key not in old or old[key])
        },
        lost={key: NO_CONTROLLER for key in old if key not in new},
        blocked={} if drained is None else {each.pod: each.reason for each in drained.blocked},
        pending_before=sum(not node for node in old.values()),
        pending_after=sum(not node for node in new.values()),
        nodes_added=added,
        nodes_removed=tuple(each for each in changing.nodes_before if each not in changing.nodes),
        daemons_added=sum(
            pod.node_name in new_nodes for pod in after.running if belongs_to_node(pod)
        ),
        nodes_before=old,
        requested_before=requested,
        packing=after,
    )


def _nodes_of(packing: Packing) -> dict[str, str]:
    """Every pod that could be on another node, with its node; an empty text for pending pods."""
    found = {pod.key: pod.node_name for pod in packing.running if not belongs_to_node(pod)}
    return found | {pod.key: "" for pod in packing.waiting if not belongs_to_node(pod)}


def _requested(packing: Packing) -> dict[str, int]:
    table = packing.scheduler.cluster.table
    return {
        name: exact_sum(table.requested(name)[table.active_rows])
        for name in table.allocatable_columns.columns
    }


def _belongs_to(obj: KubeObject, node: str) -> bool:
    if isinstance(obj, ResourceSlice):
        return obj.spec.node_name == node
    return isinstance(obj, CSINode) and obj.name == node


def _counted(kind: str, text: str) -> tuple[str, int]:
    name, _, count = text.rpartition(":")
    if not name or not count.isdecimal() or not 0 < int(count) <= MOST_ADDED:
        raise InputError(f"{kind} {text!r}: must be NAME:COUNT, with a count of 1 to {MOST_ADDED}")
    return name, int(count)


def _amounts(text: str) -> tuple[str, dict[str, str]]:
    key, _, given = text.partition(":")
    amounts = dict(each.partition("=")[::2] for each in given.split(",") if each)
    for name, amount in amounts.items():
        try:
            valid = quantity.nano(amount) >= 0
        except ValueError:
            valid = False
        if not name or not valid:
            raise InputError(f"requests {text!r}: {name}={amount} is not an amount")
    if not amounts:
        raise InputError(f"requests {text!r}: must be POD:RESOURCE=AMOUNT,...")
    return key, amounts


def _requesting(pod: Pod, amounts: Mapping[str, str]) -> Pod:
    """The pod with other requests: those of its first container, others have none."""

    def changed(container: Container, given: Mapping[str, str]) -> Container:
        kept = {k: v for k, v in container.resources.requests.items() if k not in amounts}
        resources = replace(container.resources, requests=kept | dict(given))
        return replace(container, resources=resources)

    first, *rest = pod.spec.containers
    spec = replace(
        pod.spec,
        containers=(changed(first, amounts), *(changed(each, {}) for each in rest)),
        init_containers=tuple(changed(each, {}) for each in pod.spec.init_containers),
    )
    return replace(pod, spec=spec)


def _toleration(text: str) -> tuple[str, Toleration]:
    key, _, taint = text.partition(":")
    left, _, effect = taint.partition(":")
    name, equals, value = left.partition("=")
    if not name:
        raise InputError(f"tolerate {text!r}: must be POD:KEY[=VALUE][:EFFECT]")
    operator = "Equal" if equals else "Exists"
    return key, Toleration(key=name, operator=operator, value=value, effect=effect)


def _tolerating(pod: Pod, toleration: Toleration) -> Pod:
    return replace(pod, spec=replace(pod.spec, tolerations=(*pod.spec.tolerations, toleration)))
