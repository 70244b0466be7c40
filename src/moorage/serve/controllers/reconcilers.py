"""Every controller under the name that tasks call it by."""

from collections.abc import Callable, Iterator

from moorage.serve import heartbeats, kubelet
from moorage.serve.controllers import (
    daemon_set,
    deployment,
    disruption_budget,
    ephemeral_claims,
    garbage,
    job,
    lost_pods,
    namespaces,
    node_lifecycle,
    objects,
    pods,
    replica_set,
    stateful_set,
    triggers,
    volumes,
)
from moorage.serve.controllers.objects import Object
from moorage.serve.controllers.view import View
from moorage.serve.controllers.writes import Again, Write

Reconcile = Callable[[Object, View, float], Iterator[Write]]

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
            triggers.GARBAGE: garbage.reconcile,
            triggers.NAMESPACE: namespaces.reconcile,
            triggers.LIFECYCLE: node_lifecycle.reconcile,
            triggers.VOLUME: volumes.reconcile,
            triggers.CLAIMS: ephemeral_claims.reconcile,
            triggers.RELEASE: job.release,
            triggers.LOST: self._lost_pod,
            triggers.KUBELET_POD: self._pod,
            triggers.KUBELET_NODE: _node,
        }

    def reconcile(self, name: str, obj: Object, view: View, now: float) -> Iterator[Write]:
        """Ask the controller of that name."""
        return self._by_name[name](obj, view, now)

    def forget(self, obj: Object) -> None:
        """An object is gone."""
        for what in (triggers.LOST, triggers.KUBELET_POD):
            self._since.pop((what, objects.uid(obj)), None)

    def _pod(self, pod: Object, view: View, now: float) -> Iterator[Write]:
        since = self._since.setdefault((triggers.KUBELET_POD, objects.uid(pod)), now)
        node = view.get("Node", "", pods.node_name(pod))
        ready = all(
            _is_bound(view.get(volumes.CLAIM, objects.namespace(pod), claim))
            for claim in volumes.claims_of(pod)
        )
        return kubelet.of_pod(pod, node, since, now, volumes_ready=ready)

    def _lost_pod(self, pod: Object, view: View, now: float) -> Iterator[Write]:
        key = (triggers.LOST, objects.uid(pod))
        if not lost_pods.is_lost(pod, view):
            self._since.pop(key, None)
            return
        at = self._since.setdefault(key, now) + lost_pods.QUARANTINE_SECONDS
        if at > now:
            yield Again(at)
        else:
            yield from lost_pods.collect(pod)


def _workload(obj: Object, view: View, now: float) -> Iterator[Write]:
    return _WORKLOADS[objects.kind_of(obj)](obj, view, now)


def _node(node: Object, view: View, now: float) -> Iterator[Write]:
    lease = view.get(node_lifecycle.LEASE, node_lifecycle.LEASE_NAMESPACE, objects.name(node))
    return heartbeats.of_node(node, lease, view.count("Node"), now)


def _is_bound(claim: Object | None) -> bool:
    return claim is not None and objects.status(claim).get("phase") == "Bound"
