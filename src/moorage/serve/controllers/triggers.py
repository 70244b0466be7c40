"""Who has to look again when something changes: a change -> tasks.

A task is a controller's name and the key of the object that it should look at. Asking too often
costs time, asking too rarely leaves something undone: when in doubt, it is asked.
"""

from collections.abc import Iterator

from moorage.serve.controllers import (
    daemon_set,
    deployment,
    disruption_budget,
    garbage_collection,
    job,
    objects,
    ownership,
    pods,
    replica_set,
    stateful_set,
    volumes,
)
from moorage.serve.controllers.index import Key, ObjectIndex, key_of
from moorage.serve.controllers.objects import Object

Task = tuple[str, Key]

WORKLOAD, BUDGET, GARBAGE, NAMESPACE = "workload", "budget", "garbage", "namespace"
LIFECYCLE, LOST, VOLUME, CLAIMS = "lifecycle", "lost pod", "volume", "ephemeral claims"
RELEASE = "release by job"
KUBELET_POD, KUBELET_NODE = "kubelet of pod", "kubelet of node"

OWN_PODS = (
    *replica_set.KINDS,
    stateful_set.KIND,
    daemon_set.KIND,
    job.KIND,
)
WORKLOADS = (*OWN_PODS, deployment.KIND)


def of_change(old: Object | None, new: Object | None, view: ObjectIndex) -> Iterator[Task]:
    """The tasks that a change calls for; the view shows the cluster after it."""
    obj = new or old
    assert obj is not None, "a change is about an object"
    kind = objects.kind_of(obj)
    yield from _of_anything(obj, new, view)
    if kind in WORKLOADS:
        yield from _of_workload(obj, old, new, view)
    match kind:
        case "Pod":
            yield from _of_pod(obj, old, new, view)
        case "Node":
            yield from _of_node(obj, old, new, view)
        case "Namespace":
            yield NAMESPACE, key_of(obj)
        case disruption_budget.KIND:
            yield BUDGET, key_of(obj)
        case volumes.CLAIM | volumes.VOLUME | volumes.CLASS:
            yield from _of_storage(obj, view)
        case _:
            pass


def _of_anything(obj: Object, new: Object | None, view: ObjectIndex) -> Iterator[Task]:
    """Ownership and namespaces concern every kind."""
    if ownership.owners(obj):
        if new is not None:
            yield GARBAGE, key_of(obj)
        for owner in ownership.owners(obj):
            found = view.by_uid(owner.get("uid", ""))
            if found is not None and objects.is_terminating(found):
                yield GARBAGE, key_of(found)
    if new is None or objects.is_terminating(obj):
        yield GARBAGE, key_of(obj)
        for dependent in view.dependents(objects.uid(obj)):
            yield GARBAGE, key_of(dependent)
    home = view.get(garbage_collection.NAMESPACE, "", objects.namespace(obj))
    if home is not None and objects.is_terminating(home):
        yield NAMESPACE, key_of(home)


def _of_workload(
    obj: Object, old: Object | None, new: Object | None, view: ObjectIndex
) -> Iterator[Task]:
    yield WORKLOAD, key_of(obj)
    for version in (old, new):
        if version is not None:
            yield from _controller(version, view)
    is_set = objects.kind_of(obj) == "apps/ReplicaSet"
    if is_set and new is not None and ownership.controller(new) is None:
        yield from _possible_owners(new, (deployment.KIND,), view)
    if old is None or new is None or objects.spec(old) != objects.spec(new):
        for budget in view.all(disruption_budget.KIND, objects.namespace(obj)):
            yield BUDGET, key_of(budget)


def _controller(obj: Object, view: ObjectIndex) -> Iterator[Task]:
    owner = view.by_uid(ownership.controller_uid(obj))
    if owner is not None and objects.kind_of(owner) in WORKLOADS:
        yield WORKLOAD, key_of(owner)


