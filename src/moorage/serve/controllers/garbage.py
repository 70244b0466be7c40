"""Garbage: objects whose owners are gone, and how an owner's end reaches them.

    the owners are all gone            the object is deleted
    some are gone, some stay           it keeps the references to those that stay
    an owner waits for its dependents  those that block it are deleted first, then it ends
    an owner wants to orphan them      they lose the reference, then it ends

`Foreground` and `Orphan` are finalizers on the owner, put there by whoever asked for its deletion.
"""

from collections.abc import Iterator, Sequence

from moorage.serve.controllers import objects, ownership
from moorage.serve.controllers.objects import Object
from moorage.serve.controllers.view import View
from moorage.serve.controllers.writes import BACKGROUND, FOREGROUND, Delete, Update, Write

WAIT_FOR_DEPENDENTS = "foregroundDeletion"
LEAVE_DEPENDENTS = "orphan"


def reconcile(obj: Object, view: View, now: float) -> Iterator[Write]:
    """What becomes of an object because of its owners, and of its dependents because of it."""
    del now  # Nothing here depends on time.
    owners = {
        uid: view.by_uid(uid) for owner in ownership.owners(obj) if (uid := owner.get("uid", ""))
    }
    yield from of_dependent(obj, owners)
    if objects.is_terminating(obj):
        yield from of_owner(obj, view.dependents(objects.uid(obj)))


def of_dependent(obj: Object, owners: dict[str, Object | None]) -> Iterator[Write]:
    """Whether an object outlives its owners."""
    if not owners or objects.is_terminating(obj):
        return
    solid = [uid for uid, owner in owners.items() if owner is not None and not _waits(owner)]
    waiting = [uid for uid, owner in owners.items() if owner is not None and _waits(owner)]
    if len(solid) == len(owners):
        return
    if solid:
        kept = [each for each in ownership.owners(obj) if each.get("uid") in solid]
        yield Update(objects.with_metadata(obj, ownerReferences=kept))
    else:
        # While an owner waits, the dependents of this object have to go before it as well.
        yield Delete(obj, propagation=FOREGROUND if waiting else BACKGROUND)


def _waits(owner: Object) -> bool:
    return objects.is_terminating(owner) and WAIT_FOR_DEPENDENTS in objects.finalizers(owner)


def of_owner(obj: Object, dependents: Sequence[Object]) -> Iterator[Write]:
    """What an object that is being deleted waits for."""
    uid = objects.uid(obj)
    if LEAVE_DEPENDENTS in objects.finalizers(obj):
        for each in dependents:
            yield Update(ownership.released(each, uid))
        yield Update(objects.without_finalizer(obj, LEAVE_DEPENDENTS))
    elif WAIT_FOR_DEPENDENTS in objects.finalizers(obj) and not any(
        _blocks(each, uid) for each in dependents
    ):
        yield Update(objects.without_finalizer(obj, WAIT_FOR_DEPENDENTS))


def _blocks(dependent: Object, uid: str) -> bool:
    return any(
        owner.get("uid") == uid and owner.get("blockOwnerDeletion")
        for owner in ownership.owners(dependent)
    )
