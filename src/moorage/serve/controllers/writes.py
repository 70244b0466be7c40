"""What a controller may want done, as plain data."""

from typing import NamedTuple

from moorage.serve.controllers.objects import Object

BACKGROUND, FOREGROUND, ORPHAN = "Background", "Foreground", "Orphan"


class CreateObject(NamedTuple):
    """Make an object; one with a `generateName` gets its name on the way."""

    obj: Object


class UpdateObject(NamedTuple):
    """Store an object as it should be; it carries the version that it was made from."""

    obj: Object


class DeleteObject(NamedTuple):
    """Delete an object; a pod with its own grace period, unless another is given.

    Without a word on propagation, its dependents go as its finalizers say, or else after it.
    """

    obj: Object
    grace_seconds: int | None = None
    propagation: str | None = None


class RequeueAt(NamedTuple):
    """Nothing yet: ask once more at that moment."""

    at: float


Write = CreateObject | UpdateObject | DeleteObject | RequeueAt
