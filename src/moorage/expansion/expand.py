"""expand: replace every workload and node pool by the pods and nodes that it creates."""

from collections.abc import Container, Iterable

from msgspec.structs import replace

from moorage.api.devices import DeviceClass, ResourceSlice
from moorage.api.kinds import WORKLOADS
from moorage.api.meta import KubeObject
from moorage.api.node import Node, NodePool
from moorage.api.storage import PersistentVolumeClaim
from moorage.api.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from moorage.controllers import drivers
from moorage.expansion import daemon_sets, jobs, node_defaults, replica_sets, stateful_sets
from moorage.expansion.children import Children, ControllerActions, key_of
from moorage.expansion.templates import NameGenerator

Controller = ReplicaSet | ReplicationController | StatefulSet | DaemonSet | Job


def expand(
    objects: Iterable[KubeObject],
    known: Iterable[KubeObject] = (),
    names: NameGenerator | None = None,
    *,
    in_order: bool = False,
) -> list[KubeObject]:
    """The objects, with nodes and devices of pools, pods of workloads and their claims.

    Pods that exist are not created again; owner references say which workload they belong to.
    `known` objects exist as well, but are not returned. Objects that only create others
    (deployments, jobs, node pools) are not returned; all others come first, in their order. All
    pods of a stateful set are created; with `in_order`, only those that its controller would now.
    """
    objects, known = list(objects), list(known)
    made = controllers_and_nodes(objects, known)
    everything = [*known, *objects, *made]
    children = Children(everything)
    nodes = [obj for obj in everything if isinstance(obj, Node)]
    claims = {key_of(obj) for obj in everything if isinstance(obj, PersistentVolumeClaim)}
    names = names or NameGenerator()
    for obj in [*objects, *made]:
        if isinstance(obj, Controller):
            for new in reconcile(obj, children, nodes, names, in_order=in_order).create:
                if key_of(new) not in claims:
                    made.append(new)
    return [obj for obj in [*objects, *made] if type(obj).__name__ not in WORKLOADS]


def controllers_and_nodes(
    objects: Iterable[KubeObject], known: Iterable[KubeObject] = ()
) -> list[KubeObject]:
    """The nodes of pools with their devices, the runs of cron jobs, the sets of deployments."""
    objects = list(objects)
    everything = [*known, *objects]
    children = Children(everything)
    names = {obj.name for obj in everything if isinstance(obj, Node)}
    classes = {obj.name for obj in everything if isinstance(obj, DeviceClass)}
    made: list[KubeObject] = []
    for obj in objects:
        match obj:
            case NodePool():
                made += pool_objects(obj, names)
                new = [
                    each for each in drivers.classes(obj.spec.devices) if each.name not in classes
                ]
                made += new
                classes.update(each.name for each in new)
            case CronJob() if job := jobs.of_cron_job(obj, children):
                made.append(job)
            case Deployment() if replica_set := replica_sets.of_deployment(obj, children):
                made.append(replica_set)
    return made


def reconcile(
    controller: Controller,
    children: Children,
    nodes: Iterable[Node],
    names: NameGenerator,
    *,
    in_order: bool,
) -> ControllerActions:
    """What a controller does now; without `in_order` a stateful set does not wait for its pods."""
    match controller:
        case ReplicaSet() | ReplicationController():
            return replica_sets.reconcile(controller, children, names)
        case StatefulSet():
            return stateful_sets.reconcile(controller, children, in_order=in_order)
        case DaemonSet():
            return daemon_sets.reconcile(controller, children, nodes, names)
        case Job():
            return jobs.reconcile(controller, children, names)


ZONE = "topology.kubernetes.io/zone"
POOL = "moorage.dev/pool"


def pool_objects(
    pool: NodePool, taken: Container[str] = (), first: int = 0
) -> list[Node | ResourceSlice]:
    """The nodes of a pool, each followed by the slices of its devices."""
    groups = pool.spec.devices
    made: list[Node | ResourceSlice] = []
    for node in pool_nodes(pool, taken, first):
        made += [node, *drivers.slices(node, groups)] if groups else [node]
    return made


def pool_nodes(pool: NodePool, taken: Container[str] = (), first: int = 0) -> list[Node]:
    """The nodes of a pool, `general-0`, `general-1` and so on, without those that exist."""
    names = (f"{pool.name}-{number}" for number in range(first, first + pool.spec.count))
    return [
        _node(pool, number, name) for number, name in enumerate(names, first) if name not in taken
    ]


def _node(pool: NodePool, number: int, name: str) -> Node:
    template, zones = pool.spec.template, pool.spec.zones
    labels = node_defaults.labels(name, {POOL: pool.name, **template.metadata.labels})
    if zones:
        labels[ZONE] = zones[number % len(zones)]
    status = template.status
    offered = status.allocatable or status.capacity
    if node_defaults.PODS not in offered:
        most = {node_defaults.PODS: node_defaults.MAX_PODS}
        status = replace(status, allocatable=offered | most)
    return Node(
        api_version="v1",
        kind="Node",
        metadata=replace(template.metadata, name=name, labels=labels),
        spec=template.spec,
        status=status,
    )
