"""expand: every object that is made of others, replaced by what it makes."""

from collections.abc import Iterable

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
from moorage.expansion import daemon_sets, jobs, node_pools, replica_sets, stateful_sets
from moorage.expansion.children import Children, key_of
from moorage.expansion.names import Names
from moorage.expansion.wanted import Wanted

Controller = ReplicaSet | ReplicationController | StatefulSet | DaemonSet | Job


def expand(
    objects: Iterable[KubeObject],
    known: Iterable[KubeObject] = (),
    serials: Names | None = None,
    *,
    in_order: bool = False,
) -> list[KubeObject]:
    """The objects with nodes of pools, pods of workloads and their claims.

    What is there already is not made twice: owner references tell which pods belong to whom.
    `known` objects are there as well, but are not handed back. Objects that only exist to make
    others (deployments, jobs, node pools) are left out; all others come first, in their order.
    A stateful set makes all its pods; `in_order` only those that its controller would make now.
    """
    objects, known = list(objects), list(known)
    made = controllers_and_nodes(objects, known)
    everything = [*known, *objects, *made]
    children = Children(everything)
    nodes = [obj for obj in everything if isinstance(obj, Node)]
    claims = {key_of(obj) for obj in everything if isinstance(obj, PersistentVolumeClaim)}
    serials = serials or Names()
    for obj in [*objects, *made]:
        if isinstance(obj, Controller):
            for new in wanted(obj, children, nodes, serials, in_order=in_order).made:
                if key_of(new) not in claims:
                    made.append(new)
    return [obj for obj in [*objects, *made] if type(obj).__name__ not in WORKLOADS]


def controllers_and_nodes(
    objects: Iterable[KubeObject], known: Iterable[KubeObject] = ()
) -> list[KubeObject]:
    """The nodes of pools, the runs of cron jobs, the replica sets of deployments."""
    objects = list(objects)
    everything = [*known, *objects]
    children = Children(everything)
    names = {obj.name for obj in everything if isinstance(obj, Node)}
    made: list[KubeObject] = []
    for obj in objects:
        match obj:
            case NodePool():
                made += node_pools.nodes_of(obj, names)
            case CronJob() if job := jobs.of_cron_job(obj, children):
                made.append(job)
            case Deployment() if replica_set := replica_sets.of_deployment(obj, children):
                made.append(replica_set)
    return made


def wanted(
    controller: Controller,
    children: Children,
    nodes: Iterable[Node],
    serials: Names,
    *,
    in_order: bool,
) -> Wanted:
    """What a controller would do now; unless `in_order`, one of a stateful set does not wait."""
    match controller:
        case ReplicaSet() | ReplicationController():
            return replica_sets.wanted(controller, children, serials)
        case StatefulSet():
            return stateful_sets.wanted(controller, children, in_order=in_order)
        case DaemonSet():
            return daemon_sets.wanted(controller, children, nodes, serials)
        case Job():
            return jobs.wanted(controller, children, serials)
