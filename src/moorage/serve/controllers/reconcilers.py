"""Every controller under the name that tasks call it by."""

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
    """The controllers, and when kubelets and the collector first heard of what they wait for."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str], float] = {}
        self._by_name: dict[str, Reconcile] = {
            triggers.WORKLOAD: _workload,
            triggers.BUDGET: disruption_budget.reconcile,
            triggers.GARBAGE: garbage_collection.reconcile,
            triggers.NAMESPACE: garbage_collection.reconcile_namespace,
            triggers.LIFECYCLE: node_lifecycle.reconcile,
            triggers.VOLUME: volumes.reconcile,
            triggers.CLAIMS: volumes.reconcile_ephemeral_claims,
            triggers.RELEASE: job.release,
            triggers.LOST: self._lost_pod,
            triggers.KUBELET_POD: self._pod,
            triggers.KUBELET_NODE: _node,
        }

    def reconcile(self, name: str, obj: Object, view: ObjectIndex, now: float) -> Iterator[Write]:
        """Ask the controller of that name."""
        return self._by_name[name](obj, view, now)

    def forget(self, obj: Object) -> None:
        """An object is gone."""
        for what in (triggers.LOST, triggers.KUBELET_POD):
            self._since.pop((what, objects.uid(obj)), None)

    def _pod(self, pod: Object, view: ObjectIndex, now: float) -> Iterator[Write]:
        since = self._since.setdefault((triggers.KUBELET_POD, objects.uid(pod)), now)
        node = view.get("Node", "", pods.node_name(pod))
        ready = all(
            _is_bound(view.get(volumes.CLAIM, objects.namespace(pod), claim))
            for claim in volumes.claims_of(pod)
        )
        return kubelet.reconcile_pod(pod, node, since, now, volumes_ready=ready)

    def _lost_pod(self, pod: Object, view: ObjectIndex, now: float) -> Iterator[Write]:
        key = (triggers.LOST, objects.uid(pod))
        if not garbage_collection.is_orphaned_pod(pod, view):
            self._since.pop(key, None)
            return
        at = self._since.setdefault(key, now) + garbage_collection.QUARANTINE_SECONDS
        if at > now:
            yield RequeueAt(at)
        else:
            yield from garbage_collection.delete_orphaned_pod(pod)


def _workload(obj: Object, view: ObjectIndex, now: float) -> Iterator[Write]:
    return _WORKLOADS[objects.kind_of(obj)](obj, view, now)


def _node(node: Object, view: ObjectIndex, now: float) -> Iterator[Write]:
    lease = view.get(node_lifecycle.LEASE, node_lifecycle.LEASE_NAMESPACE, objects.name(node))
    return kubelet.reconcile_node(node, lease, view.count("Node"), now)


def _is_bound(claim: Object | None) -> bool:
    return claim is not None and objects.status(claim).get("phase") == "Bound"
