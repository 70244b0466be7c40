"""Tasks: which controllers reconcile which objects after a change, and the controllers by task.

A task is the name of a controller and the key of the object to reconcile. A task too many costs
time, a missing one leaves work undone: when in doubt, a change triggers the task.
"""

from collections.abc import Callable, Iterable, Iterator

from moorage.controllers import (
    cron_job,
    daemon_set,
    deployment,
    device_claims,
    disruption_budget,
    garbage_collection,
    job,
    kubelet,
    namespace_deletion,
    namespace_objects,
    node_lifecycle,
    objects,
    pods,
    replica_set,
    resource_quota,
    stateful_set,
    volumes,
)
from moorage.controllers.index import WORKLOAD, ObjectIndex, Task, key_of
from moorage.controllers.objects import Object
from moorage.controllers.writes import RequeueAt, Write

Reconcile = Callable[[Object, ObjectIndex, float], Iterator[Write]]

BUDGET, GARBAGE, NAMESPACE = "budget", "garbage", "namespace"
LIFECYCLE, ORPHANED_POD, VOLUME, CLAIMS = "lifecycle", "orphaned pod", "volume", "ephemeral claims"
RELEASE = "release by job"
QUOTA = "quota"
POD_DEVICES, DEVICE_CLAIM = "device claims of pod", "device claim"
KUBELET_POD, KUBELET_NODE = "kubelet of pod", "kubelet of node"
NAMESPACE_OBJECTS = "objects of namespace"
CONTROLLER_TASKS = (
    *(WORKLOAD, BUDGET, GARBAGE, NAMESPACE, LIFECYCLE, ORPHANED_POD, VOLUME, CLAIMS, RELEASE),
    *(POD_DEVICES, DEVICE_CLAIM, NAMESPACE_OBJECTS),
)
"""What kube-controller-manager does; the other tasks are those of kubelets."""

POD_OWNERS: dict[str, Reconcile] = {
    **dict.fromkeys(replica_set.KINDS, replica_set.reconcile),
    stateful_set.KIND: stateful_set.reconcile,
    daemon_set.KIND: daemon_set.reconcile,
    job.KIND: job.reconcile,
}
WORKLOADS = {
    **POD_OWNERS,
    deployment.KIND: deployment.reconcile,
    cron_job.KIND: cron_job.reconcile,
}


def tasks_for_change(old: Object | None, new: Object | None, index: ObjectIndex) -> Iterator[Task]:
    """The tasks that a change triggers; the index already contains it."""
    obj = new or old
    assert obj is not None, "a change has an object"
    kind = objects.kind_of(obj)
    yield from _for_any_kind(obj, old, new, index)
    if kind in WORKLOADS:
        yield from _for_workload(obj, old, new, index)
    match kind:
        case "Pod":
            yield from _for_pod(obj, old, new, index)
        case "Node":
            yield from _for_node(obj, old, new, index)
        case namespace_deletion.NAMESPACE:
            yield NAMESPACE, key_of(obj)
            yield NAMESPACE_OBJECTS, key_of(obj)
        case "ServiceAccount" | "ConfigMap" if new is None:
            name = objects.namespace(obj)
            yield NAMESPACE_OBJECTS, (namespace_deletion.NAMESPACE, "", name)
        case disruption_budget.KIND:
            yield BUDGET, key_of(obj)
        case resource_quota.KIND | "LimitRange" if _admits_more(old, new):
            yield from refused_tasks(objects.namespace(obj), index)
        case volumes.CLAIM | volumes.VOLUME | volumes.CLASS:
            yield from _for_storage(obj, index)
        case device_claims.CLAIM:
            yield from _for_device_claim(obj, index)
        case device_claims.TEMPLATE:
            yield from _for_claim_template(obj, index)


def _admits_more(old: Object | None, new: Object | None) -> bool:
    """Whether a change of a quota or limit range may admit objects that were refused before."""
    if old is None or new is None:
        return new is None
    return objects.spec(old) != objects.spec(new) or resource_quota.has_fallen(old, new)


def refused_tasks(namespace: str, index: ObjectIndex) -> list[Task]:
    """The tasks of a namespace that could not create an object when they last ran."""
    return [task for task in index.failures if task[1][1] == namespace]


def _for_any_kind(
    obj: Object, old: Object | None, new: Object | None, index: ObjectIndex
) -> Iterator[Task]:
    """Ownership and namespaces apply to every kind."""
    owners = objects.owners(obj)
    if owners and new is not None:
        yield GARBAGE, key_of(obj)
    before = [] if old is None else objects.owners(old)
    # An owner that waits for its dependents may go once one of them drops its reference.
    for owner in owners if before == owners else (*owners, *before):
        found = index.by_uid(owner.get("uid", ""))
        if found is not None and objects.is_terminating(found):
            yield GARBAGE, key_of(found)
    if new is None or objects.is_terminating(obj):
        yield GARBAGE, key_of(obj)
        for dependent in index.dependents(objects.uid(obj)):
            yield GARBAGE, key_of(dependent)
    if index.count(resource_quota.KIND) and obj.get("kind") != "Event":
        for quota in index.all(resource_quota.KIND, objects.namespace(obj)):
            yield QUOTA, key_of(quota)
    namespace = index.get(namespace_deletion.NAMESPACE, "", objects.namespace(obj))
    if namespace is not None and objects.is_terminating(namespace):
        yield NAMESPACE, key_of(namespace)


