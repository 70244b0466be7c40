"""Garbage collection: dependents of deleted owners, pods of deleted nodes.

all owners are gone                 delete the object
some owners are gone                remove the references to them
an owner with `foregroundDeletion`  delete blocking dependents first, then the owner
an owner with `orphan`              remove the references to it, then delete the owner
the node of a pod is gone           fail and delete the pod after QUARANTINE_SECONDS
a circle of owners                  deletion in the foreground does not block in the circle
"""

from collections.abc import Iterator, Sequence

from moorage.controllers import objects, ownership, pods
from moorage.controllers.index import ObjectIndex
from moorage.controllers.objects import Object
from moorage.controllers.writes import BACKGROUND, FOREGROUND, Delete, Update, Write

FOREGROUND_FINALIZER = "foregroundDeletion"
ORPHAN_FINALIZER = "orphan"
# A node that was deleted by mistake has this long to come back.
QUARANTINE_SECONDS = 40.0


def reconcile(obj: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    """Collect an object whose owners are gone, and finish the deletion of an owner."""
    owners = {
        uid: _owner(obj, reference, index)
        for reference in objects.owners(obj)
        if (uid := reference.get("uid", ""))
    }
    yield from collect_dependent(obj, owners, index.dependents(objects.uid(obj)))
    if objects.is_terminating(obj):
        yield from finish_owner(obj, index.dependents(objects.uid(obj)))


def _owner(obj: Object, reference: Object, index: ObjectIndex) -> Object | None:
    """The object that a reference names: one of another kind, name or namespace is none."""
    found = index.by_uid(reference.get("uid", ""))
    if found is None or objects.kind_of(found) != objects.kind_of(reference):
        return None
    is_near = objects.namespace(found) in ("", objects.namespace(obj))
    return found if is_near and objects.name(found) == reference.get("name") else None


def collect_dependent(
    obj: Object, owners: dict[str, Object | None], dependents: Sequence[Object]
) -> Iterator[Write]:
    """Delete an object without remaining owners, or drop the references to missing ones."""
    if not owners or objects.is_terminating(obj):
        return
    present = {uid: owner for uid, owner in owners.items() if owner is not None}
    waiting = [uid for uid, owner in present.items() if _deletes_dependents(owner)]
    solid = [uid for uid in present if uid not in waiting]
    if len(solid) == len(owners):
        return
    if solid:
        kept = [each for each in objects.owners(obj) if each.get("uid") in solid]
        yield Update(objects.with_metadata(obj, ownerReferences=kept))
    else:
        if waiting and any(map(_deletes_dependents, dependents)):
            # A circle: its owner, and its dependent, wait for each other unless one gives way.
            unblocked = [{**each, "blockOwnerDeletion": False} for each in objects.owners(obj)]
            yield Update(objects.with_metadata(obj, ownerReferences=unblocked))
        # While an owner waits, the dependents of this object have to be deleted before it as well.
        yield Delete(obj, propagation=FOREGROUND if waiting else BACKGROUND)


def _deletes_dependents(obj: Object) -> bool:
    return objects.is_terminating(obj) and FOREGROUND_FINALIZER in objects.finalizers(obj)


def finish_owner(obj: Object, dependents: Sequence[Object]) -> Iterator[Write]:
    """Remove the finalizer of an owner that is being deleted, once its dependents allow it."""
    uid, finalizers = objects.uid(obj), objects.finalizers(obj)
    if ORPHAN_FINALIZER in finalizers:
        for each in dependents:
            yield Update(ownership.released(each, uid))
        yield Update(objects.without_finalizer(obj, ORPHAN_FINALIZER))
    elif FOREGROUND_FINALIZER in finalizers:
        references = [owner for each in dependents for owner in objects.owners(each)]
        if not any(
            each.get("uid") == uid and each.get("blockOwnerDeletion") for each in references
        ):
            yield Update(objects.without_finalizer(obj, FOREGROUND_FINALIZER))


def delete_orphaned_pod(pod: Object) -> Iterator[Write]:
    """Fail and delete a pod that no kubelet can stop any more."""
    if not pods.is_ended(pod):
        text = "PodGC: node no longer exists"
        yield Update(objects.with_status(pod, phase="Failed", reason="NodeLost", message=text))
    yield Delete(pod, grace_seconds=0)
