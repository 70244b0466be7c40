"""Triggers: which tasks of controllers follow from changes of pods, nodes and classes."""

from collections.abc import Callable

from moorage.api import timestamps
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.cluster.controller_loop import ControllerLoop
from moorage.controllers import daemon_set, disruption_budget, job, objects, tasks
from moorage.controllers.index import WORKLOAD, StructReader, key_of
from moorage.controllers.node_lifecycle import MANAGED_TAINTS
from moorage.expansion.struct_index import StructIndex


class Triggers:
    """See the module. Pods are followed only once there is a workload, or a node that evicts."""

    def __init__(
        self,
        cluster: StructReader,
        index: StructIndex,
        loop: ControllerLoop,
        now: Callable[[], float],
    ) -> None:
        self.is_active = False
        self._cluster = cluster
        self._index = index
        self._loop = loop
        self._now = now

    def activate(self) -> None:
        """Begin to follow pods: without workloads no controller reads them."""
        if not self.is_active:
            self.is_active = True
            for pod in self._cluster.all(Pod):
                self._index.put_pod(pod)

    def pod_changed(self, pod: Pod) -> None:
        """A pod was added or updated."""
        if not self.is_active:
            return
        old = self._index.put_pod(pod)
        if pod.node_name and (old is None or not old.node_name):
            self._trigger_lifecycle(pod.node_name)
        if old is not None and not _differs(old, pod):
            return
        owner = pod.controller
        if owner is None:
            if old is None or old.controller is not None or old.labels != pod.labels:
                self._trigger_possible_owners(pod)
        else:
            self._trigger_owner(pod, owner.uid)
        if old is not None and (before := old.controller) is not None and before != owner:
            self._trigger_owner(old, before.uid)
        self._trigger_budgets(pod)
        tracked = job.FINALIZER in pod.metadata.finalizers
        if tracked and (owner is None or self._index.document_key(owner.uid) is None):
            self._loop.trigger((tasks.RELEASE, ("Pod", pod.namespace, pod.name)))

    def pod_deleted(self, pod: Pod) -> None:
        """A pod was removed."""
        if not self.is_active:
            return
        self._index.drop_pod(pod)
        if (owner := pod.controller) is not None:
            self._trigger_owner(pod, owner.uid)
        self._trigger_budgets(pod)

    def node_changed(self, node: Node) -> None:
        """A node was added, updated or removed."""
        if _needs_lifecycle(node):
            self.activate()
            self._index.note_taints(node, timestamps.to_text(self._now()))
            self._loop.trigger((tasks.LIFECYCLE, ("Node", "", node.name)))
        for each in self._index.all(daemon_set.KIND):
            self._loop.trigger((WORKLOAD, key_of(each)))

    def _trigger_lifecycle(self, name: str) -> None:
        """A pod arrived on a node, which may have taints that evict it."""
        node = self._cluster.get(Node, name)
        if node is not None and any(each.effect == "NoExecute" for each in node.spec.taints):
            self._loop.trigger((tasks.LIFECYCLE, ("Node", "", name)))

    def classes_changed(self) -> None:
        """A class or limit range changed that admission of new objects depends on."""
        for task in list(self._index.failures):
            self._loop.trigger(task)

    def _trigger_owner(self, pod: Pod, uid: str) -> None:
        key = self._index.document_key(uid)
        if key is None:
            return
        self._loop.trigger((WORKLOAD, key))
        if pod.is_terminal or self._index.pod(pod.uid) is None:
            # A Deployment with strategy Recreate waits for the last old pod to end.
            owner = self._index.get(*key)
            above = self._index.document_key(objects.controller_uid(owner or {"metadata": {}}))
            if above is not None and above[0] in tasks.WORKLOADS:
                self._loop.trigger((WORKLOAD, above))

    def _trigger_possible_owners(self, pod: Pod) -> None:
        for kind in tasks.POD_OWNERS:
            for each in self._index.all(kind, pod.namespace):
                if objects.selector(each).matches(pod.labels):
                    self._loop.trigger((WORKLOAD, key_of(each)))

    def _trigger_budgets(self, pod: Pod) -> None:
        if not self._index.count(disruption_budget.KIND):
            return
        for each in self._index.all(disruption_budget.KIND, pod.namespace):
            if objects.selector(each).matches(pod.labels):
                self._loop.trigger((tasks.BUDGET, key_of(each)))


def _differs(old: Pod, new: Pod) -> bool:
    """Whether a pod differs in what controllers of workloads and budgets react to."""
    before, after = old.metadata, new.metadata
    return (
        old.status.phase != new.status.phase
        or before.deletion_timestamp != after.deletion_timestamp
        or (before.labels is not after.labels and before.labels != after.labels)
        or before.owner_references != after.owner_references
        or before.finalizers != after.finalizers
        or _readiness(old) != _readiness(new)
    )


def _readiness(pod: Pod) -> str:
    for condition in pod.status.conditions:
        if condition.type == "Ready":
            return condition.status
    return ""


def _needs_lifecycle(node: Node) -> bool:
    """Whether the taints of a node may change, or evict pods."""
    spec = node.spec
    return (
        spec.unschedulable
        or any(each.effect == "NoExecute" or each.key in MANAGED_TAINTS for each in spec.taints)
        or any((each.type == "Ready") != (each.status == "True") for each in node.status.conditions)
    )