def _for_workload(
    obj: Object, old: Object | None, new: Object | None, index: ObjectIndex
) -> Iterator[Task]:
    yield WORKLOAD, key_of(obj)
    yield from _controllers(old, new, index)
    is_set = objects.kind_of(obj) == "apps/ReplicaSet"
    if is_set and new is not None and objects.controller(new) is None:
        yield from _possible_owners(new, [deployment.KIND], index)
    if old is None or new is None or objects.spec(old) != objects.spec(new):
        for budget in index.all(disruption_budget.KIND, objects.namespace(obj)):
            yield BUDGET, key_of(budget)


def _controllers(old: Object | None, new: Object | None, index: ObjectIndex) -> Iterator[Task]:
    """The controllers of an object before and after its change."""
    for version in (old, new):
        if version is not None:
            owner = index.by_uid(objects.controller_uid(version))
            if owner is not None and objects.kind_of(owner) in WORKLOADS:
                yield WORKLOAD, key_of(owner)


def _possible_owners(obj: Object, kinds: Iterable[str], index: ObjectIndex) -> Iterator[Task]:
    labels = objects.labels(obj)
    for kind in kinds:
        for workload in index.all(kind, objects.namespace(obj)):
            if objects.selector(workload).matches(labels):
                yield WORKLOAD, key_of(workload)


def _for_pod(
    obj: Object, old: Object | None, new: Object | None, index: ObjectIndex
) -> Iterator[Task]:
    yield from _controllers(old, new, index)
    owner = index.by_uid(objects.controller_uid(obj))
    if owner is not None and (new is None or pods.is_ended(new)):
        # A Deployment with strategy Recreate waits for the last old pod to end.
        yield from _controllers(None, owner, index)
    if new is not None and objects.controller(new) is None:
        orphaned = old is None or objects.controller(old) is not None
        if orphaned or objects.labels(old or {}) != objects.labels(new):
            yield from _possible_owners(new, POD_OWNERS, index)
    if index.count(disruption_budget.KIND) and (
        old is None or new is None or _budget_fields(old) != _budget_fields(new)
    ):
        for budget in index.all(disruption_budget.KIND, objects.namespace(obj)):
            selector = objects.selector(budget)
            if any(v is not None and selector.matches(objects.labels(v)) for v in (old, new)):
                yield BUDGET, key_of(budget)
    if new is None or objects.is_terminating(new):
        for claim in volumes.claims_of(obj):  # A deleted one may have lost its last user.
            yield VOLUME, (volumes.CLAIM, objects.namespace(obj), claim)
    if device_claims.has_claims(obj):
        for claim in device_claims.names(obj):
            yield DEVICE_CLAIM, (device_claims.CLAIM, objects.namespace(obj), claim)
    if new is None:
        return
    if device_claims.has_claims(new):
        yield POD_DEVICES, key_of(new)
    if volumes.ephemeral_volumes(new):
        yield CLAIMS, key_of(new)
    if owner is None and job.FINALIZER in objects.finalizers(new):
        yield RELEASE, key_of(new)
    if pods.node_name(new):
        yield KUBELET_POD, key_of(new)
        if old is None or not pods.node_name(old):
            node = index.get("Node", "", pods.node_name(new))
            if node is None:
                yield ORPHANED_POD, key_of(new)
            elif objects.spec(node).get("taints"):
                yield LIFECYCLE, key_of(node)


def _budget_fields(pod: Object) -> tuple[object, ...]:
    """What a disruption budget reads of a pod."""
    state = (pods.is_ready(pod), pods.is_active(pod))
    return objects.labels(pod), objects.controller_uid(pod), state


def _for_node(
    obj: Object, old: Object | None, new: Object | None, index: ObjectIndex
) -> Iterator[Task]:
    on_node = index.pods_on(objects.name(obj))
    if new is None:
        for pod in on_node:
            yield ORPHANED_POD, key_of(pod)
    else:
        yield KUBELET_NODE, key_of(new)
        yield LIFECYCLE, key_of(new)
    if old is None or new is None or _node_fields(old) != _node_fields(new):
        for workload in index.all(daemon_set.KIND):
            yield WORKLOAD, key_of(workload)
        for pod in on_node:
            yield KUBELET_POD, key_of(pod)


