"""Ownership: adoption and release of objects by their controller."""

from collections.abc import Callable

from moorage.controllers import objects
from moorage.controllers.index import ObjectIndex
from moorage.controllers.objects import Object
from moorage.controllers.writes import Update, Write


def claim(
    owner: Object,
    kind: str,
    index: ObjectIndex,
    accepts: Callable[[Object], bool] = lambda orphan: True,
) -> tuple[list[Object], list[Write]]:
    """The owner's objects of a kind, and the writes that adopt and release some.

    The owner adopts objects that match its selector and have no controller, and releases those
    that no longer match. An owner that is being deleted adopts nothing.
    """
    selector = objects.selector(owner)
    owned: list[Object] = []
    writes: list[Write] = []
    for obj in index.controlled(kind, objects.uid(owner)):
        if selector.matches(objects.labels(obj)) or objects.is_terminating(obj):
            owned.append(obj)
        else:
            writes.append(Update(released(obj, objects.uid(owner))))
    if objects.is_terminating(owner) or selector.is_empty:
        return owned, writes
    for obj in index.orphans(kind, objects.namespace(owner), selector):
        if not objects.is_terminating(obj) and accepts(obj):
            references = [*objects.owners(obj), objects.controller_reference(owner)]
            adopted = objects.with_metadata(obj, ownerReferences=references)
            owned.append(adopted)
            writes.append(Update(adopted))
    return owned, writes


def released(obj: Object, owner_uid: str) -> Object:
    """The object without the reference to that owner."""
    left = [owner for owner in objects.owners(obj) if owner.get("uid") != owner_uid]
    return objects.with_metadata(obj, ownerReferences=left)
