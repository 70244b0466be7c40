"""The controllers by the task names of `triggers`."""

from collections.abc import Callable, Iterator

from moorage.serve.controllers import (
    daemon_set,
    deployment,
    disruption_budget,
    garbage_collection,
    job,
    kubelet,
    node_lifecycle,
    objects,
    pods,
    replica_set,
    stateful_set,
    triggers,
    volumes,
)
from moorage.serve.controllers.index import ObjectIndex
from moorage.serve.controllers.objects import Object
from moorage.serve.controllers.writes import RequeueAt, Write

Reconcile = Callable[[Object, ObjectIndex, float], Iterator[Write]]

_WORKLOADS: dict[str, Reconcile] = {
    **dict.fromkeys(replica_set.KINDS, replica_set.reconcile),
    deployment.KIND: deployment.reconcile,
    stateful_set.KIND: stateful_set.reconcile,
    daemon_set.KIND: daemon_set.reconcile,
    job.KIND: job.reconcile,
}


class Reconcilers:
    """All controllers, and the times since when kubelets and the pod collector wait."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str], float] = {}
        self._by_task: dict[str, Reconcile] = {
            triggers.WORKLOAD: _workload,
            triggers.BUDGET: disruption_budget.reconcile,
            triggers.GARBAGE: garbage_collection.reconcile,
            triggers.NAMESPACE: garbage_collection.reconcile_namespace,
            triggers.LIFECYCLE: node_lifecycle.reconcile,
            triggers.VOLUME: volumes.reconcile,
            triggers.CLAIMS: volumes.reconcile_ephemeral_claims,
            triggers.RELEASE: job.release,
            triggers.ORPHANED_POD: self._orphaned_pod,
            triggers.KUBELET_POD: self._pod,
            triggers.KUBELET_NODE: _node,
        }

    def reconcile(self, task: str, obj: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
        """Run the controller of that name on an object."""
        return self._by_task[task](obj, index, now)

    def forget(self, obj: Object) -> None:
        """Drop the times of a deleted object."""
        for task in (triggers.ORPHANED_POD, triggers.KUBELET_POD):
            self._since.pop((task, objects.uid(obj)), None)

    def _pod(self, pod: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
        since = self._since.setdefault((triggers.KUBELET_POD, objects.uid(pod)), now)
        node = index.get("Node", "", pods.node_name(pod))
        claims = [
            index.get(volumes.CLAIM, objects.namespace(pod), name)
            for name in volumes.claims_of(pod)
        ]
        ready = all(claim is not None and volumes.is_bound(claim) for claim in claims)
        return kubelet.reconcile_pod(pod, node, since, now, volumes_ready=ready)

    def _orphaned_pod(self, pod: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
        key = (triggers.ORPHANED_POD, objects.uid(pod))
        if not garbage_collection.is_orphaned_pod(pod, index):
            self._since.pop(key, None)
            return
        at = self._since.setdefault(key, now) + garbage_collection.QUARANTINE_SECONDS
        if at > now:
            yield RequeueAt(at)
        else:
            yield from garbage_collection.delete_orphaned_pod(pod)


def _workload(obj: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    return _WORKLOADS[objects.kind_of(obj)](obj, index, now)


def _node(node: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    lease = index.get(node_lifecycle.LEASE, node_lifecycle.LEASE_NAMESPACE, objects.name(node))
    return kubelet.reconcile_node(node, lease, index.count("Node"), now)
