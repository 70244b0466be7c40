"""Who belongs to whom: owner references, adoption and release."""

from collections.abc import Iterable, Iterator

from moorage.api.selectors import Selector
from moorage.serve.controllers import objects
from moorage.serve.controllers.objects import Object
from moorage.serve.controllers.writes import UpdateObject, Write


def reference(owner: Object) -> Object:
    """The reference by which an object names the controller that made it."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": objects.name(owner),
        "uid": objects.uid(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owners(obj: Object) -> list[Object]:
    return obj["metadata"].get("ownerReferences") or []


def controller(obj: Object) -> Object | None:
    """The reference to the object's controller, if it has one."""
    for owner in owners(obj):
        if owner.get("controller"):
            return owner
    return None


def controller_uid(obj: Object) -> str:
    found = controller(obj)
    return "" if found is None else str(found.get("uid", ""))


def claim(
    owner: Object, selector: Selector, owned: Iterable[Object], orphans: Iterable[Object]
) -> tuple[list[Object], list[Write]]:
    """The owner's objects, and the writes by which it adopts and releases some.

    What matches and belongs to nobody is adopted; what no longer matches is let go. An owner that
    is being deleted adopts nothing.
    """
    mine: list[Object] = []
    writes: list[Write] = []
    for obj in owned:
        if selector.matches(objects.labels(obj)) or objects.is_terminating(obj):
            mine.append(obj)
        else:
            writes.append(UpdateObject(released(obj, objects.uid(owner))))
    for obj in adoptable(owner, selector, orphans):
        adopted = objects.with_metadata(obj, ownerReferences=[*owners(obj), reference(owner)])
        mine.append(adopted)
        writes.append(UpdateObject(adopted))
    return mine, writes


def adoptable(owner: Object, selector: Selector, orphans: Iterable[Object]) -> Iterator[Object]:
    """Objects without a controller that this owner may take."""
    if objects.is_terminating(owner) or selector.is_empty:
        return
    for obj in orphans:
        if not objects.is_terminating(obj) and selector.matches(objects.labels(obj)):
            yield obj


def released(obj: Object, owner_uid: str) -> Object:
    """The object without that owner."""
    left = [owner for owner in owners(obj) if owner.get("uid") != owner_uid]
    return objects.with_metadata(obj, ownerReferences=left)
