"""Garbage collection: dependents of deleted owners, pods of deleted nodes, deleted namespaces.

all owners are gone                 delete the object
some owners are gone                remove the references to them
an owner with `foregroundDeletion`  delete blocking dependents first, then the owner
an owner with `orphan`              remove the references to it, then delete the owner
the node of a pod is gone           fail and delete the pod after QUARANTINE_SECONDS
a namespace is being deleted        delete all objects in it, then the namespace
"""

from collections.abc import Iterator, Sequence

from moorage.serve.controllers import objects, ownership, pods
from moorage.serve.controllers.index import ObjectIndex
from moorage.serve.controllers.objects import Object
from moorage.serve.controllers.writes import (
    BACKGROUND,
    FOREGROUND,
    DeleteObject,
    UpdateObject,
    Write,
)

FOREGROUND_FINALIZER = "foregroundDeletion"
ORPHAN_FINALIZER = "orphan"


def reconcile(obj: Object, view: ObjectIndex, now: float) -> Iterator[Write]:
    """What becomes of an object because of its owners, and of its dependents because of it."""
    del now  # Nothing here depends on time.
    owners = {
        uid: view.by_uid(uid) for owner in ownership.owners(obj) if (uid := owner.get("uid", ""))
    }
    yield from collect_dependent(obj, owners)
    if objects.is_terminating(obj):
        yield from finish_owner(obj, view.dependents(objects.uid(obj)))


def collect_dependent(obj: Object, owners: dict[str, Object | None]) -> Iterator[Write]:
    """Whether an object outlives its owners."""
    if not owners or objects.is_terminating(obj):
        return
    solid = [
        uid
        for uid, owner in owners.items()
        if owner is not None and not _is_foreground_deleted(owner)
    ]
    waiting = [
        uid for uid, owner in owners.items() if owner is not None and _is_foreground_deleted(owner)
    ]
    if len(solid) == len(owners):
        return
    if solid:
        kept = [each for each in ownership.owners(obj) if each.get("uid") in solid]
        yield UpdateObject(objects.with_metadata(obj, ownerReferences=kept))
    else:
        # While an owner waits, the dependents of this object have to go before it as well.
        yield DeleteObject(obj, propagation=FOREGROUND if waiting else BACKGROUND)


def _is_foreground_deleted(owner: Object) -> bool:
    return objects.is_terminating(owner) and FOREGROUND_FINALIZER in objects.finalizers(owner)


def finish_owner(obj: Object, dependents: Sequence[Object]) -> Iterator[Write]:
    """What an object that is being deleted waits for."""
    uid = objects.uid(obj)
    if ORPHAN_FINALIZER in objects.finalizers(obj):
        for each in dependents:
            yield UpdateObject(ownership.released(each, uid))
        yield UpdateObject(objects.without_finalizer(obj, ORPHAN_FINALIZER))
    elif FOREGROUND_FINALIZER in objects.finalizers(obj) and not any(
        _blocks(each, uid) for each in dependents
    ):
        yield UpdateObject(objects.without_finalizer(obj, FOREGROUND_FINALIZER))


def _blocks(dependent: Object, uid: str) -> bool:
    return any(
        owner.get("uid") == uid and owner.get("blockOwnerDeletion")
        for owner in ownership.owners(dependent)
    )


QUARANTINE_SECONDS = 40.0


def is_orphaned_pod(pod: Object, view: ObjectIndex) -> bool:
    """Whether a pod is on a node that is not there."""
    node = pods.node_name(pod)
    return bool(node) and view.get("Node", "", node) is None


def delete_orphaned_pod(pod: Object) -> Iterator[Write]:
    """The end of a pod that nobody can end any more."""
    if not pods.is_ended(pod):
        yield UpdateObject(
            objects.with_status(
                pod,
                phase="Failed",
                reason="NodeLost",
                message="PodGC: node no longer exists",
            )
        )
    yield DeleteObject(pod, grace_seconds=0)


NAMESPACE = "Namespace"
NAMESPACE_FINALIZER = "kubernetes"


def reconcile_namespace(namespace: Object, view: ObjectIndex, now: float) -> Iterator[Write]:
    """Empty a namespace that is being deleted, then let it go."""
    del now  # Nothing here depends on time.
    if not objects.is_terminating(namespace):
        return
    if objects.status(namespace).get("phase") != "Terminating":
        namespace = objects.with_status(namespace, phase="Terminating")
        yield UpdateObject(namespace)
    inside = view.within(objects.name(namespace))
    for obj in inside:
        if not objects.is_terminating(obj):
            yield DeleteObject(obj)
    if not inside:
        held = objects.spec(namespace).get("finalizers") or []
        left = [each for each in held if each != NAMESPACE_FINALIZER]
        yield UpdateObject(objects.with_spec(namespace, finalizers=left))