def _possible_owners(obj: Object, kinds: tuple[str, ...], view: ObjectIndex) -> Iterator[Task]:
    labels = objects.labels(obj)
    for kind in kinds:
        for workload in view.all(kind, objects.namespace(obj)):
            if objects.selector(workload).matches(labels):
                yield WORKLOAD, key_of(workload)


def _of_pod(
    obj: Object, old: Object | None, new: Object | None, view: ObjectIndex
) -> Iterator[Task]:
    for version in (old, new):
        if version is not None:
            yield from _controller(version, view)
    owner = view.by_uid(ownership.controller_uid(obj))
    if owner is not None and (new is None or pods.is_ended(new)):
        yield from _controller(owner, view)  # It may wait for the last of its old pods to end.
    if new is not None and ownership.controller(new) is None:
        fresh = old is None or ownership.controller(old) is not None
        if fresh or objects.labels(old or {}) != objects.labels(new):
            yield from _possible_owners(new, OWN_PODS, view)
    if old is None or new is None or _counts(old) != _counts(new):
        for budget in view.all(disruption_budget.KIND, objects.namespace(obj)):
            wanted = objects.selector(budget)
            if any(v is not None and wanted.matches(objects.labels(v)) for v in (old, new)):
                yield BUDGET, key_of(budget)
    if new is not None and volumes.ephemeral_volumes(new):
        yield CLAIMS, key_of(new)
    if new is not None and owner is None and job.FINALIZER in objects.finalizers(new):
        yield RELEASE, key_of(new)
    if new is not None and pods.node_name(new):
        yield KUBELET_POD, key_of(new)
        if old is None or not pods.node_name(old):
            yield from _of_arrival(new, view)


def _of_arrival(pod: Object, view: ObjectIndex) -> Iterator[Task]:
    """A pod has come to its node."""
    node = view.get("Node", "", pods.node_name(pod))
    if node is None:
        yield LOST, key_of(pod)
    elif objects.spec(node).get("taints"):
        yield LIFECYCLE, key_of(node)
    for claim in volumes.claims_of(pod):
        yield VOLUME, (volumes.CLAIM, objects.namespace(pod), claim)


def _counts(pod: Object) -> tuple[object, ...]:
    """What a budget reads of a pod."""
    return (
        objects.labels(pod),
        pods.is_ready(pod),
        pods.is_active(pod),
        ownership.controller_uid(pod),
    )


def _of_node(
    obj: Object, old: Object | None, new: Object | None, view: ObjectIndex
) -> Iterator[Task]:
    here = view.pods_on(objects.name(obj))
    if new is None:
        for pod in here:
            yield LOST, key_of(pod)
    else:
        yield KUBELET_NODE, key_of(new)
        yield LIFECYCLE, key_of(new)
    if old is None or new is None or _telling(old) != _telling(new):
        for workload in view.all(daemon_set.KIND):
            yield WORKLOAD, key_of(workload)
        for pod in here:
            yield KUBELET_POD, key_of(pod)


def _telling(node: Object) -> tuple[object, ...]:
    """What daemons and kubelets read of a node."""
    return (
        objects.labels(node),
        objects.annotations(node),
        objects.spec(node),
        objects.condition(node, "Ready").get("status"),
    )


def _of_storage(obj: Object, view: ObjectIndex) -> Iterator[Task]:
    """A claim concerns its pods; a volume or a class, all claims that wait."""
    kind = objects.kind_of(obj)
    if kind != volumes.CLASS:
        yield VOLUME, key_of(obj)
    if kind == volumes.CLAIM:
        name = objects.name(obj)
        for pod in view.all("Pod", objects.namespace(obj)):
            if pods.node_name(pod) and name in volumes.claims_of(pod):
                yield KUBELET_POD, key_of(pod)
        bound_to = objects.spec(obj).get("volumeName")
        if bound_to:
            yield VOLUME, (volumes.VOLUME, "", bound_to)
        return
    for claim in view.all(volumes.CLAIM):
        if objects.status(claim).get("phase") != "Bound":
            yield VOLUME, key_of(claim)