def _node_fields(node: Object) -> tuple[object, ...]:
    """What DaemonSets and kubelets read of a node."""
    ready = objects.condition(node, "Ready").get("status")
    return objects.labels(node), objects.annotations(node), objects.spec(node), ready


def _for_storage(obj: Object, index: ObjectIndex) -> Iterator[Task]:
    """A claim affects its pods; a volume its claim; a free volume or a class all unbound claims."""
    kind = objects.kind_of(obj)
    if kind != volumes.CLASS:
        yield VOLUME, key_of(obj)
    if kind == volumes.CLAIM:
        for pod in volumes.bound_users(obj, index):
            yield KUBELET_POD, key_of(pod)
        if volume := objects.spec(obj).get("volumeName"):
            yield VOLUME, (volumes.VOLUME, "", volume)
        return
    if reference := objects.spec(obj).get("claimRef"):
        yield VOLUME, (volumes.CLAIM, reference.get("namespace", ""), reference.get("name", ""))
        return
    for claim in index.all(volumes.CLAIM):
        if not volumes.is_bound(claim):
            yield VOLUME, key_of(claim)


def _for_device_claim(claim: Object, index: ObjectIndex) -> Iterator[Task]:
    """A claim affects the pod that owns it, and the pods that use it."""
    yield DEVICE_CLAIM, key_of(claim)
    owner = index.by_uid(objects.controller_uid(claim))
    if owner is not None:
        users = [owner] if objects.kind_of(owner) == "Pod" else []
    else:
        users = [
            pod
            for pod in index.all("Pod", objects.namespace(claim))
            if objects.name(claim) in device_claims.entries(pod, "resourceClaimName")
        ]
    for pod in users:
        yield POD_DEVICES, key_of(pod)
        if pods.node_name(pod):
            yield KUBELET_POD, key_of(pod)


def _for_claim_template(template: Object, index: ObjectIndex) -> Iterator[Task]:
    for pod in index.all("Pod", objects.namespace(template)):
        if objects.name(template) in device_claims.entries(pod, "resourceClaimTemplateName"):
            yield POD_DEVICES, key_of(pod)


# The controllers -------------------------------------------------------------------------------


def _reconcile_workload(obj: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    kind = objects.kind_of(obj)
    if kind in POD_OWNERS and not objects.template(obj):
        return iter(())  # Only its selector is known, as in a recording, which has its pods.
    return WORKLOADS[kind](obj, index, now)


class Reconcilers:
    """All controllers, and the times since when kubelets and the pod collector wait."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str], float] = {}
        self._by_task: dict[str, Reconcile] = {
            WORKLOAD: _reconcile_workload,
            BUDGET: disruption_budget.reconcile,
            QUOTA: resource_quota.reconcile,
            GARBAGE: garbage_collection.reconcile,
            NAMESPACE: namespace_deletion.reconcile,
            NAMESPACE_OBJECTS: namespace_objects.reconcile,
            LIFECYCLE: node_lifecycle.reconcile,
            VOLUME: volumes.reconcile,
            CLAIMS: volumes.reconcile_ephemeral_claims,
            RELEASE: job.release,
            POD_DEVICES: device_claims.reconcile_pod,
            DEVICE_CLAIM: device_claims.reconcile,
            ORPHANED_POD: self._orphaned_pod,
            KUBELET_POD: self._pod,
            KUBELET_NODE: kubelet.reconcile_node,
        }

    def reconcile(self, task: str, obj: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
        """Run the controller of that name on an object."""
        return self._by_task[task](obj, index, now)

    def forget(self, obj: Object) -> None:
        """Drop the times of a deleted object."""
        for task in (ORPHANED_POD, KUBELET_POD):
            self._since.pop((task, objects.uid(obj)), None)

    def _pod(self, pod: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
        since = self._since.setdefault((KUBELET_POD, objects.uid(pod)), now)
        node = index.get("Node", "", pods.node_name(pod))
        claims = [
            index.get(volumes.CLAIM, objects.namespace(pod), name)
            for name in volumes.claims_of(pod)
        ]
        ready = all(claim is not None and volumes.is_bound(claim) for claim in claims)
        if ready and device_claims.has_claims(pod):
            ready = device_claims.are_ready(pod, index)
        free = pods.phase(pod) == "Running" or not kubelet.host_ports(pod)
        free = free or kubelet.has_free_ports(pod, index.pods_on(pods.node_name(pod)))
        return kubelet.reconcile_pod(pod, node, since, now, claims_ready=ready, ports_free=free)

    def _orphaned_pod(self, pod: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
        key = (ORPHANED_POD, objects.uid(pod))
        if index.get("Node", "", pods.node_name(pod)) is not None or not pods.node_name(pod):
            self._since.pop(key, None)
            return
        at = self._since.setdefault(key, now) + garbage_collection.QUARANTINE_SECONDS
        if at > now:
            yield RequeueAt(at)
        else:
            yield from garbage_collection.delete_orphaned_pod(pod)
